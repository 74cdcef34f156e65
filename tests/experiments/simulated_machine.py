"""A store of known latency on a machine that stands still now and then, request by request.

What it took is what it would have taken, and what stalls added: a message that is due while the
machine stands still leaves when it goes on. Of each stall the emulation records what `wire` does:
how late the sentinel woke, which sleeps 4 ms at a time, and the message that it held up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from wanlat.bundle import tables
from wanlat.bundle.lateness import BIN_NS, with_network_error
from wanlat.emulator.backends import LateBin, LatenessReport
from wanlat.emulator.lateness import LatenessLog
from wanlat.experiments.network_error import NetworkErrors
from wanlat.experiments.workloads.resampling import Resampling
from wanlat.probes.plan import Request

MS = 10**6
RTT_MS = 100.0
ALLOWED_MS = 2.0
DEADLINE_MS = 10_000.0

Draw = Callable[[np.random.Generator, float], float]
"""What a request takes that is sent at an instant (s), in ms; more than the deadline: it hangs."""
Stalls = Callable[[np.random.Generator, float], list[tuple[float, float]]]
"""When the machine stands still in so many seconds, and for how long, ms."""


def every_700_ms(rng: np.random.Generator, seconds: float) -> list[tuple[float, float]]:
    """A timer of the machine's own: 12 ms each 0.7 s."""
    return [(at, 12.0) for at in np.arange(rng.uniform(0, 700), 1e3 * seconds, 700)]


def at_random(rng: np.random.Generator, seconds: float) -> list[tuple[float, float]]:
    """One a second on average, 15 ms on average."""
    count = rng.poisson(seconds)
    ats = np.sort(rng.uniform(0, 1e3 * seconds, count))
    return [(at, rng.exponential(15)) for at in ats]


def in_bursts(rng: np.random.Generator, seconds: float) -> list[tuple[float, float]]:
    """A neighbour that works for two seconds of ten, and takes the processors for 5 to 40 ms."""
    begins = np.arange(rng.uniform(0, 10_000), 1e3 * seconds, 10_000)
    ats = [at for begin in begins for at in np.sort(begin + rng.uniform(0, 2000, 8))]
    return [(at, rng.uniform(5, 40)) for at in ats]


@dataclass
class Machine(NetworkErrors):
    """The machine's clock, what it stood still for, and what of it is on record."""

    stalls: list[tuple[float, float]]
    rng: np.random.Generator
    now_ms: float = 0.0
    bins: list[LateBin] = field(default_factory=list)

    def __post_init__(self) -> None:
        log = LatenessLog(lambda since: LatenessReport(self.bins[since:], len(self.bins)))
        super().__init__(log, ALLOWED_MS)
        self._begins = [begin for begin, _ in self.stalls]
        for begin, length in self.stalls:
            if (late := length - self.rng.uniform(0, 4)) > 0.25:
                self._record(begin + length, late)

    def through(self, legs_ms: np.ndarray[Any, Any]) -> float:
        """Have messages pass that wait for one another; return how long they took, ms."""
        start = self.now_ms
        for leg in legs_ms:
            self.now_ms += leg
            place = bisect_right(self._begins, self.now_ms) - 1
            if place >= 0 and self.now_ms < (end := sum(self.stalls[place])):
                self._record(end, end - self.now_ms)
                self.now_ms = end
        return self.now_ms - start

    def await_known(self, until_ns: int) -> None:
        """Let the time pass."""
        self.now_ms = max(self.now_ms, until_ns / MS + 20)

    def is_known(self, until_ns: int) -> bool:
        """Whether it has passed."""
        return self.now_ms >= until_ns / MS + 20

    def judged(self, rows: list[dict[str, Any]]) -> pa.Table:
        """Return requests with how late the network was, as a bundle has them."""
        instants = [{"start_ns": each.start_ns, "max_ns": each.max_ns} for each in self.bins]
        bins = pa.Table.from_pylist(instants, schema=tables.LATENESS)
        return with_network_error(
            pa.Table.from_pylist(rows, schema=tables.SAMPLES), bins, 1e6 * ALLOWED_MS
        )

    def _record(self, left_ms: float, late_ms: float) -> None:
        late_ns, left_ns = round(late_ms * MS), round(left_ms * MS)
        start_ns = left_ns - left_ns % BIN_NS
        self.bins.append(LateBin(start_ns, None, n=1, max_ns=late_ns, sum_ns=late_ns))


@dataclass(frozen=True)
class Run:
    """What a run of a study has: of each request that was sent, in ms."""

    took_ms: np.ndarray[Any, Any]
    held_up_ms: np.ndarray[Any, Any]
    ok: np.ndarray[Any, Any]
    late: np.ndarray[Any, Any]

    @property
    def timed(self) -> np.ndarray[Any, Any]:
        """Which are in figures of latency."""
        return self.ok & ~self.late


def run(draw: Draw, stalls: Stalls, requests: int, seed: int, crossings: int = 4) -> Run:
    """Send so many requests one after another, as a study does."""
    rng = np.random.default_rng(seed)
    machine = Machine(stalls(rng, 5.0 * requests), rng)
    plan: Any = SimpleNamespace(seed=1)
    resampling = Resampling(machine, plan, (), RTT_MS)
    sent: list[dict[str, Any]] = []
    for request in resampling.following(_requests(requests)):
        start_ns = round(machine.now_ms * MS)
        own_ms = draw(rng, machine.now_ms / 1e3)
        ok = own_ms < DEADLINE_MS
        legs_ms = rng.dirichlet(np.ones(crossings)) * min(own_ms, DEADLINE_MS)
        took_ms = machine.through(legs_ms)
        row = {"start_ns": start_ns, "elapsed_ns": round(took_ms * MS), "object_bytes": 0}
        sent.append({**row, "rtt_ms": RTT_MS, "outcome": "ok" if ok else "unknown"})
        sample: Any = SimpleNamespace(start_ns=start_ns, object_bytes=0)
        resampling.take(request, sample)
    rows = machine.judged(sent).to_pandas()
    return Run(
        took_ms=rows["elapsed_ns"].to_numpy(float) / MS,
        held_up_ms=rows["held_up_ns"].to_numpy(float) / MS,
        ok=(rows["outcome"] == "ok").to_numpy(bool),
        late=rows["late"].to_numpy(bool),
    )


def _requests(count: int) -> Iterator[Request]:
    first = Request(seq=0, phase="measure", endpoint="GetObject", operation="read", key="k")
    return (replace(first, seq=number) for number in range(count))
