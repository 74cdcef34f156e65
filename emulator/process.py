"""A process inside a lab, as its owner outside sees it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable

from wanlat.topologies.errors import MachineError


class Process:
    """A process inside a lab. ``pid`` is its number there."""

    def __init__(
        self,
        pid: int,
        name: str,
        signal_to: Callable[[int, int], int],
        fate: Callable[[], str],
        signal_to_family: Callable[[int, int, bool], int],
    ) -> None:
        self.pid = pid
        self.name = name
        self.ended_ns: int | None = None
        self._signal_to = signal_to
        self._signal_to_family = signal_to_family
        self._fate = fate
        self._code: int | None = None
        self._ended = threading.Event()
        self._callbacks: list[Callable[[Process], None]] = []

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or None while it runs."""
        return self._code

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit code. Raises TimeoutError, or MachineError when the lab ends first."""
        if not self._ended.wait(timeout_s):
            raise TimeoutError(f"{self.name} still runs after {timeout_s} s")
        if self._code is None:
            raise MachineError(f"The lab ended while {self.name} was running. {self._fate()}")
        return self._code

    def when_ended(self, callback: Callable[[Process], None]) -> None:
        """Have ``callback`` called once the process has ended, from another thread.

        At once, if it has. The callback may abort the lab but ask it nothing.
        """
        self._callbacks.append(callback)
        if self._ended.is_set():
            self._call_back()

    def send_signal(self, number: int) -> int:
        """Send a signal; return the CLOCK_MONOTONIC instant (ns) at which it was sent."""
        return self._signal_to(self.pid, int(number))

    def send_signal_to_all(self, number: int) -> int:
        """Send a signal to the process and to what it has started, as a terminal's Ctrl-C does.

        What has made itself a session or group of its own is left out.
        """
        return self._signal_to(-self.pid, int(number))

    def send_signal_to_family(self, number: int) -> int:
        """Send a signal to the process and to all that it has started, sessions of their own too.

        Once it has ended: to who is left of its session. SIGKILL and SIGSTOP miss nobody who is
        being started meanwhile.
        """
        return self._signal_to_family(self.pid, int(number), self.poll() is not None)

    def kill(self) -> int:
        """Send SIGKILL."""
        return self.send_signal(signal.SIGKILL)

    def terminate(self) -> int:
        """Send SIGTERM."""
        return self.send_signal(signal.SIGTERM)

    def end(self, code: int | None, instant_ns: int | None) -> None:
        """Note that it ended (None: with the lab, nobody knows how). For the lab only."""
        self._code, self.ended_ns = code, instant_ns
        self._ended.set()
        self._call_back()

    def _call_back(self) -> None:
        while self._callbacks:
            # pop() is atomic: each callback is called by one of the two threads
            with contextlib.suppress(IndexError):
                self._callbacks.pop()(self)


def how_it_ended(code: int) -> str:
    """Say what an exit code (negative: the signal) means: ``was ended by SIGKILL``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
