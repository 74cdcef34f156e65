"""The points of a matrix: in which order they are run, and how far each is (`points.json`).

A point is a study on one system; or a drill on one (`experiments.drill.points`), of which a run of
several drills has as many.

All are looked at before anything starts, or read from the bundle of a run that is resumed.

A point that is measured on several clusters is as many points, which differ in `replicate` alone.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from wanlat.bundle import REPLICATE, documents
from wanlat.bundle.errors import BundleError
from wanlat.bundle.identity import in_words, unlike
from wanlat.bundle.read import read_document
from wanlat.bundle.write import default_directory, is_nearly_full, now_iso, write_points
from wanlat.emulator.lab import BackendName
from wanlat.experiments.config.claims import claims_on
from wanlat.experiments.config.matrix import NoSuchPlace, combinations, format_findings, value_at
from wanlat.experiments.config.study import Study
from wanlat.experiments.manifest import beginning, instruments
from wanlat.experiments.prepare import Prepared, prepare
from wanlat.experiments.run import requested, run
from wanlat.experiments.session import CaptureWanted, Outcome, Report
from wanlat.systems import registry
from wanlat.systems.base import Binary
from wanlat.topologies import unforeseen
from wanlat.topologies.errors import DiskFull, MachineError, UserError, WanlatError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_tree import Document

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill

_LONGEST_NAME = 100
_HOW_FAR = ("status", "reason", "began", "ended", "attempts")


class AnyPoint(documents.Point):
    """What is measured on a lab and a cluster of its own, and how far it is."""

    model_config = ConfigDict(frozen=False)

    @property
    def replicate(self) -> int:
        """Which of several clusters it is measured on, from 1 on."""
        return int(self.values.get(REPLICATE, 1))

    @property
    def label(self) -> str:
        """Which of its system's points it is; empty where there is one."""
        return ", ".join(f"{name} {_text(value)}" for name, value in self.values.items())

    @property
    def expected_s(self) -> float | None:
        """How long it takes about, where that is known before."""
        return None

    @property
    def topology(self) -> str:
        """What it calls its topology."""
        raise NotImplementedError

    @property
    def max_network_error_ms(self) -> float:
        """What its network may be late by."""
        raise NotImplementedError

    def seed(self, seed: int) -> int:
        """Return its seed, drawn from that of the whole; systems have the same at the same values.

        So they get the same requests. Every replicate has one of its own.
        """
        values = json.dumps(dict(self.values), sort_keys=True)
        return random.Random(f"{seed}/points/{values}").getrandbits(32)


class Batch(ABC):
    """What is measured point by point: a matrix of studies, or drills on systems."""

    kind: ClassVar[Literal["matrix", "drills"]]
    """Of its bundle."""
    command: ClassVar[str]
    """The words after `wanlat` that measure it, and resume it."""
    noun: ClassVar[str]
    """What one of its points is called."""
    several: ClassVar[str]
    """How the user has more than one, as a sentence."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Names the bundle."""

    @property
    def seed(self) -> int | None:
        """Its seed where it has one of its own."""
        return None

    @property
    @abstractmethod
    def own(self) -> dict[str, Any]:
        """The keys that only manifests of this kind have, for `from_manifest`."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[Study | Drill]:
        """Every study or drill that is run, with its systems."""

    @classmethod
    @abstractmethod
    def from_manifest(cls, manifest: documents.Manifest) -> Self:
        """Return what a manifest was made of. Raises ValueError where this version has no such."""

    @abstractmethod
    def points(self) -> Sequence[AnyPoint]:
        """Return its points, not in the order they are run in. Raises UserError."""

    @property
    @abstractmethod
    def is_one(self) -> bool:
        """Whether it is one run, with a bundle without points."""

    @abstractmethod
    def prepare(self, point: Any = None, **how: Any) -> Any:
        """Return a point ready to be run, or the one run. Raises UserError or MachineError.

        ``how``: as of `prepare_points`, and ``binaries`` that were found before.
        """

    @abstractmethod
    def run(self, ready: Any, report: Report) -> Outcome:
        """Run it, and write its bundle."""


@dataclass(frozen=True)
class StudyPoints(Batch):
    """A study with a matrix, or with replicates."""

    study: Study
    kind = "matrix"
    command = "run"
    noun = "point"
    several = "Give it a --matrix or --replicates."

    @property
    def name(self) -> str:
        """The study's."""
        return self.study.name

    @property
    def seed(self) -> int | None:
        """The study's."""
        return self.study.seed

    @property
    def own(self) -> dict[str, Any]:
        """The study, and what is claimed of its figures."""
        return {"study": self.study.to_dict(), **claims_on(self.study.name)}

    @property
    def parts(self) -> Sequence[Study]:
        """The study of each point."""
        return [point.study for point in self.points()]

    @classmethod
    def from_manifest(cls, manifest: documents.Manifest) -> Self:
        """Return the study of a manifest."""
        keys = manifest.study and manifest.study.model_dump(mode="json", exclude_unset=True)
        return cls(Study.model_validate(keys))

    def points(self) -> Sequence[Point]:
        """Return every combination on every system."""
        return points_of(self.study)

    @property
    def is_one(self) -> bool:
        """Whether it has neither a matrix nor replicates."""
        return not self.study.has_points

    def prepare(self, point: Point | None = None, **how: Any) -> Prepared:
        """Return a point ready to be run; None: the study on all its systems."""
        return prepare(self.study if point is None else point.study, **how)

    def run(self, ready: Prepared, report: Report) -> Outcome:
        """Run it, and write its bundle."""
        return run(ready, report)


