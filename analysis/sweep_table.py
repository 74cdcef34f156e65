"""The tables of a sweep: the latencies of every point, and how each point ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from wanlat.analysis.blocks import printed
from wanlat.analysis.grid import Grid, print_grid, print_notes
from wanlat.analysis.names import EN_DASH, format_ms, row_labels
from wanlat.analysis.placement import is_known
from wanlat.analysis.round_trips_table import CHAIN, ROUND_TRIPS
from wanlat.analysis.round_trips_table import cells_of as round_trips_cells
from wanlat.analysis.sweep import Point
from wanlat.analysis.table import format_interval

if TYPE_CHECKING:
    from rich.console import Console

    from wanlat.analysis.blocks import Block
    from wanlat.analysis.bundle import Series
    from wanlat.analysis.summary import EndpointSummary
    from wanlat.analysis.sweep_summary import SweepSummary

_SYSTEM, _ENDPOINT, _PLACEMENT = "system", "endpoint", "placement"
_LATENCIES = ("n", "ok/fail/unknown", "mean [95 %] ms", "median ms", "p95 ms", "max ms")


def print_sweep(summary: SweepSummary, console: Console, *, verbose: bool = True) -> None:
    """Print the tables of `summary` that are not long, then its notes.

    Without `verbose` those of resource usage are left out.
    """
    shown = printed(summary.blocks, verbose=verbose)
    grids = [grid for grid in (*_own(summary), *_of_blocks(shown)) if not grid.long]
    for number, grid in enumerate(grids):
        if number:
            console.print()
        print_grid(grid, console)
    if not grids:
        console.print(f"{summary.sweep.study}: no point is complete.", markup=False)
    print_notes(summary.notes, console)


def grids_of(summary: SweepSummary) -> list[Grid]:
    """Every table: latencies of all points, where no block has the same rows, then the blocks'."""
    return [*_own(summary), *_of_blocks(summary.blocks.values())]


def _own(summary: SweepSummary) -> list[Grid]:
    return latencies(summary) if summary.has_rows_of_its_own else []


def _of_blocks(blocks: Iterable[Block]) -> list[Grid]:
    return [grid for block in blocks for grid in block.grids()]


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
