"""Figures of bundles, as templates ask for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import betainc

from tools.results import CHECKOUT
from wanlat import OpenBundle, open_bundle
from wanlat.analysis.figures.round_trips import ways_cell
from wanlat.analysis.stats.intervals import of_mean
from wanlat.bundle.read import POINTS, read_json
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.topologies.wording import listing


@cache
def bundle_at(place: Path) -> OpenBundle:
    """Return the bundle in a directory, opened once."""
    return open_bundle(place)


class Mean(NamedTuple):
    """A figure of a store: the mean of its clusters with Student's interval; of one, its own."""

    value: float
    ci95: tuple[float, float] | None
    clusters: int

    @property
    def low(self) -> float:
        """Return the interval's lower end; where there is none, nothing is known."""
        return self.ci95[0] if self.ci95 else float("-inf")

    @property
    def high(self) -> float:
        """Return the interval's upper end; where there is none, nothing is known."""
        return self.ci95[1] if self.ci95 else float("inf")

    def scaled(self, by: float) -> Mean:
        """Return it in another unit."""
        ends = self.ci95 and (self.ci95[0] * by, self.ci95[1] * by)
        return Mean(self.value * by, ends, self.clusters)


def rows(home: Path, bundle: str, figure: str, **where: Any) -> list[dict[str, Any]]:
    """Return the rows of a figure (`OpenBundle.figures`) that have these values, one or more.

    What a matrix has no table of comes from its points.
    """
    opened = bundle_at(home / bundle)
    within = [opened] if figure in opened.figures else opened.points.values()
    frames = [each.figures[figure] for each in within if figure in each.figures]
    if not frames:
        raise LookupError(f"{home / bundle} has no {figure}, but {listing([*opened.figures])}.")
    return _having(where, pd.concat(frames, ignore_index=True), f"{home / bundle}: {figure}")


def row(home: Path, bundle: str, figure: str, **where: Any) -> dict[str, Any]:
    """Return the one row of a figure that has these values."""
    return _only(where, rows(home, bundle, figure, **where), f"{home / bundle}: {figure}")


def document(home: Path, name: str) -> Any:
    """Return what a JSON file of a bundle says."""
    return read_json(home / name)


def published(_: Path, name: str, **where: Any) -> dict[str, Any]:
    """Return the one row of a publication's table, analysis/published/NAME.csv."""
    file = CHECKOUT / "analysis" / "published" / f"{name}.csv"
    return _only(where, _having(where, pd.read_csv(file), str(file)), str(file))


def _having(where: dict[str, Any], frame: pd.DataFrame, what: str) -> list[dict[str, Any]]:
    for key, value in where.items():
        frame = frame[frame[key] == value]
    if frame.empty:
        raise LookupError(f"{what}: no row has {where}.")
    return [{str(key): value for key, value in each.items()} for each in frame.to_dict("records")]


def _only(where: dict[str, Any], found: list[dict[str, Any]], what: str) -> dict[str, Any]:
    if len(found) != 1:
        raise LookupError(f"{what}: {len(found)} rows have {where}.")
    return found[0]


def values(home: Path, bundle: str, figure: str, of: str, **where: Any) -> list[Any]:
    """Return what is under `of` in the rows that have these values, where anything is."""
    return [each[of] for each in rows(home, bundle, figure, **where) if np.all(pd.notna(each[of]))]


def mean(home: Path, bundle: str, figure: str, of: str, **where: Any) -> Mean:
    """Return what is under `of` in the rows that have these values, which differ by cluster."""
    each = values(home, bundle, figure, of, **where)
    if len(each) > 1:
        return over_clusters(home, each)
    one = row(home, bundle, figure, **where)
    names = (f"{of}_ci95", of.replace("_ms", "_ci95_ms"))
    own = next((one[name] for name in names if name != of and name in one), None)
    return Mean(float(one[of]), own, 1)


def is_one_number(home: Path, bundle: str, **where: Any) -> bool:
    """Return whether operations take one number of round trips each: 95 % of requests or more."""
    found = rows(home, bundle, "clusters_round_trips.entries", **where)
    return all(len(each["ways"]) == 1 and each["ways"][0]["share"] >= 0.95 for each in found)


def share_of(home: Path, bundle: str, *numbers: int, **where: Any) -> Mean:
    """Return which share of an operation's requests takes these round trips, over clusters."""
    found = rows(home, bundle, "clusters_round_trips.entries.ways", **where)
    chosen = [each for each in found if round(each["round_trips"]) in numbers]
    ends = chosen[0]["share_ci95"] if len(chosen) == 1 else None
    return Mean(float(sum(each["share"] for each in chosen)), ends, clusters(home, bundle))


def takes(home: Path, bundle: str, **where: Any) -> str:
    """Return the round trips of an operation, over clusters: each number with its share."""
    return ways_cell(rows(home, bundle, "clusters_round_trips.entries.ways", **where))


_KEPT_NS, _FAR_MS = 1e9, 50.0


def foretold(home: Path, bundle: str, endpoint: str) -> float:
    """Return of how many requests to MinIO's PutObject or ListObjects the round trips follow.

    They do from when requests began, by MinIO's source: what a drive says of its space is kept for
    a second. A ListObjects asks the four drives that are far as it begins, at once; a PutObject
    asks them after two round trips, one after the other; each takes a round trip more for that.
    """
    came_true = []
    for name, point in bundle_at(home / bundle).points.items():
        steps = document(home, f"{bundle}/points/{name}/rtt_steps.json")["rtt_steps"]
        rtt_ms = {each["rtt_step"]: each["requested_rtt_ms"] for each in steps}
        known = np.full(4, -np.inf)
        mine = point.samples[point.samples["system"] == "minio"].sort_values("start_ns")
        for each in mine[mine["endpoint"].isin(["PutObject", "ListObjects"])].itertuples():
            rtt_ns = 1e6 * rtt_ms[each.rtt_step]
            is_put = each.endpoint == "PutObject"
            now, trips = each.start_ns + 2 * rtt_ns * is_put, 5 if is_put else 2
            old = now - known >= _KEPT_NS
            if not is_put:
                known[old], trips = now + rtt_ns, trips + int(old.any())
            for drive in range(4) if is_put else ():
                if now - known[drive] >= _KEPT_NS:
                    now, trips = now + rtt_ns, trips + 1
                    known[drive] = now
            if each.endpoint == endpoint and each.phase == "measure" and rtt_ns >= 1e6 * _FAR_MS:
                came_true.append(abs(each.total_ns / rtt_ns - trips) < 0.5)
    return float(np.mean(came_true))


def trips_at_limit(home: Path, bundle: str, endpoint: str) -> Mean:
    """Return the median of how long answered requests of an envelope took, over clusters.

    In RTTs, on the farthest network without loss on which the cluster kept its promise. Not the
    slowest: what takes longer than the deadline is not answered, so that they would be its.
    """
    found = []
    for name, point in bundle_at(home / bundle).points.items():
        (of,) = document(home, f"{bundle}/{POINTS}/{name}/envelope.json")["systems"]
        farthest = {"rtt_ms": _rtt_without_loss(of), "loss": 0.0}
        tests = [each for each in of["tests"] if farthest.items() <= each["network"].items()]
        asked = point.samples.query("phase == 'window' and outcome == 'ok'")
        asked = asked[asked["rtt_step"].isin([each["number"] for each in tests])]
        took_ns = asked.loc[asked["endpoint"] == endpoint, "elapsed_ns"].astype(float)
        found.append(took_ns.median() / 1e6 / farthest["rtt_ms"])
    return over_clusters(home, found)


class Grid(NamedTuple):
    """As fine over an envelope's axes as their precision."""

    networks: int
    trials: int
    """At least: a verdict is known after the fewest that it can be."""


def of_grid(home: Path, bundle: str) -> Grid:
    """Return what a grid takes: trials hold without loss as far as was found, and nowhere else."""
    study = document(home, f"{bundle}/manifest.json")["study"]
    spec = EnvelopeSpec.model_validate(study["envelope"])
    limit_ms = row(home, bundle, "envelope.limits", axis="rtt", at="no loss")["limit"]
    networks, holding = 1, 0
    for axis in spec.plan.axes:
        steps = math.ceil(math.log(axis.high / axis.low) / math.log(1 + axis.precision))
        if axis.name == "rtt":
            far = math.log(limit_ms / axis.low) / math.log(axis.high / axis.low)
            holding = math.floor(steps * far) + 1
        networks *= steps + 1 + (axis.name != "rtt")  # no jitter, no loss
    least = {held: _fewest(spec, held) for held in (True, False)}
    return Grid(networks, holding * least[True] + (networks - holding) * least[False])


