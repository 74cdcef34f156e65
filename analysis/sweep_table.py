"""The tables of a sweep: the latencies of every point, and how each point ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.grid import Grid, print_grid, print_notes
from analysis.names import EN_DASH, format_ms, row_labels
from analysis.placement import is_known
from analysis.round_trips_table import CHAIN, ROUND_TRIPS
from analysis.round_trips_table import cells_of as round_trips_cells
from analysis.sweep import Point
from analysis.table import format_interval

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.bundle import Series
    from analysis.summary import EndpointSummary
    from analysis.sweep_summary import SweepSummary

_SYSTEM, _ENDPOINT, _PLACEMENT = "system", "endpoint", "placement"
_LATENCIES = ("n", "ok/fail/unknown", "mean [95 %] ms", "median ms", "p95 ms", "max ms")


def print_sweep(summary: SweepSummary, console: Console) -> None:
    """Print every table of `summary` that is not long, then its notes."""
    grids = [grid for grid in grids_of(summary) if not grid.long]
    for number, grid in enumerate(grids):
        if number:
            console.print()
        print_grid(grid, console)
    if not grids:
        console.print(f"{summary.sweep.study}: no point is complete.", markup=False)
    print_notes(summary.notes, console)


def grids_of(summary: SweepSummary) -> list[Grid]:
    """Every table: latencies of all points, where no block has the same rows, then the blocks'."""
    own = latencies(summary) if summary.has_rows_of_its_own else []
    return [*own, *(grid for block in summary.blocks.values() for grid in block.grids())]


def latencies(summary: SweepSummary) -> list[Grid]:
    """A row an endpoint and placement of each complete point; none without such rows."""
    grids = []
    title = f"{summary.sweep.study} on {summary.sweep.topology}"
    if summary.entries:
        rows = [(p, e.series, e.endpoint, e.placement, _cells(e)) for p, e in summary.entries]
        troubled = [bool(e.fail or e.unknown) for _, e in summary.entries]
        grids.append(_grid(summary, title, _LATENCIES, rows, troubled))
    if summary.round_trips:
        headers = (ROUND_TRIPS, CHAIN, "own ms", "modes", "n")
        of_trips = [
            (p, e.series, e.endpoint, e.placement, [round_trips_cells(e)[h] for h in headers])
            for p, e in summary.round_trips
        ]
        troubled = [bool(e.failed or e.why) for _, e in summary.round_trips]
        grids.append(_grid(summary, title, headers, of_trips, troubled))
    return grids


_Row = tuple[Point, "Series", str, str, Sequence[str]]


def _grid(
    summary: SweepSummary,
    title: str,
    figures: Sequence[str],
    rows: Sequence[_Row],
    troubled: Sequence[bool],
) -> Grid:
    parameters = [parameter.name for parameter in summary.sweep.parameters]
    labels = row_labels(summary.series)
    placed = any(is_known(placement) for _, _, _, placement, _ in rows)
    names = (*parameters, _SYSTEM, _ENDPOINT, *((_PLACEMENT,) if placed else ()))
    cells = [
        (
            *(written(point.value(name)) for name in parameters),
            labels[series],
            endpoint,
            *((placement,) if placed else ()),
            *of_row,
        )
        for point, series, endpoint, placement, of_row in rows
    ]
    return Grid(
        title=title,
        headers=(*names, *figures),
        rows=tuple(cells),
        text=frozenset((_SYSTEM, _ENDPOINT, _PLACEMENT)),
        troubled=frozenset(number for number, is_bad in enumerate(troubled) if is_bad),
        sections=frozenset(
            number
            for number in range(len(rows) - 1)
            if dict(rows[number][0].values) != dict(rows[number + 1][0].values)
        ),
    )


def written(value: object) -> str:
    """A parameter's value as a table has it."""
    if value is None:
        return EN_DASH
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cells(entry: EndpointSummary) -> list[str]:
    counts = [str(entry.n), f"{entry.ok}/{entry.fail}/{entry.unknown}"]
    latency = entry.latency
    if latency is None:
        return [*counts, *[EN_DASH] * (len(_LATENCIES) - len(counts))]
    return [
        *counts,
        f"{format_ms(latency.mean_ms)} {format_interval(latency.mean_ci95_ms)}",
        format_ms(latency.median_ms),
        format_ms(latency.p95_ms),
        format_ms(latency.max_ms),
    ]
