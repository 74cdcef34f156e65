"""Object sizes: what one request takes by system, nodes, operation and size, as a rate too.

The table of the "Bob vs MinIO" comparison, from samples: every request is timed alone, so that the
time per request is the mean of samples, and requests per second and throughput follow from it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis import ratios
from wanlat.analysis.bundle import Series
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.outliers import Outliers, outliers_of
from wanlat.analysis.ratios import Ratio
from wanlat.analysis.statistics import Latency, describe
from wanlat.analysis.summary import Group, grouped, ok_ms, seed_of
from wanlat.analysis.sweep import Point, Sweep, bytes_of
from wanlat.analysis.units import Rate, rate_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.grid import Grid
    from wanlat.analysis.statistics import Values

READ, WRITE = "read", "write"
OPERATIONS: Mapping[str, str] = {
    "GetObject": READ,
    "Get": READ,
    "PutObject": WRITE,
    "Put": WRITE,
}
"""Which endpoint is a read or a write of a whole object; no other has a throughput."""

SIZE, NODES, KEY_MODE = "object_size", "nodes", "key_mode"
FRESH, ONE = "fresh", "one"


@dataclass(frozen=True)
class At:
    """Where something was measured: everything but the system.

    `others` are parameters that are swept besides, with their values as tables have them.
    """

    nodes: int | None
    operation: str
    object_bytes: int
    keys: str
    placement: str
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Entry:
    """One operation of one size on one system and cluster. Statistics are over `ok` requests.

    `skew` is mean / median. `rate` is of the mean. `values_ms` are the samples, shape (ok,).
    `limited_by` says which part of the study's budget allowed no more samples ("time", "bytes",
    "min_samples"; None: as many as were asked for). `verified` and `made` are the parts of the time
    (0..1) that went into comparing the object that came, and into making the one that was sent.
    """

    point: str
    series: Series
    at: At
    endpoint: str
    ok: int
    failed: int
    latency: Latency
    outliers: Outliers
    skew: Ratio
    rate: Rate
    limited_by: str | None
    verified: float
    made: float
    values_ms: Values = field(repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json: milliseconds, requests and bytes a second."""
        latency = self.latency
        return {
            "point": self.point,
            "system": self.series.system,
            "version": self.series.version,
            **_at_json(self.at),
            "endpoint": self.endpoint,
            "n": self.ok + self.failed,
            "ok": self.ok,
            "mean_ms": round(latency.mean_ms, 6),
            "mean_ci95_ms": _rounded(latency.mean_ci95_ms),
            "median_ms": round(latency.median_ms, 6),
            "median_ci95_ms": _rounded(latency.median_ci95_ms),
            "requests_per_s": _digits(self.rate.requests_per_s),
            "bytes_per_s": _digits(self.rate.bytes_per_s),
            "outliers": self.outliers.to_json(),
            "mean_over_median": self.skew.to_json(),
            "limited_by": self.limited_by,
            "verify_share": round(self.verified, 6),
            "make_share": round(self.made, 6),
        }


@dataclass(frozen=True)
class KeysDifference:
    """What it changes that one key is written again and again: times of one key / fresh keys."""

    series: Series
    at: At
    fresh_mean_ms: float
    one_mean_ms: float
    of_means: Ratio
    of_medians: Ratio

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        where = _at_json(self.at)
        del where["keys"]
        return {
            "system": self.series.system,
            "version": self.series.version,
            **where,
            "fresh_mean_ms": round(self.fresh_mean_ms, 6),
            "one_mean_ms": round(self.one_mean_ms, 6),
            "one_over_fresh_means": self.of_means.to_json(),
            "one_over_fresh_medians": self.of_medians.to_json(),
        }


@dataclass(frozen=True)
class Sizes:
    """Everything of a sweep over object sizes; a block of its report (`wanlat.analysis.blocks`)."""

    study: str
    topology: str
    seed: int
    series: tuple[Series, ...]
    entries: tuple[Entry, ...]
    keys: tuple[KeysDifference, ...]

    def to_json(self) -> dict[str, Any]:
        """The block of summary.json."""
        return {
            "definitions": {
                "requests_per_s": "1 / mean: one request in flight, no pause between",
                "bytes_per_s": "object_bytes x requests_per_s",
                "outliers": "Tukey: mild beyond 1.5 IQR, severe beyond 3; kept in every figure",
                "mean_over_median": "of the same samples, percentile bootstrap",
                "one_over_fresh_means": "bootstrap-t of the logarithm",
            },
            "entries": [entry.to_json() for entry in self.entries],
            "one_key": [difference.to_json() for difference in self.keys],
        }

    def grids(self) -> Sequence[Grid]:
        """The table of times and rates; that of one key against fresh ones, where both are."""
        from wanlat.analysis.sizes_table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """Time, ratio between systems, and throughput, each by size."""
        from wanlat.analysis.charts.sizes import charts_of

        return charts_of(self)

    def find(self, system: str, at: At) -> Entry | None:
        """The entry of `system` there; None where it was not measured."""
        return next((e for e in self.entries if e.series.system == system and e.at == at), None)


def sizes_of(sweep: Sweep) -> Sizes | None:
    """The sizes of `sweep`; None where sizes are no axis, or no read or write was measured.

    Points whose network was not as asked for are left out.
    """
    if SIZE not in sweep.derived:
        sweep.derived[SIZE] = _sizes_of(sweep)
    found: Sizes | None = sweep.derived[SIZE]
    return found


