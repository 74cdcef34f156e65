"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.session import (
    CaptureWanted,
    Outcome,
    Recording,
    Report,
    manifest_of,
    place_of,
    system_entry,
)
from wanlat.experiments.workloads.load import LoadWorkload
from wanlat.experiments.workloads.reclaim import ReclaimWorkload
from wanlat.experiments.workloads.requests import Workload
from wanlat.experiments.workloads.rtt_step_record import RttStepsRecord
from wanlat.experiments.workloads.rtt_steps import RttStepsWorkload

Parts = Callable[[Prepared, Recording], Sequence[Workload]]


def run(prepared: Prepared, report: Report, *, parts: Parts | None = None) -> Outcome:
    """Measure every system of a study and write the bundle.

    However it ends, the bundle holds the samples taken so far and says how it ended. ``parts``
    makes each system's part of the run; without it the study says which kind. Raises UserError when
    the bundle's directory cannot be written (before anything slow starts).
    """
    recording = Recording(prepared.directory, _manifest(prepared), report, prepared.capture)
    recording.outcome.planned = sum(each.requests.measured() for each in prepared.subjects)
    if prepared.study.round_trips is not None:
        recording.outcome.warnings += prepared.study.round_trips.doubts()
    workloads = (parts or _workloads)(prepared, recording)

    def work() -> None:
        for workload in workloads:
            workload.measure()

    return recording.carry_out(work)


def _workloads(prepared: Prepared, recording: Recording) -> list[Workload]:
    study = prepared.study
    if study.round_trips is not None:
        steps = RttStepsRecord(recording.bundle)
        return [
            RttStepsWorkload(prepared, subject, recording, study.round_trips, steps)
            for subject in prepared.subjects
        ]
    kind: type[Workload] = Workload
    if study.load is not None:
        kind = LoadWorkload
    elif study.reclaim is not None:
        kind = ReclaimWorkload
    return [kind(prepared, subject, recording) for subject in prepared.subjects]


def requested(backend: str | None, capture: CaptureWanted | None) -> dict[str, Any]:
    """Return what the command line asked for that no study says: to resume it the same way."""
    return {"backend": backend, "capture": asdict(capture) if capture is not None else None}


def _manifest(prepared: Prepared) -> dict[str, Any]:
    return manifest_of(
        "study",
        topology=prepared.topology,
        seed=prepared.seed,
        storage=prepared.study.storage,
        places={
            "client": place_of(prepared.plan, prepared.client),
            "target": place_of(prepared.plan, prepared.target),
        },
        systems=[_of_system(prepared, subject) for subject in prepared.subjects],
        own={
            "study": prepared.study.to_dict(),
            "requested": requested(prepared.backend, prepared.capture),
        },
    )


def _of_system(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    entry = {
        **system_entry(subject, subject.requests.api),
        "endpoints": subject.requests.names,
        "least_round_trips": _least(prepared, subject),
    }
    if promised := _promised(prepared, subject):
        entry["promised_round_trips"] = promised
    return entry


def _promised(prepared: Prepared, subject: Subject) -> list[dict[str, Any]]:
    """Return what the system's own protocol takes, of all that is asked and where it is known."""
    plan, client, target = prepared.plan, prepared.client, prepared.target
    more = float(plan.node(client).site != plan.node(target).site)
    found = []
    for endpoint, placement in subject.requests.turns():
        number = subject.system.promised_round_trips(
            plan, subject.options, target, endpoint, placement
        )
        if number is not None:
            found.append(
                {"endpoint": endpoint, "placement": placement, "round_trips": number + more}
            )
    return found


def _least(prepared: Prepared, subject: Subject) -> list[dict[str, Any]]:
    """Return what no store could beat with replicas at the same places, of all that is asked."""
    plan, target = prepared.plan, prepared.target
    found = []
    for endpoint, placement in subject.requests.turns():
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
