"""summary.json: every figure of a bundle, one entry an endpoint and placement of a system."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, NamedTuple

from wanlat.analysis import statistics
from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.endpoints import endpoint_order, row_of
from wanlat.analysis.names import series_order
from wanlat.analysis.placement import PLACEMENTS, is_known

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.blocks import Block
    from wanlat.analysis.by_rtt import AtRtt
    from wanlat.analysis.drill.model import Drill
    from wanlat.analysis.in_rtts import LatenciesInRtts
    from wanlat.analysis.round_trips_block import RoundTrips
    from wanlat.analysis.visits import Visits

_NS_PER_MS = 1e6
_FIGURES = ("mean_ms", "median_ms", "min_ms", "max_ms", "p95_ms", "p99_ms")
_INTERVALS = ("mean_ci95_ms", "median_ci95_ms")
_ROUND_TRIPS_DEFINITIONS = {
    "round_trips": "slope of latency against measured RTT, of the mode with the greatest share",
    "ci95": "95 % interval of round_trips, bootstrap, seeded",
    "intercept_ms": "the same mode at RTT 0: the store's own time",
    "chain_round_trips": "half the messages of the longest chain over WAN links, as most requests "
    "have it; independent of round_trips",
    "agrees": "whether chains lie in their mode's interval, widened by 0.1, request by request",
    "least_round_trips": "what no store with this promise and these places of replicas can beat",
}


class Group(NamedTuple):
    """What is counted together: requests to one endpoint of one series, alike in placement."""

    series: Series
    endpoint: str
    placement: str


@dataclass(frozen=True)
class EndpointSummary:
    """One endpoint of one version of one system, at one placement.

    `n` requests were measured: `ok` succeeded, `fail` were certainly not executed, of `unknown`
    nobody knows. `latency` is over the `ok` ones, None if there are none.
    """

    series: Series
    topology: str
    endpoint: str
    placement: str
    ok: int
    fail: int
    unknown: int
    latency: statistics.Latency | None
    first_byte_median_ms: float | None
    retransmits: int
    new_connections: int

    @property
    def group(self) -> Group:
        """What the figures are of."""
        return Group(self.series, self.endpoint, self.placement)

    @property
    def n(self) -> int:
        """Requests measured, whatever came of them."""
        return self.ok + self.fail + self.unknown

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json; milliseconds, rounded to the nanosecond."""
        figures = asdict(self.latency) if self.latency else {}
        return {
            "system": self.series.system,
            "version": self.series.version,
            "topology": self.topology,
            "endpoint": self.endpoint,
            "placement": self.placement,
            "n": self.n,
            "ok": self.ok,
            "fail": self.fail,
            "unknown": self.unknown,
            **{name: _rounded(figures.get(name)) for name in _FIGURES},
            **{name: _interval(figures.get(name)) for name in _INTERVALS},
            "outliers": figures.get("outliers", 0),
            "first_byte_median_ms": _rounded(self.first_byte_median_ms),
            "retransmits": self.retransmits,
            "new_connections": self.new_connections,
        }


