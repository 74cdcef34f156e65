"""The section of object sizes: times and rates, and one key compared with fresh ones."""

from __future__ import annotations

from collections.abc import Callable

from wanlat.analysis.figures.result import Row
from wanlat.analysis.figures.sizes import FRESH, ONE, by_place, sizes
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.formats import change, digits, size, with_interval
from wanlat.analysis.report.section import Column, Note, Section


def _time(key: str) -> Callable[[Row], str]:
    return lambda row: with_interval(row[f"{key}_ms"], row[f"{key}_ci95_ms"], 4)


def _outliers(row: Row) -> str:
    counted = row["outliers"]
    severe = (counted["low_severe"] + counted["high_severe"]) / row["ok"]
    return f"{100 * counted['share']:.0f} % ({100 * severe:.0f} %)"


def _more(row: Row) -> str:
    """How much more than the median the mean is."""
    ratio = row["mean_over_median"]
    return change(ratio["ratio"] - 1, [bound - 1 for bound in ratio["ci95"] or ()])


SIZES = Section(
    key="sizes",
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
        Column("ok", "{ok}"),
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
        Note(MEANING, lambda row: is_known(row["placement"])),
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
