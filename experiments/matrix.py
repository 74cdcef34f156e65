"""Runs a matrix: point after point, each an ordinary bundle of one system, and none of them twice.

A point that fails does not end the matrix: the others are measured, and `--resume` tries it again.
One at which this machine was too late to learn anything is started again after the others.
Ctrl-C and a full disk of the machine do end it. Shards, measured apart (on other machines, at other
times), are made one bundle again.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanlat.bundle import beneath
from wanlat.bundle.documents import Manifest, Points
from wanlat.bundle.errors import BundleError
from wanlat.bundle.identity import in_words, unlike
from wanlat.bundle.read import ASIDE, read_document, read_json, read_manifest
from wanlat.bundle.write import (
    Hold,
    now_iso,
    take_directory,
    write_document,
    write_manifest,
)
from wanlat.experiments.manifest import machine
from wanlat.experiments.matrix_points import (
    AnyPoint,
    PointEnded,
    PreparedPoints,
    Progress,
    run_point,
)
from wanlat.experiments.resume import (
    BATCHES,
    Unfinished,
    as_written,
    read_unfinished,
    unfinished_of,
)
from wanlat.experiments.session import Ended, Report, reason_of, under
from wanlat.experiments.workers import ADJUST_INTERVAL_S, Engine, Jobs, Runner
from wanlat.systems.engine.progress import elapsed
from wanlat.topologies import unforeseen
from wanlat.topologies.errors import DiskFull, MachineError, UserError, way_out_of_machine
from wanlat.topologies.wording import listing

Lane = Callable[[], AbstractContextManager[Report]]
"""Makes what shows the progress of one thing that is done beside others."""
_PUT_OFF_AT_MOST = 2
"""Times that a run begins a point again because this machine was late."""
_RESERVED_BYTES = 2 << 20
"""Room for `points.json` of thousands of points, twice, and for the manifest."""


@dataclass
class MatrixOutcome(Ended):
    """How a matrix ended."""

    points: int = 0
    complete: int = 0
    failed: int = 0
    failures: dict[str, str | None] = field(default_factory=dict)
    """Why points failed, by their names."""


def run_matrix(
    prepared: PreparedPoints,
    report: Report,
    *,
    unfinished: Unfinished | None = None,
    jobs: int | None = 1,
    engine: Engine | None = None,
    lane: Lane | None = None,
) -> MatrixOutcome:
    """Measure what is not measured yet. ``unfinished``: the matrix that is resumed.

    ``jobs`` points at once; None: as many as the machine carries (`experiments.workers`); or as
    many as an ``engine`` allows, and where it does. ``report`` gets how far the whole is; ``lane``
    makes what shows the progress of one point beside the others'. However it ends, `points.json`
    has how far it came. Raises UserError when the directory cannot be written, or another run is
    writing to it.
    """
    hold = take_directory(
        prepared.directory,
        f"Name a new one with --out, or resume it: --resume {prepared.directory}.",
        is_new=unfinished is None,
        reserve_bytes=_RESERVED_BYTES,
    )
    with closing(hold):
        if unfinished is not None:
            beneath.refuse_links(prepared.directory)
        shown: Lane = lane or (lambda: nullcontext(report))
        running = _Running(prepared, report, shown, hold, is_resumed=unfinished is not None)
        outcome = running.outcome
        try:
            if jobs == 1 and engine is None:
                while running.left:
                    running.measure(running.left.popleft())
            else:
                running.measure_side_by_side(engine or Jobs(jobs))
            running.count()
        except KeyboardInterrupt as interrupt:
            outcome.status, outcome.reason = "interrupted", reason_of(interrupt)
        except MachineError as error:  # there is no place to write to, and no sense in the others
            outcome.status, outcome.reason = "failed", str(error)
            outcome.is_disk_full = isinstance(error, DiskFull)
            outcome.is_of_machine = way_out_of_machine(error) is not None
        finally:
            running.end()
        return outcome


class _Running:
    """A matrix that is being measured: its manifest, its points, and how it ends."""

    def __init__(
        self,
        prepared: PreparedPoints,
        report: Report,
        lane: Lane,
        hold: Hold,
        *,
        is_resumed: bool,
    ) -> None:
        """Write down what is to be done; or read what is left, now that no other run changes it."""
        self._prepared, self._report, self._lane, self._hold = prepared, report, lane, hold
        self._directory = prepared.directory
        self._took_s: defaultdict[str, list[float]] = defaultdict(list)
        self._began_s = time.monotonic()
        self._running: dict[str, float] = {}
        """When points began that run, by their names."""
        self._ahead: list[AnyPoint] = []
        """Those that this run has not ended yet."""
        self._lock = threading.Lock()
        self._at_once = 1
        self.outcome = MatrixOutcome(self._directory, points=len(prepared.selected))
        self.progress = Progress(self._directory, prepared.selected)
        self._manifest = prepared.manifest
        if is_resumed:
            self._manifest |= read_unfinished(self._directory, is_trusted=True).kept(
                prepared.systems
            )
            self.progress.read()
        for point in prepared.selected:
            if not (self._directory / point.directory).exists():  # it was never begun, or removed
                point.status, point.reason = "planned", None
        self._ahead = self.progress.left()
        self.left = deque(self._ahead)
        """Those that are to be started, in this order; `measure` adds to it what it puts off."""
        self._put_off: Counter[str] = Counter()
        self._write_manifest()
        self.progress.write()
        for document in prepared.besides:
            write_document(self._directory, document)

    def measure_side_by_side(self, engine: Engine) -> None:
        """Run what is left, several points at once. Raises KeyboardInterrupt and MachineError.

        What runs then is interrupted first, and has reported how it ended.
        """
        idle: list[Runner] = []
        busy: dict[Future[None], Runner] = {}
        with ThreadPoolExecutor(engine.most) as pool:
            try:
                while self.left or busy:
                    if engine.adjust(self._allowed_ms()):
                        self._report_progress()
                    self._at_once = max(1, min(engine.allowed, len(self.left) + len(busy)))
                    while self.left and len(busy) < engine.allowed:
                        worker = idle.pop() if idle else engine.runner()
                        busy[pool.submit(self.measure, self.left.popleft(), worker)] = worker
                    done, _ = wait(busy, ADJUST_INTERVAL_S, FIRST_COMPLETED)
                    for future in done:
                        worker = busy.pop(future)
                        (idle if worker.is_alive else []).append(worker)
                        future.result()
            finally:
                for worker in busy.values():
                    worker.interrupt()
                wait(busy)
                for worker in [*idle, *busy.values()]:
                    worker.close()
                self._manifest["jobs"] = [*engine.history]

    def measure(self, point: AnyPoint, worker: Runner | None = None) -> None:
        """Run a point, here or by a worker, and note how it ended.

        Raises KeyboardInterrupt and DiskFull.
        """
        directory, own = self._directory / point.directory, f"{point.name}: "
        with self._lock:
            if _status(directory) == "complete":
                # The run was killed when it was through with the point, and had not said so yet.
                self.progress.ends(point, "complete")
                self._ahead.remove(point)
                return
            _put_aside(directory)
            self.progress.begins(point)
            began_s = self._running[point.name] = time.monotonic()
            self._report_progress()
            # What earlier attempts warned of is theirs: it may be fixed, or what it named be gone.
            warned = self._manifest["warnings"]
            self._manifest["warnings"] = [
                warning for warning in warned if not warning.startswith(own)
            ]
        with self._lane() as lane:
            report = under(point.label, lane) if point.label else lane
            report(point.system)
            try:
                if worker is None:
                    ended = run_point(self._prepared, point, report)
                else:
                    ended = worker.run(self._directory, point.name, report)
            except KeyboardInterrupt as interrupt:
                ended = PointEnded("interrupted", reason_of(interrupt))
            except MachineError as error:  # the worker died
                ended = PointEnded("failed", str(error))
        with self._lock:
            if ended.is_disk_full:
                self._hold.make_room()
            del self._running[point.name]
            if ended.is_late and self._put_off[point.name] < _PUT_OFF_AT_MOST:
                self._put_off[point.name] += 1
                self.left.append(point)
                why = ended.reason or "This machine was too busy to send its requests in time."
                _put_aside(directory)  # it may say that it is complete
                self.progress.ends(point, "planned", why)
                self.outcome.remarks.append(f"{own}begun again after the others. {why}")
            else:
                self.progress.ends(point, ended.status, ended.reason)
                self._ahead.remove(point)
                self.outcome.warnings += [f"{own}{warning}" for warning in ended.warnings]
                self.outcome.remarks += [f"{own}{remark}" for remark in ended.remarks]
            if ended.status == "complete":
                self._took_s[point.system].append(time.monotonic() - began_s)
            self._report_progress()
        if ended.is_disk_full:
            raise DiskFull(f"{point.name}: {ended.reason}")
        if ended.status == "interrupted":
            raise KeyboardInterrupt(ended.reason)

    def _report_progress(self) -> None:
        """Report how far the whole is: of how many points, how many run, and how long it takes."""
        total, ahead, left_s = len(self._prepared.selected), len(self._ahead), self._left_s()
        detail = f"{len(self._running)} running"
        if left_s is not None and left_s >= 1:  # else it takes longer than those before
            detail += f", about {elapsed(left_s)} left"
        self._report(f"{total} point{'' if total == 1 else 's'}", total - ahead, total, detail)

    def _left_s(self) -> float | None:
        """Judge how long the rest takes: by what is known of points, else by those before."""
        now_s, each_s = time.monotonic(), list[float]()
        every = [took_s for took in self._took_s.values() for took_s in took]
        of_any_s = statistics.fmean(every) if every else None
        of_system_s = {name: statistics.fmean(took) for name, took in self._took_s.items()}
        for point in tuple(self._ahead):
            expected_s = point.expected_s or of_system_s.get(point.system, of_any_s)
            if expected_s is None:
                return None
            ran_s = now_s - self._running.get(point.name, now_s)
            each_s.append(max(0.0, expected_s - ran_s))
        return max(sum(each_s) / self._at_once, *each_s, 0.0)

    def _allowed_ms(self) -> dict[Path, float]:
        """Return where the points lie that run, and what the network of each may be late by."""
        return {
            self._directory / point.directory: point.max_network_error_ms
            for point in self._prepared.selected
            if point.name in self._running
        }

    def count(self) -> None:
        """Note how a matrix ended of which every point was run."""
        failed = self.progress.left()
        self.outcome.status = "failed" if failed else "complete"
        if failed:
            self.outcome.failures = {point.name: point.reason for point in failed}
            names = listing((point.name for point in failed), at_most=3)
            count = f"{len(failed)} of {len(self._prepared.selected)}"
            self.outcome.reason = f"{count} points failed: {names}."

    def end(self) -> None:
        """Write how it ended."""
        self._hold.make_room()
        outcome, points = self.outcome, self._prepared.selected
        if outcome.status == "running":
            error = sys.exc_info()[1]
            assert error is not None
            outcome.status = "failed"
            outcome.reason = unforeseen.kept(error, self._directory)
        outcome.complete = sum(point.status == "complete" for point in points)
        outcome.failed = sum(point.status == "failed" for point in points)
        outcome.warnings = [*dict.fromkeys([*self._manifest["warnings"], *outcome.warnings])]
        changes = {key: getattr(outcome, key) for key in ("status", "reason", "warnings")}
        if self._manifest["attempts"] == 1:  # how long one took that was killed nobody knows
            changes["wall_s"] = round(time.monotonic() - self._began_s, 1)
        try:
            for point in points:
                if point.status == "running":  # it was cut short between two steps
                    self.progress.ends(point, "interrupted", outcome.reason)
            self._write_manifest(**changes, ended=now_iso())
        except MachineError as error:
            outcome.note_unwritable(error)

    def _write_manifest(self, **changes: Any) -> None:
        self._manifest.update(changes)
        write_manifest(self._directory, self._manifest)


def _status(directory: Path) -> str | None:
    """Return how the bundle in a directory ended; None where there is none."""
    try:
        return str(read_json(directory / "manifest.json").get("status"))
    except BundleError:
        return None


def _put_aside(directory: Path) -> None:
    """Keep what an attempt left that did not complete beside the next one."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}{ASIDE}{number}")).exists():
        number += 1
    if directory.exists():
        directory.rename(aside)


