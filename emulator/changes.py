"""A change of an impairment: some of it, or all of it, with the keys and units of topology files.

    delay: 200ms            the delay of one direction
    delay: +200ms           so much more than is in force
    rtt: 400ms              both directions together; each gets half, as in a topology
    jitter: 20ms            of one direction; beside `rtt`, of the round trip
    loss: 5%                and likewise every other key of a direction
    rate: none              as if the key had never been given

What is not named stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from wanlat.topologies import checks, shapes
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import path_text
from wanlat.topologies.model import Bursts, OneWay
from wanlat.topologies.resolve import GilbertElliott, Impairment, one_way
from wanlat.topologies.tables import Table, TableError, read
from wanlat.topologies.units import Duration, Fraction, Rate, Size
from wanlat.topologies.wording import did_you_mean, listing, show

Settings = Mapping[str, Any]
"""Keys and values as in a topology file: `{"delay": "200ms", "loss": "5%"}`."""

# What each key of a topology file says of an impairment.
_FIELDS = {
    "delay": ("delay_ns",),
    "jitter": ("jitter_ns",),
    "distribution": ("distribution", "table"),
    "table": ("distribution", "table"),
    "correlation": ("correlation",),
    "reorder": ("reorder", "overtake"),
    "loss": ("loss", "bursts"),
    "duplicate": ("duplicate",),
    "corrupt": ("corrupt",),
    "rate": ("rate_bps",),
    "queue": ("queue_bytes",),
}
_DURATIONS = ("delay", "rtt", "jitter")
KEYS = ("rtt", *_FIELDS)


@dataclass(frozen=True)
class _More:
    """So many nanoseconds more than is in force, or fewer."""

    ns: int


@dataclass(frozen=True)
class Change:
    """Values for some fields of an impairment; a `_More` is added to what is there."""

    values: Mapping[str, Any]

    @property
    def is_whole(self) -> bool:
        """Whether it replaces an impairment whole."""
        return len(self.values) == len(fields(Impairment))

    @classmethod
    def to(cls, impairment: Impairment) -> Change:
        """Return the change that replaces an impairment whole."""
        return cls({each.name: getattr(impairment, each.name) for each in fields(Impairment)})

    @classmethod
    def of(cls, settings: Settings, *, both_ways: bool) -> Change:
        """Return the change that settings ask for. Raises UserError for all that is wrong.

        ``both_ways``: whether it is for both directions of links, so that there is a round trip.
        """
        _check_keys(settings, both_ways=both_ways)
        halved = "rtt" in settings
        given = {("delay" if key == "rtt" else key): value for key, value in settings.items()}
        parsed: dict[str, Any] = {}
        more: dict[str, Any] = {}
        for key, value in given.items():
            shown_key = "rtt" if halved and key == "delay" else key
            sign = value[0] if key in _DURATIONS and isinstance(value, str) and value else ""
            if sign in ("+", "-"):
                ns = _half(_parsed(shown_key, value[1:].lstrip()), halved).ns
                more[_FIELDS[key][0]] = _More(ns if sign == "+" else -ns)
            elif value is not None and value != "none":
                one = _parsed(shown_key, value)
                parsed[key] = _half(one, halved) if isinstance(one, Duration) else one
        if "table" in parsed and "distribution" not in parsed:
            parsed["distribution"] = "table"
        asked = one_way(OneWay.model_construct(**_DEFAULTS | parsed))
        if parsed.get("distribution") == "table" and not asked.table:
            raise UserError("distribution: `table` needs a `table` beside it: a file of samples.")
        named = {field for key in given for field in _FIELDS[key]}
        if "rate" in given and "rate" not in parsed:
            named.add("queue_bytes")  # there is nothing left to wait for
        return cls({field: getattr(asked, field) for field in named} | more)

    def on(self, before: Impairment) -> Impairment:
        """Return what it makes of an impairment."""
        values = {
            name: max(0, getattr(before, name) + value.ns) if isinstance(value, _More) else value
            for name, value in self.values.items()
        }
        return replace(before, **values)

    def then(self, later: Change) -> Change:
        """Return the change that does both, this one first."""
        values = dict(self.values)
        for name, value in later.values.items():
            earlier = values.get(name)
            if isinstance(value, _More) and isinstance(earlier, _More):
                values[name] = _More(earlier.ns + value.ns)
            elif isinstance(value, _More) and earlier is not None:
                values[name] = max(0, earlier + value.ns)
            else:
                values[name] = value
        return Change(values)


def mistakes(impairment: Impairment) -> list[str]:
    """Return what does not fit together in an impairment, in the words of a topology file."""
    return list(_mistakes(impairment))


@lru_cache(maxsize=4096)
def _mistakes(impairment: Impairment) -> tuple[str, ...]:
    found = checks.link(_raw(impairment))
    return tuple(f"{path_text(each.path)}: {each.text}" for each in found)


def fitting(impairment: Impairment) -> Impairment:
    """Return the impairment with no more jitter than its delay has room for."""
    low, _ = shapes.extent(impairment.distribution, impairment.table)
    room_ns = math.floor(impairment.delay_ns / -low) if low < 0 else impairment.jitter_ns
    if impairment.jitter_ns <= room_ns:
        return impairment
    return replace(impairment, jitter_ns=room_ns)


def _check_keys(settings: Settings, *, both_ways: bool) -> None:
    if not settings:
        raise UserError(f"Nothing is said to be changed; there are {listing(KEYS)}.")
    for key in settings:
        if key not in KEYS:
            raise UserError(
                f"There is no {show(key)} to change{did_you_mean(key, KEYS)}; there are "
                f"{listing(KEYS)}."
            )
    if "rtt" in settings and "delay" in settings:
        raise UserError("rtt and delay say the same thing twice; give one of them.")
    if "rtt" in settings and not both_ways:
        raise UserError(
            "rtt is of both directions of a link, and only one of them is to be changed; "
            "give its `delay`."
        )


def _parsed(key: str, value: Any) -> Any:
    if key == "table":
        value = _samples(value)
    try:
        return _adapter("delay" if key == "rtt" else key).validate_python(value)
    except ValidationError as error:
        texts = list(dict.fromkeys(each["msg"] for each in error.errors(include_url=False)))
        raise UserError(f"{key}: {'; '.join(texts)}") from None


def _samples(value: Any) -> Any:
    """Return the table in a file, or what is not the name of one as it is."""
    try:
        if isinstance(value, str):
            return read(Path(value))
        if isinstance(value, dict) and isinstance(value.get("file"), str):
            return read(Path(value["file"]), str(value.get("column", "")))
    except TableError as error:
        raise UserError(f"table: {error}") from None
    return value


@cache
def _adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(OneWay, include_extras=True)[key])


_DEFAULTS = {name: field.get_default() for name, field in OneWay.model_fields.items()} | {
    "delay": Duration(0)
}


def _half(duration: Duration, halved: bool) -> Duration:
    return Duration(duration.ns // 2) if halved else duration


def _raw(impairment: Impairment) -> dict[str, Any]:
    """Return an impairment as a topology file would have it, with the values parsed."""
    raw: dict[str, Any] = {
        "delay": Duration(impairment.delay_ns),
        "jitter": Duration(impairment.jitter_ns),
        "reorder": Fraction(impairment.overtake) if impairment.overtake else impairment.reorder,
        "loss": Fraction(impairment.loss)
        if impairment.bursts is None
        else _chain(impairment.bursts),
        "duplicate": Fraction(impairment.duplicate),
        "corrupt": Fraction(impairment.corrupt),
    }
    if impairment.jitter_ns:  # else nothing is drawn, and how does not matter
        raw["distribution"] = impairment.distribution
        raw["table"] = Table(impairment.table) if impairment.table else None
        raw["correlation"] = Fraction(impairment.correlation)
    if impairment.rate_bps is not None:
        raw["rate"] = Rate(impairment.rate_bps)
    if impairment.queue_bytes is not None:
        raw["queue"] = Size(impairment.queue_bytes)
    return raw


def _chain(bursts: GilbertElliott) -> dict[str, Fraction]:
    return {name: Fraction(getattr(bursts, name)) for name in Bursts.model_fields}
