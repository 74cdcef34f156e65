"""`points.json`: what a matrix measures, in which order, and how far each point is."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from wanlat.bundle.write import now_iso, write_json
from wanlat.experiments.config.matrix import (
    axes_of,
    combinations,
    is_excluded,
    is_of,
    value_at,
    with_values,
)
from wanlat.experiments.config.study import Study
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

_OPTIONS = "options"
_SYSTEMS = "systems"
_LONGEST_NAME = 100
FILE = "points.json"
DIRECTORY = "points"


@dataclass(frozen=True)
class Point:
    """One combination of values on one system: a study of its own."""

    name: str
    """Of its bundle; a file name."""
    system: str
    values: Mapping[str, Any]
    """Parameters with their values, as JSON has them."""
    study: Study


def points_of(study: Study) -> list[Point]:
    """Return the points of a study, in the order of its grids; without a matrix one a system.

    What is an option of another system is no parameter of a point, and two combinations that
    differ in nothing else are one point. Raises UserError for a combination that is no study.
    """
    whole = study.to_dict()
    found: dict[str, tuple[str, dict[str, Any], Study]] = {}
    for grid in study.matrix or [{}]:
        systems = [name for name in grid.get(_SYSTEMS, study.systems) if name in study.systems]
        axes = {name: values for name, values in axes_of(grid).items() if name != _SYSTEMS}
        for system in systems:
            own = {name: values for name, values in axes.items() if is_of(name, system)}
            for chosen in combinations(own):
                values = {name: own[name][place] for name, place in chosen.items()}
                if is_excluded(grid, {**values, _SYSTEMS: system}):
                    continue
                point = _study(whole, system, values)
                printed = {name: value_at(point.to_dict(), name) for name in values}
                key = json.dumps([system, printed], sort_keys=True)
                found.setdefault(key, (system, printed, point))
    if not found:
        raise UserError(
            f"study {study.name}: no grid of its matrix is for {listing(study.systems)}. "
            "Name other systems with --systems."
        )
    names = _names([(system, values) for system, values, _ in found.values()])
    return [
        Point(name, system, values, point)
        for name, (system, values, point) in zip(names, found.values(), strict=True)
    ]


def in_order(points: Sequence[Point], seed: int) -> list[Point]:
    """Return the points shuffled, so that drift of the machine cannot pass for a difference."""
    shuffled = list(points)
    random.Random(f"{seed}/points").shuffle(shuffled)
    return shuffled


def seed_of(point: Point, seed: int) -> int:
    """Return the seed of a point: its own if it has one, else one drawn from the matrix's.

    The same values on another system have the same one, so that both are asked the same.
    """
    if point.study.seed is not None and "seed" in point.values:
        return point.study.seed
    values = json.dumps(dict(point.values), sort_keys=True)
    return random.Random(f"{seed}/points/{values}").getrandbits(32)


def _study(whole: Mapping[str, Any], system: str, values: Mapping[str, Any]) -> Study:
    said = ", ".join(f"{name} {_text(value)}" for name, value in values.items())
    try:
        raw = with_values(whole, values)
        options = raw.get(_OPTIONS, {})
        own = {system: options[system]} if system in options else {}
        return Study.model_validate(raw | {_SYSTEMS: [system], _OPTIONS: own})
    except ValueError as error:
        text = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'study'}: {one['msg']}"
            for one in getattr(error, "errors", list)()
        )
        raise UserError(f"The point {said or system} of the matrix: {text or error}") from None


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


Status = Literal["planned", "running", "complete", "interrupted", "failed"]


@dataclass(frozen=True)
class Entry:
    """One point as the file has it."""

    point: int
    """Its place in the order in which points are run."""
    name: str
    system: str
    values: Mapping[str, Any]
    directory: str
    """Its bundle, from the matrix's."""
    status: Status = "planned"
    reason: str | None = None
    began: str | None = None
    """Of its last attempt."""
    ended: str | None = None
    attempts: int = 0

    @property
    def said(self) -> str:
        """Say which point it is."""
        return ", ".join([self.system, *(f"{name} {_plain(v)}" for name, v in self.values.items())])


@dataclass
class Points:
    """The points of a matrix. Every change is on disk, whole, when the call returns."""

    directory: Path
    parameters: Sequence[Mapping[str, Any]]
    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def create(cls, directory: Path, points: Sequence[Point]) -> Points:
        """Write the file of a matrix that begins."""
        entries = [
            Entry(place, each.name, each.system, dict(each.values), f"{DIRECTORY}/{each.name}")
            for place, each in enumerate(points)
        ]
        made = cls(directory, parameters_of(points), entries)
        made._write()
        return made

    @classmethod
    def read(cls, directory: Path) -> Points | None:
        """Return what the file says; None where there is none. Raises UserError."""
        path = directory / FILE
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            entries = [Entry(**each) for each in document["points"]]
            return cls(directory, document["parameters"], entries)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(f"{path} is no list of points: {error}.") from error

    def begins(self, entry: Entry) -> Entry:
        """Note that an attempt at a point begins."""
        attempts = entry.attempts + 1
        return self._set(
            entry, status="running", reason=None, began=now_iso(), ended=None, attempts=attempts
        )

    def ends(self, entry: Entry, status: Status, reason: str | None = None) -> Entry:
        """Note how an attempt ended."""
        return self._set(entry, status=status, reason=reason, ended=now_iso())

    def forget(self, entry: Entry) -> Entry:
        """Note that a point is to be measured after all: its bundle was taken away."""
        return self._set(entry, status="planned", began=None, ended=None)

    def left(self) -> Iterator[Entry]:
        """Yield what is not complete, in the order it is run."""
        yield from [each for each in self.entries if each.status != "complete"]

    def count(self, status: Status) -> int:
        """Return how many points are in a state."""
        return sum(each.status == status for each in self.entries)

    def _set(self, entry: Entry, **changes: Any) -> Entry:
        changed = replace(entry, **changes)
        self.entries[entry.point] = changed
        self._write()
        return changed

    def _write(self) -> None:
        entries = [asdict(each) for each in self.entries]
        document = {"parameters": list(self.parameters), "points": entries}
        write_json(self.directory / FILE, document)


def parameters_of(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the parameters with all values that points have, in the order of the study.

    ``points`` in any order; where values are all numbers or all sizes, `analysis` sorts them.
    """
    found: dict[str, list[Any]] = {}
    for point in points:
        for name, value in point.values.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return [{"name": name, "values": values} for name, values in found.items()]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