_ALIKE = ("study", "drills", "seed", "topologies", "parameters", "requested", "wanlat")
"""What points must have in common to be compared: each a key of the manifest."""
_PROGRAMS = ("systems", "instruments")
"""Likewise, and compared part by part."""
_OF_RUN = ("started", "ended", "status", "reason", "command", "shard", "warnings", "wall_s")


def merge(parts: Sequence[Path], directory: Path) -> Path:
    """Make one bundle of the bundles of shards; return it.

    A complete point is taken from whichever part has it. What no part completed is left to
    `wanlat run --resume`. Raises UserError where the parts are not of one study, or two of them
    measured the same point.
    """
    for part in parts:
        beneath.refuse_links(part)
    manifests = {part: _manifest_of_part(part) for part in parts}
    first = next(iter(manifests))
    for part, manifest in manifests.items():
        _check_alike(first, manifests[first], part, manifest)
    points = unfinished_of(directory, manifests[first]).prepared().points
    complete = _complete(parts)
    hold = take_directory(directory, "Name a new one with --out.")
    with closing(hold):
        for point in points:
            if point.name in complete:
                part, entry = complete[point.name]
                shutil.copytree(part / entry.directory, directory / point.directory, symlinks=True)
                for key in ("status", "reason", "began", "ended", "attempts"):
                    setattr(point, key, getattr(entry, key))
        Progress(directory, points).write()
        write_manifest(directory, _merged([*manifests.values()], points))
    return directory


