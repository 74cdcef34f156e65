"""The published conclusions on Bob and MinIO as checks: holds, does not hold, not decided.

Each is computed from a sweep over object sizes, and in the same way from the estimates that were
stored for the published comparison. Behind every verdict is a ratio with its interval. Only ratios
of two systems that were measured together are looked at, never a time of another machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis import ratios
from analysis.criterion import stored_estimates
from analysis.ratios import Ratio, Verdict, opposite
from analysis.sizes import FRESH, READ, WRITE, At, Sizes, seed_for, sizes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.grid import Grid
    from analysis.ratios import Estimate
    from analysis.statistics import Values
    from analysis.sweep import Sweep

MUCH = 0.05
"""Mean and median "differ much" from here on: five times the "about 1 %" that is said of Bob's."""
LIMIT_BYTES = 4 * 2**20
"""gRPC's usual longest message, which the documents suspect; with an object of that it is longer.
"""
MIB = 2**20
HUNDRED_MIB = 100 * MIB
BOB = "bob"
BEHIND_NGINX, DIRECT = "minio-nginx", "minio"
"""The documents' MinIO was behind nginx; Bob was asked directly."""
PUBLISHED = "published"


@dataclass(frozen=True)
class Time:
    """What one operation takes on one system; `values_ms` are None where nobody kept them."""

    at: At
    mean: Estimate
    median: Estimate
    skew: Ratio
    values_ms: Values | None


@dataclass(frozen=True)
class Part:
    """One comparison of a conclusion. `ratio` is of means, `of_medians` the same of medians.

    `verdict` is of the means, on what the clause says of the ratio.
    """

    at: At
    ratio: Ratio
    of_medians: Ratio | None
    verdict: Verdict
    verdict_of_medians: Verdict | None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        medians = self.of_medians
        return {
            "nodes": self.at.nodes,
            "operation": self.at.operation,
            "object_bytes": self.at.object_bytes,
            **{k: v for k, v in (("keys", self.at.keys), ("placement", self.at.placement)) if v},
            **({"others": dict(self.at.others)} if self.at.others else {}),
            "means": self.ratio.to_json(),
            "medians": None if medians is None else medians.to_json(),
            "verdict": str(self.verdict),
            "verdict_of_medians": self.verdict_of_medians and str(self.verdict_of_medians),
        }


@dataclass(frozen=True)
class Clause:
    """One thing that a conclusion says of every one of its parts.

    `ratio_of` says what the ratios are, `says` what the clause says of them, and `bounds` are the
    ratios at which that changes. A `counts` False clause is there to compare with, and decides
    nothing.
    """

    text: str
    ratio_of: str
    says: str
    parts: tuple[Part, ...]
    bounds: tuple[float, ...] = (1.0,)
    counts: bool = True

    def verdict(self, nodes: int | None = None) -> Verdict:
        """Does not hold where one part does not; holds where all do; without parts not decided."""
        parts = [part.verdict for part in self.parts if nodes in (None, part.at.nodes)]
        if Verdict.FAILS in parts:
            return Verdict.FAILS
        return Verdict.HOLDS if parts and set(parts) == {Verdict.HOLDS} else Verdict.UNDECIDED

    @property
    def deciding(self) -> Part | None:
        """The part that the verdict rests on: that it fails most clearly, else holds least clearly.

        None where there is no part.
        """
        verdict = self.verdict()
        if verdict is Verdict.FAILS:
            failing = [part for part in self.parts if part.verdict is Verdict.FAILS]
            return max(failing, key=self._distance)
        deciding = [part for part in self.parts if part.verdict is verdict]
        return min(deciding, key=self._distance, default=None)

    def _distance(self, part: Part) -> float:
        """How far the ratio of `part` is from the nearest bound, as a logarithm."""
        return min(abs(math.log(part.ratio.estimate / bound)) for bound in self.bounds)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "clause": self.text,
            "ratio_of": self.ratio_of,
            "says": self.says,
            "counts": self.counts,
            "verdict": str(self.verdict()),
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True)
class Conclusion:
    """One of the documents' sentences, clause by clause."""

    key: str
    text: str
    clauses: tuple[Clause, ...]

    @property
    def nodes(self) -> list[int]:
        """The numbers of nodes that it is about."""
        return sorted({p.at.nodes or 0 for clause in self.clauses for p in clause.parts})

    def verdict(self, nodes: int | None = None) -> Verdict:
        """Holds where every clause does, on clusters of `nodes` (None: all)."""
        verdicts = [clause.verdict(nodes) for clause in self.clauses if clause.counts]
        if Verdict.FAILS in verdicts:
            return Verdict.FAILS
        return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.UNDECIDED

    def counts(self, nodes: int | None = None) -> tuple[int, int]:
        """How many parts hold, of how many."""
        parts = [
            part
            for clause in self.clauses
            if clause.counts
            for part in clause.parts
            if nodes in (None, part.at.nodes)
        ]
        return sum(part.verdict is Verdict.HOLDS for part in parts), len(parts)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "key": self.key,
            "conclusion": self.text,
            "verdict": str(self.verdict()),
            "by_nodes": {str(nodes): str(self.verdict(nodes)) for nodes in self.nodes},
            "clauses": [clause.to_json() for clause in self.clauses],
        }


