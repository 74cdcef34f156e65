"""Reading the bundle of a matrix: points.json, and the bundle of each point.

A point is an ordinary bundle (`bundle.run`). One that failed, was interrupted or never began
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

from wanlat.bundle import REPLICATE, documents
from wanlat.bundle.errors import BundleError
from wanlat.bundle.identity import unlike
from wanlat.bundle.read import read_document, read_manifest
from wanlat.bundle.run import MessagesOf, Run, Source, how_ended, read_run
from wanlat.bundle.units import number_of

KIND = "matrix"
REPEATED = (REPLICATE, "seed")
"""Parameters that change nothing: their values are so many runs of the same, each on a cluster of
its own."""

_OPTION = re.compile(r"options\.[^.]+\.(.+)")


@dataclass(frozen=True)
class Parameter:
    """One axis of the matrix, and its values: numbers by size, words as the study has them.

    An option of stores has the name that it has there ("drives"), and is one axis whichever of
    them have it; `keys` are what the study calls it ("options.minio.drives"), one or several.
    """

    name: str
    values: tuple[Any, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One combination of values on one system; `entry` is that of points.json.

    `values` are those of the matrix' parameters by their keys, as the study has them ("50KiB", 2).
    """

    name: str
    system: str
    values: Mapping[str, Any]
    directory: Path
    entry: documents.Point
    study: Mapping[str, Any] = field(compare=False, repr=False)
    """The study of the whole matrix, for what does not vary."""

    @property
    def bundle(self) -> Run | None:
        """What it left, read at its first use; None where that cannot be read."""
        return self._read[0]

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end and can be read."""
        return self.entry.status == "complete" and self.bundle is not None

    @property
    def why_missing(self) -> str | None:
        """Why there are no figures of it that count; None of a complete one."""
        if self.entry.status == "complete":
            return self._read[1]
        why = f": {self.entry.reason.rstrip('.')}" if self.entry.reason else ""
        return f"it {how_ended(self.entry.status, self.directory)}{why}"

    def value(self, parameter: str) -> Any:
        """The value of `parameter` ("nodes", "prefill.objects"): varied, else the study's, or None.

        An option of stores ("drives") is that of the point's own. Sizes and durations are as the
        study writes them: see `bytes_of`.
        """
        keys = (parameter, f"options.{self.system}.{parameter}")
        for key in keys:
            if key in self.values:
                return self.values[key]
        own = self.bundle.manifest if self.bundle else None
        for study in (own and own.study and own.study.model_dump(), self.study):
            for key in keys:
                if (value := _dotted(study, key)) is not None:
                    return value
        is_nodes = parameter == "nodes"
        return (own and len(own.site_of_node)) or None if is_nodes else None

    @cached_property
    def _read(self) -> tuple[Run | None, str | None]:
        try:
            return read_run(self.directory), None
        except BundleError as error:
            return None, str(error).rstrip(".")


@dataclass(frozen=True)
class Matrix(Source):
    """A matrix as it lies on disk; `points` in the order of the study, not in that of running."""

    directory: Path
    manifest: documents.Manifest
    parameters: tuple[Parameter, ...]
    points: tuple[Point, ...]
    derived: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """As a bundle's: what took long to derive, under a name of who derived it."""

    @property
    def topology(self) -> str:
        """Name of the topology; "several topologies" where that varies."""
        names = dict.fromkeys(p.bundle.topology for p in self.points if p.bundle is not None)
        if len(names) > 1:
            return "several topologies"
        return next(iter([*names, *self.manifest.topologies]), "unnamed topology")

    @property
    def complete(self) -> tuple[Point, ...]:
        """Points that came to their end and can be read."""
        return tuple(point for point in self.points if point.is_complete)

    @property
    def missing(self) -> tuple[Point, ...]:
        """All others."""
        return tuple(point for point in self.points if not point.is_complete)

    @property
    def untrusted(self) -> list[str]:
        """The names of complete points with a network that was not as requested."""
        return [p.name for p in self.complete if p.bundle and not p.bundle.is_trusted]

    @property
    def hosts(self) -> Mapping[str, list[str]]:
        """The machines that complete points were measured on, with the names of these points."""
        points_of: dict[str, list[str]] = {}
        for point in self.complete:
            if point.bundle and (host := point.bundle.manifest.host):
                points_of.setdefault(host, []).append(point.name)
        return points_of

    @cached_property
    def mixed_programs(self) -> Mapping[str, list[str]]:
        """What differs in a system between clusters of one combination, by the system's name."""
        first: dict[tuple[str, str], Run] = {}
        differing: dict[str, list[str]] = {}
        for point in self.complete:
            assert point.bundle is not None
            values = {key: value for key, value in point.values.items() if key not in REPEATED}
            one = first.setdefault((point.system, repr(sorted(values.items()))), point.bundle)
            before, now = one.manifest.systems, point.bundle.manifest.systems
            for name, differs in unlike(before, now).items():
                differing.setdefault(name, differs)
        return differing

    def varies(self, parameter: str) -> bool:
        """Whether `parameter` takes several values in this matrix."""
        return any(p.name == parameter and len(p.values) > 1 for p in self.parameters)


