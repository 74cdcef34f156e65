"""Latencies in RTTs, endpoint by endpoint: "PutObject: 0.99 × RTT: one round trip".

The RTT is the one that calibration measured between sites, in the lab of the same system. A latency
is called a number of round trips only where the figures support it, and a promise is named only
where the run wrote it into its manifest. With them goes how well the network was as requested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.latency import EndpointSummary, latency, rounded
from wanlat.analysis.figures.round_trips import stated
from wanlat.analysis.names import EN_DASH, count, format_ms, format_trips, row_labels
from wanlat.analysis.section import Grid, Row
from wanlat.bundle.documents import Calibration, MeasuredRtt
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHIN = 0.1
"""How far, in RTTs, the intervals of median and mean may reach from a whole number."""
MOST = 0.9
"""So many of the requests must be nearest to that whole number: a mixture of two counts may have a
median and a mean that look like a third."""
SHORTEST_RTT_MS = 20.0
"""On a shorter RTT a store's own milliseconds look like a part of a round trip, or like a whole."""

_KEYS = ("rtt_ms", "rtts", "ci95", "round_trips", "promised_round_trips", "least_round_trips")
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
    `sentence`. `why_not` is why nothing is in RTTs, `asides` what a reader of the sentences must
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
        return [Grid("In words", (), (), lines=tuple(filter(None, lines)), notes=self.asides)]

    def charts(self) -> Mapping[str, Figure]:
        """None: the chart of latencies has lines at multiples of the RTT."""
        return {}


def in_rtts_of(source: Run | Matrix) -> InWords | None:
    """The block of a run; None of one that is more than single requests on one network."""
    if isinstance(source, Matrix) or source.is_drill or source.is_load or source.is_reclaim:
        return None
    figures = latency(source)
    return None if figures is None else _block(source, list(figures.arrays))


def _block(bundle: Run, entries: Sequence[EndpointSummary]) -> InWords:
    if not bundle.is_trusted:
        return InWords((), "No latency is given in RTTs: calibration failed.")
    sites = bundle.manifest.site_of_node
    oks = [entry.latency.n for entry in entries if entry.latency] or [0]
    requests = count(max(oks), "request")
    requests = requests if min(oks) == max(oks) else f"{min(oks)} to {requests}"
    agreed = calibration_sentence(bundle)
    if len(set(sites.values())) == 1:
        why = (
            "All nodes are in one site, so that latencies are in ms: there is no RTT between sites."
        )
        aside = f"Medians of {requests} to one cluster; another start may differ."
        return InWords(_rows(bundle, entries, {}), why, (aside,), agreed)
    labs = {entry.series.system: _rtt_of(bundle, entry.series.system) for entry in entries}
    known = [rtt for rtt in labs.values() if rtt is not None]
    if len(known) < len(labs):
        why = "No latency is given in RTTs: the RTT between sites was not measured."
        return InWords((), why, (), agreed)
    if not all(rtt.is_uniform for rtt in known):
        ends = [end for rtt in known for end in (rtt.low_pair_ms, rtt.high_pair_ms)]
        why = (
            f"RTTs differ from one pair of sites to another ({range_ms(ends)}), so that no latency "
            "is given in RTTs. `wanlat run round-trips` counts round trips: it gives all pairs the "
            "same RTT."
        )
        return InWords((), why, (), agreed)
    rtts_ms = {system: rtt.median_ms for system, rtt in labs.items() if rtt is not None}
    rows = _rows(bundle, entries, rtts_ms)
    asides = [
        f"× RTT: median of {requests} over the RTT measured between sites, "
        f"{range_ms(list(rtts_ms.values()))}. It is of one cluster: another start of a store may "
        "differ."
    ]
    if any(row["rtts"] is not None and row["round_trips"] is None for row in rows):
        asides.append(_SHORT if min(rtts_ms.values()) < SHORTEST_RTT_MS else _NOT_WHOLE)
    return InWords(rows, None, tuple(asides), agreed)


