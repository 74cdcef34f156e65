"""One system's part of a study: its lab, its cluster, its samples.

``SystemRun`` takes the samples of a study of one network. ``experiments.visits.run`` has the one
that visits several.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from wanlat.bundle.write import BundleWriter
from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.capture.store import CaptureStore
from wanlat.emulator.journal import Entry
from wanlat.emulator.lab import Lab
from wanlat.experiments import machine_facts
from wanlat.experiments.budget import Planned, budget_remark, to_manifest
from wanlat.experiments.missing import Missing
from wanlat.experiments.prefill.kept import Kept
from wanlat.experiments.prefill.model import BUCKET
from wanlat.experiments.prefill.stage import fill, keeping
from wanlat.experiments.prepared import Prepared, Subject
from wanlat.experiments.proof import prove, tolerating, what_is_held_up, what_is_off
from wanlat.experiments.resources.sampler import Sampler
from wanlat.experiments.resources.stored import Stored
from wanlat.experiments.sending import Sending
from wanlat.probes.oneshot import OnSample
from wanlat.probes.plan import Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import DiskFull, RunFailed, WanlatError
from wanlat.topologies.resolve import Plan

STAGES = {"prepare": "preparing objects", "warmup": "warming up", "measure": "measuring"}


class Report(Protocol):
    """Gets what is being done, how much of it is, of how much, and details."""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = "", /
    ) -> None:
        """Tell it."""


@dataclass
class Outcome:
    """How a run ended, and where its bundle is."""

    directory: Path
    status: str = "running"  # complete | interrupted | failed
    reason: str | None = None
    measured: int = 0
    planned: int = 0
    """Samples; 0 where a study does without."""
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What a reader may want to know, and need not worry about."""
    is_disk_full: bool = False
    """Whether it ended because the disk that the bundle lies on is full."""


@dataclass
class Record:
    """What the systems of a run share: where it is all written to."""

    bundle: BundleWriter
    outcome: Outcome
    captures: CaptureStore | None
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    visits: Sequence[Mapping[str, Any]] = ()
    """Of round trips: the visits of systems that an earlier attempt completed."""


def requested_rtt_ms(plan: Plan, target: str) -> float:
    """Return the RTT that a sample was requested to see: the median from the node that is asked
    to the nodes of other sites, or to its neighbours where there is one site only; 0 for one node.
    """
    here = plan.node(target).site
    distant = [node.name for node in plan.nodes if node.site != here]
    others = distant or [node.name for node in plan.nodes if node.name != target]
    return statistics.median(plan.rtt_ms(target, other) for other in others) if others else 0.0


