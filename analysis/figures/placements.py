"""Where a cluster's nodes were put: latencies as they were predicted, and as they were measured.

A prediction is of the network alone, and typical: it is compared with medians. Where it is from
round trips that were measured, on average, it is compared with means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from wanlat.analysis.figures.latency import latency
from wanlat.analysis.names import count, digits, estimate, listing, share, with_interval
from wanlat.analysis.section import (
    Column,
    Figures,
    Note,
    Row,
    Section,
    Table,
    figures_of,
    rests_on,
    short,
)
from wanlat.analysis.stats.intervals import Values, of_mean
from wanlat.bundle.documents import Placement, Placements, Titles
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.read import read_document

ADDED_MS = 5.0
"""What nodes compute, write and queue is less, on a machine that has time."""
_NAMED = 6


@dataclass(frozen=True)
class Of:
    """The placement that a row is of, and the bundle's document of all of them."""

    placement: Placement
    document: Placements


def predicted(matrix: Matrix, figures: Figures) -> Figures | None:
    """Every endpoint at every target node of each placement; None where none was.

    `measured_ms` and `error_ms`, which is measured less predicted, have Student's interval over
    clusters; `error` is a share of the prediction, None where that is no time at all.
    """
    document = read_document(matrix.directory, Placements)
    if document is None:
        return None
    groups: dict[tuple[str, str, str], list[Row]] = {}
    places = {p.name: (str(p.value("topology")), str(p.value("client"))) for p in matrix.points}
    for row in figures.rows:
        if row["point"] not in matrix.untrusted:
            key = *places[row["point"]], str(row["endpoint"])
            groups.setdefault(key, []).append(row)
    return figures_of(_rows(document, groups))


def _rows(
    document: Placements, groups: Mapping[tuple[str, str, str], Sequence[Row]]
) -> Iterator[tuple[Row, Of]]:
    for placement in document.placements:
        for request in placement.requests:
            rows = groups.get((placement.name, request.target, request.endpoint), ())
            is_promised = document.sources[request.endpoint] == "promised"
            key = "median_ms" if is_promised else "mean_ms"
            values = np.array([row[key] for row in rows if row[key] is not None])
            if not values.size:
                continue
            error_ms = values - request.ms
            yield (
                {
                    **{name: rows[0][name] for name in ("system", "version", "endpoint")},
                    "rank": placement.rank,
                    "regions": list(placement.regions),
                    "leader": placement.leader,
                    "target": request.target,
                    "predicted_ms": request.ms,
                    **_over_clusters("measured_ms", values),
                    **_over_clusters("error_ms", error_ms),
                    "error": short(float(error_ms.mean()) / request.ms) if request.ms else None,
                    "statistic": key.removesuffix("_ms"),
                    "clusters": values.size,
                    "clusters_ms": [*map(short, values.tolist())],
                    "n": sum(rests_on(row) for row in rows if row[key] is not None),
                },
                Of(placement, document),
            )


def _over_clusters(name: str, values: Values, least: float = -np.inf) -> dict[str, Any]:
    ends = of_mean(values) if values.size > 1 else ()
    ci95 = [short(max(least, end), 6) for end in ends] or None
    return {name: short(float(values.mean()), 6), f"{name}_ci95": ci95}


# -- all of them -----------------------------------------------------------------------------


def errors(rows: Sequence[Row]) -> dict[str, Any]:
    """How far off predictions are: the median and the largest of all rows, without their signs.

    Each in ms and as a share of the prediction, with Student's interval over clusters: the first
    cluster of every row is one value, the second another. Shares are of the rows of which
    something is predicted.
    """
    clusters = min(row["clusters"] for row in rows)
    measured_ms = np.array([row["clusters_ms"][:clusters] for row in rows])
    predicted_ms = np.array([row["predicted_ms"] for row in rows])
    off_ms = np.abs(measured_ms - predicted_ms[:, None])
    is_known = predicted_ms > 0
    shares = off_ms[is_known] / predicted_ms[is_known, None]
    made: dict[str, Any] = {"clusters": clusters}
    for name, values in (("error_ms", off_ms), ("error", shares)):
        for which, over in (("median", np.median), ("worst", np.max)):
            if values.size:
                made |= _over_clusters(f"{which}_{name}", over(values, axis=0), least=0.0)
    return made


def stated(rows: Sequence[Row], _titles: Titles) -> str:
    """The prediction error in a sentence's words."""
    off = errors(rows)

    def error_of(which: str) -> str:
        key = f"{which}_error_ms"
        text = f"{with_interval(off[key], off[f'{key}_ci95'], 2)} ms"
        if (part := off.get(f"{which}_error")) is not None:
            ends = off[f"{which}_error_ci95"] or ()
            text += f", {with_interval(100 * part, [100 * end for end in ends], 2)} %"
        return text

    return f"Prediction error: median {error_of('median')}; worst {error_of('worst')}."


def placed(figures: Figures) -> Figures | None:
    """The placements, best predicted first: what all clients wait for on average.

    A client's way to its target node is as predicted; what that node takes was measured.
    """
    by_rank: dict[int, list[tuple[Row, Of]]] = {}
    for row, placement in zip(figures.rows, figures.arrays, strict=True):
        by_rank.setdefault(row["rank"], []).append((row, placement))
    return figures_of(_placement(pairs) for pairs in by_rank.values() if _is_whole(pairs))


def _is_whole(pairs: Sequence[tuple[Row, Of]]) -> bool:
    return len(pairs) == len(pairs[0][1].placement.requests)


