"""A matrix of round-trip times, or of one-way delays, between places: read from CSV, and checked.

Two forms are distinguished by their first line. Sites × sites: names across and down, figures in
the cells. Long: a line a direction, with columns `from`, `to` and `rtt_ms` (or `delay_ms`), and
`jitter_ms`, `loss`, `rate` where known. `docs/how-to/topologies.md` shows both.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from wanlat.topologies.errors import UserError
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.units import Duration, Fraction, QuantityError, Rate
from wanlat.topologies.wording import did_you_mean, listing, printable, short, show

Meaning = Literal["rtt", "delay"]
Unit = Literal["s", "ms", "us", "ns"]

_LARGEST_FILE = 32 * 2**20
_MOST_PRINTED = 50
_UNITS: Mapping[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LONGEST_NS = 1800 * 10**9
_MISSING = {"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "x"}
_FROM = ("from", "source", "src", "origin")
_TO = ("to", "destination", "dest", "dst", "target")
_RTT, _DELAY = ("rtt", "latency", "ping"), ("delay", "owd")

_Row = tuple[int, list[str]]
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
    with `#`, without the sign: where the figures come from. `unused` are columns.
    """

    file: str
    meaning: Meaning = "rtt"
    names: tuple[str, ...] = ()
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def read(path: str | Path, *, one_way: bool = False, unit: Unit = "ms") -> Matrix:
    """Read a matrix. Figures without a unit of their own are in `unit`.

    `one_way`: the figures are delays in one direction, not round trips; a column that is named
    `delay…` has them as well. MatrixError lists every mistake, each with its line.
    """
    reader = _Reader(Matrix(printable(str(path))), unit)
    try:
        reader.read(read_text(Path(path), "a CSV file", _LARGEST_FILE), one_way)
    except UnreadableFile as problem:
        raise MatrixError(problem.at(reader.made.file)) from None
    return reader.made