def _manifest_of_part(part: Path) -> Manifest:
    try:
        manifest = read_manifest(part)
    except BundleError as error:
        raise UserError(str(error)) from error
    if manifest.kind not in BATCHES:
        raise UserError(
            f"{part} is a bundle of kind {manifest.kind}; merged are matrices, or shards."
        )
    return manifest


def _check_alike(first: Path, one: Manifest, part: Path, other: Manifest) -> None:
    """Raise UserError where two parts are not of one study, measured by the same programs."""
    differs = [key for key in _ALIKE if getattr(one, key) != getattr(other, key)]
    if differs:
        hint = " Give all shards the same --seed." if "seed" in differs else ""
        raise UserError(
            f"{first} and {part} are not of one run: they differ in {listing(differs)}.{hint}"
        )
    for key in _PROGRAMS:
        if programs := unlike(getattr(one, key), getattr(other, key)):
            raise UserError(
                f"{first} and {part} were not measured by the same programs: {in_words(programs)}. "
                "Measure one of them again with the other's."
            )


def _complete(parts: Sequence[Path]) -> dict[str, tuple[Path, Any]]:
    """Return the complete points of all parts by name, each with where it lies."""
    complete: dict[str, tuple[Path, Any]] = {}
    for part in parts:
        try:
            document = read_document(part, Points)
        except BundleError as error:
            raise UserError(str(error)) from error
        for entry in document.points if document else ():
            if entry.status != "complete":
                continue
            if not (part / entry.directory / "manifest.json").is_file():
                raise UserError(
                    f"{part} lacks {entry.directory}, of complete point {entry.name}: it was "
                    "removed. Merge bundles as `wanlat run` left them."
                )
            if entry.name in complete:
                raise UserError(
                    f"Point {entry.name} was measured in {complete[entry.name][0]} and in {part}. "
                    "Leave one of them out, or remove the point's directory from it."
                )
            complete[entry.name] = (part, entry)
    return complete


def _merged(manifests: Sequence[Manifest], points: Sequence[AnyPoint]) -> dict[str, Any]:
    """Return the manifest of the whole: what the parts have in common, and where each was made."""
    parts = as_written(manifests)
    missing = [point.name for point in points if point.status != "complete"]
    reason = f"No part has {len(missing)} of {len(points)} points: {listing(missing, at_most=3)}."
    warnings = dict.fromkeys(warning for part in manifests for warning in part.warnings)
    kept = ("shard", "started", "ended", *machine())
    return {key: value for key, value in parts[0].items() if key not in _OF_RUN} | {
        "status": "failed" if missing else "complete",
        "reason": reason if missing else None,
        "shard": None,
        "warnings": list(warnings),
        "command": parts[0]["command"],
        "started": min(part["started"] for part in parts),
        "ended": now_iso(),
        "parts": [{key: part.get(key) for key in kept} for part in parts],
    }
