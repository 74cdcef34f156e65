"""The section of growth: verdicts with what a step costs, and the medians they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wanlat.analysis.figures.growth import (
    ASSUMED,
    AXES,
    CONSTANT_WITHIN,
    REJECTED,
    Axis,
    Verdict,
    growth,
    medians,
)
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import format_ms, row_labels
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.formats import change, with_interval
from wanlat.analysis.report.section import Column, Note, Section, Table

if TYPE_CHECKING:
    pass


def change_of(row: Row) -> str:
    """By how much the median changes over the whole range, with its interval."""
    return change(row["change"], row["change_ci95"])


def _added(row: Row) -> str:
    """What a step adds, by each shape that is left; nothing where no growth is shown."""
    left = [fit for fit in row["fits"] if fit["per"] and fit["shape"] == row["verdict"]]
    if row["verdict"] == Verdict.GROWS:
        left = [fit for fit in row["fits"] if fit["per"] and fit["chance"] >= REJECTED]
    return ", or ".join(
        f"{with_interval(fit['slope_ms'], fit['slope_ci95_ms'], 2)} per {fit['per']}"
        for fit in left
    )


def _medians(row: Row) -> str:
    """Medians by what grows; one of two modes is marked."""
    said: dict[float, list[str]] = {}
    for level in row["levels"]:
        mark = "*" if level["two_modes"] else ""
        said.setdefault(level["x"], []).append(format_ms(level["median_ms"]) + mark)
    return "; ".join(f"{x:,.0f}: {', '.join(here)}" for x, here in said.items())


def _failed(row: Row) -> int:
    return sum(level["failed"] for level in row["levels"])


def _noise(rows: Sequence[Row]) -> str:
    """How much runs differ, system by system, and from what that is known."""
    labels = row_labels(list(dict.fromkeys(map(series_of, rows))))
    said = [
        f"{labels[series_of(row)]} {100 * row['noise']['share']:.1f} % ({_source(row)})"
        for row in rows
    ]
    return "Two runs of the same differ by: " + "; ".join(dict.fromkeys(said)) + "."


def _source(row: Row) -> str:
    runs = row["noise"]["from_repeated_runs"]
    return "no point was run twice" if runs is None else f"from {runs} repeated runs"


def _others(row: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.get("others", {}).items())


def _verdicts(axis: Axis) -> Table:
    return Table(
        f"The cost of {axis.noun}",
        lambda figures: figures.where(lambda row: row["parameter"] == axis.parameter),
        (
            Column("at", _others, words=True, optional=True),
            Column(
                "endpoint",
                lambda row: with_placement(row["endpoint"], row["placement"]),
                words=True,
            ),
            Column("medians, ms", _medians, words=True),
            Column("failed", lambda row: str(_failed(row) or "") or None, optional=True),
            Column("verdict", "{verdict}", words=True),
            Column("change [95 %]", change_of),
            Column("adds, ms [95 %]", _added, words=True),
        ),
        (
            Note(
                f"Change: of the median from the fewest to the most {axis.noun}. A shape is named "
                "where it is the only one that fits; constant: it changes by less than "
                f"{100 * CONSTANT_WITHIN:.0f} % for certain."
            ),
            Note(
                "*: requests take one of two times, and the median is that of the more frequent "
                "one; nothing is fitted to it.",
                lambda row: any(level["two_modes"] for level in row["levels"]),
            ),
            Note(_noise),
            Note(
                "A varied seed (--matrix seed=1,2,3) repeats points and measures how runs differ.",
                lambda row: row["noise"]["from_repeated_runs"] is None,
            ),
            Note(MEANING, lambda row: is_known(row["placement"])),
        ),
        is_trouble=lambda row: _failed(row) > 0,
        group=lambda row: (series_of(row), row.get("others")),
    )


GROWTH = Section(
    key="growth",
    title="The cost of growth",
    figures=medians,
    across=growth,
    rows="endpoints",
    columns=(),
    definitions={
        "median_ms": "of the requests that succeeded at one point; ci95 by order statistics",
        "logarithmic": "base_ms + slope_ms x log(x / least x): per tenfold of objects, per "
        "doubling of nodes",
        "linear": "base_ms + slope_ms x (x - least x): per 1,000 objects, per node",
        "chance": "of points as far off the best such curve, were the curve right; a curve below "
        f"{REJECTED:g} is rejected",
        "verdict": "the shape that is left where growth is shown and the other is rejected; "
        f"constant: no growth shown, and none of more than {100 * CONSTANT_WITHIN:g} % possible; "
        "two modes: requests take one of two times, and medians may jump between them",
        "two_modes": "of this point's requests a fifth at least is on either side of a gap in "
        "which latency at least doubles",
        "noise": "how much the medians of two runs of the same differ: from repeated points, else "
        f"{100 * ASSUMED:g} % or what the points' distance from the best curves asks for",
    },
    charts="wanlat.analysis.charts.growth:charts_of",
    tables=tuple(_verdicts(axis) for axis in AXES),
)
