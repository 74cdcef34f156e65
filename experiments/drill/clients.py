"""A drill's clients: open-loop readers and writers, and those who write the first objects."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.ledger import Ledger, Object
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.drill.timeline import Span
from wanlat.experiments.requests import (
    Row,
    Schedule,
    Sender,
    StoreApi,
    api_of,
    is_not_found,
    never_sent,
    row_of,
    spawn_on,
)
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster

Way = Literal["read", "write"]

FILL_OWNER = "filled"


@dataclass(frozen=True)
class Turn:
    """One request, before anything is known of it."""

    seq: int
    phase: str
    due_ns: int | None = None
    removes: bool = False


@dataclass(frozen=True)
class Load:
    """What the clients of a drill have in common."""

    lab: Lab
    cluster: Cluster
    ledger: Ledger
    seed: int
    object_bytes: int
    constant: Mapping[str, Any]
    """Columns that are the same in every row: ``system``, ``version``, ``topology``, ``rtt_ms``."""
    on_row: Callable[[Row], object]
    """Called from the clients' threads."""
    delete_ratio: float = 0.0
    """The share of a writer's requests that delete an object of its own."""

    @property
    def api(self) -> StoreApi:
        """What the cluster speaks. Raises UserError."""
        return api_of(self.cluster.api)

    def note(self, place: Place, way: Way, turn: Turn, key: str | None, came: Row) -> None:
        """Write down what came of a request."""
        self.on_row(
            {
                **came,
                **self.constant,
                "phase": turn.phase,
                "client": place.node,
                "drill_client": place.name,
                "target": place.target,
                "operation": way,
                "key": key,
                "placement": self.api.placement(self.cluster, place.target, key),
                "due_ns": turn.due_ns,
            }
        )


class PlacedSender(Sender):
    """Sends requests from a client's place, writes on the ledger, and a row for each."""

    def __init__(
        self, load: Load, place: Place, way: Way, deadline_ms: int, stop: threading.Event
    ) -> None:
        """Start its process."""
        self.api = load.api
        self._load, self._place, self._way = load, place, way
        self._who = {"client": place.name, "target": place.target}
        header = self.api.header(load.cluster, place.target, deadline_ms, load.object_bytes)
        super().__init__(spawn_on(load.lab, place.node), header, stop)

    def put(self, turn: Turn, what: Object, owner: str, left_ms: int) -> None:
        """Put an object, which ``owner`` may remove later."""
        number = self._load.ledger.put(what, **self._who, owner=owner)
        sample = self._send(turn, self.api.put(turn.seq, what, left_ms))
        self._load.ledger.complete(number, sample.outcome, sample.error)

    def remove(self, turn: Turn, owner: str, chance: random.Random, left_ms: int) -> bool:
        """Remove an object of the owner's; return whether there was any."""
        chosen = self._load.ledger.remove_one(owner, chance, **self._who)
        if chosen is None:
            return False
        number, what = chosen
        sample = self._send(turn, self.api.remove(turn.seq, what, left_ms))
        # A store that does not find what it has acknowledged may have removed a part of it.
        outcome = "unknown" if is_not_found(sample) else sample.outcome
        self._load.ledger.complete(number, outcome, sample.error)
        return True

    def get(self, turn: Turn, chance: random.Random, left_ms: int) -> None:
        """Get any object whose put was acknowledged, where there is one."""
        what = self._load.ledger.take_to_read(chance)
        if what is not None:
            try:
                self._send(turn, self.api.get(turn.seq, what, left_ms))
            finally:
                self._load.ledger.done_reading(what.key)

    def leave_out(self, turn: Turn) -> None:
        """Note that a request was due and is not sent."""
        writes = self.api.removes if turn.removes else self.api.puts
        endpoint = self.api.gets if self._way == "read" else writes
        row = never_sent(turn.seq, endpoint)
        self._load.note(self._place, self._way, turn, None, row)

    def _send(self, turn: Turn, request: Request) -> Sample:
        sample = self.ask(request)
        self._load.note(self._place, self._way, turn, request.key, row_of(sample))
        return sample


class Client:
    """The reader, or the writer, of one client of the drill."""

    def __init__(self, load: Load, place: Place, way: Way, schedule: Schedule) -> None:
        self.name = f"{place.name} {way}"
        self._load, self._place, self._way, self._schedule = load, place, way, schedule
        self._chance = random.Random(f"{load.seed}/{self.name}")
        self._next: Object | None = None
        self._described = 0

    def run(self, origin_ns: int, spans: Sequence[Span], stop: threading.Event) -> None:
        """Send every request that is due in these phases, and return when the last is done, or
        soon after ``stop`` is set.

        ``origin_ns`` (CLOCK_MONOTONIC) is the instant 0 of ``spans``. Raises ProbeFailed when
        oneshot cannot be kept alive, MachineError when the lab or the disk fails.
        """
        schedule = self._schedule
        ratio = self._load.delete_ratio if self._way == "write" else 0.0
        instants = [
            (origin_ns + due_ns, span.name)
            for span in spans
            for due_ns in schedule.instants(span.begin_ns, span.until_ns)
        ]
        turns = [
            (due_ns, Turn(seq, phase, due_ns, self._chance.random() < ratio))
            for seq, (due_ns, phase) in enumerate(instants)
        ]
        deadline_ms = max(1, schedule.deadline_ns // 1_000_000)
        with PlacedSender(self._load, self._place, self._way, deadline_ms, stop) as sender:

            def get_ready() -> None:
                sender.make_ready()
                # The hash of a large object takes time, so the next is described beforehand.
                if self._way == "write" and self._next is None:
                    key = sender.api.key(self._load.seed, self.name, self._described)
                    self._next = self._load.ledger.describe(key, self._load.object_bytes)
                    self._described += 1

            def send(turn: Turn, left_ms: int) -> None:
                if self._way == "read":
                    sender.get(turn, self._chance, left_ms)
                elif not (turn.removes and sender.remove(turn, self.name, self._chance, left_ms)):
                    assert self._next is not None
                    what, self._next = self._next, None
                    sender.put(turn, what, self.name, left_ms)

            schedule.follow(turns, send, sender.leave_out, stop, get_ready)


def fill(
    load: Load,
    place: Place,
    count: int,
    deadline_ms: int,
    on_progress: Callable[[int, int], object],
) -> None:
    """Put ``count`` objects through one client, several at a time, all of them on the ledger.

    What is not acknowledged is put again, the same object at the same key. ``on_progress`` gets how
    many are there, of how many. Rows have phase ``prepare`` and no due time. Raises ProbeFailed
    when an object is not acknowledged in a few attempts.
    """
    api, ledger = load.api, load.ledger
    spawn = spawn_on(load.lab, place.node)
    header = api.header(load.cluster, place.target, deadline_ms, load.object_bytes)
    api.make_ready(load.cluster, spawn, header)
    keys = (api.key(load.seed, FILL_OWNER, number) for number in range(count))
    objects = [ledger.describe(key, load.object_bytes) for key in keys]
    numbers = [ledger.put(each, client=place.name, target=place.target) for each in objects]

    def take(request: Request, sample: Sample) -> None:
        ledger.complete(numbers[request.seq], sample.outcome, sample.error)
        load.note(place, "write", Turn(request.seq, "prepare"), request.key, row_of(sample))
        on_progress(ledger.acknowledged, count)

    prepare(spawn, header, [api.put(seq, each) for seq, each in enumerate(objects)], take)
