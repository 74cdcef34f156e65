"""Requests that are due at instants, whatever becomes of the ones before: clients of drills, and
the probe client beside a load.

A client has one request in flight. One that is due while the one before it is on its way waits in
line, and is sent as soon as that is done, with what is left of its deadline, which counts from the
instant it was due. Where too little is left it is never sent, and has a row all the same. So a
store that stands still for three seconds spoils every request that was due in these, and not one
(no coordinated omission).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from wanlat.probes.records import Sample

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


def row_of(sample: Sample) -> Row:
    """Return what came of a request as columns."""
    return {name: getattr(sample, name) for name in _COLUMNS}  # `asdict` takes ten times as long


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
