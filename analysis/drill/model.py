"""What a drill was and what came of it, as tables, charts and summary.json are made from it.

Instants are seconds since the drill's origin, the planned begin of the phase `before`; those of
preparation are negative. `Drill.origin_ns` is that origin on CLOCK_MONOTONIC, the clock of the
samples. What is not known is None. docs/statistics.md defines every figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle, Series

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("before", "during", "after")
OPERATIONS = ("read", "write")
ROUNDS = ("healed", "restarted")

STAGES = (
    "lab",
    "calibrated",
    "ready",
    "filled",
    "before",
    "during",
    "after",
    "healed",
    "restarted",
    "done",
)
"""What a drill reaches, in order."""


@dataclass(frozen=True)
class Latencies:
    """Of the requests that were ok, milliseconds; None of each where there is none."""

    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True)
class Figures:
    """What came of the requests of one selection.

    `attempted` counts every request that was due, `not_sent` of which never were because an
    earlier one was still waiting (they are among `fail`). Latencies are of the ok ones, from when
    they were due, and beside it from when they were really sent.
    """

    attempted: int
    ok: int
    fail: int
    unknown: int
    not_sent: int
    from_due: Latencies
    from_start: Latencies

    @property
    def availability(self) -> float | None:
        """Ok ÷ attempted, 0 to 1; None where nothing was due."""
        return self.ok / self.attempted if self.attempted else None


@dataclass(frozen=True)
class Phase:
    """One phase: `[begin_s, end_s)`, by when requests were due.

    `begin_s` is None where the drill did not get that far. `end_s` of a phase that was cut short
    is the end of the record, and `complete` is False.
    """

    name: str
    begin_s: float | None
    end_s: float | None
    complete: bool
    reads: Figures
    writes: Figures

    @property
    def reached(self) -> bool:
        """Whether it began."""
        return self.begin_s is not None

    def of(self, operation: str) -> Figures:
        """The figures of `operation`, "read" or "write"."""
        return self.reads if operation == "read" else self.writes


@dataclass(frozen=True)
class FaultOccurrence:
    """One kill or cut of a fault that occurs again and again (crash loop, flapping)."""

    at_s: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FaultWindow:
    """A fault that was injected. `end_s` is None where it was not healed before the record ends."""

    id: int
    kind: str
    subject: str
    detail: str
    nodes: tuple[str, ...]
    directions: tuple[str, ...]
    begin_s: float
    end_s: float | None
    late_ms: float | None
    occurrences: tuple[FaultOccurrence, ...]

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
class Mark:
    """Something else that happened: a process that died by itself, one that was started, …"""

    at_s: float
    kind: str
    subject: str
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
    """Where a client ran: its node, that node's site, and the node that its requests went to."""

    name: str
    """Of the client, which reads and writes."""
    node: str
    site: str
    target: str


@dataclass(frozen=True)
class Outage:
    """A stretch in which a client got no answer in time.

    `ended` is False where no ok answer came any more: it lasted at least that long.
    `before_fault` says that it began before anything was injected, so that no fault explains it.
    """

    client: str
    operation: str
    begin_s: float
    end_s: float
    ended: bool
    requests: int
    before_fault: bool

    @property
    def duration_s(self) -> float:
        """How long it lasted."""
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class SlowStretch:
    """A stretch in which a client was answered, but slower than ever before the faults."""

    client: str
    operation: str
    begin_s: float
    end_s: float
    ended: bool
    requests: int


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
    limit_ms: float | None
    slow_ms: float | None
    outages: tuple[Outage, ...]
    slow: tuple[SlowStretch, ...]
    longest_outage_s: float
    recovered: bool | None
    recovery_s: float | None
    recovery_after_heal_s: float | None

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
    figures: Figures


@dataclass(frozen=True)
class Example:
    """One key with a verdict, and what each node answered in the round that gave it."""

    key: str
    verdict: str
    round: str
    expected: str
    written_through: str
    answers: Mapping[str, str]


@dataclass(frozen=True)
class RoundCounts:
    """One round of verification. `present` is False where there was none.

    `complete` says that each key was asked for at each node, `keys` and `nodes` what it covers.
    """

    name: str
    present: bool
    complete: bool
    nodes: tuple[str, ...]
    keys: int
    passes: int | None
    counts: Mapping[str, int]
    late: int


@dataclass(frozen=True)
class Durability:
    """What became of every write of the ledger. Counts are of keys, by their worst verdict.

    `verdict` is "pass", "fail" or "unknown". `counts` has every verdict, "fine" included.
    """

    verdict: str
    why: str
    invoked: int
    acknowledged: int
    removed: int
    counts: Mapping[str, int]
    rounds: tuple[RoundCounts, ...]
    examples: Mapping[str, tuple[Example, ...]]
    late: int
    unledgered: int

    def __getitem__(self, verdict: str) -> int:
        """How many keys have `verdict`."""
        return self.counts.get(verdict, 0)


@dataclass(frozen=True)
class Claim:
    """A claim that somebody makes of the system. `verdict`: holds, does not hold, not decided."""

    id: str
    claim: str
    source: str
    verdict: str
    evidence: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Drill:
    """One drill on one system.

    `requests` has one row a due request of the three phases, in order of due time: `client`,
    `operation` (read, write), `endpoint`, `node` (it ran on), `target` (it went to), `key`,
    `phase`, `outcome` (ok, fail, unknown), `sent` (bool), `due_s`, `start_s` (NaN if not sent),
    `end_s` (when it was answered or given up; NaN if unknown), `latency_ms` (end − due),
    `latency_from_start_ms`, `error`, `status`, `due_ns`, `start_ns`, `end_ns`.
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
    marks: tuple[Mark, ...]
    recalibrations: tuple[Recalibration, ...]
    longest_outage_s: float
    recovered: bool | None
    recovery_s: float | None
    recovery_after_heal_s: float | None
    durability: Durability
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]

    @property
    def system(self) -> str:
        """The system's name, as in the manifest."""
        return self.series.system

    @property
    def deaths(self) -> tuple[Mark, ...]:
        """Processes that ended by themselves."""
        return tuple(mark for mark in self.marks if mark.kind == "died")

    @property
    def outages(self) -> tuple[Outage, ...]:
        """Those of all clients, in order of their begin."""
        found = [outage for client in self.clients for outage in client.outages]
        return tuple(sorted(found, key=lambda outage: outage.begin_s))

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the drill did not pass, a sentence each; what `wanlat drill run` ends with 1 for."""
        from wanlat.analysis.drill.failures import failures_of

        return failures_of(self)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong: claims that are not decided fail nothing."""
        return not self.failures
