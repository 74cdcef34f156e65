"""A table of the project: made once, printed for a terminal and for a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.names import EN_DASH

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BULLET = "• "
_WORDS, _TIGHTEST = 2, 3


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
        cleaned = tuple(tuple(_one_line(cell) for cell in row) for row in self.rows)
        for row in cleaned:
            if len(row) != len(self.headers):
                raise ValueError(f"{len(row)} cells under {len(self.headers)} headers: {row}")
        object.__setattr__(self, "rows", cleaned)


def print_grid(grid: Grid, console: Console) -> None:
    """Print `grid`, then its notes. In a narrow terminal words go over lines, figures last."""
    from rich.text import Text

    if not grid.headers:
        for line in grid.lines:
            console.print(Text(line))
        print_notes(grid.notes, console)
        return
    unlimited = console.options.update(max_width=10_000)
    for tightness in range(_TIGHTEST + 1):
        table = terminal_table(grid, tightness)
        roomiest = table.__rich_measure__(console, unlimited).maximum
        # From _WORDS on words go over lines, and take what the figures leave them.
        least = sum(column.min_width or 0 for column in table.columns) + len(grid.headers)
        if (least if tightness == _WORDS else roomiest) <= console.width:
            break
    console.print(table)
    print_notes(grid.notes, console)


def print_notes(notes: Sequence[str], console: Console) -> None:
    """Print sentences that a reader of a table must see with it."""
    from rich.padding import Padding
    from rich.text import Text

    for note in notes:
        console.print(Padding(Text(f"{_BULLET}{note}"), (0, 1)))


def terminal_table(grid: Grid, tightness: int = 0) -> Table:
    """`grid` as rich's table: 0 roomy, 1 with headers over lines, 2 with words too, 3 as it must.

    Nothing is ever cut short, because a figure without its last digit is another figure.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(grid.title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0 if tightness else 2, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for number, header in enumerate(grid.headers):
        is_words = header in grid.text
        cells = [row[number] for row in grid.rows]
        width = max(map(len, (*cells, *header.split())), default=1)
        told = [*cells, header] if tightness < _TIGHTEST else cells
        longest = max((len(word) for cell in told for word in cell.split()), default=1)
        table.add_column(
            Text(_over_lines(header, longest if is_words else width) if tightness else header),
            justify="left" if is_words else "right",
            no_wrap=tightness < _WORDS or (tightness == _WORDS and not is_words),
            overflow="fold",
            min_width=(longest if is_words else width) if tightness == _WORDS else None,
        )
    for number, row in enumerate(grid.rows):
        table.add_row(
            *(Text(cell) for cell in row),
            style="yellow" if number in grid.troubled else None,
            end_section=number in grid.sections,
        )
    return table


def markdown(grid: Grid) -> str:
    """`grid` and its notes in Markdown, ending in a newline."""
    ruler = ["---" if header in grid.text else "---:" for header in grid.headers]
    table = (grid.headers, ruler, *grid.rows) if grid.headers else ()
    lines = [f"| {' | '.join(map(_escaped, row))} |" for row in table]
    lines += [f"- {_escaped(line)}" for line in grid.lines]
    notes = [f"- {_escaped(note)}" for note in grid.notes]
    return "\n".join([f"{grid.title}:", "", *lines, *(["", *notes] if notes else [])]) + "\n"


def _over_lines(header: str, width: int) -> str:
    """`header` in lines of at most `width`, or as long as its longest word."""
    lines = [""]
    for word in header.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip() or EN_DASH