def _placement(pairs: Sequence[tuple[Row, Of]]) -> tuple[Row, None]:
    row, first = pairs[0]
    placement, mix = first.placement, first.document.mix
    clusters = min(row["clusters"] for row, _ in pairs)
    shares: dict[str, float] = {}
    for client in placement.clients:
        shares[client.target] = shares.get(client.target, 0.0) + client.share
    means = np.full(clusters, sum(client.share * client.way_ms for client in placement.clients))
    for request, _ in pairs:
        weight = shares[request["target"]] * mix[request["endpoint"]]
        means = means + weight * np.array(request["clusters_ms"][:clusters])
    return (
        {
            **{name: row[name] for name in ("system", "version", "rank", "regions", "leader")},
            "predicted_ms": placement.mean_ms,
            **_over_clusters("measured_ms", means),
            **_over_clusters("error_ms", means - placement.mean_ms),
            "clusters": clusters,
        },
        None,
    )


def order(figures: Figures) -> str | None:
    """Whether measured means order the placements as predicted ones do; None where all are one."""
    groups = placed(figures)
    if groups is None or len(groups.rows) < 2:
        return None
    pairs = [
        (a, b) for a, b in permutations(groups.rows, 2) if a["predicted_ms"] < b["predicted_ms"]
    ]
    wrong = [(a, b) for a, b in pairs if a["measured_ms"] > b["measured_ms"]]
    if not wrong:
        return "Measured, the placements are in the order that was predicted."
    swaps = listing([f"{b['rank']} before {a['rank']}" for a, b in wrong], _NAMED)
    return f"Measured, placements are in another order than predicted: {swaps}."


def _is_added(row: Row) -> bool:
    return _is_above(row) and row["error_ms"] <= _explained(row)


def _is_unexplained(row: Row) -> bool:
    return _is_above(row) and row["error_ms"] > _explained(row)


def _explained(row: Row) -> float:
    return max(ADDED_MS, 0.05 * float(row["predicted_ms"]))


def _is_above(row: Row) -> bool:
    return row["error_ms_ci95"] is not None and row["error_ms_ci95"][0] > 0


def _is_below(row: Row) -> bool:
    return row["error_ms_ci95"] is not None and row["error_ms_ci95"][1] < 0


def _which(rows: Sequence[Row]) -> str:
    parts = [
        f"{row['endpoint']} of placement {row['rank']} at {row['target']} "
        f"({digits(row['error_ms'], 2)} ms)"
        for row in rows
    ]
    return listing(parts, _NAMED)


def _added(rows: Sequence[Row], _titles: Titles) -> str:
    least, most = (digits(f(row["error_ms"] for row in rows), 2) for f in (min, max))
    return (
        f"More than predicted, by {least} to {most} ms: {count(len(rows), 'row')}. So much take "
        "what nodes compute, write and queue, and this machine; a prediction is of the network "
        "alone."
    )


def _unexplained(rows: Sequence[Row], _titles: Titles) -> str:
    return (
        "More than predicted, by more than nodes take: there the store waits for other nodes than "
        f"its definition says, or again, or jitter has it wait for the slower: {_which(rows)}."
    )


def _below(rows: Sequence[Row], _titles: Titles) -> str:
    return (
        "Less than predicted: a nearer node answers than the definition says, or fewer round trips "
        f"are needed: {_which(rows)}."
    )


def _regions(row: Row) -> str:
    return " ".join(row["regions"])


_RANK = Column("rank", "{rank}")
_LEADER = Column("leader", lambda row: row["leader"], words=True, optional=True)
_TIMES = (
    Column("predicted ms", lambda row: digits(row["predicted_ms"])),
    Column("measured ms [95 %]", estimate("measured_ms", 4)),
    Column("error ms [95 %]", estimate("error_ms", 2)),
)

PLACEMENTS = Section(
    key="placements",
    of_runs=False,
    title="Predicted and measured",
    figures=latency,
    across=predicted,
    rows="requests",
    columns=(
        _RANK,
        _LEADER,
        Column("target", "{target}", words=True),
        Column("endpoint", "{endpoint}", words=True),
        *_TIMES,
        Column("error", lambda row: share(abs(row["error"])) if row["error"] is not None else None),
    ),
    definitions={
        "predicted_ms": "round trips that the system's definition promises (or that were measured: "
        "`sources` in placements.json) over the RTTs that were requested",
        "measured_ms": "`statistic` of a cluster's requests from the target node's region, mean "
        "over clusters with Student's interval",
        "error_ms": "measured less predicted; median and worst are of all rows, without signs",
    },
    notes=(
        Note(stated),
        Note(
            lambda rows, _titles: (
                f"Outside its interval over clusters is the prediction of "
                f"{sum(_is_above(row) or _is_below(row) for row in rows)} of "
                f"{count(len(rows), 'row')}."
            ),
            lambda row: row["error_ms_ci95"] is not None,
        ),
        Note(_added, _is_added),
        Note(_unexplained, _is_unexplained),
        Note(_below, _is_below),
        Note("One cluster, so no interval: {rows}.", lambda row: row["clusters"] == 1),
    ),
    charts={"placements": "wanlat.analysis.charts.placements:draw"},
    is_trouble=lambda row: _is_unexplained(row) or _is_below(row),
    group=lambda row: row["rank"],
    beside=lambda figures: errors(figures.rows),
    tables=(
        Table(
            title="Mean over clients",
            rows=placed,
            columns=(_RANK, Column("regions", _regions, words=True), _LEADER, *_TIMES),
            notes=(
                Note("A client's way to its target node is the matrix's and was not measured."),
            ),
            key="placements",
        ),
    ),
)
