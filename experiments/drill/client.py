"""The reader or the writer of a drill's client: by its schedule, one request in flight.

A request that is due while the one before it is on its way waits in line, and is sent as soon as
that is done, with what is left of its deadline, which counts from the instant it was due. Where too
little is left (`Schedule.least_left_ns`) it is never sent, and has a row all the same. So a store
that stands still for three seconds spoils every request that was due in these, and not one.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.api import StoreApi, api_of
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.objects import Object
from wanlat.experiments.drill.prober import Prober, Unanswered
from wanlat.experiments.drill.rows import OnRow, Place, Way, never_answered, never_sent, sampled
from wanlat.experiments.drill.schedule import Schedule, Span
from wanlat.probes.plan import Request
from wanlat.probes.records import Outcome
from wanlat.systems.base import Cluster

NOT_SENT = "not sent: an earlier request was still waiting"


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
    on_row: OnRow
    """Called from the clients' threads."""
    delete_ratio: float = 0.0
    """The share of a writer's requests that delete an object of its own."""

    @property
    def api(self) -> StoreApi:
        """What the cluster speaks. Raises UserError."""
        return api_of(self.cluster.api)


@dataclass(frozen=True)
class _Turn:
    """One request, before anything is known of it."""

    seq: int
    due_ns: int
    phase: str
    removes: bool


class Client:
    """The reader, or the writer, of one client of the drill."""

    def __init__(self, load: Load, place: Place, way: Way, schedule: Schedule) -> None:
        self.name = f"{place.name} {way}"
        self.place = place
        self.way = way
        self._load = load
        self._api = load.api
        self._ledger = load.ledger
        self._schedule = schedule
        self._chance = random.Random(f"{load.seed}/{self.name}")
        self._next: Object | None = None
        self._described = 0

    def run(self, origin_ns: int, spans: Sequence[Span], stop: threading.Event) -> None:
        """Send every request that is due in these phases, and return when the last is done, or
        soon after ``stop`` is set.

        ``origin_ns`` (CLOCK_MONOTONIC) is the instant 0 of ``spans``. Raises ProbeFailed when
        oneshot cannot be kept alive, MachineError when the lab or the disk fails.
        """
        deadline_ns = self._schedule.deadline_ns
        header = self._api.header(
            self._load.cluster, self.place.target, _ms(deadline_ns), self._load.object_bytes
        )
        took_ns = 0
        with Prober(self._load.lab, self.place.node, header, stop) as prober:
            for turn in self._turns(origin_ns, spans):
                # What takes time is done before it is due: a process, the hash of a large object.
                prober.make_ready()
                if self.way == "write":
                    self._describe_next()
                if not wait_until(turn.due_ns, stop):
                    return
                now_ns = time.monotonic_ns()
                left_ns = turn.due_ns + deadline_ns - now_ns
                if left_ns < self._schedule.least_left_ns(took_ns):
                    self._leave_out(turn)
                else:
                    self._send(turn, prober, _ms(left_ns))
                    took_ns = time.monotonic_ns() - now_ns

    def _turns(self, origin_ns: int, spans: Sequence[Span]) -> Sequence[_Turn]:
        ratio = self._load.delete_ratio if self.way == "write" else 0.0
        return [
            _Turn(seq, origin_ns + offset_ns, phase, self._chance.random() < ratio)
            for seq, (offset_ns, phase) in enumerate(self._schedule.due(spans))
        ]

    def _describe_next(self) -> Object:
        """Return the next object to put, the same until it is put."""
        if self._next is None:
            key = self._api.key(self._load.seed, self.name, self._described)
            self._next = self._ledger.describe(key, self._load.object_bytes)
            self._described += 1
        return self._next

    def _leave_out(self, turn: _Turn) -> None:
        if self.way == "read":
            endpoint = self._api.gets
        else:
            endpoint = self._api.removes if turn.removes else self._api.puts
        self._note(turn, None, never_sent(turn.seq, endpoint, NOT_SENT))

    def _send(self, turn: _Turn, prober: Prober, left_ms: int) -> None:
        if self.way == "read":
            self._read(turn, prober, left_ms)
        elif not (turn.removes and self._remove(turn, prober, left_ms)):
            self._write(turn, prober, left_ms)

    def _read(self, turn: _Turn, prober: Prober, left_ms: int) -> None:
        what = self._ledger.take_to_read(self._chance)
        if what is None:
            return  # no put was ever acknowledged, so there is nothing to ask for
        try:
            self._ask(turn, prober, what, self._api.get(turn.seq, what, "measure", left_ms))
        finally:
            self._ledger.done_reading(what.key)

    def _write(self, turn: _Turn, prober: Prober, left_ms: int) -> None:
        what, self._next = self._describe_next(), None
        request = self._api.put(turn.seq, what, "measure", left_ms)
        place = self.place
        number = self._ledger.put(what, client=place.name, target=place.target, owner=self.name)
        self._ledger.complete(number, *self._ask(turn, prober, what, request))

    def _remove(self, turn: _Turn, prober: Prober, left_ms: int) -> bool:
        """Return whether there was anything to remove."""
        place = self.place
        chosen = self._ledger.remove_one(
            self.name, self._chance, client=place.name, target=place.target
        )
        if chosen is None:
            return False
        number, what = chosen
        request = self._api.remove(turn.seq, what, "measure", left_ms)
        self._ledger.complete(number, *self._ask(turn, prober, what, request))
        return True

    def _ask(
        self, turn: _Turn, prober: Prober, what: Object, request: Request
    ) -> tuple[Outcome, str | None]:
        """Send it, note what came of it, and return what that means to the ledger."""
        try:
            sample = prober.ask(request)
        except Unanswered as gone:
            why = str(gone)
            now_ns = time.monotonic_ns()
            came = never_answered(turn.seq, request.endpoint, why, gone.handed_ns, now_ns)
            self._note(turn, what.key, came)
            return "unknown", why
        self._note(turn, what.key, sampled(sample))
        if request.endpoint == self._api.removes and self._api.is_not_found(sample):
            # A store that does not find what it has acknowledged may have removed a part of it.
            return "unknown", sample.error
        return sample.outcome, sample.error

    def _note(self, turn: _Turn, key: str | None, came: dict[str, Any]) -> None:
        load, place = self._load, self.place
        placement = self._api.placement(load.cluster, place.target, key) if key else "unknown"
        load.on_row(
            place.row(
                load.constant,
                came,
                phase=turn.phase,
                way=self.way,
                key=key,
                placement=placement,
                due_ns=turn.due_ns,
            )
        )


def wait_until(instant_ns: int, stop: threading.Event) -> bool:
    """Sleep until an instant of CLOCK_MONOTONIC, or until ``stop`` is set; return False then.

    The kernel wakes a thread that waits so some 0.1 ms late on an idle machine, which is why
    nothing here spins.
    """
    left_ns = instant_ns - time.monotonic_ns()
    if left_ns > 0:
        return not stop.wait(left_ns / 1e9)
    return not stop.is_set()


def _ms(ns: int) -> int:
    return max(1, ns // 1_000_000)
