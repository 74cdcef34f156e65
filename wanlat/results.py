"""Shows what a bundle holds: the table, and where the charts are."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.drill.table import print_drill
from analysis.errors import BundleError
from analysis.report import Report, report
from analysis.table import print_table
from topologies.errors import UserError
from wanlat.output import emit, people, say


def make_report(bundle: Path) -> Report:
    """Write a bundle's summary and charts. Raises UserError."""
    try:
        return report(bundle)
    except BundleError as error:
        raise UserError(str(error)) from error


def show_report(bundle: Path, *, as_json: bool) -> Report:
    """Make a bundle's report, show it and return it. Raises UserError."""
    made = make_report(bundle)
    if made.drill is not None:
        print_drill(made.drill, people)
    else:
        print_table(made.summary, people)
    for chart in made.charts:
        if chart.suffix == ".png":
            say(f"chart: {chart}")
    if as_json:
        emit(json.loads(made.summary_path.read_text(encoding="utf-8")))
    return made
