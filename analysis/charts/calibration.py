"""The chart of calibration: how far each pair's RTT was from what the topology asks for."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.calibration import Pair
from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.rows import Cell, Row, RowChart, Words, frame
from wanlat.analysis.charts.style import ALARM, QUIET, SeriesStyle, applied, styles
from wanlat.analysis.charts.wording import rtt_sentence, subtitle
from wanlat.analysis.names import EN_DASH, count, display_system, format_ms

_ROW_IN = 0.19
_ROWS_AT_MOST = 90


def draw(bundle: Bundle) -> Figure:
    """One row an ordered pair, the labs of all systems on it.

    Only for a bundle with calibrated pairs. Of more than 90 rows the worst 90 are drawn, and the
    caption says so.
    """
    if bundle.calibration is None or not bundle.calibration.pairs:
        raise ValueError("a chart of calibration needs calibrated pairs")
    by_ends = _by_ends(bundle.calibration.pairs)
    shown = _worst(by_ends)
    pairs = [pair for labs in shown for pair in labs]
    errors = [v for p in pairs for v in (p.error_p50_ms, p.error_p99_ms) if v is not None]
    tolerances = [v for p in pairs for v in (p.tolerance_p50_ms, p.tolerance_p99_ms) if v]
    limit = max((*errors, *tolerances), default=0.0) * 1.06 or 1.0
    systems = list(dict.fromkeys(pair.system for pair in bundle.calibration.pairs))
    by_series = styles([Series(system, "") for system in systems])
    looks = {series.system: look for series, look in by_series.items()}
    words = _words(bundle, looks, bool(tolerances), len(by_ends) - len(shown))
    with applied():
        chart = frame(words, [_row(labs) for labs in shown], limit, _ROW_IN)
        for labs, centre in zip(shown, chart.centres, strict=True):
            for pair in labs:
                _draw_pair(chart, pair, looks[pair.system], centre)
    return chart.figure


def _by_ends(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs of all labs by their two ends, those from one place together."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        found.setdefault((pair.source, pair.destination), []).append(pair)
    sources = {source: rank for rank, (source, _) in enumerate(found)}
    return [labs for _, labs in sorted(found.items(), key=lambda item: sources[item[0][0]])]


def _worst(by_ends: list[list[Pair]]) -> list[list[Pair]]:
    """The worst rows if there are too many to show all, in their order."""

    def badness(labs: list[Pair]) -> tuple[bool, float]:
        failed = any(not pair.passed for pair in labs)
        return failed, max(pair.error_p99_ms or 0.0 for pair in labs)

    ranked = sorted(range(len(by_ends)), key=lambda i: badness(by_ends[i]), reverse=True)
    return [by_ends[i] for i in sorted(ranked[:_ROWS_AT_MOST])]


def _row(labs: Sequence[Pair]) -> Row:
    medians_ms = [pair.rtt.median_ms for pair in labs if pair.rtt is not None]
    low, high = format_ms(min(medians_ms, default=None)), format_ms(max(medians_ms, default=None))
    passed = all(pair.passed for pair in labs)
    return Row(
        group=labs[0].source,
        label=f"→ {labs[0].destination}",
        cells=(
            Cell(format_ms(labs[0].requested_rtt_ms)),
            Cell(low if low == high else f"{low} {EN_DASH} {high}"),
            Cell("pass" if passed else "FAIL", alarming=not passed),
        ),
    )


def _draw_pair(chart: RowChart, pair: Pair, look: SeriesStyle, centre: float) -> None:
    colour = look.dark if pair.passed else ALARM
    for error_ms, filled in ((pair.error_p50_ms, True), (pair.error_p99_ms, False)):
        if error_ms is not None:
            chart.axes.plot(
                [error_ms],
                [centre],
                marker=look.marker,
                markersize=4.5,
                markeredgewidth=1.0,
                color=colour,
                markerfacecolor=look.colour if filled else "white",
                zorder=3,
                clip_on=False,
            )
    for tolerance_ms, height in ((pair.tolerance_p50_ms, 4.5), (pair.tolerance_p99_ms, 9.0)):
        if tolerance_ms is not None:
            chart.axes.plot(
                [tolerance_ms],
                [centre],
                marker="|",
                markersize=height,
                markeredgewidth=1.1,
                color=QUIET,
                zorder=2,
                clip_on=False,
            )


def _words(
    bundle: Bundle, looks: dict[str, SeriesStyle], has_tolerances: bool, left_out: int
) -> Words:
    calibration = bundle.calibration
    assert calibration is not None
    verdict = "passed" if calibration.passed else "FAILED"
    marked = (
        "Short tick: tolerance of the median; long tick: of the 99th percentile."
        if has_tolerances
        else "The bundle does not say which tolerances it was judged by."
    )
    caption = [
        "Error: how far single round trips of an ordered pair were from the requested RTT, with "
        f"jitter switched off. Filled mark: median; open mark: 99th percentile. {marked}",
        rtt_sentence(bundle, lines=False),
    ]
    if left_out:
        caption.append(f"The worst pairs; {count(left_out, 'better one')} not drawn.")
    backend = [f"backend {calibration.backend}"] if calibration.backend else []
    return Words(
        title=f"Calibration {verdict}: {bundle.topology}",
        subtitle=" · ".join([part for part in (subtitle(bundle), *backend) if part]),
        headers=("requested RTT ms", "measured RTT ms", "verdict"),
        x_label="error of the RTT, ms",
        caption=tuple(caption),
        legend=tuple(
            LegendEntry(look, f"lab of {display_system(system)}")
            for system, look in looks.items()
            if system
        ),
    )
