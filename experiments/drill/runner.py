"""Runs a drill: a lab, a cluster in it, faults at their times, requests all the while, and then
the question that counts: is everything still there that was acknowledged?
"""

from __future__ import annotations

from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import FOR_DRILLS
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.prepare import PreparedDrill, prepare
from wanlat.experiments.drill.record import Record
from wanlat.experiments.drill.stage import Stage
from wanlat.experiments.drill.timing import CALIBRATION_S, within
from wanlat.experiments.resources.sampler import Sampler
from wanlat.experiments.session import (
    Outcome,
    Recording,
    Report,
    Session,
    manifest_of,
    place_of,
    silent,
    system_entry,
)
from wanlat.systems.base import Cluster

__all__ = ["Outcome", "PreparedDrill", "prepare", "run"]

TELL_EVERY_S = 10.0
SAMPLE_EVERY_S = 1.0
"""What nodes use is sampled as in studies."""


def run(
    prepared: PreparedDrill, report: Report = silent, *, tell_every_s: float = TELL_EVERY_S
) -> Outcome:
    """Carry out a drill and write its bundle.

    However it ends, the bundle can be read and says how far it got. ``tell_every_s``: how often
    the line of progress is renewed while requests are measured. Raises UserError when the
    bundle's directory cannot be written (before anything slow starts).
    """
    recording = Recording(prepared.directory, _manifest(prepared), report, prepared.capture)
    record = Record(prepared, Session(recording, prepared.setup), tell_every_s)
    return recording.carry_out(_Run(record).all)


def _manifest(prepared: PreparedDrill) -> dict[str, Any]:
    plan, first = prepared.plan, prepared.places[0]
    return manifest_of(
        "drill",
        topology=prepared.topology,
        seed=prepared.seed,
        storage=prepared.drill.storage,
        places={"client": place_of(plan, first.node), "target": place_of(plan, first.target)},
        systems=[system_entry(prepared.setup, prepared.api)],
        own={
            "reached": None,
            "failures": [],
            "drill": {**prepared.drill.to_dict(), "scale": prepared.scale},
            "roles": {name: list(nodes) for name, nodes in prepared.roles.items()},
            "clients": {
                place.name: {"node": place.node, "site": place.site, "target": place.target}
                for place in prepared.places
            },
            "claims": [claim.applied() for claim in prepared.claims],
            "stated_time_s": prepared.stated.total_s,
        },
    )


class _Run:
    """One drill, from its lab to its last verification."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._session = record.session
        self._prepared = record.prepared

    def all(self) -> None:
        """Build the lab, do everything in it, and end it."""
        path = self._record.bundle.directory / "ledger.jsonl"
        with Ledger(path, self._prepared.seed) as ledger, self._session.lab() as lab:
            try:
                self._in_a_lab(lab, ledger)
            finally:
                self._record.stop.set()
        self._record.reach("done")

    def _in_a_lab(self, lab: Lab, ledger: Ledger) -> None:
        stated, session = self._prepared.stated, self._session
        self._record.reach("lab")
        with within(lab, "Calibrating the network", stated.lab):
            for step in self._prepared.steps:
                step.fault.check(lab)
            session.calibrate(lab, FOR_DRILLS, longest_s=CALIBRATION_S)
        self._record.reach("calibrated")
        with within(lab, "Starting the cluster", stated.ready):
            cluster = session.start(
                lab, self._prepared.setup, self._prepared.drill.timeouts.ready.s
            )
        self._record.reach("ready")
        with Sampler(lab, cluster, session.bundle, self._record.system, SAMPLE_EVERY_S):
            self._drill(lab, cluster, ledger)

    def _drill(self, lab: Lab, cluster: Cluster, ledger: Ledger) -> None:
        stated = self._prepared.stated
        stage = Stage(self._record, lab, cluster, ledger)
        with within(lab, "Writing the first objects", stated.fill):
            stage.fill()
        with within(lab, "Measuring", stated.phases):
            stage.measure()
        with within(lab, "Waiting for the nodes after the heal", stated.healing):
            stage.heal()
        with within(lab, "Verifying every object after the heal", stated.healed):
            stage.verify("healed", self._prepared.drill.timeouts.verify_after_heal.s)
        with within(lab, "Restarting every node", stated.restart):
            stage.restart()
        with within(lab, "Verifying every object after the restart", stated.restarted):
            stage.verify("restarted", self._prepared.drill.timeouts.verify_after_restart.s)
        stage.remark()
