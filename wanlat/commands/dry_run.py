"""``--dry-run``: what would run, on what, and for how long at least; nothing is started.

The time is a lower bound: requests at the lower bound of their round trips over the nearest WAN
link, the times that the study states, and the least that a lab, its calibration and a cluster take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from wanlat.output import counted, emit, print_rows
from wanlat.systems.progress import elapsed
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.experiments.drill.prepare import PreparedDrill
    from wanlat.experiments.matrix import PreparedMatrix
    from wanlat.experiments.prepare import Prepared, Subject
    from wanlat.probes.plan import Request
    from wanlat.topologies.resolve import Plan

_LAB_S = 1.5  # with the calibration of links without jitter
_JITTER_S = 6.0  # more, to calibrate links with jitter
_START_S = 0.5  # of a cluster
_REQUEST_S = 0.0005  # besides its round trips
_STEP_S = 0.5  # to calibrate an RTT step
_AUTOMATIC = "netem where the kernel has it, else wire"

Turn = tuple[str, str]
"""An endpoint and a placement."""


@dataclass(frozen=True)
class Time:
    """The least that each part of a run takes, in seconds."""

    start: float
    """Lab, calibration, cluster."""
    stated: float
    """What the study states: to be idle, to settle, under load."""
    requests: float

    @property
    def total(self) -> float:
        """The sum."""
        return self.start + self.stated + self.requests

    @classmethod
    def sum(cls, times: Sequence[Time]) -> Time:
        """Return the time of several, one after another."""
        columns = [[getattr(each, key) for each in times] for key in asdict(times[0])]
        return cls(*map(sum, columns))

    def to_json(self) -> dict[str, float]:
        """Return it rounded, with the sum."""
        return {key: round(s, 1) for key, s in {**asdict(self), "total": self.total}.items()}

    def __str__(self) -> str:
        parts = [
            (self.start, "to start labs, calibrate them and start clusters"),
            (self.requests, "of requests at the lower bound of their round trips"),
            (self.stated, "as the study states"),
        ]
        said = [f"{elapsed(seconds)} {what}" for seconds, what in parts if seconds]
        return f"{elapsed(self.total)}: {listing(said)}"


def show_study(
    points: Sequence[tuple[str | None, Prepared]],
    *,
    backend: str | None,
    directory: Any,
    as_json: bool,
) -> None:
    """Print what a study would run: ``points`` as prepared, by name where it is a matrix."""
    rows, times = list[dict[str, Any]](), list[Time]()
    for name, prepared in points:
        for subject in prepared.subjects:
            time = _time(prepared, subject)
            times.append(time)
            rows.append({"point": name, **_row(prepared, subject), "at_least_s": time.to_json()})
    whole = Time.sum(times)
    study = prepared.study
    document = {
        "study": study.name,
        "backend": backend or "auto",
        "directory": str(directory),
        "seed": study.seed,
        "samples": sum(row["samples"] for row in rows),
        "points": rows,
        "at_least_s": whole.to_json(),
    }
    if as_json:
        emit(document)
        return
    named = counted(len(points), "point")
    samples = f", {document['samples']} samples" if document["samples"] else ""
    print(f"{study.name}: {named}, {counted(len(study.systems), 'system')}{samples}")
    print(f"backend: {backend or _AUTOMATIC}; bundle: {directory}")
    if all(row["point"] is None for row in rows):
        for row in rows:
            _print_point(row)
    else:
        titles = ("POINT", "SYSTEM", "TOPOLOGY", "NODES", "CLIENT", "TARGET", "SAMPLES", "AT LEAST")
        print_rows([titles, *map(_line, rows)])
    print(f"takes at least {whole}")
    print("Nothing was started.")


def prepared_points(prepared: PreparedMatrix) -> list[tuple[str | None, Prepared]]:
    """Return the points of a matrix, by name, in the study's order."""
    from wanlat.experiments.matrix_points import points_of

    binaries: dict[str, Any] = {}
    return [
        (point.name, prepared.prepare(point, binaries=binaries))
        for point in points_of(prepared.study)
    ]


def _row(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    plan, study, requests = prepared.plan, prepared.study, subject.requests
    bounds = _bounds(prepared, subject)
    is_load = study.load is not None or study.reclaim is not None
    steps = study.round_trips.total_visits if study.round_trips else 1
    taken = Counter() if is_load else Counter(map(_turn, requests.plan().measure))
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
    }


def _print_point(row: Mapping[str, Any]) -> None:
    size = f"{row['sites']} sites, {row['nodes']} nodes"
    print(f"\n{row['system']} {row['version']} on {row['topology']} ({size})")
    print(f"client on {row['client']}, target node {row['target']}")
    titles = ("ENDPOINT", "PLACEMENT", "SAMPLES", "LOWER BOUND")
    print_rows(
        [
            titles,
            *(
                (
                    each["endpoint"],
                    each["placement"].replace("unknown", "–"),
                    str(each["samples"] or "–"),
                    _bound(each),
                )
                for each in row["endpoints"]
            ),
        ]
    )
    print(f"at least {elapsed(row['at_least_s']['total'])}\n")


def _bound(endpoint: Mapping[str, Any]) -> str:
    bound = endpoint["lower_bound_round_trips"]
    return "unknown" if bound is None else f"{bound:g} RTT"


def _line(row: Mapping[str, Any]) -> tuple[str, ...]:
    keys = ("point", "system", "topology", "nodes", "client", "target", "samples")
    named = {**row, "system": f"{row['system']} {row['version']}"}
    return (*(str(named[key]) for key in keys), elapsed(row["at_least_s"]["total"]))