class SystemRun:
    """One system's part of a study."""

    def __init__(
        self, prepared: Prepared, subject: Subject, record: Record, report: Report
    ) -> None:
        self.prepared = prepared
        self.subject = subject
        self.bundle = record.bundle
        self.outcome = record.outcome
        self.took_s: dict[str, float] = {}
        """Seconds of each stage until the cluster can be asked."""
        self.kept: Kept | None = None
        """The data that outlive an interrupted run, while this one measures; mostly none do."""
        self.stored = Stored()
        self.sampler: Sampler | None = None
        """What samples resources, while it does."""
        self._record = record
        self._report = report

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's proof."""
        return tolerating(self.prepared.study.tolerate.ms)

    @property
    def name(self) -> str:
        """The system's."""
        return self.subject.system.name

    def tell(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Report progress."""
        self._report(f"{self.name}: {stage}", done, total, detail)

    def measure(self) -> None:
        """Build the lab, prove it right, start the cluster, take the samples."""
        study, captures = self.prepared.study, self._record.captures
        self.tell("building the lab")
        self.kept = Kept.of(self.prepared, self.subject, self.bundle.directory)
        capture = captures.prepare(self.name) if captures else None
        lab = Lab(
            self.prepared.plan,
            backend=self.prepared.backend,
            seed=self.prepared.seed,
            storage=study.storage,
            keep=self.kept.nodes if self.kept else None,
            capture=capture,
        )
        try:
            with keeping(self.kept, self):
                self._measure_in(lab)
        finally:
            if captures and capture:
                captures.note(self.name, lab.capture)
        self.bundle.event("lab down", self.name)

    def _measure_in(self, lab: Lab) -> None:
        with ExitStack() as opened:
            with self.stage("lab"):
                opened.enter_context(lab)
            self.bundle.event("lab up", self.name, lab.backend)
            lab.journal.listen(self._note_change)
            self.bundle.write_manifest(
                backend=lab.backend, tcp=machine_facts.tcp(lab, self.prepared.client)
            )
            with self.stage("proof"):
                self._calibrate(lab)
            self.before_start(lab)
            with self.stage("cluster"):
                cluster = self._start(lab)
            self.bundle.event("ready", self.name)
            with self._watching(lab, cluster):
                self._rest(lab)
                self._probe(lab, cluster)
            tell_of_overflows(self.name, lab, self.bundle, self.outcome)

    def before_start(self, lab: Lab) -> None:
        """Do what is to be done between the proof and the cluster: here, nothing."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note how long a stage takes, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.took_s[name] = time.monotonic() - began

    def _note_change(self, entry: Entry) -> None:
        line = entry.to_dict()
        detail = json.dumps({key: line[key] for key in ("before", "after", "origin")})
        self.bundle.event("impairment", str(entry.direction), detail, entry.t_ns)

    def _calibrate(self, lab: Lab) -> None:
        document = prove(lab, self.tell, self.tolerance)
        if document is None:
            return
        for pair in document["pairs"]:
            pair["system"] = self.name
        self._record.calibrations.append(document)
        self.bundle.write_json("calibration.json", _pooled(self._record.calibrations))
        self.bundle.event("calibrated", self.name, document["verdict"])
        if document["verdict"] != "pass":
            raise RunFailed(what_is_off(document, self.prepared.plan.name, may_tolerate=True))
        if (remark := what_is_held_up(document)) is not None:
            self.outcome.warnings.append(f"{self.name}: {remark}")

    def _start(self, lab: Lab) -> Cluster:
        study = self.prepared.study
        cluster = self.subject.system.start(
            lab,
            self.subject.options,
            self.bundle.logs.absolute(),
            study.ready_timeout.ns / 1e9,
            self.tell,
            binary=self.subject.binary,
            fresh=self.kept is None or self.kept.is_fresh,
            asked=(self.prepared.target,),
        )
        # A study measures whole clusters: with a node gone there is nothing left to measure.
        cluster.when_one_died(lab.abort)
        return cluster

    def _watching(self, lab: Lab, cluster: Cluster) -> AbstractContextManager[object]:
        """Return what samples the resources of nodes while it is open."""
        wanted = self.prepared.study.resources
        if wanted is False:
            return nullcontext()
        self.sampler = Sampler(
            lab, cluster, self.bundle, self.name, wanted.every.s, self.stored.facts
        )
        return self.sampler

    def look(self) -> None:
        """Look at the nodes' resources now, while no request is in flight."""
        if self.sampler is not None:
            self.sampler.look()

    def weigh(self) -> None:
        """Look at the nodes' disk space now, between two stages: it may take seconds."""
        if self.sampler is not None:
            self.sampler.weigh()

    def _rest(self, lab: Lab) -> None:
        """Leave the cluster alone for as long as the study says, and see what it uses then."""
        wanted = self.prepared.study.resources
        end_s = time.monotonic() + (wanted.rest.s if wanted else 0)
        while wanted and (left_s := end_s - time.monotonic()) > 0:
            lab.check()
            self.tell("at rest", wanted.rest.s - left_s, wanted.rest.s)
            time.sleep(min(left_s, 0.5))
        self.look()

    def _probe(self, lab: Lab, cluster: Cluster) -> None:
        self.bundle.event("asked", self.name)  # until here it was at rest
        if self.subject.asked.api == "s3":
            cluster.create_bucket(BUCKET)

        def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Any:
            return lab.spawn(self.prepared.client, argv, stdin=stdin, stdout=stdout, stderr=stderr)

        wants = self.prepared.study.prefill is not None
        with self.stage("prefill") if wants else nullcontext(), saying_what_is_full(cluster):
            self.fill(lab, spawn, cluster)
        if self.prepared.study.prefill is not None:
            self.weigh()
        if self.kept is not None:
            self.kept.note("measuring")
            again = replace(self.subject.asked, again=self.kept.attempts - 1)
            self.subject = replace(self.subject, asked=again)
        missing = Missing()
        try:
            with saying_what_is_full(cluster):
                self.send(lab, spawn, cluster, missing)
        finally:
            self._remark(cluster, missing)

    def fill(self, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
        """Write what is to be there before anything is measured: the study's `prefill`."""
        fill(self, lab, spawn, cluster)

    def _remark(self, cluster: Cluster, missing: Missing) -> None:
        """Tell, however the requests ended, what a reader of the samples must know."""
        remarks = missing.remarks()
        try:
            remarks += cluster.remarks()
        except (WanlatError, OSError) as error:
            remarks.append(f"what state it was in afterwards is not known: {error}")
        self.outcome.warnings += [f"{self.name}: {remark}" for remark in remarks]

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, missing: Missing) -> None:  # noqa: ARG002
        """Send all requests, and take in their samples."""
        sending = Sending(self.subject.asked)
        rtt_ms = requested_rtt_ms(self.prepared.plan, self.prepared.target)
        take = self.taking(cluster, missing, {"rtt_ms": rtt_ms})
        done: Counter[str] = Counter()
        totals = sending.totals()

        def on_sample(request: Request, sample: Sample) -> None:
            nonlocal totals
            if sample.phase == "measure" and not done["measure"] and sending.planned is not None:
                totals = sending.totals()
                self._note_budget(sending.planned)
            if not done[sample.phase]:
                self.look()
            done[sample.phase] += 1
            self.tell(STAGES[sample.phase], done[sample.phase], totals[sample.phase])
            take(request, sample)

        self.tell(STAGES["prepare"], 0, totals["prepare"])
        sending.run(spawn, self.subject.asked.header(cluster), on_sample)
        self.look()
        cluster.check()

    def _note_budget(self, planned: Sequence[Planned]) -> None:
        """Write down how many samples are taken, now that the warm-up has shown it."""
        before = self.bundle.manifest.get("budget", [])
        self.bundle.write_manifest(budget=[*before, *to_manifest(self.name, planned)])
        taken = sum(each.samples for each in planned)
        self.outcome.planned += taken - self.subject.asked.measured()
        cut = [each for each in planned if each.samples < each.wanted]
        if cut:
            self.outcome.remarks.append(f"{self.name}: {budget_remark(cut)}")

    def taking(self, cluster: Cluster, missing: Missing, of_network: Mapping[str, Any]) -> OnSample:
        """Return what writes a sample down, with what the network was when it was taken."""
        constant: Mapping[str, Any] = {
            "system": self.name,
            "version": self.subject.binary.version,
            "topology": self.prepared.plan.name,
            "client": self.prepared.client,
            **of_network,
        }

        def take(request: Request, sample: Sample) -> None:
            self.stored.take(request, sample)
            if sample.phase != "prepare":
                self.bundle.sample({**asdict(sample), **constant, "placement": request.placement})
                if missing.look_at(request, sample):
                    self.bundle.event("not found", self.name, str(request.key))
            if sample.phase == "measure":
                self.outcome.measured += 1
            if sample.outcome != "ok":
                cluster.check()
                cluster.check_space()

        return take


@contextmanager
def saying_what_is_full(cluster: Cluster) -> Iterator[None]:
    """Say of what fails on a cluster of which a node's disk is full that it is."""
    try:
        yield
    except DiskFull:
        raise
    except WanlatError as error:
        try:
            cluster.check_space()
        except WanlatError as full:
            if str(full) != str(error):
                raise RunFailed(f"{error} {full}") from error
        raise


def tell_of_overflows(system: str, lab: Lab, bundle: BundleWriter, outcome: Outcome) -> None:
    """Tell of packets that the emulation dropped though nobody asked for it."""
    for direction, counters in lab.counters().items():
        if counters.overflows:
            text = (
                f"{system}: {counters.overflows} packets were dropped on {direction} "
                "because a queue of the emulation was full; samples of this run may be slower "
                "than the network that was asked for."
            )
            outcome.warnings.append(text)
            bundle.event("overflow", str(direction), str(counters.overflows))


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
