"""Runs a matrix: point after point, each an ordinary bundle of one system, and none of them twice.

A point that fails does not end the matrix: the others are measured, and `--resume` tries it again.
Ctrl-C and a full disk of the machine do end it.
"""

from __future__ import annotations

import json
import secrets
import statistics
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import SCHEMA_VERSION
from wanlat.bundle.write import (
    Lock,
    Reserve,
    default_directory,
    is_nearly_full,
    now_iso,
    write_json,
)
from wanlat.emulator.lab import BackendName
from wanlat.experiments import machine_facts
from wanlat.experiments.config.study import Study
from wanlat.experiments.matrix_points import (
    DIRECTORY,
    Entry,
    Point,
    Points,
    Status,
    in_order,
    parameters_of,
    points_of,
    seed_of,
)
from wanlat.experiments.matrix_resume import (
    Unfinished,
    check_same_stores,
    machine_remarks,
    read_unfinished,
)
from wanlat.experiments.prepare import Prepared, Subject, prepare
from wanlat.experiments.run import requested, run
from wanlat.experiments.session import CaptureWanted, Report
from wanlat.systems.base import Binary
from wanlat.topologies.errors import DiskFull, MachineError, UserError, WanlatError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing

_RESERVED_BYTES = 2 << 20
"""Room for `points.json` of thousands of points, twice, and for the manifest."""


@dataclass
class MatrixOutcome:
    """How a matrix ended."""

    directory: Path
    points: int
    complete: int = 0
    failed: int = 0
    status: str = "running"  # complete | interrupted | failed
    reason: str | None = None
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    is_disk_full: bool = False
    failures: dict[str, str | None] = field(default_factory=dict)
    """Why points failed, by their names."""


def run_matrix(
    prepared: PreparedMatrix, report: Report, *, unfinished: Unfinished | None = None
) -> MatrixOutcome:
    """Measure what is not measured yet. ``unfinished``: the matrix that is gone on with.

    However it ends, `points.json` says how far it came. Raises UserError when the directory cannot
    be written, or another run is writing to it.
    """
    return _Running(prepared, report, unfinished).run()


