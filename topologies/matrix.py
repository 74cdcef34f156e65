"""A matrix of round-trip times, or of one-way delays, between places: read from text, and checked.

Two forms are distinguished by their first line. Sites × sites: names across and down, figures in
the cells. Long: a line a direction, with columns `from`, `to` and `rtt_ms` (or `owd_ms`), and
`jitter_ms`, `loss`, `rate` where known. `docs/how-to/topologies.md` shows both.

Reading goes from cells (`cells.py`) by what their columns mean (`headers.py`) and by one decimal
point of the whole file (`figures.py`) to entries from place to place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from wanlat.topologies.cells import Cells, Row, split
from wanlat.topologies.errors import UserError
from wanlat.topologies.figures import (
    TIME,
    UNITS,
    UNLIMITED,
    Parser,
    Point,
    decimal_point,
    is_figure,
    is_lost,
    is_missing,
    is_rounded,
    unit_word,
)
from wanlat.topologies.headers import Column, column, common_unit, ends, names, quantity, words
from wanlat.topologies.remarks import stated_one_way, stated_unit
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.units import Fraction, QuantityError, Rate
from wanlat.topologies.wording import closest, did_you_mean, listing, printable, short, show

Meaning = Literal["rtt", "delay"]
Unit = Literal["s", "ms", "us", "ns"]

_LARGEST_FILE = 32 * 2**20
_MOST_PRINTED = 50
_USA = r"\bUS\b"
_MUCH_LOSS = 0.5  # a bare number from here on is as likely a percentage
_LONG = "a table of lines is headed `from,to,rtt_ms`"

_Cells = tuple[int, str, str, Mapping[str, str]]  # line, from, to, and what stands there


class MatrixError(UserError):
    """A matrix that cannot be used. The message lists every mistake, with file and line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in one cell or line. `ns`: a round trip or one-way delay, see `Matrix.meaning`.

    `jitter_ns` is of the same: around the round trip, or around the one-way delay.
    """

    line: int
    ns: int
    jitter_ns: int | None = None
    loss: Fraction | None = None
    rate: Rate | None = None


@dataclass(slots=True)
class Matrix:
    """A matrix as the file has it: places in its order, entries from place to place.

    An entry from a place to itself is what lies inside it. `comments` are the lines that start
    with `#`, without the sign: where the figures come from. `unused` are columns, `notes` what
    was assumed. `is_jitter_derived`: the jitter was made of standard deviations.
    """

    file: str
    meaning: Meaning = "rtt"
    names: tuple[str, ...] = ()
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    is_jitter_derived: bool = False


def read(
    path: str | Path,
    *,
    one_way: bool = False,
    unit: Unit | None = None,
    figures: str | None = None,
    point: Point | None = None,
    places: int | Sequence[str] | None = None,
) -> Matrix:
    """Read a matrix. Figures without a unit of their own are in `unit`, by default milliseconds.

    `one_way`: the figures are delays in one direction, not round trips; a column that is named
    `delay…` or `owd…` has them as well. `figures` is the name of the column that has them, `point`
    what the decimals follow (by default what the figures show). Of `places` alone, or of so many of
    the first, there are entries, and mistakes. MatrixError lists every mistake, each with its line.
    """
    reader = _Reader(Matrix(printable(str(path))), unit, figures, point, one_way, places)
    try:
        reader.read(split(read_text(Path(path), "a CSV file", _LARGEST_FILE)))
    except UnreadableFile as problem:
        raise MatrixError(problem.at(reader.made.file)) from None
    return reader.made


@dataclass(slots=True)
class _Reader:
    """Fills a matrix; `mistakes` gathers what is wrong, (line, text)."""

    made: Matrix
    unit: Unit | None
    wanted: str | None
    point: Point | None
    one_way: bool
    places: int | Sequence[str] | None
    separator: str = ","
    is_long: bool = False
    is_unnamed: bool = False
    has_bare: bool = False  # figures without a unit of their own
    remarks: tuple[str, ...] = ()  # lines that are none of the table
    rounded: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # what the diagonal has instead of figures
    columns: dict[str, Column] = field(default_factory=dict)  # by the entry's attribute
    lost: list[str] = field(default_factory=list)
    bare_loss: list[float] = field(default_factory=list)
    mistakes: list[tuple[int, str]] = field(default_factory=list)

    def read(self, table: Cells) -> None:
        self.made.comments, self.separator = table.comments, table.separator
        self.remarks = (*table.comments, *table.outside)
        if count := len(table.outside):
            lines = f"{count} line{'s are' if count > 1 else ' is'}"
            self.made.notes.append(f"{lines} outside the table, and not read")
        line, header = table.rows[0]
        self.made.meaning = "delay" if self.one_way else "rtt"
        columns = [column(name, is_figure=self._is_wanted(name)) for name in header]
        two = ends(columns)
        if two is None and (len(header) < 2 or _is_headless(table.rows)):
            what = "names no columns" if len(header) > 1 else "has one cell"
            self._fail(line, f"the first line {what}; a matrix has its places there, {_LONG}")
        if two:
            self.is_long = True
            cells = list(self._long(table.rows, columns, two))
        else:
            cells = list(self._square(table.rows))
        self._enter_all(cells)
        if len(self.made.names) < 2 and not self.mistakes:
            self.mistakes.append((line, "a matrix has at least two places"))
        self._stop_if_wrong()
        if self.is_unnamed:
            self._check_unnamed()
        self._note()

    def _stop_if_wrong(self) -> None:
        if self.mistakes:
            file, mistakes = self.made.file, sorted(self.mistakes)
            texts = [f"{file} has {len(mistakes)} mistakes:"] if len(mistakes) > 1 else []
            texts += [f"{file}:{line}: {text}" for line, text in mistakes[:_MOST_PRINTED]]
            if len(mistakes) > _MOST_PRINTED:
                texts.append(f"and {len(mistakes) - _MOST_PRINTED} more mistakes")
            raise MatrixError("\n".join(texts))

    def _fail(self, line: int, text: str) -> None:
        self.mistakes.append((line, text))
        self._stop_if_wrong()

    def _is_wanted(self, name: str) -> bool:
        return self.wanted is not None and name.casefold() == self.wanted.casefold()

    # Sites × sites.

    def _square(self, rows: Sequence[Row]) -> Iterator[_Cells]:
        """The row is where from, the column where to."""
        if self.wanted is not None:
            self._fail(rows[0][0], f"--column is for tables of lines: {_LONG}")
        line, across, body = self._headed(rows)
        down = [row[0] for _, row in body if row]
        self._check_triangle(line, across, body)
        # A table of two groups: clients down, servers across.
        is_rectangle = not {*map(str.casefold, down)} & {*map(str.casefold, across)} and (
            len(down) > 1 or not any(closest(name, across) for name in down)
        )
        if is_rectangle:
            self._check_rectangle(line, across, body)
        else:
            self._check_rows(line, across, down)
        # A triangle is a matrix too: a place whose row has nothing of its own may have none.
        self.made.names = tuple(dict.fromkeys([*down, *across] if is_rectangle else across))
        known = set(self.made.names)
        for number, (name, *cells) in body:
            if name not in known:
                text = f"row {show(name)} has no column of that name{did_you_mean(name, across)}"
                self.mistakes.append((number, f"{text}; the first line names every place"))
            elif any(cells[len(across) :]):
                text = f"row {show(name)} has {len(cells)} figures for {len(across)} columns"
                self.mistakes.append((number, text))
            else:
                for to, cell in zip(across, cells, strict=False):
                    if name == to and not is_figure(cell) and not is_missing(cell):
                        self.unread.append(cell)
                    else:
                        yield number, name, to, {"ns": cell}

    def _headed(self, rows: Sequence[Row]) -> tuple[int, list[str], list[Row]]:
        """The first line's number, its names, and the other rows, under these names."""
        header, body = self._named([(number, [_spaced(row[0]), *row[1:]]) for number, row in rows])
        line, (corner, *across) = header
        across = [_spaced(name) for name in across]
        self._corner(line, corner)
        if len({*across}) < len(across) or "" in across:
            self._fail(line, "every column has a name of its own in the first line")
        if unit := common_unit(across):
            self._take(line, Column(header[1][1], factor=unit[0]), f"column {show(across[0])}")
            plain = dict(zip(across, unit[1], strict=True))
            body = [(at, [plain.get(name, name), *cells]) for at, (name, *cells) in body]
            across = unit[1]
        alike = {name.casefold(): name for name in across}
        if len(alike) == len(across):  # `Oslo` across and `oslo` down are one place
            body = [(at, [alike.get(name.casefold(), name), *row]) for at, (name, *row) in body]
        return line, across, body

    def _check_rows(self, line: int, across: list[str], down: list[str]) -> None:
        """A triangle lacks one row; more columns without one may be no places."""
        without = [name for name in across if name not in down]
        figures = [own for own in map(column, without) if own.is_statistic]
        if figures and {*down} <= {*across}:  # or `us` is a place of which the row has another name
            self._fail(line, f"{names(figures)} can be no place, and has no row; leave it out")
        if len(without) > 1 and down:
            self.made.notes.append(
                f"{listing(map(show, without), at_most=5)} have no row of their own; leave out"
                " columns that are no places"
            )

    def _check_triangle(self, line: int, across: Sequence[str], body: Sequence[Row]) -> None:
        """Refuse rows that get shorter: their figures do not stand below their columns."""
        rows = [[*row[1:]] for _, row in body]
        for row in rows:
            while row and not row[-1]:
                row.pop()
        lengths, count = [len(row) for row in rows if row], len(across)
        has_diagonal = all(row and is_figure(row[0]) and not _has_length(row[0]) for row in rows)
        is_shifted = lengths == [*range(count - 1, 0, -1)] or (
            has_diagonal and lengths == [*range(count, 0, -1)]
        )
        if count > 2 and is_shifted and all(row[0] for row in rows if row):
            self._fail(
                line,
                "each row has a figure less than the one above, as a triangle of which the figures"
                " do not stand below their columns; leave cells empty in front of them",
            )

    def _check_rectangle(self, line: int, across: list[str], body: Sequence[Row]) -> None:
        figures = [own for own in map(column, across) if own.is_statistic]
        texts = [c for _, row in body for c in row[1:] if not is_figure(c) and not is_missing(c)]
        if figures or texts or not body:
            what = f"{names(figures)} can be no place" if figures else "cells have words in them"
            if not figures and texts:
                what = f"{show(texts[0])} is not a figure"
            self._fail(
                line,
                f"this is neither a matrix of places nor a table of lines: {what}; a matrix has the"
                f" same places across and down, {_LONG}",
            )
        diagonal = [row[at] for at, (_, row) in enumerate(body, start=1) if at < len(row)]
        if len(body) == len(across) == len(diagonal) > 1 and not any(map(_has_length, diagonal)):
            self._fail(
                line,
                f"rows and columns have different names ({show(body[0][1][0])} and"
                f" {show(across[0])} first), and the diagonal is empty, as that of one set of"
                " places; give each place one name",
            )
        self.made.notes.append(
            f"rows and columns name different places, {len(body)} down and {len(across)} across;"
            " among those down, and among those across, figures are missing (--default)"
        )

    def _named(self, rows: list[Row]) -> tuple[Row, list[Row]]:
        """The first line and the others, with names where the file has none."""
        (line, first), body = rows[0], rows[1:]
        width = len(first)
        down = [row[0] for _, row in body if row]
        wider = len(body) == width and all(len(row) == width + 1 for _, row in body)
        if wider and {*down} == {*first}:
            return (line, ["", *first]), body  # as R writes it: no cell above the row names
        figures = [is_figure(cell) for cell in first]
        blanks = [is_missing(cell) for cell in first]
        has_figures = any(figures[1:]) and all(
            f or b for f, b in zip(figures[1:], blanks[1:], strict=True)
        )
        if not has_figures:
            numbers = all(row and (is_figure(row[0]) or is_missing(row[0])) for _, row in body)
            is_square = len(body) == width and all(len(row) == width for _, row in body)
            headed = {*down} <= {*first[1:]} or _is_corner(first[0])
            if body and numbers and is_square and not headed:
                if figures_of := [own for own in map(column, first) if own.role == "figure"]:
                    self._fail(line, f"{names(figures_of)} can be no place; {_LONG}")
                return self._unnamed(rows, first, body)
            return (line, first), body
        return self._numbered(
            rows, down, is_pure=figures[0] or (blanks[0] and first[0] not in ("x", "X"))
        )

    def _numbered(
        self, rows: list[Row], down: list[str], *, is_pure: bool
    ) -> tuple[Row, list[Row]]:
        """The same where the first line has numbers, which are names or figures."""
        (line, first), body = rows[0], rows[1:]
        is_matching = bool(down) and {*down} <= {*first[1:]} and len({*down}) == len(down)
        if is_pure and is_matching and self._are_numbers_names(rows):
            numbers = listing(first[1:], at_most=6)
            self.made.notes.append(f"the places are named by numbers: {numbers}")
        elif is_pure:
            numbered = [f"site-{n}" for n in range(1, len(rows) + 1)]
            return self._unnamed(rows, self._commented(len(rows)) or numbered, rows)
        elif not is_matching and not _is_corner(first[0]):
            places = [row[0] for _, row in rows if row]
            if sorted(across := self._commented(len(rows))) == sorted(places):
                return (line, ["", *across]), rows
            return self._unnamed(rows, places, [(number, row[1:]) for number, row in rows])
        return (line, first), body

    def _commented(self, count: int) -> list[str]:
        """The names in a comment, as `#,oslo,rome`, or as numpy.savetxt writes its header."""
        for comment in reversed(self.made.comments):
            for own in (self.separator.strip(" ") or ",", ",", ";", None):
                cells = [cell.strip() for cell in comment.split(own)]
                cells = cells[1:] if len(cells) == count + 1 and not cells[0] else cells
                if len({*cells}) == count == len(cells) and all(cells):
                    return cells
        return []

    def _unnamed(
        self, rows: Sequence[Row], places: list[str], figures: Sequence[Row]
    ) -> tuple[Row, list[Row]]:
        """Put names around a square of figures."""
        count = len(figures)
        for at, (number, row) in enumerate(figures):
            if len(row) != count:
                self._fail(
                    number,
                    f"the first line has no names, and a matrix of {count} lines has {count}"
                    f" figures in each, not {len(row)}; name the places in a first line and a"
                    " first column",
                )
            others = row[:at] + row[at + 1 :]  # the diagonal may have words
            if words_in := [c for c in others if not is_figure(c) and not is_missing(c)]:
                self._fail(
                    number,
                    f"{show(words_in[0])} is not a figure, and the first line has no names; name"
                    " the places in a first line and a first column",
                )
        if len({*places}) < len(places):
            self._fail(rows[0][0], "every place has a name of its own")
        lines = [
            (number, [place, *row]) for (number, row), place in zip(figures, places, strict=True)
        ]
        self.is_unnamed = True
        named = listing(places, at_most=6)
        if places == self._commented(count):
            text = f"a comment names the places: {named}"
        elif places[0] == "site-1":
            text = f"the places have no names; in the file's order they are {named}"
        elif figures[0][0] == rows[0][0]:
            text = f"the columns have no names; they are taken in the order of the rows: {named}"
        else:
            text = f"the rows have no names; they are taken in the order of the columns: {named}"
        self.made.notes.append(f"{text} (a first line and a first column can name them)")
        return (rows[0][0], ["", *places]), lines

    def _are_numbers_names(self, rows: list[Row]) -> bool:
        """Whether a first line and column of numbers, which are the same, are names.

        Any symmetric matrix without names looks so, so the rest of it must speak for names.
        """
        (line, (corner, *across)), body = rows[0], rows[1:]
        whole = all(re.fullmatch(r"\d{1,12}", cell) for cell in across)
        order = [row[0] for _, row in body] == across
        if not whole or len({*across}) < len(across):
            return False
        numbers = [int(cell) for cell in across]
        counted = len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        inner = [row[at] for at, (_, row) in enumerate(body, start=1) if at < len(row)]
        others = [cell for _, row in body for cell in row[1:] if is_figure(cell)]
        has_decimals = 2 * sum("." in cell for cell in others) > len(others)
        speaks = counted or min(numbers) > 1000 or has_decimals or all(map(is_figure, inner))
        if not corner and speaks:
            return True
        if order and (not corner or counted):
            self._fail(
                line,
                f"are {listing(across, at_most=4)} names or figures? A word in the first cell makes"
                " them names; a first line and a first column of names make them figures",
            )
        return False

    def _corner(self, line: int, corner: str) -> None:
        """Take over what the first cell states of all figures: a unit, or that they are one way."""
        meant = column(corner)
        if other := quantity(corner):
            self._fail(
                line,
                f"the first cell {show(corner)} says that the figures are {other}, and a matrix has"
                " times (if it does, name them there); what else is known of a pair stands in a"
                " table of lines, headed `from,to,rtt_ms,jitter_ms,loss,rate`",
            )
        own = words(corner)
        units = [word for word in own if word in TIME]
        has_unit = bool(units) and (
            len(units) == len(own)
            or meant.is_statistic
            or max(map(len, units)) > 2  # `usec`, `seconds`: no abbreviation of something else
            or re.search(r"[(\[/,:=]|\bin\b", corner) is not None
        )
        if has_unit and meant.role != "figure" and self.unit is None and re.search(_USA, corner):
            self._fail(
                line,
                f"is `US` in the first cell {show(corner)} a country, or microseconds? --unit us or"
                " --unit ms says so",
            )
        if meant.role != "figure" and self.unit is None and (odd := meant.unknown_in_brackets):
            self.made.notes.append(
                f"the first cell {show(corner)} names no unit that is known ({show(odd)});"
                " figures are in ms (--unit says otherwise)"
            )
        if meant.role != "figure":
            if units and not has_unit and self.unit is None:
                self.made.notes.append(
                    f"{show(units[0])} in the first cell {show(corner)} is not read as a unit;"
                    " figures are in ms (--unit says otherwise)"
                )
            if not has_unit:
                return
            meant = column(corner, is_figure=True)
        self._take(line, meant, f"the first cell {show(corner)}")

    def _take(self, line: int, meant: Column, what: str) -> None:
        """Take over what a figure's name states: its unit, round trip or one way."""
        self.columns["ns"] = meant
        if meant.scale:
            self._fail(
                line,
                f"{what} has {show(meant.scale)} in its name, so its figures are no times as they"
                " stand; give a column such as `rtt_ms`",
            )
        if meant.unknown and self.unit is None:
            unknown = listing(map(show, meant.unknown))
            self._fail(
                line,
                f"{what} names no unit that is known ({unknown}); known are ns, us, ms and s, and"
                " --unit says which the figures have",
            )
        if not self.is_long and meant.factor not in (None, TIME["ms"]):
            self.made.notes.append(f"figures are in {UNITS[meant.factor or 1]}, as {what} names it")
        if self.unit and meant.factor and TIME[self.unit] != meant.factor:
            self._fail(line, f"{what} says {UNITS[meant.factor]}, and --unit {self.unit}")
        if meant.is_contradictory:
            self._fail(line, f"{what} is named for round trips and for one way; which is it?")
        if self.one_way and meant.is_round_trip:
            self._fail(line, f"{what} has round trips, and --one-way says that it has not")
        if meant.is_delay and not self.one_way:
            self.made.meaning = "delay"
            if not meant.is_certain:
                self.made.notes.append(
                    f"{what} is read as delays of one direction; if they are round trips, name it"
                    " rtt"
                )
        elif meant.is_unsaid and not self.one_way and (self.is_long or meant.is_latency):
            self.made.notes.append(
                f"{what} is read as round trips; --one-way if the figures are of one direction"
            )
        if meant.is_tail:
            self.made.notes.append(
                f"{what} has the largest figures or a high percentile, and every packet would meet"
                " them; the median is usual"
            )

    # A line a direction.

    def _long(
        self, rows: Sequence[Row], columns: list[Column], two: tuple[Column, Column]
    ) -> Iterator[_Cells]:
        """From, to, a figure, and more where known."""
        line, header = rows[0]
        if len({name.casefold() for name in header}) < len(header) or "" in header[2:]:
            self._fail(line, "every column has a name of its own in the first line")
        figures = [own for own in columns if own.role == "figure"]
        if self.wanted is not None:
            figures = [own for own in figures if self._is_wanted(own.name)]
            if not figures:
                near = did_you_mean(self.wanted, header)
                self._fail(line, f"there is no column {show(self.wanted)} (--column){near}")
        if not figures:  # `p50_ms` is as good a name as any, where it is the only one
            figures = [column(own.name, is_figure=True) for own in columns if own.is_time]
        if len(figures) != 1:
            others = names([own for own in columns if own not in two])
            text = f"one column has the figures, not {names(figures)}"
            if not figures:
                text = f"none of the columns ({others}) is known to have the figures"
            wanted = "--column NAME says which, or name it `rtt_ms`, or `owd_ms` for one-way delays"
            self._fail(line, f"{text}; {wanted}")
        self._take(line, figures[0], f"column {show(figures[0].name)}")
        for role, key in _KEYS.items():
            several = [own for own in columns if own.role == role]
            if len(several) > 1:
                self.made.notes.append(
                    f"{names(several)} are all {role}: leave one, to have it used"
                )
            elif several and _is_usable(several[0], [row for _, row in rows[1:]], header):
                self.columns.setdefault(key, several[0])
        used = [own.name for own in (*two, *self.columns.values())]
        self.made.unused = tuple(name for name in header if name and name not in used)
        self._secondary(line)
        places: dict[str, None] = {}
        for number, row in rows[1:]:
            cells = dict(zip(header, row, strict=False))
            a, b = (_spaced(cells.get(own.name, "")) for own in two)
            if len(row) > len(header) or {a.lower(), b.lower()} & _NOWHERE:
                text = f"{len(header)} cells are wanted here, the first line's, with two places"
                self.mistakes.append((number, text))
                continue
            places[a] = places[b] = None
            yield number, a, b, {k: cells.get(own.name, "") for k, own in self.columns.items()}
        self.made.names = tuple(places)

    def _secondary(self, line: int) -> None:
        """Notes on, and refusals of, what is known besides the figure."""
        jitter = self.columns.get("jitter_ns")
        if jitter is None:
            return
        if jitter.unknown and self.unit is None:
            self._fail(
                line,
                f"column {show(jitter.name)} names no unit that is known"
                f" ({listing(map(show, jitter.unknown))}); known are ns, us, ms and s",
            )
        factor = self._factor("ns")
        if jitter.factor is None and factor != TIME[self.unit or "ms"]:
            self.made.notes.append(
                f"column {show(jitter.name)} names no unit; it is read in {UNITS[factor]}, as"
                f" {show(self.columns['ns'].name)}"
            )
        if jitter.role == "deviation":
            self.made.is_jitter_derived = True
            times = "sqrt(6), which is 2.45" if self.made.meaning == "rtt" else "sqrt(3)"
            self.made.notes.append(
                f"column {show(jitter.name)} has standard deviations; a uniform `jitter` of as much"
                f" is {times} times that (write a column `jitter_ms` to give it yourself)"
            )

    # Cells.

    def _factor(self, key: str) -> int:
        """Nanoseconds of a number without a unit, in a column of times."""
        own = self.columns.get(key)
        if own is not None and own.factor is not None:
            return own.factor
        return TIME[self.unit or "ms"] if key == "ns" else self._factor("ns")

    def _factor_of(self, key: str, texts: Mapping[str, str]) -> int:
        """The same in one line, which may have a cell with the unit. Raises QuantityError."""
        unit = texts.get("unit", "")
        if not unit or (own := self.columns.get(key)) is None:
            return self._factor(key)
        if unit_word(unit) not in TIME:
            raise QuantityError(f"{show(unit)} is not a unit of time (ns, us, ms or s)")
        factor = TIME[unit_word(unit)]
        if own.factor not in (None, factor):
            raise QuantityError(
                f"the unit is {show(unit)} here, and column {show(own.name)} has one"
            )
        return factor

    def _enter_all(self, cells: Sequence[_Cells]) -> None:
        """Every entry, and the median of those that are given more than once."""
        parser = Parser(self.point or self._decimal_point(cells))
        if self.places is not None:
            first = self.made.names[: self.places] if isinstance(self.places, int) else self.places
            taken = {*first}
            cells = [cell for cell in cells if cell[1] in taken and cell[2] in taken]
        measured: dict[tuple[str, str], list[Entry]] = {}
        partial: dict[tuple[str, str], Entry] = {}  # a line that has all but the figure
        for line, a, b, texts in cells:
            try:
                values = self._values(texts, parser)
            except QuantityError as problem:
                self.mistakes.append((line, f"from {short(a)} to {short(b)}: {problem}"))
                continue
            if "ns" in values:
                measured.setdefault((a, b), []).append(Entry(line, **values))
            elif values:
                partial[a, b] = Entry(line, 0, **values)
        repeated = {pair: entries for pair, entries in measured.items() if len(entries) > 1}
        if repeated:
            self._repeated(repeated)
        self.made.entries = {pair: _median(entries) for pair, entries in measured.items()}
        if self.made.meaning == "rtt":
            for pair, entry in partial.items():
                if pair not in measured and (back := self.made.entries.get(pair[::-1])):
                    self.made.entries[pair] = replace(entry, ns=back.ns)

    def _repeated(self, repeated: Mapping[tuple[str, str], list[Entry]]) -> None:
        if not self.is_long:
            for (a, b), (first, *others) in repeated.items():
                text = (
                    f"from {short(a)} to {short(b)} is given already (first in line {first.line})"
                )
                self.mistakes.extend((entry.line, text) for entry in others)
            return
        (a, b), entries = max(repeated.items(), key=lambda item: len(item[1]))
        lines = sum(map(len, repeated.values()))
        self.made.notes.append(
            f"{lines} lines repeat {len(repeated)} direction{'s' * (len(repeated) > 1)}, most often"
            f" {short(a)} to {short(b)} ({len(entries)} lines); the median of each column is taken"
        )

    def _decimal_point(self, cells: Sequence[_Cells]) -> Point:
        every = [(line, cell) for line, _, _, texts in cells for cell in texts.values() if cell]
        try:
            whole = [texts["ns"] for *_, texts in cells]
            is_fine = self._factor("ns") < TIME["ms"]
            reading = decimal_point(every, self.separator, whole, is_fine=is_fine)
        except QuantityError as problem:
            raise MatrixError(f"{self.made.file}: {problem}") from None
        if reading.doubt:
            self.made.notes.append(reading.doubt)
        return reading.point

    def _values(self, texts: Mapping[str, str], parser: Parser) -> dict[str, Any]:
        """The attributes of an entry. Raises QuantityError."""
        values: dict[str, Any] = {}
        for key, cell in texts.items():
            if is_missing(cell):
                self.lost += [cell] if key == "ns" and is_lost(cell) else []
            elif key == "unit" or (key == "rate" and cell.lower() in UNLIMITED):
                continue
            elif key == "loss":
                values[key] = self._loss(cell, parser)
            elif key == "rate":
                values[key] = parser.rate(cell, self.columns[key].factor or 0)
            else:
                values[key] = parser.time_ns(cell, self._factor_of(key, texts))
                if key == "ns" and not self.has_bare and not texts.get("unit"):
                    self.has_bare = not parser.number(cell)[1]
                self.rounded += [cell] if is_rounded(cell) else []
        if "jitter_ns" in values and self.columns["jitter_ns"].role == "deviation":
            both = 6 if self.made.meaning == "rtt" else 3
            values["jitter_ns"] = round(values["jitter_ns"] * math.sqrt(both))
        return values

    def _loss(self, cell: str, parser: Parser) -> Fraction:
        per = self.columns["loss"].per
        loss = parser.loss(cell, per or 1)
        if per is None and not parser.number(cell)[1] and loss.value:
            self.bare_loss.append(loss.value)
            if loss.value >= _MUCH_LOSS:
                name = self.columns["loss"].name
                raise QuantityError(
                    f"is {show(cell)} in {show(name)} {loss} of the packets, or {cell}%? Write"
                    f" the sign, or name the column `loss_percent` or `loss_fraction`"
                )
        return loss

    def _check_unnamed(self) -> None:
        """Refuse a square without names if its figures are no distances."""
        least: dict[str, int] = {}
        for (a, b), entry in self.made.entries.items():
            if a != b and entry.ns:
                least[a] = min(entry.ns, least.get(a, entry.ns))
        for name, ns in least.items():
            inner = self.made.entries.get((name, name))
            if inner is not None and inner.ns > ns:
                self._fail(
                    inner.line,
                    "the first line or column has no names, and this is no matrix of places: its"
                    " diagonal is more than what lies between two places; name the places",
                )
        between = {pair: own.ns for pair, own in self.made.entries.items() if own.ns}
        both = [(ns, back) for (a, b), ns in between.items() if (back := between.get((b, a)))]
        unlike = [1 for ns, back in both if max(ns, back) > 2 * min(ns, back)]
        if 2 * len(unlike) > len(both):
            self._fail(
                self.made.entries[next(iter(between))].line,
                "the first line or column has no names, and this is no matrix of places: most"
                " figures are more than twice those of the way back; name the places",
            )

    def _note(self) -> None:
        """What was assumed of figures that look odd."""
        notes, entries = self.made.notes, self.made.entries
        if self.lost:
            kinds = listing(sorted({show(cell) for cell in self.lost}), at_most=4)
            count = f"{len(self.lost)} lost probe{'s' * (len(self.lost) > 1)}"
            notes.append(
                f"{count} ({kinds}) {'count' if len(self.lost) > 1 else 'counts'} as missing"
            )
        if self.rounded:
            count = f"{len(self.rounded)} figure{'s are' if len(self.rounded) > 1 else ' is'}"
            notes.append(f"{count} not exact ({listing(map(show, self.rounded), at_most=3)})")
        if self.unread:
            kinds = listing(sorted({show(cell) for cell in self.unread}), at_most=3)
            notes.append(f"what lies inside places is not known: {kinds} on the diagonal")
        self._names_alike()
        if self.bare_loss:
            most = Fraction(max(self.bare_loss))
            notes.append(
                f"column {show(self.columns['loss'].name)} has fractions: its largest is {most} of"
                " the packets; name it `loss_percent` if it has percentages"
            )
        self._zeros()
        largest = max((entry.ns for (a, b), entry in entries.items() if a != b), default=0)
        if not self.unit and self._unsaid_unit() and 0 < largest < 10**6:
            notes.append(
                f"the largest figure is {largest / 10**6:g} ms, since no unit is named; is that"
                " right (--unit)?"
            )
        if not self.unit and self._unsaid_unit() and (unit := stated_unit(self.remarks)):
            notes.append(
                f"a comment names {unit}; figures are in ms (--unit {unit} says otherwise)"
            )
        own = self.columns.get("ns")
        one_way = stated_one_way(self.remarks)
        if self.made.meaning == "rtt" and one_way and (own is None or not own.is_round_trip):
            notes.append(
                f"a comment says one way ({short(one_way)}); figures are read as round trips"
                " (--one-way says otherwise)"
            )

    def _names_alike(self) -> None:
        """Note places with names that differ in capitals alone: hardly two places."""
        plain: dict[str, list[str]] = {}
        for name in self.made.names:
            plain.setdefault(name.casefold(), []).append(name)
        alike = [listing(map(show, several)) for several in plain.values() if len(several) > 1]
        if alike:
            self.made.notes.append(
                f"{listing(alike, at_most=5)} are different places, as capitals count"
            )

    def _unsaid_unit(self) -> bool:
        own = self.columns.get("ns")
        return self.has_bare and (own is None or own.factor is None)

    def _zeros(self) -> None:
        """Places that are 0 apart: a triangle that was filled with zeros, or not measured."""
        entries = self.made.entries
        zeros = [pair for pair, entry in entries.items() if pair[0] != pair[1] and not entry.ns]
        filled = [pair for pair in zeros if (back := entries.get(pair[::-1])) and back.ns]
        if self.made.meaning == "rtt" and filled:
            for pair in filled:
                entries[pair] = replace(entries[pair], ns=entries[pair[::-1]].ns)
            count = f"{len(filled)} round trip{'s' * (len(filled) > 1)}"
            self.made.notes.append(
                f"{count} of 0 ms {'count' if len(filled) > 1 else 'counts'} as missing, since the"
                " other end measured more:"
                f" {listing((f'{short(a)} to {short(b)}' for a, b in filled), at_most=3)}"
            )
            zeros = [pair for pair in zeros if not entries[pair].ns]
        apart = {frozenset(pair) for pair in zeros}
        if apart:
            pairs = listing((" to ".join(map(short, sorted(pair))) for pair in apart), at_most=3)
            count = f"{len(apart)} pair{'s' * (len(apart) > 1)} of different places"
            self.made.notes.append(
                f"{count} {'are' if len(apart) > 1 else 'is'} 0 ms apart ({pairs}); if that was not"
                " measured, leave the cells empty and say with --default what it is to be"
            )


