"""Quantities with their unit in the type: a duration, a rate, a size, a fraction.

Each is parsed from a YAML scalar (`100ms`, `1gbit`, `64KiB`, `0.1%`) and `str()` prints the
shortest spelling that parses to the same value. All hold exact numbers: `0.1ms` is 100,000 ns.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction as Exact
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import core_schema

# Counts fit a signed 64-bit integer, which is what the kernel and wire hold them in.
LARGEST_COUNT = 2**63 - 1
_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"


class QuantityError(UserError, ValueError):
    """A text that is not the quantity it should be. The message has what is allowed."""


class Quantity:
    """What the units share: `parse`, `str()`, and being usable as a pydantic field."""

    __slots__ = ()
    _allowed: ClassVar[str]

    @classmethod
    def parse(cls, value: object) -> Self:
        """The quantity that a YAML scalar (or a quantity of this type) means, or QuantityError."""
        return value if isinstance(value, cls) else cls(cls._read(value))  # type: ignore[call-arg]

    @classmethod
    def _read(cls, value: object) -> Any:
        raise NotImplementedError

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
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
        """The schema of the spellings."""
        return {"description": (cls.__doc__ or "").strip(), **cls._json_schema()}


@dataclass(frozen=True, order=True, slots=True)
class _Count(Quantity):
    """A whole number of the smallest unit, written as a number and a unit."""

    count: int

    _written: ClassVar = rf"(-?)({_NUMBER}) ?([A-Za-zµμ/]*)"
    _units: ClassVar[Mapping[str, int]]
    # Units that are read and never printed: who compares two should not have to convert.
    _read_only: ClassVar[Mapping[str, int]] = {}
    # Bare numbers that need no unit, as a JSON schema.
    _bare: ClassVar[Mapping[str, Any] | None] = None
    _smallest: ClassVar[str]
    _examples: ClassVar[tuple[str | int, ...]]
    # The unit with which a leading zero is printed (`0.5ms`), and that of 0.
    _usual: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse what no such quantity is."""
        if not 0 <= self.count <= LARGEST_COUNT:
            what = f"0 to {LARGEST_COUNT} {self._smallest}s"
            raise QuantityError(f"{show(self.count)} is not within {what}")

    @classmethod
    def _read(cls, value: object) -> int:
        """A number and a unit, with at most one space between them."""
        units = {**cls._units, **cls._read_only}
        sign, number, unit = "", "", ""
        if _is_number(value):
            sign = "-" if value < 0 else ""
        elif isinstance(value, str) and (match := re.fullmatch(cls._written, value)):
            sign, number, unit = match.groups()
        else:
            raise QuantityError(f"{_shown(value)} is not a number and a unit; {cls._allowed}")
        if sign or not unit:
            wrong = "is negative" if sign else "has no unit"
            raise QuantityError(f"{show(value)} {wrong}; {cls._allowed}")
        if unit not in units:
            same = [show(known) for known in units if known.lower() == unit.lower()]
            hint = f" (did you mean {listing(same, 'or')}?)" if same else ""
            text = f"{show(unit)} in {show(value)} is not a unit; {cls._allowed}{hint}"
            raise QuantityError(text)
        count = Exact(number) * units[unit]
        if count.denominator != 1:
            raise QuantityError(f"{show(value)} is not a whole {cls._smallest}; round it to one")
        if count > LARGEST_COUNT:
            raise QuantityError(f"{show(value)} is too large; at most {LARGEST_COUNT}")
        return int(count)

    def __str__(self) -> str:
        """The shortest exact spelling with at most three decimals; the earlier unit wins a tie."""
        spellings = []
        for unit, factor in self._units.items():
            thousandths, rest = divmod(self.count * 1000, factor)
            if rest or (thousandths < 1000 and unit != self._usual):
                continue
            whole, decimals = divmod(thousandths, 1000)
            fraction = f".{decimals:03d}".rstrip("0") if decimals else ""
            spellings.append(f"{whole}{fraction}{unit}")
        return min(spellings, key=len)

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        units = "|".join({**cls._units, **cls._read_only})
        written = {"type": "string", "pattern": rf"^{_NUMBER} ?({units})$"}
        either = written if cls._bare is None else {"anyOf": [written, dict(cls._bare)]}
        return {**either, "examples": list(cls._examples)}


