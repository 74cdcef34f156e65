"""The section of growth: verdicts with what a step costs, and the medians they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

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
from wanlat.analysis.names import display_system, format_ms
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.formats import change, with_interval
from wanlat.analysis.report.section import Column, Note, Section, Table


def change_of(row: Row) -> str:
    """By how much the median changes over the whole range, with its interval."""
    return change(row["change"], row["change_ci95"])


def _added(row: Row) -> str:
    """What a step adds, by each shape that is left; nothing where no growth is shown."""
    is_open = row["verdict"] == Verdict.GROWS
    return ", or ".join(
        f"{with_interval(fit['slope_ms'], fit['slope_ci95_ms'], 2)} per {fit['per']}"
        for fit in row["fits"]
        if fit["per"] and (fit["chance"] >= REJECTED if is_open else fit["shape"] == row["verdict"])
    )


def _medians(row: Row) -> str:
    """Medians by what grows; one of two modes is marked."""
    by_x = groupby(row["levels"], key=lambda level: level["x"])
    return "; ".join(
        f"{x:,.0f}: " + ", ".join(format_ms(e["median_ms"]) + "*" * e["two_modes"] for e in here)
        for x, here in by_x
    )


def _endpoint(row: Row) -> str:
    return with_placement(row["endpoint"], row["placement"])


def _others(row: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.get("others", {}).items())


def _has_failures(row: Row) -> bool:
    return any(level["failed"] for level in row["levels"])


def _noise(rows: Sequence[Row]) -> str:
    """How much runs differ, system by system, and from what that is known."""
    said = []
    for row in rows:
        share, runs = row["noise"]["share"], row["noise"]["from_repeated_runs"]
        source = (
            f"from {runs} repeated runs" if runs else "no point was run twice: give --replicates"
        )
        said.append(f"{display_system(row['system'])} {100 * share:.1f} % ({source})")
    return "Two runs of the same differ by: " + "; ".join(dict.fromkeys(said)) + "."


def _verdicts(axis: Axis) -> Table:
    return Table(
        f"The cost of {axis.noun}",
        lambda figures: figures.where(lambda row: row["parameter"] == axis.parameter),
        (
            Column("at", _others, words=True, optional=True),
            Column("endpoint", _endpoint, words=True),
            Column("medians, ms", _medians, words=True),
            Column("verdict", "{verdict}", words=True),
            Column("change [95 %]", change_of),
            Column("adds, ms [95 %]", _added, words=True),
        ),
        (
            Note(
                f"Change: of the median from the fewest to the most {axis.noun}. Constant: by less "
                f"than {100 * CONSTANT_WITHIN:.0f} % for certain. A shape: the only one that fits."
            ),
            Note(
                "*: requests take one of two times, and the median is that of the more frequent "
                "one; nothing is fitted to it.",
                lambda row: any(level["two_modes"] for level in row["levels"]),
            ),
            Note(_noise),
            Note("Failures are in no figure: {rows}.", _has_failures),
            Note(MEANING, lambda row: is_known(row["placement"])),
        ),
        is_trouble=_has_failures,
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
        "logarithmic": "base_ms + slope_ms x log(x / least x), the base of the log as `per` says",
        "linear": "base_ms + slope_ms x (x - least x)",
        "chance": f"of points as far off, were the curve right; below {REJECTED:g}: rejected",
        "verdict": "the shape that is left, where the change of all that are left is not 0; "
        f"constant: none of more than {100 * CONSTANT_WITHIN:g} % possible",
        "two_modes": "a fifth of the requests at least is on either side of a gap in which latency "
        "at least doubles: medians may jump, and nothing is fitted",
        "noise": "by how much medians of two runs of the same differ: from repeated points, else "
        f"{100 * ASSUMED:g} % or what the points' distance from the best curves asks for",
    },
    charts="wanlat.analysis.charts.growth:charts_of",
    tables=tuple(_verdicts(axis) for axis in AXES),
)
