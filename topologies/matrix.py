"""A matrix of round-trip times, or of one-way delays, between places: read from CSV, and checked.

Two forms are told apart by their first line. Sites × sites: names across and down, figures in
the cells. Long: a line a direction, with columns `from`, `to` and `rtt_ms` (or `delay_ms`), and
`jitter_ms`, `loss`, `rate` where known. `docs/real-places.md` shows both.
"""

from __future__ import annotations

import csv
import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

from wanlat.topologies.errors import UserError
from wanlat.topologies.limits import MAX_LINK_RTT_NS, MAX_SITES
from wanlat.topologies.units import Duration, Fraction, QuantityError, Rate
from wanlat.topologies.wording import did_you_mean, listing, printable, short, show

Meaning = Literal["rtt", "delay"]
Unit = Literal["s", "ms", "us", "ns"]

UNITS: Mapping[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

_LARGEST_FILE = 32 * 2**20
_MOST_TOLD = 50
_MISSING = {"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "x"}
_DELIMITERS = (",", ";", "\t", "|")
_FROM = ("from", "source", "src", "origin")
_TO = ("to", "destination", "dest", "dst", "target")
# Half of the Earth's circumference and back, through fibre that takes no detour, is 200 ms.
_FAR_NS = 1000 * 10**6
_NEAR_NS = 10**6


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


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix as the file has it: places in its order, entries from place to place.

    An entry from a place to itself is what lies inside it. `comments` are the lines before the
    first figure that start with `#`, without the sign: where the figures come from.
    """

    file: str
    meaning: Meaning
    names: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]
    comments: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def between(self, a: str, b: str) -> tuple[Entry, ...]:
        """Both directions' entries, as far as they are there."""
        pairs = ((a, b), (b, a))
        return tuple(self.entries[pair] for pair in pairs if pair in self.entries)


@dataclass(frozen=True, slots=True)
class Asymmetry:
    """Pairs whose two entries differ. `worst` is (from, to, ns, ns of the way back)."""

    pairs: int
    of: int
    worst: tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class Detours:
    """Pairs for which a way over a third place is shorter: they break the triangle inequality.

    `worst` is (a, b, ns, by way of, ns of the detour), the pair that would gain most.
    """

    pairs: int
    of: int
    worst: tuple[str, str, int, str, int]


def asymmetry(matrix: Matrix) -> Asymmetry | None:
    """How many pairs have two entries that differ; None when none does."""
    differing = []
    both = 0
    for a, b in combinations(matrix.names, 2):
        entries = matrix.between(a, b)
        if len(entries) == 2:
            both += 1
            if entries[0].ns != entries[1].ns:
                differing.append((a, b, entries[0].ns, entries[1].ns))
    if not differing:
        return None
    return Asymmetry(len(differing), both, max(differing, key=lambda each: abs(each[2] - each[3])))


def detours(rtt_ns: Mapping[tuple[str, str], int], names: Iterable[str]) -> Detours | None:
    """How many pairs break the triangle inequality; None when none does.

    `rtt_ns` has every pair in both orders, with the same figure. Real paths break it often:
    routes follow contracts, not distance.
    """
    places = list(names)
    far = MAX_LINK_RTT_NS * 4
    rows = [[rtt_ns.get((a, b), far) for b in places] for a in places]
    worst: tuple[int, tuple[str, str, int, str, int]] | None = None
    count = of = 0
    for i, j in combinations(range(len(places)), 2):
        direct = rows[i][j]
        if direct >= far:
            continue
        of += 1
        ways = list(map(operator.add, rows[i], rows[j]))
        shortest = min(ways)
        if shortest < direct:
            count += 1
            via = places[ways.index(shortest)]
            if worst is None or direct - shortest > worst[0]:
                worst = (direct - shortest, (places[i], places[j], direct, via, shortest))
    return None if worst is None else Detours(count, of, worst[1])


def read(path: str | Path, *, one_way: bool = False, unit: Unit = "ms") -> Matrix:
    """Read a matrix. Figures without a unit of their own are in `unit`.

    `one_way`: the figures are delays in one direction, not round trips; a column that is named
    `delay…` says so itself. MatrixError lists every mistake, each with its line.
    """
    lines = _Lines.of(Path(path))
    reader = _Reader(lines, one_way=one_way, unit=unit)
    return reader.matrix()


@dataclass(slots=True)
class _Lines:
    """The lines of a file that hold cells, with their numbers."""

    file: str
    rows: list[tuple[int, list[str]]]
    comments: tuple[str, ...]
    decimal_comma: bool

    @classmethod
    def of(cls, path: Path) -> _Lines:
        file = printable(str(path))
        text = _text(path, file)
        numbered = list(enumerate(text.splitlines(), start=1))
        comments = tuple(line.strip()[1:].strip() for _, line in numbered if _is_comment(line))
        cells = [(number, line) for number, line in numbered if not _is_comment(line)]
        cells = [(number, line) for number, line in cells if line.strip(" \t,;|")]
        if not cells:
            raise MatrixError(f"{file}: there is no line with figures in it")
        header = cells[0][1]
        delimiter = max(_DELIMITERS, key=header.count)
        rows = []
        for number, line in cells:
            try:
                row = next(csv.reader([line], delimiter=delimiter, strict=True), [])
            except csv.Error as problem:
                raise MatrixError(f"{file}:{number}: this is not CSV: {problem}") from None
            rows.append((number, [cell.strip() for cell in row]))
        return cls(file, rows, comments, decimal_comma=delimiter != ",")


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _text(path: Path, file: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        raise MatrixError(f"{file}: there is no such file") from None
    except IsADirectoryError:
        raise MatrixError(f"{file}: this is a directory; give a CSV file") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise MatrixError(f"{file}: the file cannot be read: {reason}") from None
    if len(data) > _LARGEST_FILE:
        raise MatrixError(f"{file}: the file is larger than {_LARGEST_FILE // 2**20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        bad = f"0x{data[problem.start]:02x}"
        raise MatrixError(f"{file}:{line}: byte {bad} is not UTF-8; save it as UTF-8") from None


@dataclass(slots=True)
class _Reader:
    """Reads the rows of a file; `mistakes` gathers what is wrong, (line, text)."""

    lines: _Lines
    one_way: bool
    unit: Unit
    mistakes: list[tuple[int, str]] = field(default_factory=list)
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)

    def matrix(self) -> Matrix:
        number, header = self.lines.rows[0]
        lowered = [cell.lower() for cell in header]
        unused: tuple[str, ...] = ()
        meaning: Meaning = "delay" if self.one_way else "rtt"
        if any(cell in _FROM for cell in lowered) and any(cell in _TO for cell in lowered):
            names, meaning, unused = self._long(number, lowered)
        else:
            names = self._square(number, header)
        if not self.mistakes:
            self._check_size(number, names)
        self._stop_if_wrong()
        return Matrix(self.lines.file, meaning, names, self.entries, self.lines.comments, unused)

    def _stop_if_wrong(self) -> None:
        if not self.mistakes:
            return
        told = sorted(self.mistakes)
        texts = [f"{self.lines.file}:{line}: {text}" for line, text in told[:_MOST_TOLD]]
        if len(told) > _MOST_TOLD:
            texts.append(f"and {len(told) - _MOST_TOLD} more mistakes")
        if len(told) > 1:
            texts.insert(0, f"{self.lines.file} has {len(told)} mistakes:")
        raise MatrixError("\n".join(texts))

    def _check_size(self, line: int, names: tuple[str, ...]) -> None:
        if len(names) < 2:
            self.mistakes.append((line, "a matrix has at least two places"))
        if len(names) > MAX_SITES:
            text = f"there are {len(names)} places; a topology has at most {MAX_SITES} sites"
            self.mistakes.append((line, text))

    def _square(self, number: int, header: list[str]) -> tuple[str, ...]:
        """Sites × sites: the row is where from, the column where to."""
        columns = header[1:]
        self._names(number, columns, "column")
        rows: dict[str, int] = {}
        for line, row in self.lines.rows[1:]:
            name, cells = row[0] if row else "", row[1:]
            if not name:
                self.mistakes.append((line, "the row has no name in its first cell"))
                continue
            if name in rows:
                text = f"row {show(name)} is there already (first in line {rows[name]})"
                self.mistakes.append((line, text))
                continue
            rows[name] = line
            if name not in columns:
                near = did_you_mean(name, columns)
                text = f"row {show(name)} has no column of that name{near}"
                self.mistakes.append((line, f"{text}; the first line names every place"))
                continue
            while len(cells) > len(columns) and not cells[-1]:
                cells.pop()
            if len(cells) > len(columns):
                text = f"row {show(name)} has {len(cells)} figures for {len(columns)} columns"
                self.mistakes.append((line, text))
                continue
            for to, cell in zip(columns, cells, strict=False):
                ns = self._duration(line, cell, f"from {short(name)} to {short(to)}")
                if ns is not None:
                    self.entries[name, to] = Entry(ns, line)
        # A triangle is a matrix too: a place whose row has nothing of its own may have none.
        return tuple(columns)

    def _names(self, line: int, names: list[str], what: str) -> None:
        seen: set[str] = set()
        for place, name in enumerate(names, start=2):
            if not name:
                self.mistakes.append((line, f"{what} {place} has no name"))
            elif name in seen:
                self.mistakes.append((line, f"{what} {show(name)} is there twice"))
            seen.add(name)

    def _long(
        self, number: int, header: list[str]
    ) -> tuple[tuple[str, ...], Meaning, tuple[str, ...]]:
        """A line a direction: `from`, `to`, a figure, and more where known."""
        known = {name: place for place, name in enumerate(header)}
        if len(known) < len(header):
            self.mistakes.append((number, "a column is named twice"))
        start = next(known[name] for name in _FROM if name in known)
        end = next(known[name] for name in _TO if name in known)
        figure, meaning = self._figure(number, known)
        self._stop_if_wrong()
        assert figure is not None
        used = {header[start], header[end], figure[0]}
        jitter = next((n for n in known if n.split("_")[0] == "jitter"), None)
        others = {name for name in (jitter, "loss", "rate") if name in known}
        names: dict[str, None] = {}
        for line, row in self.lines.rows[1:]:
            cells = dict(zip(header, row, strict=False))
            a, b = cells.get(header[start], ""), cells.get(header[end], "")
            if len(row) > len(header) or not a or not b:
                text = f"{len(header)} cells are wanted here, the first line's, with two places"
                self.mistakes.append((line, text))
                continue
            names[a] = names[b] = None
            where = f"from {short(a)} to {short(b)}"
            ns = self._duration(line, cells.get(figure[0], ""), where, figure[1])
            if ns is None:
                continue
            if (a, b) in self.entries:
                first = self.entries[a, b].line
                text = f"{where} is given already (first in line {first})"
                self.mistakes.append((line, text))
                continue
            self.entries[a, b] = Entry(
                ns,
                line,
                jitter_ns=self._duration(line, cells.get(jitter or "", ""), where, _unit(jitter)),
                loss=self._loss(line, cells.get("loss", "")),
                rate=self._rate(line, cells.get("rate", "")),
            )
        unused = tuple(name for name in header if name not in used | others and name)
        return tuple(names), meaning, unused

    def _figure(
        self, line: int, known: Mapping[str, int]
    ) -> tuple[tuple[str, Unit | None] | None, Meaning]:
        """The column with the figures, its unit if its name has one, and what they mean."""
        means: dict[str, Meaning] = {"rtt": "rtt", "latency": "rtt", "ping": "rtt"}
        means |= {"delay": "delay", "owd": "delay"}
        found = [name for name in known if name.split("_")[0] in means]
        if len(found) != 1:
            wanted = "`rtt_ms` for round trips, or `delay_ms` for one-way delays"
            text = f"there is no column with the figures; name one {wanted}"
            if found:
                text = f"{listing(map(show, found))} could all be the figures; name one {wanted}"
            self.mistakes.append((line, text))
            return None, "rtt"
        name = found[0]
        meaning = means[name.split("_")[0]]
        if self.one_way and name.startswith("rtt"):
            text = f"column {show(name)} has round trips, and --one-way says that it has not"
            self.mistakes.append((line, text))
        return (name, _unit(name)), "delay" if self.one_way else meaning

    def _duration(self, line: int, cell: str, where: str, unit: Unit | None = None) -> int | None:
        """A cell in nanoseconds; None when it is empty or wrong (which is told)."""
        if cell.lower() in _MISSING:
            return None
        number = cell.replace(",", ".") if self.lines.decimal_comma else cell
        try:
            value = float(number)
        except ValueError:
            try:
                ns = Duration.parse(cell).ns
            except QuantityError as problem:
                self.mistakes.append((line, f"{where}: {problem}"))
                return None
        else:
            if not math.isfinite(value):
                self.mistakes.append((line, f"{where}: {show(cell)} is no duration"))
                return None
            if value < 0:
                self.mistakes.append((line, f"{where}: {show(cell)} is negative"))
                return None
            ns = round(value * UNITS[unit or self.unit]) if value < 1e15 else 10**18
        if ns > MAX_LINK_RTT_NS // 2:
            most = Duration(MAX_LINK_RTT_NS // 2)
            text = f"{where}: {show(cell)} is longer than {most}, the most of one direction"
            self.mistakes.append((line, f"{text}; is the unit right (--unit)?"))
            return None
        return ns

    def _loss(self, line: int, cell: str) -> Fraction | None:
        try:
            return None if cell.lower() in _MISSING else Fraction.parse(cell)
        except QuantityError as problem:
            self.mistakes.append((line, str(problem)))
            return None

    def _rate(self, line: int, cell: str) -> Rate | None:
        try:
            return None if cell.lower() in _MISSING else Rate.parse(cell)
        except QuantityError as problem:
            self.mistakes.append((line, str(problem)))
            return None


def _unit(column: str | None) -> Unit | None:
    """The unit in a column's name, such as `rtt_ms`."""
    last = (column or "").rpartition("_")[2]
    for unit in ("ms", "us", "ns", "s"):
        if last == unit and column != last:
            return unit
    return None


def sanity(matrix: Matrix) -> Iterator[str]:
    """What looks as if the unit were not the one it was read in."""
    between = [entry.ns for (a, b), entry in matrix.entries.items() if a != b]
    far = sum(ns > _FAR_NS for ns in between)
    if far:
        yield (
            f"{far} of {len(between)} figures are above 1 s, the largest"
            f" {max(between) / 10**6:.6g} ms; no two places on Earth need that long:"
            " is the unit right (--unit)?"
        )
    if between and max(between) < _NEAR_NS:
        yield (
            f"every figure is below 1 ms, the largest {max(between) / 10**6:.6g} ms:"
            " is the unit right (--unit)?"
        )
