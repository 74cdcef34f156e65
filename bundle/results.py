"""What commands print with `--json`, as models: keys that scripts may rely on.

`Report` is summary.json as well. Keys that are not listed may be there, and may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from wanlat.bundle.documents import Affected, Json, Open, Status

RESULTS_VERSION = 1
"""Of these documents; it grows when a key is taken away or means something else."""

Interval = tuple[float, float] | None
"""95 % confidence interval; null: too few samples for one."""


class OfEndpoint(Open):
    """A row that is of one endpoint of one version of a system, at one placement of keys."""

    system: str
    version: str
    endpoint: str
    placement: Literal["local", "remote", "unknown"]


class Endpoint(OfEndpoint):
    """Latency of an endpoint, ms, of successful requests; counts are of all that count.

    Of a matrix: `point`, and its `values`.
    """

    topology: str
    n: int
    ok: int
    fail: int
    unknown: int
    mean_ms: float | None
    median_ms: float | None
    min_ms: float | None
    max_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    mean_ci95_ms: Interval
    median_ci95_ms: Interval = None
    point: str | None = None
    values: Json | None = None


class Mode(Open):
    """A share of an endpoint's requests that take so many round trips."""

    share: float
    round_trips: float
    ci95: Interval
    intercept_ms: float
    n: int


class RoundTrips(OfEndpoint):
    """Round trips of an endpoint: of its main mode, and by its packets' critical path (`chain_…`).

    Null: not known, and `why`.
    """

    round_trips: float | None
    ci95: Interval
    intercept_ms: float | None
    modes: Sequence[Mode]
    chain_round_trips: float | None
    wan_bytes: float | None
    wan_packets: float | None
    n: int
    failed: int
    why: str | None = None
    late: int = 0


class DrillPhase(Open):
    """Requests of a phase; instants in seconds since the first phase began, null: not reached."""

    name: str
    begin_s: float | None
    end_s: float | None
    complete: bool
    reads: Json
    writes: Json


class Durability(Open):
    """What became of acknowledged writes; counts of objects, null: unknown."""

    verdict: Literal["pass", "fail", "unknown"]
    why: str
    acknowledged: int | None
    lost: int | None


class DrillFault(Open):
    """What was broken. `affects`: what it hits; null: not recorded."""

    affects: Affected | None = None


class DrillResult(Open):
    """A drill: what was broken is in `faults`; `failures` are why it did not pass."""

    name: str
    system: str
    version: str
    topology: str
    status: Status
    passed: bool
    failures: Sequence[str]
    phases: Sequence[DrillPhase]
    longest_outage_s: float | None
    recovery_s: float | None
    durability: Durability
    claims: Sequence[Json]
    faults: Sequence[DrillFault] = ()
    outages: Sequence[Json] = ()


class Measured(Open):
    """What was run, and on which network; `kind` is that of a matrix alone."""

    study: str
    topology: str
    status: Status
    reason: str | None
    seed: int | None
    wanlat: str | None
    kind: Literal["matrix"] | None = None
    calibration: Literal["pass", "fail"] | None = None


class Report(Open):
    """What `wanlat run`, `drill run` and `report` print of one bundle: its summary.json.

    What a bundle has no data for has no key; `endpoints` is always there.
    """

    bundle: Measured
    endpoints: Sequence[Endpoint]
    notes: Sequence[str]
    definitions: Mapping[str, str]
    round_trips: Sequence[RoundTrips] = ()
    drill: DrillResult | None = None
    matrix: Json | None = None
    in_rtts: Json | None = None
    sizes: Json | None = None
    load: Json | None = None
    growth: Json | None = None
    reclaim: Json | None = None
    envelope: Json | None = None
    advice: Json | None = None
    resources: Json | None = None
    claims: Json | None = None


class Reports(Open):
    """What `wanlat drill run` and `report` print of several drills."""

    drills: Sequence[Report]


class Change(Open):
    """One quantity of an endpoint in both bundles; `fails`: it fails the gate."""

    quantity: str
    kind: str
    unit: str
    old: float | None
    new: float | None
    difference: float | None
    ci95: Interval
    threshold: float | None
    verdict: str
    gated: bool
    fails: bool
    sentence: str


class Compared(Open):
    """An endpoint in both bundles; `fails`: it fails the gate."""

    system: str
    endpoint: str
    placement: str
    old_version: str | None
    new_version: str | None
    verdict: str
    fails: bool
    changes: Sequence[Change]


class Gate(Open):
    """What may fail, and what did."""

    kinds: Sequence[str]
    passed: bool
    failures: Sequence[str]


class Comparison(Open):
    """What `wanlat compare` prints."""

    old: Json
    new: Json
    kind: Literal["latency", "round-trips"]
    at_rtt_ms: float | None
    gate: Gate
    thresholds: Mapping[str, Any]
    counts: Mapping[str, int]
    endpoints: Sequence[Compared]
    differs: Sequence[str]
    notes: Sequence[str]