def _sizes_of(sweep: Sweep) -> Sizes | None:
    if not any(parameter.name == SIZE for parameter in sweep.parameters):
        return None
    others = [p.name for p in sweep.parameters if p.name not in (SIZE, NODES, KEY_MODE)]
    entries = [
        entry
        for point in sweep.complete
        if point.bundle is not None and is_trusted(point.bundle)
        for entry in _entries(point, others, sweep.seed)
    ]
    if not entries:
        return None
    ordered = sorted(entries, key=lambda entry: _order(entry, sweep))
    return Sizes(
        study=sweep.study,
        topology=sweep.topology,
        seed=sweep.seed,
        series=tuple(dict.fromkeys(entry.series for entry in entries)),
        entries=tuple(ordered),
        keys=tuple(_keys(ordered, sweep.seed)),
    )


def seed_for(seed: int, *names: object) -> list[int]:
    """A seed of its own for what has these `names`: one figure more changes no other's interval."""
    return [abs(seed), zlib.crc32("\0".join(map(str, names)).encode())]


def _entries(point: Point, others: Sequence[str], seed: int) -> list[Entry]:
    from wanlat.analysis.sweep_table import written

    assert point.bundle is not None
    size = bytes_of(point.value(SIZE))
    nodes = point.value(NODES)
    known: Mapping[Group, Latency | None] = point.bundle.derived.get("latencies", {})
    found = []
    for group, rows in grouped(point.bundle.measured).items():
        operation = OPERATIONS.get(group.endpoint)
        values_ms = ok_ms(rows)
        if operation is None or size is None or values_ms.size == 0:
            continue
        latency = known.get(group) or describe(values_ms, seed_of(point.bundle.seed, group))
        assert latency is not None
        at = At(
            nodes=nodes if isinstance(nodes, int) else None,
            operation=operation,
            object_bytes=size,
            keys=ONE if point.value(KEY_MODE) == "same" else FRESH,
            placement=group.placement,
            others=tuple((name, written(point.value(name))) for name in others),
        )
        found.append(
            Entry(
                point=point.name,
                series=group.series,
                at=at,
                endpoint=group.endpoint,
                ok=int(values_ms.size),
                failed=len(rows) - int(values_ms.size),
                latency=latency,
                outliers=outliers_of(values_ms),
                skew=ratios.of_mean_to_median(values_ms, seed_for(seed, group.series, at)),
                rate=rate_of(latency.mean_ms / 1e3, size),
                limited_by=_limited_by(point.bundle, group),
                verified=_share(rows, "verify_ns"),
                made=_share(rows, "make_ns"),
                values_ms=values_ms,
            )
        )
    return found


def _limited_by(bundle: Bundle, group: Group) -> str | None:
    """What the manifest's `budget` says of why there are no more samples of `group`."""
    budget = bundle.manifest.get("budget")
    for planned in budget if isinstance(budget, list) else ():
        if not isinstance(planned, Mapping):
            continue
        asked = (planned.get("system"), planned.get("endpoint"), planned.get("placement"))
        if asked == (group.series.system, group.endpoint, group.placement):
            limit = planned.get("limited_by")
            return None if limit is None else str(limit)
    return None


def _share(rows: pd.DataFrame, column: str) -> float:
    """The part of the time of requests that succeeded which `column` has; 0 of old bundles."""
    if column not in rows:
        return 0.0
    spent, total = ok_ms(rows, column).sum(), ok_ms(rows).sum()
    return float(spent / total) if total else 0.0


def _keys(entries: Sequence[Entry], seed: int) -> list[KeysDifference]:
    from dataclasses import replace

    by_place = {(entry.series, entry.at): entry for entry in entries}
    found = []
    for entry in entries:
        one = by_place.get((entry.series, replace(entry.at, keys=ONE)))
        if entry.at.keys != FRESH or one is None:
            continue
        found.append(
            KeysDifference(
                series=entry.series,
                at=entry.at,
                fresh_mean_ms=entry.latency.mean_ms,
                one_mean_ms=one.latency.mean_ms,
                of_means=ratios.of_means(
                    one.values_ms, entry.values_ms, seed_for(seed, "keys", entry.series, entry.at)
                ),
                of_medians=ratios.of_medians(one.values_ms, entry.values_ms),
            )
        )
    return found


def _order(entry: Entry, sweep: Sweep) -> tuple[Any, ...]:
    """By nodes, operation and size, so that systems that compare stand together."""
    systems = list(dict.fromkeys(point.system for point in sweep.points))
    at = entry.at
    return (
        at.others,
        at.nodes or 0,
        at.operation,
        at.object_bytes,
        systems.index(entry.series.system) if entry.series.system in systems else len(systems),
        entry.series.version,
        at.keys,
        at.placement,
    )


def _at_json(at: At) -> dict[str, Any]:
    return {
        "nodes": at.nodes,
        "operation": at.operation,
        "object_bytes": at.object_bytes,
        "keys": at.keys,
        "placement": at.placement,
        **({"others": dict(at.others)} if at.others else {}),
    }


def _rounded(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [round(bound, 6) for bound in interval]


def _digits(value: float) -> float:
    """Nine digits: more than was measured, and short to read."""
    return float(f"{value:.9g}")
