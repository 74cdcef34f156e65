"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments import machine_facts
from experiments.bundle import BundleWriter, now_iso
from experiments.prepared import CaptureWanted, Prepared, Subject, check_study_options, prepare
from experiments.system_run import Outcome, Record, Report, SystemRun, requested_rtt_ms
from experiments.visits.record import VisitsRecord
from experiments.visits.run import VisitsRun
from topologies.errors import WanlatError

Parts = Callable[[Prepared, Record, Report], Sequence[SystemRun]]

__all__ = [
    "CaptureWanted",
    "Outcome",
    "Prepared",
    "Report",
    "check_study_options",
    "prepare",
    "requested_rtt_ms",
    "run",
]


def run(prepared: Prepared, report: Report, *, parts: Parts | None = None) -> Outcome:
    """Measure every system of a study and write the bundle.

    However it ends, the bundle holds the samples taken so far and says how it ended. ``parts``
    makes each system's part of the run; without it the study says which kind. Raises UserError
    when the bundle's directory cannot be written (before anything slow starts).
    """
    bundle = BundleWriter.create(prepared.directory, _manifest(prepared))
    planned = sum(subject.asked.measured() for subject in prepared.subjects)
    outcome = Outcome(prepared.directory, planned=planned)
    spec = prepared.study.round_trips
    if spec is not None:
        outcome.warnings += spec.doubts()
    wanted = prepared.capture
    captures = wanted.store(prepared.directory) if wanted is not None else None
    record = Record(bundle, outcome, captures)
    try:
        for each in (parts or _runs)(prepared, record, report):
            each.measure()
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


def _runs(prepared: Prepared, record: Record, report: Report) -> list[SystemRun]:
    spec = prepared.study.round_trips
    if spec is None:
        return [SystemRun(prepared, subject, record, report) for subject in prepared.subjects]
    visits = VisitsRecord(record.bundle)
    return [
        VisitsRun(prepared, subject, record, report, spec, visits) for subject in prepared.subjects
    ]


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
        "systems": [_of_system(prepared, subject) for subject in prepared.subjects],
        "tcp": None,
    }


def _of_system(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": subject.system.name,
        "version": subject.binary.version,
        "label": subject.binary.label,
        "sha256": subject.binary.sha256,
        "api": subject.asked.api,
        "endpoints": subject.asked.names,
        "options": subject.system.effective(prepared.plan, subject.options),
    }
    if prepared.study.round_trips is not None:
        said["least_round_trips"] = _least(prepared, subject)
    return said


def _least(prepared: Prepared, subject: Subject) -> list[dict[str, Any]]:
    """Return what no store could beat with replicas at the same places, of all that is asked."""
    plan, target = prepared.plan, prepared.target
    found = []
    for endpoint, placement in subject.asked.turns():
        least = subject.system.least_round_trips(plan, subject.options, target, endpoint, placement)
        if least is not None:
            least = least.from_client(plan, prepared.client, target)
        found.append(
            {
                "endpoint": endpoint,
                "placement": placement,
                "round_trips": least.round_trips if least else None,
                "why": least.why if least else "nothing is known of where its replicas are",
            }
        )
    return found