@dataclass(frozen=True)
class Conclusions:
    """The conclusions from each source: PUBLISHED, and ours against each MinIO that we measured.

    A block of a sweep's report (`analysis.blocks`).
    """

    sources: Mapping[str, tuple[Conclusion, ...]]

    def to_json(self) -> dict[str, Any]:
        """The block of summary.json."""
        return {
            "definitions": {
                "verdict": "holds: every part does; does not hold: one part does not; by the 95 % "
                "interval of the ratio of means",
                "measured": "bootstrap-t of the logarithm of the ratio of two means; of mean / "
                "median of one sample the percentile bootstrap",
                PUBLISHED: "from stored estimates and their intervals by variance recovery on "
                "logarithms, for want of samples: of mean / median too wide, never too narrow",
                "much": MUCH,
                "limit_bytes": LIMIT_BYTES,
            },
            "sources": {
                name: [conclusion.to_json() for conclusion in conclusions]
                for name, conclusions in self.sources.items()
            },
        }

    def grids(self) -> Sequence[Grid]:
        """The verdicts, and the ratios behind them, side by side."""
        from analysis.conclusions_table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """None: the ratios are in the chart of sizes."""
        return {}


def conclusions_of(sweep: Sweep) -> Conclusions | None:
    """The conclusions from `sweep`, beside the published ones; None without Bob and a MinIO."""
    sizes = sizes_of(sweep)
    return None if sizes is None else conclusions_of_sizes(sizes)


def conclusions_of_sizes(sizes: Sizes) -> Conclusions | None:
    """The same of sizes that are at hand."""
    times = {system: _times(sizes, system) for system in (BOB, BEHIND_NGINX, DIRECT)}
    minios = [system for system in (BEHIND_NGINX, DIRECT) if times[system]]
    if not times[BOB] or not minios:
        return None
    return Conclusions(
        {
            PUBLISHED: published_conclusions(),
            **{name: _conclusions(times[BOB], times[name], sizes.seed) for name in minios},
        }
    )


def published_conclusions() -> tuple[Conclusion, ...]:
    """The documents' conclusions, from the estimates stored with their own measurements."""
    times: dict[str, list[Time]] = {}
    for each in stored_estimates():
        mean, median = (
            (each.mean_ms, each.mean_ci95_ms),
            (each.median_ms, each.median_ci95_ms),
        )
        at = At(each.nodes, each.operation, each.object_bytes, keys="", placement="")
        skew = ratios.of_estimates(mean, median)
        times.setdefault(each.system, []).append(Time(at, mean, median, skew, None))
    return _conclusions(times["bob"], times["minio"], 0)


def _times(sizes: Sizes, system: str) -> list[Time]:
    return [
        Time(
            at=entry.at,
            mean=(entry.latency.mean_ms, entry.latency.mean_ci95_ms),
            median=(entry.latency.median_ms, entry.latency.median_ci95_ms),
            skew=entry.skew,
            values_ms=entry.values_ms,
        )
        for entry in sizes.entries
        if entry.series.system == system
    ]


def _conclusions(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> tuple[Conclusion, ...]:
    return (
        _writes(bob, minio, seed),
        _reads(bob, minio, seed),
        _skews(bob, minio),
        _slows_down(bob, minio, seed),
    )


MINIO_TO_BOB = "MinIO's time / Bob's"


def _writes(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> Conclusion:
    parts = _against(_of(bob, WRITE), minio, seed, _above_one)
    clause = Clause("Bob writes faster", MINIO_TO_BOB, "> 1", parts)
    return Conclusion("writes", "Bob writes faster at every size", (clause,))


def _reads(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> Conclusion:
    reads = _of(bob, READ)
    small = [time for time in reads if time.at.object_bytes <= MIB]
    large = [time for time in reads if time.at.object_bytes == HUNDRED_MIB]
    return Conclusion(
        "reads",
        "MinIO reads 100 MiB faster, and Bob 1 MiB and less",
        (
            Clause(
                "Bob reads 1 MiB and less faster",
                MINIO_TO_BOB,
                "> 1",
                _against(small, minio, seed, _above_one),
            ),
            Clause(
                "MinIO reads 100 MiB faster",
                MINIO_TO_BOB,
                "< 1",
                _against(large, minio, seed, lambda ratio: opposite(_above_one(ratio))),
            ),
        ),
    )


def _skews(bob: Sequence[Time], minio: Sequence[Time]) -> Conclusion:
    percent = f"{100 * MUCH:.0f} %"
    return Conclusion(
        "skew",
        "MinIO's mean and median differ much, and Bob's do not",
        (
            Clause(
                "MinIO's mean and median differ much",
                "MinIO's mean / median",
                f"off 1 by {percent} or more",
                tuple(_skew(time, lambda ratio: opposite(_is_near_one(ratio))) for time in minio),
                _NEAR_ONE,
            ),
            Clause(
                "Bob's mean and median do not",
                "Bob's mean / median",
                f"within {percent} of 1",
                tuple(_skew(time, _is_near_one) for time in bob),
                _NEAR_ONE,
            ),
        ),
    )


def _slows_down(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> Conclusion:
    text = "Bob slows down from 4 MiB on"
    return Conclusion(
        "limit",
        text,
        (
            Clause(text, _BYTE, "> 1", _past_limit(bob, seed)),
            Clause("MinIO, to compare with", _BYTE, "> 1", _past_limit(minio, seed), counts=False),
        ),
    )


_BYTE = "time a byte / that at the largest size below 4 MiB"


def _past_limit(times: Sequence[Time], seed: int) -> tuple[Part, ...]:
    """Each size from the limit on against the largest one below it."""
    parts = []
    for time in times:
        if time.at.object_bytes < LIMIT_BYTES:
            continue
        below = [
            other
            for other in times
            if _place(other.at) == _place(time.at)
            and other.at.placement == time.at.placement
            and other.at.object_bytes < LIMIT_BYTES
        ]
        if not below:
            continue
        largest = max(below, key=lambda other: other.at.object_bytes)
        scale = largest.at.object_bytes / time.at.object_bytes
        parts.append(_part(time, largest, seed, _above_one, scale))
    return tuple(parts)


_Judge = Callable[[Ratio], Verdict]
_NEAR_ONE = (1 - MUCH, 1 + MUCH)


def _above_one(ratio: Ratio) -> Verdict:
    return ratio.is_above(1.0)


def _is_near_one(ratio: Ratio) -> Verdict:
    return ratio.is_within(*_NEAR_ONE)


def _of(times: Iterable[Time], operation: str) -> list[Time]:
    return [time for time in times if time.at.operation == operation]


def _against(
    bob: Sequence[Time], minio: Sequence[Time], seed: int, judge: _Judge
) -> tuple[Part, ...]:
    """MinIO's time over Bob's in every place where both were measured, each placement of Bob's."""
    parts = []
    for time in bob:
        for other in minio:
            if (_place(other.at), other.at.object_bytes) == (_place(time.at), time.at.object_bytes):
                parts.append(_part(other, time, seed, judge, at=time.at))
    return tuple(parts)


def _place(at: At) -> tuple[Any, ...]:
    """Where, but for size and placement: MinIO does not tell where its keys lie."""
    return at.nodes, at.operation, at.keys, at.others


def _part(
    over: Time, under: Time, seed: int, judge: _Judge, scale: float = 1.0, at: At | None = None
) -> Part:
    if over.values_ms is not None and under.values_ms is not None:
        seeds = seed_for(seed, "conclusions", over.at, under.at)
        means = ratios.of_means(over.values_ms, under.values_ms, seeds)
        medians = ratios.of_medians(over.values_ms, under.values_ms)
    else:
        means = ratios.of_estimates(over.mean, under.mean)
        medians = ratios.of_estimates(over.median, under.median)
    means, medians = _scaled(means, scale), _scaled(medians, scale)
    return Part(at or over.at, means, medians, judge(means), judge(medians))


def _skew(time: Time, judge: _Judge) -> Part:
    return Part(time.at, time.skew, None, judge(time.skew), None)


def _scaled(ratio: Ratio, by: float) -> Ratio:
    interval = ratio.ci95
    return Ratio(
        ratio.estimate * by, None if interval is None else (interval[0] * by, interval[1] * by)
    )


def variant(at: At) -> str:
    """What tells parts of the same nodes, operation and size apart: placement, keys, others."""
    return ", ".join(
        [
            *([at.placement] if at.placement not in ("", "unknown") else []),
            *(["one key"] if at.keys not in ("", FRESH) else []),
            *(f"{name} {value}" for name, value in at.others),
        ]
    )
