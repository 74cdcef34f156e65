"""A sweep's report: summary.json and the charts of the whole, from its points' bundles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.analysis.files import replace_text

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Sweep
    from wanlat.analysis.sweep_summary import SweepSummary


@dataclass(frozen=True)
class SweepReport:
    """What a report of a sweep consists of, and where it was written."""

    sweep: Sweep
    summary: SweepSummary
    summary_path: Path
    charts: tuple[Path, ...]
    tables_path: Path | None = None

    @property
    def drill(self) -> None:
        """A sweep is of no drill; `wanlat.analysis.report.Report` may be."""
        return

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file written."""
        tables = () if self.tables_path is None else (self.tables_path,)
        return (self.summary_path, *tables, *self.charts)


def report_sweep(directory: Path | str) -> SweepReport:
    """Write summary.json, tables.md and charts/ of the sweep in `directory`.

    However few of its points are complete, it is reported; points' own bundles are left alone.
    The same bundle gives the same bytes. Raises BundleError.
    """
    from wanlat.analysis.sweep import read_sweep
    from wanlat.analysis.sweep_summary import summarize_sweep
    from wanlat.analysis.sweep_table import grids_of
    from wanlat.analysis.tables import write_tables

    sweep = read_sweep(directory)
    summary = summarize_sweep(sweep)
    path = sweep.directory / "summary.json"
    replace_text(path, summary.to_text())
    title = f"{sweep.study} on {sweep.topology}"
    tables = write_tables(sweep.directory, title, grids_of(summary), summary.notes)
    return SweepReport(sweep, summary, path, tuple(_draw(summary)), tables)


def _draw(summary: SweepSummary) -> list[Path]:
    from wanlat.analysis.charts import style
    from wanlat.analysis.charts.sweep import draw

    charts = summary.sweep.directory / "charts"
    paths: list[Path] = []
    for stem, figure in draw(summary).items() if summary.has_rows_of_its_own else ():
        paths += style.save(figure, charts / stem)
    for block in summary.blocks.values():
        for stem, figure in block.charts().items():
            paths += style.save(figure, charts / stem)
    return paths