def _bounds(prepared: Prepared, subject: Subject) -> dict[Turn, float | None]:
    """The round trips that each endpoint takes by the system's protocol, or at least."""
    plan, target, found = prepared.plan, prepared.target, dict[Turn, float | None]()
    system, options = subject.system, subject.options
    is_elsewhere = plan.node(prepared.client).site != plan.node(target).site
    for turn in subject.requests.turns():
        known = system.promised_round_trips(plan, options, target, *turn)
        if known is None:
            least = system.least_round_trips(plan, options, target, *turn)
            known = least.round_trips if least else None
        found[turn] = None if known is None else known + is_elsewhere
    return found


def _turn(request: Request) -> Turn:
    return request.endpoint, request.placement


def _nearest_ms(plan: Plan, target: str) -> float:
    """The RTT from a node to the nearest in another site; without any to its neighbours."""
    here = plan.node(target).site
    others = [node for node in plan.nodes if node.name != target]
    distant = [node for node in others if node.site != here] or others
    return min((plan.rtt_ms(target, node.name) for node in distant), default=0.0)


def _time(prepared: Prepared, subject: Subject) -> Time:
    plan, study = prepared.plan, prepared.study
    has_jitter = any(link.forward.jitter_ns or link.backward.jitter_ns for link in plan.wan_links)
    stated = study.resources.idle.s if study.resources else 0.0
    if study.load is not None:
        stated += study.load.idle.s + study.load.duration.s
    if study.reclaim is not None:
        stated += study.reclaim.settle.s + study.reclaim.watch.s
    if (steps := study.round_trips) is not None:
        stated += steps.total_visits * (steps.settle.s + _STEP_S)
    start = _LAB_S + _JITTER_S * has_jitter + _START_S
    return Time(start, stated, _requests_s(prepared, subject))


def _requests_s(prepared: Prepared, subject: Subject) -> float:
    study, requests, bounds = prepared.study, subject.requests, _bounds(prepared, subject)
    by_endpoint = {turn[0]: bound or 0.0 for turn, bound in bounds.items()}
    rtt_s = _nearest_ms(prepared.plan, prepared.target) / 1000

    def took_s(counted: Mapping[Turn, int], rtt_s: float) -> float:
        each = {turn: by_endpoint.get(turn[0], 0.0) * rtt_s + _REQUEST_S for turn in counted}
        return sum(count * each[turn] for turn, count in counted.items())

    write_s = by_endpoint.get("PutObject", by_endpoint.get("Put", 0.0)) * rtt_s + _REQUEST_S
    filled_s = 0.0
    if study.prefill is not None:
        filled_s = study.prefill.total / study.prefill.writers * write_s
    if study.reclaim is not None:
        return study.reclaim.objects / study.reclaim.workers * write_s
    if study.load is not None:
        return filled_s
    if (steps := study.round_trips) is not None:
        plan = requests.plan_of_visits()
        visit = Counter(map(_turn, (*plan.visits[0].warmup, *plan.visits[0].measure)))
        prepared_s = took_s(Counter(map(_turn, plan.prepare)), rtt_s)
        return prepared_s + steps.visits * sum(took_s(visit, rtt.s) for rtt in steps.rtts)
    plan_of_one = requests.plan()
    before = Counter(map(_turn, (*plan_of_one.prepare, *plan_of_one.warmup)))
    measured = Counter(map(_turn, plan_of_one.measure))
    longest_s = study.budget.time.s if study.budget and study.budget.time else float("inf")
    return (
        filled_s
        + took_s(before, rtt_s)
        + sum(min(took_s({turn: count}, rtt_s), longest_s) for turn, count in measured.items())
    )


def show_drills(prepared: Sequence[PreparedDrill], *, as_json: bool) -> None:
    """Print what a drill would run on each system."""
    documents = [_drill(each) for each in prepared]
    if as_json:
        emit(documents[0] if len(documents) == 1 else {"drills": documents})
        return
    for each, document in zip(prepared, documents, strict=True):
        drill, phases = each.drill, each.drill.phases
        print(f"{drill.name} on {each.system.name} {each.binary.version}, on {each.plan.name}")
        print(f"backend: {each.backend or _AUTOMATIC}; bundle: {each.directory}; seed {each.seed}")
        for name, nodes in each.roles.items():
            print(f"{name}: {listing(nodes)}")
        rows = [(one["client"], one["node"], one["target"]) for one in document["clients"]]
        print_rows([("CLIENT", "NODE", "TARGET"), *rows])
        print(f"before {phases.before}, during {phases.during}, after {phases.after}")
        for fault in document["faults"]:
            until = "" if fault["until_s"] is None else f" to {fault['until_s']:g} s"
            print(f"  during, {fault['from_s']:g} s{until}: {fault['fault']}")
        print(f"takes at most {each.stated}\n")
    print("Nothing was started.")


def _drill(prepared: PreparedDrill) -> dict[str, Any]:
    phases = prepared.drill.phases
    return {
        "drill": prepared.drill.name,
        "system": prepared.system.name,
        "version": prepared.binary.version,
        "topology": prepared.plan.name,
        "backend": prepared.backend or "auto",
        "directory": str(prepared.directory),
        "seed": prepared.seed,
        "roles": {name: list(nodes) for name, nodes in prepared.roles.items()},
        "clients": [
            {"client": each.name, "node": each.node, "target": each.target}
            for each in prepared.places
        ],
        "phases_s": {key: getattr(phases, key).s for key in ("before", "during", "after")},
        "faults": [
            {
                "fault": " ".join(
                    filter(None, (step.fault.kind, step.fault.subject, step.fault.detail))
                ),
                "from_s": step.at_ns / 1e9,
                "until_s": None if step.until_ns is None else step.until_ns / 1e9,
            }
            for step in prepared.steps
        ],
        "at_most_s": {**asdict(prepared.stated), "total": prepared.stated.total_s},
    }
