"""Shows what a bundle holds: the tables, and where the charts are."""

from __future__ import annotations

import json
from pathlib import Path

from wanlat.analysis.blocks import printed
from wanlat.analysis.drill.table import print_drill
from wanlat.analysis.grid import print_grid, print_notes
from wanlat.analysis.report import Report, report
from wanlat.analysis.sweep import is_sweep
from wanlat.analysis.sweep_report import SweepReport, report_sweep
from wanlat.analysis.table import print_in_words, print_table
from wanlat.output import emit, people, say


def show_report(bundle: Path, *, as_json: bool, verbose: bool = False) -> Report | SweepReport:
    """Write a bundle's summary, tables and charts, show them, and return where they are.

    ``verbose``: with its tables of resources. Raises BundleError.
    """
    made = report_sweep(bundle) if is_sweep(bundle) else report(bundle)
    if isinstance(made, SweepReport):
        from wanlat.analysis.sweep_table import print_sweep

        print_sweep(made.summary, people, verbose=verbose)
    else:
        _show_run(made, verbose=verbose)
    _name_files(made, verbose=verbose)
    if as_json:
        emit(json.loads(made.summary_path.read_text(encoding="utf-8")))
    return made


def _show_run(made: Report, *, verbose: bool) -> None:
    summary = made.summary
    if made.drill is not None:
        print_drill(made.drill, people)
    elif summary.in_rtts is not None:
        print_table(summary, people, with_notes=False)
        people.print()
        print_in_words(summary, summary.in_rtts, people)
    elif summary.groups:
        print_table(summary, people)
    else:
        print_notes(summary.notes, people)
    for block in printed(summary.blocks, verbose=verbose):
        for grid in block.grids():
            if not grid.long:
                people.print()
                print_grid(grid, people)


def _name_files(made: Report | SweepReport, *, verbose: bool) -> None:
    """Say where the tables and charts are; of a study of single requests only its main chart."""
    if made.tables_path is not None:
        has_more = len(printed(made.summary.blocks, verbose=verbose)) < len(made.summary.blocks)
        more = " (with resource usage, which `wanlat report -v` prints)" if has_more else ""
        say(f"tables: {made.tables_path}{more}")
    charts = [chart for chart in made.charts if chart.suffix == ".png"]
    if isinstance(made, Report) and made.summary.in_rtts is not None and charts:
        main, *others = charts
        names = ", ".join(chart.stem for chart in others)
        say(f"chart: {main}" + (f" (beside it: {names})" if names else ""))
        return
    for chart in charts:
        say(f"chart: {chart}")
