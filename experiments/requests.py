"""Requests to objects, and who sends them: one after another, or at instants that are due.

A client has one request in flight. One that is due while the one before it is on its way waits in
line, and is sent as soon as that is done, with what is left of its deadline, which counts from the
instant it was due. Where too little is left it is never sent, and has a row all the same. So a
store that stands still for three seconds spoils every request that was due in these, and not one
(no coordinated omission).
"""

from __future__ import annotations

import random
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from wanlat.emulator.lab import Lab
from wanlat.experiments.config.workloads import BUCKET
from wanlat.experiments.drill.ledger import Object
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.objects import ObjectApi
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Closing, Process, Spawn
from wanlat.probes.records import Sample
from wanlat.systems.engine.protocols import Operation
from wanlat.topologies.wording import listing

NOT_SENT = "not sent: an earlier request was still waiting"

T = TypeVar("T")
Row = dict[str, Any]
"""As the bundle's samples have it (docs/bundle.md)."""

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
    def of(cls, interval_ns: int, deadline_ns: int, *, seed: int, client: str) -> Schedule:
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

    def follow(
        self,
        due: Iterable[tuple[int, T]],
        send: Callable[[T, int], object],
        leave_out: Callable[[T], object],
        stop: threading.Event,
        get_ready: Callable[[], object] = lambda: None,
    ) -> None:
        """Send what is due at instants of CLOCK_MONOTONIC, until all is done or ``stop`` is set.

        ``send`` gets what is left of its deadline (ms). ``get_ready`` is called before each: what
        takes time is done before it is due.
        """
        took_ns = 0
        for due_ns, what in due:
            get_ready()
            # The kernel wakes it some 0.1 ms late on an idle machine, so nothing here spins.
            if stop.wait(max(0, due_ns - time.monotonic_ns()) / 1e9):
                return
            now_ns = time.monotonic_ns()
            left_ns = due_ns + self.deadline_ns - now_ns
            if left_ns < self.least_left_ns(took_ns):
                leave_out(what)
            else:
                send(what, max(1, left_ns // 1_000_000))
                took_ns = time.monotonic_ns() - now_ns


def row_of(sample: Sample, request: Request) -> Row:
    """Return what came of a request as columns."""
    row = {name: getattr(sample, name) for name in _COLUMNS}  # `asdict` takes ten times as long
    return {**row, "endpoint": request.called}


def unanswered(seq: int, endpoint: str, handed_ns: int, why: str) -> Sample:
    """Return the sample of a request of which nobody knows what came, since it was handed over."""
    known = {"seq": seq, "endpoint": endpoint, "start_ns": handed_ns, "error": why}
    took = {"elapsed_ns": time.monotonic_ns() - handed_ns, "outcome": "unknown"}
    return Sample(**{**_NOTHING, **known, **took})


def never_sent(seq: int, endpoint: str) -> Row:
    """Return what came of a request that was due and not sent."""
    return {**_NOTHING, "seq": seq, "endpoint": endpoint, "outcome": "fail", "error": NOT_SENT}


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
"""How an error begins of an answer that went well and says that there is no such object."""
_POLL_MS = 50
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
    if sample.grpc_status is None:
        return sample.status == _HTTP_NOT_FOUND
    error = sample.error or ""
    said = sample.grpc_status == _GRPC_NOT_FOUND or "KeyNotFound" in error
    return said or error.startswith(_NOT_FOUND)


@dataclass
class NotFoundTracker:
    """What one system's reads did not find though preparing it was acknowledged: told, not hidden.

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
        """Say what was not found; nothing when all was."""
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
        self.make_ready()

    def make_ready(self) -> Oneshot:
        """Have a process that runs, so that the next request need not wait for one."""
        if self._oneshot is None:
            self._oneshot = Oneshot(self._spawn, self._header)
        return self._oneshot

    def ask(self, request: Request) -> Sample:
        """Send a request and return its sample.

        It is `unknown` when the process dies or ``stop`` is set meanwhile: it may have left at any
        time since it was handed over. Raises ProbeFailed when one process after another dies, and
        MachineError when the lab has ended.
        """
        oneshot, handed_ns = self.make_ready(), time.monotonic_ns()
        try:
            oneshot.send(request)
            if self._is_answered(oneshot):
                sample = oneshot.receive()
                self._deaths = 0
                return sample
            why = "abandoned: the run was stopped"
        except ProbeFailed as error:
            self._deaths += 1
            if self._deaths >= _DEATHS:
                raise
            why = f"the probe ended: {error}"
        self.close()
        return unanswered(request.seq, request.endpoint, handed_ns, why)

    def close(self) -> None:
        """End the process. May be called again, as may ``ask``."""
        oneshot, self._oneshot = self._oneshot, None
        if oneshot is not None:
            oneshot.close()

    def _is_answered(self, oneshot: Oneshot) -> bool:
        """Wait for an answer, or for the end of who awaits it; False when told to stop."""
        poll = select.poll()
        poll.register(oneshot.fileno(), select.POLLIN)
        while not poll.poll(_POLL_MS):
            if self._stop.is_set():
                return False
            if oneshot.is_lost():
                return True  # receiving will say so
        return True
