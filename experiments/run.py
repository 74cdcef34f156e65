"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle.

And what it would run, and the least time that it takes: nothing is started for that. Requests count
at the lower bound of their round trips over the nearest WAN link; the rest is what the study
states, and the least that labs, their calibration and clusters take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
from wanlat.experiments.workloads.envelope import EnvelopeWorkload
from wanlat.experiments.workloads.load import LoadWorkload
from wanlat.experiments.workloads.reclaim import ReclaimWorkload
from wanlat.experiments.workloads.requests import Workload
from wanlat.experiments.workloads.rtt_steps import RttStepsRecord, RttStepsWorkload
from wanlat.probes.plan import Request
from wanlat.topologies.resolve import Plan

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

    def work() -> None:
        for workload in (parts or _workloads)(prepared, recording):
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
    elif study.envelope is not None:
        kind = EnvelopeWorkload
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
    at the same places, and those of the system's own protocol, where it is known; of an endpoint
    whose requests differ, what decides how many they take.
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
        **({"decides": decides} if (decides := subject.system.definition.decides) else {}),
    }


_START_S = 2.0  # a lab, the calibration of links without jitter, and a cluster
_JITTER_S = 6.0  # more, to calibrate links with jitter
_REQUEST_S = 0.0005  # besides its round trips
_STEP_S = 0.5  # to calibrate an RTT step

Turn = tuple[str, str]
"""An endpoint and a placement."""


def estimate(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    """Return what is sent to a system of a prepared study, where, and the seconds at least."""
    plan, study, requests = prepared.plan, prepared.study, subject.requests
    known = system_of(prepared, subject)
    bounds: dict[Turn, float | None] = {
        (each["endpoint"], each["placement"]): each["round_trips"]
        for each in [*known["least_round_trips"], *known.get("promised_round_trips", ())]
    }
    is_load = any((study.load, study.reclaim, study.envelope))
    steps = study.round_trips.total_steps if study.round_trips else 1
    taken = _counted([] if is_load else requests.plan().measure)
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
    }


def summed(times: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the seconds of several systems, measured one after another, and their total."""
    parts = {part: sum(each[part] for each in times) for part in ("start", "stated", "requests")}
    return {part: round(s, 1) for part, s in {**parts, "total": sum(parts.values())}.items()}


def _times(
    prepared: Prepared, subject: Subject, bounds: dict[Turn, float | None]
) -> dict[str, float]:
    study, requests = prepared.study, subject.requests
    links = [way for link in prepared.plan.wan_links for way in (link.forward, link.backward)]
    start_s = _START_S + _JITTER_S * any(way.jitter_ns for way in links)
    stated_s = study.resources.idle.s if study.resources else 0.0
    by_endpoint = {turn[0]: bound or 0.0 for turn, bound in bounds.items()}
    nearest_s = _nearest_ms(prepared.plan, prepared.target) / 1000

    def one_s(endpoint: str, rtt_s: float = nearest_s) -> float:
        return by_endpoint.get(endpoint, 0.0) * rtt_s + _REQUEST_S

    def all_s(sent: Iterable[Request], rtt_s: float = nearest_s) -> float:
        return sum(one_s(request.called, rtt_s) for request in sent)

    write_s = one_s(requests.objects.name("write")) if requests.objects else 0.0
    fill, sent_s = study.prefill, 0.0
    if fill is not None:
        sent_s += fill.total / fill.writers * write_s
    if (reclaim := study.reclaim) is not None:
        stated_s += reclaim.settle.s + reclaim.watch.s
        sent_s += reclaim.objects / reclaim.workers * write_s
    elif study.load is not None:
        stated_s += study.load.idle.s + study.load.duration.s
    elif (envelope := study.envelope) is not None:  # each axis at its two ends, and in between
        stated_s += 3 * len(envelope.plan.axes) * (envelope.settle.s + envelope.promise.window.s)
    elif (steps := study.round_trips) is not None:
        stated_s += steps.total_steps * (steps.settle.s + _STEP_S)
        stepped = requests.plan_of_steps()
        first = (*stepped.steps[0].warmup, *stepped.steps[0].measure)
        sent_s += all_s(stepped.prepare)
        sent_s += steps.repeats * sum(all_s(first, rtt.s) for rtt in steps.rtts)
    else:
        plan = requests.plan()
        longest_s = study.budget.time.s if study.budget and study.budget.time else float("inf")
        each_s = (count * one_s(turn[0]) for turn, count in _counted(plan.measure).items())
        sent_s += all_s((*plan.prepare, *plan.warmup)) + sum(min(s, longest_s) for s in each_s)
    return {"start": start_s, "stated": stated_s, "requests": sent_s}


def _counted(requests: Iterable[Request]) -> Counter[Turn]:
    return Counter((request.called, request.placement) for request in requests)


def _nearest_ms(plan: Plan, target: str) -> float:
    """The RTT from a node to the nearest in another site; without any to its neighbours."""
    here = plan.node(target).site
    others = [node for node in plan.nodes if node.name != target]
    distant = [node for node in others if node.site != here] or others
    return min((plan.rtt_ms(target, node.name) for node in distant), default=0.0)
