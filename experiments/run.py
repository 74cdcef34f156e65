"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle.

And what it would run, and the least time that it takes: nothing is started for that. Requests count
at the lower bound of their round trips over the nearest WAN link; the rest is what the study
states, and the least that labs, their calibration and clusters take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from wanlat.experiments.config.claims import claims_on
from wanlat.experiments.kinds.base import StudyKind
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.kinds.load import LoadSpec
from wanlat.experiments.kinds.reclaim import ReclaimSpec
from wanlat.experiments.kinds.round_trips import RoundTripsSpec
from wanlat.experiments.manifest import manifest_of, place_of
from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.session import (
    CaptureWanted,
    Outcome,
    Recording,
    Report,
    system_entry,
)
from wanlat.experiments.workloads.envelope import EnvelopeWorkload
from wanlat.experiments.workloads.load import LoadWorkload
from wanlat.experiments.workloads.pace import Pace, counted
from wanlat.experiments.workloads.reclaim import ReclaimWorkload
from wanlat.experiments.workloads.requests import Workload
from wanlat.experiments.workloads.rtt_steps import RttStepsWorkload
from wanlat.probes.fewer import Turn
from wanlat.topologies.resolve import Plan

Parts = Callable[[Prepared, Recording], Sequence[Workload[Any]]]

WORKLOADS: Mapping[type[StudyKind], type[Workload[Any]]] = {
    StudyKind: Workload,
    RoundTripsSpec: RttStepsWorkload,
    LoadSpec: LoadWorkload,
    ReclaimSpec: ReclaimWorkload,
    EnvelopeSpec: EnvelopeWorkload,
}
"""What a study of each kind does on a system's cluster."""


def run(prepared: Prepared, report: Report, *, parts: Parts | None = None) -> Outcome:
    """Measure every system of a study and write the bundle.

    However it ends, the bundle holds the samples taken so far and how it ended. ``parts``
    makes each system's part of the run; without it the study's kind does. Raises UserError when
    the bundle's directory cannot be written (before anything slow starts).
    """
    recording = Recording(prepared.directory, _manifest(prepared), report, prepared.capture)
    recording.outcome.planned = sum(subject.requests.measured() for subject in prepared.subjects)
    recording.outcome.warnings += prepared.study.kind.doubts

    def work() -> None:
        for workload in (parts or WORKLOADS[type(prepared.study.kind)].of_study)(
            prepared, recording
        ):
            workload.measure()

    return recording.run(work)


def requested(backend: str | None, capture: CaptureWanted | None) -> dict[str, Any]:
    """Return what the command line requested that is in no study: to resume it the same way."""
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
    """Return what a manifest has of a system: program, options, and what its requests take.

    Of each endpoint and placement that are the round trips that no store could beat with replicas
    at the same places, and those of the system's own protocol, where it is known; of an endpoint
    with requests that differ, what decides how many they take.
    """
    plan, client, target = prepared.plan, prepared.client, prepared.target
    to_target = float(plan.node(client).site != plan.node(target).site)
    bounds, promised = list[dict[str, Any]](), list[dict[str, Any]]()
    for endpoint, placement in subject.requests.turns():
        question = plan, subject.options, target, endpoint, placement
        of_turn = {"endpoint": endpoint, "placement": placement}
        number, why = None, "nothing is known of where its replicas are"
        if (least := subject.system.least_round_trips(*question)) is not None:
            least = least.from_client(plan, client, target)
            number, why = least.round_trips, least.why
        bounds.append({**of_turn, "round_trips": number, "why": why})
        if (known := subject.system.promised_round_trips(*question)) is not None:
            promised.append({**of_turn, "round_trips": known + to_target})
    return {
        **system_entry(subject, subject.requests.api),
        "endpoints": subject.requests.names,
        "least_round_trips": bounds,
        **({"promised_round_trips": promised} if promised else {}),
        **({"decides": decides} if (decides := subject.system.definition.decides) else {}),
    }


_START_S = 2.0  # a lab, the calibration of links without jitter, and a cluster
_JITTER_S = 6.0  # more, to calibrate links with jitter


def estimate(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    """Return what is sent to a system of a prepared study, where, and the seconds at least."""
    plan, study, requests = prepared.plan, prepared.study, subject.requests
    known = system_of(prepared, subject)
    bounds: dict[Turn, float | None] = {
        (bound["endpoint"], bound["placement"]): bound["round_trips"]
        for bound in [*known["least_round_trips"], *known.get("promised_round_trips", ())]
    }
    steps = study.kind.total_steps
    taken = counted(requests.plan().measure if study.kind.takes_samples else [])
    return {
        "system": subject.system.name,
        "version": subject.binary.version,
        "topology": plan.name,
        "sites": len(plan.sites),
        "nodes": len(plan.nodes),
        "rtt_ms": _nearest_ms(plan, prepared.target),
        "client": prepared.client,
        "target": prepared.target,
        "samples": sum(taken.values()) * steps,
        "endpoints": [
            {
                "endpoint": turn[0],
                "placement": turn[1],
                "samples": taken[turn] * steps,
                "lower_bound_round_trips": bound,
            }
            for turn, bound in bounds.items()
        ],
        "at_least_s": summed([_times(prepared, subject, bounds)]),
        **({"remarks": known["remarks"]} if "remarks" in known else {}),
    }


def summed(times: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the seconds of several systems, measured one after another, and their total."""
    parts = {
        part: sum(seconds[part] for seconds in times) for part in ("start", "stated", "requests")
    }
    return {part: round(s, 1) for part, s in {**parts, "total": sum(parts.values())}.items()}


def _times(
    prepared: Prepared, subject: Subject, bounds: dict[Turn, float | None]
) -> dict[str, float]:
    study, requests = prepared.study, subject.requests
    links = [way for link in prepared.plan.wan_links for way in (link.forward, link.backward)]
    start_s = _START_S + _JITTER_S * any(way.jitter_ns for way in links)
    stated_s = study.resources.idle.s if study.resources else 0.0
    by_endpoint = {turn[0]: bound or 0.0 for turn, bound in bounds.items()}
    pace = Pace(by_endpoint, _nearest_ms(prepared.plan, prepared.target) / 1000)
    kind_s, sent_s = WORKLOADS[type(study.kind)].least_s(study.kind, requests, pace)
    if (fill := study.prefill) is not None:
        sent_s += fill.total / fill.writers * pace.write_s(requests)
    return {"start": start_s, "stated": stated_s + kind_s, "requests": sent_s}


def _nearest_ms(plan: Plan, target: str) -> float:
    """The RTT from a node to the nearest in another site; without any to its neighbours."""
    here = plan.node(target).site
    others = [node for node in plan.nodes if node.name != target]
    distant = [node for node in others if node.site != here] or others
    return min((plan.rtt_ms(target, node.name) for node in distant), default=0.0)
