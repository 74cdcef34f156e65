"""What a study would run, and the least time that it takes: nothing is started for it.

Requests count at the lower bound of their round trips over the nearest WAN link; the rest is what
the study states, and the least that labs, their calibration and clusters take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.run import system_of
from wanlat.probes.plan import Request
from wanlat.topologies.resolve import Plan

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
    is_load = study.load is not None or study.reclaim is not None
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
    plan, study = prepared.plan, prepared.study
    has_jitter = any(link.forward.jitter_ns or link.backward.jitter_ns for link in plan.wan_links)
    stated = study.resources.idle.s if study.resources else 0.0
    if study.load is not None:
        stated += study.load.idle.s + study.load.duration.s
    if study.reclaim is not None:
        stated += study.reclaim.settle.s + study.reclaim.watch.s
    if study.round_trips is not None:
        stated += study.round_trips.total_steps * (study.round_trips.settle.s + _STEP_S)
    return {
        "start": _START_S + _JITTER_S * has_jitter,
        "stated": stated,
        "requests": _requests_s(prepared, subject, bounds),
    }


def _requests_s(prepared: Prepared, subject: Subject, bounds: dict[Turn, float | None]) -> float:
    study, requests = prepared.study, subject.requests
    by_endpoint = {turn[0]: bound or 0.0 for turn, bound in bounds.items()}
    nearest_s = _nearest_ms(prepared.plan, prepared.target) / 1000

    def one_s(endpoint: str, rtt_s: float = nearest_s) -> float:
        return by_endpoint.get(endpoint, 0.0) * rtt_s + _REQUEST_S

    def all_s(sent: Iterable[Request], rtt_s: float = nearest_s) -> float:
        return sum(one_s(request.called, rtt_s) for request in sent)

    write_s = one_s("Put" if requests.api == "bob" else "PutObject")
    if study.reclaim is not None:
        return study.reclaim.objects / study.reclaim.workers * write_s
    fill = study.prefill
    filled_s = fill.total / fill.writers * write_s if fill is not None else 0.0
    if study.load is not None:
        return filled_s
    if (steps := study.round_trips) is not None:
        stepped = requests.plan_of_steps()
        first = (*stepped.steps[0].warmup, *stepped.steps[0].measure)
        measured_s = steps.repeats * sum(all_s(first, rtt.s) for rtt in steps.rtts)
        return all_s(stepped.prepare) + measured_s
    plan = requests.plan()
    longest_s = study.budget.time.s if study.budget and study.budget.time else float("inf")
    each_s = [count * one_s(turn[0]) for turn, count in _counted(plan.measure).items()]
    before_s = filled_s + all_s((*plan.prepare, *plan.warmup))
    return before_s + sum(min(seconds, longest_s) for seconds in each_s)


def _counted(requests: Iterable[Request]) -> Counter[Turn]:
    return Counter((request.called, request.placement) for request in requests)


def _nearest_ms(plan: Plan, target: str) -> float:
    """The RTT from a node to the nearest in another site; without any to its neighbours."""
    here = plan.node(target).site
    others = [node for node in plan.nodes if node.name != target]
    distant = [node for node in others if node.site != here] or others
    return min((plan.rtt_ms(target, node.name) for node in distant), default=0.0)
