"""Quantities with their unit in the type: a duration, a rate, a size, a fraction.

Each is parsed from a YAML scalar (`100ms`, `1gbit`, `64KiB`, `0.1%`) and `str()` prints the
shortest spelling that parses to the same value. All hold exact numbers: `0.1ms` is 100,000 ns.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction as Exact
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import core_schema

# Counts fit a signed 64-bit integer, which is what the kernel and wire hold them in.
LARGEST_COUNT = 2**63 - 1
_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"


class QuantityError(UserError, ValueError):
    """A text that is not the quantity it should be. The message says what is allowed."""


class Quantity(ABC):
    """What the units share: `parse`, `str()`, and being usable as a pydantic field."""

    __slots__ = ()
    json_schema: ClassVar[dict[str, Any]]

    @classmethod
    @abstractmethod
    def parse(cls, value: object) -> Self:
        """The quantity that a YAML scalar (or a quantity of this type) means, or QuantityError."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: "GetCoreSchemaHandler"
    ) -> "core_schema.CoreSchema":
        """A pydantic field of this type takes what `parse` takes and is dumped by `str`."""
        from pydantic_core import PydanticCustomError, core_schema

        def validate(value: object) -> Quantity:
            try:
                return cls.parse(value)
            except QuantityError as error:
                raise PydanticCustomError("quantity", "{text}", {"text": str(error)}) from None

        return core_schema.no_info_plain_validator_function(
            validate,
            serialization=core_schema.to_string_ser_schema(when_used="json"),
            # A name, so that a JSON schema defines the quantity once.
            ref=f"{cls.__module__}.{cls.__qualname__}:{id(cls)}",
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: "core_schema.CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        """The spellings that `parse` takes, as a pattern."""
        return {"description": (cls.__doc__ or "").strip(), **cls.json_schema}


@dataclass(frozen=True, order=True, slots=True)
class Duration(Quantity):
    """A length of time, never negative, in whole nanoseconds. Written `100ms`, `250us`, `10min`."""

    ns: int

    _units: ClassVar[Mapping[str, int]] = {"ms": 10**6, "s": 10**9, "us": 10**3, "ns": 1}
    # Printed in seconds: who compares two of them should not have to convert.
    _read: ClassVar[Mapping[str, int]] = {**_units, "min": 60 * 10**9, "h": 3600 * 10**9}
    _allowed: ClassVar[str] = (
        "a duration is a number and a unit (ns, us, ms, s, min or h), such as `100ms` or `0.5ms`"
    )
    json_schema: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"type": "string", "pattern": rf"^{_NUMBER} ?(ns|us|ms|s|min|h)$"},
            {"type": "number", "const": 0},
        ],
        "examples": ["100ms", "0.5ms", "250us", "1.5s", 0],
    }

    def __post_init__(self) -> None:
        """Refuse what no duration is."""
        _check_count("a duration", self.ns)

    @property
    def ms(self) -> float:
        """The duration in milliseconds."""
        return self.ns / 10**6

    @property
    def s(self) -> float:
        """The duration in seconds."""
        return self.ns / 10**9

    @classmethod
    def parse(cls, value: object) -> "Duration":
        """`100ms`, `1.5s`, `250 us`, `10min`, or a bare 0."""
        if isinstance(value, Duration):
            return value
        if not isinstance(value, bool) and isinstance(value, int | float) and value == 0:
            return cls(0)
        return cls(_count(value, cls._read, cls._allowed, "nanosecond"))

    def __str__(self) -> str:
        """The shortest spelling; 0 is `0ms`."""
        return _shortest(self.ns, self._units, small="ms")


@dataclass(frozen=True, order=True, slots=True)
class Rate(Quantity):
    """Bits a second, at least one. Written `100mbit`, `1gbit`, `64kbit`; k is 1000, as in tc."""

    bps: int

    _units: ClassVar[Mapping[str, int]] = {
        "mbit": 10**6,
        "gbit": 10**9,
        "tbit": 10**12,
        "kbit": 10**3,
        "bit": 1,
    }
    _allowed: ClassVar[str] = (
        "a rate is a number and a unit (bit, kbit, mbit, gbit or tbit a second),"
        " such as `100mbit` or `1gbit`"
    )
    json_schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "pattern": rf"^{_NUMBER} ?(bit|kbit|mbit|gbit|tbit)$",
        "examples": ["100mbit", "1gbit", "64kbit"],
    }

    def __post_init__(self) -> None:
        """Refuse what no rate is."""
        _check_count("a rate", self.bps)
        if self.bps == 0:
            raise QuantityError(f"a rate of 0 lets nothing through; {self._allowed}")

    @classmethod
    def parse(cls, value: object) -> "Rate":
        """`100mbit`, `1.5gbit`, `64 kbit`."""
        if isinstance(value, Rate):
            return value
        return cls(_count(value, cls._units, cls._allowed, "bit a second"))

    def __str__(self) -> str:
        """The shortest spelling."""
        return _shortest(self.bps, self._units)


@dataclass(frozen=True, order=True, slots=True)
class Size(Quantity):
    """A number of bytes. Written `64KiB` (1024), `1MB` (1000), or a plain whole number."""

    bytes: int

    _units: ClassVar[Mapping[str, int]] = {
        "KiB": 2**10,
        "MiB": 2**20,
        "GiB": 2**30,
        "B": 1,
        "kB": 10**3,
        "KB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
    }
    _allowed: ClassVar[str] = (
        "a size is a whole number of bytes, or a number and a unit"
        " (B, KiB, MiB, GiB of 1024; kB, MB, GB of 1000), such as `64KiB`"
    )
    json_schema: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"type": "string", "pattern": rf"^{_NUMBER} ?(B|KiB|MiB|GiB|kB|KB|MB|GB)$"},
            {"type": "integer", "minimum": 0, "maximum": LARGEST_COUNT},
        ],
        "examples": ["64KiB", "1MB", 1024],
    }

    def __post_init__(self) -> None:
        """Refuse what no size is."""
        _check_count("a size", self.bytes)

    @classmethod
    def parse(cls, value: object) -> "Size":
        """`64KiB`, `1MB`, `512 B`, or a plain int."""
        if isinstance(value, Size):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT:
            return cls(value)
        return cls(_count(value, cls._units, cls._allowed, "byte"))

    def __str__(self) -> str:
        """The shortest spelling, always with a unit; 0 is `0B`."""
        return _shortest(self.bytes, self._units) if self.bytes else "0B"


@dataclass(frozen=True, order=True, slots=True)
class Fraction(Quantity):
    """A part of a whole, 0 to 1. Written `0.1%` or `0.001`."""

    value: float

    _allowed: ClassVar[str] = "allowed is `0%` to `100%`, or 0 to 1 without the sign"
    _pattern: ClassVar[re.Pattern[str]] = re.compile(rf"({_NUMBER}(?:[eE]-?[0-9]{{1,3}})?)( ?%)?")
    json_schema: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"type": "string", "pattern": rf"^{_NUMBER}([eE]-?[0-9]{{1,3}})?( ?%)?$"},
            {"type": "number", "minimum": 0, "maximum": 1},
        ],
        "examples": ["1%", "0.5%", 0.01],
    }

    def __post_init__(self) -> None:
        """Refuse what no fraction is, NaN included."""
        if not 0 <= self.value <= 1:
            raise QuantityError(f"{show(self.value)} is outside 0..1; {self._allowed}")

    def __float__(self) -> float:
        """The fraction as a number, 0 to 1."""
        return self.value

    @classmethod
    def parse(cls, value: object) -> "Fraction":
        """`1%`, `0.5 %`, 0.01, or the text `1e-3` (which YAML does not take for a number)."""
        if isinstance(value, Fraction):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = Exact(value) if math.isfinite(value) else None
        elif isinstance(value, str) and (match := cls._pattern.fullmatch(value)):
            number = Exact(match[1]) / (100 if match[2] else 1)
        elif isinstance(value, str) and cls._pattern.fullmatch(value.removeprefix("-")):
            number = Exact(-1)
        else:
            raise QuantityError(f"{_shown(value)} is not a fraction; {cls._allowed}")
        if number is None or not 0 <= number <= 1:
            hint = ""
            if isinstance(value, int) and 1 < value <= 100:
                hint = f" ({value} in a hundred is `{value}%`)"
            raise QuantityError(f"{show(value)} is outside 0..1; {cls._allowed}{hint}")
        return cls(float(number))

    def __str__(self) -> str:
        """In percent; below a millionth as a bare number with an exponent."""
        if 0 < self.value < 1e-6:
            return repr(self.value)
        percent = (Decimal(repr(self.value)) * 100).normalize()
        return f"{percent:f}%"


def _check_count(what: str, count: int) -> None:
    if not 0 <= count <= LARGEST_COUNT:
        raise QuantityError(f"{what} must be a count from 0 to {LARGEST_COUNT}, not {show(count)}")


def _shown(value: object) -> str:
    return "an empty value" if value is None or value == "" else show(value)


def _count(value: object, units: Mapping[str, int], allowed: str, unit_name: str) -> int:
    """The whole number of the smallest unit that a text such as `1.5s` means."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        wrong = "is negative" if value < 0 else "has no unit"
        raise QuantityError(f"{show(value)} {wrong}; {allowed}")
    if not isinstance(value, str):
        raise QuantityError(f"{_shown(value)} is not a number and a unit; {allowed}")
    match = re.fullmatch(rf"(-?)({_NUMBER})( ?)([A-Za-zµμ/]*)", value)
    if match is None:
        raise QuantityError(f"{_shown(value)} is not a number and a unit; {allowed}")
    sign, number, _space, unit = match.groups()
    if sign and Exact(number) != 0:
        raise QuantityError(f"{show(value)} is negative; {allowed}")
    if sign or not unit:
        wrong = "has no unit" if not unit else "has a sign"
        raise QuantityError(f"{show(value)} {wrong}; {allowed}")
    if unit not in units:
        raise QuantityError(
            f"{show(unit)} in {show(value)} is not a unit; {allowed}{_unit_hint(unit, units)}"
        )
    whole, _, decimals = number.partition(".")
    scale: int = 10 ** len(decimals)
    count, rest = divmod(int(whole + decimals) * units[unit], scale)
    if rest:
        raise QuantityError(f"{show(value)} is not a whole {unit_name}; round it to one")
    if count > LARGEST_COUNT:
        raise QuantityError(f"{show(value)} is too large; at most {LARGEST_COUNT} {unit_name}s")
    return count


def _unit_hint(unit: str, units: Mapping[str, int]) -> str:
    if "mbit" in units and unit.lower().endswith(("bps", "b/s")):
        # tc reads `mbps` as megabytes a second, most people as megabits.
        return f" ({show(unit)} is bits to some and bytes to others)"
    same = [known for known in units if known.lower() == unit.lower()]
    return f" (did you mean {listing(map(show, same), 'or')}?)" if same else ""


def _shortest(count: int, units: Mapping[str, int], small: str | None = None) -> str:
    """The shortest exact spelling with at most three decimals.

    The earlier unit wins a tie. A leading zero (`0.5ms`) is used with the unit `small` only.
    """
    spellings = []
    for unit, factor in units.items():
        thousandths, rest = divmod(count * 1000, factor)
        if rest or (thousandths < 1000 and unit != small):
            continue
        whole, decimals = divmod(thousandths, 1000)
        fraction = f".{decimals:03d}".rstrip("0") if decimals else ""
        spellings.append(f"{whole}{fraction}{unit}")
    return min(spellings, key=len)
