"""How late the network was during each request, and requests that are sent again for that.

A machine that stands still for a moment makes late what is in flight just then. The sample of such
a request is kept and marked, is in no figure, and the request is sent again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wanlat.emulator.lateness import LatenessLog
from wanlat.experiments.request_plan import RequestPlan
from wanlat.probes.bob_plan import Keys
from wanlat.probes.plan import Request
from wanlat.topologies.errors import RunFailed

ATTEMPTS = 3
"""So many requests may be sent again for each that was planned, over a whole plan."""

_FIRST_SEQ = 1 << 40  # no plan has so many
_USED_UP = ("PutObject", "Put", "RemoveObject", "Delete")
"""What these did to their key cannot be done to it again."""


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


class Retakes:
    """Sends requests again, during which the network was late."""

    def __init__(
        self, errors: NetworkErrors, requests: RequestPlan, prepare: Sequence[Request]
    ) -> None:
        """``prepare``: what was sent before, for ``requests`` to find it."""
        self._errors = errors
        self._of = requests
        self._made_by = {request.key: request for request in prepare if request.key is not None}
        self._random = random.Random(f"{requests.seed}/again")
        self._seq = _FIRST_SEQ
        self._again = self._planned = 0

    def following(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield requests, each again while the network was late during it.

        When the next is taken, the sample of the one before must have been looked at. Raises
        RunFailed when too many had to be sent again.
        """
        for request in requests:
            self._planned += 1
            yield request
            while self._errors.last_is_late:
                self._again += 1
                if self._again > ATTEMPTS * max(self._planned, 10):
                    raise RunFailed(self._too_many())
                yield from self._once_more(request)

    def _once_more(self, request: Request) -> Iterator[Request]:
        """Yield a request like this one, after what makes its key anew where it needs that."""
        key, made_by = request.key, self._made_by.get(request.key or "")
        is_spent = request.endpoint in _USED_UP or "/" in request.endpoint
        if key is not None and is_spent and self._of.study.key_mode != "same":
            key = self._key_like(request, key)
            if made_by is not None:
                yield self._numbered(replace(made_by, key=key))
        yield self._numbered(replace(request, key=key))

    def _key_like(self, request: Request, key: str) -> str:
        """Return a fresh key that lies where this request's does."""
        if self._of.api == "s3":
            return f"{key}-{self._again}"
        if self._of.api == "bob":
            drawn = self._random.getrandbits(63)
            return Keys(drawn, self._of.target, self._of.replicas).take(request.placement)
        return self._random.randbytes(len(key) // 2).hex()

    def _numbered(self, request: Request) -> Request:
        self._seq += 1
        return replace(request, seq=self._seq)

    def _too_many(self) -> str:
        return (
            f"The network was more than {self._errors.allowed_ms:g} ms late during {self._again} "
            f"of {self._planned + self._again - 1} requests, because this machine is too busy or "
            "its host takes its processors away: that is too many to send them again. End what "
            "else runs on it, or say how late the network may be during a request "
            "(`--max-network-error 10ms`)."
        )