def _rows(
    bundle: Run, entries: Sequence[EndpointSummary], rtts_ms: Mapping[str, float]
) -> tuple[Row, ...]:
    """A row with its sentence for each of `entries`; in ms where there are no `rtts_ms`."""
    labels = row_labels(list(dict.fromkeys(entry.series for entry in entries)), bundle.titles)
    known = {key: stated(bundle, key) for key in ("promised_round_trips", "least_round_trips")}
    target, sites = bundle.manifest.target, bundle.manifest.site_of_node
    site = sites.get(str(target.node)) if target else None
    is_alone = site is not None and list(sites.values()).count(site) == 1
    where = "answered by the node itself" if is_alone else ""
    rows = []
    for entry in entries:
        name = with_placement(entry.endpoint, entry.placement)
        name = f"{labels[entry.series]} {name}" if len(labels) > 1 else name
        row: dict[str, Any] = {}
        if rtts_ms:
            row = {
                key: getattr(by_group.get(entry.group), "round_trips", None)
                for key, by_group in known.items()
            }
            row["rtt_ms"] = rounded(rtts_ms[entry.series.system])
        if entry.latency is None:
            sentence = "no request succeeded"
        elif rtts_ms:
            sentence = _in_rtts(entry, rtts_ms[entry.series.system], row, where)
        else:
            sentence = f"{format_ms(entry.latency.median_ms)} ms"
        figures = {key: row.get(key) for key in _KEYS}
        rows.append({**entry.group.row, **figures, "sentence": f"{name}: {sentence}."})
    return tuple(rows)


def _in_rtts(entry: EndpointSummary, rtt_ms: float, row: dict[str, Any], where: str) -> str:
    """`entry` in RTTs of `rtt_ms`, in words; its figures are put into `row`."""
    figures = entry.latency
    assert figures is not None
    rtts = figures.median_ms / rtt_ms
    number = math.floor(rtts + 0.5)
    share = float(np.mean(np.floor(entry.values_ms / rtt_ms + 0.5) == number))
    intervals = [
        ends and [round(end / rtt_ms, 6) for end in ends]
        for ends in (figures.median_ci95_ms, figures.mean_ci95_ms)
    ]
    row |= {"rtts": rounded(rtts), "ci95": intervals[0]}
    why = None
    if entry.is_biased:
        why = "not decided, because the machine was late when requests were slow or failed"
    elif rtt_ms < SHORTEST_RTT_MS:
        why = "no number of round trips on so short an RTT"
    elif not all(intervals):
        why = "too few requests to name a number of round trips"
    elif any(abs(end - number) > WITHIN for interval in intervals for end in interval or ()):
        why = "not a whole number of RTTs"
    elif share < MOST:
        percent = f"{100 * share:.0f} %"
        why = f"no one number of round trips: {percent} of requests are nearest to {number}"
    if why is not None:
        bounds = EN_DASH.join(map(format_trips, intervals[0] or ()))
        return f"{format_trips(rtts)} × RTT{f' [{bounds}]' if bounds else ''}: {why}"
    row["round_trips"] = number
    none = f"no round trip, {where}" if where else "no round trip between sites"
    against = _against(number, row["promised_round_trips"], row["least_round_trips"])
    return f"{format_trips(rtts)} × RTT: {counted(number) if number else none}{against}"


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


def calibration_sentence(bundle: Run) -> str | None:
    """How well measured RTTs agree with requested ones; None where they do not, or none were."""
    calibration = bundle.calibration
    if calibration is None or not calibration.passed:
        return None
    site_of = bundle.manifest.site_of
    pairs = [pair for pair in calibration.pairs if pair.rtt_ms is not None]
    distant = [pair for pair in pairs if site_of(pair.source) != site_of(pair.destination)]
    measured = bundle.measured_rtt if distant else bundle.measured_rtt_within
    if measured is None:
        return None
    requested = [p.requested_rtt_ms for p in distant or pairs if p.requested_rtt_ms is not None]
    errors_ms = [pair.error_ms for pair in pairs if pair.error_ms is not None]
    errors = {
        "median": [error.p50 for error in errors_ms],
        "p99": [error.p99 for error in errors_ms],
    }
    worst = [
        f"{format_ms(max(abs(error) for error in values_ms))} ms ({what})"
        for what, values_ms in errors.items()
        if values_ms
    ]
    labs = len({pair.system for pair in pairs})
    span = (measured.low_pair_ms, measured.high_pair_ms)
    values = (measured.median_ms,) if measured.is_uniform else span
    return (
        f"Instrument and network agree: RTT {'between sites' if distant else 'between nodes'} "
        f"{range_ms(requested, '{:g}'.format)} requested, {range_ms(values)} measured; worst "
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
    ends = dict.fromkeys(map(written, (min(values_ms), max(values_ms)))) if values_ms else EN_DASH
    return f"{EN_DASH.join(ends)} ms"


def _rtt_of(bundle: Run, system: str) -> MeasuredRtt | None:
    """RTT between sites in the lab of `system`, or in all where pairs name none."""
    if bundle.calibration is None:
        return None
    own = tuple(pair for pair in bundle.calibration.pairs if pair.system in (system, ""))
    site_of = bundle.manifest.site_of
    calibration: Calibration = bundle.calibration.model_copy(update={"pairs": own})
    return calibration.between_sites(site_of)
