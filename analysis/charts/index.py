"""The chart of an index: round trips of every operation, a row for each system and topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from wanlat.analysis.charts import rows
from wanlat.analysis.charts.frame import Words, caption, legend
from wanlat.analysis.charts.round_trips import chart_of_marks
from wanlat.analysis.charts.style import styles
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.index import Line, labels_of, no_slope
from wanlat.analysis.figures.round_trips import or_else, path_cell, ways
from wanlat.analysis.names import EN_DASH, count
from wanlat.analysis.section import Answer, series_of, written
from wanlat.bundle.documents import Titles


def of_clusters(answer: Answer) -> Mapping[str, Figure]:
    """The same of a study that was run on several clusters."""
    figures = answer.figures
    lines = [
        Line(
            series_of(row),
            ", ".join(written(row[name]) for name in figures.parameters),
            row["endpoint"],
            "",
            row["placement"],
            tuple(clusters),
            tuple(cluster["entry"] for cluster in clusters),
        )
        for row, clusters in zip(figures.rows, figures.arrays, strict=True)
        if row["clusters"] > 1 and row["ways"]
    ]
    if not lines:
        return {}
    most = max(lines, key=lambda line: len(ways(line.rows)))
    numbers = [(way["round_trips"], way["share"]) for way in ways(most.rows)]
    label = labels_of(lines, figures.titles)[most.series]
    name = with_placement(f"{label} {most.endpoint}", most.placement)
    finding = f"{name} takes {or_else(numbers, 0)} round trips"
    title = finding, f"{answer.subject}, cluster by cluster"
    return {"clusters-round-trips": draw(lines, figures.titles, title)}


def draw(lines: Sequence[Line], titles: Titles, title: tuple[str, str] | None = None) -> Figure:
    """The chart of `lines`, in their order; `title`: a finding, and what it is of."""
    series = list(dict.fromkeys(line.series for line in lines))
    looks, labels = styles(series), labels_of(lines, titles)
    placed = {(line.series, line.placement) for line in lines}
    of_all = (
        f"Round trips of {count(len(lines), 'operation')} of {count(len(series), 'system')}",
        "Every operation of every system, on every topology that it was measured on",
    )
    words = Words(
        *(title or of_all),
        "round trips between sites that a request waits for, one after the other",
        caption(
            series,
            titles,
            placed,
            "Filled: slope of latency against RTT, one mark for each mode and cluster, its area by "
            "share, with its 95 % interval. Hollow: critical paths in the packet record. Red: the "
            "two disagree. Grey: the lower bound, where it is known.",
            no_slope(lines, titles),
        ),
    )
    beside = [
        rows.Row(
            line.endpoint,
            ", ".join(filter(None, (labels[line.series], line.topology, line.target))),
            line.placement,
            (line.per_cluster(path_cell) or EN_DASH, line.clusters),
        )
        for line in lines
    ]
    headers = ("critical path", "measured on")
    marks = [(line.entries, looks[line.series]) for line in lines]
    return chart_of_marks(words, beside, headers, marks, legend(series, titles, placed), 0.24)
