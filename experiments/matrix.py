"""Runs a matrix: point after point, each an ordinary bundle of one system, and none of them twice.

A point that fails does not end the matrix: the others are measured, and `--resume` tries it again.
Ctrl-C and a full disk of the machine do end it.
"""

from __future__ import annotations

import secrets
import statistics
import sys
import threading
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import SCHEMA_VERSION, Points
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_json, read_manifest
from wanlat.bundle.write import (
    Hold,
    default_directory,
    is_nearly_full,
    now_iso,
    take_directory,
    write_manifest,
)
from wanlat.emulator.lab import BackendName
from wanlat.experiments.config.claims import claims_on
from wanlat.experiments.config.study import Study
from wanlat.experiments.manifest import beginning, machine
from wanlat.experiments.matrix_points import (
    Point,
    PointEnded,
    Progress,
    Shard,
    in_order,
    parameters_of,
    points_of,
)
from wanlat.experiments.prepare import Prepared, prepare
from wanlat.experiments.run import requested, run
from wanlat.experiments.session import CaptureWanted, Ended, Report, under
from wanlat.experiments.workers import LOOK_EVERY_S, MOST_JOBS, Jobs, Worker
from wanlat.systems.base import Binary
from wanlat.systems.engine.progress import elapsed
from wanlat.topologies.errors import DiskFull, MachineError, UserError, WanlatError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing

Lane = Callable[[], AbstractContextManager[Report]]
"""Makes what shows the progress of one thing that is done beside others."""
_RESERVED_BYTES = 2 << 20
"""Room for `points.json` of thousands of points, twice, and for the manifest."""


@dataclass(frozen=True)
class PreparedMatrix:
    """A matrix of which every point was looked at."""

    study: Study
    points: tuple[Point, ...]
    """In the order in which they are run: those of its shard."""
    seed: int
    directory: Path
    backend: BackendName | None = None
    capture: CaptureWanted | None = None
    topologies: Mapping[str, Topology] = field(default_factory=dict)
    """By what points call them, before their number of nodes is changed."""
    systems: tuple[Mapping[str, Any], ...] = ()
    """Which program each of them is."""
    shard: Shard | None = None
    """Which part of the points these are; None: all."""

    def prepare(
        self, point: Point, *, binaries: MutableMapping[str, Binary] | None = None
    ) -> Prepared:
        """Return a point ready to be run. Raises UserError or MachineError."""
        return prepare(
            point.study,
            directory=self.directory / point.directory,
            backend=self.backend,
            capture=self.capture,
            seed=point.seed(self.seed),
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
    shard: Shard | None = None,
) -> PreparedMatrix:
    """Look at everything that could be wrong with any point. Raises UserError or MachineError.

    ``topologies`` are used in place of files. Of a ``shard`` all points are looked at, and its own
    are measured.
    """
    seed = study.seed if seed is None else seed
    if shard is not None and seed is None:
        raise UserError(
            "--shard: every part must draw the same points in the same order. Give --seed N, the "
            "same for all parts."
        )
    seed = secrets.randbits(32) if seed is None else seed
    points, known = in_order(points_of(study), seed), topologies or {}
    names = dict.fromkeys(point.study.topology for point in points)
    prepared = PreparedMatrix(
        study,
        tuple(each for each in points if shard is None or shard.has(each)),
        seed,
        directory or default_directory(study.name),
        backend,
        capture,
        {name: known.get(name) or load_topology(name) for name in names},
        shard=shard,
    )
    if not prepared.points:
        raise UserError(f"--shard {shard}: there are {len(points)} points, and none is of it.")
    systems: dict[str, Mapping[str, Any]] = {}
    binaries: dict[str, Binary] = {}
    for point in points_of(study):
        try:
            (program,) = _programs(prepared.prepare(point, binaries=binaries))
        except (UserError, MachineError) as error:
            raise type(error)(f"Point {point.name} of the matrix: {error}") from error
        systems.setdefault(point.system, program)
    return replace(prepared, systems=tuple(systems.values()))


def _programs(prepared: Prepared) -> list[dict[str, Any]]:
    """Return which program each system is."""
    return [
        {"name": each.name, "version": each.binary.version, "sha256": each.binary.sha256}
        for each in prepared.subjects
    ]


