"""When the requests of a client are due, and to which phase of the drill each belongs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A phase of a drill, on a clock that is 0 where ``before`` begins (a warm-up is negative)."""

    name: str
    begin_ns: int
    until_ns: int


@dataclass(frozen=True)
class Schedule:
    """One request every so often, from an offset of the client's own on.

    Each must be answered ``deadline_ns`` after it was due.
    """

    interval_ns: int
    offset_ns: int
    deadline_ns: int

    @classmethod
    def of(cls, interval_ns: int, deadline_ns: int, *, seed: int, client: str) -> Schedule:
        """Return a client's schedule, its offset drawn, so that clients do not beat together."""
        offset_ns = random.Random(f"{seed}/{client}/offset").randrange(interval_ns)
        return cls(interval_ns, offset_ns, deadline_ns)

    def least_left_ns(self, took_ns: int) -> int:
        """Return the time that a request must have left to be sent, when the one before it took
        ``took_ns``.

        Half of its deadline; and all of it, when the one before took more than half. A client that
        lags by almost a whole deadline would otherwise send each request with so little time left
        that it cannot be answered, even by a store that is well again or only slow, and lag so for
        ever: the client's own doing, and not the store's.
        """
        half_ns = self.deadline_ns // 2
        return half_ns if took_ns < half_ns else max(half_ns, self.deadline_ns - self.interval_ns)

    def due(self, spans: Sequence[Span]) -> Iterator[tuple[int, str]]:
        """Yield the instant at which each request of these phases is due, and the phase's name."""
        for span in spans:
            first = -(-(span.begin_ns - self.offset_ns) // self.interval_ns)
            first_ns = self.offset_ns + first * self.interval_ns
            for due_ns in range(first_ns, span.until_ns, self.interval_ns):
                yield due_ns, span.name
