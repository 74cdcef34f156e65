"""The section of a study of round trips: how many each endpoint makes."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.endpoints import row_of
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.figures.round_trips import (
    DEFINITIONS,
    Status,
    named,
    round_trips,
)
from wanlat.analysis.names import EN_DASH, count, format_ms, format_trips, series_labels
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.section import Column, Note, Section

DISAGREES = "≠"
"""Stands behind a critical path that disagrees with the slope beside it."""
_BELOW_LEAST_BY = 0.1
_NAMED_AT_MOST = 6


def percents(shares: Sequence[float]) -> list[int]:
    """Shares, and last what is missing to the whole, as whole percents that add up to 100."""
    exact = [100 * share for share in (*shares, max(0.0, 1 - sum(shares)))]
    down = [int(share) for share in exact]
    most_cut = sorted(range(len(exact)), key=lambda n: round(down[n] - exact[n], 3))
    for n in most_cut[: 100 - sum(down)]:
        down[n] += 1
    return down


def or_else(trips: Sequence[tuple[float, float]], places: int | None = None) -> str:
    """What requests usually make, the most frequent first: "3 or 2"; exact without `places`."""
    written = [
        f"{n:g}" if places is None else f"{round(n, places) + 0.0:.{places}f}" for n, _ in trips
    ]
    return " or ".join(dict.fromkeys(written))


def usual(row: Row, key: str) -> list[tuple[float, float]]:
    """Round trips that requests usually make, and their shares: by `modes`, or by `chains`."""
    return named([(each["round_trips"], each["share"]) for each in row[key]])


def slope_cell(row: Row) -> str:
    """The slope with its interval, and what else many requests make.

    Where the latencies are on no line, what the packets say, and of how many requests.
    """
    if row["status"] is Status.LINE:
        low, high = (format_trips(bound) for bound in row["ci95"])
        (slope, _), *others = usual(row, "modes")
        also = f" or {or_else(others, 2)}" if others else ""
        return f"{format_trips(slope)} [{low}, {high}]{also}"
    if not row["chains"]:
        return str(row["status"])
    found = usual(row, "chains")
    return f"{or_else(found)} by packets ({100 * sum(share for _, share in found):.0f} %)"


def path_cell(row: Row) -> str | None:
    """The critical path that most requests have, and others that many have."""
    mark = f" {DISAGREES}" if row["agrees"] is False else ""
    return or_else(usual(row, "chains")) + mark if row["chains"] else None


def modes_cell(row: Row) -> str:
    """Share and slope of each mode, and the share of what is on no line; together 100 %."""
    modes = row["modes"]
    if not modes:
        return str(Status.NOT_A_LINE) if row["status"] is Status.NOT_A_LINE else EN_DASH
    *shares, rest = percents([mode["share"] for mode in modes])
    if len(modes) == 1 and not rest:
        return "one"
    said = [f"{n} %: {format_trips(m['round_trips'])}" for n, m in zip(shares, modes, strict=True)]
    return ", ".join([*said, *([f"{rest} % on no line"] if rest else [])])


def cost_cell(key: str, places: int) -> Column:
    """WAN bytes or packets of one request; of a cost that may be nothing, as background is
    subtracted, only what it is at most."""

    def cell(row: Row) -> str | None:
        value, interval = row[key], row[f"{key}_ci95"]
        if value is not None and interval is not None and interval[0] <= 0 <= interval[1]:
            return f"≤ {interval[1]:,.{places}f}"
        return None if value is None else f"{value:,.{places}f}"

    return Column(key.replace("wan_", "WAN "), cell)


def is_below_least(row: Row) -> bool:
    """Whether the whole interval lies below the lower bound."""
    if row["ci95"] is None or row["least_round_trips"] is None:
        return False
    return bool(row["ci95"][1] < row["least_round_trips"] - _BELOW_LEAST_BY)


def reasons(key: str, what: str) -> Note:
    """Why rows lack something: each reason once, and the rows it holds for."""

    def said(rows: Sequence[Row]) -> str:
        labels = series_labels(list(dict.fromkeys(map(series_of, rows))))
        by_reason: dict[str, list[str]] = {}
        for row in rows:
            name = with_placement(f"{labels[series_of(row)]} {row['endpoint']}", row["placement"])
            by_reason.setdefault(str(row[key]).rstrip("."), []).append(name)
        parts = []
        for reason, of in by_reason.items():
            few = len(of) <= _NAMED_AT_MOST
            parts.append(f"{reason} ({'; '.join(of) if few else count(len(of), 'row')})")
        return f"{what} {'. '.join(parts)}."

    return Note(said, lambda row: row[key] is not None)


def _remarks(rows: Sequence[Row]) -> str | None:
    return " ".join(dict.fromkeys(said for row in rows for said in row["remarks"])) or None


NO_SLOPE = reasons("why", "No slope.")
DISAGREEMENT = Note(
    f"The two answers disagree, marked {DISAGREES}: {{rows}}.",
    lambda row: row["agrees"] is False,
    each=": {disagreement}",
)

ROUND_TRIPS = Section(
    key="round_trips",
    title="Round trips",
    flat=True,
    figures=round_trips,
    columns=(
        Column(
            "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
        ),
        Column("round trips [95 %]", slope_cell),
        Column("critical path", path_cell),
        Column("lower bound", "{least_round_trips:g}"),
        Column("intercept ms", lambda row: format_ms(row["intercept_ms"])),
        Column("modes", modes_cell, words=True),
        cost_cell("wan_bytes", 0),
        cost_cell("wan_packets", 1),
        Column("n", "{n}"),
    ),
    definitions=DEFINITIONS,
    notes=(
        NO_SLOPE,
        DISAGREEMENT,
        Note(
            "Fewer round trips than a store can make that keeps the promise assumed for its "
            "placement: {rows}. Either it does not keep it, or the lower bound is not what was "
            "assumed.",
            is_below_least,
            each=" ({round_trips:.2f} against {least_round_trips:g})",
        ),
        reasons("why_no_chain", "No critical path."),
        Note(_remarks),
        Note(
            "{total} requests on no line, in no mode and no slope: {rows}.",
            lambda row: row["why"] is None and bool(row["unexplained"]),
            each=" {unexplained} of {n}",
            total="unexplained",
        ),
        Note(
            "Requests that were not ok are in no figure: {rows}.",
            lambda row: bool(row["failed"]),
            each=" {failed} of {n}",
        ),
        Note(MEANING, lambda row: is_known(row["placement"])),
    ),
    charts="wanlat.analysis.charts.round_trips:charts_of",
    is_trouble=lambda row: bool(row["failed"] or row["why"]),
    group=lambda row: row_of(row["endpoint"]),
    hidden=frozenset({"status", "remarks"}),
)
