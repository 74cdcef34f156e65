"""The frame of a chart, and its words: title, subtitle, legend, small multiples, caption.

matplotlib's constrained layout gives panels and what belongs to them their places; a figure grows
by the lines that stand above and below.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import offset_copy
from numpy.typing import NDArray

from wanlat.analysis.charts.style import ASIDE, SMALL_PT, SUBTITLE, TITLE, Look, SeriesStyle, styles
from wanlat.analysis.endpoints import MEANING, is_known, with_placement
from wanlat.analysis.figures.rtt_steps import rtt_steps
from wanlat.analysis.names import EN_DASH, count, format_ms, series_labels, shortened
from wanlat.analysis.summary import program_note
from wanlat.bundle.documents import REMOTE, UNKNOWN, Titles
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run, Series

WIDTH_IN = 10.0
_LINE = 1.35
"""Of a line, in sizes of its letters."""
_LETTERS = {False: 126, True: 120}
"""So many letters of one point stand in an inch, bold ones or not."""
_MARGIN_IN, _LEGEND_IN, _IN_A_LINE = 0.1, 0.23, 5

Source = Run | Matrix | None
"""What a section is of; a run, where a chart states its network."""
Placed = tuple[Series, str]
"""A series, and a placement of its requests."""

_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Words:
    """All text around the panels; `caption` is a sequence of paragraphs."""

    title: str
    subtitle: str
    x_label: str = ""
    caption: tuple[str, ...] = ()


def sheet(width_in: float, height_in: float) -> Figure:
    """An empty figure of that size, inches, which lays out its panels itself."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def multiples(
    words: Words,
    panels: int,
    *,
    columns: int = 3,
    panel_in: float = 2.4,
    y_label: str = "",
    share: Literal["all", "col"] = "all",
    share_y: bool = True,
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels on common axes, row by row.

    `share`: axes are common to all panels, or to those of a column; heights only if `share_y`.
    Draw in the style (`style.applied`), and end with `dress`.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = sheet(WIDTH_IN, 0.3 + rows * panel_in)
    heights = share if share_y else "none"
    grid = figure.subplots(rows, columns, sharex=share, sharey=heights, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for one in axes[:panels]:
        one.grid(visible=True, zorder=0)
        one.tick_params(length=2.5, pad=2)
    for lowest in axes[max(panels - columns, 0) : panels]:
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel(words.x_label)
    for leftmost in axes[:panels:columns]:
        leftmost.set_ylabel(y_label)
    return figure, axes[:panels]


def head(axes: Axes, name: str, what: str) -> None:
    """Write the name of a panel above it, and below that what it shows."""
    axes.set_title(what, loc="left", fontsize=SMALL_PT, pad=4)
    up_pt = 5 + (what.count("\n") + bool(what)) * SMALL_PT * _LINE
    above = offset_copy(axes.transAxes, axes.get_figure(root=True), y=up_pt, units="points")
    axes.text(0, 1, name, transform=above, fontweight="bold")


def dress(
    figure: Figure,
    words: Words,
    looks: Sequence[tuple[SeriesStyle, str]] = (),
    *,
    keys: Sequence[tuple[Any, str]] = (),
    verdicts: Sequence[tuple[str, Look]] = (),
) -> Figure:
    """Add the title, the subtitle and a legend of series above, the caption below, and lay out.

    A chart that has no series has `keys` in its legend: an artist, or a tuple of artists that stand
    side by side, and what it means. `verdicts` are lines of their own below the subtitle.
    """
    figure.set_label(words.title)  # for whoever shows it: the finding in words
    width_in, panels_in = figure.get_size_inches()
    above = _lines([(words.title, TITLE), (words.subtitle, SUBTITLE), *verdicts], width_in)
    below = _lines([(text, ASIDE) for text in words.caption], width_in)
    entries = [((swatch(look), mark(look)), label) for look, label in looks] + list(keys)
    legend_in = -(-len(entries) // _IN_A_LINE) * _LEGEND_IN
    up_in, down_in = (
        _MARGIN_IN + sum(look["fontsize"] for _, look in lines) * _LINE / 72
        for lines in (above, below)
    )
    height_in = up_in + legend_in + panels_in + down_in
    figure.set_figheight(height_in)
    for lines, top_in in ((above, height_in - _MARGIN_IN), (below, down_in - _MARGIN_IN / 2)):
        y_in = top_in
        for text, look in lines:
            figure.text(0.015, y_in / height_in, text, va="top", **look)
            y_in -= look["fontsize"] * _LINE / 72
    if entries:
        figure.legend(
            *zip(*entries, strict=True),
            loc="upper left",
            bbox_to_anchor=(0.01, 1 - up_in / height_in),
            borderaxespad=0,
            ncols=_IN_A_LINE,
            handler_map={tuple: HandlerTuple(ndivide=None if keys else 1, pad=0)},
            markerscale=1.5 if keys else 1.0,
        )
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0.01, down_in / height_in, 0.98, panels_in / height_in))
        engine.execute(figure)  # once, for all files that it is saved as
        figure.set_layout_engine(None)
    return figure


def swatch(style: SeriesStyle) -> Patch:
    """The patch that stands for a series in a legend."""
    return Patch(facecolor=style.fill, edgecolor=style.dark, hatch=style.hatch, linewidth=0.9)


def mark(style: SeriesStyle) -> Line2D:
    """The mark on it."""
    face, edge = style.dot
    width = 0.9 if style.is_remote else 0.5
    return Line2D([], [], ls="", marker=style.marker, ms=4.5, mfc=face, mec=edge, mew=width)


def round_ticks(axis: Axis, most: int = 6) -> None:
    """At most so many ticks, at round numbers."""
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))


def log_ticks(axis: Axis, span: float = 1e9) -> None:
    """Ticks of a logarithmic axis as plain numbers, the more the fewer decades it spans."""
    subs = (1,) if span > 1e3 else (1, 2, 5) if span > 10 else (1, 1.5, 2, 3, 5, 7)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def spread(n: int) -> NDArray[np.float64]:
    """Where across a strip each of n samples lies, shape (n,), in -0.5..0.5.

    Evenly, and the same each time: fractional parts of multiples of the golden ratio, the most
    even of such sequences.
    """
    return np.arange(1.0, n + 1.0) * _GOLDEN % 1.0 - 0.5


def _lines(texts: Sequence[tuple[str, Look]], width_in: float) -> list[tuple[str, Look]]:
    """Texts in lines that the figure's width has room for."""
    return [
        (line, look)
        for text, look in texts
        for line in textwrap.wrap(
            text, int(_LETTERS["fontweight" in look] * width_in / look["fontsize"])
        )
    ]


def subtitle(bundle: Source) -> str:
    """What the network is, or was while its RTT was changed, and where the client stands."""
    assert isinstance(bundle, Run)
    topology, client = bundle.manifest.topology, bundle.manifest.client
    sites, steps = bundle.manifest.site_of_node, rtt_steps(bundle)
    parts = [f"{count(len(set(sites.values())), 'site')}, {count(len(sites), 'node')}"]
    if steps:
        listed = ", ".join(f"{ms:g}" for ms in sorted({step.requested_rtt_ms for step in steps}))
        parts += [f"every WAN link at RTTs of {listed} ms, {count(len(steps), 'RTT step')}"]
    elif topology and topology.description:
        parts = [topology.description.strip().rstrip(".")]
    if client and client.site:
        parts.append(f"client in {client.site}, node {client.node}")
    return " · ".join(parts)


def rtt_sentence(bundle: Source, *, lines: bool = True) -> str:
    """The RTT that was measured; with `lines`, why a chart has none at its multiples."""
    assert isinstance(bundle, Run)
    parts = []
    for where, rtt in (
        ("between sites", bundle.measured_rtt),
        ("inside a site", bundle.measured_rtt_within),
    ):
        if rtt is not None:
            low, high = format_ms(rtt.low_pair_ms), format_ms(rtt.high_pair_ms)
            parts.append(
                f"{where}: median {format_ms(rtt.median_ms)} ms over "
                f"{count(rtt.pairs, 'ordered pair')} ({low}{EN_DASH}{high} ms), single round trips "
                f"{format_ms(rtt.min_ms)}{EN_DASH}{format_ms(rtt.max_ms)} ms"
            )
    if not parts:
        return "RTT: not calibrated, so not known."
    is_uneven = bundle.measured_rtt is not None and not bundle.measured_rtt.is_uniform
    uneven = " No lines at its multiples, because the pairs are not equally far apart."
    return f"Measured RTT {'; '.join(parts)}.{uneven if lines and is_uneven else ''}"


def error_sentences(source: Source) -> tuple[str | None, str | None]:
    """What the network, and a program that makes the requests, add to each sample."""
    return lateness_sentence(source), program_note(source)


def lateness_sentence(bundle: Source | None) -> str | None:
    """Such as "Network error during a sample: median 0.000 ms, p99 0.41 ms, at most 1.2 ms."."""
    if not isinstance(bundle, Run) or bundle.network_error_ms is None:
        return None
    median, p99, most = (format_ms(ms) for ms in bundle.network_error_ms)
    left_out = f"; {count(bundle.late, 'sample')} with more left out" if bundle.late else ""
    figures = f"median {median} ms, p99 {p99} ms, at most {most} ms"
    return f"Network error during a sample: {figures}{left_out}."


def legend(
    series: Sequence[Series], titles: Titles, placed: Collection[Placed] = ()
) -> list[tuple[SeriesStyle, str]]:
    """An entry for each of `series`, and one more where it has remote marks.

    Local marks and those of unknown placement look alike; where all of them are local, the legend
    shows it too.
    """
    labels, looks, entries = series_labels(series, titles), styles(series), []
    for one in series:
        placements = {placement for other, placement in placed if other == one} or {UNKNOWN}
        near = placements - {REMOTE}
        shown = [min(near) if len(near) == 1 else UNKNOWN] if near else []
        for placement in (*shown, *(placements & {REMOTE})):
            entries.append((looks[one].at(placement), with_placement(labels[one], placement)))
    return entries


def caption(
    series: Sequence[Series], titles: Titles, placed: Collection[Placed], *texts: str | None
) -> tuple[str, ...]:
    """Paragraphs of a caption: texts of the chart, what placements are, versions in full."""
    meaning = MEANING if any(is_known(placement) for _, placement in placed) else None
    full = "; ".join(shortened(series, titles))
    return tuple(text for text in (*texts, meaning, full and f"In full: {full}.") if text)
