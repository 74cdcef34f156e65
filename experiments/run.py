"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle.

And what it would run, and how long that takes: nothing is started for that. At least: requests at
the lower bound of their round trips over the nearest WAN link, what the study states, and the least
that labs, their calibration and clusters take. At most: of a store and a machine that are slow, and
of a search, where its limits take the most trials.
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
from wanlat.experiments.workloads.pace import NONE, Pace, Seconds, counted, stated
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


_START = Seconds(1.0, 20.0)
"""A lab, the calibration of links without jitter, and a cluster."""
_JITTER = Seconds(3.0, 25.0)
"""More, to calibrate links with jitter."""
_REPORT = Seconds(0.0, 20.0)
PARTS = ("start", "stated", "requests")
"""What the time of a run consists of: labs and clusters, and the report; what a study states; and
its requests.
"""


def estimate(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    """Return what is sent to a system of a prepared study, where, and how long that takes."""
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
        "takes_s": summed([_times(prepared, subject, bounds)]),
        **({"remarks": known["remarks"]} if "remarks" in known else {}),
    }


def summed(times: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return the seconds of several systems, measured one after another, and their total.

    Of each part what it takes at least, and what it seldom is above.
    """
    parts = {
        part: [sum(seconds[part][end] for seconds in times) for end in (0, 1)] for part in PARTS
    }
    total = [sum(ends[end] for ends in parts.values()) for end in (0, 1)]
    return {part: [round(s, 1) for s in ends] for part, ends in {**parts, "total": total}.items()}


def _times(
    prepared: Prepared, subject: Subject, bounds: dict[Turn, float | None]
) -> dict[str, Seconds]:
    study, requests = prepared.study, subject.requests
    links = [way for link in prepared.plan.wan_links for way in (link.forward, link.backward)]
    start = _START.plus(_JITTER if any(way.jitter_ns for way in links) else NONE).plus(_REPORT)
    idle_s = study.resources.idle.s if study.resources else 0.0
    by_endpoint = {turn[0]: bound or 0.0 for turn, bound in bounds.items()}
    pace = Pace(by_endpoint, _nearest_ms(prepared.plan, prepared.target) / 1000)
    kind, sent = WORKLOADS[type(study.kind)].takes(study.kind, requests, pace)
    if (fill := study.prefill) is not None:
        sent = sent.plus(pace.writing(requests).times(fill.total / fill.writers))
    return {"start": start, "stated": stated(idle_s).plus(kind), "requests": sent}


def _nearest_ms(plan: Plan, target: str) -> float:
    """The RTT from a node to the nearest in another site; without any to its neighbours."""
    here = plan.node(target).site
    others = [node for node in plan.nodes if node.name != target]
    distant = [node for node in others if node.site != here] or others
    return min((plan.rtt_ms(target, node.name) for node in distant), default=0.0)
