"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle."""

from __future__ import annotations

import json
import secrets
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emulator.binaries import binary
from emulator.capture import Capture
from emulator.capture.store import CaptureStore
from emulator.journal import Entry
from emulator.lab import BackendName, Lab
from experiments import machine_facts
from experiments.asked import BUCKET, Asked, ask
from experiments.bundle import BundleWriter, default_directory, now_iso
from experiments.missing import Missing
from experiments.proof import prove, what_is_off
from experiments.study import Study, place
from probes.oneshot import run_plan
from probes.plan import Header, Request
from probes.plan import Plan as RequestPlan
from probes.records import Sample
from systems import registry
from systems.base import Binary, Cluster, System
from systems.options import Options
from topologies.errors import RunFailed, UserError, WanlatError
from topologies.load import load as load_topology
from topologies.model import Topology
from topologies.resolve import Plan, resolve

Report = Callable[[str, float, float | None], None]


@dataclass(frozen=True)
class Subject:
    """A system that is to be measured, checked before anything slow starts."""

    system: System[Any]
    options: Options
    binary: Binary
    asked: Asked


@dataclass(frozen=True)
class CaptureWanted:
    """That packets are recorded: at most so much in all, and so much of each."""

    limit_bytes: int
    snap_bytes: int

    def store(self, bundle: Path) -> CaptureStore:
        """Return where the packets of a run go, in its bundle."""
        return CaptureStore(
            bundle / "capture", bundle / "packets.parquet", self.limit_bytes, self.snap_bytes
        )


@dataclass(frozen=True)
class Prepared:
    """A study with everything that could be wrong about it looked at."""

    study: Study
    topology: Topology
    plan: Plan
    subjects: tuple[Subject, ...]
    client: str
    target: str
    seed: int
    backend: BackendName | None
    directory: Path
    capture: CaptureWanted | None = None


@dataclass
class Outcome:
    """How a run ended, and where its bundle is."""

    directory: Path
    status: str = "running"  # complete | interrupted | failed
    reason: str | None = None
    measured: int = 0
    planned: int = 0
    warnings: list[str] = field(default_factory=list)


def prepare(
    study: Study,
    *,
    directory: Path | None = None,
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
) -> Prepared:
    """Check everything that the user could have got wrong, and that the machine must have.

    Raises UserError or MachineError; nothing has been started or written then.
    """
    topology = load_topology(study.topology)
    plan = resolve(topology)
    systems = [registry.get(name) for name in study.systems]
    for name in study.options:
        if name not in study.systems:
            registry.get(name)  # an unknown name is the likelier mistake: say which exist
    sites = {node.name: node.site for node in plan.nodes}
    client = place(sites, study.client, "client")
    target = place(sites, study.target, "target") if study.target else client
    seed = secrets.randbits(32) if study.seed is None else study.seed
    chosen = [(each, each.parse_options(study.options.get(each.name))) for each in systems]
    for system, options in chosen:
        system.check_topology(plan, options)
        system.check_machine(plan, study.storage)
    asked = [
        ask(
            study,
            system.name,
            system.api(options),
            target=target,
            replicas=system.replicas(plan, options),
            seed=seed,
        )
        for system, options in chosen
    ]
    subjects = [
        Subject(system, options, system.binary_for(options), its)
        for (system, options), its in zip(chosen, asked, strict=True)
    ]
    binary("oneshot")
    if capture is not None:
        Capture(Path(), capture.limit_bytes, capture.snap_bytes)  # its figures, now and not later
        if not plan.wan_links:
            raise UserError(f"{plan.name} has no WAN link, so --capture has nothing to record.")
    return Prepared(
        study=study,
        topology=topology,
        plan=plan,
        subjects=tuple(subjects),
        client=client,
        target=target,
        seed=seed,
        backend=backend,
        directory=directory or default_directory(study.name),
        capture=capture,
    )


