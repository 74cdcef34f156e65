"""What holds of a store, and not of one cluster of it: estimates over replicates.

The unit of evidence is a cluster. Each one's own estimate is one value, and Student's interval of
their mean holds however few there are: a bootstrap of five clusters covers 82 times in 100 what it
says it covers 95 times (tests/analysis/test_clusters.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.latency import rounded
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.figures.round_trips import round_trips
from wanlat.analysis.notes import untrusted_points
from wanlat.analysis.stats.intervals import of_mean
from wanlat.analysis.sweep import REPLICATE, Sweep

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle

_KEYS = ("system", "version", "endpoint", "placement")


def over_clusters(sweep: Sweep, figures: Figures, names: Sequence[str]) -> Figures | None:
    """Figures `names` of each endpoint over the clusters of a point; None without replicates.

    A cluster of which a figure does not exist (no request succeeded) is in `without`, and in no
    estimate; one whose network was wrong is left out altogether. `spread` is the standard deviation
    of the first figure between clusters, a share of its mean. Arrays: the rows of the clusters.
    """
    if not sweep.varies(REPLICATE):
        return None
    others = tuple(name for name in figures.parameters if name != REPLICATE)
    left_out, groups = untrusted_points(sweep), dict[tuple[str, ...], list[Row]]()
    for row in figures.rows:
        if row["point"] not in left_out:
            key = tuple(str(row[name]) for name in (*_KEYS, *others))
            groups.setdefault(key, []).append(row)
    pairs = [(_row(rows, names, (*_KEYS, *others)), rows) for rows in groups.values()]
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


def _row(rows: Sequence[Row], names: Sequence[str], keys: Sequence[str]) -> Row:
    found: dict[str, Any] = {key: rows[0][key] for key in keys}
    values = [row[names[0]] for row in rows if row[names[0]] is not None]
    found |= {
        "clusters": len(values),
        "without": len(rows) - len(values),
        "n": sum(row["n"] for row in rows),
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
