"""Blocks: what a report holds, each from a module of its own.

A block is made by one function from a run, or from a matrix, and brings its entry of summary.json,
its tables and its charts. Data that a run has not got makes no block (None), and nothing here fails
for it.
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
    "drill": "wanlat.analysis.report.drill:drill_report",
    "published": "wanlat.analysis.report.published:PUBLISHED.of_bundle",
    "load": "wanlat.analysis.report.load:LOAD.of_bundle",
    "reclaim": "wanlat.analysis.report.reclaim:RECLAIM.of_bundle",
    "resources": "wanlat.analysis.report.resources:RESOURCES.of_bundle",
}
"""Key in summary.json, and the function (bundle) -> Block | None that makes it."""

_OF_SWEEP: Mapping[str, str] = {
    "clusters": "wanlat.analysis.report.clusters:CLUSTERS.of_matrix",
    "clusters_round_trips": "wanlat.analysis.report.clusters:CLUSTERS_ROUND_TRIPS.of_matrix",
    "endpoints": "wanlat.analysis.report.latency:LATENCY.of_matrix",
    "round_trips": "wanlat.analysis.report.round_trips:ROUND_TRIPS.of_matrix",
    "sizes": "wanlat.analysis.report.sizes:SIZES.of_matrix",
    "load": "wanlat.analysis.report.load:LOAD.of_matrix",
    "growth": "wanlat.analysis.report.growth:GROWTH.of_matrix",
    "resources": "wanlat.analysis.report.resources:resources_of_matrix",
    "reclaim": "wanlat.analysis.report.reclaim:RECLAIM.of_matrix",
}
"""The same of a whole matrix: (sweep) -> Block | None."""

_ASKED_FOR = {
    "drill": "is_drill",
    "load": "is_load",
    "reclaim": "is_reclaim",
    "round_trips": "has_rtt_steps",
    "round_trips_by_rtt": "has_rtt_steps",
}
"""What of a run only those have that asked for it: nothing is imported for the others."""

_CLAIMS = "wanlat.analysis.report.claims:claims_block"


def hidden_from_terminal(blocks: Mapping[str, Block]) -> set[str]:
    """Keys of `blocks` whose tables a terminal gets only if asked for.

    Those are of resource usage, and of what others published. A drill's own tables have what is of
    interest of the latencies before its faults.
    """
    return {"resources", "published", *(["endpoints"] if "drill" in blocks else [])}


def blocks_of(source: Bundle | Sweep) -> dict[str, Block]:
    """Every block that a run or a matrix has data for, by its key in summary.json.

    With what is claimed of their figures: the claims in a study's manifest. A drill's are evaluated
    by its own block.
    """
    kind, made = source.manifest.get("kind"), {}
    for name, function in (_OF_SWEEP if kind == "matrix" else _OF_BUNDLE).items():
        is_asked_for = kind == "matrix" or name not in _ASKED_FOR
        if not is_asked_for and not getattr(source, _ASKED_FOR[name]):
            continue
        # Imported where it is used: most commands make no report, and scipy takes a second.
        make: Callable[[Bundle | Sweep], Block | None] = resolve_name(function)
        if (block := make(source)) is not None:
            made[name] = block
    specs = source.manifest.get("claims")
    if specs and kind != "drill":
        summary = {name: block.to_json() for name, block in made.items()}
        if (block := resolve_name(_CLAIMS)(specs, summary)) is not None:
            made["claims"] = block
    return made
