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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import ValidationError

from wanlat.topologies import checks, shapes
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.model import Way
from wanlat.topologies.resolve import Impairment, one_way
from wanlat.topologies.tables import Table, TableError, read
from wanlat.topologies.units import Duration, Fraction, Rate, Size
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import YamlModel, within

Settings = Mapping[str, Any]
"""Keys and values as in a topology file: `{"delay": "200ms", "loss": "5%"}`."""

# The fields of an impairment that each key of a topology file sets.
_FIELDS = {
    "rtt": ("delay_ns",),
    "delay": ("delay_ns",),
    "jitter": ("jitter_ns",),
    "distribution": ("distribution", "table"),
    "table": ("distribution", "table"),
    "reorder": ("reorder", "overtake"),
    "loss": ("loss", "bursts"),
    "duplicate": ("duplicate",),
    "corrupt": ("corrupt",),
    "rate": ("rate_bps",),
    "queue": ("queue_bytes",),
}
_SIGNS = {"+": 1, "-": -1}
_WHY = ", and changes nothing"


M = TypeVar("M", bound=YamlModel)


PositiveDuration = Annotated[Duration, within(Duration(1), None, _WHY)]
PositiveSize = Annotated[Size, within(Size(1), None, _WHY)]


def checked(model: type[M], given: Mapping[str, Any]) -> M:
    """Return what was given as a model. Raises UserError with all that is wrong, and the keys."""
    if given and not model.model_fields:
        raise UserError(f"it has no settings; remove {listing(map(show, given))}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        wrong = dict.fromkeys(
            message for mistake in error.errors(include_url=False) for message in _messages(mistake)
        )
        raise UserError("; ".join(wrong)) from None


def _messages(error: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong, each with the way to it."""
    # In parentheses are alternatives of the model's, not keys of the user's.
    path = tuple(step for step in error["loc"] if not str(step).startswith("("))
    wrong = error["msg"].removeprefix("Value error, ")
    for finding in error.get("ctx", {}).get("findings", [Finding((), wrong)]):
        where = path_text(path + finding.path)
        yield finding.text if finding.at_key or not where else f"{where}: {finding.text}"


class _Keys(Way):
    """A direction, or the round trip over two, of which not everything has to be given."""

    rtt: Duration = Duration(0)

    key_hints: ClassVar[dict[str, str]] = {}

    def invalid(self) -> list[Finding]:
        """What must hold together is known once it is on what it changes (`mistakes`)."""
        return []


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
        return cls({field.name: getattr(impairment, field.name) for field in fields(Impairment)})

    @classmethod
    def parse(cls, settings: Settings, *, both_ways: bool) -> Change:
        """Return the change that settings request. Raises UserError for all that is wrong.

        ``both_ways``: whether it is for both directions of links, so that there is a round trip.
        """
        if not settings:
            raise UserError(f"Nothing is to be changed; there are {listing(_FIELDS)}.")
        gone = {key for key in _FIELDS if settings.get(key, "") in (None, "none")}
        given = {key: value for key, value in settings.items() if key not in gone}
        signs = {}
        for key in ("rtt", "delay", "jitter"):
            value = given.get(key)
            if isinstance(value, str) and value[:1] in _SIGNS:
                signs["delay_ns" if key == "rtt" else f"{key}_ns"] = _SIGNS[value[0]]
                given[key] = value[1:].lstrip()
        if "table" in given:
            given = {"distribution": "table", **given, "table": _table(given["table"])}
        keys = checked(_Keys, given)
        if "rtt" in settings:
            if "delay" in settings:
                raise UserError("rtt and delay say the same thing twice; give one of them.")
            if not both_ways:
                raise UserError(
                    "rtt is of both directions of a link, and only one of them is to be changed; "
                    "give its `delay`."
                )
            halves = {"delay": keys.rtt, "jitter": keys.jitter}
            keys = keys.model_copy(
                update={name: Duration(whole.ns // 2) for name, whole in halves.items()}
            )
        impairment = one_way(keys)
        if impairment.distribution == "table" and not impairment.table:
            raise UserError("distribution: `table` needs a `table` beside it: a file of samples.")
        named = {field for key in settings for field in _FIELDS[key]}
        if "rate" in gone:
            named.add("queue_bytes")  # there is nothing left to wait for
        values = {field: getattr(impairment, field) for field in named}
        return cls(values | {name: _More(sign * values[name]) for name, sign in signs.items()})

    def on(self, before: Impairment) -> Impairment:
        """Return what it makes of an impairment."""
        values = {
            name: max(0, getattr(before, name) + value.ns) if isinstance(value, _More) else value
            for name, value in self.values.items()
        }
        return replace(before, **values)


@lru_cache(maxsize=4096)
def mistakes(impairment: Impairment) -> tuple[str, ...]:
    """Return what does not fit together in an impairment, in the words of a topology file."""
    raw: dict[str, Any] = {
        "delay": Duration(impairment.delay_ns),
        "jitter": Duration(impairment.jitter_ns),
        "reorder": Fraction(impairment.overtake) if impairment.overtake else False,
    }
    if impairment.jitter_ns:  # else nothing is drawn, and how does not matter
        raw["distribution"] = impairment.distribution
        raw["table"] = Table(impairment.table) if impairment.table else None
    if impairment.rate_bps is not None:
        raw["rate"] = Rate(impairment.rate_bps)
    if impairment.queue_bytes is not None:
        raw["queue"] = Size(impairment.queue_bytes)
    return tuple(f"{path_text(finding.path)}: {finding.text}" for finding in checks.link(raw))


def fitting(impairment: Impairment) -> Impairment:
    """Return the impairment with no more jitter than its delay has room for."""
    low, _ = shapes.extent(impairment.distribution, impairment.table)
    room_ns = math.floor(impairment.delay_ns / -low) if low < 0 else impairment.jitter_ns
    if impairment.jitter_ns <= room_ns:
        return impairment
    return replace(impairment, jitter_ns=room_ns)


def _table(file: Any) -> Any:
    """Return the table in a file, or what is not the name of one as it is."""
    try:
        return read(Path(file)) if isinstance(file, str) else file
    except TableError as error:
        raise UserError(f"table: {error}") from None
