"""The summary of a run or a matrix: what its report says, before it is written anywhere.

Every block (`analysis.blocks`) brings its entry of summary.json, its tables and its charts; the
notes are sentences that a reader of any figure must see with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.blocks import Block, blocks_of, blocks_of_sweep, hidden_from_terminal
from wanlat.analysis.bundle import Bundle
from wanlat.analysis.figures.latency import DEFINITIONS, EndpointSummary, rounded
from wanlat.analysis.grid import Grid, print_grid, print_notes
from wanlat.analysis.notes import notes_on_matrix, notes_on_run, untrusted_points

if TYPE_CHECKING:
    from rich.console import Console

    from wanlat.analysis.sweep import Point, Sweep


@dataclass(frozen=True)
class Summary:
    """All that is said of `source`, blocks by their keys in summary.json.

    `facts` is what figures need to know of the run; `matrix`, of a matrix alone, its parameters and
    how its points ended.
    """

    source: Bundle | Sweep
    facts: Mapping[str, Any]
    blocks: Mapping[str, Block]
    notes: tuple[str, ...]
    matrix: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """What was run, on what."""
        return f"{self.source.study} on {self.source.topology}"

    @property
    def endpoints(self) -> tuple[EndpointSummary, ...]:
        """The endpoints that single requests were sent to, in the order of the table."""
        figures = getattr(self.blocks.get("endpoints"), "figures", None)
        return () if figures is None else tuple(figures.arrays)

    def grids(self) -> Iterator[tuple[str, Grid]]:
        """Every table with the key of its block, in the order in which they are printed.

        The table of latencies is left out where the block of sizes has the same rows.
        """
        for name, block in self.blocks.items():
            if name != "endpoints" or not self.is_of_sizes:
                yield from ((name, grid) for grid in block.grids())

    @property
    def is_of_sizes(self) -> bool:
        """Whether all latencies are in the block of object sizes."""
        if "sizes" not in self.blocks:
            return False
        from wanlat.analysis.figures.sizes import OPERATIONS

        return {entry.endpoint for entry in self.endpoints} <= set(OPERATIONS)

    def to_json(self) -> dict[str, Any]:
        """The document of summary.json."""
        definitions = dict(DEFINITIONS)
        for block in self.blocks.values():
            definitions |= getattr(block, "definitions", {})
        return {
            "bundle": dict(self.facts),
            "definitions": definitions,
            **({} if self.matrix is None else {"matrix": dict(self.matrix)}),
            "endpoints": [],
            **{name: block.to_json() for name, block in self.blocks.items()},
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """summary.json as it lies on disk: the same bytes for the same bundle."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def summarize(source: Bundle | Sweep) -> Summary:
    """Everything that `source` has data for; of a matrix, from its complete points alone."""
    if isinstance(source, Bundle):
        blocks = blocks_of(source)
        said = [note for block in blocks.values() for note in getattr(block, "notes", ())]
        own = notes_on_run(source)
        # A drill says first how it ended, and what came of it.
        notes = dict.fromkeys([*said, *own] if source.is_drill else [*own, *said])
        return Summary(source, facts_of(source), blocks, tuple(notes))
    blocks = blocks_of_sweep(source)
    said = [note for block in blocks.values() for note in getattr(block, "notes", ())]
    manifest = source.manifest
    facts = {
        "kind": "matrix",
        "study": source.study,
        "topology": source.topology,
        "status": source.status,
        **{key: manifest.get(key) for key in ("reason", "seed", "wanlat")},
    }
    notes = dict.fromkeys([*notes_on_matrix(source), *said])
    return Summary(source, facts, blocks, tuple(notes), _matrix(source))


def print_summary(summary: Summary, console: Console, *, verbose: bool) -> None:
    """Print the tables that are not long, then the notes; resource usage only if `verbose`."""
    hidden = () if verbose else hidden_from_terminal(summary.blocks)
    grids = [grid for name, grid in summary.grids() if name not in hidden and not grid.long]
    for number, grid in enumerate(grids):
        if number:
            console.print()
        print_grid(grid, console)
    if not grids and summary.matrix is not None:
        console.print(f"{summary.source.study}: no point is complete.", markup=False)
    print_notes(summary.notes, console)


def facts_of(bundle: Bundle) -> dict[str, Any]:
    """What figures need to know of the run; of one at several RTTs none is that of all samples."""
    manifest = bundle.manifest
    rtt = None if bundle.has_rtt_steps else bundle.measured_rtt
    facts = {
        "study": bundle.study,
        "topology": bundle.topology,
        "status": bundle.status,
        **{key: manifest.get(key) for key in ("reason", "seed", "backend", "wanlat")},
        "calibration": bundle.calibration.verdict if bundle.calibration else None,
        "measured_rtt_ms": None
        if rtt is None
        else {
            "median": rounded(rtt.median_ms),
            "pair_medians": [rounded(rtt.low_pair_ms), rounded(rtt.high_pair_ms)],
            "single": [rounded(rtt.min_ms), rounded(rtt.max_ms)],
            "pairs": rtt.pairs,
        },
    }
    return facts | ({"rtt_steps": _rtt_steps(bundle)} if bundle.has_rtt_steps else {})


def _rtt_steps(bundle: Bundle) -> list[dict[str, Any]]:
    from wanlat.analysis.figures.rtt_steps import counts, rtt_steps

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
    return {
        "parameters": [
            {"name": p.name, "keys": list(p.keys), "values": list(p.values)}
            for p in sweep.parameters
        ],
        "points": [_point(point) for point in sweep.points],
        "missing": [point.name for point in sweep.missing],
        "untrusted": untrusted_points(sweep),
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "point": point.number,
        "name": point.name,
        "system": point.system,
        "values": dict(point.values),
        "directory": f"points/{point.directory.name}",
        "status": point.status,
        "reason": point.why_missing,
        "attempts": point.attempts,
    }
