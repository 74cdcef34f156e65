"""What does it take to read or write one object, by its size, and what rate is that?

Every request is timed alone, so that requests per second and throughput follow from the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wanlat.analysis import statistics
from wanlat.analysis.endpoints import operations, with_placement
from wanlat.analysis.figures.latency import latency
from wanlat.analysis.groups import seed_for, seed_of
from wanlat.analysis.names import change, digits, size, with_interval
from wanlat.analysis.section import (
    PLACED,
    Column,
    Figures,
    Note,
    Row,
    Section,
    figures_of,
    rests_on,
    series_of,
    short,
)
from wanlat.analysis.statistics import Ratio, outliers_of
from wanlat.analysis.stats.intervals import Values
from wanlat.bundle import documents
from wanlat.bundle.documents import LOCAL, PLACEMENTS, REMOTE, UNKNOWN
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run, Series
from wanlat.bundle.units import bytes_of

FRESH, ONE = "fresh", "one"
"""Kinds of keys: each written once, or one that is written again and again."""
SIZE, KEYS = "object_size", "key_mode"
_OF_LATENCY = (
    *("system", "version", "placement", "endpoint", "n", "ok", "late"),
    *("mean_ms", "mean_ci95_ms", "median_ms", "median_ci95_ms"),
)


def sizes(bundle: Run) -> Figures | None:
    """The figures of every read and write in `bundle`; None where its network was wrong.

    Statistics are over the `ok` of `n` requests, without the `late` ones. `mean_over_median` shows
    how skewed they are. Arrays: latencies of those, ms, shape (ok - late,).
    """
    return figures_of(_rows(bundle)) if bundle.is_trusted else None


def _rows(bundle: Run) -> Iterator[tuple[Row, Values]]:
    study = bundle.manifest.study or documents.Study()
    nodes = study.nodes or len(bundle.manifest.site_of_node) or None
    object_bytes, latencies = bytes_of(study.object_size), latency(bundle)
    if latencies is None or object_bytes is None:
        return
    for row, entry in zip(latencies.rows, latencies.arrays, strict=True):
        does = operations(bundle.manifest, row["system"]).get(row["endpoint"])
        if does is None or not rests_on(row):
            continue
        ms, seed = entry.values_ms, seed_of(bundle.seed, entry.group)
        figures = {
            **{name: row[name] for name in _OF_LATENCY},
            "nodes": nodes,
            "operation": does,
            "object_bytes": object_bytes,
            "keys": ONE if study.key_mode == "same" else FRESH,
            "requests_per_s": short(1e3 / float(ms.mean())),
            "bytes_per_s": short(1e3 / float(ms.mean()) * object_bytes),
            "outliers": outliers_of(ms).to_json(),
            "mean_over_median": statistics.of_mean_to_median(ms, seed).to_json(),
        }
        yield figures, ms


def by_place(matrix: Matrix, figures: Figures) -> Figures | None:
    """Those of a matrix over sizes in an order in which systems that compare stand together.

    None of a matrix in which sizes are no parameter.
    """
    if not any(parameter.name == SIZE for parameter in matrix.parameters):
        return None
    others = tuple(name for name in figures.parameters if name not in (SIZE, "nodes", KEYS))
    systems = [point.system for point in matrix.points]

    def place(pair: tuple[Row, Any]) -> tuple[Any, ...]:
        row, _ = pair
        return (
            *(str(row[name]) for name in others),
            *(row["nodes"] or 0, row["operation"], row["object_bytes"]),
            *(systems.index(row["system"]), row["version"], row["keys"]),
            PLACEMENTS.index(row["placement"]),
        )

    ordered = figures_of(sorted(zip(figures.rows, figures.arrays, strict=True), key=place))
    return None if ordered is None else replace(ordered, parameters=others)


RatioOf = Callable[[Values, Values, Sequence[int]], Ratio]
"""Makes a ratio and its interval of two arrays, with a seed."""


def over(
    figures: Figures, base: Series, of_two: RatioOf = statistics.of_means
) -> Iterator[tuple[Row, Ratio]]:
    """Each row of another series with its mean over that of `base` in the same place.

    Where the base has placements and the other does not, its remote keys are the ones that
    may have cost the other one as much; where it has none of those, its local ones.
    """
    names = ("nodes", "operation", "object_bytes", "keys", *figures.parameters)
    bases: dict[tuple[str, ...], dict[str, Values]] = {}
    others = []
    for row, ms in zip(figures.rows, figures.arrays, strict=True):
        place = tuple(str(row[name]) for name in names)
        if series_of(row) == base:
            bases.setdefault(place, {})[row["placement"]] = ms
        else:
            others.append((place, row, ms))
    for place, row, ms in others:
        order = (row["placement"], REMOTE, LOCAL, UNKNOWN)
        under = next((bases[place][e] for e in order if e in bases.get(place, {})), None)
        if under is not None:
            yield row, of_two(ms, under, seed_for(0, "ratio", *series_of(row), *place))


def _time(key: str) -> Callable[[Row], str]:
    return lambda row: with_interval(row[f"{key}_ms"], row[f"{key}_ci95_ms"], 4)


def _outliers(row: Row) -> str:
    counted = row["outliers"]
    severe = (counted["low_severe"] + counted["high_severe"]) / rests_on(row)
    return f"{100 * counted['share']:.0f} % ({100 * severe:.0f} %)"


def _more(row: Row) -> str:
    """How much more than the median the mean is."""
    ratio = row["mean_over_median"]
    return change(ratio["ratio"] - 1, [bound - 1 for bound in ratio["ci95"] or ()])


SIZES = Section(
    key="sizes",
    of_runs=False,
    title="Object sizes",
    figures=sizes,
    across=by_place,
    rows="entries",
    values="others",
    columns=(
        Column(
            "operation",
            lambda row: with_placement(row["operation"], row["placement"]),
            words=True,
        ),
        Column("nodes", "{nodes:d}", optional=True),
        Column("size", lambda row: size(row["object_bytes"])),
        Column("keys", "{keys}", words=True, optional=True),
        Column("n", lambda row: str(rests_on(row))),
        Column("mean ms [95 %]", _time("mean")),
        Column("median ms [95 %]", _time("median")),
        Column("requests/s", lambda row: digits(row["requests_per_s"])),
        Column("MiB/s", lambda row: digits(row["bytes_per_s"] / 2**20)),
        Column("outliers (severe)", _outliers),
        Column("mean over median [95 %]", _more),
    ),
    definitions={
        "requests_per_s": "1 / mean: one request in flight, no pause between",
        "bytes_per_s": "object_bytes x requests_per_s",
        "outliers": "Tukey: mild beyond 1.5 IQR, severe beyond 3; kept in every figure",
        "mean_over_median": "of the same samples, percentile bootstrap",
    },
    notes=(
        Note(
            "Requests a second and throughput are of one request in flight: 1 / mean, and size "
            "times that. No load was tried."
        ),
        PLACED,
        Note("Failures are in no figure: {rows}.", lambda row: row["n"] > row["ok"]),
        Note(
            f"Keys: {FRESH}, each written once; {ONE}, written again and again.",
            lambda row: row["keys"] == ONE,
        ),
    ),
    charts="wanlat.analysis.charts.sizes:charts_of",
    is_trouble=lambda row: row["n"] > row["ok"],
    group=lambda row: (row["nodes"], row["operation"]),
    hidden=frozenset(("object_size", "key_mode")),
)
