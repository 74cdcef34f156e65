"""Figures as people write them: units, decimal commas, thousands, lost probes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from wanlat.topologies.units import Duration, Fraction, QuantityError, Rate
from wanlat.topologies.wording import show

Point = Literal[".", ","]

# Nanoseconds of a unit, by every way to write it (in lower case, µ as u).
TIME: Mapping[str, int] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 10**9),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milli", "msecond", "mseconds"), 10**6),
    **dict.fromkeys(("millisec", "millisecs", "millisecond", "milliseconds"), 10**6),
    **dict.fromkeys(("us", "usec", "usecs", "micros", "micro", "usecond", "useconds"), 10**3),
    **dict.fromkeys(("microsec", "microsecs", "microsecond", "microseconds"), 10**3),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanos", "nano", "nanosec"), 1),
    **dict.fromkeys(("nanosecs", "nanosecond", "nanoseconds"), 1),
}
UNITS: Mapping[int, str] = {10**9: "s", 10**6: "ms", 10**3: "us", 1: "ns"}
SHARES: Mapping[str, float] = {
    **dict.fromkeys(("%", "percent", "pct", "perc", "percentage"), 100),
    **dict.fromkeys(("‰", "permille"), 1000),
    "ppm": 10**6,
    **dict.fromkeys(("fraction", "frac", "ratio", "share", "probability", "prob"), 1),
}
_IN_CELLS: Mapping[str, int] = {"min": 60 * 10**9, "h": 3600 * 10**9}
_MISSING = {
    *("", "-", "–", "—", "--", "---", "…", ".", "na", "n/a", "#n/a", "nan", "+nan", "-nan", "null"),
    *("none", "nil", "?", "x", "(none)", "n.a", "nd", "unknown", "tbd", "no data"),
}
_LOST = {
    *("*", "timeout", "timed out", "time out", "request timed out", "lost", "unreachable"),
    *("no response", "no reply", "no answer", "100% loss", "100% packet loss", "#value!"),
    *("inf", "+inf", "-inf", "infinity", "-infinity", "∞", "fail", "failed", "error", "err"),
}
UNLIMITED = {"unlimited", "max", "full", "line rate"}
_MINUS_ONE = re.compile(r"-1(?:[.,]0*)?(?:e[+-]?0+)?\s*[a-zµμ]*")
_ROUNDED = "~≈∼"
_GROUP = "'’ \u00a0\u202f\u2009"
_FIGURE = re.compile(
    rf"([+-]?)\s*(\d[\d.,{_GROUP}]*|[.,]\d+)(e[+-]?\d{{1,4}})?\s*([^\d\s.,{_GROUP}].*)?",
    re.IGNORECASE,
)
# At most one kind of thousands and one decimal part: `10.0.0.1` is an address.
_NUMBER = re.compile(rf"\d+[.,]?\d*|[.,]\d+|\d{{1,3}}([.,{_GROUP}])\d{{3}}(\1\d{{3}})*([.,]\d*)?")
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_RATE = re.compile(r"([kmgt]?)(bits?|bps|b|bytes?)(/s|/sec|ps|/second|psec)?", re.IGNORECASE)
_LONGEST_NS = 1800 * 10**9


def unit_word(text: str) -> str:
    """A unit in the spelling of the tables here: `µsec` is `usec`."""
    return text.replace("µ", "u").replace("μ", "u").lower().rstrip(".")


def is_lost(cell: str) -> bool:
    """Whether a cell stands for a probe without an answer: -1, inf, `timeout`."""
    text = cell.replace("\u2212", "-").lower().rstrip(".")
    return text in _LOST or _MINUS_ONE.fullmatch(text) is not None


def is_missing(cell: str) -> bool:
    """Whether a cell has no figure, lost probes among them."""
    if _PLAIN.fullmatch(cell):
        return False
    return (cell.lower().rstrip(".") or cell) in _MISSING or is_lost(cell)


def is_rounded(cell: str) -> bool:
    """Whether a cell marks its figure as inexact: `~35`."""
    return cell[:1] in _ROUNDED


def _match(cell: str) -> re.Match[str] | None:
    return _FIGURE.fullmatch(cell.lstrip(_ROUNDED + " ").replace("\u2212", "-"))


def is_figure(cell: str) -> bool:
    """Whether a cell is a number, with a unit of time or a percent sign or without."""
    if _PLAIN.fullmatch(cell):
        return True
    match = _match(cell)
    return (
        match is not None
        and bool(_NUMBER.fullmatch(match[2].rstrip(_GROUP)))
        and (not match[4] or unit_word(match[4]) in {*TIME, *_IN_CELLS, *SHARES})
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """How numbers are read: what stands before the decimals. `doubt`: another reading exists."""

    point: Point
    doubt: str = ""


def decimal_point(
    cells: Iterable[tuple[int, str]], separator: str, whole: Iterable[str], *, is_fine: bool
) -> Reading:
    """Decide from all figures (with their lines) what their decimal point is.

    `1,234` is no evidence, `31.5`, `1,234.5` and `0,234` do. `whole`: those of one column, of which
    figures without decimals beside `1.234` make that doubtful; `is_fine`: it is in a unit that
    rarely has decimals, with the same effect. Raises QuantityError when the
    figures contradict each other, or when both readings are as good.
    """
    proof: dict[str, tuple[int, str]] = {}
    unclear: dict[str, tuple[int, str]] = {}
    for line, cell in cells:
        match = _match(cell) if "," in cell or "." in cell else None
        number = match[2].rstrip(_GROUP) if match else ""
        if match and ("," in number or "." in number) and _NUMBER.fullmatch(number):
            mark, is_proof = _evidence(number, bool(match[3]))
            (proof if is_proof else unclear).setdefault(mark, (line, cell))
    if len(proof) > 1:
        (at, with_point), (line, with_comma) = proof["."], proof[","]
        raise QuantityError(
            f"{show(with_point)} (line {at}) has a decimal point and {show(with_comma)} (line"
            f" {line}) a decimal comma; write all alike"
        )
    if proof:
        return Reading("." if "." in proof else ",")
    if not unclear:
        return Reading(".")
    mark = "," if "," in unclear else "."
    line, cell = unclear[mark]
    readings = cell.replace(mark, "."), cell.replace(mark, "")
    text = f"{show(cell)} (line {line}) is {readings[0]}, or {readings[1]} with a mark of thousands"
    way = "--decimal . or --decimal , says which character the decimals follow"
    if mark == "." and separator == ",":
        return Reading(".")
    mixed = is_fine or any(re.fullmatch(r"[1-9]\d*", cell) for cell in whole)
    if mark == "," or "," in unclear or mixed:
        raise QuantityError(f"{text}, and nothing in the file decides it; {way}")
    return Reading(".", f"{text}: read as {readings[0]}; {way}")


def _evidence(number: str, has_exponent: bool) -> tuple[Point, bool]:
    """The decimal point that a number speaks for; False: or not, it may be a mark of thousands."""
    last: Point = "." if number.rfind(".") > number.rfind(",") else ","
    other: Point = "," if last == "." else "."
    if number.count(last) > 1:
        return other, True
    before, _, after = number.partition(last)
    doubtful = len(after) == 3 and re.fullmatch(r"[1-9]\d{0,2}", before) and not has_exponent
    return last, not doubtful


@dataclass(frozen=True, slots=True)
class Parser:
    """Reads cells of a file in which decimals follow `point`."""

    point: Point = "."

    def number(self, cell: str) -> tuple[Decimal, str]:
        """The number in a cell and the unit behind it, as written. Raises QuantityError."""
        if self.point == "." and _PLAIN.fullmatch(cell):  # as nearly all are
            return Decimal(cell), ""
        match = _match(cell)
        if match is None and cell[:1] in "<>≤≥":
            raise QuantityError(f"{show(cell)} is a bound, and no figure; write the figure")
        if match is None:
            raise QuantityError(f"{show(cell)} is not a number")
        sign, number, exponent, unit = (part or "" for part in match.groups())
        whole, _, decimals = number.rstrip(_GROUP).partition(self.point)
        thousands = "." if self.point == "," else ","
        grouped = rf"\d{{1,3}}([{_GROUP}{thousands}])\d{{3}}(\1\d{{3}})*"
        if not whole.isdecimal() and whole and not re.fullmatch(grouped, whole):
            raise QuantityError(f"{show(cell)} is not a number with decimals after {self.point}")
        if decimals and not decimals.isdecimal():
            raise QuantityError(f"{show(cell)} is not a number with decimals after {self.point}")
        digits = re.sub(r"\D", "", whole)
        value = Decimal(f"{sign}{digits or 0}.{decimals or 0}{exponent}")
        if value < 0:
            raise QuantityError(f"{show(cell)} is negative")
        return value, unit.strip()

    def time_ns(self, cell: str, factor: int) -> int:
        """A duration in nanoseconds; `factor` is of a number without a unit."""
        value, unit = self.number(cell)
        if unit:
            units = {**TIME, **_IN_CELLS}
            if unit_word(unit) not in units:
                raise QuantityError(
                    f"{show(unit)} in {show(cell)} is not a unit of time (ns, us, ms or s)"
                )
            factor = units[unit_word(unit)]
        if value * factor > _LONGEST_NS:
            most = f"{show(cell)} is longer than {Duration(_LONGEST_NS)}, the most of one direction"
            raise QuantityError(f"{most}; is the unit right (--unit)?")
        return round(value * factor)

    def loss(self, cell: str, per: float) -> Fraction:
        """A share of packets; `per` is what a number without a sign is out of: 100 of percent."""
        value, unit = self.number(cell)
        if unit and unit.lower() not in SHARES:
            raise QuantityError(f"{show(unit)} in {show(cell)} is not a share; write 0.1% or 0.001")
        per = SHARES[unit.lower()] if unit else per
        if value > Decimal(per):
            hint = f" ({cell} in a hundred is {cell}%)" if per == 1 and value <= 100 else ""
            raise QuantityError(f"{show(cell)} is outside 0..1; allowed is 0% to 100%{hint}")
        return Fraction(float(value / Decimal(per)))

    def rate(self, cell: str, factor: int) -> Rate:
        """Bits a second; `factor` is of a number without a unit, 0 where the column has none."""
        value, unit = self.number(cell)
        bits = (rate_factor(unit) if unit else factor) or 0
        if not bits:
            return Rate.parse(cell)  # which says what is allowed
        return Rate(round(value * bits))


def rate_factor(unit: str) -> int | None:
    """Bits a second of `Mbps`, `Mbit/s`, `MB/s` (bytes), `gbit`; None if it is no such unit."""
    match = _RATE.fullmatch(unit.strip())
    if match is None:
        return None
    scale = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}[match[1].lower()]
    is_bytes = match[2].lower().startswith("byte") or match[2] in ("B", "Bps")
    return scale * (8 if is_bytes else 1)
