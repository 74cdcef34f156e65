"""The block "reclaim" of a bundle, or of the points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Series
from wanlat.analysis.reclaim.model import FREED_ALL, Course, Reclaimed
from wanlat.analysis.resources.read import read_rows, reclaim_entry

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.grid import Grid
    from wanlat.analysis.sweep import Sweep

INSTANTS_S = (0.0, 60.0, 300.0, 600.0)
"""After the removal; besides, the end of watching."""


@dataclass(frozen=True)
class ReclaimBlock:
    """Every system that was watched; a block of a report (`wanlat.analysis.blocks`)."""

    title: str
    systems: tuple[Reclaimed, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "definitions": {
                "freed": "share of what the removed objects took that the nodes' directories "
                "shrank by, so long after the removal ended",
                "freed_most_after_s": f"when {FREED_ALL:.0%} of it was given back for good",
                "trash": "the part of it in MinIO's .minio.sys/tmp/.trash",
            },
            "systems": [each.to_json(INSTANTS_S) for each in self.systems],
        }

    def grids(self) -> Sequence[Grid]:
        """One table."""
        from wanlat.analysis.reclaim.table import grid_of

        return [grid_of(self)]

    def charts(self) -> Mapping[str, Figure]:
        """Space over time, a panel for each system."""
        from wanlat.analysis.charts import reclaim

        return {"reclaim": reclaim.draw(self)}


def block_of(bundle: Bundle) -> ReclaimBlock | None:
    """The block of one bundle; None where nothing was removed."""
    found = tuple(reclaimed_in(bundle))
    return ReclaimBlock(f"{bundle.study} on {bundle.topology}", found) if found else None


def block_of_sweep(sweep: Sweep) -> ReclaimBlock | None:
    """The block of a sweep; None where nothing was removed in any point."""
    swept = [parameter.name for parameter in sweep.parameters if sweep.varies(parameter.name)]
    found = tuple(
        each
        for point in sweep.points
        if point.bundle is not None
        for each in reclaimed_in(
            point.bundle, tuple((name, str(point.value(name))) for name in swept)
        )
    )
    return ReclaimBlock(f"{sweep.study} on {sweep.topology}", found) if found else None


def reclaimed_in(bundle: Bundle, where: tuple[tuple[str, str], ...] = ()) -> list[Reclaimed]:
    """What became of the space of each system of `bundle` that removed something."""
    rows = read_rows(bundle.directory)
    found = []
    for series in bundle.systems:
        entry = reclaim_entry(bundle.directory, series.system)
        nodes = rows[(rows["system"] == series.system) & (rows["kind"] == "node")]
        if entry is not None and entry.get("removed_ns") and not nodes.empty:
            found.append(_reclaimed(series, where, entry, nodes))
    return found


def _reclaimed(
    series: Series,
    where: tuple[tuple[str, str], ...],
    entry: Mapping[str, Any],
    nodes: pd.DataFrame,
) -> Reclaimed:
    began_ns, ended_ns = (int(t) for t in entry["removed_ns"])
    last_ns = int(nodes["t_ns"].iloc[-1])
    watched_ns = int(entry["watched_ns"][1]) if entry.get("watched_ns") else last_ns
    found = entry.get("found") or {}
    course = _course(nodes, ended_ns)
    return Reclaimed(
        series=series,
        where=where,
        objects=int(entry["objects"]),
        object_bytes=int(entry["object_bytes"]),
        removed=int(entry["removed"]),
        which=str(entry.get("which", "spread")),
        empty_bytes=course.at((int(entry["filled_ns"][0]) - ended_ns) / 1e9) or 0.0,
        full_bytes=course.at((began_ns - ended_ns) / 1e9) or 0.0,
        removing_s=(ended_ns - began_ns) / 1e9,
        watched_s=(watched_ns - ended_ns) / 1e9,
        kept=found.get("kept"),
        lost=found.get("lost"),
        removed_looked=found.get("removed"),
        still_there=found.get("still_there"),
        course=course,
    )


def _course(nodes: pd.DataFrame, origin_ns: int) -> Course:
    import numpy as np

    known = nodes[nodes["space_bytes"].notna()]
    wide = known.pivot_table(
        index="t_ns", columns="subject", values=["space_bytes", "trash_bytes"], aggfunc="last"
    ).ffill()
    space = wide["space_bytes"].dropna()
    trash = (
        np.nansum(wide["trash_bytes"].reindex(space.index).to_numpy("float64"), axis=1)
        if "trash_bytes" in wide
        else np.zeros(len(space))
    )
    return Course(
        t_s=(space.index.to_numpy("float64") - origin_ns) / 1e9,
        space_bytes=space.to_numpy("float64").sum(axis=1),
        trash_bytes=trash,
    )
