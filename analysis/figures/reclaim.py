"""Does a store give disk space back after objects were removed, and how long does it take?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.resources import read_rows, reclaim_entry
from wanlat.analysis.figures.result import Figures, Row, figures_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from wanlat.analysis.bundle import Bundle

    Values = NDArray[np.float64]

FREED_ALL = 0.9
"""From this share of what removed objects took on, it counts as given back."""
INSTANTS_S = (0.0, 60.0, 300.0, 600.0)
"""After the removal; besides, the end of watching."""
_FIRST_SAMPLE_S = 1.0
"""The first sample after the removal takes a moment; the watch ends with one that may be late."""


@dataclass(frozen=True)
class SpaceOverTime:
    """Space of all nodes together, bytes, and how much of it is trash: `t_s` after the removal.

    A node counts with what its last sample said. `full_bytes` is what there was when removing
    began, `taken_bytes` what the removed objects took of what the directories had grown by.
    """

    t_s: Values
    space_bytes: Values
    trash_bytes: Values
    empty_bytes: float
    full_bytes: float
    taken_bytes: float
    watched_s: float

    def freed(self, t_s: float) -> float | None:
        """The share of what removed objects took that was given back, so long after."""
        known = self.space_bytes[self.t_s <= t_s]
        if not known.size or self.taken_bytes <= 0 or t_s > self.watched_s + _FIRST_SAMPLE_S:
            return None
        return (self.full_bytes - float(known[-1])) / self.taken_bytes

    def freed_after_s(self, share: float) -> float | None:
        """When so much of it was given back and stayed so; None: not while it was watched."""
        wanted = self.full_bytes - share * self.taken_bytes
        inside = self._watched
        above = self.space_bytes[inside] > wanted
        if self.taken_bytes <= 0 or not above.size or above[-1]:
            return None
        last = int(above.nonzero()[0][-1]) + 1 if above.any() else 0
        return max(0.0, float(self.t_s[inside][last]))

    def trash(self) -> tuple[float | None, float | None]:
        """As such shares: the most that lay in a trash at once, and what did in the end."""
        if self.taken_bytes <= 0 or not self.trash_bytes.size:
            return None, None
        left = self.trash_bytes[self._watched]
        most = float(self.trash_bytes.max()) / self.taken_bytes
        return most, float(left[-1]) / self.taken_bytes if left.size else None

    @property
    def _watched(self) -> NDArray[np.bool_]:
        return self.t_s <= self.watched_s + _FIRST_SAMPLE_S


def reclaim(bundle: Bundle) -> Figures | None:
    """The figures of every system of `bundle` that removed something; None where none did.

    Shares are of what the removed objects took. What a run that was cut short had not reached is
    None. `kept_lost` of `kept_looked_for` objects that were to stay could not be read;
    `removed_still_there` of `removed_looked_for` removed ones could.
    """
    return figures_of(_rows(bundle))


def _rows(bundle: Bundle) -> Iterator[tuple[Row, SpaceOverTime]]:
    sampled = read_rows(bundle.directory)
    for series in bundle.systems:
        entry = reclaim_entry(bundle.directory, series.system)
        nodes = sampled[(sampled["system"] == series.system) & (sampled["kind"] == "node")]
        if entry is None or not entry.get("removed_ns") or nodes.empty:
            continue
        space = _space(entry, nodes)
        began_ns, ended_ns = entry["removed_ns"]
        found = entry.get("found") or {}
        trash_at_most, trash_at_end = space.trash()
        row = {
            "system": series.system,
            "version": series.version,
            "objects": int(entry["objects"]),
            "object_bytes": int(entry["object_bytes"]),
            "removed": int(entry["removed"]),
            "which": str(entry.get("which", "spread")),
            "empty_bytes": round(space.empty_bytes),
            "full_bytes": round(space.full_bytes),
            "removing_s": round((ended_ns - began_ns) / 1e9, 3),
            "watched_s": round(space.watched_s, 3),
            "freed": [{"after_s": t_s, "share": _short(space.freed(t_s))} for t_s in INSTANTS_S],
            "freed_at_once": _short(space.freed(_FIRST_SAMPLE_S)),
            "freed_at_end": _short(space.freed(space.watched_s)),
            "freed_half_after_s": _short(space.freed_after_s(0.5)),
            "freed_most_after_s": _short(space.freed_after_s(FREED_ALL)),
            "trash_at_most": _short(trash_at_most),
            "trash_at_end": _short(trash_at_end),
            "kept_looked_for": found.get("kept"),
            "kept_lost": found.get("lost"),
            "removed_looked_for": found.get("removed"),
            "removed_still_there": found.get("still_there"),
        }
        yield row, space


def _space(entry: Mapping[str, Any], nodes: pd.DataFrame) -> SpaceOverTime:
    """Space over time, `t_ns` of the samples counted from the end of the removal."""
    import numpy as np

    began_ns, ended_ns = entry["removed_ns"]
    watched_ns = entry["watched_ns"][1] if entry.get("watched_ns") else nodes["t_ns"].iloc[-1]
    wide = (
        nodes[nodes["space_bytes"].notna()]
        .pivot_table(
            index="t_ns", columns="subject", values=["space_bytes", "trash_bytes"], aggfunc="last"
        )
        .ffill()
    )
    space = wide["space_bytes"].dropna()
    total = space.to_numpy("float64").sum(axis=1)
    trash = np.zeros(len(space))
    if "trash_bytes" in wide:
        trash = np.nansum(wide["trash_bytes"].reindex(space.index).to_numpy("float64"), axis=1)

    def at(t_ns: int) -> float:
        known = total[space.index <= t_ns]
        return float(known[-1]) if known.size else 0.0

    empty_bytes, full_bytes = at(entry["filled_ns"][0]), at(began_ns)
    return SpaceOverTime(
        t_s=(space.index.to_numpy("float64") - ended_ns) / 1e9,
        space_bytes=total,
        trash_bytes=trash,
        empty_bytes=empty_bytes,
        full_bytes=full_bytes,
        taken_bytes=(full_bytes - empty_bytes) * entry["removed"] / entry["objects"],
        watched_s=(int(watched_ns) - ended_ns) / 1e9,
    )


def _short(value: float | None) -> float | None:
    """A share in five digits: more mean nothing."""
    return None if value is None else float(f"{value:.5g}")
