"""The index of many bundles: what each request of each system takes, what each drill found.

A table and a chart of round trips, and a table of drills. A row has the figures of every cluster
that it was measured on, one after the other, and says how many these are: nothing is averaged
over clusters, and nothing ranked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wanlat.analysis.bundle import Series, read_bundle, read_manifest
from wanlat.analysis.endpoints import PLACEMENTS, endpoint_order, with_placement
from wanlat.analysis.figures.drill.matrix import DrillMatrix, read_matrix, worst
from wanlat.analysis.figures.result import Row
from wanlat.analysis.figures.round_trips import (
    NO_SLOPE,
    RoundTrips,
    path_cell,
    round_trips,
    slope_cell,
)
from wanlat.analysis.grid import Grid, markdown
from wanlat.analysis.names import count, format_ms, row_labels, series_labels, shortened
from wanlat.analysis.report import replace_text
from wanlat.analysis.report.drill import NOT_RUN, durability_text, recovery_text, scaled
from wanlat.bundle.errors import BundleError

PAGE, CHART = "README.md", "round-trips"
RTT_MS, _NEAR_MS = 100.0, 5.0
"""The RTT that latencies are given at, and how far from it one that was measured may lie."""


@dataclass(frozen=True)
class Line:
    """One operation of one version of a system on one topology: an entry for each cluster."""

    series: Series
    topology: str
    endpoint: str
    placement: str
    rows: tuple[Row, ...]
    entries: tuple[RoundTrips, ...]

    @property
    def clusters(self) -> str:
        """How many clusters its figures are of."""
        return "one cluster" if len(self.rows) == 1 else f"{len(self.rows)} clusters"

    def each(self, cell: Callable[[Row], str | None]) -> str:
        """A cell that has what every cluster says, once where all say the same."""
        return "; ".join(dict.fromkeys(cell(row) or "" for row in self.rows))

    @property
    def latency(self) -> str:
        """The median latency at `RTT_MS`, ms, of each cluster."""
        points = [each.points for each in self.entries]
        ms = [each.latency_ms[abs(each.rtt_ms - RTT_MS) <= _NEAR_MS] for each in points]
        return "; ".join(format_ms(float(np.median(each)) if each.size else None) for each in ms)


def write_index(places: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write the index of all bundles below `places` into `out`, and return what was written.

    README.md and round-trips.png; the same bundles give the same bytes. Raises BundleError where
    there is none of round trips and none of a drill, or `out` cannot be written.
    """
    from wanlat.analysis.charts.index import draw
    from wanlat.analysis.charts.style import save

    found = _bundles(places)
    studies = [each for each in found if read_manifest(each)["kind"] == "study"]
    used, lines = _lines(studies)
    drills = [each for each in found if read_manifest(each)["kind"] == "drill"]
    if not used and not drills:
        where = ", ".join(map(str, places))
        raise BundleError(
            f"There is no bundle of round trips and none of a drill below {where}. "
            "`wanlat run round-trips` and `wanlat drill run` make some."
        )
    matrix = read_matrix(drills) if drills else None
    grids = [*([_operations(lines)] if lines else []), *([_drills(matrix)] if matrix else [])]
    pictures = save(draw(lines), out / CHART, svg=False) if lines else ()
    text = "\n".join(
        [
            "# Index\n",
            "Made by `wanlat report --index`; not written by hand. A row is what was measured, on "
            "as many clusters as it says, and no figure is compared with another one here: "
            "systems differ in what they promise, topologies in where the replicas are.\n",
            *([f"![Round trips of every operation]({CHART}.png)\n"] if lines else []),
            *map(markdown, grids),
            "Bundles:\n",
            *(f"- [{path}]({path})" for path in (os.path.relpath(each, out) for each in used)),
            *([f"- {count(len(drills), 'bundle')} of drills"] if drills else []),
        ]
    )
    replace_text(out / PAGE, f"{text}\n")
    return (out / PAGE, *pictures)


def _bundles(places: Sequence[Path]) -> list[Path]:
    """All bundles below, those in others included."""
    manifests = {path for place in places for path in place.glob("**/manifest.json")}
    return sorted(path.parent for path in manifests)


def _lines(directories: Sequence[Path]) -> tuple[list[Path], list[Line]]:
    """The bundles that have round trips, and what they say."""
    used, cells = list[Path](), dict[tuple[Series, str, str, str], list[tuple[Row, RoundTrips]]]()
    for directory in directories:
        bundle = read_bundle(directory) if (directory / "rtt_steps.json").exists() else None
        figures = round_trips(bundle) if bundle and bundle.status == "complete" else None
        if figures is None:
            continue
        used.append(directory)
        for row, entry in zip(figures.rows, figures.arrays, strict=True):
            key = entry.series, entry.topology, entry.endpoint, entry.placement
            cells.setdefault(key, []).append((row, entry))
    order = endpoint_order(endpoint for _, _, endpoint, _ in cells)

    def place(key: tuple[Series, str, str, str]) -> tuple[object, ...]:
        series, topology, endpoint, placement = key
        return order.index(endpoint), topology, series, PLACEMENTS.index(placement)

    return used, [
        Line(*key, *(tuple(each) for each in zip(*cells[key], strict=True)))
        for key in sorted(cells, key=place)
    ]


def _operations(lines: Sequence[Line]) -> Grid:
    series = list(dict.fromkeys(line.series for line in lines))
    labels, full = series_labels(series), shortened(series)
    headers = (
        *("operation", "topology", "system", "round trips [95 %]", "critical path"),
        *("lower bound", f"median at {RTT_MS:g} ms RTT, ms", "measured on"),
    )
    rows = [
        (
            with_placement(line.endpoint, line.placement),
            *(line.topology, labels[line.series]),
            *(line.each(slope_cell), line.each(path_cell)),
            line.each(lambda row: _known(row["least_round_trips"])),
            *(line.latency, line.clusters),
        )
        for line in lines
    ]
    notes = [
        "Round trips are the slope of latency against RTT, with what else a fifth of the requests "
        "or more take; the critical path is counted in the packet record. The lower bound is what "
        "no store that makes the same promise can do without, with its replicas where they are. "
        "Several clusters are divided by semicolons.",
        *([said] if (said := no_slope(lines)) else []),
        *([f"In full: {'; '.join(full)}."] if full else []),
    ]
    words = frozenset(headers) - {"lower bound", headers[6]}
    return Grid("Every system, every operation", headers, tuple(rows), words, tuple(notes))


def _known(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _drills(matrix: DrillMatrix) -> Grid:
    labels = series_labels(matrix.series)
    rows = []
    for key in matrix.drills:
        cells = []
        for one in labels:
            runs = matrix.cells.get((key, one), ())
            verdict = runs and worst(runs).figures["durability"]["verdict"]
            said = f"{verdict}: {durability_text(runs)}; {recovery_text(runs[0])}" if runs else ""
            cells.append(said or NOT_RUN)
        rows.append((f"{key.name}{scaled(key.scale)}", key.topology, *cells))
    headers = ("drill", "topology", *labels.values())
    note = (
        "Durability, and when all was normal again after the first fault. One run of one cluster "
        "where no number of runs is given."
    )
    return Grid("Every system, every drill", headers, tuple(rows), frozenset(headers), (note,))


def no_slope(lines: Sequence[Line]) -> str | None:
    """Where latencies are on no line, and why."""
    return NO_SLOPE.of([(line.endpoint, row) for line in lines for row in line.rows])


def labels_of(lines: Sequence[Line]) -> dict[Series, str]:
    """What the chart calls each system."""
    return row_labels(list(dict.fromkeys(line.series for line in lines)))
