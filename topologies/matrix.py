"""A matrix of round-trip times, or of one-way delays, between places: read from CSV, and checked.

Two forms are told apart by their first line. Sites × sites: names across and down, figures in
the cells. Long: a line a direction, with columns `from`, `to` and `rtt_ms` (or `delay_ms`), and
`jitter_ms`, `loss`, `rate` where known. `docs/real-places.md` shows both.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
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
_DELIMITERS = (",", ";", "\t", "|")
_FROM = ("from", "source", "src", "origin")
_TO = ("to", "destination", "dest", "dst", "target")
_MEANS: Mapping[str, Meaning] = {
    **{"rtt": "rtt", "latency": "rtt", "ping": "rtt"},
    **{"delay": "delay", "owd": "delay"},
}


class MatrixError(UserError):
    """A matrix that cannot be used. The message lists every mistake, with file and line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in one cell or line. `ns` is a round trip or a one-way delay, as `Matrix` says.

    `jitter_ns` is of the same: around the round trip, or around the one-way delay.
    """

    ns: int
    line: int
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

    def between(self, a: str, b: str) -> list[Entry]:
        """Both directions' entries, as far as they are there."""
        return [self.entries[pair] for pair in ((a, b), (b, a)) if pair in self.entries]

    def asymmetric(self) -> list[tuple[str, str]]:
        """The pairs whose two entries differ, the most different first."""
        both = {pair: self.between(*pair) for pair in combinations(self.names, 2)}
        off = {
            pair: abs(entries[0].ns - entries[1].ns)
            for pair, entries in both.items()
            if len(entries) == 2 and entries[0].ns != entries[1].ns
        }
        return sorted(off, key=lambda pair: -off[pair])


def read(path: str | Path, *, one_way: bool = False, unit: Unit = "ms") -> Matrix:
    """Read a matrix. Figures without a unit of their own are in `unit`.

    `one_way`: the figures are delays in one direction, not round trips; a column that is named
    `delay…` says so itself. MatrixError lists every mistake, each with its line.
    """
    file = printable(str(path))
    try:
        text = read_text(Path(path), "a CSV file", _LARGEST_FILE)
    except UnreadableFile as problem:
        place = file if problem.line is None else f"{file}:{problem.line}"
        raise MatrixError(f"{place}: {problem.text}") from None
    return _Reader(Matrix(file), unit).matrix(text, one_way)


