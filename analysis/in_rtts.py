"""Latencies in RTTs: a sentence for each endpoint, "PutObject: 0.99 × RTT: one round trip".

The RTT is the one that calibration measured between sites, in the lab of the same system. A latency
is called a number of round trips only where the figures support it (`_whole`), and a promise is
named only where the run wrote it into its manifest. Where no one RTT speaks for all pairs of sites,
nothing is said in RTTs, and why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wanlat.analysis.agreement import percent
from wanlat.analysis.bundle import Bundle
from wanlat.analysis.calibration import MeasuredRtt, site_of_name, sites_by_node
from wanlat.analysis.least import NOTHING_SAID, least_of, promised_of
from wanlat.analysis.names import EN_DASH, format_ms, format_trips, row_labels
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.placement import with_placement
from wanlat.analysis.summary import EndpointSummary, Group, grouped, ok_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wanlat.analysis.statistics import Interval, Latency, Values

WITHIN = 0.1
"""How far, in RTTs, the intervals of median and mean may reach from a whole number."""
MOST = 0.9
"""So many of the requests must be nearest to that whole number: a mixture of two counts may have a
median and a mean that look like a third."""
SHORTEST_RTT_MS = 20.0
"""On a shorter RTT a store's own milliseconds look like a part of a round trip, or like a whole."""

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Known:
    """Round trips known beforehand: the protocol's own, and the fewest that replicas allow.

    None each where the run did not know.
    """

    promised: float | None = None
    least: float | None = None


@dataclass(frozen=True)
class InRtts:
    """One endpoint and placement. `rtts` is its median latency over `rtt_ms`.

    `ci95` is the median's interval in the same unit, `round_trips` the whole number that the
    figures support; None each where there is none. `sentence` says it all.
    """

    group: Group
    rtt_ms: float | None
    rtts: float | None
    ci95: Interval | None
    round_trips: int | None
    known: Known
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "system": self.group.series.system,
            "version": self.group.series.version,
            "endpoint": self.group.endpoint,
            "placement": self.group.placement,
            "rtt_ms": _digits(self.rtt_ms),
            "rtts": _digits(self.rtts),
            "ci95": None if self.ci95 is None else [_digits(bound) for bound in self.ci95],
            "round_trips": self.round_trips,
            "promised_round_trips": self.known.promised,
            "least_round_trips": self.known.least,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class LatenciesInRtts:
    """All endpoints, in the order of the table, and the sentences that go with all of them.

    `why_not` says why nothing is said in RTTs; `notes` what a reader of the sentences must know;
    `calibration` how well the network was the one that was requested, None where it was not.
    """

    entries: tuple[InRtts, ...]
    why_not: str | None
    notes: tuple[str, ...]
    calibration: str | None

    @property
    def lines(self) -> tuple[str, ...]:
        """A sentence for each endpoint, and why not in RTTs."""
        why = () if self.why_not is None else (self.why_not,)
        return (*(entry.sentence for entry in self.entries), *why)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "endpoints": [entry.to_json() for entry in self.entries],
            "why_not": self.why_not,
            "notes": list(self.notes),
            "calibration": self.calibration,
        }


def in_rtts(bundle: Bundle, endpoints: Sequence[EndpointSummary]) -> LatenciesInRtts | None:
    """What is said of `endpoints`; None of a run that is more than single requests on one network.

    That is a drill, a load, a study of reclaimed space. One of round trips has no `endpoints`.
    """
    if not endpoints or bundle.is_drill or bundle.is_load or bundle.is_reclaim:
        return None
    if not is_trusted(bundle):
        return LatenciesInRtts((), "No latency is given in RTTs: calibration failed.", (), None)
    agreement = calibration_sentence(bundle)
    if len(set(sites_by_node(bundle.manifest.get("topology")).values())) == 1:
        return _within_a_site(endpoints, agreement)
    rtts = {one.series.system: _rtt_of(bundle, one.series.system) for one in endpoints}
    if (why := _why_not(rtts)) is not None:
        return LatenciesInRtts((), why, (), agreement)
    rows = grouped(bundle.measured)
    says = _Says(bundle, endpoints)
    entries = tuple(
        says.of(entry, rtt.median_ms, ok_ms(rows[entry.group]))
        for entry in endpoints
        if (rtt := rtts[entry.series.system]) is not None
    )
    return LatenciesInRtts(entries, None, _notes(entries, endpoints), agreement)


