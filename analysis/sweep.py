"""Reading the bundle of a sweep: points.json, and the bundle of each point.

A point is an ordinary bundle (`analysis.bundle`). One that failed, was interrupted or never began
is missing, with why; whatever samples it left are read all the same, and never taken for a
complete point's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from wanlat.analysis.bundle import Bundle, name_of, read_bundle, read_manifest
from wanlat.analysis.calibration import sites_by_node
from wanlat.bundle import documents
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document

KIND = "matrix"

_OPTIONS = "options."

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?i?B?)\s*")
_PREFIX = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_HOW = {
    "planned": "it was never begun",
    "running": "it was killed while it ran",
    "interrupted": "it was interrupted",
    "failed": "it failed",
}


@dataclass(frozen=True)
class Parameter:
    """One axis of the sweep, and its values: numbers by size, words as the study has them.

    An option of stores has the name that it has there ("drives"), and is one axis whichever of
    them have it; `keys` are what the study calls it ("options.minio.drives"), one or several.
    """

    name: str
    values: tuple[Any, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One combination of values on one system.

    `number` is its place in the order in which points are run. `values` are those of the sweep's
    parameters, as the study has them ("50KiB", 2). `status` is planned, running (it was killed),
    complete, interrupted or failed.
    """

    number: int
    name: str
    system: str
    values: Mapping[str, Any]
    directory: Path
    status: str
    reason: str | None
    attempts: int
    study: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The study of the whole sweep, for what is not swept."""

    @property
    def bundle(self) -> Bundle | None:
        """What it left, read when first asked for; None where that cannot be read."""
        return self._read[0]

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end and can be read."""
        return self.status == "complete" and self.bundle is not None

    @property
    def why_missing(self) -> str | None:
        """Why there are no figures of it that count; None of a complete one."""
        if self.status != "complete":
            why = f": {self.reason.rstrip('.')}" if self.reason else ""
            return f"{_HOW.get(self.status, self.status)}{why}"
        return self._read[1]

    def value(self, parameter: str) -> Any:
        """The value of `parameter` ("nodes", "prefill.objects"): swept, else the study's, or None.

        An option of stores ("drives") is that of the point's own. Sizes and durations are as the
        study writes them: see `bytes_of`.
        """
        keys = (parameter, f"{_OPTIONS}{self.system}.{parameter}")
        for key in keys:
            if key in self.values:
                return self.values[key]
        own = self.bundle.manifest.get("study") if self.bundle else None
        for study in (own, self.study):
            for key in keys:
                found = _dotted(study, key)
                if found is not None:
                    return found
        return self._nodes() if parameter == "nodes" else None

    def _nodes(self) -> int | None:
        topology = self.bundle.manifest.get("topology") if self.bundle else None
        return len(sites_by_node(topology)) or None

    @cached_property
    def _read(self) -> tuple[Bundle | None, str | None]:
        try:
            return read_bundle(self.directory), None
        except BundleError as error:
            return None, str(error).rstrip(".")


@dataclass(frozen=True)
class Sweep:
    """A sweep as it lies on disk; `points` in the order of the grid, not in that of running."""

    directory: Path
    manifest: Mapping[str, Any]
    parameters: tuple[Parameter, ...]
    points: tuple[Point, ...]
    derived: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """As a bundle's: what took long to derive, under a name of who derived it."""

    @property
    def study(self) -> str:
        """Name of the study."""
        return name_of(self.manifest.get("study"), "unnamed study")

    @property
    def topology(self) -> str:
        """Name of the topology; "several topologies" where that is swept."""
        names = dict.fromkeys(p.bundle.topology for p in self.points if p.bundle is not None)
        if len(names) > 1:
            return "several topologies"
        return next(iter([*names, *self.manifest.get("topologies", ())]), "unnamed topology")

    @property
    def status(self) -> str:
        """ "running" (so it was killed), "complete", "interrupted" or "failed"."""
        return str(self.manifest.get("status", "complete"))

    @property
    def seed(self) -> int:
        """Seed of the sweep; it also seeds every bootstrap over its points."""
        seed = self.manifest.get("seed")
        return seed if isinstance(seed, int) else 0

    @property
    def complete(self) -> tuple[Point, ...]:
        """Points that came to their end and can be read."""
        return tuple(point for point in self.points if point.is_complete)

    @property
    def missing(self) -> tuple[Point, ...]:
        """All others."""
        return tuple(point for point in self.points if not point.is_complete)

    def varies(self, parameter: str) -> bool:
        """Whether `parameter` takes several values in this sweep."""
        return any(p.name == parameter and len(p.values) > 1 for p in self.parameters)