def run(prepared: Prepared, report: Report) -> Outcome:
    """Measure every system of a study and write the bundle.

    However it ends, the bundle holds the samples taken so far and says how it ended. Raises
    UserError when the bundle's directory cannot be written (before anything slow starts).
    """
    bundle = BundleWriter.create(prepared.directory, _manifest(prepared))
    planned = sum(subject.asked.measured() for subject in prepared.subjects)
    outcome = Outcome(prepared.directory, planned=planned)
    calibrations: list[dict[str, Any]] = []
    wanted = prepared.capture
    captures = wanted.store(prepared.directory) if wanted is not None else None
    try:
        for subject in prepared.subjects:
            _Run(prepared, subject, bundle, outcome, calibrations, captures, report).measure()
        outcome.status = "complete"
    except KeyboardInterrupt:
        outcome.status, outcome.reason = "interrupted", "interrupted by the user"
    except WanlatError as error:
        outcome.status, outcome.reason = "failed", str(error)
    except BaseException as error:
        bundle.close("failed", f"{type(error).__name__}: {error}")
        raise
    if captures is not None:
        report("making the table of packets", 0, None)
        bundle.write_manifest(capture=captures.finish())
        outcome.warnings += captures.remarks()
    bundle.write_manifest(warnings=outcome.warnings)
    bundle.close(outcome.status, outcome.reason)
    return outcome


def _manifest(prepared: Prepared) -> dict[str, Any]:
    site = {node.name: node.site for node in prepared.plan.nodes}
    return {
        "kind": "study",
        "status": "running",
        "reason": None,
        "warnings": [],
        "study": prepared.study.to_dict(),
        "topology": prepared.topology.to_dict(),
        "seed": prepared.seed,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": now_iso(),
        "ended": None,
        **machine_facts.collect(),
        "backend": None,
        "storage": prepared.study.storage,
        "client": {"node": prepared.client, "site": site[prepared.client]},
        "target": {"node": prepared.target, "site": site[prepared.target]},
        "systems": [
            {
                "name": subject.system.name,
                "version": subject.binary.version,
                "label": subject.binary.label,
                "sha256": subject.binary.sha256,
                "api": subject.asked.api,
                "endpoints": subject.asked.names,
                "options": subject.system.effective(prepared.plan, subject.options),
            }
            for subject in prepared.subjects
        ],
        "tcp": None,
    }


def requested_rtt_ms(plan: Plan, target: str) -> float:
    """Return the RTT that a sample was requested to see: the median from the node that is asked
    to the nodes of other sites, or to its neighbours where there is one site only; 0 for one node.
    """
    here = plan.node(target).site
    distant = [node.name for node in plan.nodes if node.site != here]
    others = distant or [node.name for node in plan.nodes if node.name != target]
    return statistics.median(plan.rtt_ms(target, other) for other in others) if others else 0.0


