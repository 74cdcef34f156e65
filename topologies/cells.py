"""A text as rows of cells: CSV, tabs, columns of spaces, or a table in Markdown.

What separates the cells is decided by the whole text: the separator that gives every line as many
cells, and most of them figures; not by the first line, since names may hold commas.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wanlat.topologies.figures import is_figure, is_missing
from wanlat.topologies.text_files import UnreadableFile
from wanlat.topologies.wording import listing

Row = tuple[int, list[str]]  # line, counted from 1, and its cells

_SEPARATORS = ("\t", ";", "|", ",", "  ", " ")  # the earlier wins where they do equally well
_JUDGED = 100  # lines by which separators are judged: the rest is alike
_RULE = re.compile(r"[\s|+:=-]*(?:---|===)[\s|+:=-]*")  # `-----+-----`, as SQL clients write it
_COUNT = re.compile(r"\(\d+ rows?\)")  # below it
_BOX = str.maketrans("│║┃─━═" + "┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬╞╡╪╟╢╫┏┓┗┛┣┫┳┻╋", "|||---" + "+" * 33)
_TAG = re.compile(r"<sup>.*?</sup>|</?[a-z]+(?:\s[^<>]*)?/?>", re.IGNORECASE)
_ALIGNMENT = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")
_MARKS = re.compile(r"(\*\*|__|\*|_|``|`|~~)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows that have cells, the lines that start with `#` (without it), and the separator."""

    rows: list[Row]
    comments: tuple[str, ...]
    separator: str
    outside: tuple[str, ...] = ()  # lines around a Markdown table


def split(text: str) -> Cells:
    """Return a text's rows. Raises UnreadableFile, with the line where there is one.

    Rows may differ in length; empty columns at the end of all rows are left out.
    """
    numbered = [
        (number, re.sub(r"^ +| +$", "", line.rstrip("\r").translate(_BOX)))
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1)
    ]
    comments = tuple(line[1:].strip() for _, line in numbered if line[:1] == "#")
    lines = [(n, line) for n, line in numbered if line[:1] != "#" and line.strip(" \t,;|\xa0")]
    separators: tuple[str, ...] = _SEPARATORS
    outside: tuple[str, ...] = ()
    if any(_RULE.fullmatch(line) for _, line in lines):
        lines = [(number, line) for number, line in lines if not _COUNT.fullmatch(line)]
    if lines and (given := re.fullmatch(r"sep=(.)", lines[0][1].strip('"'))):
        separators, lines = (given[1],), lines[1:]  # as spreadsheets write and read it
    elif table := _markdown(lines):
        inside = {number for number, _ in table}
        others = [line for number, line in lines if number not in inside]
        outside = tuple(line for line in others if not _ALIGNMENT.fullmatch(line))
        lines, separators = table, ("|",)
    if not lines:
        raise UnreadableFile("there is no line with figures in it")
    fits = {own: _fit(lines[:_JUDGED], own) for own in separators}
    separator = max(separators, key=lambda own: fits[own])
    if separator == " ":  # which may stand within figures, `1 234`, that tabs are between
        even = [own for own in separators[:3] if all(fits[own])]
        separator = even[0] if even else separator
    rows = list(_rows(lines, separator))
    used = max((at for _, row in rows for at, cell in enumerate(row, start=1) if cell), default=0)
    return Cells([(n, row[:used]) for n, row in rows], comments, separator, outside)


def _markdown(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines of the table in a Markdown text, without its alignment row; or none."""
    rules = [at for at, (_, line) in enumerate(lines) if "|" in line and _ALIGNMENT.fullmatch(line)]
    if not rules or rules[0] == 0 or "|" not in lines[rules[0] - 1][1]:
        return []
    if len(rules) > 1:
        named = listing([str(lines[at][0]) for at in rules], at_most=4)
        raise UnreadableFile(f"there are {len(rules)} tables (lines {named}); leave one of them")
    first = end = rules[0]
    while end + 1 < len(lines) and "|" in lines[end + 1][1]:
        end += 1
    return [lines[first - 1], *lines[first + 1 : end + 1]]


def _fit(lines: Iterable[tuple[int, str]], separator: str) -> tuple[bool, bool, float]:
    """How well a separator does: all lines alike, and the share of figures below the first."""
    first, *others = [row for _, row in _rows(lines, separator, strict=False)] or [[]]
    widths = {len(row) for row in others} or {0}
    several = len(first) > 1
    even = several and len(widths) == 1 and len(first) in (max(widths), max(widths) - 1)
    cells = [cell for row in others for cell in row]
    figures = sum(is_figure(cell) or is_missing(cell) for cell in cells)
    return several, even, figures / max(len(cells), 1)


def _rows(
    lines: Iterable[tuple[int, str]], separator: str, *, strict: bool = True
) -> Iterator[Row]:
    for number, line in lines:
        if separator.isspace() and separator != "\t":
            between = r"[ \t]+" if separator == " " else r"\t| {2,}"
            yield number, re.split(between, line.strip(" \t"))
        elif separator == "|":
            if not _RULE.fullmatch(line):
                inner = re.sub(r"^\s*\||(?<!\\)\|\s*$", "", line) if line[:1] == "|" else line
                yield number, [_plain(cell) for cell in re.split(r"(?<!\\)\|", inner)]
        else:
            yield number, _fields(number, line, separator, strict)


def _fields(number: int, line: str, separator: str, strict: bool) -> list[str]:
    try:
        (cells,) = csv.reader([line], delimiter=separator, strict=strict, skipinitialspace=True)
    except csv.Error as problem:
        if separator != "\t":
            raise UnreadableFile(f"this is not CSV: {problem}", number) from None
        cells = line.split("\t")  # between tabs, a quotation mark may be part of a name
    return [cell.strip() for cell in cells]


def _plain(cell: str) -> str:
    """A cell of Markdown without its marks: bold, code, links, footnotes, escapes."""
    text = _TAG.sub(" ", _LINK.sub(r"\1", cell)).strip()
    while (bare := _MARKS.sub(r"\2", text)) != text:
        text = bare
    return re.sub(r"\\([\\|*_`#-])", r"\1", html.unescape(text)).strip()
