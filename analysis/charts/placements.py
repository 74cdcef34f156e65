"""Predicted against measured latencies of placements: on a line, how far off it, and on average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.style import INK, QUIET, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.figures.placements import errors, order, placed
from wanlat.analysis.names import count, digits
from wanlat.analysis.section import Answer, Figures, Row
from wanlat.bundle.run import Series

_MARK: dict[str, Any] = {"ms": 5, "lw": 1, "capsize": 2, "zorder": 3}


def draw(answer: Answer) -> Figure:
    """The chart of a matrix of placements."""
    figures, search = answer.figures, answer.figures.arrays[0].document
    ranks = sorted({row["rank"] for row in figures.rows})
    clusters = max(row["clusters"] for row in figures.rows)
    off = errors(figures.rows)
    median_ms, worst_ms = (digits(off[f"{which}_error_ms"], 2) for which in ("median", "worst"))
    words = Words(
        f"{figures.titles[search.system]}: latencies of {count(len(ranks), 'placement')} are off "
        f"their prediction by {median_ms} ms (median), {worst_ms} ms (worst)",
        f"{count(search.compared, 'placement')} compared in regions of {search.matrix}, ranked by "
        f"{search.rank_by}; measured: rank {', '.join(map(str, ranks))}, "
        f"{count(clusters, 'cluster')} of each",
        caption=(
            "Marks: one for each endpoint at each target node; whiskers: 95 % over "
            "clusters. Of one prediction, errors of endpoints are drawn apart. *: the leader.",
            *filter(None, [order(figures)]),
            *answer.sentences(answer.section.notes),
        ),
    )
    looks = _looks(figures)
    with applied():
        figure, (line, error, mean) = multiples(words, 3, panel_in=3.2, share="col", share_y=False)
        most = max(row["predicted_ms"] for row in figures.rows)
        _against_prediction(line, figures, looks, "measured_ms")
        _against_prediction(error, figures, looks, "error_ms", apart_ms=0.012 * most)
        line.axline((0, 0), slope=1, color=QUIET, lw=0.8, zorder=1)
        error.axhline(0, color=QUIET, lw=0.8, zorder=1)
        for axes in (line, error):
            axes.set_xlim(-0.04 * most, 1.06 * most)
            axes.set_xlabel("predicted, ms")
        head(line, "Measured", "ms; on the line: as predicted")
        head(error, "Error", "measured less predicted, ms")
        _means(mean, figures)
        keys = [(Line2D([], [], ls="", ms=4, **_look(look)), name) for name, look in looks.items()]
        return dress(figure, words, keys=keys)


def _looks(figures: Figures) -> Mapping[str, SeriesStyle]:
    """A look of each endpoint."""
    names = dict.fromkeys(str(row["endpoint"]) for row in figures.rows)
    looks = styles([Series(name, "") for name in names])
    return {series.system: look for series, look in looks.items()}


def _against_prediction(
    axes: Axes, figures: Figures, looks: Mapping[str, SeriesStyle], key: str, apart_ms: float = 0.0
) -> None:
    """Draw a mark for each row; those of different endpoints ``apart_ms`` from each other."""
    shifts = {name: apart_ms * n for n, name in enumerate(looks)}
    for row in figures.rows:
        look = looks[row["endpoint"]]
        x = row["predicted_ms"] + shifts[row["endpoint"]]
        axes.errorbar(x, row[key], _whiskers(row, key), mew=0.6, **_MARK, **_look(look))


def _look(look: SeriesStyle) -> dict[str, Any]:
    return {"marker": look.marker, "color": look.dark, "mfc": look.colour}


def _whiskers(row: Row, key: str) -> list[list[float]] | None:
    ends = row[f"{key}_ci95"]
    return None if ends is None else [[row[key] - ends[0]], [ends[1] - row[key]]]


def _means(axes: Axes, figures: Figures) -> None:
    """Draw the mean over clients of each placement, the best predicted on top."""
    head(axes, "Mean over clients", "ms; open: predicted, filled: measured")
    means = placed(figures)
    rows = means.rows if means else ()
    for place, row in enumerate(rows):
        whiskers = _whiskers(row, "measured_ms")
        axes.errorbar(
            row["measured_ms"], place, xerr=whiskers, marker="o", color=INK, mew=0, **_MARK
        )
        axes.plot(row["predicted_ms"], place, "o", mfc="none", mec=QUIET, ms=9, zorder=2)
        regions = [f"{name}*" if name == row["leader"] else name for name in row["regions"]]
        text = axes.text(0.02, place - 0.2, f"{row['rank']}: {' '.join(regions)}", va="bottom")
        text.set(transform=axes.get_yaxis_transform(), fontsize=TINY_PT)
    axes.set_ylim(len(rows) - 0.5, -0.9)
    axes.set_xlim(left=0)
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