@dataclass
class _Run:
    """One system's part of a study."""

    prepared: Prepared
    subject: Subject
    bundle: BundleWriter
    outcome: Outcome
    calibrations: list[dict[str, Any]]
    captures: CaptureStore | None
    report: Report

    @property
    def _name(self) -> str:
        return self.subject.system.name

    def _tell(self, stage: str, done: float = 0, total: float | None = None) -> None:
        self.report(f"{self._name}: {stage}", done, total)

    def measure(self) -> None:
        """Build the lab, prove it right, start the cluster, take the samples."""
        study = self.prepared.study
        self._tell("building the lab")
        capture = self.captures.prepare(self._name) if self.captures else None
        lab = Lab(
            self.prepared.plan,
            backend=self.prepared.backend,
            seed=self.prepared.seed,
            storage=study.storage,
            capture=capture,
        )
        try:
            self._measure_in(lab)
        finally:
            if self.captures and capture:
                self.captures.note(self._name, lab.capture)
        self.bundle.event("lab down", self._name)

    def _measure_in(self, lab: Lab) -> None:
        with lab:
            self.bundle.event("lab up", self._name, lab.backend)
            lab.journal.listen(self._note_change)
            self.bundle.write_manifest(
                backend=lab.backend, tcp=machine_facts.tcp(lab, self.prepared.client)
            )
            self._calibrate(lab)
            cluster = self._start(lab)
            self.bundle.event("ready", self._name)
            self._probe(lab, cluster)
            self._check_emulation(lab)

    def _note_change(self, entry: Entry) -> None:
        line = entry.to_dict()
        detail = json.dumps({key: line[key] for key in ("before", "after", "origin")})
        self.bundle.event("impairment", str(entry.direction), detail, entry.t_ns)

    def _calibrate(self, lab: Lab) -> None:
        document = prove(lab, self._tell)
        if document is None:
            return
        for pair in document["pairs"]:
            pair["system"] = self._name
        self.calibrations.append(document)
        self.bundle.write_json("calibration.json", _pooled(self.calibrations))
        self.bundle.event("calibrated", self._name, document["verdict"])
        if document["verdict"] != "pass":
            raise RunFailed(what_is_off(document, self.prepared.plan.name))

    def _start(self, lab: Lab) -> Cluster:
        study = self.prepared.study
        cluster = self.subject.system.start(
            lab,
            self.subject.options,
            self.bundle.logs.absolute(),
            study.ready_timeout.ns / 1e9,
            self._tell,
            binary=self.subject.binary,
        )
        for process in cluster.processes.values():
            # A study measures whole clusters: with a node gone there is nothing left to measure.
            process.when_ended(lambda gone: lab.abort(f"{gone.name} ended."))
        return cluster

    def _probe(self, lab: Lab, cluster: Cluster) -> None:
        asked = self.subject.asked
        requests = asked.plan()
        if asked.api == "s3":
            cluster.create_bucket(BUCKET)

        def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Any:
            return lab.spawn(self.prepared.client, argv, stdin=stdin, stdout=stdout, stderr=stderr)

        missing = Missing()
        try:
            self._send(spawn, asked.header(cluster), requests, cluster, missing)
        finally:
            self._remark(cluster, missing)

    def _remark(self, cluster: Cluster, missing: Missing) -> None:
        """Tell, however the requests ended, what a reader of the samples must know."""
        remarks = missing.remarks()
        try:
            remarks += cluster.remarks()
        except (WanlatError, OSError) as error:
            remarks.append(f"what state it was in afterwards is not known: {error}")
        self.outcome.warnings += [f"{self._name}: {remark}" for remark in remarks]

    def _send(
        self,
        spawn: Callable[[list[str], int, int, int], Any],
        header: Header,
        requests: RequestPlan,
        cluster: Cluster,
        missing: Missing,
    ) -> None:
        constant: Mapping[str, Any] = {
            "system": self._name,
            "version": self.subject.binary.version,
            "topology": self.prepared.plan.name,
            "client": self.prepared.client,
            "rtt_ms": requested_rtt_ms(self.prepared.plan, self.prepared.target),
        }
        stages = {"prepare": "preparing objects", "warmup": "warming up", "measure": "measuring"}
        totals = {
            "prepare": len(requests.prepare),
            "warmup": len(requests.warmup),
            "measure": len(requests.measure),
        }
        done = dict.fromkeys(totals, 0)

        def on_sample(request: Request, sample: Sample) -> None:
            done[sample.phase] += 1
            self._tell(stages[sample.phase], done[sample.phase], totals[sample.phase])
            if sample.phase != "prepare":
                self.bundle.sample({**asdict(sample), **constant, "placement": request.placement})
                if missing.look_at(request, sample):
                    self.bundle.event("not found", self._name, str(request.key))
            if sample.phase == "measure":
                self.outcome.measured += 1
            if sample.outcome != "ok":
                cluster.check()

        self._tell(stages["prepare"], 0, totals["prepare"])
        run_plan(spawn, header, requests, on_sample)
        cluster.check()

    def _check_emulation(self, lab: Lab) -> None:
        """Tell of packets that the emulation dropped though nobody asked for it."""
        for direction, counters in lab.counters().items():
            if counters.overflows:
                text = (
                    f"{self._name}: {counters.overflows} packets were dropped on {direction} "
                    "because a queue of the emulation was full; samples of this run may be slower "
                    "than the network that was asked for."
                )
                self.outcome.warnings.append(text)
                self.bundle.event("overflow", str(direction), str(counters.overflows))


def _pooled(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one calibration document of all labs of a run; pairs say which system's lab."""
    first = documents[0]
    passed = all(document["verdict"] == "pass" for document in documents)
    return {
        **first,
        "pairs": [pair for document in documents for pair in document["pairs"]],
        "overflows": sum(document["overflows"] for document in documents),
        "verdict": "pass" if passed else "fail",
    }


def check_study_options(study: Study, changes: Mapping[str, Any]) -> Study:
    """Return the study with the command line's changes. Raises UserError."""
    given = {key: value for key, value in changes.items() if value is not None}
    try:
        return Study.model_validate(study.model_dump() | given)
    except ValueError as error:
        text = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'study'}: {one['msg']}"
            for one in getattr(error, "errors", list)()
        )
        raise UserError(f"study {study.name} with these options: {text or error}") from None
