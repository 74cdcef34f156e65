"""Latencies in RTTs, endpoint by endpoint: "PutObject: 0.99 × RTT: one round trip".

The RTT is the one that calibration measured between sites, in the lab of the same system. A latency
is called a number of round trips only where the figures support it, and a promise is named only
where the run wrote it into its manifest. With them goes how well the network was as requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wanlat.analysis.calibration import MeasuredRtt, site_of_name, sites_by_node
from wanlat.analysis.figures.latency import EndpointSummary, latency, rounded
from wanlat.analysis.figures.result import Row
from wanlat.analysis.figures.round_trips import least_of, promised_of
from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, count, format_ms, format_trips, row_labels
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.placement import with_placement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.groups import Group
    from wanlat.analysis.stats.intervals import Interval

WITHIN = 0.1
"""How far, in RTTs, the intervals of median and mean may reach from a whole number."""
MOST = 0.9
"""So many of the requests must be nearest to that whole number: a mixture of two counts may have a
median and a mean that look like a third."""
SHORTEST_RTT_MS = 20.0
"""On a shorter RTT a store's own milliseconds look like a part of a round trip, or like a whole."""

_NONE = (None, None)
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SHORT = (
    f"Below {SHORTEST_RTT_MS:g} ms of RTT a store's own time cannot be distinguished from round "
    "trips at one RTT; `wanlat run round-trips` separates them."
)
_NOT_WHOLE = (
    "Not a whole number: requests differ in their round trips, wait for the slowest of several "
    "answers where links have jitter, or wait for something else. `wanlat run round-trips` tells "
    "which."
)


@dataclass(frozen=True)
class InWords:
    """The block `in_rtts` of a report.

    A row has `rtt_ms`; `rtts`, the median latency over it, and its interval `ci95`; `round_trips`,
    the whole number that the figures support; what is known beforehand: `promised_round_trips` by
    the protocol, `least_round_trips` that replicas allow; None each where there is none; and its
    `sentence`. `why_not` says why nothing is in RTTs, `asides` what a reader of the sentences must
    know; `calibration` is None where the network was not right.
    """

    rows: tuple[Row, ...]
    why_not: str | None
    asides: tuple[str, ...] = ()
    calibration: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "endpoints": [dict(row) for row in self.rows],
            "why_not": self.why_not,
            "notes": list(self.asides),
            "calibration": self.calibration,
        }

    def grids(self) -> Sequence[Grid]:
        """All sentences, as a table without columns."""
        lines = (*(row["sentence"] for row in self.rows), self.why_not, self.calibration)
        said = tuple(line for line in lines if line is not None)
        return [Grid("In words", (), (), lines=said, notes=self.asides)]

    def charts(self) -> Mapping[str, Figure]:
        """None: the chart of latencies has lines at multiples of the RTT."""
        return {}


def in_words(bundle: Bundle) -> InWords | None:
    """The block of `bundle`; None of a run that is more than single requests on one network."""
    if bundle.is_drill or bundle.is_load or bundle.is_reclaim:
        return None
    if (figures := latency(bundle)) is None:
        return None
    entries: tuple[EndpointSummary, ...] = tuple(figures.arrays)
    rtts = {entry.series.system: _rtt_of(bundle, entry.series.system) for entry in entries}
    known = {system: rtt for system, rtt in rtts.items() if rtt is not None}
    if not is_trusted(bundle):
        return InWords((), "No latency is given in RTTs: calibration failed.")
    if len(set(sites_by_node(bundle.manifest.get("topology")).values())) == 1:
        return _within_a_site(bundle, entries)
    if len(known) == len(rtts) and all(rtt.is_uniform for rtt in known.values()):
        rtts_ms = {system: rtt.median_ms for system, rtt in known.items()}
        return _between_sites(bundle, entries, rtts_ms)
    ends = [end for rtt in known.values() for end in (rtt.low_pair_ms, rtt.high_pair_ms)]
    why = "No latency is given in RTTs: the RTT between sites was not measured."
    if len(known) == len(rtts):
        why = (
            f"RTTs differ from one pair of sites to another ({range_ms(ends)}), so that no latency "
            "is given in RTTs. `wanlat run round-trips` counts round trips: it gives all pairs the "
            "same RTT."
        )
    return InWords((), why, (), calibration_sentence(bundle))


