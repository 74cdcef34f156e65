"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from wanlat.experiments.config.claims import claims_on
from wanlat.experiments.manifest import manifest_of, place_of
from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.session import (
    CaptureWanted,
    Outcome,
    Recording,
    Report,
    system_entry,
)
from wanlat.experiments.workloads.load import LoadWorkload
from wanlat.experiments.workloads.reclaim import ReclaimWorkload
from wanlat.experiments.workloads.requests import Workload
from wanlat.experiments.workloads.rtt_steps import RttStepsRecord, RttStepsWorkload

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
        systems=[system_of(prepared, subject) for subject in prepared.subjects],
        own={
            "study": prepared.study.to_dict(),
            **claims_on(prepared.study.name),
            "requested": requested(prepared.backend, prepared.capture),
        },
    )


def system_of(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    """Return what a manifest says of a system: program, options, and what its requests take.

    Of each endpoint and placement that are the round trips that no store could beat with replicas
    at the same places, and those of the system's own protocol, where it is known.
    """
    plan, client, target = prepared.plan, prepared.client, prepared.target
    to_target = float(plan.node(client).site != plan.node(target).site)
    bounds, promised = list[dict[str, Any]](), list[dict[str, Any]]()
    for endpoint, placement in subject.requests.turns():
        asked = plan, subject.options, target, endpoint, placement
        of_turn = {"endpoint": endpoint, "placement": placement}
        number, why = None, "nothing is known of where its replicas are"
        if (least := subject.system.least_round_trips(*asked)) is not None:
            least = least.from_client(plan, client, target)
            number, why = least.round_trips, least.why
        bounds.append({**of_turn, "round_trips": number, "why": why})
        if (known := subject.system.promised_round_trips(*asked)) is not None:
            promised.append({**of_turn, "round_trips": known + to_target})
    return {
        **system_entry(subject, subject.requests.api),
        "endpoints": subject.requests.names,
        "least_round_trips": bounds,
        **({"promised_round_trips": promised} if promised else {}),
    }
