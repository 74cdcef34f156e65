"""One key that is written again and again: which bytes a read of it must bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from wanlat.probes.plan import Request
from wanlat.probes.records import Sample


@dataclass
class Overwrites:
    """What was written to each key last, of those that were written more than once.

    One request is in flight at a time, so what a read must bring is what the write before it put.
    After a write that may or may not have been executed, a read may bring either; only its
    length is verified then, until the next write that is acknowledged.
    """

    _last: dict[tuple[str | None, str], int | None] = field(default_factory=dict)

    def following(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield the requests, each as it must be at the moment that it is taken."""
        for request in requests:
            yield self.now(request)

    def now(self, request: Request) -> Request:
        """Return a request as it is to be sent now."""
        place = _place(request)
        if place not in self._last or request.does != "read":
            return request
        return replace(request, body_seed=self._last[place])

    def note(self, request: Request, sample: Sample) -> None:
        """Take in what came of a request."""
        if request.does != "write" or sample.outcome in ("fail", "not_sent"):
            return
        acknowledged = sample.outcome == "ok"
        self._last[_place(request)] = request.body_seed if acknowledged else None


def _place(request: Request) -> tuple[str | None, str]:
    return request.bucket, request.key or ""