class Point(AnyPoint):
    """One combination of values on one system: a study of its own."""

    study: Study = Field(exclude=True, repr=False)

    @property
    def topology(self) -> str:
        """What it calls its topology."""
        return self.study.topology

    @property
    def max_network_error_ms(self) -> float:
        """What its network may be late by."""
        return self.study.max_network_error.ms

    def seed(self, seed: int) -> int:
        """Return its seed: its own if it has one, else one drawn from the matrix's."""
        if self.study.seed is not None and "seed" in self.values:
            return self.study.seed
        return super().seed(seed)


@dataclass
class PointEnded:
    """How an attempt at a point ended."""

    status: documents.Status
    reason: str | None = None
    is_disk_full: bool = False
    is_late: bool = False
    """Whether this machine was late, so that what was learned may be its doing."""
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def points_of(study: Study) -> list[Point]:
    """Return the points of a study, in the order of its grids; without a matrix one a system.

    Each as often as there are replicates. What is an option of another system is no parameter of a
    point, and two combinations that differ in nothing else are one point. Raises UserError for a
    combination that is no study.
    """
    whole = study.to_dict()
    points: dict[str, Point] = {}
    names: set[str] = set()
    replicates = range(1, study.replicates + 1)
    for combination, replicate in product(combinations(study.matrix, study.systems), replicates):
        try:
            point, mistakes = checked(Document(combination.study(whole)), Study)
        except NoSuchPlace as error:
            raise UserError(f"The point {combination.label} of the matrix: {error}") from error
        if point is None or mistakes:
            raise UserError(
                f"The point {combination.label} of the matrix: {format_findings(mistakes)}"
            )
        printed = point.to_dict()
        values = {name: value_at(printed, *name.split(".")) for name in combination.values}
        if study.replicates > 1:
            values[REPLICATE] = replicate
        key = json.dumps([combination.system, values], sort_keys=True)
        if key in points:
            continue
        name = "-".join(
            [combination.system, *(f"{_slug(k)}-{_slug(_stem(v))}" for k, v in values.items())]
        )
        if len(name) > _LONGEST_NAME or name in names:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        names.add(name)
        points[key] = Point(
            point=len(points),
            name=name,
            system=combination.system,
            values=values,
            directory=f"points/{name}",
            study=point,
        )
    if not points:
        raise UserError(
            f"study {study.name}: no grid of its matrix is for {listing(study.systems)}. "
            "Name other systems with --systems."
        )
    return [*points.values()]


def in_order(points: Sequence[AnyPoint], seed: int) -> list[AnyPoint]:
    """Return the points shuffled, so that drift of the machine cannot pass for a difference.

    In blocks: first of everything its first replicate.
    """
    drawn, shuffled = random.Random(f"{seed}/points"), list[AnyPoint]()
    for replicate in sorted({point.replicate for point in points}):
        block = [point for point in points if point.replicate == replicate]
        drawn.shuffle(block)
        shuffled += block
    for place, point in enumerate(shuffled):
        point.point = place
    return shuffled


