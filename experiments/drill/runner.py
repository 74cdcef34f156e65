"""Runs a drill: a lab, a cluster in it, faults at their times, requests all the while, and then
the question that counts: is everything still there that was acknowledged?
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import tolerating
from wanlat.experiments.drill.clients import Client, Load, Round, fill, verify
from wanlat.experiments.drill.faults import FaultInjection, RecordedService
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.model import PHASES, Way
from wanlat.experiments.drill.prepare import Place, PreparedDrill
from wanlat.experiments.drill.timeline import (
    CALIBRATION_S,
    RECALIBRATION_S,
    WARMUP_S,
    Span,
    spans,
    within,
)
from wanlat.experiments.manifest import manifest_of, place_of
from wanlat.experiments.requests import Row, Schedule, Workers
from wanlat.experiments.resources import Sampler
from wanlat.experiments.session import (
    Outcome,
    Recording,
    Report,
    Session,
    requested_rtt_ms,
    silent,
    system_entry,
)
from wanlat.systems.base import Cluster
from wanlat.systems.engine.wait import Wait, ready_timeout_s
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.wording import listing

STAGES = (
    *("lab", "calibrated", "ready", "filled", "before", "during", "after"),
    *("healed", "restarted", "done"),
)
"""How far a drill may get: the network is up; it is proved right; the cluster serves; the first
objects are there; a phase has started; every object was verified after the heal; and after the
restart; the lab is gone."""

REPORT_INTERVAL_S = 10.0
_SAMPLE_EVERY_S = 1.0
"""What nodes use is sampled as in studies."""
_POLL_S = 0.1
_HEAD_START_S = 0.5
"""From starting the clients' threads to their first request."""
_LETTING_GO_S = 3.0
_CHECK_LEADER_NS = 500_000_000
"""So long before the faults begin."""
_LEAST_FILLING_DEADLINE_MS = 10_000
_SENT_LATE_NS, _MOST_SENT_LATE = 100_000_000, 0.03
"""On two cores with six to eight real clusters 1 % of the requests were so late; with ten, from 5 %
to most, and reads that take 25 ms took seconds."""
_FEW_SENT_LATE = 2
"""So many of a short phase mean nothing."""


def run(
    prepared: PreparedDrill,
    report: Report = silent,
    *,
    report_interval_s: float = REPORT_INTERVAL_S,
) -> Outcome:
    """Carry out a drill and write its bundle.

    However it ends, the bundle can be read and has how far it got. ``report_interval_s``: how often
    the line of progress is renewed while requests are measured. Raises UserError when the
    bundle's directory cannot be written (before anything slow starts).
    """
    recording = Recording(prepared.directory, _manifest(prepared), report, prepared.capture)
    live = Live(report, prepared.name, report_interval_s)
    session = Session(recording, prepared)
    return recording.run(lambda: _run(prepared, session, live))


def _manifest(prepared: PreparedDrill) -> dict[str, Any]:
    plan, first = prepared.plan, prepared.places[0]
    return manifest_of(
        "drill",
        topology=prepared.topology,
        seed=prepared.seed,
        storage=prepared.storage,
        places={"client": place_of(plan, first.node), "target": place_of(plan, first.target)},
        systems=[system_entry(prepared, prepared.api)],
        own={
            "reached": None,
            "failures": [],
            "drill": {**prepared.drill.to_dict(), "scale": prepared.scale},
            **_who(prepared),
            "claims": [claim.applied() for claim in prepared.claims],
            "stated_time_s": prepared.stated.total_s,
        },
    )


def _who(prepared: PreparedDrill) -> dict[str, Any]:
    """Return which nodes the roles of a drill are, and where its clients stand."""
    return {
        "roles": {name: list(nodes) for name, nodes in prepared.roles.items()},
        "clients": {
            place.name: {**place_of(prepared.plan, place.node), "target": place.target}
            for place in prepared.places
        },
    }


def _led(
    prepared: PreparedDrill, session: Session, cluster: Cluster, longest_s: float
) -> PreparedDrill:
    """Return the drill with the node that leads in its roles, where one of them is the leader."""
    if not prepared.led:
        return prepared
    leader = cluster.await_leader(Wait(cluster.nodes, longest_s, session.progress))
    session.bundle.event("leader", leader)
    prepared = prepared.led_by(leader)
    session.bundle.write_manifest(**_who(prepared))
    return prepared


