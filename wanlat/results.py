"""Shows what a bundle holds: the tables, and where the charts are."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.drill.table import print_drill
from analysis.errors import BundleError
from analysis.grid import print_grid, print_notes
from analysis.report import Report, report
from analysis.sweep import is_sweep
from analysis.sweep_report import SweepReport, report_sweep
from analysis.table import print_table
from topologies.errors import UserError
from wanlat.output import emit, people, say


def make_report(bundle: Path) -> Report | SweepReport:
    """Write the summary and the charts of a bundle, or of a sweep's. Raises UserError."""
    try:
        return report_sweep(bundle) if is_sweep(bundle) else report(bundle)
    except BundleError as error:
        raise UserError(str(error)) from error


def show_report(bundle: Path, *, as_json: bool) -> Report | SweepReport:
    """Make a bundle's report, show it and return it. Raises UserError."""
    made = make_report(bundle)
    if isinstance(made, SweepReport):
        from analysis.sweep_table import print_sweep

        print_sweep(made.summary, people)
    else:
        _show_run(made)
    if made.tables_path is not None:
        say(f"tables: {made.tables_path}")
    for chart in made.charts:
        if chart.suffix == ".png":
            say(f"chart: {chart}")
    if as_json:
        emit(json.loads(made.summary_path.read_text(encoding="utf-8")))
    return made


def _show_run(made: Report) -> None:
    if made.drill is not None:
        print_drill(made.drill, people)
    elif made.summary.groups:
        print_table(made.summary, people)
    else:
        print_notes(made.summary.notes, people)
    for block in made.summary.blocks.values():
        for grid in block.grids():
            if not grid.long:
                people.print()
                print_grid(grid, people)