@dataclass(frozen=True)
class Shard:
    """A part of a matrix's points: number `number`, from 1 on, of `total` parts."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "2/4". Raises UserError."""
        number, slash, total = text.partition("/")
        if not (
            slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)
        ):
            raise UserError(
                f"--shard {text}: give NUMBER/OF, such as 2/4 for the second of four parts."
            )
        return cls(int(number), int(total))

    def __str__(self) -> str:
        """Return it as the command line has it."""
        return f"{self.number}/{self.total}"

    def has(self, point: AnyPoint) -> bool:
        """Whether a point, which knows its place in the order, is of this part.

        Neighbours in the order are of different parts: each gets of every block as much.
        """
        return point.point % self.total == self.number - 1


def parameters_of(points: Iterable[AnyPoint]) -> list[dict[str, Any]]:
    """Return the parameters with all values that points have, in the order of the study.

    Where values are all numbers or all sizes, `analysis` sorts them.
    """
    parameters: dict[str, list[Any]] = {}
    for point in points:
        for name, value in point.values.items():
            values = parameters.setdefault(name, [])
            if value not in values:
                values.append(value)
    return [{"name": name, "values": values} for name, values in parameters.items()]


class Progress:
    """How far each point is. Every change is on disk, whole, when the call returns."""

    def __init__(self, directory: Path, points: Sequence[AnyPoint]) -> None:
        """``points`` in the order in which they are run."""
        self.points = points
        self._directory = directory
        self._parameters = json.dumps(parameters_of(points), ensure_ascii=False)
        self._rows = dict[str, str]()

    def read(self) -> None:
        """Take over what the file has, where there is one. Raises UserError."""
        try:
            document = read_document(self._directory, documents.Points)
        except BundleError as error:
            raise UserError(str(error)) from error
        if document is None:
            return
        rows = {row.name: row for row in document.points}
        if rows.keys() != {point.name for point in self.points}:
            raise UserError(
                f"{self._directory} has other points than its study. Begin a new bundle."
            )
        for point in self.points:
            for key in _HOW_FAR:
                setattr(point, key, getattr(rows[point.name], key))

    def begins(self, point: AnyPoint) -> None:
        """Note that an attempt at a point begins."""
        point.status, point.reason, point.attempts = "running", None, point.attempts + 1
        point.began, point.ended = now_iso(), None
        self.write(point)

    def ends(
        self,
        point: AnyPoint,
        status: Literal["planned"] | documents.Status,
        reason: str | None = None,
    ) -> None:
        """Note how an attempt ended. `planned`: there is to be another."""
        point.status, point.reason, point.ended = status, reason, now_iso()
        self.write(point)

    def left(self) -> list[AnyPoint]:
        """Return what is not complete, in the order it is run."""
        return [point for point in self.points if point.status != "complete"]

    def write(self, *changed: AnyPoint) -> None:
        """Write the file; ``changed``: the only points that are no longer as they were written."""
        whole = set(documents.Point.model_fields)
        for point in changed or self.points:
            self._rows[point.name] = point.model_dump_json(include=whole)
        write_points(self._directory, self._parameters, self._rows.values())


def _stem(value: Any) -> str:
    text = _text(value)
    return PurePath(text).stem if text.endswith((".yaml", ".yml")) else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "none"


