"""A table of the project: made once, printed for a terminal and for a page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wanlat.analysis.names import EN_DASH
from wanlat.bundle.errors import one_line

_BULLET, _NO_BREAK = "• ", "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Grid:
    """Cells of text under headers. `text` are the headers whose columns are words: left-aligned.

    `troubled` are the numbers of rows that hold what should not be; `sections` those of rows after
    which a line is left empty. Empty cells become dashes. A `long` one is in tables.md alone, and
    not printed in a terminal. `lines` are sentences: a table of them alone has no headers.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    troubled: frozenset[int] = frozenset()
    sections: frozenset[int] = frozenset()
    long: bool = False
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the rows against the headers."""
        cleaned = tuple(tuple(one_line(cell) or EN_DASH for cell in row) for row in self.rows)
        for row in cleaned:
            if len(row) != len(self.headers):
                raise ValueError(f"{len(row)} cells under {len(self.headers)} headers: {row}")
        object.__setattr__(self, "rows", cleaned)
        object.__setattr__(self, "title", one_line(self.title))
        for field in ("headers", "notes", "lines"):
            object.__setattr__(self, field, tuple(map(one_line, getattr(self, field))))


def print_grid(grid: Grid, console: Console) -> None:
    """Print `grid`, then its notes. In a narrow terminal words go over lines, figures last.

    Nothing is ever cut short, because a figure without its last digit is another figure.
    """
    for line in grid.lines:
        console.print(Text(line))
    if grid.headers:
        for padding, keep_figures in ((1, True), (0, True), (0, False)):
            table, least = _terminal_table(grid, padding, keep_figures=keep_figures)
            if least <= console.width:
                break
        console.print(table)
    print_notes(grid.notes, console)


def print_notes(notes: Sequence[str], console: Console) -> None:
    """Print sentences that a reader of a table must see with it."""
    for note in map(one_line, notes):
        console.print(Padding(Text(f"{_BULLET}{note}"), (0, 1)))


def markdown(grid: Grid) -> str:
    """`grid` and its notes in Markdown, ending in a newline."""
    ruler = ["---" if header in grid.text else "---:" for header in grid.headers]
    table = (grid.headers, ruler, *grid.rows) if grid.headers else ()
    lines = [f"| {' | '.join(map(escaped, row))} |" for row in table]
    lines += [f"- {escaped(line)}" for line in grid.lines]
    notes = [f"- {escaped(note)}" for note in grid.notes]
    return (
        "\n".join([f"{escaped(grid.title)}:", "", *lines, *(["", *notes] if notes else [])]) + "\n"
    )


def _terminal_table(grid: Grid, padding: int, *, keep_figures: bool) -> tuple[Table, int]:
    """`grid` as rich's table, and the least width that it takes; else all cells go over lines."""
    title = Text(grid.title, style="bold")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.padding, table.show_edge, least = (0, padding, 0, 0), False, 0
    for number, header in enumerate(grid.headers):
        is_words = header in grid.text
        cells = [row[number] for row in grid.rows]
        parts = [part for cell in cells for part in (cell.split() if is_words else [cell])]
        words = header.replace(" %", f"{_NO_BREAK}%")
        width = max(map(len, [*parts, *words.split(" ")]), default=1)
        least += width + 1 + padding
        table.add_column(
            textwrap.fill(words, width, break_long_words=False).replace(_NO_BREAK, " "),
            justify="left" if is_words else "right",
            no_wrap=keep_figures and not is_words,
            overflow="fold",
            min_width=width if keep_figures else None,
        )
    for number, row in enumerate(grid.rows):
        style = "yellow" if number in grid.troubled else None
        cells_of_row = (Text(cell) for cell in row)
        table.add_row(*cells_of_row, style=style, end_section=number in grid.sections)
    return table, least


def escaped(text: str) -> str:
    """Text that is a cell or a line in Markdown, and no HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;")