def calibration_sentence(bundle: Bundle) -> str | None:
    """How well measured RTTs agree with requested ones; None where they do not, or none were."""
    calibration = bundle.calibration
    if calibration is None or not calibration.passed or not calibration.pairs:
        return None
    site_of = site_of_name(bundle.manifest.get("topology"))
    pairs = [pair for pair in calibration.pairs if pair.rtt is not None]
    distant = [pair for pair in pairs if site_of(pair.source) != site_of(pair.destination)]
    measured = bundle.measured_rtt if distant else bundle.measured_rtt_within
    if measured is None:
        return None
    requested = [p.requested_rtt_ms for p in distant or pairs if p.requested_rtt_ms is not None]
    medians = [pair.error_p50_ms for pair in pairs if pair.error_p50_ms is not None]
    p99s = [pair.error_p99_ms for pair in pairs if pair.error_p99_ms is not None]
    worst = [
        f"{format_ms(max(map(abs, errors)))} ms ({what})"
        for errors, what in ((medians, "median"), (p99s, "p99"))
        if errors
    ]
    labs = len({pair.system for pair in pairs})
    span = (measured.low_pair_ms, measured.high_pair_ms)
    found = (measured.median_ms,) if measured.is_uniform else span
    return (
        f"Instrument and network agree: RTT {'between sites' if distant else 'between nodes'} "
        f"{_range_ms(requested, '{:g}'.format)} requested, {_range_ms(found)} measured; worst "
        f"delay error over {len(pairs)} pairs of nodes{f' in {labs} labs' if labs > 1 else ''}: "
        f"{', '.join(worst) or 'not recorded'}."
    )


def _rtt_of(bundle: Bundle, system: str) -> MeasuredRtt | None:
    """RTT between sites in the lab of `system`, or in all where pairs do not say which."""
    if bundle.calibration is None:
        return None
    own = tuple(pair for pair in bundle.calibration.pairs if pair.system in (system, ""))
    site_of = site_of_name(bundle.manifest.get("topology"))
    return replace(bundle.calibration, pairs=own).between_sites(site_of)


def _why_not(rtts: Mapping[str, MeasuredRtt | None]) -> str | None:
    """Why latencies are no multiples of one RTT, if they are not."""
    known = [rtt for rtt in rtts.values() if rtt is not None]
    if len(known) < len(rtts):
        return "No latency is given in RTTs: the RTT between sites was not measured."
    if all(rtt.is_uniform for rtt in known):
        return None
    low = min(rtt.low_pair_ms for rtt in known)
    high = max(rtt.high_pair_ms for rtt in known)
    return (
        f"RTTs differ from one pair of sites to another ({_range_ms([low, high])}), so that no "
        "latency is given in RTTs. `wanlat run round-trips` counts round trips: it gives all pairs "
        "the same RTT."
    )


def _within_a_site(endpoints: Sequence[EndpointSummary], agreement: str | None) -> LatenciesInRtts:
    """A sentence in milliseconds for each of `endpoints`, where no packet leaves the site."""
    names = _names(endpoints)
    entries = tuple(
        InRtts(entry.group, None, None, None, None, Known(), _in_ms(names[entry.group], entry))
        for entry in endpoints
    )
    why = "All nodes are in one site, so that latencies are in ms: there is no RTT between sites."
    notes = (f"Medians of {_requests(endpoints)} to one cluster; another start may differ.",)
    return LatenciesInRtts(entries, why, notes, agreement)


def _in_ms(name: str, entry: EndpointSummary) -> str:
    if entry.latency is None:
        return f"{name}: no request succeeded."
    return f"{name}: {format_ms(entry.latency.median_ms)} ms."


class _Says:
    """Words what is measured of the endpoints of one bundle."""

    def __init__(self, bundle: Bundle, endpoints: Sequence[EndpointSummary]) -> None:
        self._names = _names(endpoints)
        self._promised, self._least = promised_of(bundle), least_of(bundle)
        sites = sites_by_node(bundle.manifest.get("topology"))
        target = bundle.manifest.get("target")
        node = str(target.get("node")) if isinstance(target, Mapping) else ""
        self._is_alone = list(sites.values()).count(sites.get(node, "")) == 1

    def of(self, entry: EndpointSummary, rtt_ms: float, values_ms: Values) -> InRtts:
        """`entry`, whose successful requests took `values_ms`, shape (ok,), in RTTs."""
        name, known = self._names[entry.group], self._known(entry.group)
        latency = entry.latency
        if latency is None:
            said = f"{name}: no request succeeded."
            return InRtts(entry.group, rtt_ms, None, None, None, known, said)
        rtts, ci95 = latency.median_ms / rtt_ms, _over(latency.median_ci95_ms, rtt_ms)
        nearest, share = _nearest(rtts, values_ms / rtt_ms)
        supported = _is_supported(nearest, latency, rtt_ms)
        whole = nearest if supported and share >= MOST else None
        if whole is not None:
            said = f"{self._round_trips(whole)}{_against(whole, known)}"
            said = f"{format_trips(rtts)} × RTT: {said}"
        else:
            why = _why_no_number(latency, rtt_ms, nearest, share, is_mixed=supported)
            said = f"{format_trips(rtts)} × RTT{_bracketed(ci95)}: {why}"
        return InRtts(entry.group, rtt_ms, rtts, ci95, whole, known, f"{name}: {said}.")

    def _known(self, group: Group) -> Known:
        least = self._least.get(group, NOTHING_SAID).round_trips
        return Known(self._promised.get(group), least)

    def _round_trips(self, number: int) -> str:
        if number:
            return counted(number)
        if self._is_alone:
            return "no round trip, answered by the node itself"
        return "no round trip between sites"