def read_source(
    directory: Path | str, messages_of: MessagesOf = lambda _system: None
) -> Run | Matrix:
    """Read the run or the matrix in `directory`; `messages_of` as of `Run`.

    Raises BundleError where it is none, of another version or damaged, and for several drills,
    which are read one by one; NoSamplesError as `read_run`.
    """
    directory = Path(directory)
    kind = read_manifest(directory).kind
    if kind == "drills":
        raise BundleError(
            f"{directory} holds several drills: each of its `points` has a report, which "
            f"`wanlat report {directory}` writes. `wanlat drill matrix {directory} -o DIR` lays "
            "them beside each other."
        )
    return read_matrix(directory) if kind == KIND else read_run(directory, messages_of)


def read_matrix(directory: Path | str) -> Matrix:
    """Read the matrix in `directory`; points' bundles are read when they are used.

    Raises BundleError where it is no matrix, of a newer format, or damaged.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    if manifest.kind != KIND:
        raise BundleError(f"{directory} is the bundle of one run, not of a matrix.")
    document = read_document(directory, documents.Points)
    if document is None:
        raise BundleError(f"{directory} has no {documents.Points.FILE}: it is no matrix's bundle.")
    # Points are shuffled: the manifest has the values as the study does.
    listed = {axis.name: list(axis.values) for axis in manifest.parameters}
    axes = {axis.name: listed.get(axis.name, list(axis.values)) for axis in document.parameters}
    parameters = tuple(_parameters(axes))
    study = manifest.study.model_dump() if manifest.study else {}
    points = [
        Point(entry.name, entry.system, entry.values, directory / entry.directory, entry, study)
        for entry in document.points
    ]
    systems = [str(name) for name in study.get("systems") or ()]

    def place(point: Point) -> tuple[int, ...]:
        own = (
            next((point.values[k] for k in p.keys if k in point.values), None) for p in parameters
        )
        at = [_place(value, p.values) for value, p in zip(own, parameters, strict=True)]
        return (*at, _place(point.system, systems), point.entry.point)

    return Matrix(directory, manifest, parameters, tuple(sorted(points, key=place)))


def _parameters(listed: Mapping[str, Sequence[Any]]) -> Iterator[Parameter]:
    """The axes of keys with their values: options of the same name are one axis."""
    keys: dict[str, list[str]] = {}
    for key in listed:
        keys.setdefault(_named(key, listed), []).append(key)
    for name, mine in keys.items():
        values: list[Any] = []
        for value in (value for key in mine for value in listed[key]):
            if value not in values:  # (Lists and mappings are values too.)
                values.append(value)
        if all(number_of(value) is not None for value in values):
            values.sort(key=lambda value: number_of(value) or 0.0)
        yield Parameter(name, tuple(values), tuple(mine))


def _named(key: str, keys: Iterable[str]) -> str:
    """ "drives" of "options.minio.drives", unless that is the name of something else."""
    option = _OPTION.fullmatch(key)
    return option[1] if option and option[1] not in keys else key


def _place(value: Any, values: Sequence[Any]) -> int:
    return values.index(value) if value in values else len(values)


def _dotted(tree: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree
