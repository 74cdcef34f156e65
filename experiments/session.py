"""One system in a lab, from its network to its end, and the bundle with what happened.

A `Recording` is the bundle of a whole run: whatever ends the run, the bundle has what. A `Session`
is one system's part of it: a lab that was found right, a cluster in it, and what its nodes use.
Studies, drills, traces and tests are all made of these two; what is done on the cluster is theirs.
"""

from __future__ import annotations

import json
import signal
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from types import FrameType
from typing import Any, Literal, Protocol

from wanlat.bundle.documents import Calibration, Status
from wanlat.bundle.write import BundleWriter, is_full, is_nearly_full
from wanlat.emulator import turns
from wanlat.emulator.backends import LateBin
from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.capture import Capture, backend_of_record
from wanlat.emulator.capture.store import CaptureStore
from wanlat.emulator.journal import Entry
from wanlat.emulator.lab import BackendName, Lab, Storage
from wanlat.experiments.calibration_gate import LONGEST_S, is_only_late, prove, what_is_off
from wanlat.experiments.manifest import tcp
from wanlat.experiments.network_error import NetworkErrors
from wanlat.systems.base import Binary, Cluster, System
from wanlat.systems.engine.options import Options
from wanlat.topologies import unforeseen
from wanlat.topologies.errors import (
    DiskFull,
    MachineError,
    MachineLate,
    RunFailed,
    UserError,
    WanlatError,
    way_out_of_machine,
)
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import in_words


class Report(Protocol):
    """Gets what is being done, how much of it is, of how much, and details."""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = "", /
    ) -> None:
        """Report it."""


def silent(*_: object) -> None:
    """Report nothing."""


def under(name: str, report: Report) -> Report:
    """Return what reports with a name before each stage."""
    return lambda stage, *more: report(f"{name}: {stage}", *more)


@dataclass(frozen=True)
class CaptureWanted:
    """That packets are recorded: at most so much in all, and so much of each."""

    limit_bytes: int
    snap_bytes: int

    def check(self, plan: Plan, backend: BackendName | None) -> None:
        """Raise UserError where a figure cannot be, or no packet would be recorded."""
        Capture(Path(), self.limit_bytes, self.snap_bytes)  # its figures, now and not later
        backend_of_record(backend)
        if not plan.wan_links:
            raise UserError(f"{plan.name} has no WAN link, so --capture has nothing to record.")

    def store(self, bundle: Path) -> CaptureStore:
        """Return where the packets of a run go, in its bundle."""
        return CaptureStore(
            bundle / "capture", bundle / "packets.parquet", self.limit_bytes, self.snap_bytes
        )


@dataclass
class Ended:
    """How something ended, and where its bundle is."""

    directory: Path
    status: Status = "running"
    reason: str | None = None
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What a reader may want to know, and need not worry about."""
    is_disk_full: bool = False
    """Whether it ended because the disk that the bundle lies on is full."""
    is_of_machine: bool = False
    """Whether a fault of this machine's own ended it: that disk, another one, a limit."""
    is_late: bool = False
    """Whether this machine was late: what was measured shows nothing, or its warnings have it."""

    def note_unwritable(self, error: Exception) -> None:
        """Note that how it ended could not be written into its bundle."""
        self.status, self.reason = "failed", self.reason or str(error)
        self.warnings.append(f"{self.directory} does not say how it ended: it cannot be written.")


@dataclass
class Outcome(Ended):
    """How a run ended."""

    measured: int = 0
    planned: int = 0
    """Samples; 0 where a run has no number of them."""
    failures: list[str] = field(default_factory=list)
    """What did not hold though the run came to its end: a link that is not again what it was."""
    reached: str | None = None
    """How far a drill got: one of `drill.runner.STAGES`."""


