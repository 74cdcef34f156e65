"""The table of disk space that was given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, row_labels
from wanlat.analysis.reclaim.model import FREED_ALL, Reclaimed

if TYPE_CHECKING:
    from wanlat.analysis.reclaim.block import ReclaimBlock

_MIB = 2**20


def grid_of(block: ReclaimBlock) -> Grid:
    """How much of what removed objects took was given back, and when."""
    labels = row_labels(list(dict.fromkeys(each.series for each in block.systems)))
    swept = [name for name, _ in block.systems[0].where]
    rows = [
        (labels[each.series], *(value for _, value in each.where), *_cells(each))
        for each in block.systems
    ]
    longest = max(each.watched_s for each in block.systems)
    return Grid(
        title=f"Disk space given back: {block.title}",
        headers=(
            "system",
            *swept,
            "objects",
            "removed",
            "full MiB",
            "freed at once",
            "1 min",
            "5 min",
            "10 min",
            f"at the end ({longest / 60:.2g} min)",
            f"{FREED_ALL:.0%} after",
            "trash, most",
            "trash, end",
            "kept / gone",
        ),
        rows=tuple(rows),
        text=frozenset(("system", *swept)),
        troubled=frozenset(
            n for n, each in enumerate(block.systems) if each.lost or each.still_there
        ),
        notes=(
            "Shares are of what the removed objects took: their part of what the nodes' "
            "directories grew by. More than 100 % was given back where the store had taken space "
            "ahead.",
            "Kept / gone: of a sample of each, how many of the objects that were to stay could be "
            "read as written, and how many of the removed ones could not.",
        ),
    )


def _cells(each: Reclaimed) -> list[str]:
    most_s = each.freed_after_s(FREED_ALL)
    return [
        str(each.objects),
        str(each.removed),
        f"{each.full_bytes / _MIB:.1f}",
        *(_percent(each.freed_at(after_s)) for after_s in (_FIRST_LOOK_S, 60.0, 300.0, 600.0)),
        _percent(each.freed),
        EN_DASH if most_s is None else f"{most_s:.0f} s",
        _percent(each.trash_share()),
        _percent(each.trash_left),
        _verified(each),
    ]


_FIRST_LOOK_S = 1.0
"""The first look after the removal takes a moment."""


def _percent(share: float | None) -> str:
    return EN_DASH if share is None else f"{round(100 * share)} %"


def _verified(each: Reclaimed) -> str:
    if each.kept is None or each.lost is None or each.still_there is None:
        return EN_DASH
    gone = (each.removed_looked or 0) - each.still_there
    return f"{each.kept - each.lost} of {each.kept} / {gone} of {each.removed_looked}"