@dataclass(frozen=True, kw_only=True)
class PreparedPoints:
    """Points, every one of which was looked at, and how they are measured."""

    batch: Batch
    points: tuple[AnyPoint, ...]
    """All of them, in the order in which they are run."""
    seed: int
    directory: Path
    backend: BackendName | None = None
    capture: CaptureWanted | None = None
    topologies: Mapping[str, Topology] = field(default_factory=dict)
    """By what points call them, before their number of nodes is changed."""
    systems: tuple[Mapping[str, Any], ...] = ()
    """Which program each of them is."""
    shard: Shard | None = None
    """Which part of the points is measured; None: all."""
    instruments: tuple[Mapping[str, Any], ...] = field(default_factory=lambda: (*instruments(),))
    """The programs of our own that measure it."""
    besides: tuple[documents.Document, ...] = ()
    """What else its bundle has from the beginning on."""

    def __post_init__(self) -> None:
        """Raise UserError where no point is measured."""
        if not self.selected:
            count = len(self.points)
            raise UserError(f"--shard {self.shard}: there are {count} points, and none is of it.")

    @cached_property
    def selected(self) -> tuple[AnyPoint, ...]:
        """The points that are measured: those of its shard."""
        return tuple(point for point in self.points if self.shard is None or self.shard.has(point))

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of its bundle as it begins."""
        return {
            "schema_version": documents.SCHEMA_VERSION,
            **beginning(self.batch.kind, self.seed),
            "instruments": [dict(program) for program in self.instruments],
            "requested": requested(self.backend, self.capture),
            "systems": [dict(program) for program in self.systems],
            "adopted": registry.adopted(program["name"] for program in self.systems),
            "topologies": {name: made.to_dict() for name, made in self.topologies.items()},
            "attempts": 1,
            "shard": None if self.shard is None else str(self.shard),
            **self.batch.own,
            # Not in the order they are run in.
            "parameters": parameters_of(self.batch.points()),
        }

    def prepare(self, point: AnyPoint, binaries: MutableMapping[str, Binary] | None = None) -> Any:
        """Return a point ready to be run. Raises UserError or MachineError."""
        return self.batch.prepare(
            point,
            directory=self.directory / point.directory,
            backend=self.backend,
            capture=self.capture,
            seed=point.seed(self.seed),
            topologies=self.topologies,
            binaries=binaries,
        )

    def measure(self, point: AnyPoint, report: Report) -> Outcome:
        """Prepare and run a point. Raises UserError or MachineError before it is started."""
        ready = self.prepare(point)
        check_same_programs(self.directory, self.systems, [s.program for s in ready.subjects])
        check_same_programs(self.directory, self.instruments, instruments())
        return self.batch.run(ready, report)


def prepare_points(
    batch: Batch,
    *,
    directory: Path | None = None,
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    seed: int | None = None,
    topologies: Mapping[str, Topology] | None = None,
    shard: Shard | None = None,
    besides: tuple[documents.Document, ...] = (),
    systems: Sequence[Mapping[str, Any]] | None = None,
) -> PreparedPoints:
    """Look at everything that could be wrong with any point. Raises UserError or MachineError.

    ``topologies`` are used in place of files. Of a ``shard`` all points are looked at, and its own
    are measured. ``besides`` are documents that its bundle has, too. ``systems``: of points that
    were looked at before, the program of each system; they are not looked at again.
    """
    seed = seed_of_all(batch.seed if seed is None else seed, shard)
    listed, known = batch.points(), topologies or {}
    points = in_order(listed, seed)
    names = dict.fromkeys(point.topology for point in points)
    prepared = PreparedPoints(
        batch=batch,
        points=tuple(points),
        seed=seed,
        directory=directory or default_directory(batch.name),
        backend=backend,
        capture=capture,
        topologies={name: known.get(name) or load_topology(name) for name in names},
        systems=tuple(systems or ()),
        shard=shard,
        besides=besides,
    )
    if systems is not None:
        return prepared
    programs: dict[str, Mapping[str, Any]] = {}
    binaries: dict[str, Binary] = {}
    for point in listed:
        try:
            (subject,) = prepared.prepare(point, binaries).subjects
        except (UserError, MachineError) as error:
            raise type(error)(f"Point {point.name}: {error}") from error
        programs.setdefault(json.dumps(subject.program, sort_keys=True), subject.program)
    return replace(prepared, systems=tuple(programs.values()))


def seed_of_all(seed: int | None, shard: Shard | None) -> int:
    """Return the seed, drawn where there is none. Raises UserError for a shard without."""
    if shard is not None and seed is None:
        raise UserError(
            "--shard: every part must draw the same points in the same order. Give --seed N, the "
            "same for all parts."
        )
    return secrets.randbits(32) if seed is None else seed


def check_same_programs(
    directory: Path,
    before: Sequence[Mapping[str, Any] | documents.Program],
    now: Sequence[Mapping[str, Any]],
) -> None:
    """Raise UserError when a program is another one now: points would not compare."""
    if differs := unlike(before, now):
        raise UserError(
            f"{directory}: not the same as when it was begun: {in_words(differs)}. The points of a "
            "matrix are compared with each other. Put the former back, or begin a new bundle."
        )


def run_point(prepared: PreparedPoints, point: AnyPoint, report: Report) -> PointEnded:
    """Run a point, and return how it ended. Raises KeyboardInterrupt."""
    directory = prepared.directory / point.directory
    try:
        ended = prepared.measure(point, report)
    except WanlatError as error:
        is_full = isinstance(error, DiskFull) or is_nearly_full(prepared.directory)
        return PointEnded("failed", str(error), is_full)
    except Exception as error:
        # A mistake of ours: the other points are worth to be measured all the same.
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
        return PointEnded("failed", unforeseen.kept(error, directory))
    return PointEnded(
        ended.status,
        ended.reason,
        ended.is_disk_full,
        ended.is_late,
        ended.warnings,
        ended.remarks,
    )
