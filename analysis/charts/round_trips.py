"""The chart of round trips: how many each endpoint makes, systems side by side.

A filled mark is the slope of latency against RTT with its interval, a hollow one a critical path in
the packet record, and grey is what no store that keeps its promise can do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts.frame import Words, dress, multiples
from wanlat.analysis.charts.lettering import ASIDE, GROUP, LABEL, Lettering, text_width
from wanlat.analysis.charts.style import (
    ALARM,
    FAINT,
    INK,
    QUIET,
    SMALL_PT,
    SeriesStyle,
    applied,
    styles,
)
from wanlat.analysis.charts.wording import subtitle_of_rtt_steps
from wanlat.analysis.endpoints import row_names
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.figures.round_trips import RoundTrips, Status
from wanlat.analysis.names import EN_DASH, listing, row_labels, series_labels, shortened
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.round_trips import (
    DISAGREEMENT,
    NO_SLOPE,
    or_else,
    path_cell,
    slope_cell,
    usual,
)

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer

_ROW_IN = 0.3
_AREA = 60.0
"""Of the mark of all requests, points²; that of a part of them is as much smaller."""
_LEAST_AREA = 3.0
_SLOPE_AT, _PATH_AT = -0.16, 0.2
"""Of a row's height, from its middle: filled marks are above, hollow ones below."""
_BETWEEN_COLUMNS_PT = 12.0
_WHYS_AT_MOST = 5
_FLOOR = "#ececec"


def draw(answer: Answer) -> Figure:
    """The chart of the section `round_trips`, of a run."""
    rows, entries = answer.figures.rows, answer.figures.arrays
    looks, labels = styles(answer.figures.series), row_labels(answer.figures.series)
    names = row_names([entry.endpoint for entry in entries])
    places: list[float] = []
    heads: dict[float, str] = {}
    y = 0.0
    for name, members in groupby(entries, key=lambda entry: names[entry.endpoint]):
        heads[y] = name.replace("\n", " ")
        places += [y + 0.9 + number for number, _ in enumerate(members)]
        y = places[-1] + 1.0
    words = _words(answer)
    with applied():
        height_in = _ROW_IN * (places[-1] + 1.5)
        figure, (axes,) = multiples(words, 1, columns=1, panel_in=height_in)
        axes.set_ylim(places[-1] + 0.8, -0.6)
        axes.set_xlim(-0.3, _limit(entries))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True))
        axes.grid(visible=False, axis="y")
        axes.set_yticks(
            places, [with_placement(labels[e.series], e.placement) for e in entries], fontsize=8
        )
        axes.tick_params(axis="y", length=0, labelsize=SMALL_PT, labelcolor=INK)
        for y, name in heads.items():
            write(axes, name, (0, y), 3, GROUP)
            if y:
                axes.axhline(y - 0.45, color=FAINT, linewidth=0.7, zorder=0)
        for row, entry, y in zip(rows, entries, places, strict=True):
            _draw_row(axes, row, entry, y, looks[entry.series])
        _write_columns(axes, rows, places)
        full = series_labels(answer.figures.series)
        return dress(figure, words, [(looks[one], full[one]) for one in full])


def _draw_row(axes: Axes, row: Row, entry: RoundTrips, y: float, look: SeriesStyle) -> None:
    if (least := entry.least_round_trips) is not None:
        left = axes.get_xlim()[0]
        axes.barh(y, least - left, left=left, height=0.92, color=_FLOOR, zorder=0.2)
        axes.plot([least, least], [y - 0.46, y + 0.46], color=QUIET, linewidth=1.6, zorder=0.8)
    for number, chain in enumerate(entry.chains):
        disagrees = number == 0 and entry.agrees is False
        axes.scatter(
            chain.round_trips,
            y + _PATH_AT,
            s=max(_AREA * chain.share, _LEAST_AREA),
            marker="D",
            facecolors="white",
            edgecolors=ALARM if disagrees else INK,
            linewidths=0.9,
            zorder=3.2,
            clip_on=False,
        )
    if row["status"] is not Status.LINE:
        why = "no slope" if row["status"] is Status.NO_NUMBER else row["status"]
        left, right = axes.get_xlim()
        at = (max(least or 0.0, 0.0) - left) / (right - left), y + _SLOPE_AT
        write(axes, f"{why}: see below", at, 5, Lettering(SMALL_PT, ALARM))
    for number, mode in reversed(list(enumerate(entry.modes))):
        main = number == 0
        axes.plot(
            mode.ci95,
            [y + _SLOPE_AT] * 2,
            color=INK if main else QUIET,
            linewidth=1.3 if main else 0.9,
            marker="|",
            markersize=6 if main else 4,
            zorder=3,
            clip_on=False,
        )
        axes.scatter(
            mode.round_trips,
            y + _SLOPE_AT,
            s=max(_AREA * mode.share, _LEAST_AREA),
            marker=look.marker,
            color=look.colour,
            edgecolors=look.dark,
            linewidths=0.8,
            zorder=4 if main else 3.5,
            clip_on=False,
        )


def _write_columns(axes: Axes, rows: Sequence[Row], places: Sequence[float]) -> None:
    """The figures to the right of the rows, each column as wide as its widest cell."""
    alarming = Lettering(LABEL.size_pt, ALARM)
    columns = {
        "round trips [95 %]": [(slope_cell(row), bool(row["why"])) for row in rows],
        "critical path": [(path_cell(row) or EN_DASH, row["agrees"] is False) for row in rows],
        "requests": [(str(row["n"]), row["failed"] > 0) for row in rows],
    }
    at_pt = _BETWEEN_COLUMNS_PT
    for header, cells in columns.items():
        lettered = [(axes.get_ylim()[1], header, ASIDE)]
        for y, (cell, is_alarming) in zip(places, cells, strict=True):
            lettered.append((y, cell, alarming if is_alarming else LABEL))
        for y, text, lettering in lettered:
            write(axes, text, (1, y), at_pt, lettering)
        widest_in = max(text_width(text, lettering) for _, text, lettering in lettered)
        at_pt += 72 * widest_in + _BETWEEN_COLUMNS_PT


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    right_pt: float,
    lettering: Lettering,
    of_y: str = "data",
) -> None:
    """Write so far right of a place: x as a share of the axes' width, y in data or as theirs."""
    axes.annotate(
        text,
        at,
        xycoords=("axes fraction", of_y),
        xytext=(right_pt, 0),
        textcoords="offset points",
        va="center",
        fontsize=lettering.size_pt,
        color=lettering.colour,
        fontweight="bold" if lettering.bold else "normal",
        annotation_clip=False,
    )


def _limit(entries: Sequence[RoundTrips]) -> float:
    values = [mode.ci95[1] for entry in entries for mode in entry.modes]
    values += [chain.round_trips for entry in entries for chain in entry.chains]
    values += [entry.least_round_trips or 0.0 for entry in entries]
    return max(1.0, *values) + 0.35


def _words(answer: Answer) -> Words:
    rows, bundle = answer.figures.rows, answer.source
    assert isinstance(bundle, Bundle)
    caption = [
        "Filled: slope of latency against RTT, one mark for each mode, its area by share, with its "
        "95 % interval. Hollow: critical paths in the packet record, by share. The two share "
        "nothing but the requests; red: they disagree.",
        _on_least(rows),
    ]
    if any(is_known(row["placement"]) for row in rows):
        caption.append(MEANING)
    caption += answer.say([NO_SLOPE, DISAGREEMENT])
    if full := shortened(answer.figures.series):
        caption.append(f"In full: {'; '.join(full)}.")
    return Words(
        title=finding(answer),
        subtitle=f"Round trips of one request · {answer.of} · {subtitle_of_rtt_steps(bundle)}",
        x_label="round trips between sites that a request waits for, one after the other",
        caption=tuple(caption),
    )


def finding(answer: Answer) -> str:
    """Of each system the endpoint with the most round trips: "quorum PutObject takes 3 or 1"."""
    labels = row_labels(answer.figures.series)
    most: dict[str, tuple[float, str, str]] = {}
    for row in answer.figures.rows:
        trips = usual(row, "modes" if row["status"] is Status.LINE else "chains")
        if trips:
            name = labels[series_of(row)]
            found = max(trips)[0], f"{name} {row['endpoint']}", or_else(trips, 0)
            most[name] = max(most.get(name, found), found, key=lambda each: each[0])
    if not most:
        return "No number of round trips"
    (_, name, said), *others = sorted(most.values(), key=lambda each: -each[0])
    first = f"{name} takes {said} round trip{'' if said == '1' else 's'}"
    return ", ".join([first, *(f"{name} {said}" for _, name, said in others)])


def _on_least(rows: Sequence[Row]) -> str:
    """What grey means, in plain words, and the reason of the most frequent cases."""
    known = [row for row in rows if row["least_round_trips"] is not None]
    if not known:
        return "What no store could beat is not known for this run."
    whys = [
        row["least_why"].rstrip(".")
        for row in known
        if row["least_round_trips"] and row["least_why"]
    ]
    ordered = sorted(dict.fromkeys(whys), key=lambda why: -whys.count(why))
    because = f" Why: {listing(ordered, _WHYS_AT_MOST)}." if ordered else ""
    unknown = " Rows without grey: not known." if len(known) < len(rows) else ""
    return (
        "Grey: the lower bound. No store that makes this one's promise, with its replicas where "
        f"they are, can do with fewer.{because}{unknown}"
    )
