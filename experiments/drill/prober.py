"""One oneshot process on a node that asks one node, and is replaced when it dies."""

from __future__ import annotations

import select
import threading
import time

from wanlat.emulator.lab import Lab
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Closing, Process, Spawn
from wanlat.probes.records import Sample

_POLL_MS = 50
"""How soon a stop is heeded while a request is on its way."""
_DEATHS = 3


class Unanswered(Exception):
    """Nobody knows what came of a request: whoever sent it is gone."""

    def __init__(self, handed_ns: int, why: str) -> None:
        super().__init__(why)
        self.handed_ns = handed_ns
        """When the request was handed over (CLOCK_MONOTONIC)."""


def spawn_on(lab: Lab, node: str) -> Spawn:
    """Return what starts programs on a node."""

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return lab.spawn(node, argv, stdin=stdin, stdout=stdout, stderr=stderr)

    return spawn


class Prober(Closing):
    """Asks one request after another. A context manager; of one thread."""

    def __init__(self, lab: Lab, at: str, header: Header, stop: threading.Event) -> None:
        """Start it on node ``at``. When ``stop`` is set it waits for no answer any more."""
        self._spawn = spawn_on(lab, at)
        self._header = header
        self._stop = stop
        self._deaths = 0
        self._oneshot: Oneshot | None = None
        self.make_ready()

    def make_ready(self) -> None:
        """Have a process that runs, so that the next request need not wait for one."""
        if self._oneshot is None:
            self._oneshot = Oneshot(self._spawn, self._header)

    def ask(self, request: Request) -> Sample:
        """Send a request and wait for its sample.

        Raises Unanswered when the process dies or ``stop`` is set meanwhile, ProbeFailed when one
        process after another dies, and MachineError when the lab has ended.
        """
        self.make_ready()
        assert self._oneshot is not None
        handed_ns = time.monotonic_ns()
        try:
            self._oneshot.send(request)
            self._wait(self._oneshot, handed_ns)
            sample = self._oneshot.receive()
        except ProbeFailed as error:
            self.close()
            self._deaths += 1
            if self._deaths >= _DEATHS:
                raise
            raise Unanswered(handed_ns, f"the probe ended: {error}") from error
        self._deaths = 0
        return sample

    def close(self) -> None:
        """End the process. May be called again, as may ``ask``."""
        oneshot, self._oneshot = self._oneshot, None
        if oneshot is not None:
            oneshot.close()

    def _wait(self, oneshot: Oneshot, handed_ns: int) -> None:
        poll = select.poll()
        poll.register(oneshot.fileno(), select.POLLIN)
        while not poll.poll(_POLL_MS):
            if self._stop.is_set():
                self.close()
                raise Unanswered(handed_ns, "abandoned: the drill was stopped")
            if oneshot.is_lost():
                return  # receiving will say so
