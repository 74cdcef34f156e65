"""What holds of a store, and not of one cluster of it: estimates over replicates.

The unit of evidence is a cluster. Each one's own estimate is one value, and Student's interval of
their mean holds however few there are: a bootstrap of five clusters covers 82 times in 100 what it
says it covers 95 times (tests/analysis/test_clusters.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.endpoints import endpoint_order, row_of
from wanlat.analysis.figures.latency import latency, rounded
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.figures.round_trips import round_trips
from wanlat.analysis.names import EN_DASH, digits, estimate, share
from wanlat.analysis.report.section import ENDPOINT, Column, Note, Section
from wanlat.analysis.stats.intervals import of_mean
from wanlat.analysis.sweep import REPLICATE, Sweep

_KEYS = ("system", "version", "endpoint", "placement")


def over_clusters(sweep: Sweep, figures: Figures, names: Sequence[str]) -> Figures | None:
    """Figures `names` of each endpoint over the clusters of a point; None without replicates.

    A cluster of which a figure does not exist (no request succeeded) is in `without`, and in no
    estimate; one whose network was wrong is left out altogether. `spread` is the standard deviation
    of the first figure between clusters, a share of its mean. `hosts`: how many of them ran on each
    machine, where there are several machines. Arrays: the rows of the clusters.
    """
    if not sweep.varies(REPLICATE):
        return None
    others = tuple(name for name in figures.parameters if name != REPLICATE)
    left_out, groups = sweep.untrusted, dict[tuple[str, ...], list[Row]]()
    for row in figures.rows:
        if row["point"] not in left_out:
            key = tuple(str(row[name]) for name in (*_KEYS, *others))
            groups.setdefault(key, []).append(row)
    hosts = sweep.hosts if len(sweep.hosts) > 1 else {}
    host_of = {point: host for host, points in hosts.items() for point in points}
    pairs = [(_row(rows, names, (*_KEYS, *others), host_of), rows) for rows in groups.values()]
    order = endpoint_order({row["endpoint"] for row, _ in pairs}, sweep.manifest.get("study"))
    found = figures_of(sorted(pairs, key=lambda pair: order.index(pair[0]["endpoint"])))
    return None if found is None else replace(found, parameters=others)


def per_request(bundle: Bundle) -> Figures | None:
    """Round trips with `per_request`, their mean over the requests that lie on a line.

    Which of several ways is the most frequent one is a toss, and what they take on average is not.
    """
    found = round_trips(bundle)
    if found is None:
        return None
    rows = list[Row]()
    for row in found.rows:
        weight = sum(mode["share"] for mode in row["modes"])
        whole = sum(mode["share"] * mode["round_trips"] for mode in row["modes"])
        rows.append({**row, "per_request": whole / weight if weight else None})
    return replace(found, rows=tuple(rows))


def _row(
    rows: Sequence[Row], names: Sequence[str], keys: Sequence[str], host_of: Mapping[str, str]
) -> Row:
    found: dict[str, Any] = {key: rows[0][key] for key in keys}
    on = Counter(host_of.get(row["point"], "unknown") for row in rows if host_of)
    values = [row[names[0]] for row in rows if row[names[0]] is not None]
    found |= {
        "clusters": len(values),
        "without": len(rows) - len(values),
        "n": sum(row["n"] for row in rows),
        "hosts": dict(sorted(on.items())),
    }
    for name in names:
        mine = np.array([row[name] for row in rows if row[name] is not None], dtype=np.float64)
        found[name] = rounded(float(mine.mean())) if mine.size else None
        found[f"{name}_ci95"] = [*map(rounded, of_mean(mine))] if mine.size > 1 else None
    first = np.array(values, dtype=np.float64)
    found["least"], found["most"] = (min(values), max(values)) if values else (None, None)
    is_known = first.size > 1 and first.mean() > 0
    found["spread"] = rounded(float(first.std(ddof=1) / first.mean())) if is_known else None
    return found


ENOUGH = 5
"""Student's interval of three clusters is twice as wide as that of five that differ as much."""


def _range(figures: int) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return f"{digits(row['least'], figures)} {EN_DASH} {digits(row['most'], figures)}"

    return cell


_WHOSE = (
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
        each=" ({without})",
    ),
)
_DEFINITIONS = {
    "clusters": "fresh clusters that have the figure; each is one value",
    "hosts": "how many of them ran on each machine, where there are several machines",
    "ci95": "Student's interval of the mean over clusters",
    "spread": "standard deviation between clusters, a share of the mean",
}

CLUSTERS = Section(
    key="clusters",
    title="Latency over clusters",
    figures=latency,
    across=partial(over_clusters, names=("median_ms", "mean_ms")),
    rows="entries",
    columns=(
        *_WHOSE,
        Column("median ms [95 %]", estimate("median_ms", 4)),
        Column("of one cluster", _range(4)),
        Column("mean ms [95 %]", estimate("mean_ms", 4)),
        Column("SD of clusters", lambda row: share(row["spread"])),
    ),
    definitions=_DEFINITIONS,
    notes=_NOTES,
    charts="wanlat.analysis.charts.sweep:clusters_of",
    is_trouble=lambda row: row["without"] > 0,
    group=lambda row: row_of(row["endpoint"]),
)


def _hundredths(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # and no minus before a zero


def _trips(key: str) -> Callable[[Mapping[str, Any]], str]:
    def said(row: Mapping[str, Any]) -> str:
        if row[key] is None:
            return EN_DASH
        bounds = ", ".join(map(_hundredths, row[f"{key}_ci95"] or ()))
        return f"{_hundredths(row[key])} [{bounds or EN_DASH}]"

    return said


CLUSTERS_ROUND_TRIPS = replace(
    CLUSTERS,
    key="clusters_round_trips",
    title="Round trips over clusters",
    figures=per_request,
    across=partial(over_clusters, names=("per_request", "round_trips")),
    columns=(
        *_WHOSE,
        Column("round trips a request [95 %]", _trips("per_request")),
        Column(
            "of one cluster",
            lambda row: f"{_hundredths(row['least'])} – {_hundredths(row['most'])}",
        ),
        Column("main mode [95 %]", _trips("round_trips")),
    ),
    definitions={
        **_DEFINITIONS,
        "per_request": "mean over the requests that lie on a line, of the slopes of their modes",
    },
    charts="wanlat.analysis.charts.sweep:round_trips_of_clusters",
)
