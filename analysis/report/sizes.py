"""The section of object sizes: times and rates, and one key compared with fresh ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.result import Row
from wanlat.analysis.figures.sizes import FRESH, ONE, by_place, one_key, sizes
from wanlat.analysis.names import count, display_system
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.formats import change, digits, share, size, with_interval
from wanlat.analysis.report.section import Column, Note, Section, Table

if TYPE_CHECKING:
    pass

_MIB = 2**20
_LIMITS = {
    "time": "time ran out for {}",
    "bytes": "bytes for {}",
    "min_samples": "the least that is measured, whatever it costs, for {}",
}


def _time(key: str) -> Callable[[Row], str]:
    return lambda row: with_interval(row[f"{key}_ms"], row[f"{key}_ci95_ms"], 4)


def _outliers(row: Row) -> str:
    counted = row["outliers"]
    severe = (counted["low_severe"] + counted["high_severe"]) / row["ok"]
    return f"{100 * counted['share']:.0f} % ({100 * severe:.0f} %)"


def _more(key: str) -> Callable[[Row], str]:
    """How much more than 1 a ratio is."""

    def cell(row: Row) -> str:
        ratio: Mapping[str, Any] = row[key]
        return change(ratio["ratio"] - 1, [bound - 1 for bound in ratio["ci95"] or ()])

    return cell


def _limited(rows: Sequence[Row]) -> str:
    limits = Counter(row["limited_by"] for row in rows)
    parts = [
        said.format(count(limits[limit], "row")) for limit, said in _LIMITS.items() if limits[limit]
    ]
    return f"Fewer samples than asked for, because of the budget: {', '.join(parts)}."


def _on_bodies(what: str, key: str) -> Note:
    """What the probe itself cost, where it is most."""

    def said(rows: Sequence[Row]) -> str:
        worst = max(rows, key=lambda row: float(row[key]))
        of = f"{display_system(worst['system'])}, {size(worst['object_bytes'])}"
        return f"{what} is in the times, and took at most {share(worst[key])} of them ({of})."

    return Note(said, lambda row: bool(row[key] > 0))


_WHERE = (
    Column("operation", lambda row: with_placement(row["operation"], row["placement"]), words=True),
    Column("nodes", "{nodes:d}", optional=True),
    Column("size", lambda row: size(row["object_bytes"])),
)

SIZES = Section(
    key="sizes",
    title="Object sizes",
    figures=sizes,
    across=by_place,
    rows="entries",
    values="others",
    columns=(
        *_WHERE,
        Column("keys", "{keys}", words=True, optional=True),
        Column("ok", "{ok}"),
        Column("mean ms [95 %]", _time("mean")),
        Column("median ms [95 %]", _time("median")),
        Column("requests/s", lambda row: digits(row["requests_per_s"])),
        Column("MiB/s", lambda row: digits(row["bytes_per_s"] / _MIB)),
        Column("outliers (severe)", _outliers),
        Column("mean over median [95 %]", _more("mean_over_median")),
    ),
    definitions={
        "requests_per_s": "1 / mean: one request in flight, no pause between",
        "bytes_per_s": "object_bytes x requests_per_s",
        "outliers": "Tukey: mild beyond 1.5 IQR, severe beyond 3; kept in every figure",
        "mean_over_median": "of the same samples, percentile bootstrap",
        "one_over_fresh_means": "bootstrap-t of the logarithm",
    },
    notes=(
        Note(
            "Requests a second and throughput are of one request in flight: 1 / mean, and size "
            "times that. No load was tried."
        ),
        Note(MEANING, lambda row: is_known(row["placement"])),
        Note("Failures are in no figure: {rows}.", lambda row: bool(row["n"] > row["ok"])),
        Note(_limited, lambda row: row["limited_by"] is not None),
        _on_bodies("Comparing the bodies that came", "verify_share"),
        _on_bodies("Making the bodies that were sent", "make_share"),
        Note(
            f"Keys: {FRESH}, each written once; {ONE}, written again and again.",
            lambda row: bool(row["keys"] == ONE),
        ),
    ),
    charts="wanlat.analysis.charts.sizes:charts_of",
    is_trouble=lambda row: bool(row["n"] > row["ok"]),
    group=lambda row: (row["nodes"], row["operation"]),
    hidden=frozenset(("object_size", "key_mode")),
    tables=(
        Table(
            "One key written again and again, compared with fresh keys",
            one_key,
            (
                *_WHERE,
                Column(f"{FRESH}, mean ms", lambda row: digits(row["fresh_mean_ms"])),
                Column(f"{ONE}, mean ms", lambda row: digits(row["one_mean_ms"])),
                Column("means differ by [95 %]", _more("one_over_fresh_means")),
                Column("medians differ by [95 %]", _more("one_over_fresh_medians")),
            ),
            (
                Note(
                    "Positive: one key takes longer. Intervals that hold 0 decide nothing. They "
                    "cover the requests of this run, and not how two clusters of a kind differ."
                ),
            ),
            key="one_key",
        ),
    ),
)
