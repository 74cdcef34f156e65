"""What is known of an endpoint's round trips: both answers, what they cost, and why none is given.

Two ways that share nothing but the requests: the slope of latency against RTT
(`wanlat.analysis.round_trips`), and the longest chain of messages in the packet record
(`wanlat.analysis.packets`). They stand side by side; where they disagree, that is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis.agreement import Comparison, compare
from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.least import NOTHING_SAID, Least, least_of
from wanlat.analysis.summary import Group, grouped, in_order, seed_of
from wanlat.analysis.visits import MIN_RTTS, Visit, Visits, read_visits, why_meaningless

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from wanlat.analysis.packets.model import PacketEvidence, Share
    from wanlat.analysis.round_trips import Estimate, Interval, Mode

    Values = NDArray[np.float64]

_NS_PER_MS = 1e6
_NO_CHAIN = "The packet record says nothing of these requests."


@dataclass(frozen=True)
class Points:
    """The ok requests that an estimate rests on, one array entry each, shape (n,).

    `rtt_ms` is the RTT measured during the request's visit, `visit` the visit's number, `chain`
    the round trips of the request's longest chain (NaN: not known).
    """

    rtt_ms: Values
    latency_ms: Values
    visit: NDArray[np.int_]
    chain: Values

    @property
    def rtts_ms(self) -> tuple[float, ...]:
        """The different measured RTTs, the smallest first."""
        return tuple(sorted({float(rtt_ms) for rtt_ms in self.rtt_ms}))


@dataclass(frozen=True)
class RoundTrips:
    """One endpoint of one version of one system, at one placement.

    `n` requests were measured in visits that count, `failed` of them were not ok. `why` says in a
    sentence why there is no number (then `round_trips`, `ci95`, `intercept_ms` and `integer` are
    None and `modes` is empty), and is None where there is one. `estimate` may be there
    nevertheless: where latencies follow no line, it says what came closest.

    `chain_round_trips` is the chain that most requests have, over `n_chains` requests; None where
    `why_no_chain`. It needs no line, so it may be known where the slope is not. `agrees` is None
    where one of the two answers is missing; where it is False, `disagreement` says in what.
    `wan_bytes` and `wan_packets` are the mean of one request. `least_round_trips` is what no store
    that keeps its promise can beat for this placement, `least_why` why, or why it is not known.
    """

    series: Series
    topology: str
    endpoint: str
    placement: str
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
    def group(self) -> Group:
        """What the figures are of."""
        return Group(self.series, self.endpoint, self.placement)

    @property
    def ok(self) -> int:
        """Requests that the figures rest on."""
        return self.n - self.failed

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
        """The entry of summary.json's "round_trips": the issue's keys first, in its order."""
        given, fit = self.given, self.estimate.fit if self.estimate else None
        return {
            "system": self.series.system,
            "version": self.series.version,
            "topology": self.topology,
            "endpoint": self.endpoint,
            "placement": self.placement,
            "round_trips": _rounded(self.round_trips),
            "ci95": _interval(self.ci95),
            "intercept_ms": _rounded(self.intercept_ms),
            "modes": [_mode(mode) for mode in self.modes],
            "chain_round_trips": _rounded(self.chain_round_trips),
            "wan_bytes": _rounded(self.wan_bytes),
            "wan_packets": _rounded(self.wan_packets),
            "n": self.n,
            "failed": self.failed,
            "integer": self.integer,
            "intercept_ci95_ms": _interval(given.intercept_ci95_ms if given else None),
            "mean_round_trips": _rounded(given.mean_round_trips if given else None),
            "mean_ci95": _interval(given.mean_ci95 if given else None),
            "unexplained": self.unexplained,
            "fit": None
            if fit is None
            else {
                "verdict": "line" if fit.is_line else "not a line",
                "why": fit.why,
                "worst_rtt_ms": _rounded(fit.worst_rtt_ms),
                "deviation_ms": _rounded(fit.deviation_ms),
            },
            "chains": [
                {"round_trips": _rounded(chain.round_trips), "share": _rounded(chain.share)}
                for chain in self.chains
            ],
            "chains_n": self.n_chains,
            "agrees": self.agrees,
            "disagreement": self.disagreement,
            "least_round_trips": _rounded(self.least_round_trips),
            "least_why": self.least_why,
            "wan_bytes_ci95": _interval(self.wan_bytes_ci95),
            "wan_packets_ci95": _interval(self.wan_packets_ci95),
            "why": self.why,
            "why_no_chain": self.why_no_chain,
        }


def round_trips_of(bundle: Bundle) -> tuple[RoundTrips, ...]:
    """Every endpoint and placement of `bundle`, in the order of tables and charts.

    Empty where its study is not one of round trips. Raises BundleError where visits.json or the
    packet record is damaged.
    """
    from wanlat.analysis.packets.evidence import evidence_of

    visits = read_visits(bundle)
    if visits is None:
        return ()
    groups = grouped(bundle.measured)
    systems = sorted({group.series.system for group in groups})
    evidence = {system: evidence_of(bundle, system) for system in systems}
    least = least_of(bundle)
    meaningless = {system: why_meaningless(bundle, visits, system) for system in systems}
    return tuple(
        _joined(
            bundle,
            group,
            rows_that_count(groups[group], visits, group.series.system),
            {visit.number: visit for visit in visits.counting(group.series.system)},
            meaningless[group.series.system],
            evidence[group.series.system],
            least.get(group, NOTHING_SAID),
        )
        for group in in_order(groups, bundle)
    )


def rows_that_count(rows: pd.DataFrame, visits: Visits, system: str) -> pd.DataFrame:
    """The measured `rows` of one system that were taken in a visit that counts."""
    counting = [visit.number for visit in visits.counting(system)]
    return rows[rows["rtt_step"].isin(counting).fillna(False).to_numpy(dtype=bool)]


def _joined(
    bundle: Bundle,
    group: Group,
    rows: pd.DataFrame,
    visits: Mapping[int, Visit],
    meaningless: str | None,
    evidence: PacketEvidence,
    least: Least,
) -> RoundTrips:
    ok = rows[rows["outcome"] == "ok"]
    points = _points(ok, visits, evidence)
    estimated, why = _estimate(points, visits, meaningless, seed_of(bundle.seed, group))
    packets = evidence.groups.get(group)
    chains = packets.chains if packets else ()
    cost = packets.cost if packets else None
    compared = (
        compare(estimated.modes, estimated.members, points.chain)
        if estimated is not None and why is None
        else Comparison(0, None)
    )
    return RoundTrips(
        series=group.series,
        topology=bundle.topology,
        endpoint=group.endpoint,
        placement=group.placement,
        n=len(rows),
        failed=len(rows) - len(ok),
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
        least_round_trips=least.round_trips,
        least_why=least.why,
        points=points,
    )


def _points(ok: pd.DataFrame, visits: Mapping[int, Visit], evidence: PacketEvidence) -> Points:
    import numpy as np

    visit = ok["rtt_step"].to_numpy(dtype=np.int_)
    return Points(
        rtt_ms=np.array([visits[int(number)].measured_rtt_ms for number in visit], np.float64),
        latency_ms=ok["total_ns"].to_numpy(dtype=np.float64) / _NS_PER_MS,
        visit=visit,
        chain=_chain_of(ok, evidence),
    )


def _estimate(
    points: Points, visits: Mapping[int, Visit], meaningless: str | None, seed: Sequence[int]
) -> tuple[Estimate | None, str | None]:
    """The estimate, and why it has no number that may be printed."""
    from wanlat.analysis.round_trips import estimate

    if meaningless is not None:
        return None, meaningless
    if points.rtt_ms.size == 0:
        return None, "No request succeeded."
    rtts = len({visits[int(number)].requested_rtt_ms for number in points.visit})
    if rtts < MIN_RTTS:
        return None, (
            f"Requests succeeded at {rtts} of the RTTs only; at least {MIN_RTTS} are needed "
            "for a line that could be wrong."
        )
    estimated = estimate(points.rtt_ms, points.latency_ms, points.visit, seed)
    return estimated, None if estimated.fit.is_line else f"Not a line: {estimated.fit.why}"


def _chain_of(ok: pd.DataFrame, evidence: PacketEvidence) -> Values:
    import numpy as np

    if evidence.trips is None:
        return np.full(len(ok), np.nan, dtype=np.float64)
    return np.asarray(evidence.trips.reindex(ok.index), dtype=np.float64)


def _mode(mode: Mode) -> dict[str, Any]:
    return {
        "share": _rounded(mode.share),
        "round_trips": _rounded(mode.round_trips),
        "share_ci95": _interval(mode.share_ci95),
        "ci95": _interval(mode.ci95),
        "intercept_ms": _rounded(mode.intercept_ms),
        "intercept_ci95_ms": _interval(mode.intercept_ci95_ms),
        "n": mode.n,
    }


def _rounded(value: float | None) -> float | None:
    """`value` to six places, which is more than any of them holds; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, 6)


def _interval(interval: Interval | None) -> list[float | None] | None:
    return [_rounded(bound) for bound in interval] if interval else None
