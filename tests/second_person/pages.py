"""Tables of Markdown pages, and whether a number that is printed is one that was computed."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

_NUMBER = re.compile(r"[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def tables(page: Path) -> list[pd.DataFrame]:
    """Every table of a page: cells as they are written."""
    found, rows = list[pd.DataFrame](), list[list[str]]()
    for line in [*page.read_text("utf-8").splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])])
        elif rows:
            head, _, *body = rows
            found.append(pd.DataFrame(body, columns=pd.Index(head)))
            rows = []
    return found


def numbers(cell: str) -> list[str]:
    """The numbers of a cell, as they are written."""
    return [each.group() for each in _NUMBER.finditer(cell)]


def number(text: str) -> float:
    """A number as it is written."""
    return float(text.replace(",", "").replace("−", "-"))


def agrees(text: str, value: float, slack: float = 0.0) -> bool:
    """Whether `value`, rounded as `text` is, comes out as `text`, or off by `slack` of it."""
    printed = number(text)
    digits = len(text.partition(".")[2])
    unit = 10.0**-digits if digits else 1.0
    return abs(printed - value) <= 0.51 * unit + slack * abs(value)