@dataclass(slots=True)
class _Reader:
    """Fills a matrix; `mistakes` gathers what is wrong, (line, text)."""

    made: Matrix
    unit: str
    decimal: str = "."
    mistakes: list[tuple[int, str]] = field(default_factory=list)

    def matrix(self, text: str, one_way: bool) -> Matrix:
        rows = list(self._rows(text))
        self._stop_if_wrong()
        (line, header), *others = rows
        lowered = [cell.lower() for cell in header]
        start, end = (next((n for n in lowered if n in each), "") for each in (_FROM, _TO))
        if len(set(lowered)) < len(lowered) or "" in header[1:]:
            self.mistakes.append((line, "every column has a name of its own in the first line"))
        elif start and end:
            self._long(line, lowered, others, start, end, one_way)
        else:
            self.made.meaning = "delay" if one_way else "rtt"
            self._square(header[1:], others)
        if len(self.made.names) < 2 and not self.mistakes:
            self.mistakes.append((line, "a matrix has at least two places"))
        self._stop_if_wrong()
        return self.made

    def _stop_if_wrong(self) -> None:
        if not self.mistakes:
            return
        told = sorted(self.mistakes)
        texts = [f"{self.made.file}:{line}: {text}" for line, text in told[:_MOST_PRINTED]]
        if len(told) > _MOST_PRINTED:
            texts.append(f"and {len(told) - _MOST_PRINTED} more mistakes")
        if len(told) > 1:
            texts.insert(0, f"{self.made.file} has {len(told)} mistakes:")
        raise MatrixError("\n".join(texts))

    def _rows(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Line number and cells of every line that has some; comments are gathered."""
        numbered = [(line, each.strip()) for line, each in enumerate(text.splitlines(), start=1)]
        self.made.comments = tuple(each[1:].strip() for _, each in numbered if each[:1] == "#")
        lines = [(n, each) for n, each in numbered if each[:1] != "#" and each.strip(" \t,;|")]
        if not lines:
            raise MatrixError(f"{self.made.file}: there is no line with figures in it")
        delimiter = max(_DELIMITERS, key=lines[0][1].count)
        self.decimal = "." if delimiter == "," else ","
        for line, each in lines:
            try:
                (cells,) = csv.reader([each], delimiter=delimiter, strict=True)
                yield line, [cell.strip() for cell in cells]
            except csv.Error as problem:
                self.mistakes.append((line, f"this is not CSV: {problem}"))

    def _square(self, columns: list[str], rows: list[tuple[int, list[str]]]) -> None:
        """Sites × sites: the row is where from, the column where to."""
        # A triangle is a matrix too: a place whose row has nothing of its own may have none.
        self.made.names = tuple(columns)
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
                    self._enter(line, name, to, {"figure": cell}, {})

    def _long(
        self,
        line: int,
        header: list[str],
        rows: list[tuple[int, list[str]]],
        start: str,
        end: str,
        one_way: bool,
    ) -> None:
        """A line a direction: from, to, a figure, and more where known."""
        figures = [name for name in header if name.split("_")[0] in _MEANS]
        if len(figures) != 1:
            wanted = "`rtt_ms` for round trips, or `delay_ms` for one-way delays"
            found = listing(map(show, figures)) or "none"
            self.mistakes.append(
                (line, f"one column has the figures, not {found}; name it {wanted}")
            )
            return
        (figure,) = figures
        if one_way and figure.startswith("rtt"):
            text = f"column {show(figure)} has round trips, and --one-way says that it has not"
            self.mistakes.append((line, text))
        self.made.meaning = "delay" if one_way else _MEANS[figure.split("_")[0]]
        jitter = next((name for name in header if name.split("_")[0] == "jitter"), "jitter")
        known = {"figure": figure, "jitter": jitter, "loss": "loss", "rate": "rate"}
        used = {start, end, *known.values()}
        self.made.unused = tuple(name for name in header if name and name not in used)
        names: dict[str, None] = {}
        for number, row in rows:
            cells = dict(zip(header, row, strict=False))
            a, b = cells.get(start, ""), cells.get(end, "")
            if len(row) > len(header) or not a or not b:
                text = f"{len(header)} cells are wanted here, the first line's, with two places"
                self.mistakes.append((number, text))
                continue
            names[a] = names[b] = None
            self._enter(
                number, a, b, {key: cells.get(own, "") for key, own in known.items()}, known
            )
        self.made.names = tuple(names)

    def _enter(
        self, line: int, a: str, b: str, cells: Mapping[str, str], columns: Mapping[str, str]
    ) -> None:
        """One entry, from its cells; `columns` are the names of theirs, which may tell a unit."""
        read: dict[str, Any] = {}
        parsers: dict[str, Callable[[str, str], Any]] = {
            "figure": self._ns,
            "jitter": self._ns,
            "loss": lambda cell, _: Fraction.parse(cell),
            "rate": lambda cell, _: Rate.parse(cell),
        }
        for key, cell in cells.items():
            try:
                missing = cell.lower() in _MISSING
                read[key] = None if missing else parsers[key](cell, columns.get(key, ""))
            except QuantityError as problem:
                self.mistakes.append((line, f"from {short(a)} to {short(b)}: {problem}"))
                return
        if read["figure"] is None:
            return
        entry = Entry(read.pop("figure"), line, read.pop("jitter", None), **read)
        if (first := self.made.entries.setdefault((a, b), entry)) is not entry:
            text = f"from {short(a)} to {short(b)} is given already (first in line {first.line})"
            self.mistakes.append((line, text))

    def _ns(self, cell: str, column: str) -> int:
        """A duration in nanoseconds; a bare number is in the column's unit (`rtt_us`), or ours."""
        own = column.rpartition("_")[2]
        try:
            value = (
                float(cell.replace(self.decimal, "."))
                * _UNITS[own if own in _UNITS and own != column else self.unit]
            )
        except ValueError:
            value = Duration.parse(cell).ns
        if value < 0:
            raise QuantityError(f"{show(cell)} is negative")
        if not value <= _LONGEST_NS:
            raise QuantityError(
                f"{show(cell)} is longer than {Duration(_LONGEST_NS)}, the most of one direction;"
                " is the unit right (--unit)?"
            )
        return round(value)
