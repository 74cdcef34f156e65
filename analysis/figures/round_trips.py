"""How many round trips does a request make? Both answers, what they cost, and why none is given.

Two ways that share nothing but the requests: the slope of latency against RTT
(`wanlat.analysis.stats.round_trips`), and the critical path in the packet record
(`wanlat.analysis.packets`). They stand side by side; where they disagree, a note reports it. In
keys, the critical path is `chain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from wanlat.analysis.endpoints import row_of, with_placement
from wanlat.analysis.figures.agreement import Comparison, compare
from wanlat.analysis.figures.rtt_steps import (
    counting,
    remarks,
    rows_that_count,
    rtt_steps,
    why_meaningless,
)
from wanlat.analysis.groups import Group, OfGroup, grouped, in_order, ok_ms, seed_of, timed
from wanlat.analysis.names import (
    EN_DASH,
    count,
    format_ms,
    format_trips,
    format_trips_interval,
    series_labels,
)
from wanlat.analysis.packets.evidence import PacketEvidence, Share, evidence_of
from wanlat.analysis.section import (
    ENDPOINT,
    PLACED,
    Column,
    Figures,
    Note,
    Row,
    Section,
    as_json,
    figures_of,
    rests_on,
    series_of,
)
from wanlat.analysis.stats.intervals import Interval, of_mean
from wanlat.analysis.stats.modes import MIN_RTTS
from wanlat.analysis.stats.round_trips import Estimate, Mode, estimate
from wanlat.analysis.stats.slopes import Indexes, Values, levels_of
from wanlat.bundle.documents import UNKNOWN, Promised, Titles
from wanlat.bundle.run import Run, Series

NAMED_FROM = 0.2
"""So great a share of the requests is named beside the greatest: where half of them make twice as
many round trips, or 113 of 225 two and 112 three, one number would hide it."""
_LEAST = "least_round_trips"
_NO_CHAIN = "The packet record says nothing of these requests."
ONE_MESSAGE = 0.5
"""Round trips: what differs by less is of one length, and only waits longer."""

DEFINITIONS = {
    "round_trips": "slope of latency against measured RTT, of the mode with the greatest share",
    "ci95": "95 % interval of round_trips, seeded",
    "intercept_ms": "the same mode at RTT 0: the store's own time",
    "chain_round_trips": "half the messages of the critical path over WAN links, as most requests "
    "have it; independent of round_trips",
    "agrees": "whether critical paths lie in their mode's interval, widened by 0.1, request by "
    "request",
    "least_round_trips": "what no store with this promise and these places of replicas can beat",
    "decides": "what decides between modes, as the system's definition says",
}


_KEYS = (
    *("system", "version", "topology", "endpoint", "placement", "round_trips", "ci95"),
    *("intercept_ms", "modes", "chain_round_trips", "wan_bytes", "wan_packets", "n", "failed"),
    *("integer", "intercept_ci95_ms", "mean_round_trips", "mean_ci95", "unexplained", "fit"),
    *("chains", "chains_n", "agrees", "disagreement", "least_round_trips", "least_why"),
    *("wan_bytes_ci95", "wan_packets_ci95", "why", "why_no_chain", "decides", "late"),
)


_COST = ("wan_bytes", "wan_packets", "wan_bytes_ci95", "wan_packets_ci95")


class Status(StrEnum):
    """The round trips of an endpoint by its latencies."""

    LINE = "line"
    NOT_A_LINE = "not a line"
    NO_NUMBER = "none"
    """No line was sought."""


@dataclass(frozen=True)
class Points:
    """The ok requests that an estimate rests on, one array entry each, shape (n,).

    `rtt_ms` is the RTT measured during the request's RTT step, `step` the step's number, `chain`
    the round trips of the request's critical path (NaN: not known).
    """

    rtt_ms: Values
    latency_ms: Values
    step: Indexes
    chain: Values


@dataclass(frozen=True)
class RoundTrips(OfGroup):
    """One endpoint of one version of one system, at one placement.

    `n` requests were measured in RTT steps that count, `failed` of them were not ok. `why` is, in
    a sentence why there is no number, and is None where there is one; `estimate` is None where no
    line was sought. `chain_round_trips` is the critical path that most requests have, over
    `n_chains` requests; None where `why_no_chain`. It needs no line, so it may be known where the
    slope is not. `agrees` is None where one of the two answers is missing; where it is False,
    `disagreement` names it. `wan_bytes` and `wan_packets` are the mean of one request.
    `least_round_trips` is what no store that keeps its promise can beat for this placement,
    `least_why` why, or why it is not known. `decides` is what the system's definition has that
    decides between modes, None where it has nothing.
    """

    group: Group
    topology: str
    n: int
    failed: int
    estimate: Estimate | None
    why: str | None
    chain_round_trips: float | None
    chains: tuple[Share, ...]
    n_chains: int
    why_no_chain: str | None
    agrees: bool | None
    disagreement: str | None
    wan_bytes: float | None
    wan_packets: float | None
    wan_bytes_ci95: Interval | None
    wan_packets_ci95: Interval | None
    least_round_trips: float | None
    least_why: str | None
    decides: str | None
    points: Points = field(compare=False, repr=False)

    @property
    def status(self) -> Status:
        """The answer of the latencies."""
        if self.why is None:
            return Status.LINE
        return Status.NO_NUMBER if self.estimate is None else Status.NOT_A_LINE

    @property
    def given(self) -> Estimate | None:
        """The estimate with a number that may be printed; None where there is no number."""
        return self.estimate if self.why is None else None

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, the greatest share first; none where there is no number."""
        return self.given.modes if self.given else ()

    @property
    def late(self) -> int:
        """How many succeeded and are in no estimate: the network was late for them."""
        return self.n - self.failed - int(self.points.step.size)

    @property
    def round_trips(self) -> float | None:
        """Slope of the main mode."""
        return self.modes[0].round_trips if self.modes else None

    @property
    def ci95(self) -> Interval | None:
        """95 % interval of `round_trips`."""
        return self.modes[0].ci95 if self.modes else None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json's "round_trips"; figures to six places, more than they hold."""
        given, estimate = self.given, self.estimate
        main = self.modes[0] if self.modes else None
        entry = self.group.row | {
            "intercept_ms": main and main.intercept_ms,
            "modes": [asdict(mode) for mode in self.modes],
            "integer": given and given.integer,
            "intercept_ci95_ms": main and main.intercept_ci95_ms,
            "mean_round_trips": given and given.mean_round_trips,
            "mean_ci95": given and given.mean_ci95,
            "unexplained": estimate and estimate.unexplained,
            "fit": estimate and {"verdict": self.status, "why": estimate.why},
            "chains": [chain._asdict() for chain in self.chains],
            "chains_n": self.n_chains,
        }
        # In the order of docs/reference/bundle.md.
        return {key: as_json(entry.get(key, getattr(self, key, None)), 6) for key in _KEYS}