def _run(prepared: PreparedDrill, session: Session, live: Live) -> None:
    """Build the lab, prove it right, start the cluster, play the drill on it, and end it all."""
    drill, stated, stop = prepared.drill, prepared.stated, threading.Event()
    ledger_path = session.bundle.directory / "ledger.jsonl"
    with Ledger(ledger_path, prepared.seed) as ledger, session.lab() as lab:
        try:
            _reach(session, "lab")
            with within(lab, "Calibrating the network", stated.lab):
                for step in prepared.steps:
                    step.fault.check(lab)
                allowed_ms = drill.max_network_error.ms
                session.network_errors(lab, allowed_ms)
                session.calibrate(lab, tolerating(allowed_ms), longest_s=CALIBRATION_S)
            _reach(session, "calibrated")
            with within(lab, "Starting the cluster", stated.ready):
                ready_s = ready_timeout_s(lab.plan, drill.timeouts.ready)
                cluster = session.start(lab, prepared, ready_s)
                prepared = _led(prepared, session, cluster, ready_s)
                for step in prepared.steps:
                    step.fault.check(lab)
            _reach(session, "ready")
            with Sampler(lab, cluster, session.bundle, prepared.name, _SAMPLE_EVERY_S):
                stages = _Stages(prepared, session, live, stop, lab, cluster, ledger)
                for title, seconds, work in stages.all():
                    with within(lab, title, seconds):
                        work()
                broken = {
                    direction for step in prepared.steps for direction in step.fault.directions
                }
                session.note_overflows(lab, broken)
                session.note_state(cluster)
        finally:
            stop.set()
    _reach(session, "done")


def _reach(session: Session, stage: str) -> None:
    """Have it on disk how far a drill got."""
    session.outcome.reached = stage
    session.bundle.event("stage", stage)
    session.bundle.write_manifest(reached=stage)


