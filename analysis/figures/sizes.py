"""What does it take to read or write one object, by its size, and what rate is that?

Every request is timed alone, so that requests per second and throughput follow from the mean.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wanlat.analysis import ratios
from wanlat.analysis.bundle import Series
from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.figures.latency import EndpointSummary, latency
from wanlat.analysis.figures.result import Figures, Row, figures_of, series_of, short
from wanlat.analysis.groups import Group, grouped, ok_ms, seed_of
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.placement import LOCAL, PLACEMENTS, REMOTE, UNKNOWN
from wanlat.analysis.statistics import outliers_of
from wanlat.analysis.sweep import Sweep, bytes_of

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.ratios import Ratio
    from wanlat.analysis.stats.intervals import Values

READ, WRITE = "read", "write"
OPERATIONS: Mapping[str, str] = {
    "GetObject": READ,
    "Get": READ,
    "PutObject": WRITE,
    "Put": WRITE,
}
"""Which endpoint is a read or a write of a whole object; no other has a throughput."""
FRESH, ONE = "fresh", "one"
"""Kinds of keys: each written once, or one that is written again and again."""
SIZE, KEYS = "object_size", "key_mode"
_TIMES = ("mean_ms", "mean_ci95_ms", "median_ms", "median_ci95_ms")
_PLACE = ("nodes", "operation", "object_bytes", "keys")


def sizes(bundle: Bundle) -> Figures | None:
    """The figures of every read and write in `bundle`; None where its network was wrong.

    Statistics are over the `ok` of `n` requests. `mean_over_median` says how skewed they are.
    `limited_by` names the part of the study's budget that allowed no more samples ("time", "bytes",
    "min_samples"; None: there are as many as were asked for). `verify_share` and `make_share` are
    the parts of the time (0..1) that went into comparing the object that came, and into making the
    one that was sent. Arrays: latencies of those that succeeded, ms, shape (ok,).
    """
    return figures_of(_rows(bundle)) if is_trusted(bundle) else None


def by_place(sweep: Sweep, figures: Figures) -> Figures | None:
    """Those of a matrix over sizes in an order in which systems that compare stand together.

    None of a matrix in which sizes are no parameter.
    """
    if not any(parameter.name == SIZE for parameter in sweep.parameters):
        return None
    own = (SIZE, "nodes", KEYS)
    others = tuple(name for name in figures.parameters if name not in own)
    systems = list(dict.fromkeys(point.system for point in sweep.points))
    ranks = {system: rank for rank, system in enumerate(systems)}

    def place(pair: tuple[Row, Any]) -> tuple[Any, ...]:
        row, _ = pair
        return (
            *(str(row[name]) for name in others),
            *(row["nodes"] or 0, row["operation"], row["object_bytes"]),
            *(ranks.get(row["system"], len(ranks)), row["version"], row["keys"]),
            PLACEMENTS.index(row["placement"]),
        )

    pairs = sorted(zip(figures.rows, figures.arrays, strict=True), key=place)
    return replace(
        figures,
        rows=tuple(row for row, _ in pairs),
        arrays=tuple(values for _, values in pairs),
        parameters=others,
    )


def one_key(figures: Figures) -> Figures | None:
    """What it changes that one key is written again and again: its times / those of fresh keys."""
    fresh = _by_place(figures, FRESH)
    rows: list[Row] = []
    for key, (one, ones_ms) in _by_place(figures, ONE).items():
        if key not in fresh:
            continue
        row, fresh_ms = fresh[key]
        means = ratios.of_means(ones_ms, fresh_ms, _seed("keys", *key))
        kept = ("system", "version", "nodes", "operation", "object_bytes", "placement")
        rows.append(
            {name: row[name] for name in (*kept, *figures.parameters)}
            | {
                "fresh_mean_ms": row["mean_ms"],
                "one_mean_ms": one["mean_ms"],
                "one_over_fresh_means": means.to_json(),
                "one_over_fresh_medians": ratios.of_medians(ones_ms, fresh_ms).to_json(),
            }
        )
    return Figures(tuple(rows), (None,) * len(rows), figures.parameters) if rows else None


def over(figures: Figures, base: Series) -> Iterator[tuple[Row, Ratio]]:
    """Each row of another series with its mean over that of `base` in the same place.

    Where the base tells its placement and the other does not, its remote keys are the ones that
    may have cost the other one as much; where it has none of those, its local ones.
    """
    pairs = list(zip(figures.rows, figures.arrays, strict=True))
    same = (*_PLACE, *figures.parameters)
    for row, values_ms in pairs:
        if series_of(row) == base:
            continue
        found = {
            other["placement"]: other_ms
            for other, other_ms in pairs
            if series_of(other) == base and all(other[name] == row[name] for name in same)
        }
        order = dict.fromkeys((row["placement"], REMOTE, LOCAL, UNKNOWN))
        under_ms = next((found[each] for each in order if each in found), None)
        if under_ms is not None:
            seed = _seed("ratio", *series_of(row), *(row[name] for name in same))
            yield row, ratios.of_means(values_ms, under_ms, seed)


def _rows(bundle: Bundle) -> Iterator[tuple[Row, Values]]:
    study = bundle.manifest.get("study")
    asked: Mapping[str, Any] = study if isinstance(study, Mapping) else {}
    object_bytes, nodes = bytes_of(asked.get(SIZE)), asked.get("nodes")
    if nodes is None:
        nodes = len(sites_by_node(bundle.manifest.get("topology"))) or None
    measured, requests = latency(bundle), grouped(bundle.measured)
    entries: Sequence[EndpointSummary] = measured.arrays if measured is not None else ()
    for entry in entries:
        operation, values_ms = OPERATIONS.get(entry.endpoint), entry.values_ms
        if operation is None or object_bytes is None or values_ms.size == 0:
            continue
        figures = entry.to_json()
        requests_per_s = 1e3 / float(values_ms.mean())
        row = {
            **{key: figures[key] for key in ("system", "version", "placement", "endpoint")},
            "nodes": nodes if isinstance(nodes, int) else None,
            "operation": operation,
            "object_bytes": object_bytes,
            "keys": ONE if asked.get(KEYS) == "same" else FRESH,
            **{key: figures[key] for key in ("n", "ok", *_TIMES)},
            "requests_per_s": short(requests_per_s),
            "bytes_per_s": short(requests_per_s * object_bytes),
            "outliers": outliers_of(values_ms).to_json(),
            "mean_over_median": ratios.of_mean_to_median(
                values_ms, seed_of(bundle.seed, entry.group)
            ).to_json(),
            "limited_by": _limited_by(bundle, entry.group),
            "verify_share": _share(requests[entry.group], "verify_ns"),
            "make_share": _share(requests[entry.group], "make_ns"),
        }
        yield row, values_ms


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


def _share(requests: pd.DataFrame, column: str) -> float:
    """The part of the time of requests that succeeded which `column` has; 0 of old bundles."""
    if column not in requests:
        return 0.0
    spent, total = ok_ms(requests, column).sum(), ok_ms(requests).sum()
    return round(float(spent / total), 6) if total else 0.0


def _by_place(figures: Figures, keys: str) -> dict[tuple[Any, ...], tuple[Row, Values]]:
    """Rows of one kind of keys with their latencies, by everything else that tells them apart."""
    names = ("system", "version", *_PLACE[:-1], "placement", *figures.parameters)
    return {
        tuple(str(row[name]) for name in names): (row, values_ms)
        for row, values_ms in zip(figures.rows, figures.arrays, strict=True)
        if row["keys"] == keys
    }


def _seed(*names: object) -> list[int]:
    """A seed of its own for what has these `names`: one figure more changes no other's interval."""
    return [zlib.crc32("\0".join(map(str, names)).encode())]
