"""How late the network was during requests, while they are sent.

A machine that stands still for a moment makes late what is in flight just then. Whether a sample
counts is decided by a window of the request that does not depend on how long it took nor on what
came of it (`bundle.lateness`). One that does not count is kept and marked, its outcome counts, it
is in no figure of latency, and the request is sent again.
"""

from __future__ import annotations

import time

from wanlat.bundle.lateness import MOVING_NS
from wanlat.emulator.lateness import LatenessLog

_KNOWN_AFTER_NS = 20_000_000
"""A moment later the lateness of an instant is on record: bins of 4 ms, and a sleep as long."""
_NEVER_LATE_MS = 1e6


class NetworkErrors:
    """What the network was late by during requests.

    ``allowed_ms``: the greatest lateness that spoils none; of large objects it is more, by
    `MOVING_NS` a byte.
    """

    accepts_all = False
    """For tests that claim nothing about how punctual the machine is."""

    def __init__(self, log: LatenessLog, allowed_ms: float) -> None:
        self._log = log
        self.allowed_ms = _NEVER_LATE_MS if self.accepts_all else allowed_ms

    def is_late(self, start_ns: int, until_ns: int, object_bytes: int) -> bool:
        """Whether the network was later than allowed between two instants that are over.

        Raises MachineError when the lab ends.
        """
        error_ns = self._log.during(start_ns, until_ns)
        allowed_ns = 1e6 * self.allowed_ms + MOVING_NS * object_bytes
        return error_ns is not None and error_ns > allowed_ns

    def await_known(self, until_ns: int) -> None:
        """Wait until the lateness of an instant of CLOCK_MONOTONIC is on record."""
        while not self.is_known(until_ns):
            time.sleep(_KNOWN_AFTER_NS / 4e9)

    def is_known(self, until_ns: int) -> bool:
        """Whether the lateness of an instant is on record."""
        return time.monotonic_ns() >= until_ns + _KNOWN_AFTER_NS
