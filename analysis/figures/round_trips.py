"""How many round trips does a request make? Both answers, what they cost, and why none is given.

Two ways that share nothing but the requests: the slope of latency against RTT
(`wanlat.analysis.stats.round_trips`), and the critical path in the packet record
(`wanlat.analysis.packets`). They stand side by side; where they disagree, that is said. In keys,
the critical path is `chain`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.figures.agreement import Comparison, compare
from wanlat.analysis.figures.latency import endpoint_summary
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.figures.rtt_steps import (
    counting,
    remarks,
    rows_that_count,
    rtt_steps,
    why_meaningless,
)
from wanlat.analysis.groups import Group, OfGroup, grouped, in_order, ok_ms, seed_of
from wanlat.analysis.packets.evidence import PacketEvidence, Share, evidence_of
from wanlat.analysis.placement import UNKNOWN
from wanlat.analysis.stats.intervals import Interval
from wanlat.analysis.stats.modes import BESIDE, MIN_RTTS
from wanlat.analysis.stats.round_trips import Estimate, Mode, estimate
from wanlat.analysis.stats.slopes import Indexes, Values

if TYPE_CHECKING:
    import pandas as pd

NAMED_FROM = 0.2
"""So great a share of the requests is named beside the greatest: where half of them make twice as
many round trips, or 113 of 225 two and 112 three, one number would hide it."""
_NO_CHAIN = "The packet record says nothing of these requests."

DEFINITIONS = {
    "round_trips": "slope of latency against measured RTT, of the mode with the greatest share",
    "ci95": "95 % interval of round_trips, bootstrap, seeded",
    "intercept_ms": "the same mode at RTT 0: the store's own time",
    "chain_round_trips": "half the messages of the critical path over WAN links, as most requests "
    "have it; independent of round_trips",
    "agrees": "whether critical paths lie in their mode's interval, widened by 0.1, request by "
    "request",
    "least_round_trips": "what no store with this promise and these places of replicas can beat",
}


class Status(StrEnum):
    """What the latencies of an endpoint say of its round trips."""

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

    `n` requests were measured in RTT steps that count, `failed` of them were not ok. `why` says in
    a sentence why there is no number (then `round_trips`, `ci95`, `intercept_ms` and `integer` are
    None and `modes` is empty), and is None where there is one. `estimate` may be there
    nevertheless: where latencies follow no line, it says what came closest.

    `chain_round_trips` is the critical path that most requests have, over `n_chains` requests; None
    where `why_no_chain`. It needs no line, so it may be known where the slope is not. `agrees` is
    None where one of the two answers is missing; where it is False, `disagreement` says in what.
    `wan_bytes` and `wan_packets` are the mean of one request. `least_round_trips` is what no store
    that keeps its promise can beat for this placement, `least_why` why, or why it is not known.
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
    points: Points = field(compare=False, repr=False)

    @property
    def status(self) -> Status:
        """What the latencies say."""
        if self.why is None:
            return Status.LINE
        return Status.NO_NUMBER if self.estimate is None else Status.NOT_A_LINE

    @property
    def given(self) -> Estimate | None:
        """The estimate whose number may be printed; None where there is no number."""
        return self.estimate if self.why is None else None

    @property
    def round_trips(self) -> float | None:
        """Slope of the main mode."""
        return self.given.round_trips if self.given else None

    @property
    def ci95(self) -> Interval | None:
        """95 % interval of `round_trips`."""
        return self.given.ci95 if self.given else None

    @property
    def integer(self) -> int | None:
        """The one whole number within `ci95`."""
        return self.given.integer if self.given else None

    @property
    def intercept_ms(self) -> float | None:
        """The store's own time: what the main mode takes at RTT 0."""
        return self.given.intercept_ms if self.given else None

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes, the greatest share first; none where there is no number."""
        return self.given.modes if self.given else ()

    @property
    def unexplained(self) -> int | None:
        """Requests on no line; None where no line was sought."""
        return self.estimate.unexplained if self.estimate else None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json's "round_trips"; figures to six places, more than they hold."""
        given, fit = self.given, self.estimate.fit if self.estimate else None
        entry = {
            "system": self.series.system,
            "version": self.series.version,
            "topology": self.topology,
            "endpoint": self.endpoint,
            "placement": self.placement,
            "round_trips": self.round_trips,
            "ci95": self.ci95,
            "intercept_ms": self.intercept_ms,
            "modes": [asdict(mode) for mode in self.modes],
            "chain_round_trips": self.chain_round_trips,
            "wan_bytes": self.wan_bytes,
            "wan_packets": self.wan_packets,
            "n": self.n,
            "failed": self.failed,
            "integer": self.integer,
            "intercept_ci95_ms": given.intercept_ci95_ms if given else None,
            "mean_round_trips": given.mean_round_trips if given else None,
            "mean_ci95": given.mean_ci95 if given else None,
            "unexplained": self.unexplained,
            "fit": fit
            and {
                "verdict": Status.LINE if fit.is_line else Status.NOT_A_LINE,
                "why": fit.why,
                "worst_rtt_ms": fit.worst_rtt_ms,
                "deviation_ms": fit.deviation_ms,
            },
            "chains": [chain._asdict() for chain in self.chains],
            "chains_n": self.n_chains,
            "agrees": self.agrees,
            "disagreement": self.disagreement,
            "least_round_trips": self.least_round_trips,
            "least_why": self.least_why,
            "wan_bytes_ci95": self.wan_bytes_ci95,
            "wan_packets_ci95": self.wan_packets_ci95,
            "why": self.why,
            "why_no_chain": self.why_no_chain,
        }
        return {key: _rounded(value) for key, value in entry.items()}


