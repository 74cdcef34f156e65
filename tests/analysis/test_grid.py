"""A table says the same in a terminal and on a page."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wanlat.analysis.grid import Grid, markdown, print_grid

WORDS = frozenset(("what", "of whom"))
GRID = Grid(
    title="A table",
    headers=("what", "of whom", "mean ms [95 %]", "a long header of one figure"),
    rows=(
        ("reads", "a store with a long name", "1.234 [1.200–1.300]", "1"),
        ("writes | both", "–", "12345.678 [12345.600–12345.700]", "22"),
    ),
    text=WORDS,
    notes=("Read it.",),
    sections=frozenset((0,)),
)


def printed_at(width: int, grid: Grid = GRID) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_grid(grid, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_page_and_a_wide_terminal_show_every_cell() -> None:
    page, terminal = markdown(GRID).splitlines(), printed_at(200).splitlines()
    for row in GRID.rows:
        assert any(all(cell.replace("|", "\\|") in line for cell in row) for line in page)
        assert any(all(cell in line for cell in row) for line in terminal)
    assert "- Read it." in page and any("Read it." in line for line in terminal)


@pytest.mark.parametrize("width", [40, 60, 80, 90, 100, 120])
def test_no_terminal_is_too_narrow_for_a_figure(width: int) -> None:
    text = printed_at(width)
    assert max(map(len, text.splitlines())) <= width
    joined = "".join(text.split())
    if width >= 60:  # narrower, figures go over lines too
        for figure in ("1.234", "[1.200–1.300]", "12345.678", "[12345.600–12345.700]", "22"):
            assert figure in joined
    # Whatever goes over lines: not one character of a cell is lost.
    for cell in (cell for row in GRID.rows for cell in row):
        assert not set(cell.replace(" ", "")) - set(joined)
        assert all(text.count(c) >= cell.count(c) for c in set(cell.replace(" ", "")))


def test_words_get_what_figures_leave() -> None:
    lines = printed_at(90).splitlines()
    assert any("a store with a long name" in line for line in lines)


def test_empty_cells_become_dashes_and_line_breaks_spaces() -> None:
    grid = Grid("t", ("a", "b"), (("", "x\ny"),))
    assert grid.rows == (("–", "x y"),)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 headers"):
        Grid("t", ("a", "b"), (("x",),))
