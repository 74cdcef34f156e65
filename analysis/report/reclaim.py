"""The section of disk space that was given back."""

from __future__ import annotations

from wanlat.analysis.figures.reclaim import FREED_ALL, INSTANTS_S, reclaim
from wanlat.analysis.figures.result import Row
from wanlat.analysis.report.formats import share
from wanlat.analysis.report.section import Column, Note, Section, percent


def _is_wrong(row: Row) -> bool:
    return bool(row["kept_lost"] or row["removed_still_there"])


def _freed(place: int) -> Column:
    header = f"{INSTANTS_S[place] / 60:.0f} min" if place else "freed at once"
    return Column(header, lambda row: share(row["freed"][place]["share"]))


def _kept_and_gone(row: Row) -> str | None:
    kept, removed = row["kept_looked_for"], row["removed_looked_for"]
    if kept is None:
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
        *(_freed(place) for place in range(len(INSTANTS_S))),
        Column("at the end", percent("freed_at_end")),
        Column("watched min", lambda row: f"{row['watched_s'] / 60:.2g}"),
        Column(f"{100 * FREED_ALL:.0f} % after", "{freed_most_after_s:.0f} s"),
        Column("trash, most", percent("trash_at_most")),
        Column("trash, end", percent("trash_at_end")),
        Column("kept / gone", _kept_and_gone),
    ),
    definitions={
        "freed": "share of what the removed objects took that the nodes' directories shrank by, "
        "so long after the removal ended",
        "freed_most_after_s": f"when {FREED_ALL:.0%} of it was given back for good",
        "trash": "the part of it in directories in which the store itself keeps what it removed",
    },
    notes=(
        Note(
            "Shares are of what the removed objects took of what the nodes' directories grew by; "
            "above 100 % the store had taken space ahead. Kept / gone: of a sample of each, how "
            "many of the objects that were to stay could be read as written, and how many of the "
            "removed ones could not."
        ),
        Note(
            "Objects that were to stay are lost, or removed ones are still there: {rows}.",
            _is_wrong,
        ),
    ),
    charts={"reclaim": "wanlat.analysis.charts.resources:draw_reclaim"},
    is_trouble=_is_wrong,
)
