"""Requests that are sent again, because the network was late when they were sent first.

Which these are is known a round trip after they were sent, whatever came of them by then: the next
are sent meanwhile.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from wanlat.bundle.lateness import window_ns
from wanlat.experiments.network_error import NetworkErrors
from wanlat.experiments.prepare import RequestPlan
from wanlat.probes.plan import KEY_BYTES, Request
from wanlat.probes.protocols.bob import Keys
from wanlat.probes.records import Sample
from wanlat.topologies.errors import MachineLate

ATTEMPTS = 3
"""So many requests may be sent again for each that was planned, over a whole plan."""

_FIRST_SEQ = 1 << 40  # no plan has so many


class _Pending(NamedTuple):
    """A request that was answered, and the window that decides whether it counts."""

    request: Request
    start_ns: int
    until_ns: int
    object_bytes: int


class Resampling:
    """Sends requests again where the network was late in their window, whatever came of them."""

    def __init__(
        self,
        errors: NetworkErrors,
        requests: RequestPlan,
        prepare: Sequence[Request],
        rtt_ms: float,
        on_late: Callable[[], object] = lambda: None,
    ) -> None:
        """``prepare``: what was sent before, for ``requests`` to find it. ``rtt_ms``: of the
        network they are on. ``on_late`` is called for each that does not count.
        """
        self._errors = errors
        self._of = requests
        self._made_by = {request.key: request for request in prepare if request.key is not None}
        self._random = random.Random(f"{requests.seed}/again")
        self._window_ns = int(window_ns(rtt_ms))
        self._on_late = on_late
        self._pending = deque[_Pending]()
        self._seq = _FIRST_SEQ
        self._again = self._planned = 0

    def take(self, request: Request, sample: Sample) -> None:
        """Take in the sample of a request that was yielded."""
        until_ns = sample.start_ns + self._window_ns
        self._pending.append(_Pending(request, sample.start_ns, until_ns, sample.object_bytes))

    def following(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield requests, and again those that do not count, once that is known of them.

        Raises MachineLate when too many had to be sent again.
        """
        for request in requests:
            self._planned += 1
            yield request
            while self._pending and self._errors.is_known(self._pending[0].until_ns):
                yield from self._judged(self._pending.popleft())
        while self._pending:
            self._errors.await_known(self._pending[0].until_ns)
            yield from self._judged(self._pending.popleft())

    def _judged(self, pending: _Pending) -> Iterator[Request]:
        """Yield the request of a sample again, if that does not count."""
        request, *window = pending
        if not self._errors.is_late(*window):
            return
        self._on_late()
        self._again += 1
        if self._again > ATTEMPTS * max(self._planned, 10):
            raise MachineLate(self._too_many())
        yield from self._once_more(request)

    def _once_more(self, request: Request) -> Iterator[Request]:
        """Yield a request like this one, after what makes its key anew where it needs that."""
        key, made_by = request.key, self._made_by.get(request.key or "")
        # Else it cannot be done to its key again.
        is_spent = request.does not in ("read", "exists") and not request.placed
        if key is not None and is_spent and self._of.study.key_mode != "same":
            key = self._key_like(request, key)
            if made_by is not None:
                self._made_by[key] = made_by
                yield self._numbered(replace(made_by, key=key))
        yield self._numbered(replace(request, key=key))

    def _key_like(self, request: Request, key: str) -> str:
        """Return a fresh key that lies where this request's does."""
        if request.bucket is not None:
            return f"{key}-{self._again}"
        if len(key) == 2 * KEY_BYTES:
            drawn = self._random.getrandbits(63)
            return Keys(drawn, self._of.target, self._of.replicas).take(request.placement)
        return self._random.randbytes(len(key) // 2).hex()

    def _numbered(self, request: Request) -> Request:
        self._seq += 1
        return replace(request, seq=self._seq)

    def _too_many(self) -> str:
        return (
            f"The network was more than {self._errors.allowed_ms:g} ms late in the first round "
            f"trip of {self._again} of {self._planned + self._again - 1} requests, because this "
            "machine is too busy or its host takes its processors away: that is too many to send "
            "them again. End what else runs on it, or say how late the network may be during a "
            "request (`--max-network-error 10ms`)."
        )
