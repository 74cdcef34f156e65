"""The index of many bundles: what each request of each system takes, what each drill found.

A table and a chart of round trips, and a table of drills. A row has the figures of every cluster
that it was measured on, of three and more their mean, and states how many these are. Nothing is
ranked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.drill.matrix import DrillMatrix, DrillRun, read_drills, worst
from wanlat.analysis.figures.index import RTT_MS, Line, no_slope, read_lines, what_decides
from wanlat.analysis.figures.round_trips import path_cell
from wanlat.analysis.files import replace_text
from wanlat.analysis.names import count, series_labels, shortened
from wanlat.analysis.report.drill import NOT_RUN, durability_text, recovery_text, scaled
from wanlat.analysis.section import Grid, markdown
from wanlat.bundle.documents import Titles, titles_of
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import bundles_below, read_manifest

PAGE, CHART = "README.md", "round-trips"


def write_index(places: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write the index of all bundles below `places` into `out`, and return what was written.

    README.md and round-trips.png; the same bundles give the same bytes. Raises BundleError where
    there is none of round trips and none of a drill, or `out` cannot be written.
    """
    from wanlat.analysis.charts.index import draw
    from wanlat.analysis.charts.style import save

    bundles = sorted({bundle for place in places for bundle in bundles_below(place)})
    manifests = {bundle: read_manifest(bundle) for bundle in bundles}
    titles = titles_of(*manifests.values())
    studies = [bundle for bundle, its in manifests.items() if its.kind == "study"]
    used, lines = read_lines(studies)
    drills = [bundle for bundle, its in manifests.items() if its.kind == "drill"]
    if not used and not drills:
        where = ", ".join(map(str, places))
        raise BundleError(
            f"There is no bundle of round trips and none of a drill below {where}. "
            "`wanlat run round-trips` and `wanlat drill run` make some."
        )
    matrix = read_drills(drills) if drills else None
    grids = [
        *([_operations(lines, titles)] if lines else []),
        *([_drills(matrix)] if matrix else []),
    ]
    pictures = save(draw(lines, titles), out / CHART, svg=False) if lines else ()
    text = "\n".join(
        [
            "# Index\n",
            "Made by `wanlat report --index`; not written by hand. A row is what was measured, on "
            "as many clusters as it says, and no figure is compared with another one here: "
            "systems differ in what they promise, topologies in where the replicas are.\n",
            *([f"![Round trips of every operation]({CHART}.png)\n"] if lines else []),
            *map(markdown, grids),
            "Bundles:\n",
            *(f"- [{path}]({path})" for path in dict.fromkeys(_whole(own, out) for own in used)),
            *([f"- {count(len(drills), 'bundle')} of drills"] if drills else []),
        ]
    )
    replace_text(out / PAGE, f"{text}\n")
    return (out / PAGE, *pictures)


def _whole(bundle: Path, out: Path) -> str:
    """The way to a bundle; of a point to that which it is a point of."""
    return os.path.relpath(bundle.parents[1] if bundle.parent.name == "points" else bundle, out)


def _operations(lines: Sequence[Line], titles: Titles) -> Grid:
    series = list(dict.fromkeys(line.series for line in lines))
    labels, full = series_labels(series, titles), shortened(series, titles)
    headers = (
        *("operation", "topology", "system", "target node", "round trips [95 %]"),
        *("critical path", "by its protocol", "lower bound"),
        *(f"median at {RTT_MS:g} ms RTT, ms", "measured on"),
    )
    rows = [
        (
            with_placement(line.endpoint, line.placement),
            *(line.topology, labels[line.series], line.target),
            *(line.headline, line.per_cluster(path_cell)),
            line.per_cluster(lambda row: _known(row["promised_round_trips"])),
            line.per_cluster(lambda row: _known(row["least_round_trips"])),
            *(line.latency, line.clusters),
        )
        for line in lines
    ]
    notes = [
        "Round trips are the slope of latency against RTT; where requests differ, each whole "
        "number that a twentieth of them take or more, with its share. The critical path is "
        "counted in the packet record. The lower bound is what no store that makes the same "
        "promise can do without, with its replicas where they are; by its protocol: what the "
        "system's own documents say, where its definition has it. Two clusters are divided by a "
        "semicolon; of more the mean and Student's interval are given.",
        "Target node: whether it is the one that leads, of systems that have one.",
        *filter(None, (what_decides(lines, titles), no_slope(lines, titles))),
        *([f"In full: {'; '.join(full)}."] if full else []),
    ]
    words = frozenset(headers) - {"by its protocol", "lower bound", headers[-2]}
    return Grid("Every system, every operation", headers, tuple(rows), words, tuple(notes))


def _known(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _drills(matrix: DrillMatrix) -> Grid:
    labels = series_labels(matrix.series, matrix.titles)
    rows = []
    for key in matrix.drills:
        cells = []
        for one in labels:
            runs = matrix.cells.get((key, one), ())
            verdict = runs and worst(runs).figures["durability"]["verdict"]
            cell = f"{verdict}: {durability_text(runs)}; {_recoveries(runs)}" if runs else NOT_RUN
            cells.append(cell)
        rows.append((f"{key.name}{scaled(key.scale)}", key.topology, *cells))
    headers = ("drill", "topology", *labels.values())
    note = (
        "Durability in the worst of the runs, and when all was normal again after the first fault, "
        "in each; where drills ran beside each other only whether it was. One run of one cluster "
        "where no number of runs is given."
    )
    return Grid("Every system, every drill", headers, tuple(rows), frozenset(headers), (note,))


def _recoveries(runs: Sequence[DrillRun]) -> str:
    """When all was normal again in each run: "back in 30.2 s, 58.6 s or not back"."""
    back = "back in "
    texts = dict.fromkeys(map(recovery_text, runs))
    in_order = sorted(texts, key=lambda text: not text.startswith(back))
    return " or ".join(in_order).replace(f" or {back}", ", ")
