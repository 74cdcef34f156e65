"""Blocks: what a report holds beside the endpoints' latencies, each from a module of its own.

A block is made by one function from a bundle, or from a sweep, and brings its entry of
summary.json, its tables and its charts. Data that a run has not got makes no block (None), and
nothing here fails for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
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


_OF_BUNDLE: Mapping[str, str] = {
    "endpoints": "wanlat.analysis.report.latency:latency_of",
    "in_rtts": "wanlat.analysis.report.in_rtts:in_words",
    "round_trips": "wanlat.analysis.report.round_trips:ROUND_TRIPS.of_bundle",
    "round_trips_by_rtt": "wanlat.analysis.report.round_trips:BY_RTT.of_bundle",
    "drill": "wanlat.analysis.report.drill:drill_report",
    "published": "wanlat.analysis.report.published:PUBLISHED.of_bundle",
    "load": "wanlat.analysis.report.load:LOAD.of_bundle",
    "reclaim": "wanlat.analysis.report.reclaim:RECLAIM.of_bundle",
    "resources": "wanlat.analysis.report.resources:RESOURCES.of_bundle",
}
"""Key in summary.json, and the function (bundle) -> Block | None that makes it."""

_OF_SWEEP: Mapping[str, str] = {
    "endpoints": "wanlat.analysis.report.latency:LATENCY.of_matrix",
    "round_trips": "wanlat.analysis.report.round_trips:ROUND_TRIPS.of_matrix",
    "sizes": "wanlat.analysis.report.sizes:SIZES.of_matrix",
    "load": "wanlat.analysis.report.load:LOAD.of_matrix",
    "growth": "wanlat.analysis.report.growth:GROWTH.of_matrix",
    "resources": "wanlat.analysis.report.resources:resources_of_matrix",
    "reclaim": "wanlat.analysis.report.reclaim:RECLAIM.of_matrix",
}
"""The same of a whole sweep: (sweep) -> Block | None."""


def hidden_from_terminal(blocks: Mapping[str, Block]) -> set[str]:
    """Keys of `blocks` whose tables a terminal gets only if asked for.

    Those are of resource usage, and of what others published. A drill's own tables have what is of
    interest of the latencies before its faults.
    """
    return {"resources", "published", *(["endpoints"] if "drill" in blocks else [])}


def blocks_of(bundle: Bundle) -> dict[str, Block]:
    """Every block that `bundle` has data for, by its key in summary.json."""
    return _with_claims(_made(_OF_BUNDLE, bundle), bundle)


def blocks_of_sweep(sweep: Sweep) -> dict[str, Block]:
    """Every block that `sweep` has data for, by its key in summary.json."""
    return _with_claims(_made(_OF_SWEEP, sweep), sweep)


def _made(makers: Mapping[str, str], of: Bundle | Sweep) -> dict[str, Block]:
    made = {}
    for name, function in makers.items():
        # Imported where it is used: most commands make no report, and scipy takes a second.
        make: Callable[[Bundle | Sweep], Block | None] = resolve_name(function)
        block = make(of)
        if block is not None:
            made[name] = block
    return made


def _with_claims(made: dict[str, Block], of: Bundle | Sweep) -> dict[str, Block]:
    """The blocks, and what is claimed of their figures: the claims in a study's manifest."""
    specs = of.manifest.get("claims")
    if specs and of.manifest.get("kind") != "drill":  # a drill's are evaluated by its own block
        from wanlat.analysis.report.claims import claims_block

        summary = {name: block.to_json() for name, block in made.items()}
        if (block := claims_block(specs, summary)) is not None:
            made["claims"] = block
    return made