def named(round_trips_and_shares: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The round trips that requests usually make: those to name, with their shares.

    The given ones are modes, or critical paths, the greatest share first. Such of one length (less
    than half a round trip apart) are one: the greatest and what only waits longer.
    """
    lengths: list[tuple[float, float]] = []
    for trips, share in round_trips_and_shares:
        near = [n for n, (known, _) in enumerate(lengths) if abs(known - trips) < BESIDE]
        if near:
            known, shares = lengths[near[0]]
            lengths[near[0]] = known, shares + share
        else:
            lengths.append((trips, share))
    return [one for n, one in enumerate(lengths) if n == 0 or one[1] >= NAMED_FROM]


def round_trips(bundle: Bundle) -> Figures | None:
    """The figures of every endpoint and placement, in the order of tables; arrays: RoundTrips.

    None where the study is not one of round trips. Besides the keys of summary.json a row has
    `status`, and the `remarks` on the run.
    """
    if not bundle.has_rtt_steps:
        return None
    said = remarks(bundle, rtt_steps(bundle))
    return figures_of(
        (entry.to_json() | {"status": entry.status, "remarks": said}, entry)
        for entry in round_trips_of(bundle)
    )


def round_trips_of(bundle: Bundle) -> tuple[RoundTrips, ...]:
    """Every endpoint and placement of `bundle`, in the order of tables and charts.

    Empty where its study is not one of round trips. Raises BundleError where rtt_steps.json or the
    packet record is damaged.
    """
    if not bundle.has_rtt_steps:
        return ()
    steps, groups, least = rtt_steps(bundle), grouped(bundle.measured), least_of(bundle)
    systems = sorted({group.series.system for group in groups})
    evidence = {system: evidence_of(bundle, system) for system in systems}
    meaningless = {system: why_meaningless(bundle, steps, system) for system in systems}
    requested = {(step.system, step.rtt_step): step.requested_rtt_ms for step in steps}
    found = []
    for group in in_order(groups, bundle):
        system = group.series.system
        rows = rows_that_count(groups[group], steps, system)
        points = _points(rows, counting(steps, system), evidence[system])
        rtts_ms = {requested[system, int(number)] for number in np.unique(points.step)}
        seed = seed_of(bundle.seed, group)
        estimated, why = _estimate(points, len(rtts_ms), meaningless[system], seed)
        known = least.get(group, (None, None))
        answers = (points, estimated, why)
        found.append(_joined(bundle, group, len(rows), answers, evidence[system], known))
    return tuple(found)


def by_rtt(bundle: Bundle) -> Figures | None:
    """The usual figures of latency at each RTT alone, never of all mixed; arrays: EndpointSummary.

    `rtt_ms` was requested; `measured_rtt_ms` is the median over its RTT steps that count. None
    where the study is not one of round trips.
    """
    return figures_of(_by_rtt(bundle)) if bundle.has_rtt_steps else None


def _by_rtt(bundle: Bundle) -> Iterator[tuple[Row, Any]]:
    steps, groups = rtt_steps(bundle), grouped(bundle.measured)
    for group in in_order(groups, bundle):
        measured_ms = counting(steps, group.series.system)
        rows = rows_that_count(groups[group], steps, group.series.system)
        alike: dict[float, list[int]] = {}
        for step in steps:
            if step.system == group.series.system and step.rtt_step in measured_ms:
                alike.setdefault(step.requested_rtt_ms, []).append(step.rtt_step)
        for requested_ms in sorted(alike):
            mine = rows[rows["rtt_step"].isin(alike[requested_ms])]
            if mine.empty:
                continue
            figures = endpoint_summary(mine, group, bundle.topology, bundle.seed)
            rtt_ms = median(measured_ms[number] for number in alike[requested_ms])
            at = {"rtt_ms": requested_ms, "measured_rtt_ms": round(rtt_ms, 6)}
            yield at | figures.to_json(), figures


def least_of(bundle: Bundle) -> dict[Group, tuple[float | None, str | None]]:
    """What the manifest says that no store can beat: round trips, None where unknown, and why."""
    return {
        group: (entry.get("round_trips"), entry.get("why") or None)
        for group, entry in _stated(bundle, "least_round_trips")
    }


def promised_of(bundle: Bundle) -> dict[Group, float]:
    """The round trips that a store's protocol takes, where the manifest of `bundle` knows them."""
    entries = _stated(bundle, "promised_round_trips")
    return {group: float(entry["round_trips"]) for group, entry in entries}


def _stated(bundle: Bundle, key: str) -> Iterator[tuple[Group, Mapping[str, Any]]]:
    """Every entry of the list `key` of every system in the manifest, and what it is of."""
    for system in bundle.manifest.get("systems") or ():
        series = Series(str(system["name"]), str(system["version"]))
        for entry in system.get(key) or ():
            yield Group(series, entry["endpoint"], entry.get("placement") or UNKNOWN), entry


def _points(rows: pd.DataFrame, rtt_ms: Mapping[int, float], evidence: PacketEvidence) -> Points:
    ok = rows[rows["outcome"] == "ok"]
    step = ok["rtt_step"].to_numpy(dtype=np.int_)
    chain = np.full(len(ok), np.nan)
    if evidence.trips is not None:
        chain = np.asarray(evidence.trips.reindex(ok.index), dtype=np.float64)
    rtts = np.array([rtt_ms[number] for number in step.tolist()], dtype=np.float64)
    return Points(rtts, ok_ms(ok), step, chain)


def _estimate(
    points: Points, rtts: int, meaningless: str | None, seed: Sequence[int]
) -> tuple[Estimate | None, str | None]:
    """The estimate of requests at so many `rtts`, and why it has no number that may be printed."""
    if meaningless is not None:
        return None, meaningless
    if not points.step.size:
        return None, "No request succeeded."
    if rtts < MIN_RTTS:
        return None, (
            f"Requests succeeded at {rtts} of the RTTs only; at least {MIN_RTTS} are needed "
            "for a line that could be wrong."
        )
    estimated = estimate(points.rtt_ms, points.latency_ms, points.step, seed)
    return estimated, None if estimated.fit.is_line else f"Not a line: {estimated.fit.why}"


def _joined(
    bundle: Bundle,
    group: Group,
    n: int,
    answers: tuple[Points, Estimate | None, str | None],
    evidence: PacketEvidence,
    least: tuple[float | None, str | None],
) -> RoundTrips:
    points, estimated, why = answers
    packets = evidence.groups.get(group)
    chains = packets.chains if packets else ()
    cost = packets.cost if packets else None
    compared = Comparison(0, None)
    if estimated is not None and why is None:
        compared = compare(estimated.modes, estimated.members, points.chain)
    return RoundTrips(
        group=group,
        topology=bundle.topology,
        n=n,
        failed=n - points.step.size,
        estimate=estimated,
        why=why,
        chain_round_trips=packets.chain_round_trips if packets else None,
        chains=chains,
        n_chains=packets.n if packets else 0,
        why_no_chain=None if chains else (packets.why if packets else evidence.why) or _NO_CHAIN,
        agrees=compared.agrees,
        disagreement=compared.disagreement,
        wan_bytes=cost.wan_bytes if cost else None,
        wan_packets=cost.wan_packets if cost else None,
        wan_bytes_ci95=cost.wan_bytes_ci95 if cost else None,
        wan_packets_ci95=cost.wan_packets_ci95 if cost else None,
        least_round_trips=least[0],
        least_why=least[1],
        points=points,
    )


def _rounded(value: Any) -> Any:
    """Numbers to six places, None for what is none."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value