def _within_a_site(bundle: Bundle, entries: Sequence[EndpointSummary]) -> InWords:
    names = _names(entries)
    rows = tuple(_row(entry, f"{names[entry.group]}: {_in_ms(entry)}.") for entry in entries)
    why = "All nodes are in one site, so that latencies are in ms: there is no RTT between sites."
    aside = f"Medians of {_requests(entries)} to one cluster; another start may differ."
    return InWords(rows, why, (aside,), calibration_sentence(bundle))


def _between_sites(
    bundle: Bundle, entries: Sequence[EndpointSummary], rtts_ms: Mapping[str, float]
) -> InWords:
    names, is_alone = _names(entries), _is_target_alone(bundle)
    beforehand = (promised_of(bundle), least_of(bundle))
    rows = tuple(
        _in_rtts(entry, names[entry.group], rtts_ms[entry.series.system], beforehand, is_alone)
        for entry in entries
    )
    span = range_ms(list(rtts_ms.values()))
    asides = [
        f"× RTT: median of {_requests(entries)} over the RTT measured between sites, {span}. It is "
        "of one cluster: another start of a store may differ."
    ]
    if any(row["rtts"] is not None and row["round_trips"] is None for row in rows):
        asides.append(_SHORT if min(rtts_ms.values()) < SHORTEST_RTT_MS else _NOT_WHOLE)
    return InWords(rows, None, tuple(asides), calibration_sentence(bundle))


def _in_rtts(
    entry: EndpointSummary, name: str, rtt_ms: float, beforehand: Any, is_alone: bool
) -> Row:
    """`entry` in RTTs of `rtt_ms`, and in words."""
    promised, (least, _) = beforehand[0].get(entry.group), beforehand[1].get(entry.group, _NONE)
    known: dict[str, Any] = {
        "rtt_ms": rounded(rtt_ms),
        "promised_round_trips": promised,
        "least_round_trips": least,
    }
    figures = entry.latency
    if figures is None:
        return _row(entry, f"{name}: no request succeeded.", **known)
    rtts = figures.median_ms / rtt_ms
    number = math.floor(rtts + 0.5)
    share = float(np.mean(np.floor(entry.values_ms / rtt_ms + 0.5) == number))
    intervals = [_over(each, rtt_ms) for each in (figures.median_ci95_ms, figures.mean_ci95_ms)]
    known |= {"rtts": rounded(rtts), "ci95": intervals[0]}
    why = _why_no_number(intervals, rtt_ms, number, share)
    if why is None:
        none = "no round trip" + (", answered by the node itself" if is_alone else " between sites")
        against = _against(number, promised, least)
        said = f"{counted(number) if number else none}{against}"
        said, known = f"{format_trips(rtts)} × RTT: {said}", known | {"round_trips": number}
    else:
        interval = intervals[0]
        bounds = "" if interval is None else f" [{EN_DASH.join(map(format_trips, interval))}]"
        said = f"{format_trips(rtts)} × RTT{bounds}: {why}"
    return _row(entry, f"{name}: {said}.", **known)


def _why_no_number(
    intervals: Sequence[Sequence[float] | None], rtt_ms: float, number: int, share: float
) -> str | None:
    """Why a latency is not called `number` round trips; None if it is.

    `intervals` are those of median and mean, in RTTs, `share` the requests nearest to the number.
    """
    if rtt_ms < SHORTEST_RTT_MS:
        return "no number of round trips on so short an RTT"
    if any(interval is None for interval in intervals):
        return "too few requests to name a number of round trips"
    if any(abs(end - number) > WITHIN for interval in intervals for end in interval or ()):
        return "not a whole number of RTTs"
    if share < MOST:
        percent = f"{100 * share:.0f} %"
        return f"no one number of round trips: {percent} of requests are nearest to {number}"
    return None