_KEYS: Mapping[str, str] = {
    **{"jitter": "jitter_ns", "deviation": "jitter_ns", "loss": "loss", "rate": "rate"},
    "unit": "unit",
}


def _is_usable(own: Column, rows: Sequence[list[str]], header: list[str]) -> bool:
    """Whether a column can be read: one with a `bandwidth` without unit cannot."""
    if own.role != "rate" or own.factor is not None or own.name.lower() == "rate":
        return True
    at = header.index(own.name)
    return not any(re.fullmatch(r"[\d.,]+", row[at]) for row in rows if at < len(row))


def _is_headless(rows: Sequence[Row]) -> bool:
    """Whether every line, with the first, is a place, a place and a figure."""
    return all(
        len(row) == 3 and not is_figure(row[0]) and not is_figure(row[1]) and is_figure(row[2])
        for _, row in rows
    )


_NOWHERE = {"", "-", "–", "—", "--", "n/a", "nan", "null", "none", "?"}


def _spaced(name: str) -> str:
    """A name with plain spaces, of which web pages have others."""
    return " ".join(name.split())


def _has_length(cell: str) -> bool:
    return is_figure(cell) and re.search("[1-9]", cell) is not None


def _is_corner(cell: str) -> bool:
    """Whether a first cell heads a column of names, as `from` or `client (ms)` do."""
    own = column(cell)
    return own.role != "other" or own.is_statistic or not set(words(cell)) - _HEADS - set(TIME)


_HEADS = {"name", "names", "site", "host", "node", "region", "place", "city", "to", "as", "id"}


def _median(entries: Sequence[Entry]) -> Entry:
    """One of several measurements: the median of each figure that is known.

    A figure of 0 beside others is a lost probe.
    """
    entries = [entry for entry in entries if entry.ns] or entries
    if len(entries) == 1:
        return entries[0]
    first, *_ = entries
    jitter = [entry.jitter_ns for entry in entries if entry.jitter_ns is not None]
    loss = [entry.loss.value for entry in entries if entry.loss is not None]
    rate = [entry.rate.bps for entry in entries if entry.rate is not None]
    return Entry(
        first.line,
        round(median(entry.ns for entry in entries)),
        round(median(jitter)) if jitter else None,
        Fraction(median(loss)) if loss else None,
        Rate(round(median(rate))) if rate else None,
    )
