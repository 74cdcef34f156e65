"""What holds of a store, and not of one cluster of it: estimates over replicates.

The unit of evidence is a cluster. Each one's own estimate is one value, and Student's interval of
their mean holds however few there are: a bootstrap of five clusters covers 82 times in 100 what it
claims to cover 95 times (tests/analysis/test_clusters.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wanlat.analysis.endpoints import endpoint_order, row_of
from wanlat.analysis.figures.latency import latency, rounded
from wanlat.analysis.figures.round_trips import (
    DECIDED,
    Status,
    decided,
    round_trips,
    ways,
    ways_cell,
)
from wanlat.analysis.names import EN_DASH, digits, estimate, share
from wanlat.analysis.section import (
    ENDPOINT,
    Column,
    Figures,
    Note,
    Row,
    Section,
    figures_of,
    rests_on,
)
from wanlat.analysis.stats.intervals import of_mean
from wanlat.bundle import REPLICATE
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run

_KEYS = ("system", "version", "endpoint", "placement")


def over_clusters(matrix: Matrix, figures: Figures, names: Sequence[str]) -> Figures | None:
    """Figures `names` of each endpoint over the clusters of a point; None without replicates.

    A cluster of which a figure does not exist (no request succeeded) is in `without`, and in no
    estimate; one on a wrong network is left out altogether. `spread` is the standard deviation
    of the first figure between clusters, a share of its mean, `n` how many requests that figure
    rests on. `hosts`: how many of them ran on each machine, where there are several machines.
    Arrays: the rows of the clusters.
    """
    if not matrix.varies(REPLICATE):
        return None
    others = tuple(name for name in figures.parameters if name != REPLICATE)
    left_out, groups = matrix.untrusted, dict[tuple[str, ...], list[Row]]()
    for row in figures.rows:
        if row["point"] not in left_out:
            key = tuple(str(row[name]) for name in (*_KEYS, *others))
            groups.setdefault(key, []).append(row)
    hosts = matrix.hosts if len(matrix.hosts) > 1 else {}
    host_of = {point: host for host, points in hosts.items() for point in points}
    pairs = [(_row(rows, names, (*_KEYS, *others), host_of), rows) for rows in groups.values()]
    order = endpoint_order({row["endpoint"] for row, _ in pairs}, matrix.manifest.study)
    ordered = figures_of(sorted(pairs, key=lambda pair: order.index(pair[0]["endpoint"])))
    return None if ordered is None else replace(ordered, parameters=others)


def with_rest(bundle: Run) -> Figures | None:
    """Round trips with their `rest`, the share that no line explains, and the `entry` itself."""
    measured = round_trips(bundle)
    if measured is None:
        return None
    rows = []
    for row, entry in zip(measured.rows, measured.arrays, strict=True):
        rest = max(0.0, 1 - sum(mode["share"] for mode in row["modes"]))
        is_known = row["status"] is not Status.NO_NUMBER
        rows.append({**row, "entry": entry, "rest": rest if is_known else None})
    return replace(measured, rows=tuple(rows))


def ways_over_clusters(matrix: Matrix, figures: Figures) -> Figures | None:
    """What requests take (`ways`), of all clusters of a point, and what has `decided` that."""
    pooled = over_clusters(matrix, figures, ("rest",))
    if pooled is None:
        return None
    pairs = zip(pooled.rows, pooled.arrays, strict=True)
    rows = ({**row, "ways": ways(array), "decided": decided(array)} for row, array in pairs)
    return replace(pooled, rows=tuple(rows))


def _row(
    rows: Sequence[Row], names: Sequence[str], keys: Sequence[str], host_of: Mapping[str, str]
) -> Row:
    pooled: dict[str, Any] = {key: rows[0][key] for key in keys}
    on = Counter(host_of.get(row["point"], "unknown") for row in rows if host_of)
    values = [row[names[0]] for row in rows if row[names[0]] is not None]
    pooled |= {
        "clusters": len(values),
        "without": len(rows) - len(values),
        "n": sum(rests_on(row) for row in rows if row[names[0]] is not None),
        "hosts": dict(sorted(on.items())),
    }
    for name in names:
        mine = np.array([row[name] for row in rows if row[name] is not None], dtype=np.float64)
        pooled[name] = rounded(float(mine.mean())) if mine.size else None
        pooled[f"{name}_ci95"] = [*map(rounded, of_mean(mine))] if mine.size > 1 else None
    first = np.array(values, dtype=np.float64)
    pooled["least"], pooled["most"] = (min(values), max(values)) if values else (None, None)
    is_known = first.size > 1 and first.mean() > 0
    pooled["spread"] = rounded(float(first.std(ddof=1) / first.mean())) if is_known else None
    return pooled


ENOUGH = 5
"""Student's interval of three clusters is twice as wide as that of five that differ as much."""


