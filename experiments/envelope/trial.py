"""One trial: a network, users on it, a link that is cut for a moment, and what of a promise broke.

Users send open-loop, each with one request in flight, so many that none has to wait for the one
before it within its deadline. Every write is on the ledger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from wanlat.bundle.documents import DECIDING, NOT_SENT
from wanlat.bundle.outcomes import are_too_many, why_too_many
from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.clients import Client, Load, PlacedSender
from wanlat.experiments.drill.model import Way
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.drill.timeline import Span
from wanlat.experiments.kinds.envelope import PromiseSpec
from wanlat.experiments.requests import Row, Schedule, Workers
from wanlat.topologies.errors import MachineError

WINDOW, CUT, BACK = DECIDING
SETTLE, OVER, HEALED = "settle", "over", "healed"
"""Phases of a trial, in this order: SETTLE, the network is new, and connections get to know it;
WINDOW, what is promised; OVER, until that is answered; CUT, a link is cut; HEALED, it is whole
again; BACK, as promised at the latest.
"""
_WAYS: tuple[Way, Way] = ("read", "write")
_HEAD_START_S = 0.2
"""From when users are ready to their first request."""
_POLL_S = 0.05


@dataclass
class Users(Closing):
    """Readers and writers on the client's node, who keep a promise's rate while they are sent."""

    shared: Load
    """What is the same in every trial."""
    place: Place
    """Where they are; their names begin with its."""
    promise: PromiseSpec
    _sent: int = field(default=0, init=False)
    _never: threading.Event = field(default_factory=threading.Event, init=False)
    _senders: dict[tuple[int, Way], PlacedSender] = field(default_factory=dict, init=False)

    def close(self) -> None:
        """End their processes. May be called again."""
        self._never.set()
        for sender in self._senders.values():
            sender.close()

    def load(self, constant: Mapping[str, Any], take: Callable[[Row], object]) -> Load:
        """Return what users have in common in one trial."""
        shared = self.shared
        return replace(shared, constant={**shared.constant, **constant}, on_row=take)

    def _sender(self, number: int, way: Way, load: Load, place: Place) -> PlacedSender:
        """Return who sends for a user: a process that has been there since the first trial."""
        deadline_ms = max(1, self.promise.deadline.ns // 10**6)
        sender = self._senders.get((number, way))
        if sender is None:
            sender = PlacedSender(load, place, way, deadline_ms, self._never)
            self._senders[number, way] = sender
        sender.is_of(load, place)
        sender.make_ready()
        return sender

    @contextmanager
    def sending(
        self, phases: Sequence[tuple[str, float]], constant: Mapping[str, Any], *, few: bool = False
    ) -> Iterator[Sending]:
        """Have them send through phases of so many seconds, from when the block begins.

        ``few``: one reader and one writer alone, who send all the faster.
        """
        rows: list[Row] = []

        def take(row: Row) -> None:
            rows.append(row)
            self.shared.on_row(row)

        self._sent += 1  # they, and so the keys of their objects, have names of their own
        load, stop, spans = self.load(constant, take), threading.Event(), list[Span]()
        for name, seconds in phases:
            begin_ns = spans[-1].until_ns if spans else 0
            spans.append(Span(name, begin_ns, begin_ns + round(seconds * 1e9)))
        deadline_ns, pairs = self.promise.deadline.ns, 1 if few else self.promise.pairs
        interval_ns = spans[0].until_ns // 4 if few else deadline_ns
        users: list[tuple[Client, PlacedSender]] = []
        for number, way in product(range(pairs), _WAYS):
            name = f"{self.place.name}{self._sent}-{number + 1}"
            place = replace(self.place, name=name)
            sender = self._sender(number, way, load, place)
            schedule = Schedule.of_client(
                interval_ns, deadline_ns, seed=self.shared.seed, client=f"{name} {way}"
            )
            client = Client(load, place, way, schedule)
            users.append((client, sender))
        origin_ns = time.monotonic_ns() + round(_HEAD_START_S * 1e9)
        work = {
            client.name: partial(client.run, origin_ns, spans, stop, sender)
            for client, sender in users
        }
        sending = Sending(self.shared.lab, Workers(work, stop), stop, origin_ns, rows)
        sending.users.start()
        try:
            sending.wait_until(0.0)
            yield sending
        finally:
            stop.set()
            sending.users.join()
        sending.users.check()


class Outcome(NamedTuple):
    """What came of a trial."""

    since_ns: int
    """When the promise began to have to hold."""
    broken: str | None
    """What of it broke, if anything."""
    is_disturbed: bool = False
    """This machine sent requests too late, whatever came of them."""


@dataclass
class Sending:
    """Users that are sending; instants are in seconds since their first phase began."""

    lab: Lab
    users: Workers
    stop: threading.Event
    origin_ns: int
    rows: list[Row]

    def wait_until(self, instant_s: float) -> None:
        """Wait until an instant, as long as the lab lasts and no user fails."""
        until_ns = self.origin_ns + round(instant_s * 1e9)
        while (left_ns := until_ns - time.monotonic_ns()) > 0:
            time.sleep(min(left_ns / 1e9, _POLL_S))
            self.lab.check()
            self.users.check()

    def finish(self) -> None:
        """Wait until all is sent and answered."""
        while not self.users.join(_POLL_S):
            self.lab.check()
        self.users.check()

    def broken(self, phase: str, share: float) -> str | None:
        """Describe what of a phase that is over was not as promised; None: nothing.

        Raises MachineError where this machine could not send too many of its requests.
        """
        rows = [row for row in [*self.rows] if row["phase"] == phase]
        errors = [row["error"] for row in rows if row["outcome"] == NOT_SENT]
        if are_too_many(len(errors), len(rows)):
            raise MachineError(why_too_many(len(errors), len(rows), errors[-1]))
        came = [row["outcome"] == "ok" for row in rows if row["outcome"] != NOT_SENT]
        if came and sum(came) >= share * len(came):
            return None
        return f"{sum(came)} of {len(came)} requests were answered in time ({phase})"

    def outcome(self, phase: str, since_ns: int, share: float, late_ns: float) -> Outcome:
        """Return what came of a phase that is over."""
        return Outcome(since_ns, self.broken(phase, share), self._was_sent_late(phase, late_ns))

    def _was_sent_late(self, phase: str, late_ns: float) -> bool:
        """Whether this machine sent a request of a phase so late.

        Not those of a user who was still waiting for an answer: that was the cluster's.
        """
        free_ns: dict[tuple[str, Way], int] = {}
        for row in sorted(self.rows, key=lambda row: row["start_ns"] or 0):
            user, start_ns = (row["drill_client"], row["operation"]), row["start_ns"] or 0
            is_late = start_ns - max(row["due_ns"], free_ns.get(user, 0)) > late_ns
            free_ns[user] = start_ns + (row["elapsed_ns"] or 0)
            if row["phase"] == phase and is_late:
                return True
        return False

    def is_well(self, since_s: float, users: int, promise: PromiseSpec) -> bool:
        """Wait for all that is due in a deadline's time; return whether all of it was answered."""
        deadline_s, until_s = promise.deadline.s, since_s + promise.recovery.s
        if since_s + deadline_s > until_s:
            return False
        self.wait_until(since_s + 2 * deadline_s)
        since_ns = self.origin_ns + round(since_s * 1e9)
        until_ns = since_ns + promise.deadline.ns
        came = [row["outcome"] for row in [*self.rows] if since_ns <= row["due_ns"] < until_ns]
        return len(came) >= users and set(came) - {NOT_SENT} == {"ok"}