@dataclass
class Unfinished:
    """The bundle of a matrix, and what its manifest says."""

    directory: Path
    manifest: dict[str, Any]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do.

        A point whose directory was removed is to be measured again.
        """
        found = read_document(self.directory, Points)
        return self.manifest["status"] == "complete" and all(
            (self.directory / each.directory).exists() for each in (found.points if found else ())
        )

    @property
    def study(self) -> Study:
        """Its study. Raises UserError where this version has no such studies."""
        try:
            return Study.model_validate(self.manifest["study"])
        except ValueError as error:
            raise UserError(
                f"--resume {self.directory}: its study is none to this version of wanlat "
                f"(it was begun by {self.manifest.get('wanlat')}): {error}"
            ) from error

    @property
    def how(self) -> dict[str, Any]:
        """How it is measured: arguments of `prepare_matrix`.

        On the topologies as they were, and with the record of packets that was wanted.
        """
        wanted = self.manifest.get("requested") or {}
        topologies = self.manifest["topologies"]
        return {
            "directory": self.directory,
            "backend": wanted.get("backend"),
            "capture": CaptureWanted(**wanted["capture"]) if wanted.get("capture") else None,
            "topologies": {name: Topology.model_validate(e) for name, e in topologies.items()},
            "seed": self.manifest["seed"],
            "shard": Shard.parse(shard) if (shard := self.manifest.get("shard")) else None,
        }

    def prepared(self) -> PreparedMatrix:
        """Return it as it was prepared then, looking at nothing again. Raises UserError."""
        study, how, shard = self.study, self.how, self.how["shard"]
        points = in_order(points_of(study), how["seed"])
        mine = tuple(each for each in points if shard is None or shard.has(each))
        return PreparedMatrix(study, mine, systems=tuple(self.manifest["systems"]), **how)

    def kept(self, systems: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what stays of its manifest where it is resumed with these programs.

        Raises UserError where one is another than before.
        """
        old, now = self.manifest, machine()
        check_same_stores(self.directory, old.get("systems", ()), systems)
        differs = listing(
            f"{name} {was}, then {now[name]}"
            for name in now
            if (was := old.get(name)) not in (None, now[name])
        )
        text = f"It was resumed under other conditions: {differs}. What is compared may differ so."
        remarks = [text] if differs and text not in old["warnings"] else []
        return {
            "warnings": [*old["warnings"], *remarks],
            "command": old["command"],
            "started": old["started"],
            "attempts": old["attempts"] + 1,
            "resumed": [*old.get("resumed", []), now_iso()],
        }


def read_unfinished(directory: Path) -> Unfinished:
    """Return a bundle to resume. Raises UserError where there is none, or not of a matrix."""
    try:
        kind = read_manifest(directory).kind
    except BundleError as error:
        raise UserError(f"--resume {directory}: {error}") from error
    if kind != "matrix":
        raise UserError(
            f"--resume {directory}: that is a bundle of kind {kind}, which is measured in one go: "
            "run it again. A study with a `matrix` is resumed point by point."
        )
    return Unfinished(directory, read_json(directory / "manifest.json"))


def check_same_stores(
    directory: Path, before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
) -> None:
    """Raise UserError when a system is another program now: points would not compare."""
    known = {each["name"]: each for each in before}
    for new in now:
        old = known.get(new["name"], new)
        if old["sha256"] != new["sha256"]:
            was, is_ = (f"{e['version']} (sha256 {e['sha256'][:12]})" for e in (old, new))
            raise UserError(
                f"{directory}: system {new['name']} is another program now: {was} before, {is_} "
                "now. The points of a matrix are compared with each other. Put the former one "
                "back, or begin a new bundle."
            )