class _Running:
    def __init__(
        self, prepared: PreparedMatrix, report: Report, unfinished: Unfinished | None
    ) -> None:
        self._prepared = prepared
        self._report = report
        self._directory = prepared.directory
        self._lock = _take(self._directory, is_new=unfinished is None)
        self._is_resumed = unfinished is not None
        self._manifest: dict[str, Any] = {}
        self._points: Points | None = None
        self._by_name = {point.name: point for point in prepared.points}
        self._took_s: defaultdict[str, list[float]] = defaultdict(list)
        self._outcome = MatrixOutcome(self._directory, len(prepared.points))
        self._reserve = Reserve(self._directory, _RESERVED_BYTES)
        self._is_disk_full = False

    def run(self) -> MatrixOutcome:
        """Go through the points."""
        outcome = self._outcome
        try:
            self._begin()
        except BaseException:
            self._reserve.release()
            self._lock.release()
            raise
        try:
            for entry in self._known.left():
                self._measure(entry)
            self._count()
        except KeyboardInterrupt:
            outcome.status, outcome.reason = "interrupted", "interrupted by the user"
        except MachineError as error:  # without a place to write to there is nothing to go on for
            outcome.status, outcome.reason = "failed", str(error)
            outcome.is_disk_full = isinstance(error, DiskFull)
        finally:
            self._end()
        return outcome

    @property
    def _known(self) -> Points:
        assert self._points is not None
        return self._points

    def _begin(self) -> None:
        """Write down what is to be done, or read what is left to do."""
        manifest = _manifest(self._prepared)
        if self._is_resumed:
            # Read again: now that nobody else can change it.
            manifest = _joined(read_unfinished(self._directory), manifest)
            self._points = Points.read(self._directory)
        self._manifest = manifest
        if self._points is None:  # killed before there were any, or new
            self._write_manifest()
            self._points = Points.create(self._directory, self._prepared.points)
            return
        if {each.name for each in self._points.entries} != set(self._by_name):
            raise UserError(
                f"{self._directory} has other points than its study. Begin a new bundle."
            )
        for entry in self._points.entries:
            if entry.status == "complete" and not (self._directory / entry.directory).exists():
                self._points.forget(entry)
        self._write_manifest()

    def _measure(self, entry: Entry) -> None:
        directory = self._directory / entry.directory
        if _status(directory) == "complete":
            # The run was killed when it was through with the point, and had not said so yet.
            self._known.ends(entry, "complete")
            return
        _put_aside(directory)
        entry = self._known.begins(entry)
        began = time.monotonic()
        try:
            status, reason = self._run(entry, directory)
        except KeyboardInterrupt:
            self._known.ends(entry, "interrupted", "interrupted by the user")
            raise
        is_full = status == "failed" and self._is_disk_full
        if is_full:
            self._reserve.release()
        self._known.ends(entry, status, reason)
        if is_full:
            raise DiskFull(f"{entry.name}: {reason}")
        if status == "interrupted":
            raise KeyboardInterrupt
        if status == "complete":
            self._took_s[entry.system].append(time.monotonic() - began)

    def _run(self, entry: Entry, directory: Path) -> tuple[Status, str | None]:
        """Run one point; return how it ended, and why."""
        point, told = self._by_name[entry.name], _Told(self._report, self._place(entry))
        told(entry.said)
        self._is_disk_full = False
        # What earlier attempts warned of is theirs: it may be mended, or what it named be gone.
        warnings = self._manifest["warnings"]
        self._manifest["warnings"] = [w for w in warnings if not w.startswith(f"{entry.name}: ")]
        try:
            prepared = self._prepared.prepare(point, directory)
            # Whoever builds a store while its matrix goes on would compare two of them.
            now = [program(subject) for subject in prepared.subjects]
            check_same_stores(self._directory, self._prepared.systems, now)
            outcome = run(prepared, told)
        except WanlatError as error:
            self._is_disk_full = isinstance(error, DiskFull) or is_nearly_full(self._directory)
            return "failed", str(error)
        except Exception as error:
            # A mistake of ours: the other points are worth to be measured all the same.
            with suppress(OSError):
                directory.mkdir(parents=True, exist_ok=True)
                (directory / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8")
            return "failed", f"{type(error).__name__}: {error}"
        self._is_disk_full = outcome.is_disk_full
        self._outcome.warnings += [f"{entry.name}: {each}" for each in outcome.warnings]
        self._outcome.remarks += [f"{entry.name}: {each}" for each in outcome.remarks]
        match outcome.status:
            case "complete" | "interrupted":
                return outcome.status, outcome.reason
            case _:
                return "failed", outcome.reason

    def _place(self, entry: Entry) -> str:
        """Say how far the matrix is: `point 3 of 24, about 12 min left`."""
        said = f"point {entry.point + 1} of {len(self._known.entries)}"
        every = [took_s for took in self._took_s.values() for took_s in took]
        if every:
            left_s = sum(
                statistics.fmean(self._took_s.get(each.system) or every)
                for each in self._known.left()
            )
            said += f", about {_duration(left_s)} left"
        return said

    def _count(self) -> None:
        points, outcome = self._known, self._outcome
        failed = [each for each in points.entries if each.status != "complete"]
        if not failed:
            outcome.status = "complete"
            return
        outcome.status = "failed"
        outcome.failures = {each.name: each.reason for each in failed}
        names = listing((each.name for each in failed), at_most=3)
        outcome.reason = f"{len(failed)} of {len(points.entries)} points failed: {names}."

    def _end(self) -> None:
        """Write how it ended, and let go."""
        self._reserve.release()
        outcome = self._outcome
        if outcome.status == "running":
            outcome.status, outcome.reason = "failed", repr(sys.exc_info()[1])
        points = self._known
        outcome.complete, outcome.failed = points.count("complete"), points.count("failed")
        try:
            for entry in points.entries:
                if entry.status == "running":  # it was cut short between two steps
                    points.ends(entry, "interrupted", outcome.reason)
            earlier = self._manifest["warnings"]
            outcome.warnings = list(dict.fromkeys([*earlier, *outcome.warnings]))
            self._write_manifest(
                status=outcome.status,
                reason=outcome.reason,
                warnings=outcome.warnings,
                ended=now_iso(),
            )
        except MachineError as error:
            outcome.status = "failed"
            outcome.reason = outcome.reason or str(error)
            outcome.warnings.append(
                f"{self._directory} does not say how it ended: it could not be written."
            )
        finally:
            self._lock.release()

    def _write_manifest(self, **changes: Any) -> None:
        self._manifest.update(changes)
        write_json(self._directory / "manifest.json", self._manifest)


@dataclass
class _Told:
    """Tells what a point is doing, and which of how many it is."""

    report: Report
    place: str

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = "", /
    ) -> None:
        self.report(f"{self.place}: {stage}", done, total, detail)


def _manifest(prepared: PreparedMatrix) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "matrix",
        "status": "running",
        "reason": None,
        "warnings": [],
        "study": prepared.study.to_dict(),
        "parameters": parameters_of(points_of(prepared.study)),
        "systems": [dict(each) for each in prepared.systems],
        "topologies": {name: each.to_dict() for name, each in prepared.topologies.items()},
        "seed": prepared.seed,
        "requested": requested(prepared.backend, prepared.capture),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": now_iso(),
        "ended": None,
        "attempts": 1,
        **machine_facts.collect(),
    }


def _take(directory: Path, *, is_new: bool) -> Lock:
    """Make the directory, or take the one that is there, for this run alone. Raises UserError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # What begins with a dot is of a run that was killed in its first moments.
        if is_new and any(not each.name.startswith(".") for each in directory.iterdir()):
            raise UserError(
                f"The output directory {directory} is not empty, and a bundle never overwrites "
                f"another. Name a new one with --out, or go on with it: --resume {directory}."
            )
        return Lock(directory)
    except OSError as error:
        raise UserError(
            f"The bundle cannot be written to {directory}: {error.strerror}. "
            "Name another directory with --out."
        ) from error


def _joined(unfinished: Unfinished, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a matrix that is gone on with. Raises UserError."""
    old = unfinished.manifest
    check_same_stores(unfinished.directory, old.get("systems", ()), manifest["systems"])
    remarks = [each for each in machine_remarks(old) if each not in old["warnings"]]
    return {
        **manifest,
        "warnings": [*old["warnings"], *remarks],
        "command": old["command"],
        "started": old["started"],
        "attempts": old["attempts"] + 1,
        "resumed": [*old.get("resumed", []), now_iso()],
    }


def _status(directory: Path) -> str | None:
    """Return how the bundle in a directory ended; None where there is none."""
    try:
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(manifest.get("status"))


def _put_aside(directory: Path) -> None:
    """Keep what an attempt left that did not complete beside the next one."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}.attempt-{number}")).exists():
        number += 1
    if directory.exists():
        directory.rename(aside)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{max(round(seconds), 1)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@dataclass(frozen=True)
class PreparedMatrix:
    """A matrix of which every point was looked at."""

    study: Study
    points: tuple[Point, ...]
    """In the order in which they are run."""
    seed: int
    directory: Path
    backend: BackendName | None = None
    capture: CaptureWanted | None = None
    topologies: Mapping[str, Topology] = field(default_factory=dict)
    """By what points call them, before their number of nodes is changed."""
    systems: tuple[Mapping[str, Any], ...] = ()
    """Which program each of them is."""

    def prepare(
        self,
        point: Point,
        directory: Path | None = None,
        *,
        binaries: MutableMapping[str, Binary] | None = None,
    ) -> Prepared:
        """Return a point ready to be run. Raises UserError or MachineError."""
        return prepare(
            point.study,
            directory=directory or self.directory / DIRECTORY / point.name,
            backend=self.backend,
            capture=self.capture,
            seed=seed_of(point, self.seed),
            topologies=self.topologies,
            binaries=binaries,
        )


def prepare_matrix(
    study: Study,
    *,
    directory: Path | None = None,
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    seed: int | None = None,
    topologies: Mapping[str, Topology] | None = None,
) -> PreparedMatrix:
    """Look at everything that could be wrong with any point. Raises UserError or MachineError.

    ``topologies`` are used in place of files.
    """
    if seed is None:
        seed = secrets.randbits(32) if study.seed is None else study.seed
    points = points_of(study)
    names = dict.fromkeys(point.study.topology for point in points)
    known = topologies or {}
    prepared = PreparedMatrix(
        study,
        tuple(in_order(points, seed)),
        seed,
        directory or default_directory(study.name),
        backend,
        capture,
        {name: known.get(name) or load_topology(name) for name in names},
    )
    systems: dict[str, Mapping[str, Any]] = {}
    binaries: dict[str, Binary] = {}
    for point in points:
        try:
            (subject,) = prepared.prepare(point, binaries=binaries).subjects
        except (UserError, MachineError) as error:
            raise type(error)(f"Point {point.name} of the matrix: {error}") from error
        systems.setdefault(point.system, program(subject))
    return replace(prepared, systems=tuple(systems.values()))


def program(subject: Subject) -> dict[str, Any]:
    """Return which program a system is."""
    found = subject.binary
    return {"name": subject.system.name, "version": found.version, "sha256": found.sha256}