@dataclass(frozen=True)
class Summary:
    """All endpoints of a bundle, in the order in which tables and charts show them.

    `facts` is what they need to know of the run; `series` are the ones that have a sample, in the
    order of the run; `notes` are sentences that a reader of any figure must see with it. `drill`
    is what a drill has besides; its `endpoints` are of the phase before anything was broken. A
    study of round trips has `round_trips`, and `by_rtt` in place of `endpoints`: over all RTTs
    together a mean latency is that of no network. `in_rtts` says in sentences what the latencies
    of a study of single requests are in RTTs. `blocks` are what the run has data for besides
    (`wanlat.analysis.blocks`), by key.
    """

    facts: Mapping[str, Any]
    series: tuple[Series, ...]
    endpoints: tuple[EndpointSummary, ...]
    notes: tuple[str, ...]
    drill: Drill | None = None
    round_trips: tuple[RoundTrips, ...] | None = None
    by_rtt: tuple[AtRtt, ...] = ()
    in_rtts: LatenciesInRtts | None = None
    blocks: Mapping[str, Block] = field(default_factory=dict)

    @property
    def groups(self) -> list[Group]:
        """What there are figures of, in order."""
        return [entry.group for entry in (self.round_trips or self.endpoints)]

    @property
    def endpoint_names(self) -> list[str]:
        """The endpoints present, in order."""
        return list(dict.fromkeys(group.endpoint for group in self.groups))

    @property
    def knows_placement(self) -> bool:
        """Whether placement is known of any entry, so that there is something to tell apart."""
        return any(is_known(group.placement) for group in self.groups)

    def to_json(self) -> dict[str, Any]:
        """The document of summary.json."""
        return {
            "bundle": dict(self.facts),
            "definitions": {
                "n": "requests measured; statistics are over those that succeeded (ok)",
                "percentiles": statistics.PERCENTILE_DEFINITION,
                "mean_ci95_ms": statistics.MEAN_INTERVAL_DEFINITION,
                "median_ci95_ms": statistics.MEDIAN_INTERVAL_DEFINITION,
                "outliers": "beyond Tukey's fences, 1.5 IQR; counted, kept in every figure",
                **({} if self.round_trips is None else _ROUND_TRIPS_DEFINITIONS),
            },
            "endpoints": [entry.to_json() for entry in self.endpoints],
            **({} if self.in_rtts is None else {"in_rtts": self.in_rtts.to_json()}),
            **self._round_trips(),
            **self._drill(),
            **{name: block.to_json() for name, block in self.blocks.items()},
            "notes": list(self.notes),
        }

    def _round_trips(self) -> dict[str, Any]:
        if self.round_trips is None:
            return {}
        return {
            "round_trips": [entry.to_json() for entry in self.round_trips],
            "round_trips_by_rtt": [entry.to_json() for entry in self.by_rtt],
        }

    def _drill(self) -> dict[str, Any]:
        if self.drill is None:
            return {}
        from wanlat.analysis.drill.block import drill_block

        return {"drill": drill_block(self.drill)}

    def to_text(self) -> str:
        """summary.json as it lies on disk: the same bytes for the same bundle."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def summarize(bundle: Bundle, *, with_blocks: bool = True) -> Summary:
    """Every figure of `bundle`: of its measured samples, and what is made of them if wanted."""
    from wanlat.analysis.blocks import blocks_of
    from wanlat.analysis.in_rtts import in_rtts

    summary = _of_samples(bundle)
    if not with_blocks:
        return summary
    said = in_rtts(bundle, summary.endpoints)
    return replace(summary, in_rtts=said, blocks=blocks_of(bundle))


def _of_samples(bundle: Bundle) -> Summary:
    from wanlat.analysis.notes import notes_on
    from wanlat.analysis.visits import read_visits

    if (visits := read_visits(bundle)) is not None:
        return _of_round_trips(bundle, visits)
    groups = grouped(bundle.measured)
    series = series_order((group.series for group in groups), bundle.systems)
    endpoints = tuple(
        endpoint_summary(groups[group], group, bundle.topology, bundle.seed)
        for group in in_order(groups, bundle)
    )
    bundle.derived["latencies"] = {entry.group: entry.latency for entry in endpoints}
    if bundle.is_drill:
        from wanlat.analysis.drill.block import in_words
        from wanlat.analysis.drill.read import read_drill

        drill = read_drill(bundle)
        return Summary(_facts(bundle), tuple(series), endpoints, in_words(drill), drill)
    return Summary(_facts(bundle), tuple(series), endpoints, notes_on(bundle, endpoints))


def _of_round_trips(bundle: Bundle, visits: Visits) -> Summary:
    from wanlat.analysis.by_rtt import at_each_rtt
    from wanlat.analysis.round_trips_block import round_trips_of
    from wanlat.analysis.round_trips_notes import notes_on_round_trips

    round_trips = round_trips_of(bundle)
    present = (group.series for group in grouped(bundle.measured))
    return Summary(
        facts=_facts(bundle, visits),
        series=tuple(series_order(present, bundle.systems)),
        endpoints=(),
        notes=notes_on_round_trips(bundle, visits, round_trips),
        round_trips=round_trips,
        by_rtt=at_each_rtt(bundle, visits),
    )


def grouped(samples: pd.DataFrame) -> dict[Group, pd.DataFrame]:
    """The rows of `samples` by what is counted together, each in the order it came in."""
    return {
        Group(Series(str(system), str(version)), str(endpoint), str(placement)): rows
        for (system, version, endpoint, placement), rows in samples.groupby(
            ["system", "version", "endpoint", "placement"]
        )
    }


def ok_ms(rows: pd.DataFrame, column: str = "total_ns") -> statistics.Values:
    """Durations in `column` of the requests that succeeded, milliseconds, shape (ok,).

    In the order of the rows; a duration that was not recorded is left out.
    """
    durations = rows.loc[rows["outcome"] == "ok", column].dropna()
    return durations.to_numpy(dtype="float64") / _NS_PER_MS


def in_order(groups: Iterable[Group], bundle: Bundle) -> list[Group]:
    """`groups` row by row; in a row by series as the run took them, endpoint, placement."""
    present = set(groups)
    series = series_order((group.series for group in present), bundle.systems)
    names = endpoint_order((group.endpoint for group in present), bundle.manifest.get("study"))
    return [
        Group(one, name, placement)
        for _, row in groupby(names, key=row_of)
        for one, name, placement in product(series, list(row), PLACEMENTS)
        if Group(one, name, placement) in present
    ]


def endpoint_summary(rows: pd.DataFrame, group: Group, topology: str, seed: int) -> EndpointSummary:
    """The figures of `rows`, all of one `group`; `seed` is the run's."""
    import numpy as np

    outcomes = rows["outcome"]
    first_bytes_ms = ok_ms(rows, "first_byte_ns")
    return EndpointSummary(
        series=group.series,
        topology=topology,
        endpoint=group.endpoint,
        placement=group.placement,
        ok=int((outcomes == "ok").sum()),
        fail=int((outcomes == "fail").sum()),
        unknown=int((outcomes == "unknown").sum()),
        latency=statistics.describe(ok_ms(rows), seed_of(seed, group)),
        first_byte_median_ms=float(np.median(first_bytes_ms)) if first_bytes_ms.size else None,
        retransmits=int(rows["retransmits"].fillna(0).sum()),
        new_connections=int(rows["new_connection"].fillna(False).sum()),
    )