def _against(number: int, promised: float | None, least: float | None) -> str:
    """How `number` of round trips compares with what is known of the endpoint, as a clause."""
    if promised is not None:
        if number == promised:
            return ", as the protocol promises"
        return f", where the protocol by itself takes {counted(promised)}"
    if least is None or number == least == 0:
        return ""
    if number == least:
        return ", the fewest that its replicas allow"
    if number > least:
        return f"; the fewest that its replicas allow: {counted(least)}"
    return f", fewer than its replicas allow if it keeps its promise ({counted(least)})"


def _row(entry: EndpointSummary, sentence: str, **figures: Any) -> Row:
    keys = ("rtt_ms", "rtts", "ci95", "round_trips", "promised_round_trips", "least_round_trips")
    return {
        "system": entry.series.system,
        "version": entry.series.version,
        "endpoint": entry.endpoint,
        "placement": entry.placement,
        **{key: figures.get(key) for key in keys},
        "sentence": sentence,
    }


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
    errors = {"median": [p.error_p50_ms for p in pairs], "p99": [p.error_p99_ms for p in pairs]}
    worst = [
        f"{format_ms(max(abs(error) for error in known))} ms ({what})"
        for what, each in errors.items()
        if (known := [error for error in each if error is not None])
    ]
    labs = len({pair.system for pair in pairs})
    span = (measured.low_pair_ms, measured.high_pair_ms)
    found = (measured.median_ms,) if measured.is_uniform else span
    return (
        f"Instrument and network agree: RTT {'between sites' if distant else 'between nodes'} "
        f"{range_ms(requested, '{:g}'.format)} requested, {range_ms(found)} measured; worst "
        f"delay error over {len(pairs)} pairs of nodes{f' in {labs} labs' if labs > 1 else ''}: "
        f"{', '.join(worst) or 'not recorded'}."
    )


def counted(number: float) -> str:
    """`number` of round trips in words: "one round trip"."""
    is_word = float(number).is_integer() and 0 <= number < len(_WORDS)
    word = _WORDS[int(number)] if is_word else f"{number:g}"
    return f"{word} round trip{'' if number == 1 else 's'}"


def range_ms(values_ms: Sequence[float], written: Callable[[float], str] = format_ms) -> str:
    """One figure where all are written alike, else the least and the greatest; with the unit."""
    if not values_ms:
        return f"{EN_DASH} ms"
    low, high = written(min(values_ms)), written(max(values_ms))
    return f"{low} ms" if low == high else f"{low}{EN_DASH}{high} ms"


def _rtt_of(bundle: Bundle, system: str) -> MeasuredRtt | None:
    """RTT between sites in the lab of `system`, or in all where pairs do not say which."""
    if bundle.calibration is None:
        return None
    own = tuple(pair for pair in bundle.calibration.pairs if pair.system in (system, ""))
    site_of = site_of_name(bundle.manifest.get("topology"))
    return replace(bundle.calibration, pairs=own).between_sites(site_of)


def _is_target_alone(bundle: Bundle) -> bool:
    """Whether the node that requests are sent to is the only one of its site."""
    target, sites = bundle.manifest.get("target"), sites_by_node(bundle.manifest.get("topology"))
    site = sites.get(str(target.get("node")), "") if isinstance(target, Mapping) else ""
    return list(sites.values()).count(site) == 1


def _names(entries: Sequence[EndpointSummary]) -> dict[Group, str]:
    """What each of `entries` is called: with its system where there are several."""
    labels = row_labels(list(dict.fromkeys(entry.series for entry in entries)))
    several = len(labels) > 1
    return {
        entry.group: (f"{labels[entry.series]} " if several else "")
        + with_placement(entry.endpoint, entry.placement)
        for entry in entries
    }


def _in_ms(entry: EndpointSummary) -> str:
    figures = entry.latency
    return "no request succeeded" if figures is None else f"{format_ms(figures.median_ms)} ms"


def _requests(entries: Sequence[EndpointSummary]) -> str:
    """How many requests a median is over: "100 requests", "98 to 100 requests"."""
    counts = [entry.ok for entry in entries if entry.ok] or [0]
    low, high = min(counts), max(counts)
    return count(high, "request") if low == high else f"{low} to {high} requests"


def _over(interval: Interval | None, rtt_ms: float) -> list[float] | None:
    return None if interval is None else [round(bound / rtt_ms, 6) for bound in interval]