class Duration(_Count):
    """A length of time, never negative, in whole nanoseconds. Written `100ms`, `250us`, `10min`."""

    __slots__ = ()
    _units: ClassVar = {"ms": 10**6, "s": 10**9, "us": 10**3, "ns": 1}
    _read_only: ClassVar = {
        **{"min": 60 * 10**9, "h": 3600 * 10**9},
        **dict.fromkeys(("\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s"), 10**3),
    }
    _bare: ClassVar = {"type": "number", "const": 0}
    _smallest = "nanosecond"
    _usual = "ms"
    _examples = ("100ms", "0.5ms", "250us", "1.5s", 0)
    _allowed = (
        "a duration is a number and a unit (ns, us or µs, ms, s, min or h),"
        " such as `100ms` or `0.5ms`"
    )

    @property
    def ns(self) -> int:
        """The duration in nanoseconds."""
        return self.count

    @property
    def ms(self) -> float:
        """The duration in milliseconds."""
        return self.count / 10**6

    @property
    def s(self) -> float:
        """The duration in seconds."""
        return self.count / 10**9

    @classmethod
    def _read(cls, value: object) -> int:
        return 0 if _is_number(value) and value == 0 else super()._read(value)


class Rate(_Count):
    """Bits a second, at least one. Written `100mbit`, `1gbit`, `64kbit`; k is 1000, as in tc."""

    __slots__ = ()
    _units: ClassVar = {"mbit": 10**6, "gbit": 10**9, "tbit": 10**12, "kbit": 10**3, "bit": 1}
    _smallest = "bit a second"
    _examples = ("100mbit", "1gbit", "64kbit")
    _allowed = (
        "a rate is a number and a unit (bit, kbit, mbit, gbit or tbit a second),"
        " such as `100mbit` or `1gbit`"
    )

    def __post_init__(self) -> None:
        """Refuse what no rate is."""
        _Count.__post_init__(self)
        if self.count == 0:
            raise QuantityError(f"a rate of 0 lets nothing through; {self._allowed}")

    @property
    def bps(self) -> int:
        """The rate in bits a second."""
        return self.count


class Size(_Count):
    """A number of bytes. Written `64KiB` (1024), `1MB` (1000), or a plain whole number."""

    __slots__ = ()
    _units: ClassVar = {
        **{"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "B": 1},
        **{"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9},
    }
    _bare: ClassVar = {"type": "integer", "minimum": 0, "maximum": LARGEST_COUNT}
    _smallest = "byte"
    _usual = "B"
    _examples = ("64KiB", "1MB", 1024)
    _allowed = (
        "a size is a whole number of bytes, or a number and a unit"
        " (B, KiB, MiB, GiB of 1024; kB, MB, GB of 1000), such as `64KiB`"
    )

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.count

    @classmethod
    def _read(cls, value: object) -> int:
        if _is_number(value) and isinstance(value, int) and 0 <= value <= LARGEST_COUNT:
            return value
        return super()._read(value)


@dataclass(frozen=True, order=True, slots=True)
class Fraction(Quantity):
    """A part of a whole, 0 to 1. Written `0.1%` or `0.001`."""

    value: float

    _allowed: ClassVar[str] = "allowed is `0%` to `100%`, or 0 to 1 without the sign"
    _written: ClassVar[str] = rf"-?({_NUMBER}([eE]-?[0-9]{{1,3}})?)( ?%)?"

    def __post_init__(self) -> None:
        """Refuse what no fraction is, NaN included."""
        if not 0 <= self.value <= 1:
            raise QuantityError(f"{show(self.value)} is outside 0..1; {self._allowed}")

    def __float__(self) -> float:
        """The fraction as a number, 0 to 1."""
        return float(self.value)

    @classmethod
    def _read(cls, value: object) -> float:
        """`1%`, `0.5 %`, 0.01 or the text `1e-3`."""
        number: Exact | float
        if _is_number(value):
            number = value
        elif isinstance(value, str) and (match := re.fullmatch(cls._written, value)):
            number = Exact(match[1]) / (100 if match[3] else 1)
            number = -number if value.startswith("-") else number
        else:
            raise QuantityError(f"{_shown(value)} is not a fraction; {cls._allowed}")
        if not 0 <= number <= 1:
            hint = ""
            if isinstance(value, int) and 1 < value <= 100:
                hint = f" ({value} in a hundred is `{value}%`)"
            raise QuantityError(f"{show(value)} is outside 0..1; {cls._allowed}{hint}")
        return abs(float(number))  # -0.0 is 0

    def __str__(self) -> str:
        """In percent; below a millionth as a bare number with an exponent."""
        if 0 < self.value < 1e-6:
            return repr(self.value)
        percent = (Decimal(repr(self.value)) * 100).normalize()
        return f"{percent:f}%"

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        pattern = f"^{cls._written.removeprefix('-?')}$"
        return {
            "anyOf": [
                {"type": "string", "pattern": pattern},
                {"type": "number", "minimum": 0, "maximum": 1},
            ],
            "examples": ["1%", "0.5%", 0.01],
        }


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return "an empty value" if value is None or value == "" else show(value)
