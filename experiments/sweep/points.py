"""`points.json`: what a sweep measures, in which order, and how far each point is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from wanlat.bundle.write import now_iso, write_json
from wanlat.experiments.sweep.expand import Point
from wanlat.topologies.errors import UserError

FILE = "points.json"
DIRECTORY = "points"

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
    """Its bundle, from the sweep's."""
    status: Status = "planned"
    reason: str | None = None
    began: str | None = None
    """Of its last attempt."""
    ended: str | None = None
    attempts: int = 0

    @property
    def said(self) -> str:
        """Say which point it is."""
        return ", ".join([self.system, *(f"{name} {_text(v)}" for name, v in self.values.items())])


@dataclass
class Points:
    """The points of a sweep. Every change is on disk when the call returns, whole or not at all."""

    directory: Path
    parameters: Sequence[Mapping[str, Any]]
    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def create(cls, directory: Path, points: Sequence[Point]) -> Points:
        """Write the file of a sweep that begins."""
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
