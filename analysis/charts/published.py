"""The chart of latencies beside published ones: a panel for each endpoint, ours above theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.style import INK, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.charts.wording import rtt_sentence
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import format_ms, row_labels, series_labels, shortened
from wanlat.analysis.placement import with_placement

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer

_BAR = 0.36
"""Of the height between two systems: ours above the middle, theirs below it."""
_NEAR = 2


def draw(answer: Answer) -> Figure:
    """The chart of the section `published`."""
    figures = answer.figures
    names, looks, words = row_labels(figures.series), styles(figures.series), _words(answer)
    groups = list(dict.fromkeys(_group(row, names) for row in figures.rows))
    by_endpoint: dict[str, list[Row]] = {}
    for row in figures.rows:
        by_endpoint.setdefault(row["endpoint"], []).append(row)
    limit_ms = _limit_ms(figures.rows)
    with applied():
        height_in = 0.75 + 0.32 * len(groups)
        figure, panels = multiples(words, len(by_endpoint), columns=2, panel_in=height_in)
        for axes, (endpoint, rows) in zip(panels, by_endpoint.items(), strict=True):
            ratios = [row["mean_over_published"] for row in rows]
            known = [f"{ratio:.3g}" for ratio in ratios if ratio is not None]
            head(
                axes, endpoint, f"ours / theirs: {', '.join(known)}" if known else "none succeeded"
            )
            for row in rows:
                place = groups.index(_group(row, names))
                _draw(axes, place, row, looks[series_of(row)], limit_ms)
        panels[0].set_yticks(range(len(groups)), groups)
        panels[0].set_ylim(len(groups) - 0.5, -0.5)
        panels[0].set_xlim(0, limit_ms)
        labels = series_labels(figures.series)
        return dress(figure, words, [(looks[one], labels[one]) for one in figures.series])


def _draw(axes: Axes, place: int, row: Row, look: SeriesStyle, limit_ms: float) -> None:
    """Ours filled, and theirs below it; lines from least to greatest, as far as the axis goes."""
    for y, before in ((place - _BAR / 2, ""), (place + _BAR / 2, "published_")):
        mean_ms, low_ms, high_ms = (row[f"{before}{key}_ms"] for key in ("mean", "min", "max"))
        if mean_ms is None:
            continue
        axes.barh(
            y,
            mean_ms,
            height=_BAR,
            facecolor="white" if before else look.fill,
            edgecolor=look.dark,
            hatch="" if before else look.hatch,
            linestyle="--" if before else "-",
            linewidth=0.9,
        )
        low_ms, high_ms = (mean_ms if end is None else end for end in (low_ms, high_ms))
        axes.plot((low_ms, min(high_ms, limit_ms)), (y, y), color=INK, linewidth=1.0, zorder=4)
        year = f" in {row['published_year']}" if before else ""
        far = f", up to {format_ms(high_ms, 0)}" if high_ms > limit_ms else ""
        axes.annotate(
            f"{format_ms(mean_ms, 0 if before else None)}{year}{far}",
            (mean_ms if far else high_ms, y),
            xytext=(4, 4 if far else 0),
            textcoords="offset points",
            fontsize=TINY_PT,
            va="bottom" if far else "center",
        )


def _limit_ms(rows: Sequence[Row]) -> float:
    """Where the axis ends: past all means and all that was published; no outlier sets it."""
    keys = ("mean_ms", "published_mean_ms", "published_max_ms")
    return 1.2 * max(float(row[key]) for row in rows for key in keys if row[key] is not None)


def _group(row: Row, names: Mapping[Series, str]) -> str:
    return with_placement(names[series_of(row)], row["placement"])


def _words(answer: Answer) -> Words:
    rows, publications = answer.figures.rows, dict.fromkeys(answer.figures.arrays)
    ratios = [row["mean_over_published"] for row in rows if row["mean_over_published"] is not None]
    years = " and ".join(str(each.year) for each in publications)
    near = sum(1 / _NEAR <= ratio <= _NEAR for ratio in ratios)
    theirs = [Series(row["system"], row["published_version"]) for row in rows]
    versions = ", ".join(series_labels(list(dict.fromkeys(theirs))).values())
    full = shortened(answer.figures.series)
    assert isinstance(answer.source, Bundle)
    return Words(
        title=f"{near} of {len(ratios)} means are within a factor of {_NEAR} of those published "
        f"in {years}",
        subtitle=f"Latency of single requests · {answer.of}",
        x_label="latency of one request, ms",
        caption=(
            "Filled: measured here, mean, with a line from the smallest to the greatest.",
            *(
                f"Outlined: {each.by}, {each.year} ({versions}), {each.n} "
                f"requests each, read off its charts to about ±{each.read_off_ms:g} ms. {each.note}"
                for each in publications
            ),
            rtt_sentence(answer.source),
            *([f"In full: {'; '.join(full)}."] if full else []),
        ),
    )