class Recording:
    """The bundle of a run, from its first words to its last, and the run's outcome."""

    def __init__(
        self,
        directory: Path,
        manifest: Mapping[str, Any],
        report: Report = silent,
        capture: CaptureWanted | None = None,
    ) -> None:
        """Make the bundle. Raises UserError when it cannot be written, before anything starts."""
        self.bundle = BundleWriter.create(directory, manifest)
        self.outcome = Outcome(directory)
        self.report = report
        self.captures = capture.store(directory) if capture is not None else None
        self._calibrations: list[dict[str, Any]] = []
        self._began_s = time.monotonic()

    def run(self, work: Callable[[], None]) -> Outcome:
        """Do the run's work, and write how it ended. A mistake of our own is raised again."""
        outcome = self.outcome
        try:
            work()
            outcome.status = "complete"
        except KeyboardInterrupt as interrupt:
            outcome.status, outcome.reason = "interrupted", reason_of(interrupt)
        except WanlatError as error:
            outcome.is_of_machine = way_out_of_machine(error) is not None
            self._failed(str(error), isinstance(error, DiskFull))
            outcome.is_late = isinstance(error, MachineLate) and not outcome.is_disk_full
        except BaseException as error:
            if not (isinstance(error, OSError) and is_full(error)):
                self.bundle.close("failed", unforeseen.kept(error, self.bundle.directory))
                raise
            self._failed(f"{error.filename or 'A file'} cannot be written: {error.strerror}.", True)
        with _deferring_interruptions():
            self._close()
        return outcome

    def warn(self, text: str) -> None:
        """Have a reader of the bundle know, even of a run that is killed."""
        self.outcome.warnings.append(text)
        self.bundle.write_manifest(warnings=self.outcome.warnings)

    def calibrated(self, system: str, document: dict[str, Any]) -> None:
        """Write what calibration of a system's lab found, with that of the labs before it."""
        for pair in document["pairs"]:
            pair["system"] = system
        self._calibrations.append(document)
        first, passed = self._calibrations[0], [one["verdict"] for one in self._calibrations]
        pooled = {
            **first,
            "pairs": [pair for one in self._calibrations for pair in one["pairs"]],
            "overflows": sum(one["overflows"] for one in self._calibrations),
            "verdict": "pass" if set(passed) == {"pass"} else "fail",
        }
        self.bundle.write(Calibration.model_validate(pooled))
        self.bundle.event("calibrated", system, document["verdict"])

    def _failed(self, reason: str, is_disk_full: bool) -> None:
        """Note why it failed; and where a full disk is likely to be behind it, that it is full."""
        outcome, directory = self.outcome, self.bundle.directory
        outcome.status, outcome.reason = "failed", reason
        outcome.is_disk_full = is_disk_full or is_nearly_full(directory)
        if outcome.is_disk_full:
            self.bundle.make_room()
        if outcome.is_disk_full and not is_disk_full:
            outcome.reason += f" The disk that {directory.absolute()} lies on is full."

    def _close(self) -> None:
        """Write how it ended. Where not even that can be written, the outcome has it."""
        outcome = self.outcome
        changes: dict[str, Any] = {"wall_s": round(time.monotonic() - self._began_s, 1)}
        try:
            if self.captures is not None:
                self.report("making the table of packets", 0, None)
                changes["capture"] = self.captures.finish()
                outcome.warnings += self.captures.remarks()
            if "failures" in self.bundle.manifest:
                changes["failures"] = outcome.failures
            changes["warnings"] = outcome.warnings
            self.bundle.close(outcome.status, outcome.reason, **changes)
        except (MachineError, OSError) as error:
            full = isinstance(error, OSError) and is_full(error)
            outcome.is_disk_full = full or isinstance(error, DiskFull)
            outcome.is_of_machine = way_out_of_machine(error) is not None
            outcome.note_unwritable(error)


def reason_of(interrupt: KeyboardInterrupt) -> str:
    """Return why a run was interrupted."""
    return str(interrupt) or "interrupted by the user"


@contextmanager
def _deferring_interruptions() -> Iterator[None]:
    """Let no SIGINT, SIGTERM or SIGHUP end anything meanwhile: how the run ended is written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _ignore) for number in (SIGINT, SIGTERM, SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Take no notice. (A child of a run that ignored it by SIG_IGN would inherit that.)"""


@dataclass(frozen=True, kw_only=True)
class LabSetup:
    """The lab of one system, or of none: which network, made how."""

    name: str
    """What events and messages call it: the system's name."""
    plan: Plan
    client: str
    """The node that requests are sent from."""
    seed: int
    backend: BackendName | None = None
    storage: Storage = "memory"
    splice: Literal["needed", "all"] = "needed"
    volumes: Mapping[str, int] = field(default_factory=dict)
    """Nodes that have their directory on a file system of so many bytes."""

    def make_lab(self, capture: Capture | None = None, writable: Sequence[Path] = ()) -> Lab:
        """Return its lab, which is not up yet."""
        return Lab(
            self.plan,
            backend=self.backend,
            seed=self.seed,
            storage=self.storage,
            splice=self.splice,
            capture=capture,
            volumes=self.volumes,
            writable=writable,
        )


@dataclass(frozen=True, kw_only=True)
class Setup(LabSetup):
    """One system on its network: which program, with which options, and the target nodes."""

    system: System
    options: Options
    binary: Binary
    targets: tuple[str, ...]
    """The nodes that requests are sent to."""

    @property
    def program(self) -> dict[str, Any]:
        """Which program it is, as a manifest has it: with all that decides what runs."""
        return self.system.recorded(self.options, self.binary)

    @property
    def of_samples(self) -> dict[str, Any]:
        """What every sample has of the system and its network."""
        return {"system": self.name, "version": self.binary.version, "topology": self.plan.name}


class Session:
    """One system's lab and cluster. Its methods are called in their order, each at most once."""

    def __init__(self, recording: Recording, setup: LabSetup) -> None:
        self.setup = setup
        self.recording = recording
        self.bundle = recording.bundle
        self.outcome = recording.outcome
        self.progress = under(setup.name, recording.report)
        self._turn: turns.Turn | None = None

    def warn(self, text: str) -> None:
        """Have a reader of the bundle know of something about this system."""
        self.recording.warn(f"{self.setup.name}: {text}")

    @contextmanager
    def lab(self, *, is_proved: bool = True) -> Iterator[Lab]:
        """Build the lab, and note what becomes of it. Raises MachineError.

        In turn with other labs of this machine until it is calibrated; ``is_proved``: whether it
        will be.
        """
        setup, captures = self.setup, self.recording.captures
        if is_proved:
            self._turn = turns.take(
                lambda: self.progress("waiting for other labs to be calibrated")
            )
            if self._turn.remark:
                self.bundle.event("turn", setup.name, self._turn.remark)
        self.progress("building the lab")
        capture = captures.prepare(setup.name) if captures else None
        self.bundle.records.mkdir(exist_ok=True)
        lab = setup.make_lab(capture, [self.bundle.records.absolute()])
        try:
            with lab, lab.lateness.watched(self._note_late):
                self.bundle.event("lab up", setup.name, lab.backend)
                foreign = [f"{path} is not of a lab, and stays." for path in lab.foreign_files]
                self.outcome.remarks += [
                    text for text in foreign if text not in self.outcome.remarks
                ]
                lab.journal.listen(self._note_change)
                self.bundle.write_manifest(backend=lab.backend, tcp=tcp(lab, setup.client))
                yield lab
        finally:
            self._end_turn()
            with suppress(OSError):  # a load that was cut short has left some
                self.bundle.records.rmdir()
            if captures and capture:
                captures.note(setup.name, lab.capture)
        self.bundle.event("lab down", setup.name)

    def calibrate(
        self,
        lab: Lab,
        tolerance: Tolerance,
        *,
        longest_s: float = LONGEST_S,
        may_tolerate: bool = False,
    ) -> None:
        """Measure the lab's delays. Raises RunFailed where they are not what was requested."""
        document = prove(lab, self.progress, tolerance, longest_s=longest_s)
        self._end_turn()
        if document is None:
            return
        self.recording.calibrated(self.setup.name, document)
        if document["verdict"] != "pass":
            error = MachineLate if is_only_late(document) else RunFailed
            raise error(what_is_off(document, self.setup.plan.name, may_tolerate=may_tolerate))

    def network_errors(self, lab: Lab, allowed_ms: float) -> NetworkErrors:
        """Return what knows how late a lab's network was during a request."""
        errors = NetworkErrors(lab.lateness, allowed_ms)
        if lab.lateness.update():
            self.bundle.write_manifest(max_network_error_ms=errors.allowed_ms)
        return errors

    def start(
        self,
        lab: Lab,
        setup: Setup,
        ready_s: float,
        before: Callable[[Cluster], object] = lambda _: None,
    ) -> Cluster:
        """Start the cluster. Arguments and what it raises are those of `System.start`."""
        cluster = setup.system.start(
            lab,
            setup.options,
            self.bundle.logs.absolute(),
            ready_s,
            self.progress,
            binary=setup.binary,
            targets=setup.targets,
            before=before,
            on_event=lambda kind, node, facts: self.bundle.event(
                kind, node, json.dumps({"system": setup.name, **facts})
            ),
        )
        self.bundle.event("ready", setup.name)
        sites = setup.system.indispensable_sites(setup.plan, setup.options)
        self.outcome.remarks += [f"{remark}." for remark in sites]
        self._note_settings(cluster)
        return cluster

    def _note_settings(self, cluster: Cluster) -> None:
        """Write which settings the running servers have, and warn of what was not meant."""
        settings = cluster.read_settings()
        if settings:
            known = self.bundle.manifest.get("settings", {})
            mine = [setting.as_recorded() for setting in settings]
            self.bundle.write_manifest(settings={**known, self.setup.name: mine})
        for setting in settings:
            if not setting.is_as_expected:
                self.warn(f"{setting}.")

    def note_overflows(self, lab: Lab, expected: Collection[object] = ()) -> None:
        """Warn of packets that the emulation dropped that was not requested.

        ``expected``: directions that a fault made drop packets.
        """
        for direction, counters in lab.counters().items():
            if counters.overflows and direction not in expected:
                self.warn(
                    f"{counters.overflows} packets were dropped on {direction} because a queue of "
                    "the emulation was full; samples of this run may be slower than the network "
                    "that was requested."
                )
                self.bundle.event("overflow", str(direction), str(counters.overflows))

    def note_state(self, cluster: Cluster) -> None:
        """Warn of what the cluster reports of its own state, once all requests are done."""
        try:
            remarks = cluster.remarks()
        except (WanlatError, OSError) as error:
            remarks = [f"what state it was in afterwards is not known: {in_words(error)}"]
        for remark in remarks:
            self.warn(remark)

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()

    def _note_late(self, late: LateBin) -> None:
        ends = {} if late.direction is None else vars(late.direction)
        self.bundle.late_bin(
            {
                **{name: getattr(late, name) for name in ("start_ns", "n", "max_ns", "sum_ns")},
                **{"from": ends.get("source"), "to": ends.get("target")},
            }
        )

    def _note_change(self, entry: Entry) -> None:
        line = entry.to_dict()
        detail = json.dumps({key: line[key] for key in ("before", "after", "origin")})
        self.bundle.event("impairment", str(entry.direction), detail, entry.t_ns)


def system_entry(setup: Setup, api: str) -> dict[str, Any]:
    """Return what a manifest has of a system: which program, and which options are in effect."""
    binary = setup.binary
    entry: dict[str, Any] = {
        **setup.program,
        "label": binary.label,
        "api": api,
        "objects": setup.system.objects(setup.options).names,
        "options": setup.system.effective(setup.plan, setup.options),
    }
    if timeouts := setup.system.timeouts(setup.options):
        entry["timeouts"] = timeouts
    if remarks := setup.system.indispensable_sites(setup.plan, setup.options):
        entry["remarks"] = remarks
    if roles := setup.system.roles(setup.plan, setup.options):
        entry["roles"] = {role: list(nodes) for role, nodes in roles.items()}
    return entry


def requested_rtt_ms(plan: Plan, target: str) -> float:
    """Return the RTT that a sample was requested to see: the median from the target node to the
    nodes of other sites, or to its neighbours where there is one site only; 0 for one node.
    """
    here = plan.node(target).site
    distant = [node.name for node in plan.nodes if node.site != here]
    others = distant or [node.name for node in plan.nodes if node.name != target]
    return statistics.median(plan.rtt_ms(target, other) for other in others) if others else 0.0