def _range(figures: int) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return f"{digits(row['least'], figures)} {EN_DASH} {digits(row['most'], figures)}"

    return cell


_SUBJECT = (
    ENDPOINT,
    Column("clusters", "{clusters}"),
    Column("hosts", lambda row: str(len(row["hosts"])) if row["hosts"] else None, optional=True),
    Column("n", "{n}"),
)
_NOTES = (
    Note(
        "Intervals are over clusters (Student's): what another start of the store would do is in "
        "them. Of how requests of one cluster differ, see its own row below."
    ),
    Note(
        f"Fewer than {ENOUGH} clusters, so that intervals are wide: {{rows}}.",
        lambda row: 1 < row["clusters"] < ENOUGH,
    ),
    Note(
        "Clusters of several hosts: how these differ is in the interval, and it holds for them "
        "alone: {rows}.",
        lambda row: len(row["hosts"]) > 1,
    ),
    Note("One cluster, so no interval: {rows}.", lambda row: row["clusters"] == 1),
    Note(
        "Clusters without a figure are in no estimate: {rows}.",
        lambda row: row["without"] > 0,
        detail=" ({without})",
    ),
)
_DEFINITIONS = {
    "clusters": "fresh clusters that have the figure; each is one value",
    "n": "requests that the figures of these clusters rest on",
    "hosts": "how many of them ran on each machine, where there are several machines",
    "ci95": "Student's interval of the mean over clusters",
    "spread": "standard deviation between clusters, a share of the mean",
}

CLUSTERS = Section(
    key="clusters",
    of_runs=False,
    title="Latency over clusters",
    figures=latency,
    across=partial(over_clusters, names=("median_ms", "mean_ms")),
    rows="entries",
    columns=(
        *_SUBJECT,
        Column("median ms [95 %]", estimate("median_ms", 4)),
        Column("of one cluster", _range(4)),
        Column("mean ms [95 %]", estimate("mean_ms", 4)),
        Column("SD of clusters", lambda row: share(row["spread"])),
    ),
    definitions=_DEFINITIONS,
    notes=_NOTES,
    charts="wanlat.analysis.charts.matrix:clusters_of",
    is_trouble=lambda row: row["without"] > 0,
    group=lambda row: row_of(row["endpoint"]),
)


def _ways_or_none(row: Row) -> str | None:
    if not row["ways"] and row["rest"] is None:  # at one RTT there is no slope
        return None
    return ways_cell(row["ways"])


CLUSTERS_ROUND_TRIPS = replace(
    CLUSTERS,
    key="clusters_round_trips",
    title="Round trips over clusters",
    figures=with_rest,
    across=ways_over_clusters,
    columns=(
        *_SUBJECT,
        Column("round trips [95 %]", _ways_or_none, words=True),
    ),
    notes=(*_NOTES, DECIDED),
    definitions={
        **_DEFINITIONS,
        "ways": "whole numbers of round trips that a twentieth of the requests take or more: the "
        "slope of their modes, mean of the clusters that have some, and their share",
        "rest": "share of the requests that no line explains",
        "decided": "what decides how many round trips a request takes, where they differ: as the "
        "system's definition says",
    },
    charts="wanlat.analysis.charts.index:of_clusters",
)