@dataclass(slots=True)
class _Reader:
    """Fills a matrix; `mistakes` gathers what is wrong, (line, text)."""

    made: Matrix
    unit: str
    decimal: str = "."
    units: dict[str, str] = field(default_factory=dict)  # of columns that name one: `rtt_us`
    mistakes: list[tuple[int, str]] = field(default_factory=list)

    def read(self, text: str, one_way: bool) -> None:
        rows = list(self._rows(text))
        self._stop_if_wrong()
        (line, header), *others = rows
        columns = [cell.lower() for cell in header]
        start, end = (next((n for n in columns if n in names), "") for names in (_FROM, _TO))
        self.made.meaning = "delay" if one_way else "rtt"
        cells: Iterable[_Cells] = ()
        if len(set(columns)) < len(columns) or "" in columns[1:]:
            self.mistakes.append((line, "every column has a name of its own in the first line"))
        elif start and end:
            cells = self._long((line, columns), others, (start, end))
        else:
            # A triangle is a matrix too: a place whose row has nothing of its own may have none.
            self.made.names = tuple(header[1:])
            cells = self._square(header[1:], others)
        for entry in cells:
            self._enter(*entry)
        if len(self.made.names) < 2 and not self.mistakes:
            self.mistakes.append((line, "a matrix has at least two places"))
        self._stop_if_wrong()

    def _stop_if_wrong(self) -> None:
        if self.mistakes:
            file, mistakes = self.made.file, sorted(self.mistakes)
            texts = [f"{file} has {len(mistakes)} mistakes:"] if len(mistakes) > 1 else []
            texts += [f"{file}:{line}: {text}" for line, text in mistakes[:_MOST_PRINTED]]
            if len(mistakes) > _MOST_PRINTED:
                texts.append(f"and {len(mistakes) - _MOST_PRINTED} more mistakes")
            raise MatrixError("\n".join(texts))

    def _rows(self, text: str) -> Iterator[_Row]:
        """Line number and cells of every line that has some; comments are gathered."""
        numbered = [(n, line.strip()) for n, line in enumerate(text.splitlines(), start=1)]
        self.made.comments = tuple(line[1:].strip() for _, line in numbered if line[:1] == "#")
        lines = [(n, line) for n, line in numbered if line[:1] != "#" and line.strip(" \t,;|")]
        if not lines:
            raise MatrixError(f"{self.made.file}: there is no line with figures in it")
        delimiter = max(",;\t|", key=lines[0][1].count)
        self.decimal = "." if delimiter == "," else ","
        for number, line in lines:
            try:
                (cells,) = csv.reader([line], delimiter=delimiter, strict=True)
                yield number, [cell.strip() for cell in cells]
            except csv.Error as problem:
                self.mistakes.append((number, f"this is not CSV: {problem}"))

    def _square(self, columns: list[str], rows: list[_Row]) -> Iterator[_Cells]:
        """Sites × sites: the row is where from, the column where to."""
        for line, (name, *cells) in rows:
            if name not in columns:
                near = did_you_mean(name, columns)
                text = f"row {show(name)} has no column of that name{near}"
                self.mistakes.append((line, f"{text}; the first line names every place"))
            elif any(cells[len(columns) :]):
                text = f"row {show(name)} has {len(cells)} figures for {len(columns)} columns"
                self.mistakes.append((line, text))
            else:
                for to, cell in zip(columns, cells, strict=False):
                    yield line, name, to, {"ns": cell}

    def _long(
        self, first: tuple[int, list[str]], rows: list[_Row], ends: tuple[str, str]
    ) -> Iterator[_Cells]:
        """A line a direction: from, to, a figure, and more where known."""
        line, header = first
        figures = [name for name in header if name.split("_")[0] in _RTT + _DELAY]
        if len(figures) != 1:
            wanted = "`rtt_ms` for round trips, or `delay_ms` for one-way delays"
            named = listing(map(show, figures)) or "none"
            text = f"one column has the figures, not {named}; name it {wanted}"
            self.mistakes.append((line, text))
            return
        (figure,) = figures
        if self.made.meaning == "delay" and figure.startswith("rtt"):
            text = f"column {show(figure)} has round trips, and --one-way says that it has not"
            self.mistakes.append((line, text))
        if figure.startswith(_DELAY):
            self.made.meaning = "delay"
        jitter = next((name for name in header if name.split("_")[0] == "jitter"), "jitter")
        known = {"ns": figure, "jitter_ns": jitter, "loss": "loss", "rate": "rate"}
        self.units = {key: name.rpartition("_")[2] for key, name in known.items() if "_" in name}
        self.made.unused = tuple(n for n in header if n and n not in (*ends, *known.values()))
        names: dict[str, None] = {}
        for number, row in rows:
            cells = dict(zip(header, row, strict=False))
            a, b = (cells.get(end, "") for end in ends)
            if len(row) > len(header) or not a or not b:
                text = f"{len(header)} cells are wanted here, the first line's, with two places"
                self.mistakes.append((number, text))
                continue
            names[a] = names[b] = None
            yield number, a, b, {key: cells.get(own, "") for key, own in known.items()}
        self.made.names = tuple(names)

    def _enter(self, line: int, a: str, b: str, cells: Mapping[str, str]) -> None:
        """One entry, from its cells."""
        parsers: dict[str, Callable[[str], Any]] = {"loss": Fraction.parse, "rate": Rate.parse}
        values: dict[str, Any] = {}
        for key, cell in cells.items():
            try:
                if cell.lower() not in _MISSING:
                    values[key] = parsers[key](cell) if key in parsers else self._ns(cell, key)
            except QuantityError as problem:
                self.mistakes.append((line, f"from {short(a)} to {short(b)}: {problem}"))
                return
        if "ns" not in values:
            return
        entry = Entry(line, **values)
        if (first := self.made.entries.setdefault((a, b), entry)) is not entry:
            text = f"from {short(a)} to {short(b)} is given already (first in line {first.line})"
            self.mistakes.append((line, text))

    def _ns(self, cell: str, key: str) -> int:
        """A duration in nanoseconds; a bare number is in the column's unit (`rtt_us`), or ours."""
        factor = _UNITS.get(self.units.get(key, ""), _UNITS[self.unit])
        try:
            value = float(cell.replace(self.decimal, ".")) * factor
        except ValueError:
            value = Duration.parse(cell).ns
        if value < 0:
            raise QuantityError(f"{show(cell)} is negative")
        if not value <= _LONGEST_NS:
            most = f"{show(cell)} is longer than {Duration(_LONGEST_NS)}, the most of one direction"
            raise QuantityError(f"{most}; is the unit right (--unit)?")
        return round(value)
