"""A bundle's report: summary.json, tables.md, charts and a page, made from the bundle alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from wanlat.analysis.files import replace_text
from wanlat.bundle import beneath
from wanlat.bundle.errors import BundleError, one_line, refusing
from wanlat.bundle.read import read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.report.html import Picture
    from wanlat.analysis.summary import Summary
    from wanlat.bundle.run import MessagesOf

# pandas, scipy and matplotlib take a second to import. Nothing here needs them before a report is
# really asked for, so that importing this module costs a command line nothing.

SUMMARY, TABLES, CHARTS, PAGE = "summary.json", "tables.md", "charts", "report.html"


@dataclass(frozen=True)
class Report:
    """What a report consists of, and where it was written; `tables_path`: None without a table."""

    summary: Summary
    summary_path: Path
    page_path: Path
    charts: tuple[Path, ...]
    tables_path: Path | None = None


def report(
    directory: Path | str, *, svg: bool = False, messages_of: MessagesOf = lambda _system: None
) -> Report:
    """Write summary.json, tables.md, charts/ and report.html of the run or matrix in `directory`.

    Charts are PNG; with `svg` there is an SVG beside each. `messages_of`: see `Run`.
    A matrix is reported however few of its points are complete; points' own bundles are left alone.
    A study at several RTTs gets charts of round trips in place of the one of latencies: over all
    RTTs those are of no network. No chart of latencies is drawn where calibration failed in a lab
    that samples come from. The same bundle gives the same bytes. Raises BundleError (NoSamplesError
    where a study measured nothing; a drill is reported however far it got).
    """
    from wanlat.analysis.report.html import page

    directory = Path(directory)
    summary = _summary(directory, messages_of)
    source = summary.source
    replace_text(directory / SUMMARY, summary.to_text())
    if "packets" in source.derived:  # what was found in them stays when they are thrown away
        from wanlat.analysis.packets import evidence

        if (chains := evidence.to_keep(directory, source.derived)) is not None:
            replace_text(directory / evidence.NAME, chains)
    tables = _tables(summary)
    if tables is not None:
        replace_text(directory / TABLES, tables)
    pictures = _draw(summary, directory / CHARTS, svg=svg)
    known = {key for picture in pictures for key in (picture.title, picture.paths[0])}
    traces = [trace for trace in _traces(directory) if not known & {trace.title, trace.paths[0]}]
    replace_text(directory / PAGE, page(summary, [*pictures, *traces]))
    return Report(
        summary,
        directory / SUMMARY,
        directory / PAGE,
        tuple(path for picture in pictures for path in picture.paths),
        None if tables is None else directory / TABLES,
    )


def beside(directories: Sequence[Path], out: Path, messages_of: MessagesOf) -> None:
    """Write the page `out` of several runs or matrices beside each other; their bundles stay.

    Raises BundleError.
    """
    from wanlat.analysis.report.html import comparison

    reports = []
    with TemporaryDirectory() as drawn:
        for number, directory in enumerate(directories):
            with refusing(directory):
                summary = _summary(directory, messages_of)
                reports.append((summary, _draw(summary, Path(drawn) / str(number))))
        replace_text(out, comparison(reports))


def page_of(directory: Path, messages_of: MessagesOf) -> str:
    """The page of a run or a matrix; its bundle stays as it is. Raises BundleError."""
    from wanlat.analysis.report.html import page

    summary = _summary(directory, messages_of)
    with TemporaryDirectory() as drawn:
        return page(summary, _draw(summary, Path(drawn)))


def _summary(directory: Path, messages_of: MessagesOf) -> Summary:
    from wanlat.analysis.summary import summarize
    from wanlat.bundle.matrix import read_source

    return summarize(read_source(directory, messages_of))


def _draw(summary: Summary, place: Path, *, svg: bool = False) -> list[Picture]:
    from wanlat.analysis.charts.style import save
    from wanlat.analysis.report.html import Picture

    return [
        Picture(stem, str(figure.get_label()), tuple(save(figure, place / stem, svg=svg)))
        for words, figure in charts_of(summary)
        for stem in (beneath.file_name(words),)
    ]


def _tables(summary: Summary) -> str | None:
    """The page of every table, those that a terminal hides too; None without any."""
    from wanlat.analysis.section import escaped, markdown

    tables = [markdown(grid) for _, grid in summary.grids()]
    notes = "".join(f"- {escaped(one_line(note))}\n" for note in summary.notes)
    parts = [
        f"# {escaped(one_line(summary.title))}\n",
        *tables,
        *([f"Notes:\n\n{notes}"] if notes else []),
    ]
    return "\n".join(parts) if tables else None


def charts_of(summary: Summary) -> Iterator[tuple[str, Figure]]:
    """Every chart by the stem of its file's name, the calibration's last."""
    for block in summary.shown.values():
        yield from block.charts().items()
    calibration = getattr(summary.source, "calibration", None)
    if calibration is not None and calibration.pairs:
        from wanlat.analysis.charts.calibration import draw

        yield "calibration", draw(calibration.model_dump(), summary.source.titles)


def _traces(directory: Path) -> Iterator[Picture]:
    """What `wanlat trace` has drawn into a bundle: its packets may be gone by now."""
    from wanlat.analysis.report.html import Picture

    for path in sorted([*directory.glob("trace.png"), *directory.glob(f"{CHARTS}/trace-*.png")]):
        from wanlat.analysis.trace_words import title  # not for every report

        if not beneath.is_file(path):  # a link is refused
            continue
        label = path.stem.replace("-", " ")
        with suppress(OSError, ValueError, KeyError, TypeError, BundleError):
            label = title(read_json(path.with_suffix(".json")))
        yield Picture(path.stem, label, (path,))
