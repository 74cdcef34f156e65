"""Shows what a bundle holds: the tables, and where the charts are."""

from __future__ import annotations

import json
from pathlib import Path

from wanlat.analysis.blocks import hidden_from_terminal
from wanlat.analysis.report import Report, report
from wanlat.output import emit, people, say


def show_report(bundle: Path, *, as_json: bool, verbose: bool = False, svg: bool = False) -> Report:
    """Write a bundle's summary, tables and charts, show them, and return where they are.

    ``verbose``: with its tables of resources; ``svg``: with an SVG beside each PNG. Raises
    BundleError.
    """
    made = report(bundle, svg=svg)
    from wanlat.analysis.summary import print_summary  # by now all that it needs is imported

    print_summary(made.summary, people, verbose=verbose)
    _name_files(made, verbose=verbose)
    if as_json:
        emit(json.loads(made.summary_path.read_text(encoding="utf-8")))
    return made


def _name_files(made: Report, *, verbose: bool) -> None:
    """Say where the tables and charts are; of a study of single requests only its main chart."""
    blocks = made.summary.blocks
    if made.tables_path is not None:
        has_more = not verbose and "resources" in hidden_from_terminal(blocks) & set(blocks)
        more = " (with resource usage, which `wanlat report -v` prints)" if has_more else ""
        say(f"tables: {made.tables_path}{more}")
    charts = [chart for chart in made.charts if chart.suffix == ".png"]
    if "in_rtts" in blocks and charts:
        main, *others = charts
        names = ", ".join(chart.stem for chart in others)
        say(f"chart: {main}" + (f" (beside it: {names})" if names else ""))
        return
    for chart in charts:
        say(f"chart: {chart}")
