"""The block "load" of a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.load.model import Load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.grid import Grid


@dataclass(frozen=True)
class LoadBlock:
    """The loads of a bundle, one a system (`wanlat.analysis.blocks`)."""

    study: str
    topology: str
    loads: tuple[Load, ...]

    def to_json(self) -> dict[str, Any]:
        """Its entry of summary.json."""
        from wanlat.analysis.load.json_of import definitions_of, load_json

        return {
            "definitions": definitions_of(self.loads),
            "systems": [load_json(load) for load in self.loads],
        }

    def grids(self) -> Sequence[Grid]:
        """Operations, failures by kind, and the quiet user."""
        from wanlat.analysis.load.table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """The course of the load, and latencies with and without it."""
        from wanlat.analysis.charts.load import charts_of

        return charts_of(self)
