"""What happens on a running cluster: requests before, during and after faults, and the question
that counts in the end, whether everything is there that was acknowledged.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.breaking import Breaking
from wanlat.experiments.drill.client import Client, Load
from wanlat.experiments.drill.clients import Clients
from wanlat.experiments.drill.fill import fill
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.phases import PHASES
from wanlat.experiments.drill.progress import Live
from wanlat.experiments.drill.record import Record
from wanlat.experiments.drill.rows import Place, Row, Way
from wanlat.experiments.drill.schedule import Schedule, Span
from wanlat.experiments.drill.timing import RECALIBRATION_S, WARMUP_S
from wanlat.experiments.drill.verify import Round, verify
from wanlat.experiments.drill.watched import Watched
from wanlat.experiments.session import requested_rtt_ms
from wanlat.systems.base import Cluster
from wanlat.systems.errors import SystemFailed
from wanlat.systems.wait import Wait
from wanlat.topologies.wording import listing

_WAYS: tuple[Way, Way] = ("read", "write")
_POLL_S = 0.1
_HEAD_START_S = 0.5
"""From starting the clients to their first request: each starts a process."""
_LETTING_GO_S = 3.0
_KILLED_WITHIN_S = 30.0
_LEAST_FILLING_DEADLINE_MS = 10_000


class Stage:
    """A cluster in a lab, on which one drill is played. Its methods are called in their order."""

    def __init__(self, record: Record, lab: Lab, cluster: Cluster, ledger: Ledger) -> None:
        self._record = record
        self._drill = record.prepared.drill
        self._lab = lab
        self._cluster = cluster
        self._ledger = ledger
        self._services = {
            name: Watched(node, record.bundle) for name, node in cluster.nodes.items()
        }
        self._live = Live(record.report, record.system, record.tell_every_s)
        self._breaking = Breaking(record, lab, self._services, self._live)
        self._write_answer = record.bundle.lines("verification.jsonl")

    def fill(self) -> None:
        """Write the objects that are there before anything is measured."""
        first = self._record.prepared.places[0]
        fill(
            self._load(first),
            first,
            self._drill.objects,
            max(self._drill.deadline.ns // 10**6, _LEAST_FILLING_DEADLINE_MS),
            stop=self._record.stop,
            on_progress=lambda done, total: self._record.tell("writing objects", done, total),
        )
        self._lab.check()
        self._record.reach("filled")

    def measure(self) -> None:
        """Send requests before, during and after the faults. Raises what a fault fails with."""
        spans = _spans(self._drill.phases)
        origin_ns = time.monotonic_ns() + round((_HEAD_START_S + WARMUP_S) * 1e9)
        self._record.bundle.write_manifest(origin_ns=origin_ns)
        clients = Clients([self._client(place, way) for place in self._places for way in _WAYS])
        try:
            clients.start(origin_ns, spans, self._record.stop)
            self._breaking.start(origin_ns + spans[2].begin_ns)
            self._watch(clients, origin_ns, spans)
        except BaseException:
            self._record.stop.set()
            self._breaking.cut_short()
            clients.join(_LETTING_GO_S)
            raise

    def heal(self) -> None:
        """Start what is down, and wait until every node serves; one that does not is unread."""
        self._record.tell("waiting until every node serves")
        if not self._breaking.wait(RECALIBRATION_S):
            self._record.warn(
                f"Measuring the healed links again was not done after {RECALIBRATION_S:g} s more."
            )
        for service in self._services.values():
            if not service.is_up:
                service.start(self._lab)
        self._await_serving("after the heal")

    def verify(self, round: Round, budget_s: float) -> None:
        """Read every object that was ever written from every node."""
        verified = verify(
            self._lab,
            self._cluster,
            self._ledger,
            round,
            budget_s,
            on_progress=lambda done, total: self._record.tell(
                f"verifying every object ({round})", done, total
            ),
            write=self._write_answer,
            stop=self._record.stop,
        )
        self._lab.check()
        unread = verified.found.get("unread", 0)
        if unread:
            late = f" within the {budget_s:g} s that it may take" if verified.out_of_time else ""
            self._record.warn(
                f"{unread} of {verified.keys * len(verified.nodes)} answers are missing in the "
                f"round `{round}`: the object was not read from that node{late}."
            )
        self._record.reach(round)

    def restart(self) -> None:
        """End every node at once, and start them all again."""
        self._record.tell("restarting every node")
        self._record.bundle.event("restart", self._record.system, "SIGKILL to every node at once")
        for service in self._services.values():
            service.stop(signal.SIGKILL)
        for service in self._services.values():
            if service.process is not None:
                service.process.wait(_KILLED_WITHIN_S)
        for service in self._services.values():
            service.start(self._lab)
        self._await_serving("after the restart of all nodes")

    def remark(self) -> None:
        """Have a reader told of what makes samples doubtful."""
        broken = {each for step in self._record.prepared.steps for each in step.fault.directions}
        self._record.session.note_overflows(self._lab, broken)
        self._record.session.note_state(self._cluster)

    @property
    def _places(self) -> Sequence[Place]:
        return self._record.prepared.places

    def _client(self, place: Place, way: Way) -> Client:
        drill, seed = self._drill, self._record.prepared.seed
        schedule = Schedule.of(
            drill.interval.ns, drill.deadline.ns, seed=seed, client=f"{place.name} {way}"
        )
        return Client(self._load(place), place, way, schedule)

    def _load(self, place: Place) -> Load:
        prepared = self._record.prepared
        return Load(
            lab=self._lab,
            cluster=self._cluster,
            ledger=self._ledger,
            seed=prepared.seed,
            object_bytes=self._drill.object_size.bytes,
            constant={
                "system": prepared.system.name,
                "version": prepared.binary.version,
                "topology": prepared.plan.name,
                "rtt_ms": requested_rtt_ms(prepared.plan, place.target),
            },
            on_row=self._take,
            delete_ratio=float(self._drill.delete_ratio),
        )

    def _take(self, row: Row) -> None:
        self._record.bundle.sample(row)
        if row["phase"] != "prepare":
            self._live.row(row["operation"], row["outcome"])

    def _watch(self, clients: Clients, origin_ns: int, spans: Sequence[Span]) -> None:
        """Tell how it goes until every client is done and every fault healed."""
        ahead = list(spans)
        while not (clients.join(0) and self._breaking.is_healed):
            self._lab.check()
            self._breaking.check()
            clients.check()
            now_ns = time.monotonic_ns() - origin_ns
            while ahead and ahead[0].begin_ns <= now_ns:
                self._begin(ahead.pop(0), origin_ns)
            span = next((span for span in spans if now_ns < span.until_ns), spans[-1])
            done_ns = min(now_ns, span.until_ns) - span.begin_ns
            self._live.tell(
                "warming up" if span is spans[0] else span.name,
                max(0, done_ns // 10**9),
                (span.until_ns - span.begin_ns) / 1e9,
            )
            time.sleep(_POLL_S)
        self._breaking.check()
        clients.check()
        self._record.bundle.event("phase", "end", t_ns=origin_ns + spans[-1].until_ns)

    def _begin(self, span: Span, origin_ns: int) -> None:
        for phase in PHASES:
            if span.name == phase:
                self._record.bundle.event("phase", phase, t_ns=origin_ns + span.begin_ns)
                self._record.reach(phase)

    def _await_serving(self, when: str) -> None:
        wait = Wait(
            self._cluster.nodes, self._drill.timeouts.serve_after_restart.s, self._record.tell
        )
        try:
            self._cluster.await_serving(wait)
        except SystemFailed as error:
            self._lab.check()
            down = [name for name, service in self._services.items() if not service.is_up]
            gone = f" ({listing(down)} ended)" if down else ""
            self._record.warn(f"Not every node served {when}{gone}. {error}")


def _spans(phases: object) -> list[Span]:
    spans = [Span("warmup", -round(WARMUP_S * 1e9), 0)]
    for name in PHASES:
        begin_ns = spans[-1].until_ns
        spans.append(Span(name, begin_ns, begin_ns + getattr(phases, name).ns))
    return spans