def _fewest(spec: EnvelopeSpec, held: bool) -> int:
    """Return after how many trials alike there is a verdict."""
    return next(n for n in count(1) if spec.test.verdict([held] * n) is not None)


def _rtt_without_loss(of: dict[str, Any]) -> float:
    limits = (each for each in of["limits"] if each["axis"] == "rtt" and not each["at"]["loss"])
    return float(next(limits)["inside"])


def over_clusters(_: Path, each: Sequence[float]) -> Mean:
    """Return the mean of figures of clusters, one or more."""
    found = np.array(each, dtype=np.float64)
    return Mean(float(found.mean()), of_mean(found) if found.size > 1 else None, found.size)


def added(home: Path, bundle: str, figure: str, of: str, **where: Any) -> Mean:
    """Return what is under `of` in the rows of each cluster together (reads and writes)."""
    return over_clusters(home, [*_added(home, bundle, figure, of, where).values()])


def ratio(
    home: Path, bundle: str, figure: str, of: str, one: dict[str, Any], other: dict[str, Any]
) -> Mean:
    """Return the rows `one` over the rows `other`: cluster by cluster, the mean of logarithms."""
    above, below = (_added(home, bundle, figure, of, where) for where in (one, other))
    logs = over_clusters(home, [np.log(above[each] / below[each]) for each in above])
    ends = logs.ci95 and (float(np.exp(logs.ci95[0])), float(np.exp(logs.ci95[1])))
    return Mean(float(np.exp(logs.value)), ends, logs.clusters)


def _added(
    home: Path, bundle: str, figure: str, of: str, where: dict[str, Any]
) -> dict[int, float]:
    found = dict[int, float]()
    for each in rows(home, bundle, figure, **where):
        cluster = each.get("replicate", 1)
        found[cluster] = found.get(cluster, 0.0) + each[of]
    return found


def clusters(home: Path, bundle: str) -> int:
    """Return how many clusters of a kind were measured."""
    opened = bundle_at(home / bundle)
    varied = opened.figures.get("matrix.parameters", pd.DataFrame(columns=["name"]))
    repeated = varied[varied["name"] == "replicate"]
    return 1 if repeated.empty else len(repeated["values"].iloc[0])


def calibrations(home: Path, bundle: str) -> list[dict[str, Any]]:
    """Return what calibration found of each pair of nodes, in each cluster of a matrix."""
    points = bundle_at(home / bundle).points
    names = [f"{bundle}/{POINTS}/{each}/calibration.json" for each in points]
    return [pair for name in names for pair in document(home, name)["pairs"]]


_RTT_MS, _JITTER_MS, _STEP_MS = 100.0, 20.0, 0.01


def expected(
    _: Path,
    nth: int,
    of: int,
    request: Sequence[float] = (0.0,),
    answer: Sequence[float] = (0.0,),
) -> float:
    """Return how long the `nth` fastest of `of` round trips of 100 ± 20 ms takes on average, ms.

    Computed. `request` and `answer`: so many ms after the first each packet leaves. Each
    has a delay of its own, 50 ± 10 ms, evenly; a way ends when all of its packets are there.
    """
    at_ms = np.arange(0.0, _JITTER_MS + max(*request, *answer) + _STEP_MS, _STEP_MS)
    ways = [
        np.diff(np.prod([np.clip((at_ms - each) / _JITTER_MS, 0, 1) for each in way], axis=0))
        for way in (request, answer)
    ]
    ranked = betainc(nth, of - nth + 1, np.convolve(*ways).cumsum().clip(0, 1))
    beyond_ms = np.arange(1, ranked.size + 1) * _STEP_MS
    return float(_RTT_MS - _JITTER_MS + np.diff(ranked, prepend=0.0) @ beyond_ms)


def times(home: Path, bundle: str, **where: Any) -> pd.Series[float]:
    """Return how long requests took that were answered and measured on time, ms."""
    samples = bundle_at(home / bundle).samples
    chosen = (
        (samples["phase"] == "measure")
        & (samples["outcome"] == "ok")
        & ~samples["late"].fillna(False)
    )
    for key, value in where.items():
        chosen &= samples[key] == value
    if not chosen.any():
        raise LookupError(f"{home / bundle}: no request has {where}.")
    return samples.loc[chosen, "total_ns"].astype(float) / 1e6
