"""The section of disk space that was given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.figures.reclaim import FREED_ALL, INSTANTS_S, reclaim
from wanlat.analysis.figures.result import Row
from wanlat.analysis.report.section import Column, Note, Section, percent

if TYPE_CHECKING:
    pass


def _minutes(after_s: float) -> Column:
    def cell(row: Row) -> str | None:
        shares = {each["after_s"]: each["share"] for each in row["freed"]}
        return None if shares[after_s] is None else f"{shares[after_s]:.0%}".replace("%", " %")

    return Column(f"{after_s / 60:.0f} min", cell)


def _kept_and_gone(row: Row) -> str | None:
    kept, removed = row["kept_looked_for"], row["removed_looked_for"]
    if None in (kept, row["kept_lost"], removed, row["removed_still_there"]):
        return None
    gone = removed - row["removed_still_there"]
    return f"{kept - row['kept_lost']} of {kept} / {gone} of {removed}"


RECLAIM = Section(
    key="reclaim",
    title="Disk space given back",
    figures=reclaim,
    columns=(
        Column("objects", "{objects}"),
        Column("removed", "{removed}"),
        Column("full MiB", lambda row: f"{row['full_bytes'] / 2**20:.1f}"),
        Column("freed at once", percent("freed_at_once")),
        *(_minutes(after_s) for after_s in INSTANTS_S if after_s),
        Column("at the end", percent("freed_at_end")),
        Column("watched min", lambda row: f"{row['watched_s'] / 60:.2g}"),
        Column(f"{round(100 * FREED_ALL)} % after", "{freed_most_after_s:.0f} s"),
        Column("trash, most", percent("trash_at_most")),
        Column("trash, end", percent("trash_at_end")),
        Column("kept / gone", _kept_and_gone),
    ),
    definitions={
        "freed": "share of what the removed objects took that the nodes' directories shrank by, "
        "so long after the removal ended",
        "freed_most_after_s": f"when {FREED_ALL:.0%} of it was given back for good",
        "trash": "the part of it in MinIO's .minio.sys/tmp/.trash",
    },
    notes=(
        Note(
            "Shares are of what the removed objects took: their part of what the nodes' "
            "directories grew by. More than 100 % was given back where the store had taken space "
            "ahead."
        ),
        Note(
            "Kept / gone: of a sample of each, how many of the objects that were to stay could be "
            "read as written, and how many of the removed ones could not."
        ),
        Note(
            "Objects that were to stay are lost, or removed ones are still there: {rows}.",
            lambda row: bool(row["kept_lost"] or row["removed_still_there"]),
        ),
    ),
    charts={"reclaim": "wanlat.analysis.charts.reclaim:draw"},
    is_trouble=lambda row: bool(row["kept_lost"] or row["removed_still_there"]),
    hidden=frozenset({"freed_at_once"}),
)
