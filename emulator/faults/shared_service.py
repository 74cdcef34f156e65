"""A node's service that several faults share: which of them hold it down or still.

Faults on one node may overlap. None of them sets the state of the process; each adds its hold or
takes it away, and the state follows from the holds that are there:

    somebody holds it down        there is no process
    else somebody holds it still  there is one, and it is stopped (SIGSTOP)
    else                          it runs
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wanlat.emulator import family
from wanlat.emulator.process import how_it_ended
from wanlat.topologies.errors import RunFailed

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process

_END_WITHIN_S = 30.0
"""After SIGKILL. What the kernel still writes to a disk for a process it writes to the end."""
_LOOK_EVERY_S = 0.0005


class FaultFailed(RunFailed):
    """A fault could not be applied, or not be undone: what was measured means nothing."""


class Service(Protocol):
    """A program that runs on one node and can be started again (`systems.nodes.NodeProcess`)."""

    @property
    def node(self) -> str:
        """Where it runs."""

    @property
    def process(self) -> Process | None:
        """The one that was started last."""

    def start(self, lab: Lab) -> None:
        """Start it anew."""

    def stop(self, how: int = ...) -> object:
        """Send a signal that ends it and what it started; its end is expected then."""


class SharedService:
    """One node's service. Whoever calls a method has its lock (`Scene.holding`)."""

    def __init__(self, lab: Lab, service: Service) -> None:
        self.lock = threading.RLock()
        self.node = service.node
        self._lab = lab
        self._service = service
        self._down: set[Hashable] = set()
        self._still: set[Hashable] = set()
        self._ended_by_us: Process | None = None
        self.when_started: list[Callable[[], None]] = []
        """What is called with the lock held once another process has been started."""

    @property
    def process(self) -> Process | None:
        """The process that was started last."""
        return self._service.process

    def check_runs(self) -> None:
        """Raise FaultFailed when there is no process and no fault is why."""
        if self._down:
            return
        if self.process is None:
            raise FaultFailed(f"Nothing has been started on {self.node} yet.")
        code = self.process.poll()
        if code is not None and self.process is not self._ended_by_us:
            raise FaultFailed(
                f"The process on {self.node} {how_it_ended(code)} by itself before. Its log has "
                "the reason."
            )

    def send_end(self, holder: Hashable, number: int = signal.SIGKILL) -> int:
        """Hold it down: send the signal that ends it. Return the instant before it was sent."""
        was_down = bool(self._down)
        self._down.add(holder)
        instant = time.monotonic_ns()
        if not was_down:
            self._ended_by_us = self.process
            self._service.stop(number)
        return instant

    def await_end(self, within_s: float = _END_WITHIN_S) -> int:
        """Return the instant at which it had ended, with all it started. Raises TimeoutError."""
        process = self.process
        if process is None:
            return time.monotonic_ns()
        deadline = time.monotonic() + within_s
        process.wait(within_s)
        instant = process.ended_ns or time.monotonic_ns()
        while family.left(self._proc, process.pid):
            if time.monotonic() > deadline:
                raise TimeoutError(f"What {process.name} started still runs after {within_s:g} s")
            time.sleep(_LOOK_EVERY_S)
            instant = time.monotonic_ns()
        return instant

    def has_ended(self, within_s: float) -> bool:
        """Wait so long at most; return whether it has ended, with all it started."""
        try:
            self.await_end(within_s)
        except TimeoutError:
            return False
        return True

    def end_what_is_left(self) -> None:
        """Send SIGKILL to what did not follow another signal."""
        if self.process is not None:
            self.process.send_signal_to_family(signal.SIGKILL)

    def up(self, holder: Hashable) -> None:
        """No longer hold it down: start it.

        It starts none while another holds it down. One that another holds still is stopped at once.
        """
        self._down.discard(holder)
        if self._down or self.process is None or self.process is not self._ended_by_us:
            return
        self._service.start(self._lab)
        for callback in self.when_started:
            callback()
        if self._still:
            self._signal(signal.SIGSTOP)

    def still(self, holder: Hashable) -> int:
        """Hold it still; return the instant at which all of it had been sent SIGSTOP.

        No signal stops sooner: a thread that runs is interrupted at once (signal(7)).
        """
        self._still.add(holder)
        return self._signal(signal.SIGSTOP) or time.monotonic_ns()

    def free(self, holder: Hashable) -> int | None:
        """No longer hold it still; return the instant of SIGCONT, None if it was not sent.

        It is not while another holds it still, nor where no process is.
        """
        had = holder in self._still
        self._still.discard(holder)
        return None if self._still or not had else self._signal(signal.SIGCONT)

    @property
    def _proc(self) -> Path:
        """The lab's /proc, as it is seen from here."""
        return Path(f"/proc/{self._lab.supervisor_pid}/root/proc")

    def _signal(self, number: int) -> int | None:
        process = self.process
        if process is None or process.poll() is not None:
            return None
        return process.send_signal_to_family(number)