def seed_of(seed: int, group: Group) -> list[int]:
    """A seed of the group's own, so that its interval does not depend on what else was run.

    A placement that is not known adds nothing, so that intervals made before it was recorded
    stay as they are.
    """
    known = (group.placement,) if is_known(group.placement) else ()
    name = "\0".join((*group.series, group.endpoint, *known)).encode()
    return [abs(seed), zlib.crc32(name)]


def _facts(bundle: Bundle, visits: Visits | None = None) -> dict[str, Any]:
    """What figures need to know of the run; of one with `visits` no RTT is that of all samples."""
    manifest = bundle.manifest
    rtt = None if visits is not None else bundle.measured_rtt
    return {
        "study": bundle.study,
        "topology": bundle.topology,
        "status": bundle.status,
        "reason": manifest.get("reason"),
        "seed": manifest.get("seed"),
        "backend": manifest.get("backend"),
        "wanlat": manifest.get("wanlat"),
        "calibration": bundle.calibration.verdict if bundle.calibration else None,
        "measured_rtt_ms": None
        if rtt is None
        else {
            "median": _rounded(rtt.median_ms),
            "pair_medians": [_rounded(rtt.low_pair_ms), _rounded(rtt.high_pair_ms)],
            "single": [_rounded(rtt.min_ms), _rounded(rtt.max_ms)],
            "pairs": rtt.pairs,
        },
        **({} if visits is None else {"rtt_steps": _visits(visits)}),
    }


def _visits(visits: Visits) -> list[dict[str, Any]]:
    return [
        {
            "system": visit.system,
            "rtt_step": visit.number,
            "requested_rtt_ms": visit.requested_rtt_ms,
            "measured_rtt_ms": _rounded(visit.measured_rtt_ms),
            "counts": visit.counts,
        }
        for visit in visits.all
    ]


def _rounded(value_ms: float | None) -> float | None:
    """`value_ms` to the nanosecond, which is all that was measured; None for what is no number."""
    if value_ms is None or not math.isfinite(value_ms):
        return None
    return round(value_ms, 6)


def _interval(interval: statistics.Interval | None) -> list[float | None] | None:
    return [_rounded(bound) for bound in interval] if interval else None
