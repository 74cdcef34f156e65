"""How late the network was during each request, and requests that are sent again for that.

A machine that stands still for a moment makes late what is in flight just then. The sample of such
a request is kept and marked, is in no figure, and the request is sent again.
"""

from __future__ import annotations

import math
from typing import Any

from wanlat.bundle.lateness import MOVING_NS
from wanlat.emulator.lateness import LatenessLog
from wanlat.probes.records import Sample


class NetworkErrors:
    """What the network was late by during requests, and which of them that spoilt.

    ``allowed_ms``: the greatest lateness that spoils none; of large objects it is more, by
    `MOVING_NS` a byte.
    """

    accepts_all = False
    """For tests whose claim is not how punctual the machine is."""

    def __init__(self, log: LatenessLog, allowed_ms: float) -> None:
        self._log = log
        self.allowed_ms = math.inf if self.accepts_all else allowed_ms
        self.last_is_late = False
        """Whether the network was late during the request that was looked at last."""

    def of(self, sample: Sample) -> dict[str, Any]:
        """Return the columns of a request's sample. Raises MachineError when the lab ends."""
        error_ns = self._log.during(sample.start_ns, sample.start_ns + sample.elapsed_ns)
        allowed_ns = 1e6 * self.allowed_ms + MOVING_NS * sample.object_bytes
        self.last_is_late = error_ns is not None and error_ns > allowed_ns
        return {"network_error_ns": error_ns, "late": self.last_is_late}