def is_sweep(directory: Path | str) -> bool:
    """Whether the bundle in `directory` is a sweep's. Raises BundleError where it is no bundle."""
    return read_manifest(Path(directory)).get("kind") == KIND


def read_sweep(directory: Path | str) -> Sweep:
    """Read the sweep in `directory`; points' bundles are read when asked for.

    Raises BundleError where it is no sweep, of a newer format, or damaged.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    if manifest.get("kind") != KIND:
        raise BundleError(f"{directory} is the bundle of one run, not of a matrix.")
    document = read_document(directory, documents.Points)
    if document is None:
        raise BundleError(f"{directory} has no {documents.Points.FILE}: it is no matrix's bundle.")
    study = manifest.get("study")
    whole = study if isinstance(study, Mapping) else {}
    parameters = tuple(_parameters(document.parameters, whole))
    points = [_point(entry, directory, whole) for entry in document.points]
    return Sweep(directory, manifest, parameters, tuple(_in_order(points, parameters, whole)))


def bytes_of(value: Any) -> int | None:
    """A size as studies write it, in bytes: 1024, "50KiB" (binary), "1MB" (decimal); else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    prefix, is_binary = match[2].rstrip("B").rstrip("i"), "i" in match[2]
    scale: int = (1024 if is_binary else 1000) ** _PREFIX[prefix]
    return round(float(match[1]) * scale)


def number_of(value: Any) -> float | None:
    """`value` of a parameter as a number to draw against: sizes in bytes; None for words."""
    if isinstance(value, float):
        return value
    size = bytes_of(value)
    return None if size is None else float(size)


def _point(entry: documents.Point, directory: Path, study: Mapping[str, Any]) -> Point:
    return Point(
        number=entry.point,
        name=entry.name,
        system=entry.system,
        values=dict(entry.values),
        directory=directory / (entry.directory or f"points/{entry.name}"),
        status=entry.status,
        reason=entry.reason,
        attempts=entry.attempts,
        study=study,
    )


def _parameters(
    entries: Sequence[documents.Parameter], study: Mapping[str, Any]
) -> Iterator[Parameter]:
    listed = {entry.name: list(entry.values) for entry in entries}
    keys: dict[str, list[str]] = {}
    for key in listed:
        keys.setdefault(_named(key, listed), []).append(key)
    for name, mine in keys.items():
        values: list[Any] = []
        for value in (value for key in mine for value in listed[key]):
            if value not in values:  # (Lists and mappings are values too.)
                values.append(value)
        swept = [value for key in mine for value in _swept(study, key)]
        yield Parameter(name, tuple(_sorted(values, swept)), tuple(mine))


def _named(key: str, keys: Iterable[str]) -> str:
    """ "drives" of "options.minio.drives", unless that is the name of something else."""
    name = key.removeprefix(_OPTIONS).partition(".")[2] if key.startswith(_OPTIONS) else key
    return key if not name or name in keys else name


def _sorted(values: Sequence[Any], swept: Sequence[Any]) -> list[Any]:
    """`values` by number where all of them are, else as they are `swept`: points are shuffled."""
    numbers = [number_of(value) for value in values]
    if all(number is not None for number in numbers):
        return sorted(values, key=lambda value: number_of(value) or 0.0)
    return sorted(values, key=lambda value: _place(value, swept))


def _swept(study: Mapping[str, Any], name: str) -> list[Any]:
    """The values that a study lists for a parameter, in all its grids and what they include."""
    sweep = study.get("matrix")
    grids = [grid for grid in (sweep if isinstance(sweep, list) else [sweep]) if grid]
    parts = [part for grid in grids for part in (grid, *(grid.get("include") or ()))]
    lists = [part[name] for part in parts if name in part]
    return [value for each in lists for value in (each if isinstance(each, list) else [each])]


def _in_order(
    points: Sequence[Point], parameters: Sequence[Parameter], study: Mapping[str, Any]
) -> list[Point]:
    listed = study.get("systems")
    systems = [str(name) for name in listed] if isinstance(listed, list) else []

    def place(point: Point) -> tuple[Any, ...]:
        values = tuple(
            _place(next((point.values[k] for k in p.keys if k in point.values), None), p.values)
            for p in parameters
        )
        return (*values, _place(point.system, systems), point.number)

    return sorted(points, key=place)


def _place(value: Any, values: Sequence[Any]) -> int:
    return values.index(value) if value in values else len(values)


def _dotted(tree: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree
