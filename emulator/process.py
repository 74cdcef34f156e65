"""A process inside a lab, as its owner outside sees it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from wanlat.topologies.errors import MachineError

if TYPE_CHECKING:  # the lab's first process imports this module, and starts 10 ms sooner without
    from concurrent.futures import Future


class Exit(NamedTuple):
    """How a process ended (negative: the signal), and when (CLOCK_MONOTONIC, ns)."""

    code: int
    instant_ns: int


class Process:
    """A process inside a lab. ``pid`` is its number there.

    ``end`` is done when it has ended; None in it: with the lab, in an unknown way. ``send`` gets
    the pid, a signal, and whether all that it has started is meant too.
    """

    def __init__(
        self,
        pid: int,
        name: str,
        end: Future[Exit | None],
        send: Callable[[int, int, bool, bool], int],
        fate: Callable[[], str],
    ) -> None:
        self.pid = pid
        self.name = name
        self._end = end
        self._send = send
        self._fate = fate

    @property
    def _exit(self) -> Exit | None:
        return self._end.result() if self._end.done() else None

    @property
    def ended_ns(self) -> int | None:
        """The instant (CLOCK_MONOTONIC) at which it ended; None while it runs."""
        return self._exit.instant_ns if self._exit else None

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or None while it runs."""
        return self._exit.code if self._exit else None

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit code. Raises TimeoutError, or MachineError when the lab ends first."""
        try:
            ended = self._end.result(timeout_s)
        except TimeoutError:
            raise TimeoutError(f"{self.name} still runs after {timeout_s} s") from None
        if ended is None:
            raise MachineError(f"The lab ended while {self.name} was running. {self._fate()}")
        return ended.code

    def when_ended(self, callback: Callable[[Process], None]) -> None:
        """Have ``callback`` called once the process has ended, from another thread.

        At once, if it has. The callback may abort the lab but request nothing of it.
        """
        self._end.add_done_callback(lambda _: callback(self))

    def send_signal(self, number: int) -> int:
        """Send a signal; return the CLOCK_MONOTONIC instant (ns) at which it was sent."""
        return self._send(self.pid, int(number), False, False)

    def send_signal_to_family(self, number: int) -> int:
        """Send a signal to the process and to all that it has started, sessions of their own too.

        Once it has ended: to who is left of its session. SIGKILL and SIGSTOP reach those too that
        are being started meanwhile.
        """
        return self._send(self.pid, int(number), True, self.poll() is not None)

    def kill(self) -> int:
        """Send SIGKILL."""
        return self.send_signal(signal.SIGKILL)


def how_it_ended(code: int) -> str:
    """Return what an exit code (negative: the signal) means: ``was ended by SIGKILL``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
