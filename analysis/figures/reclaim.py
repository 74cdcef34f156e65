"""Does a store give disk space back after objects were removed, and how long does it take?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.figures.resources import NODE, read_rows, reclaim_of
from wanlat.analysis.names import digits, share
from wanlat.analysis.section import Column, Figures, Note, Row, Section, figures_of, percent, short
from wanlat.bundle.run import Run

Values = NDArray[np.float64]

FREED_ALL = 0.9
"""From this share of what removed objects took on, it counts as given back."""
INSTANTS_S = (1.0, 60.0, 300.0, 600.0)
"""After the removal, with the first sample after it; besides, the end of watching."""
_LATE_S = 1.0
"""The watch ends with a sample that may be late."""
_FACTS = ("objects", "object_bytes", "removed", "which")


@dataclass(frozen=True)
class SpaceOverTime:
    """Space of all nodes together, bytes, and how much of it is trash: `t_s` after the removal.

    Also what there was before anything was written, and when removing began.
    """

    t_s: Values
    space_bytes: Values
    trash_bytes: Values
    empty_bytes: float
    full_bytes: float


def reclaim(bundle: Run) -> Figures | None:
    """The figures of every system of `bundle` that removed something; None where none did.

    Shares are of what the removed objects took. What a run that was cut short had not reached is
    None. `kept_lost` of `kept_looked_for` objects that were to stay could not be read;
    `removed_still_there` of `removed_looked_for` removed ones could. Arrays: `SpaceOverTime`.
    """
    return figures_of(_rows(bundle))


def _rows(bundle: Run) -> Iterator[tuple[Row, SpaceOverTime]]:
    sampled = read_rows(bundle)
    for series in bundle.systems:
        entry = reclaim_of(bundle, series.system)
        nodes = sampled[(sampled["system"] == series.system) & (sampled["kind"] == NODE)]
        if entry is None or entry.removed_ns is None or entry.filled_ns is None or nodes.empty:
            continue
        (began_ns, ended_ns), verified = entry.removed_ns, entry.found
        space = _space(nodes, entry.filled_ns[0], began_ns, ended_ns)
        last_ns = entry.watched_ns[1] if entry.watched_ns else nodes["t_ns"].iloc[-1]
        watched_s = round((last_ns - ended_ns) / 1e9, 3)
        # What the removed objects took of what the directories had grown by.
        taken = (space.full_bytes - space.empty_bytes) * entry.removed / entry.objects or np.nan
        trash = space.trash_bytes / taken
        freed: Any = pd.Series((space.full_bytes - space.space_bytes) / taken, index=space.t_s)
        freed = freed[: watched_s + _LATE_S]
        is_kept_up = (freed >= FREED_ALL)[::-1].cummin()
        row = {
            **series._asdict(),
            **{name: getattr(entry, name) for name in _FACTS},
            "empty_bytes": round(space.empty_bytes),
            "full_bytes": round(space.full_bytes),
            "removing_s": round((ended_ns - began_ns) / 1e9, 3),
            "watched_s": watched_s,
            "freed": [
                {"after_s": t_s, "share": short(freed.asof(t_s), 5) if t_s <= watched_s else None}
                for t_s in INSTANTS_S
            ],
            "freed_at_end": short(freed.asof(watched_s), 5),
            "freed_most_after_s": short(is_kept_up.index[is_kept_up].min(), 5),
            "trash_at_most": short(trash.max(), 5),
            "trash_at_end": short(trash[len(freed) - 1], 5),
            "kept_looked_for": verified and verified.kept,
            "kept_lost": verified and verified.lost,
            "removed_looked_for": verified and verified.removed,
            "removed_still_there": verified and verified.still_there,
        }
        yield row, space


def _space(nodes: pd.DataFrame, empty_ns: int, began_ns: int, ended_ns: int) -> SpaceOverTime:
    """Over time; a node counts with what its last sample."""
    known = nodes[nodes["space_bytes"].notna()].fillna({"trash_bytes": 0.0})
    wide = known.pivot_table(index="t_ns", columns="subject", values=["space_bytes", "trash_bytes"])
    total = wide.ffill().dropna().T.groupby(level=0).sum().T
    empty, full = total["space_bytes"].reindex([empty_ns, began_ns], method="ffill").fillna(0.0)
    space_bytes, trash_bytes = total.to_numpy("float64").T
    t_s = (total.index.to_numpy("float64") - ended_ns) / 1e9
    return SpaceOverTime(t_s, space_bytes, trash_bytes, float(empty), float(full))


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
        Column("watched min", lambda row: digits(row["watched_s"] / 60, 2)),
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
