"""How many round trips does a request make? Both answers, what they cost, and why none is given.

Two ways that share nothing but the requests: the slope of latency against RTT
(`wanlat.analysis.stats.round_trips`), and the critical path in the packet record
(`wanlat.analysis.packets`). They stand side by side; where they disagree, that is said. In keys,
the critical path is `chain`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.figures.agreement import Comparison, compare
from wanlat.analysis.figures.result import Figures, figures_of
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
from wanlat.analysis.stats.modes import MIN_RTTS
from wanlat.analysis.stats.round_trips import Estimate, Mode, estimate
from wanlat.analysis.stats.slopes import Indexes, Values, levels_of

if TYPE_CHECKING:
    import pandas as pd

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
}


_KEYS = (
    *("system", "version", "topology", "endpoint", "placement", "round_trips", "ci95"),
    *("intercept_ms", "modes", "chain_round_trips", "wan_bytes", "wan_packets", "n", "failed"),
    *("integer", "intercept_ci95_ms", "mean_round_trips", "mean_ci95", "unexplained", "fit"),
    *("chains", "chains_n", "agrees", "disagreement", "least_round_trips", "least_why"),
    *("wan_bytes_ci95", "wan_packets_ci95", "why", "why_no_chain"),
)


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
    a sentence why there is no number, and is None where there is one; `estimate` is None where no
    line was sought. `chain_round_trips` is the critical path that most requests have, over
    `n_chains` requests; None where `why_no_chain`. It needs no line, so it may be known where the
    slope is not. `agrees` is None where one of the two answers is missing; where it is False,
    `disagreement` says in what. `wan_bytes` and `wan_packets` are the mean of one request.
    `least_round_trips` is what no store that keeps its promise can beat for this placement,
    `least_why` why, or why it is not known.
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
    def modes(self) -> tuple[Mode, ...]:
        """The modes, the greatest share first; none where there is no number."""
        return self.given.modes if self.given else ()

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
        given, found = self.given, self.estimate
        main = self.modes[0] if self.modes else None
        entry = dict(zip(("system", "version"), self.series, strict=True)) | {
            "intercept_ms": main and main.intercept_ms,
            "modes": [asdict(mode) for mode in self.modes],
            "integer": given and given.integer,
            "intercept_ci95_ms": main and main.intercept_ci95_ms,
            "mean_round_trips": given and given.mean_round_trips,
            "mean_ci95": given and given.mean_ci95,
            "unexplained": found and found.unexplained,
            "fit": found and {"verdict": self.status, "why": found.why},
            "chains": [chain._asdict() for chain in self.chains],
            "chains_n": self.n_chains,
        }
        # In the order of docs/bundle.md.
        return {key: _rounded(entry.get(key, getattr(self, key, None))) for key in _KEYS}


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
    if "round_trips" not in bundle.derived:
        bundle.derived["round_trips"] = tuple(_round_trips_of(bundle))
    known: tuple[RoundTrips, ...] = bundle.derived["round_trips"]
    return known


def _round_trips_of(bundle: Bundle) -> list[RoundTrips]:
    steps, groups, least = rtt_steps(bundle), grouped(bundle.measured), stated(bundle, _LEAST)
    systems = {group.series.system for group in groups}
    evidence = {system: evidence_of(bundle, system) for system in systems}
    meaningless = {system: why_meaningless(bundle, steps, system) for system in systems}
    found = []
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
        known = least.get(group, {})
        found.append(
            RoundTrips(
                group=group,
                topology=bundle.topology,
                n=len(rows),
                failed=len(rows) - points.step.size,
                estimate=estimated,
                why=why,
                chain_round_trips=packets.chain_round_trips if packets else None,
                chains=chains,
                n_chains=packets.n if packets else 0,
                why_no_chain=None if chains else why_no_chain,
                agrees=compared.agrees,
                disagreement=compared.disagreement,
                wan_bytes=cost.wan_bytes if cost else None,
                wan_packets=cost.wan_packets if cost else None,
                wan_bytes_ci95=cost.wan_bytes_ci95 if cost else None,
                wan_packets_ci95=cost.wan_packets_ci95 if cost else None,
                least_round_trips=known.get("round_trips"),
                least_why=known.get("why") or None,
                points=points,
            )
        )
    return found


def stated(bundle: Bundle, key: str) -> dict[Group, Mapping[str, Any]]:
    """What the manifest knows of round trips beforehand, by what it is of.

    `least_round_trips`: what no store can beat (`round_trips`, None: not known) and `why`;
    `promised_round_trips`: what a store's protocol takes.
    """
    return {
        Group(
            Series(str(system["name"]), str(system["version"])),
            entry["endpoint"],
            entry.get("placement") or UNKNOWN,
        ): entry
        for system in bundle.manifest.get("systems") or ()
        for entry in system.get(key) or ()
    }


def _points(rows: pd.DataFrame, rtt_ms: Mapping[int, float], evidence: PacketEvidence) -> Points:
    ok = rows[rows["outcome"] == "ok"]
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


def _rounded(value: Any) -> Any:
    """Numbers to six places, None for what is none."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value
