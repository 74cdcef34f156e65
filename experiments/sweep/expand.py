"""A sweep's grids as points: every combination of their values, on every system."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.experiments.study import Study

MAX_POINTS = 10_000
"""Of so many, each of some seconds at least, nobody sees the end."""
NOT_SWEPT = {
    "name": "it names the bundle",
    "description": "it changes nothing that is measured",
    "sweep": "a sweep has no sweep in it",
}

_OPTIONS = "options"
_SYSTEMS = "systems"
_LONGEST_NAME = 100


class NoSuchPlace(ValueError):
    """A parameter that leads into something that is no mapping. The message says what it is."""


@dataclass(frozen=True)
class Point:
    """One combination of values on one system: a study of its own."""

    name: str
    """Of its bundle; a file name."""
    system: str
    values: Mapping[str, Any]
    """Parameters with their values, as JSON has them."""
    study: Study


def combinations(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, int]]:
    """Yield every combination of a grid: of each parameter the place of its value."""
    places = [range(len(values)) for values in grid.values()]
    for chosen in product(*places):
        yield dict(zip(grid, chosen, strict=True))


def with_values(raw: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a study with parameters set, and without its sweep.

    Of two parameters of which one lies in the other, the inner one wins. Raises NoSuchPlace.
    """
    changed = {key: value for key, value in raw.items() if key != "sweep"}
    for name in sorted(values, key=lambda each: each.count(".")):
        keys = name.split(".")
        inner = changed
        for depth, key in enumerate(keys[:-1]):
            there = inner.get(key)
            if there is not None and not isinstance(there, Mapping):
                place = ".".join(keys[: depth + 1])
                found = json.dumps(there, default=str)
                raise NoSuchPlace(f"`{place}` is {found} here, so it has no `{keys[depth + 1]}`")
            inner[key] = dict(there or {})
            inner = inner[key]
        inner[keys[-1]] = deepcopy(values[name])
    return changed


def value_at(raw: Mapping[str, Any], name: str) -> Any:
    """Return what a parameter is in the keys of a study; None where it is not there."""
    found: Any = raw
    for key in name.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def points_of(study: Study) -> list[Point]:
    """Return the points of a study, in the order of its grids; without a sweep one a system.

    What is an option of another system is no parameter of a point, and two combinations that
    differ in nothing else are one point. Raises UserError for a combination that is no study.
    """
    from wanlat.experiments.study import Study  # which imports this room's model

    whole = study.to_dict()
    found: dict[str, tuple[str, dict[str, Any], Study]] = {}
    for grid in study.sweep or [{}]:
        systems = [name for name in grid.get(_SYSTEMS, study.systems) if name in study.systems]
        axes = {name: values for name, values in grid.items() if name != _SYSTEMS}
        for system in systems:
            own = {name: values for name, values in axes.items() if is_of(name, system)}
            for chosen in combinations(own):
                values = {name: own[name][place] for name, place in chosen.items()}
                point = _study(Study, whole, system, values)
                printed = {name: value_at(point.to_dict(), name) for name in values}
                key = json.dumps([system, printed], sort_keys=True)
                found.setdefault(key, (system, printed, point))
    if not found:
        raise UserError(
            f"study {study.name}: no grid of its sweep is for {listing(study.systems)}. "
            "Name other systems with --systems."
        )
    names = _names([(system, values) for system, values, _ in found.values()])
    return [
        Point(name, system, values, point)
        for name, (system, values, point) in zip(names, found.values(), strict=True)
    ]


def is_of(parameter: str, system: str) -> bool:
    """Whether a parameter means something to a system: it is none, or one of its own options."""
    keys = parameter.split(".")
    return keys[0] != _OPTIONS or len(keys) < 2 or keys[1] == system


def in_order(points: Sequence[Point], seed: int) -> list[Point]:
    """Return the points shuffled, so that drift of the machine cannot pass for a difference."""
    shuffled = list(points)
    random.Random(f"{seed}/points").shuffle(shuffled)
    return shuffled


def seed_of(point: Point, seed: int) -> int:
    """Return the seed of a point: its own if it has one, else one drawn from the sweep's.

    The same values on another system have the same one, so that both are asked the same.
    """
    if point.study.seed is not None and "seed" in point.values:
        return point.study.seed
    values = json.dumps(dict(point.values), sort_keys=True)
    return random.Random(f"{seed}/points/{values}").getrandbits(32)


def _study(
    kind: type[Study], whole: Mapping[str, Any], system: str, values: Mapping[str, Any]
) -> Study:
    said = ", ".join(f"{name} {_text(value)}" for name, value in values.items())
    try:
        raw = with_values(whole, values)
        options = raw.get(_OPTIONS, {})
        own = {system: options[system]} if system in options else {}
        return kind.model_validate(raw | {_SYSTEMS: [system], _OPTIONS: own})
    except ValueError as error:
        text = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'study'}: {one['msg']}"
            for one in getattr(error, "errors", list)()
        )
        raise UserError(f"The point {said or system} of the sweep: {text or error}") from None


def _names(points: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    names: dict[str, None] = {}
    for system, values in points:
        parts = [
            system,
            *(f"{_slug(name)}-{_slug(_text(value))}" for name, value in values.items()),
        ]
        name = "-".join(parts)
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        number, base = 1, name
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names[name] = None
    return list(names)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return PurePath(value).stem if value.endswith((".yaml", ".yml")) else value
    return json.dumps(value, ensure_ascii=False)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "none"
