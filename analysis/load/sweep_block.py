"""The block "load" of a sweep: its deployments side by side, and beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wanlat.analysis.load.of_sweep import Against, Deployment, against_published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.grid import Grid


@dataclass(frozen=True)
class LoadSweepBlock:
    """The loads of a sweep (`wanlat.analysis.blocks`)."""

    study: str
    topology: str
    deployments: tuple[Deployment, ...]

    @cached_property
    def against(self) -> tuple[Against, ...]:
        """Ratios, ours and the published ones; none where no deployment is like theirs."""
        if not any(each.published for each in self.deployments):
            return ()
        return tuple(against_published(self.deployments))

    def to_json(self) -> dict[str, Any]:
        """Its entry of summary.json."""
        from wanlat.analysis.load.json_of import definitions_of, load_json

        return {
            "definitions": {
                **definitions_of(each.load for each in self.deployments),
                "published": "a deployment / one node of one drive, of the same source; "
                "minio-mixed-load.csv",
            },
            "deployments": [
                {
                    "point": each.point,
                    "values": dict(each.where),
                    "nodes": each.nodes,
                    "drives": each.drives,
                    "published": each.published,
                    **load_json(each.load),
                }
                for each in self.deployments
            ],
            "published": [each.to_json() for each in self.against],
        }

    def grids(self) -> Sequence[Grid]:
        """Operations of all deployments, how steady they were, the quiet user, the published."""
        from wanlat.analysis.load.sweep_table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """Deployments side by side."""
        from wanlat.analysis.charts.load_sweep import charts_of

        return charts_of(self)
