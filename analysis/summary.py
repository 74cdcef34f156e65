"""The summary of a run or a matrix: what its report says, before it is written anywhere.

Every block (`analysis.blocks`) brings its entry of summary.json, its tables and its charts; the
notes are sentences that a reader of any figure must see with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.blocks import Block, blocks_of, hidden_from_terminal
from wanlat.analysis.bundle import Bundle
from wanlat.analysis.figures.latency import DEFINITIONS, EndpointSummary, rounded
from wanlat.analysis.grid import Grid, print_grid, print_notes
from wanlat.analysis.notes import notes_on_matrix, notes_on_run, untrusted_points

if TYPE_CHECKING:
    from rich.console import Console

    from wanlat.analysis.sweep import Sweep


@dataclass(frozen=True)
class Summary:
    """All that is said of `source`: `blocks` by their keys in summary.json, and `notes`."""

    source: Bundle | Sweep
    blocks: Mapping[str, Block]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """What was run, on what."""
        return f"{self.source.study} on {self.source.topology}"

    @property
    def endpoints(self) -> tuple[EndpointSummary, ...]:
        """The endpoints that single requests were sent to, in the order of the table."""
        figures = getattr(self.blocks.get("endpoints"), "figures", None)
        return () if figures is None else tuple(figures.arrays)

    @property
    def shown(self) -> Mapping[str, Block]:
        """The blocks with tables and charts: without latencies that all are in that of sizes."""
        if "sizes" not in self.blocks:
            return self.blocks
        from wanlat.analysis.figures.sizes import OPERATIONS

        is_whole = {entry.endpoint for entry in self.endpoints} <= set(OPERATIONS)
        return {k: v for k, v in self.blocks.items() if not (is_whole and k == "endpoints")}

    def grids(self) -> Iterator[tuple[str, Grid]]:
        """Every table with the key of its block, in the order in which they are printed."""
        for name, block in self.shown.items():
            yield from ((name, grid) for grid in block.grids())

    def to_json(self) -> dict[str, Any]:
        """The document of summary.json."""
        definitions = dict(DEFINITIONS)
        for block in self.blocks.values():
            definitions |= getattr(block, "definitions", {})
        return {
            "bundle": _facts(self.source),
            "definitions": definitions,
            **({} if isinstance(self.source, Bundle) else {"matrix": _matrix(self.source)}),
            "endpoints": [],
            **{name: block.to_json() for name, block in self.blocks.items()},
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """summary.json as it lies on disk: the same bytes for the same bundle."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def summarize(source: Bundle | Sweep) -> Summary:
    """Everything that `source` has data for; of a matrix, from its complete points alone."""
    blocks = blocks_of(source)
    said = [note for block in blocks.values() for note in getattr(block, "notes", ())]
    own = notes_on_run(source) if isinstance(source, Bundle) else notes_on_matrix(source)
    # A drill says first how it ended, and what came of it.
    is_drill = isinstance(source, Bundle) and source.is_drill
    notes = dict.fromkeys([*said, *own] if is_drill else [*own, *said])
    return Summary(source, blocks, tuple(notes))


def print_summary(summary: Summary, console: Console, *, verbose: bool) -> None:
    """Print the tables that are not long, then the notes; resource usage only if `verbose`."""
    hidden = () if verbose else hidden_from_terminal(summary.blocks)
    grids = [grid for name, grid in summary.grids() if name not in hidden and not grid.long]
    for number, grid in enumerate(grids):
        if number:
            console.print()
        print_grid(grid, console)
    if not grids and not isinstance(summary.source, Bundle):
        console.print(f"{summary.source.study}: no point is complete.", markup=False)
    print_notes(summary.notes, console)


def _facts(source: Bundle | Sweep) -> dict[str, Any]:
    """What figures need to know of the run; of one at several RTTs none is that of all samples."""
    said = {key: source.manifest.get(key) for key in ("reason", "seed", "backend", "wanlat")}
    facts = {"study": source.study, "topology": source.topology, "status": source.status}
    if not isinstance(source, Bundle):
        del said["backend"]
        return {"kind": "matrix", **facts, **said}
    rtt = None if source.has_rtt_steps else source.measured_rtt
    measured = rtt and {
        "median": rounded(rtt.median_ms),
        "pair_medians": [rounded(rtt.low_pair_ms), rounded(rtt.high_pair_ms)],
        "single": [rounded(rtt.min_ms), rounded(rtt.max_ms)],
        "pairs": rtt.pairs,
    }
    steps = {"rtt_steps": _rtt_steps(source)} if source.has_rtt_steps else {}
    verdict = source.calibration.verdict if source.calibration else None
    return {**facts, **said, "calibration": verdict, "measured_rtt_ms": measured, **steps}


def _rtt_steps(bundle: Bundle) -> list[dict[str, Any]]:
    from wanlat.analysis.figures.rtt_steps import counts, rtt_steps  # scipy, for few studies

    return [
        {
            "system": step.system,
            "rtt_step": step.rtt_step,
            "requested_rtt_ms": step.requested_rtt_ms,
            "measured_rtt_ms": rounded(step.measured_rtt_ms),
            "counts": counts(step),
        }
        for step in rtt_steps(bundle)
    ]


def _matrix(sweep: Sweep) -> dict[str, Any]:
    parameters = [
        {"name": each.name, "keys": list(each.keys), "values": list(each.values)}
        for each in sweep.parameters
    ]
    points = [
        {
            "point": point.entry.point,
            "name": point.name,
            "system": point.system,
            "values": dict(point.values),
            "directory": f"points/{point.directory.name}",
            "status": point.entry.status,
            "reason": point.why_missing,
            "attempts": point.entry.attempts,
        }
        for point in sweep.points
    ]
    missing = [point.name for point in sweep.missing]
    untrusted = untrusted_points(sweep)
    return {"parameters": parameters, "points": points, "missing": missing, "untrusted": untrusted}
