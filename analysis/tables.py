"""tables.md: every table of a report in Markdown, those that are too long for a terminal too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wanlat.analysis.files import replace_text
from wanlat.analysis.grid import Grid, markdown

FILE = "tables.md"


def write_tables(
    directory: Path,
    title: str,
    grids: Sequence[Grid],
    notes: Sequence[str],
    first: Sequence[str] = (),
) -> Path | None:
    """Write FILE into `directory` and return its path; without tables nothing, and None.

    `first` comes before `grids`, in Markdown; `notes` are on all of them. Raises BundleError where
    it cannot be written.
    """
    path = directory / FILE
    if not grids and not first:
        return None
    parts = [f"# {title}\n", *first, *(markdown(grid) for grid in grids)]
    if notes:
        parts.append("\n".join(["Notes:", "", *(f"- {note}" for note in notes)]) + "\n")
    replace_text(path, "\n".join(parts))
    return path
