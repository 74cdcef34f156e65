"""The block "resources" of a sweep: what nodes used at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.resources.block import block_of
from wanlat.analysis.resources.model import ASKED, REST, Resources, Sampling, digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.grid import Grid
    from wanlat.analysis.sweep import Sweep

Where = tuple[tuple[str, Any], ...]
"""Parameters that are swept, with the point's values, as the study has them."""


@dataclass(frozen=True)
class AtPoint:
    """One system at one point."""

    point: str
    where: Where
    resources: Resources

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json: what tables show; the point's own summary has the rest."""
        of_all, stored = self.resources.of_all, self.resources.stored
        return {
            "point": self.point,
            "system": self.resources.series.system,
            "version": self.resources.series.version,
            "values": dict(self.where),
            "node_rss_bytes": {
                "at_rest": digits(self.resources.memory(REST)),
                "asked": digits(self.resources.memory(ASKED)),
            },
            "request": None if of_all is None else of_all.to_json(),
            "background_taken_off": self.resources.background_known,
            "stored": None if stored is None else stored.to_json(),
        }


@dataclass(frozen=True)
class ResourcesOfSweep:
    """All points of a sweep; a block of its report (`wanlat.analysis.blocks`).

    `sampling` is that of the point where it cost most.
    """

    sweep: Sweep
    sampling: Sampling
    points: tuple[AtPoint, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            **self.sampling.to_json(),
            "points": [each.to_json() for each in self.points],
        }

    def grids(self) -> Sequence[Grid]:
        """What a node and a request cost, point by point."""
        from wanlat.analysis.resources.sweep_table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """Memory of a node, and CPU time and bytes of a request, against what was swept."""
        from wanlat.analysis.charts import resources_sweep

        return resources_sweep.charts_of(self)


def block_of_sweep(sweep: Sweep) -> ResourcesOfSweep | None:
    """The block of `sweep`; None where nothing was sampled at any complete point."""
    swept = [parameter.name for parameter in sweep.parameters if sweep.varies(parameter.name)]
    found, samplings = [], []
    for point in sweep.complete:
        bundle = point.bundle
        block = block_of(bundle) if bundle is not None else None
        if block is None:
            continue
        samplings.append(block.sampling)
        where = tuple((name, point.value(name)) for name in swept)
        found += [AtPoint(point.name, where, each) for each in block.systems]
    if not found:
        return None
    dearest = max(samplings, key=lambda each: each.cost_cpu_share or 0.0)
    return ResourcesOfSweep(sweep, dearest, tuple(found))
