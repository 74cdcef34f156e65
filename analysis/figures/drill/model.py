"""What a drill was and what came of it, as tables, charts and summary.json are made from it.

Instants are seconds since the drill's origin, the planned begin of the phase `before`; those of
preparation are negative. `Drill.origin_ns` is that origin on CLOCK_MONOTONIC, the clock of the
samples. What is not known is None. docs/statistics.md defines every figure.

Fields are the keys of summary.json, as `document` writes them: "json" None leaves a field out,
"flat" writes what it holds in its place, "count" how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.claims import Verdict

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("before", "during", "after")
OPERATIONS = ("read", "write")
ROUNDS = ("healed", "restarted")
STAGES = ("lab", "calibrated", "ready", "filled", *PHASES, *ROUNDS, "done")
"""What a drill reaches, in order."""

_HIDDEN, _FLAT, _COUNT = ({"json": how} for how in (None, "flat", "count"))


@dataclass(frozen=True)
class Claim:
    """A claim that somebody makes of the system, and what came of it. `spec`: as in its file."""

    id: str
    claim: str
    source: str
    verdict: Verdict
    evidence: str
    spec: Mapping[str, Any] = field(metadata=_FLAT)


@dataclass(frozen=True)
class Latencies:
    """Of the requests that were ok, milliseconds; None of each where there is none."""

    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True)
class Figures:
    """What came of the requests of one selection, as summary.json has it.

    `attempted` counts every request that was due. `not_sent` of them never were, because an earlier
    one was still waiting; they are among `fail`, and in no share: `availability` is ok ÷ `sent`,
    0 to 1, with Wilson's 95 % interval, None of both where nothing was sent. Latencies are of the
    ok ones, from when they were due, and in `from_start` from when they were really sent.
    """

    attempted: int
    ok: int
    fail: int
    unknown: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    sent: int
    not_sent: int
    availability: float | None
    availability_ci95: tuple[float, float] | None
    from_start: Latencies


@dataclass(frozen=True)
class Phase:
    """One phase: `[begin_s, end_s)`, by when requests were due.

    `begin_s` is None where the drill did not get that far. `end_s` of a phase that was cut short
    is the end of the record, and `complete` is False.
    """

    name: str
    reads: Figures
    writes: Figures
    begin_s: float | None
    end_s: float | None
    complete: bool


@dataclass(frozen=True)
class FaultWindow:
    """A fault that was injected. `end_s` is None where it was not healed before the record ends.

    `occurrences` are the instants of one that strikes again and again (crash loop, flapping).
    """

    id: int
    kind: str
    subject: str
    detail: str
    nodes: tuple[str, ...]
    directions: tuple[str, ...]
    begin_s: float
    end_s: float | None
    late_ms: float | None
    occurrences: tuple[float, ...] = field(metadata=_COUNT)

    @property
    def acts_from_s(self) -> float:
        """When its injection was due: from then on it may have had an effect, at `begin_s` it had.

        Of a kill, `begin_s` is when the end of the process was seen.
        """
        return self.begin_s - max(self.late_ms or 0.0, 0.0) / 1000

    @property
    def label(self) -> str:
        """For people: ``slow n2, +200 ms``."""
        return f"{self.kind} {self.subject}{f', {self.detail}' if self.detail else ''}"


@dataclass(frozen=True)
class Death:
    """A process that ended by itself."""

    at_s: float
    node: str
    detail: str


@dataclass(frozen=True)
class Recalibration:
    """A link (a pair of nodes) measured again after a fault on it was healed; milliseconds.

    `verdict` is "pass", "fail" or "unmeasured".
    """

    at_s: float
    subject: str
    requested_rtt_ms: float | None
    measured_rtt_ms: float | None
    verdict: str

    @property
    def passed(self) -> bool:
        """Whether it is again what the topology asks for: only what was measured can be."""
        return self.verdict == "pass"


@dataclass(frozen=True)
class Place:
    """Where the client `name` ran: its node, that node's site, and its requests' target node."""

    name: str
    node: str
    site: str
    target: str


@dataclass(frozen=True)
class Disturbance:
    """An outage, in which a client got no answer in time, or a stretch of slow answers.

    `ended` is False where it was not over by the end of the record: it lasted at least that long.
    `before_fault` says that it began before anything was injected, so that no fault explains it.
    """

    client: str
    operation: str
    begin_s: float
    end_s: float
    duration_s: float
    ended: bool
    requests: int
    before_fault: bool


@dataclass(frozen=True)
class ClientFigures:
    """The reads or the writes of a client: figures by phase, what was normal, what disturbed it.

    `limit_ms` is what an answer may take before it counts as an outage, `slow_ms` what half of
    them may take before it counts as slow; None where too little is known of the phase before.
    `recovery_s` is from the first injection to the end of the last disturbance, 0 if there was
    none; None where it was not back by the end of the record (`recovered` is False then) or
    nothing was injected (`recovered` is None).
    """

    client: str
    operation: str
    phases: Mapping[str, Figures]
    longest_outage_s: float
    outages: tuple[Disturbance, ...]
    slow: tuple[Disturbance, ...] = field(metadata=_HIDDEN)
    recovered: bool | None
    recovery_s: float | None
    recovery_after_heal_s: float | None
    limit_ms: float | None
    slow_ms: float | None

    @property
    def name(self) -> str:
        """``survivor/read``."""
        return f"{self.client}/{self.operation}"


@dataclass(frozen=True)
class EndpointFigures:
    """One endpoint in one phase, all clients together."""

    phase: str
    endpoint: str
    operation: str
    figures: Figures = field(metadata=_FLAT)


@dataclass(frozen=True)
class Example:
    """One key with a verdict, and what each node answered in the round that gave it."""

    key: str
    round: str
    expected: str
    written_through: str
    answers: Mapping[str, str]


@dataclass(frozen=True)
class RoundCounts:
    """One round of verification. `present` is False where there was none.

    `complete` says that each key was asked for at each node, `keys` and `nodes` what it covers.
    """

    round: str
    present: bool
    complete: bool
    keys: int
    nodes: tuple[str, ...]
    passes: int | None
    late: int
    counts: Mapping[str, int] = field(metadata=_FLAT)


@dataclass(frozen=True)
class Durability:
    """What became of every write of the ledger. Counts are of keys, by their worst verdict.

    `verdict` is "pass", "fail" or "unknown". `counts` has every verdict, "fine" included.
    """

    acknowledged: int
    counts: Mapping[str, int] = field(metadata=_FLAT)
    verdict: str
    why: str
    invoked: int
    removed: int
    late: int
    unledgered: int
    rounds: tuple[RoundCounts, ...]
    examples: Mapping[str, tuple[Example, ...]]

    def __getitem__(self, verdict: str) -> int:
        """How many keys have `verdict`."""
        return self.counts.get(verdict, 0)


@dataclass(frozen=True)
class Drill:
    """One drill on one system.

    `requests` has one row a due request of the three phases, in order of due time: `client`,
    `operation` (read, write), `endpoint`, `node` (it ran on), `target` (it went to), `key`,
    `phase`, `outcome` (ok, fail, unknown), `sent` (bool), `due_s`, `start_s` (NaN if not sent),
    `end_s` (when it was answered or given up; NaN if unknown), `latency_ms` (end − due),
    `latency_from_start_ms`, `error`, `status`, `due_ns`, `start_ns`, `end_ns`.

    `failures` says why it did not pass, a sentence each, the worst first: what `wanlat drill run`
    ends with 1 for. Claims that are not decided fail nothing.
    """

    bundle: Bundle
    name: str
    description: str
    series: Series
    topology: str
    status: str
    reached: str | None
    reason: str | None
    scale: float
    interval_ms: float | None
    deadline_ms: float | None
    stated_time_s: float | None
    roles: Mapping[str, tuple[str, ...]]
    places: tuple[Place, ...]
    origin_ns: int | None
    end_s: float | None
    requests: pd.DataFrame
    phases: tuple[Phase, ...]
    endpoints: tuple[EndpointFigures, ...]
    clients: tuple[ClientFigures, ...]
    faults: tuple[FaultWindow, ...]
    deaths: tuple[Death, ...]
    recalibrations: tuple[Recalibration, ...]
    longest_outage_s: float
    recovered: bool | None
    recovery_s: float | None
    recovery_after_heal_s: float | None
    durability: Durability
    claims: tuple[Claim, ...]
    wrong_reads: int
    """Reads during the phases that got bytes which are not the object's."""
    failures: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """The system's name, as in the manifest."""
        return self.series.system

    @property
    def outages(self) -> tuple[Disturbance, ...]:
        """Those of all clients, in order of their begin."""
        found = [outage for client in self.clients for outage in client.outages]
        return tuple(sorted(found, key=lambda outage: outage.begin_s))

    @property
    def longest_outage(self) -> Disturbance | None:
        """The outage that lasted longest, of whichever client; the first of equals.

        One that began before any fault is no fault's work and does not count.
        """
        outages = [outage for outage in self.outages if not outage.before_fault]
        return max(outages, key=lambda outage: outage.duration_s, default=None)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures
