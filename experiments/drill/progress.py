"""What a person sees while a drill runs: the phase, what is broken, and how many requests do."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from wanlat.experiments.session import Report

WINDOW_S = 5.0


@dataclass(frozen=True)
class _Done:
    at_s: float
    operation: str
    ok: bool


class Live:
    """The phases of a drill as one line that is told anew now and then.

    ``every_s`` is how often at least; a new phase, and a fault's beginning and end, are told at
    once. Rows and faults may come from any thread; ``tell`` is for one.
    """

    def __init__(
        self,
        report: Report,
        name: str,
        every_s: float,
        window_s: float = WINDOW_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._name = name
        self._every_s = every_s
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()
        self._done: deque[_Done] = deque()
        self._faults: dict[int, str] = {}
        self._told: tuple[str, tuple[str, ...]] | None = None
        self._told_s = float("-inf")

    def row(self, operation: str, outcome: str) -> None:
        """Count a request that is over."""
        with self._lock:
            self._done.append(_Done(self._clock(), operation, outcome == "ok"))

    def broken(self, fault: int, label: str) -> None:
        """Note that a fault is in force."""
        with self._lock:
            self._faults[fault] = label

    def mended(self, fault: int) -> None:
        """Note that a fault is over."""
        with self._lock:
            self._faults.pop(fault, None)

    def tell(self, phase: str, done_s: float, total_s: float) -> None:
        """Tell how it is now, if it is time."""
        with self._lock:
            faults = tuple(self._faults.values())
            rates = self._rates()
        now = self._clock()
        news = (phase, faults)
        if news == self._told and now - self._told_s < self._every_s:
            return
        self._told, self._told_s = news, now
        broken = ", ".join(faults) if faults else "nothing broken"
        self._report(f"{self._name}: {phase}", done_s, total_s, f"{broken}; {rates}")

    def _rates(self) -> str:
        oldest = self._clock() - self._window_s
        while self._done and self._done[0].at_s < oldest:
            self._done.popleft()
        return f"{self._rate('read')}, {self._rate('write')} in the last {self._window_s:g} s"

    def _rate(self, operation: str) -> str:
        every = [done for done in self._done if done.operation == operation]
        if not every:
            return f"no {operation} answered"
        return f"{operation}s {sum(done.ok for done in every)} of {len(every)} ok"