def named(round_trips_and_shares: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The round trips that requests usually make: those to name, with their shares.

    The given ones are modes, or critical paths, the greatest share first. Such of one length (less
    than half a round trip apart) are one: the greatest and what only waits longer.
    """
    lengths: list[tuple[float, float]] = []
    for trips, share in round_trips_and_shares:
        near = [n for n, (known, _) in enumerate(lengths) if abs(known - trips) < ONE_MESSAGE]
        if near:
            known, shares = lengths[near[0]]
            lengths[near[0]] = known, shares + share
        else:
            lengths.append((trips, share))
    return [one for n, one in enumerate(lengths) if n == 0 or one[1] >= NAMED_FROM]


def round_trips(bundle: Run) -> Figures | None:
    """The figures of every endpoint and placement, in the order of tables; arrays: RoundTrips.

    None where the study is not one of round trips. Besides the keys of summary.json a row has
    `status`, the `remarks` on the run, and what is `decided` between its modes.
    """
    if not bundle.has_rtt_steps:
        return None
    notes = remarks(bundle, rtt_steps(bundle))
    pairs = [
        (entry.to_json() | {"status": entry.status, "remarks": notes}, entry)
        for entry in round_trips_of(bundle)
    ]
    return figures_of((row | {"decided": decided([row])}, entry) for row, entry in pairs)


def round_trips_of(bundle: Run) -> tuple[RoundTrips, ...]:
    """Every endpoint and placement of `bundle`, in the order of tables and charts.

    Empty where its study is not one of round trips. Raises BundleError where rtt_steps.json or the
    packet record is damaged.
    """
    if not bundle.has_rtt_steps:
        return ()
    if "round_trips" not in bundle.derived:
        bundle.derived["round_trips"] = tuple(_round_trips_of(bundle))
    known: tuple[RoundTrips, ...] = bundle.derived["round_trips"]
    return known


def _round_trips_of(bundle: Run) -> list[RoundTrips]:
    steps, groups, least = rtt_steps(bundle), grouped(bundle.measured), stated(bundle, _LEAST)
    systems = {group.series.system for group in groups}
    decides = {
        (system.name, endpoint): what
        for system in bundle.manifest.systems
        for endpoint, what in system.decides.items()
    }
    evidence = {system: evidence_of(bundle, system) for system in systems}
    meaningless = {system: why_meaningless(bundle, steps, system) for system in systems}
    estimates = []
    for group in in_order(groups, bundle):
        system = group.series.system
        rows = rows_that_count(groups[group], steps, system)
        points = _points(rows, counting(steps, system), evidence[system])
        estimated, why = _estimate(points, meaningless[system], seed_of(bundle.seed, group))
        packets = evidence[system].groups.get(group)
        chains, cost = (packets.chains, packets.cost) if packets else ((), None)
        why_no_chain = (packets.why if packets else evidence[system].why) or _NO_CHAIN
        compared = Comparison(0, None)
        if estimated and estimated.modes:
            compared = compare(estimated.modes, estimated.members, points.chain)
        known = least.get(group)
        estimates.append(
            RoundTrips(
                group=group,
                topology=bundle.topology,
                n=len(rows),
                failed=int((rows["outcome"] != "ok").sum()),
                estimate=estimated,
                why=why,
                chain_round_trips=packets.chain_round_trips if packets else None,
                chains=chains,
                n_chains=packets.n if packets else 0,
                why_no_chain=None if chains else why_no_chain,
                agrees=compared.agrees,
                disagreement=compared.disagreement,
                **{name: getattr(cost, name, None) for name in _COST},
                least_round_trips=known.round_trips if known else None,
                least_why=(known.why or None) if known else None,
                decides=decides.get((system, group.endpoint)),
                points=points,
            )
        )
    return estimates


def stated(bundle: Run, key: str) -> dict[Group, Promised]:
    """What the manifest knows of round trips beforehand, by what it is of.

    `least_round_trips`: what no store can beat (`round_trips`, None: not known) and `why`;
    `promised_round_trips`: what a store's protocol takes.
    """
    return {
        Group(
            Series(system.name, system.version), entry.endpoint, entry.placement or UNKNOWN
        ): entry
        for system in bundle.manifest.systems
        for entry in getattr(system, key)
    }


def _points(rows: pd.DataFrame, rtt_ms: Mapping[int, float], evidence: PacketEvidence) -> Points:
    ok = timed(rows)
    step = ok["rtt_step"].to_numpy(dtype=np.int_)
    chain = np.full(len(ok), np.nan)
    if evidence.trips is not None:
        chain = np.asarray(evidence.trips.reindex(ok.index), dtype=np.float64)
    rtts = np.array([rtt_ms[number] for number in step.tolist()], dtype=np.float64)
    return Points(rtts, ok_ms(ok), step, chain)


def _estimate(
    points: Points, meaningless: str | None, seed: Sequence[int]
) -> tuple[Estimate | None, str | None]:
    """The estimate of requests, and why it has no number that may be printed."""
    if meaningless is not None:
        return None, meaningless
    if not points.step.size:
        return None, "No request succeeded."
    if (rtts := levels_of(points.rtt_ms).count) < MIN_RTTS:
        return None, (
            f"Requests succeeded at {rtts} of the RTTs only; at least {MIN_RTTS} are needed "
            "for a line that could be wrong."
        )
    estimated = estimate(points.rtt_ms, points.latency_ms, points.step, seed)
    return estimated, None if estimated.why is None else f"Not a line: {estimated.why}"


DISAGREES = "≠"
"""Stands behind a critical path that disagrees with the slope beside it."""
_BELOW_LEAST_BY = 0.1
_NAMED_AT_MOST = 6
_LEAST_SHARE, _WHOLE_WITHIN = 0.05, 0.25
"""So many requests make a number of round trips one to name; so near to it a mode's slope is."""
NOT_KNOWN = "not known"


def percents(shares: Sequence[float]) -> list[int]:
    """Shares, and last what is missing to the whole, as whole percents that add up to 100."""
    exact = [100 * share for share in (*shares, max(0.0, 1 - sum(shares)))]
    down = [int(share) for share in exact]
    most_cut = sorted(range(len(exact)), key=lambda n: round(down[n] - exact[n], 3))
    for n in most_cut[: 100 - sum(down)]:
        down[n] += 1
    return down


def or_else(trips: Sequence[tuple[float, float]], places: int | None = None) -> str:
    """What requests usually make, the most frequent first: "3 or 2"; exact without `places`."""
    written = [
        f"{n:g}" if places is None else f"{round(n, places) + 0.0:.{places}f}" for n, _ in trips
    ]
    return " or ".join(dict.fromkeys(written))


def usual(row: Row, key: str) -> list[tuple[float, float]]:
    """Round trips that requests usually make, and their shares: by `modes`, or by `chains`."""
    return named([(mode["round_trips"], mode["share"]) for mode in row[key]])


def ways(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The whole numbers of round trips that requests take, ascending; a row for each cluster.

    A mode counts for the whole number that its slope is near. Of each number that a twentieth of
    the requests take: `round_trips`, the slope, mean of the clusters that have it, and `share`,
    mean of all clusters in which a line was sought; with Student's intervals over clusters, of one
    cluster those of its requests, which a share has not.
    """
    sought = [row["modes"] for row in rows if row["status"] is not Status.NO_NUMBER]
    pooled = []
    for number in sorted({round(mode["round_trips"]) for modes in sought for mode in modes}):
        near = [
            [mode for mode in modes if abs(mode["round_trips"] - number) < _WHOLE_WITHIN]
            for modes in sought
        ]
        shares = np.array([sum(mode["share"] for mode in modes) for modes in near])
        if shares.mean() < _LEAST_SHARE:
            continue
        main = [modes[0] for modes in near if modes]
        slopes = np.array([mode["round_trips"] for mode in main])
        low, high = of_mean(shares) if shares.size > 1 else (np.nan, np.nan)
        pooled.append(
            {
                "round_trips": float(slopes.mean()),
                "round_trips_ci95": of_mean(slopes) if slopes.size > 1 else main[0]["ci95"],
                "share": float(shares.mean()),
                "share_ci95": (max(low, 0.0), min(high, 1.0)) if shares.size > 1 else None,
            }
        )
    return pooled


def ways_cell(modes: Sequence[Mapping[str, Any]]) -> str:
    """Each of `ways` with its share and the rest: "2: 47 % [44, 50], 3: 51 % [48, 54], 2 % other".

    Where there is one that at least half of the requests take, its slope. A rest of less than a
    twentieth is not mentioned.
    """
    *shares, rest = percents([way["share"] for way in modes])
    other = [f"{rest} % other"] if rest >= 100 * _LEAST_SHARE else []
    if is_one(modes):
        slope, interval = modes[0]["round_trips"], modes[0]["round_trips_ci95"]
        return ", ".join([f"{format_trips(slope)} {format_trips_interval(interval)}", *other])
    parts = []
    for number, way in zip(shares, modes, strict=True):
        ends = ", ".join(f"{100 * end:.0f}" for end in way["share_ci95"] or ())
        interval = f" [{ends}]" if ends else ""
        parts.append(f"{round(way['round_trips'])}: {number} %{interval}")
    return ", ".join([*parts, *other])


def is_one(modes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether `ways` are one number of round trips, which at least half of the requests take."""
    return len(modes) == 1 and modes[0]["share"] >= 1 / 2


def decided(rows: Sequence[Row]) -> str | None:
    """What decides how many round trips a request takes; None where there is but one number."""
    modes = ways(rows)
    return None if not modes or is_one(modes) else rows[0]["decides"] or NOT_KNOWN


def slope_cell(row: Row) -> str:
    """The slope with its interval, and what else many requests make.

    Where no line explains the latencies, the answer of the packets, and of how many requests.
    """
    if row["status"] is Status.LINE:
        low, high = (format_trips(bound) for bound in row["ci95"])
        (slope, _), *others = usual(row, "modes")
        also = f" or {or_else(others, 2)}" if others else ""
        return f"{format_trips(slope)} [{low}, {high}]{also}"
    if not row["chains"]:
        return str(row["status"])
    path = usual(row, "chains")
    return f"{or_else(path)} by packets ({100 * sum(share for _, share in path):.0f} %)"


def path_cell(row: Row) -> str | None:
    """The critical path that most requests have, and others that many have."""
    mark = f" {DISAGREES}" if row["agrees"] is False else ""
    return or_else(usual(row, "chains")) + mark if row["chains"] else None


def modes_cell(row: Row) -> str:
    """Share and slope of each mode, and the share of what no mode explains; together 100 %."""
    modes = row["modes"]
    if not modes:
        return str(Status.NOT_A_LINE) if row["status"] is Status.NOT_A_LINE else EN_DASH
    *shares, rest = percents([mode["share"] for mode in modes])
    if len(modes) == 1 and not rest:
        return "one"
    texts = [f"{n} %: {format_trips(m['round_trips'])}" for n, m in zip(shares, modes, strict=True)]
    return ", ".join([*texts, *([f"{rest} % unexplained"] if rest else [])])


def cost_cell(key: str, places: int) -> Column:
    """WAN bytes or packets of one request; of a cost that may be nothing, as background is
    subtracted, only what it is at most."""

    def cell(row: Row) -> str | None:
        value, interval = row[key], row[f"{key}_ci95"]
        if value is not None and interval is not None and interval[0] <= 0 <= interval[1]:
            return f"≤ {interval[1]:,.{places}f}"
        return None if value is None else f"{value:,.{places}f}"

    return Column(key.replace("wan_", "WAN "), cell)


def is_below_least(row: Row) -> bool:
    """Whether the whole interval lies below the lower bound."""
    if row["ci95"] is None or row["least_round_trips"] is None:
        return False
    return bool(row["ci95"][1] < row["least_round_trips"] - _BELOW_LEAST_BY)


def reasons(key: str, what: str) -> Note:
    """Why rows lack something: each reason once, and the rows it holds for."""

    def sentence(rows: Sequence[Row], titles: Titles) -> str:
        labels = series_labels(list(dict.fromkeys(map(series_of, rows))), titles)
        by_reason: dict[str, list[str]] = {}
        for row in rows:
            name = with_placement(f"{labels[series_of(row)]} {row['endpoint']}", row["placement"])
            names = by_reason.setdefault(str(row[key]).rstrip("."), [])
            names += [name] if name not in names else []
        parts = []
        for reason, names in by_reason.items():
            few = len(names) <= _NAMED_AT_MOST
            parts.append(f"{reason} ({'; '.join(names) if few else count(len(names), 'row')})")
        return f"{what} {'. '.join(parts)}."

    return Note(sentence, lambda row: row[key] is not None)


def _remarks(rows: Sequence[Row], _titles: Titles) -> str | None:
    return " ".join(dict.fromkeys(remark for row in rows for remark in row["remarks"])) or None


NO_SLOPE = reasons("why", "No slope.")
DECIDED = reasons("decided", "What decides how many round trips a request takes:")
DISAGREEMENT = Note(
    f"The two answers disagree, marked {DISAGREES}: {{rows}}.",
    lambda row: row["agrees"] is False,
    detail=": {disagreement}",
)

ROUND_TRIPS = Section(
    key="round_trips",
    title="Round trips",
    flat=True,
    figures=round_trips,
    columns=(
        ENDPOINT,
        Column("round trips [95 %]", slope_cell),
        Column("critical path", path_cell),
        Column("lower bound", "{least_round_trips:g}"),
        Column("intercept ms", lambda row: format_ms(row["intercept_ms"])),
        Column("modes", modes_cell, words=True),
        cost_cell("wan_bytes", 0),
        cost_cell("wan_packets", 1),
        Column("n", lambda row: str(rests_on(row))),
    ),
    definitions=DEFINITIONS,
    notes=(
        NO_SLOPE,
        DECIDED,
        DISAGREEMENT,
        Note(
            "Fewer round trips than a store can make that keeps the promise assumed for its "
            "placement: {rows}. Either it does not keep it, or the lower bound is not what was "
            "assumed.",
            is_below_least,
            detail=" ({round_trips:.2f} against {least_round_trips:g})",
        ),
        reasons("why_no_chain", "No critical path."),
        Note(_remarks),
        Note(
            "{total} requests unexplained, in no mode and no slope: {rows}.",
            lambda row: row["why"] is None and bool(row["unexplained"]),
            detail=" {unexplained} of {n}",
            total="unexplained",
        ),
        Note(
            "Requests that were not ok are in no figure: {rows}.",
            lambda row: bool(row["failed"]),
            detail=" {failed} of {n}",
        ),
        PLACED,
    ),
    charts="wanlat.analysis.charts.round_trips:charts_of",
    is_trouble=lambda row: bool(row["failed"] or row["why"]),
    group=lambda row: row_of(row["endpoint"]),
    hidden=frozenset({"status", "remarks", "decided"}),
)
