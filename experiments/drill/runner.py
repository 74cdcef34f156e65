"""Runs a drill: a lab, a cluster in it, faults at their times, requests all the while, and then
the question that counts: is everything still there that was acknowledged?
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from wanlat.bundle.write import BundleWriter, is_full, is_nearly_full, now_iso
from wanlat.emulator.capture.store import CaptureStore
from wanlat.emulator.journal import Entry
from wanlat.emulator.lab import Lab
from wanlat.experiments import machine_facts
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.prepare import PreparedDrill, lab_of, prepare
from wanlat.experiments.drill.progress import Report, Silent
from wanlat.experiments.drill.record import Outcome, Record
from wanlat.experiments.drill.stage import Stage
from wanlat.experiments.drill.timing import CALIBRATION_S, within
from wanlat.experiments.proof import FOR_DRILLS, prove, what_is_held_up, what_is_off
from wanlat.experiments.resources.sampler import Sampler
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import DiskFull, MachineError, RunFailed, WanlatError

__all__ = ["Outcome", "PreparedDrill", "prepare", "run"]

TELL_EVERY_S = 10.0
SAMPLE_EVERY_S = 1.0
"""What nodes use is sampled as in studies."""


def run(
    prepared: PreparedDrill, report: Report | None = None, *, tell_every_s: float = TELL_EVERY_S
) -> Outcome:
    """Carry out a drill and write its bundle.

    However it ends, the bundle can be read and says how far it got. ``tell_every_s``: how often
    the line of progress is renewed while requests are measured. Raises UserError when the
    bundle's directory cannot be written (before anything slow starts).
    """
    report = report or Silent()
    bundle = BundleWriter.create(prepared.directory, _manifest(prepared))
    outcome = Outcome(prepared.directory)
    wanted = prepared.capture
    captures = wanted.store(prepared.directory) if wanted is not None else None
    try:
        _Run(Record(prepared, bundle, outcome, report, tell_every_s), captures).all()
        outcome.status = "complete"
    except KeyboardInterrupt:
        outcome.status, outcome.reason = "interrupted", "interrupted by the user"
    except WanlatError as error:
        _failed(bundle, outcome, str(error), is_full=isinstance(error, DiskFull))
    except BaseException as error:
        if not (isinstance(error, OSError) and is_full(error)):
            bundle.close("failed", f"{type(error).__name__}: {error}")
            raise
        reason = f"{error.filename or 'A file'} cannot be written: {error.strerror}."
        _failed(bundle, outcome, reason, is_full=True)
    _close(bundle, outcome, captures, report)
    return outcome


def _failed(bundle: BundleWriter, outcome: Outcome, reason: str, *, is_full: bool) -> None:
    """Note why it failed; and where a full disk is likely to be behind it, that it is full."""
    outcome.status, outcome.reason = "failed", reason
    outcome.is_disk_full = is_full or is_nearly_full(bundle.directory)
    if outcome.is_disk_full:
        bundle.make_room()
    if outcome.is_disk_full and not is_full:
        outcome.reason += f" The disk that {bundle.directory.absolute()} lies on is full."


def _close(
    bundle: BundleWriter, outcome: Outcome, captures: CaptureStore | None, report: Report
) -> None:
    """Write how it ended. Where not even that can be written, the outcome says so."""
    changes: dict[str, Any] = {}
    try:
        if captures is not None:
            report("making the table of packets")
            changes["capture"] = captures.finish()
            outcome.warnings += captures.remarks()
        changes |= {"warnings": outcome.warnings, "failures": outcome.failures}
        bundle.close(outcome.status, outcome.reason, **changes)
    except (MachineError, OSError) as error:
        full = isinstance(error, OSError) and is_full(error)
        outcome.status, outcome.is_disk_full = "failed", full or isinstance(error, DiskFull)
        outcome.reason = outcome.reason or str(error)
        outcome.warnings.append(
            f"{bundle.directory} does not say how it ended: it could not be written."
        )


def _manifest(prepared: PreparedDrill) -> dict[str, Any]:
    first = prepared.places[0]
    asked = next(node.site for node in prepared.plan.nodes if node.name == first.ask)
    system: dict[str, Any] = {
        "name": prepared.system.name,
        "version": prepared.binary.version,
        "label": prepared.binary.label,
        "sha256": prepared.binary.sha256,
        "api": prepared.api,
        "options": prepared.system.effective(prepared.plan, prepared.options),
    }
    if prepared.binary.beside:
        system["beside"] = [each.as_recorded() for each in prepared.binary.beside]
    return {
        "kind": "drill",
        "status": "running",
        "reason": None,
        "reached": None,
        "warnings": [],
        "failures": [],
        "drill": {**prepared.drill.to_dict(), "scale": prepared.scale},
        "cast": {name: list(nodes) for name, nodes in prepared.cast.items()},
        "vantages": {
            place.name: {"at": place.at, "site": place.site, "ask": place.ask}
            for place in prepared.places
        },
        "stated_time_s": prepared.stated.total_s,
        "topology": prepared.topology.to_dict(),
        "seed": prepared.seed,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": now_iso(),
        "ended": None,
        **machine_facts.collect(),
        "backend": None,
        "storage": prepared.drill.storage,
        "client": {"node": first.at, "site": first.site},
        "target": {"node": first.ask, "site": asked},
        "systems": [system],
    }


class _Run:
    """One drill, from its lab to its last verification."""

    def __init__(self, record: Record, captures: CaptureStore | None) -> None:
        self._record = record
        self._prepared = record.prepared
        self._bundle = record.bundle
        self._captures = captures

    def all(self) -> None:
        """Build the lab, do everything in it, and end it."""
        name = self._record.system
        self._record.tell("building the lab")
        capture = self._captures.prepare(name) if self._captures else None
        lab = lab_of(self._prepared, capture)
        try:
            with Ledger(self._bundle.directory / "ledger.jsonl", self._prepared.seed) as ledger:
                self._in_a_lab(lab, ledger)
        finally:
            if self._captures and capture:
                self._captures.note(name, lab.capture)
        self._bundle.event("lab down", name)
        self._record.reach("done")

    def _in_a_lab(self, lab: Lab, ledger: Ledger) -> None:
        stated = self._prepared.stated
        with lab:
            try:
                with within(lab, "Making the network and proving it", stated.lab):
                    self._begin(lab)
                with within(lab, "Starting the cluster", stated.ready):
                    cluster = self._start(lab)
                with Sampler(lab, cluster, self._bundle, self._record.system, SAMPLE_EVERY_S):
                    self._drill(lab, cluster, ledger)
            finally:
                self._record.stop.set()

    def _drill(self, lab: Lab, cluster: Cluster, ledger: Ledger) -> None:
        stated = self._prepared.stated
        stage = Stage(self._record, lab, cluster, ledger)
        with within(lab, "Writing the first objects", stated.fill):
            stage.fill()
        with within(lab, "Measuring", stated.phases):
            stage.measure()
        with within(lab, "Waiting for the nodes after the heal", stated.healing):
            stage.heal()
        with within(lab, "Looking for every object after the heal", stated.healed):
            stage.verify("healed", self._prepared.drill.verification.healed.s)
        with within(lab, "Restarting every node", stated.restart):
            stage.restart()
        with within(lab, "Looking for every object after the restart", stated.restarted):
            stage.verify("restarted", self._prepared.drill.verification.restarted.s)
        stage.remark()

    def _begin(self, lab: Lab) -> None:
        """Note that the lab is up, and prove that it is what was asked for."""
        self._bundle.event("lab up", self._record.system, lab.backend)
        lab.journal.listen(self._note_change)
        self._bundle.write_manifest(
            backend=lab.backend, tcp=machine_facts.tcp(lab, self._prepared.places[0].at)
        )
        self._record.reach("lab")
        for step in self._prepared.steps:
            step.fault.check(lab)
        document = prove(lab, self._record.tell, FOR_DRILLS, longest_s=CALIBRATION_S)
        if document is not None:
            for pair in document["pairs"]:
                pair["system"] = self._record.system
            self._bundle.write_json("calibration.json", document)
            self._bundle.event("calibrated", self._record.system, document["verdict"])
            if document["verdict"] != "pass":
                raise RunFailed(what_is_off(document, self._prepared.plan.name))
            if (remark := what_is_held_up(document)) is not None:
                self._record.warn(remark)
        self._record.reach("calibrated")

    def _note_change(self, entry: Entry) -> None:
        line = entry.to_dict()
        detail = json.dumps({key: line[key] for key in ("before", "after", "origin")})
        self._bundle.event("impairment", str(entry.direction), detail, entry.t_ns)

    def _start(self, lab: Lab) -> Cluster:
        cluster = self._prepared.system.start(
            lab,
            self._prepared.options,
            self._bundle.logs.absolute(),
            self._prepared.drill.ready_timeout.s,
            self._record.tell,
            binary=self._prepared.binary,
            asked=tuple(place.ask for place in self._prepared.places),
        )
        self._bundle.event("ready", self._record.system)
        self._record.reach("ready")
        return cluster
