"""Requests to objects, the instants at which they are due, and who sends them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from wanlat.bundle.outcomes import EXPIRED
from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.emulator.syscalls import wait_readable
from wanlat.experiments.config.workloads import BUCKET
from wanlat.experiments.drill.ledger import Object
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.header import Header
from wanlat.probes.objects import ObjectApi
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import Request
from wanlat.probes.process import Process, Spawn
from wanlat.probes.records import Outcome, Sample
from wanlat.systems.engine.protocols import Operation
from wanlat.topologies.wording import listing

Row = dict[str, Any]
"""As the bundle's samples have it (docs/reference/bundle.md)."""

_COLUMNS = tuple(field.name for field in fields(Sample))
_COUNTS = ("object_bytes", "retransmits", "out_of_order", "acks_sent", "rtt_us", "longest_gap_ns")
_NOTHING: Row = {
    **dict.fromkeys(_COLUMNS),
    **dict.fromkeys((*_COUNTS, "reads"), 0),
    **{"new_connection": False, "phase": "measure"},
}
"""What is known of a request that no sample came of."""


@dataclass(frozen=True)
class Schedule:
    """One request every so often, from an offset of the client's own on.

    Each must be answered ``deadline_ns`` after it was due.
    """

    interval_ns: int
    offset_ns: int
    deadline_ns: int

    @classmethod
    def of_client(cls, interval_ns: int, deadline_ns: int, *, seed: int, client: str) -> Schedule:
        """Return a client's schedule, its offset drawn, so that clients do not beat together."""
        offset_ns = random.Random(f"{seed}/{client}/offset").randrange(interval_ns)
        return cls(interval_ns, offset_ns, deadline_ns)

    def instants(self, begin_ns: int, until_ns: int) -> range:
        """Return the instants between two at which a request is due."""
        first = -(-(begin_ns - self.offset_ns) // self.interval_ns)
        return range(self.offset_ns + first * self.interval_ns, until_ns, self.interval_ns)

    def least_left_ns(self, took_ns: int) -> int:
        """Return the time that a request must have left to be sent, when the one before it took
        ``took_ns``.

        Half of its deadline; and all of it, when the one before took more than half. A client that
        lags by almost a whole deadline would otherwise send each request with so little time left
        that it cannot be answered, even by a store that is well again or only slow, and lag so for
        ever: the client's own doing, and not the store's.
        """
        half_ns = self.deadline_ns // 2
        return half_ns if took_ns < half_ns else max(half_ns, self.deadline_ns - self.interval_ns)

    def left_ms(self, due_ns: int, now_ns: int, took_ns: int) -> int | None:
        """Return what is left of a request's deadline; None when that is too little to send it."""
        left_ns = due_ns + self.deadline_ns - now_ns
        return None if left_ns < self.least_left_ns(took_ns) else max(1, left_ns // 1_000_000)


def row_of(sample: Sample, request: Request) -> Row:
    """Return what came of a request as columns."""
    row = {name: getattr(sample, name) for name in _COLUMNS}  # `asdict` takes ten times as long
    return {**row, "endpoint": request.called}


def unanswered(
    seq: int, endpoint: str, handed_ns: int, why: str, outcome: Outcome = "unknown"
) -> Sample:
    """Return the sample of a request that was handed over, without a report of the probe."""
    known = {"seq": seq, "endpoint": endpoint, "start_ns": handed_ns, "error": why}
    took = {"elapsed_ns": time.monotonic_ns() - handed_ns, "outcome": outcome}
    return Sample(**{**_NOTHING, **known, **took})


def expired(seq: int, endpoint: str) -> Row:
    """Return what came of a request that was due, and waited for others until it was too late."""
    return {**_NOTHING, "seq": seq, "endpoint": endpoint, "outcome": "fail", "error": EXPIRED}


class Workers:
    """Threads that work beside each other. One that fails stops them all."""

    def __init__(self, work: Mapping[str, Callable[[], object]], stop: threading.Event) -> None:
        """``work``: what each does, by its name. It ends soon after ``stop`` is set, which is done
        when one fails.
        """
        self._stop = stop
        self._errors: list[BaseException] = []
        self._threads = [
            # An interpreter that ends does not wait for it.
            threading.Thread(target=self._run, args=(what,), name=name, daemon=True)
            for name, what in work.items()
        ]

    def start(self) -> None:
        """Start them all."""
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float = threading.TIMEOUT_MAX) -> bool:
        """Wait for them to be done; return whether they are."""
        until_s = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.ident is not None:  # of one that was never started there is no end
                thread.join(max(0.0, until_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def check(self) -> None:
        """Raise what the first of them failed with, if one did."""
        if self._errors:
            raise self._errors[0]

    def run(self) -> None:
        """Start them, wait until all have ended, and raise what one failed with.

        They are stopped when the caller is interrupted, so that none outlives the call.
        """
        try:
            self.start()
            self.join()
        except BaseException:
            self._stop.set()
            self.join()
            raise
        self.check()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)
            self._stop.set()


_HTTP_NOT_FOUND = 404
_GRPC_NOT_FOUND = 5
_NOT_FOUND = ("not found", "wrong answer: [false]")
"""How an error begins of an answer that went well that there is no such object."""
POLL_MS = 50
"""How soon a stop is heeded while a request is on its way."""
_DEATHS = 3


def on_object(
    api: ObjectApi, does: Operation, seq: int, what: Object, deadline_ms: int | None = None
) -> Request:
    """Return the request that does this to an object; a read is ok if it brings that one."""
    return api.request(
        does,
        seq,
        what.key,
        bucket=BUCKET,
        object_bytes=what.object_bytes,
        body_seed=what.body_seed,
        deadline_ms=deadline_ms,
    )


def is_not_found(sample: Sample) -> bool:
    """Did the store answer that there is no such object (or no bucket that it could be in)?"""
    if sample.status is not None and sample.grpc_status is None:
        return sample.status == _HTTP_NOT_FOUND
    error = sample.error or ""
    is_named = sample.grpc_status == _GRPC_NOT_FOUND or "KeyNotFound" in error
    return is_named or (sample.outcome == "fail" and error.startswith(_NOT_FOUND))


@dataclass
class NotFoundTracker:
    """What one system's reads did not find though preparing it was acknowledged.

    A plan reads only what was prepared, and nothing is measured before all of it is acknowledged.
    """

    reads: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)

    def take(self, request: Request, sample: Sample) -> bool:
        """Count a sample if its object was not found; return whether it was counted."""
        is_read = request.does in ("read", "exists") and sample.outcome == "fail"
        if request.key is None or not (is_read and is_not_found(sample)):
            return False
        self.reads[request.called] += 1
        self.keys[request.key] = None
        return True

    def remarks(self) -> list[str]:
        """Describe what was not found; nothing when all was."""
        counted = listing(f"{count} of {name}" for name, count in sorted(self.reads.items()))
        text = (
            f"{counted} did not find objects whose writing had been acknowledged "
            f"({listing(self.keys, at_most=3)}). They are samples with the outcome `fail`."
        )
        return [text] if self.keys else []


def spawn_on(lab: Lab, node: str) -> Spawn:
    """Return what starts programs on a node."""

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return lab.spawn(node, argv, stdin=stdin, stdout=stdout, stderr=stderr)

    return spawn


class Sender(Closing):
    """One oneshot process, which is replaced when it dies: one request after another.

    A context manager; of one thread.
    """

    def __init__(self, spawn: Spawn, header: Header, stop: threading.Event) -> None:
        """Start it. When ``stop`` is set it waits for no answer any more."""
        self._spawn = spawn
        self._header = header
        self._stop = stop
        self._deaths = 0
        self._oneshot: Oneshot | None = None
        self._pending: tuple[Request, int]
        self.make_ready()

    def make_ready(self) -> Oneshot:
        """Have a process that runs, so that the next request need not wait for one."""
        if self._oneshot is None:
            self._oneshot = Oneshot(self._spawn, self._header)
        return self._oneshot

    def exchange(self, request: Request) -> Sample:
        """Send a request and return its sample; raises as ``take``."""
        self.hand_over(request)
        while not wait_readable([self.fileno()], POLL_MS / 1000) and not self.is_lost():
            if self.is_stopped():
                return self.give_up()
        return self.take()

    def hand_over(self, request: Request) -> None:
        """Have a request sent. Raises MachineError when the lab has ended."""
        oneshot = self.make_ready()
        self._pending = request, time.monotonic_ns()
        with suppress(ProbeFailed):  # `take` says so
            oneshot.send(request)

    def fileno(self) -> int:
        """Return the descriptor on which the answer arrives."""
        return self.make_ready().fileno()

    def is_lost(self) -> bool:
        """Has the process ended, or been silent for longer than a request can take?"""
        return self.make_ready().is_lost()

    def is_stopped(self) -> bool:
        """Is no answer waited for any more?"""
        return self._stop.is_set()

    def take(self) -> Sample:
        """Return the sample of what was handed over, once it is there or will never be.

        It is `unknown` when the process dies: it may have left at any time since it was read. One
        that was not read is `not_sent`. Raises ProbeFailed when one process after another dies.
        """
        oneshot = self.make_ready()
        try:
            sample = oneshot.receive()
        except ProbeFailed as error:
            self._deaths += 1
            if self._deaths >= _DEATHS:
                raise
            outcome: Outcome = "not_sent" if oneshot.is_unread() else "unknown"
            return self._unanswered(f"the probe ended: {error}", outcome)
        self._deaths = 0
        return sample

    def give_up(self) -> Sample:
        """Wait for no answer, and return what is known: `unknown`."""
        return self._unanswered("abandoned: the run was stopped")

    def close(self) -> None:
        """End the process. May be called again, as may ``exchange``."""
        oneshot, self._oneshot = self._oneshot, None
        if oneshot is not None:
            oneshot.close()

    def _unanswered(self, why: str, outcome: Outcome = "unknown") -> Sample:
        request, handed_ns = self._pending
        self.close()
        return unanswered(request.seq, request.endpoint, handed_ns, why, outcome)
