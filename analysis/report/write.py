"""A bundle's report: summary.json, tables.md and the charts, made from the bundle alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.analysis.files import replace_text

# pandas, scipy and matplotlib take a second to import. Nothing here needs them before a report is
# really asked for, so that importing this module costs a command line nothing.
if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.summary import Summary
    from wanlat.analysis.sweep import Sweep

SUMMARY, TABLES, CHARTS = "summary.json", "tables.md", "charts"


@dataclass(frozen=True)
class Report:
    """What a report consists of, and where it was written."""

    summary: Summary
    summary_path: Path
    charts: tuple[Path, ...]
    tables_path: Path | None = None
    """None where there is no table at all."""

    @property
    def bundle(self) -> Bundle | Sweep:
        """What it is of."""
        return self.summary.source

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file written."""
        tables = () if self.tables_path is None else (self.tables_path,)
        return (self.summary_path, *tables, *self.charts)


def report(directory: Path | str, *, svg: bool = False) -> Report:
    """Write summary.json, tables.md and charts/ of the run or the matrix in `directory`.

    Charts are PNG; with `svg` there is an SVG beside each.
    A matrix is reported however few of its points are complete; points' own bundles are left alone.
    A study at several RTTs gets charts of round trips in place of the one of latencies: over all
    RTTs those are of no network. No chart of latencies is drawn where calibration failed in a lab
    that samples come from. The same bundle gives the same bytes. Raises BundleError (NoSamplesError
    where a study measured nothing; a drill is reported however far it got).
    """
    from wanlat.analysis.bundle import read_bundle
    from wanlat.analysis.summary import summarize
    from wanlat.analysis.sweep import is_sweep, read_sweep

    directory = Path(directory)
    source = read_sweep(directory) if is_sweep(directory) else read_bundle(directory)
    summary = summarize(source)
    replace_text(directory / SUMMARY, summary.to_text())
    _keep_critical_paths(source)
    tables = _write_tables(summary, directory / TABLES)
    charts = tuple(_draw(summary, directory / CHARTS, svg=svg))
    return Report(summary, directory / SUMMARY, charts, tables)


def _keep_critical_paths(source: Bundle | Sweep) -> None:
    """Have what was found in the packets stay when they are thrown away."""
    if "packets" not in source.derived:
        return
    from wanlat.analysis.packets import evidence

    if (text := evidence.to_keep(source.directory, source.derived)) is not None:
        replace_text(source.directory / evidence.NAME, text)


def _write_tables(summary: Summary, path: Path) -> Path | None:
    """Write every table, those that are too long for a terminal too; None where there is none."""
    from wanlat.analysis.grid import markdown

    tables = [markdown(grid) for _, grid in summary.grids()]
    if not tables:
        return None
    parts = [f"# {summary.title}\n", *tables]
    if summary.notes:
        parts.append("\n".join(["Notes:", "", *(f"- {note}" for note in summary.notes)]) + "\n")
    replace_text(path, "\n".join(parts))
    return path


def _draw(summary: Summary, charts: Path, *, svg: bool) -> list[Path]:
    from wanlat.analysis.charts import style

    paths: list[Path] = []
    for name, block in summary.blocks.items():
        if name != "endpoints" or not summary.is_of_sizes:
            for stem, figure in block.charts().items():
                paths += style.save(figure, charts / stem, svg=svg)
    calibration = getattr(summary.source, "calibration", None)
    if calibration is not None and calibration.pairs:
        from wanlat.analysis.charts import calibration as chart

        paths += style.save(chart.draw(calibration.document), charts / "calibration", svg=svg)
    return paths
