"""What a report says of a run under load: figures of operations, of the run, of the quiet user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wanlat.analysis.bundle import Series
from wanlat.analysis.statistics import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

Verdict = Literal["steady", "no steady state", "not decided"]


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval; None where none can be given."""

    value: float
    ci95: Interval | None


@dataclass(frozen=True)
class Steady:
    """Whether there is a steady state, and the part of the load that is in it.

    It is judged by the `of` of successful requests: by their rate, or, where the rate was asked
    for and so says nothing, by their latency. `begin_s` and `end_s` are seconds after the load
    began (its ramp over); the part is what was left when the transient was cut off, whatever the
    verdict. `change` is how far the rate moves from the part's begin to its end, `bulge` how far
    its middle stands out from its ends, both as shares of the mean. `why` is for a reader.
    """

    verdict: Verdict
    of: Literal["rate", "latency"]
    begin_s: float
    end_s: float
    bin_s: float
    change: Estimate | None
    bulge: Estimate | None
    why: str

    @property
    def is_steady(self) -> bool:
        """Whether the part is one state, so that figures of it are figures of the store."""
        return self.verdict == "steady"


@dataclass(frozen=True)
class Figures:
    """Requests of one operation that were answered within a span of time.

    Latencies in ms, of those that succeeded; `per_s` and `bytes_per_s` count nothing else.
    Intervals respect autocorrelation (block bootstrap over time).
    """

    begin_s: float
    end_s: float
    ok: int
    fail: int
    unknown: int
    bytes: int
    per_s: Estimate
    bytes_per_s: float
    mean_ms: Estimate | None
    p50_ms: Estimate | None
    p95_ms: Estimate | None
    p99_ms: Estimate | None
    max_ms: float | None
    from_due_ms: tuple[float, float, float] | None
    """Mean, median and p99 from when requests were due; None where they were not due at instants"""

    @property
    def in_flight(self) -> float | None:
        """Of the ones that succeeded, how many at once on average (Little)."""
        return None if self.mean_ms is None else self.per_s.value * self.mean_ms.value / 1e3


@dataclass(frozen=True)
class Failures:
    """Requests of an operation that failed in one way, over the whole load, ramp and all."""

    operation: str
    outcome: str
    kind: str
    count: int
    share: float
    first_s: float
    last_s: float


@dataclass(frozen=True)
class Operation:
    """One operation; `steady` is None where there is no steady state.

    `object_bytes` is what each request moved, None where that differs.
    """

    operation: str
    object_bytes: int | None
    steady: Figures | None
    whole: Figures

    @property
    def figures(self) -> Figures:
        """Over the steady part where there is one, else over the whole."""
        return self.steady or self.whole


@dataclass(frozen=True)
class LittlesLaw:
    """workers = rate x mean latency + workers that were between two requests.

    Over the whole load. `in_flight` is rate x mean latency of all requests, however they ended;
    `between` the workers that had none in flight, from the gaps between each worker's requests;
    `missing` what of the workers neither explains. `fits`: it is within `tolerance`.
    """

    workers: int
    in_flight: float
    between: float
    missing: float
    tolerance: float
    overlaps: int
    gap_ms: float
    """Mean time between a worker's answer and its next request."""

    @property
    def fits(self) -> bool:
        """Whether the records can be true."""
        return abs(self.missing) <= self.tolerance and self.overlaps == 0


@dataclass(frozen=True)
class Client:
    """Offered and achieved load, and what it cost the client. None: not recorded."""

    workers: int | None
    offered_per_s: float | None
    achieved_per_s: float | None
    cpu_share: float | None
    busiest_thread_share: float | None
    verify_share: float | None
    waited_share: float | None
    """Of a worker's time: it could have run, and no core was free."""
    threads: int | None
    bottleneck: str | None
    """Why the client itself was the limit, a sentence; None: it was not."""


@dataclass(frozen=True)
class QuietFigures:
    """The quiet user's requests in one phase."""

    ok: int
    fail: int
    unknown: int
    mean_ms: Estimate | None
    median_ms: Estimate | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    from_start_ms: tuple[float, float, float | None] | None = None
    """Mean, median and p99 from when requests were sent, where all others are from when they were
    due."""


@dataclass(frozen=True)
class QuietLine:
    """What became of requests of the quiet user that were due while he waited for an answer.

    Before he stood in line for them (`from_due` is False then), they were `missed`: not sent, and
    of no sample, so that slow times had the fewest of them.
    """

    from_due: bool
    every_ms: float | None
    """Between two of his instants; None: not recorded."""
    late: int
    """Sent when the one before was answered."""
    left_out: int
    """Not sent, for too little was left of their deadline."""
    missed: int


@dataclass(frozen=True)
class Quiet:
    """One endpoint (and placement) as the quiet user sees it: alone, and beside the load.

    `loaded` is over the steady part where there is one. Ratios are loaded / idle.
    """

    endpoint: str
    placement: str
    idle: QuietFigures
    loaded: QuietFigures
    mean_more_ms: Estimate | None
    """How much longer the mean is under load: loaded less idle."""
    median_more_ms: Estimate | None
    mean_ratio: Estimate | None
    median_ratio: Estimate | None


@dataclass(frozen=True)
class Course:
    """What charts draw: per bin of `bin_s`, from the load's begin on.

    `per_s` has the requests of each operation that succeeded a second, `failed_per_s` all others.
    `latencies_ms` are sorted, over the part the figures are of.
    """

    bin_s: float
    per_s: Mapping[str, Values]
    failed_per_s: Values
    latencies_ms: Mapping[str, Values]
    quiet_ms: Mapping[tuple[str, str], tuple[Values, Values]]


@dataclass(frozen=True)
class Load:
    """One system under load. `status` is the run's; `cut` says that its records end torn."""

    series: Series
    topology: str
    status: str
    cut: bool
    duration_s: float
    steady: Steady
    operations: tuple[Operation, ...]
    failures: tuple[Failures, ...]
    little: LittlesLaw | None
    client: Client
    quiet: tuple[Quiet, ...]
    line: QuietLine
    write_over_read: Estimate | None
    """Mean latency of PutObject / GetObject; None without both."""
    course: Course
    notes: tuple[str, ...]

    @property
    def per_s(self) -> float:
        """Requests of all operations that succeeded, a second, over the part of the figures."""
        return sum(operation.figures.per_s.value for operation in self.operations)