def run_point(prepared: PreparedMatrix, point: Point, report: Report) -> PointEnded:
    """Run a point, and return how it ended. Raises KeyboardInterrupt."""
    directory = prepared.directory / point.directory
    try:
        ready = prepared.prepare(point)
        # Whoever builds a store while its matrix goes on would compare two of them.
        check_same_stores(prepared.directory, prepared.systems, _programs(ready))
        ended = run(ready, report)
    except WanlatError as error:
        is_full = isinstance(error, DiskFull) or is_nearly_full(prepared.directory)
        return PointEnded("failed", str(error), is_full)
    except Exception as error:
        # A mistake of ours: the other points are worth to be measured all the same.
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            (directory / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return PointEnded("failed", f"{type(error).__name__}: {error}")
    return PointEnded(ended.status, ended.reason, ended.is_disk_full, ended.warnings, ended.remarks)


@dataclass
class MatrixOutcome(Ended):
    """How a matrix ended."""

    points: int = 0
    complete: int = 0
    failed: int = 0
    failures: dict[str, str | None] = field(default_factory=dict)
    """Why points failed, by their names."""


def run_matrix(
    prepared: PreparedMatrix,
    report: Report,
    *,
    unfinished: Unfinished | None = None,
    jobs: int | None = 1,
    lane: Lane | None = None,
) -> MatrixOutcome:
    """Measure what is not measured yet. ``unfinished``: the matrix that is resumed.

    ``jobs`` points at once; None: as many as the processors carry (`experiments.workers`). ``lane``
    makes what shows the progress of one of them beside the others'. However it ends, `points.json`
    says how far it came. Raises UserError when the directory cannot be written, or another run is
    writing to it.
    """
    hold = take_directory(
        prepared.directory,
        f"Name a new one with --out, or resume it: --resume {prepared.directory}.",
        is_new=unfinished is None,
        reserve_bytes=_RESERVED_BYTES,
    )
    with closing(hold):
        shown: Lane = lane or (lambda: nullcontext(report))
        running = _Running(prepared, shown, hold, is_resumed=unfinished is not None)
        outcome = running.outcome
        try:
            if jobs == 1:
                for point in running.progress.left():
                    running.measure(point)
            else:
                running.measure_side_by_side(Jobs(jobs))
            running.count()
        except KeyboardInterrupt:
            outcome.status, outcome.reason = "interrupted", "interrupted by the user"
        except MachineError as error:  # there is no place to write to, and no sense in the others
            outcome.status, outcome.reason = "failed", str(error)
            outcome.is_disk_full = isinstance(error, DiskFull)
        finally:
            running.end()
        return outcome


class _Running:
    """A matrix that is being measured: its manifest, its points, and how it ends."""

    def __init__(
        self, prepared: PreparedMatrix, lane: Lane, hold: Hold, *, is_resumed: bool
    ) -> None:
        """Write down what is to be done; or read what is left to do, now that nobody changes it."""
        self._prepared, self._lane, self._hold = prepared, lane, hold
        self._directory = prepared.directory
        self._took_s: defaultdict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()
        self._at_once = 1
        self.outcome = MatrixOutcome(self._directory, points=len(prepared.points))
        self.progress = Progress(self._directory, prepared.points)
        self._manifest = _manifest(prepared)
        if is_resumed:
            self._manifest |= read_unfinished(self._directory).kept(prepared.systems)
            self.progress.read()
        for point in prepared.points:
            if not (self._directory / point.directory).exists():  # it was never begun, or removed
                point.status, point.reason = "planned", None
        self._write_manifest()
        self.progress.write()

    def measure_side_by_side(self, jobs: Jobs) -> None:
        """Run what is left, several points at once. Raises KeyboardInterrupt and DiskFull.

        What runs then is interrupted first, and has said how it ended.
        """
        left = deque(self.progress.left())
        idle: list[Worker] = []
        busy: dict[Future[None], Worker] = {}
        with ThreadPoolExecutor(MOST_JOBS) as pool:
            try:
                while left or busy:
                    self._at_once = max(1, min(jobs.allowed, len(left) + len(busy)))
                    while left and len(busy) < jobs.allowed:
                        worker = idle.pop() if idle else Worker()
                        busy[pool.submit(self.measure, left.popleft(), worker)] = worker
                    done, _ = wait(busy, LOOK_EVERY_S, FIRST_COMPLETED)
                    for each in done:
                        worker = busy.pop(each)
                        (idle if worker.is_alive else []).append(worker)
                        each.result()
                    jobs.look(len(busy))
            finally:
                for worker in busy.values():
                    worker.interrupt()
                wait(busy)
                for worker in [*idle, *busy.values()]:
                    worker.close()
                self._manifest["jobs"] = jobs.history

    def measure(self, point: Point, worker: Worker | None = None) -> None:
        """Run a point, here or by a worker, and note how it ended.

        Raises KeyboardInterrupt and DiskFull.
        """
        directory, own = self._directory / point.directory, f"{point.name}: "
        with self._lock:
            if _status(directory) == "complete":
                # The run was killed when it was through with the point, and had not said so yet.
                self.progress.ends(point, "complete")
                return
            _put_aside(directory)
            self.progress.begins(point)
            place = self._place(point)
            # What earlier attempts warned of is theirs: it may be fixed, or what it named be gone.
            warned = self._manifest["warnings"]
            self._manifest["warnings"] = [each for each in warned if not each.startswith(own)]
        began = time.monotonic()
        with self._lane() as lane:
            report = under(place, lane)
            report(point.said)
            try:
                if worker is None:
                    ended = run_point(self._prepared, point, report)
                else:
                    ended = worker.run(self._directory, point.name, report)
            except KeyboardInterrupt:
                ended = PointEnded("interrupted", "interrupted by the user")
            except MachineError as error:  # the worker died
                ended = PointEnded("failed", str(error))
        with self._lock:
            if ended.is_disk_full:
                self._hold.make_room()
            self.outcome.warnings += [f"{own}{each}" for each in ended.warnings]
            self.outcome.remarks += [f"{own}{each}" for each in ended.remarks]
            self.progress.ends(point, ended.status, ended.reason)
            if ended.status == "complete":
                self._took_s[point.system].append(time.monotonic() - began)
        if ended.is_disk_full:
            raise DiskFull(f"{point.name}: {ended.reason}")
        if ended.status == "interrupted":
            raise KeyboardInterrupt

    def _place(self, point: Point) -> str:
        """Say how far the matrix is: `point 3 of 24, about 12 min left`."""
        points = self._prepared.points
        number = next(n for n, each in enumerate(points, 1) if each is point)
        said = f"point {number} of {len(points)}"
        every = [took_s for took in self._took_s.values() for took_s in took]
        if not every:
            return said
        left = (self._took_s.get(each.system) or every for each in self.progress.left())
        return f"{said}, about {elapsed(sum(map(statistics.fmean, left)) / self._at_once)} left"

    def count(self) -> None:
        """Note how a matrix ended of which every point was run."""
        failed = self.progress.left()
        self.outcome.status = "failed" if failed else "complete"
        if failed:
            self.outcome.failures = {each.name: each.reason for each in failed}
            names = listing((each.name for each in failed), at_most=3)
            count = f"{len(failed)} of {len(self._prepared.points)}"
            self.outcome.reason = f"{count} points failed: {names}."

    def end(self) -> None:
        """Write how it ended."""
        self._hold.make_room()
        outcome, points = self.outcome, self._prepared.points
        if outcome.status == "running":
            outcome.status, outcome.reason = "failed", repr(sys.exc_info()[1])
        outcome.complete = sum(each.status == "complete" for each in points)
        outcome.failed = sum(each.status == "failed" for each in points)
        outcome.warnings = [*dict.fromkeys([*self._manifest["warnings"], *outcome.warnings])]
        changes = {key: getattr(outcome, key) for key in ("status", "reason", "warnings")}
        try:
            for point in points:
                if point.status == "running":  # it was cut short between two steps
                    self.progress.ends(point, "interrupted", outcome.reason)
            self._write_manifest(**changes, ended=now_iso())
        except MachineError as error:
            outcome.does_not_say(error)

    def _write_manifest(self, **changes: Any) -> None:
        self._manifest.update(changes)
        write_manifest(self._directory, self._manifest)


def _manifest(prepared: PreparedMatrix) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        **beginning("matrix", prepared.seed),
        "study": prepared.study.to_dict(),
        **claims_on(prepared.study.name),
        "parameters": parameters_of(points_of(prepared.study)),
        "systems": [dict(each) for each in prepared.systems],
        "topologies": {name: each.to_dict() for name, each in prepared.topologies.items()},
        "requested": requested(prepared.backend, prepared.capture),
        "attempts": 1,
        "shard": None if prepared.shard is None else str(prepared.shard),
    }


def _status(directory: Path) -> str | None:
    """Return how the bundle in a directory ended; None where there is none."""
    try:
        return str(read_json(directory / "manifest.json").get("status"))
    except BundleError:
        return None


def _put_aside(directory: Path) -> None:
    """Keep what an attempt left that did not complete beside the next one."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}.attempt-{number}")).exists():
        number += 1
    if directory.exists():
        directory.rename(aside)