@dataclass
class _Stages:
    """What happens on a running cluster."""

    prepared: PreparedDrill
    session: Session
    live: Live
    stop: threading.Event
    lab: Lab
    cluster: Cluster
    ledger: Ledger

    def __post_init__(self) -> None:
        """Watch the nodes' processes, and have everything ready."""
        self.drill, bundle = self.prepared.drill, self.session.bundle
        nodes = self.cluster.nodes.items()
        self.services = {name: RecordedService(node, bundle) for name, node in nodes}
        steps = self.prepared.steps
        self.faults = FaultInjection(self.session, self.lab, self.services, steps, self.stop)
        self.write_answer = bundle.lines("verification.jsonl")
        self.sent = SentLate()

    def all(self) -> Iterator[tuple[str, float, Callable[[], None]]]:
        """Yield one after another, each with the time that it may take."""
        stated, limits = self.prepared.stated, self.drill.timeouts
        yield "Writing the first objects", stated.fill, self.fill
        yield "Measuring", stated.phases, self.measure
        yield "Waiting for the nodes after the heal", stated.healing, self.heal
        healed = partial(self.verify, "healed", limits.verify_after_heal.s)
        yield "Verifying after the heal", stated.healed, healed
        yield "Restarting every node", stated.restart, self.restart
        restarted = partial(self.verify, "restarted", limits.verify_after_restart.s)
        yield "Verifying after the restart", stated.restarted, restarted

    def fill(self) -> None:
        """Write the objects that are there before anything is measured."""
        first, drill = self.prepared.places[0], self.drill
        fill(
            self._load(first),
            first,
            drill.objects,
            max(drill.deadline.ns // 10**6, _LEAST_FILLING_DEADLINE_MS),
            lambda done, total: self.session.progress("writing objects", done, total),
        )
        self.lab.check()
        _reach(self.session, "filled")

    def measure(self) -> None:
        """Send requests before, during and after the faults. Raises what a fault fails with."""
        phases, stop = spans(self.drill.phases), self.stop
        lists = self.prepared.objects.lists is not None
        ways = [way for way in self.drill.operations if way != "list" or lists]
        senders = [self._client(*client) for client in product(self.prepared.places, ways)]
        for sender in senders:
            sender.start(stop)
        origin_ns = time.monotonic_ns() + round((_HEAD_START_S + WARMUP_S) * 1e9)
        self.session.bundle.write_manifest(origin_ns=origin_ns)
        running = {sender.name: partial(sender.run, origin_ns, phases, stop) for sender in senders}
        clients = Workers(running, stop)
        try:
            clients.start()
            (during,) = (span for span in phases if span.name == "during")
            self.faults.start(origin_ns + during.begin_ns)
            self._watch(clients, origin_ns, phases)
        except BaseException:
            stop.set()
            self.faults.cut_short()
            clients.join(_LETTING_GO_S)
            raise
        if self.drill.waits_for_none and (warning := self.sent.warning()):
            self.session.warn(warning)
            self.session.outcome.is_late = True  # of several drills, this one is begun again

    def heal(self) -> None:
        """Start what is down, and wait until every node serves; one that does not is unread."""
        self.session.progress("waiting until every node serves")
        if not self.faults.wait(RECALIBRATION_S):
            self.session.recording.warn(
                f"Measuring the healed links again was not done after {RECALIBRATION_S:g} s more."
            )
        for service in self.services.values():
            if not service.is_up:
                service.start(self.lab)
        self._await_serving("after the heal")

    def verify(self, round: Round, budget_s: float) -> None:
        """Read every object that was ever written from every node."""
        stage = f"verifying every object ({round})"
        verified = verify(
            self.lab,
            self.cluster,
            self.prepared.objects,
            self.ledger,
            round,
            budget_s,
            on_progress=lambda done, total: self.session.progress(stage, done, total),
            write=self.write_answer,
            stop=self.stop,
        )
        self.lab.check()
        unread = verified.counts.get("unread", 0)
        if unread:
            late = f" within the {budget_s:g} s that it may take" if verified.out_of_time else ""
            self.session.recording.warn(
                f"{unread} of {verified.expected} answers are missing in the "
                f"round `{round}`: the object was not read from that node{late}."
            )
        _reach(self.session, round)

    def restart(self) -> None:
        """End every node at once, and start them all again."""
        self.session.progress("restarting every node")
        self.session.bundle.event("restart", self.prepared.name, "SIGKILL to every node at once")
        for service in self.services.values():
            service.stop(signal.SIGKILL)
        for service in self.services.values():
            service.start(self.lab)  # it waits for the end of the process before
        self._await_serving("after the restart of all nodes")

    def _client(self, place: Place, way: Way) -> Client:
        interval_ns, deadline_ns = self.drill.interval.ns, self.drill.deadline.ns
        name, seed = f"{place.name} {way}", self.prepared.seed
        schedule = Schedule.of_client(interval_ns, deadline_ns, seed=seed, client=name)
        return Client(self._load(place), place, way, schedule, self.drill.most_in_flight)

    def _load(self, place: Place) -> Load:
        rtt_ms = requested_rtt_ms(self.prepared.plan, place.target)
        return Load(
            lab=self.lab,
            cluster=self.cluster,
            api=self.prepared.objects,
            ledger=self.ledger,
            seed=self.prepared.seed,
            object_bytes=self.drill.object_size.bytes,
            constant={**self.prepared.of_samples, "rtt_ms": rtt_ms},
            on_row=self._take,
            on_sent=self.sent.handed_over,
            delete_ratio=float(self.drill.delete_ratio),
            filled=self.drill.objects,
        )

    def _take(self, row: Row) -> None:
        self.session.bundle.sample(row)
        if row["phase"] != "prepare":
            self.live.row(row["operation"], row["outcome"])
            self.sent.take(row)

    def _watch(self, clients: Workers, origin_ns: int, phases: Sequence[Span]) -> None:
        """Report how it goes until every client is done and every fault healed."""
        ahead, span, is_done = deque(phases), phases[0], False
        leader_check_ns = (
            next(span.begin_ns for span in phases if span.name == "during") - _CHECK_LEADER_NS
        )
        while not is_done:
            is_done = clients.join(0) and self.faults.is_healed
            for part in (self.lab, self.faults, clients):  # what ends a drill early
                part.check()
            now_ns = time.monotonic_ns() - origin_ns
            if self.prepared.led and now_ns >= leader_check_ns > 0:
                leader_check_ns = 0
                self._note_leader()
            while ahead and ahead[0].begin_ns <= now_ns:
                span = ahead.popleft()
                if span.name in PHASES:
                    self.session.bundle.event("phase", span.name, t_ns=origin_ns + span.begin_ns)
                    _reach(self.session, span.name)
            self.live.show(span, now_ns, self.faults.in_force)
            time.sleep(0 if is_done else _POLL_S)
        self.session.bundle.event("phase", "end", t_ns=origin_ns + phases[-1].until_ns)

    def _note_leader(self) -> None:
        """Record who leads now, and warn where that is not the node that faults will hit."""
        leader, role = self.cluster.leader() or "no node", self.prepared.led or ""
        self.session.bundle.event("leader", leader)
        if leader not in self.prepared.roles[role]:
            self.session.warn(
                f"{leader} leads just before the faults, and no more the node that did when the "
                f"cluster was ready: what hits role `{role}` hits a follower."
            )

    def _await_serving(self, when: str) -> None:
        limit_s = ready_timeout_s(self.lab.plan, self.drill.timeouts.serve_after_restart)
        try:
            self.cluster.await_serving(Wait(self.cluster.nodes, limit_s, self.session.progress))
        except SystemFailed as error:
            self.lab.check()
            down = [name for name, service in self.services.items() if not service.is_up]
            gone = f" ({listing(down)} ended)" if down else ""
            self.session.recording.warn(f"Not every node served {when}{gone}. {error}")


class SentLate:
    """How many requests were sent too long after they were due, though none waited for another.

    Then the clients did not get a processor, and nor did the store, which does not show it.
    What counts is when a request was handed to the probe. Some probes connect, or start a program
    that does, before they send, and to a node that is down that may take long; but where nothing is
    broken yet, that too is this machine's doing.
    """

    def __init__(self) -> None:
        self._sent, self._late = Counter[str](), Counter[str]()
        self._lock = threading.Lock()

    def handed_over(self, phase: str, after_ns: int) -> None:
        """Count a request, so long after it was due. May be called from any thread."""
        if phase in PHASES and phase != "before":
            self._take(phase, after_ns)

    def take(self, row: Row) -> None:
        """Count a request of before the faults. Rows may come from any thread."""
        if row["phase"] == "before" and None not in (row["start_ns"], row["due_ns"]):
            self._take("before", row["start_ns"] - row["due_ns"])

    def warning(self) -> str | None:
        """What to warn of where it is too many in any phase."""
        late = {phase: count for phase, count in self._late.items() if count > _FEW_SENT_LATE}
        share, phase = max(
            ((count / self._sent[phase], phase) for phase, count in late.items()), default=(0.0, "")
        )
        if share <= _MOST_SENT_LATE:
            return None
        return (
            f"{100 * share:.0f} % of the requests of the phase `{phase}` were sent more than "
            f"{_SENT_LATE_NS / 1e6:g} ms after they were due: this machine was too busy, and what "
            "was slow or failed may be its doing. Run fewer drills at once (--jobs auto), or "
            "nothing else beside them."
        )

    def _take(self, phase: str, after_ns: int) -> None:
        with self._lock:
            self._sent[phase] += 1
            self._late[phase] += after_ns > _SENT_LATE_NS


class Live:
    """What a person sees of a drill's phases: one line, renewed now and then.

    It has the phase, what is broken, and how many requests were answered since the line before.
    Rows may come from any thread; ``show`` is for one.
    """

    def __init__(self, report: Report, name: str, every_s: float) -> None:
        """``every_s``: how often it is shown, besides at a new phase or fault."""
        self._report, self._name, self._every_s = report, name, every_s
        self._done: Counter[tuple[Way, bool]] = Counter()
        self._shown: tuple[str, Sequence[str]] | None = None
        self._shown_s = 0.0

    def row(self, operation: Way, outcome: str) -> None:
        """Count a request that is over."""
        self._done[operation, outcome == "ok"] += 1

    def show(self, span: Span, now_ns: int, faults: Sequence[str]) -> None:
        """Show how it is now, if it is time: ``now_ns`` on the spans' clock."""
        news, now_s = (span.name, faults), time.monotonic()
        if news == self._shown and now_s - self._shown_s < self._every_s:
            return
        self._shown, self._shown_s = news, now_s
        done, self._done = self._done, Counter()
        ways = dict.fromkeys(way for way, _ in done)
        broken = ", ".join(faults) or "nothing broken"
        rates = (f"{way}s {done[way, True]} ok, {done[way, False]} not" for way in ways)
        self._report(
            f"{self._name}: {'warming up' if span.name == 'warmup' else span.name}",
            max(0, min(now_ns, span.until_ns) - span.begin_ns) // 10**9,
            (span.until_ns - span.begin_ns) / 1e9,
            "; ".join([broken, *rates]),
        )