def run_trial(
    users: Users, constant: Mapping[str, Any], settle_s: float, link: str | None, late_ns: float
) -> Outcome:
    """Put the promise to the test on the network as it is, after so many seconds at work on it.

    ``link``: what is cut for a moment; None: nothing. ``late_ns``: by how much this machine may
    send a request too late. A trial ends as soon as it is lost. At work because TCP takes a round
    trip that has grown for a loss, sends everything again and then slowly: a cluster that has
    always been so far apart does not.
    """
    promise, cluster = users.promise, users.shared.cluster
    deadline_s, share = promise.deadline.s, float(promise.share)
    over_s = settle_s + promise.window.s + deadline_s
    cut_s = promise.cut.s if link else 0.0
    phases = [(SETTLE, settle_s), (WINDOW, promise.window.s), (OVER, deadline_s)]
    if cut_s:
        healed = [(HEALED, promise.recovery.s)] if promise.recovery.ns else []
        phases += [(CUT, cut_s), *healed, (BACK, deadline_s)]
    with users.sending(phases, constant) as sending:
        since_ns = sending.origin_ns + round(settle_s * 1e9)
        sending.wait_until(settle_s)
        leader = cluster.leader()
        sending.wait_until(over_s)
        came = sending.outcome(WINDOW, since_ns, share, late_ns)
        if came.broken is not None:
            return came
        if promise.leader_stays and leader != (now := cluster.leader()):
            return Outcome(since_ns, f"{leader or 'no node'} led, then {now or 'no node'}")
        if not (link and cut_s):
            return came
        with users.shared.lab.cutting(link, origin="envelope"):
            sending.wait_until(over_s + cut_s)
        if sending.is_well(over_s + cut_s, 2 * promise.pairs, promise):
            return Outcome(since_ns, None)
        sending.finish()
        return sending.outcome(BACK, since_ns, share, late_ns)
