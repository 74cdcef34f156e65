"""How late the network was during each request, and requests that are sent again for that.

A machine that stands still for a moment makes late what is in flight just then. The sample of such
a request is kept and marked, is in no figure, and the request is sent again.
"""

from __future__ import annotations

from typing import Any

from wanlat.emulator.lateness import LatenessLog


class NetworkErrors:
    """What the network was late by during requests, and which of them that spoilt.

    ``allowed_ms``: the greatest lateness that spoils none.
    """

    def __init__(self, log: LatenessLog, allowed_ms: float) -> None:
        self._log = log
        self.allowed_ms = allowed_ms
        self.last_is_late = False
        """Whether the network was late during the request that was looked at last."""

    def of(self, start_ns: int, elapsed_ns: int) -> dict[str, Any]:
        """Return the columns of a request's sample. Raises MachineError when the lab ends."""
        error_ns = self._log.during(start_ns, start_ns + elapsed_ns)
        self.last_is_late = error_ns is not None and error_ns > 1e6 * self.allowed_ms
        return {"network_error_ns": error_ns, "late": self.last_is_late}