def counted(number: float) -> str:
    """`number` of round trips in words: "one round trip"."""
    is_word = float(number).is_integer() and 0 <= number < len(_WORDS)
    word = _WORDS[int(number)] if is_word else f"{number:g}"
    return f"{word} round trip{'' if number == 1 else 's'}"


def _nearest(rtts: float, values: Values) -> tuple[int, float]:
    """The whole number nearest to `rtts`, and the share of `values` that are nearest to it too."""
    import numpy as np

    nearest = math.floor(rtts + 0.5)
    return nearest, float(np.mean(np.floor(values + 0.5) == nearest))


def _is_supported(number: int, latency: Latency, rtt_ms: float) -> bool:
    """Whether the intervals of median and mean both lie close to `number` round trips."""
    if rtt_ms < SHORTEST_RTT_MS:
        return False
    intervals = (latency.median_ci95_ms, latency.mean_ci95_ms)
    return all(
        interval is not None
        and number - WITHIN <= interval[0] / rtt_ms
        and interval[1] / rtt_ms <= number + WITHIN
        for interval in intervals
    )


def _why_no_number(
    latency: Latency, rtt_ms: float, nearest: int, share: float, *, is_mixed: bool
) -> str:
    if rtt_ms < SHORTEST_RTT_MS:
        return "no number of round trips on so short an RTT"
    if latency.median_ci95_ms is None or latency.mean_ci95_ms is None:
        return "too few requests to name a number of round trips"
    if is_mixed:
        return (
            f"no one number of round trips: {percent(share)} of requests are nearest to {nearest}"
        )
    return "not a whole number of RTTs"


def _against(number: int, known: Known) -> str:
    """How `number` of round trips compares with what is known of the endpoint, as a clause."""
    if known.promised is not None:
        if number == known.promised:
            return ", as the protocol promises"
        return f", where the protocol by itself takes {counted(known.promised)}"
    if known.least is None:
        return ""
    if number == known.least:
        return ", the fewest that its replicas allow" if number else ""
    if number > known.least:
        return f"; the fewest that its replicas allow: {counted(known.least)}"
    return f", fewer than its replicas allow if it keeps its promise ({counted(known.least)})"


def _notes(entries: Sequence[InRtts], endpoints: Sequence[EndpointSummary]) -> tuple[str, ...]:
    rtts_ms = [entry.rtt_ms for entry in entries if entry.rtt_ms is not None]
    notes = [
        f"× RTT: median of {_requests(endpoints)} over the RTT measured between sites, "
        f"{_range_ms(rtts_ms)}. It is of one cluster: another start of a store may differ."
    ]
    unclear = [entry for entry in entries if entry.rtts is not None and entry.round_trips is None]
    if unclear and min(rtts_ms) < SHORTEST_RTT_MS:
        notes.append(
            f"Below {SHORTEST_RTT_MS:g} ms of RTT a store's own time cannot be distinguished from "
            "round trips at one RTT; `wanlat run round-trips` separates them."
        )
    elif unclear:
        notes.append(
            "Not a whole number: requests differ in their round trips, wait for the slowest of "
            "several answers where links have jitter, or wait for something else. "
            "`wanlat run round-trips` tells which."
        )
    return tuple(notes)


def _names(endpoints: Sequence[EndpointSummary]) -> dict[Group, str]:
    """What each of `endpoints` is called: with its system where there are several."""
    series = list(dict.fromkeys(entry.series for entry in endpoints))
    labels = row_labels(series)
    return {
        entry.group: (f"{labels[entry.series]} " if len(series) > 1 else "")
        + with_placement(entry.endpoint, entry.placement)
        for entry in endpoints
    }


def _requests(endpoints: Sequence[EndpointSummary]) -> str:
    """How many requests a median is over: "100 requests", "98 to 100 requests"."""
    counts = {entry.ok for entry in endpoints if entry.ok}
    if not counts:
        return "no request"
    low, high = min(counts), max(counts)
    if low == high:
        return f"{high} request{'' if high == 1 else 's'}"
    return f"{low} to {high} requests"


def _over(interval: Interval | None, rtt_ms: float) -> Interval | None:
    return None if interval is None else (interval[0] / rtt_ms, interval[1] / rtt_ms)


def _bracketed(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" [{format_trips(interval[0])}{EN_DASH}{format_trips(interval[1])}]"


def _range_ms(values_ms: Sequence[float], written: Callable[[float], str] = format_ms) -> str:
    """One figure where all are written alike, else the least and the greatest; with the unit."""
    if not values_ms:
        return f"{EN_DASH} ms"
    low, high = written(min(values_ms)), written(max(values_ms))
    return f"{low} ms" if low == high else f"{low}{EN_DASH}{high} ms"


def _digits(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
