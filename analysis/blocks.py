"""Blocks: what a report holds beside the endpoints' latencies, each from a module of its own.

A block is made by one function from a bundle, or from a sweep, and brings its entry of
summary.json, its tables and its charts. Data that a run has not got makes no block (None), and
nothing here fails for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.grid import Grid
    from wanlat.analysis.sweep import Sweep


class Block(Protocol):
    """What `report` asks of a block."""

    def to_json(self) -> Any:
        """Its entry of summary.json: finite numbers, strings, lists, objects."""
        ...

    def grids(self) -> Sequence[Grid]:
        """Its tables, in the order in which they are printed; notes are the grids'."""
        ...

    def charts(self) -> Mapping[str, Figure]:
        """Its charts by the stem of their file's name; none where there is nothing to draw."""
        ...


_OF_BUNDLE: Mapping[str, tuple[str, str]] = {
    "load": ("wanlat.analysis.load", "load_of"),
    "reclaim": ("wanlat.analysis.report.reclaim", "RECLAIM.of_bundle"),
    "resources": ("wanlat.analysis.resources.block", "resources_of"),
    "remarks": ("wanlat.analysis.resources.remarks", "remarks_of_bundle"),
}
"""Key in summary.json, and the function (bundle) -> Block | None that makes it."""

_OF_SWEEP: Mapping[str, tuple[str, str]] = {
    "sizes": ("wanlat.analysis.sizes", "sizes_of"),
    "conclusions": ("wanlat.analysis.conclusions", "conclusions_of"),
    "load": ("wanlat.analysis.load", "load_of_sweep"),
    "growth": ("wanlat.analysis.growth", "growth_of"),
    "resources": ("wanlat.analysis.resources.block", "resources_of_sweep"),
    "reclaim": ("wanlat.analysis.report.reclaim", "RECLAIM.of_matrix"),
    "remarks": ("wanlat.analysis.resources.remarks", "remarks_of"),
}
"""The same of a whole sweep: (sweep) -> Block | None."""


def printed(blocks: Mapping[str, Block], *, verbose: bool) -> list[Block]:
    """Those of `blocks` whose tables a terminal gets: without `verbose` none of resource usage.

    Remarks are about resources too, except those of a study of reclaimed space: its result.
    """
    hidden = {"resources"} if "reclaim" in blocks else {"resources", "remarks"}
    return [block for name, block in blocks.items() if verbose or name not in hidden]


def blocks_of(bundle: Bundle) -> dict[str, Block]:
    """Every block that `bundle` has data for, by its key in summary.json."""
    return _made(_OF_BUNDLE, bundle)


def blocks_of_sweep(sweep: Sweep) -> dict[str, Block]:
    """Every block that `sweep` has data for, by its key in summary.json."""
    return _made(_OF_SWEEP, sweep)


def _made(makers: Mapping[str, tuple[str, str]], of: Bundle | Sweep) -> dict[str, Block]:
    made = {}
    for name, (module, function) in makers.items():
        # Imported where it is used: most commands make no report, and scipy takes a second.
        make: Callable[[Bundle | Sweep], Block | None] = attrgetter(function)(import_module(module))
        block = make(of)
        if block is not None:
            made[name] = block
    return made
