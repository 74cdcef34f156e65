"""A sweep as figures: every point's, with the values it was measured at, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wanlat.analysis import statistics
from wanlat.analysis.names import count, listing
from wanlat.analysis.notes import QUIET, is_trusted
from wanlat.analysis.summary import EndpointSummary, Summary, summarize
from wanlat.analysis.sweep import Point, Sweep

if TYPE_CHECKING:
    from wanlat.analysis.blocks import Block
    from wanlat.analysis.bundle import Series
    from wanlat.analysis.round_trips_block import RoundTrips

_NAMED_AT_MOST = 6


@dataclass(frozen=True)
class SweepSummary:
    """All figures of a sweep.

    `points` are the complete ones with their summaries, in the order of the grid; `untrusted` the
    names of those whose network was not as asked for: they are in no block and no chart. `blocks`
    are as in `wanlat.analysis.blocks`.
    """

    sweep: Sweep
    points: tuple[tuple[Point, Summary], ...]
    untrusted: tuple[str, ...]
    notes: tuple[str, ...]
    blocks: Mapping[str, Block] = field(default_factory=dict)

    @property
    def entries(self) -> list[tuple[Point, EndpointSummary]]:
        """Every endpoint and placement of every point that has latencies of one network."""
        return [(point, entry) for point, summary in self.points for entry in summary.endpoints]

    @property
    def round_trips(self) -> list[tuple[Point, RoundTrips]]:
        """The same of points that are studies of round trips."""
        return [
            (point, entry) for point, summary in self.points for entry in summary.round_trips or ()
        ]

    @property
    def has_rows_of_its_own(self) -> bool:
        """Whether there are latencies, or round trips, that the block of sizes does not show."""
        from wanlat.analysis.sizes import OPERATIONS

        if "sizes" not in self.blocks:
            return True
        return any(entry.endpoint not in OPERATIONS for _, entry in self.entries)

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Versions of systems, in the order in which the points have them."""
        return tuple(dict.fromkeys(one for _, summary in self.points for one in summary.series))

    def to_json(self) -> dict[str, Any]:
        """The document of summary.json."""
        sweep = self.sweep
        return {
            "bundle": {
                "kind": "matrix",
                "study": sweep.study,
                "topology": sweep.topology,
                "status": sweep.status,
                "reason": sweep.manifest.get("reason"),
                "seed": sweep.manifest.get("seed"),
                "wanlat": sweep.manifest.get("wanlat"),
            },
            "definitions": {
                "n": "requests measured; statistics are over those that succeeded (ok)",
                "percentiles": statistics.PERCENTILE_DEFINITION,
                "mean_ci95_ms": statistics.MEAN_INTERVAL_DEFINITION,
                "median_ci95_ms": statistics.MEDIAN_INTERVAL_DEFINITION,
            },
            "matrix": {
                "parameters": [
                    {"name": p.name, "keys": list(p.keys), "values": list(p.values)}
                    for p in sweep.parameters
                ],
                "points": [_point(point) for point in sweep.points],
                "missing": [point.name for point in sweep.missing],
                "untrusted": list(self.untrusted),
            },
            "endpoints": [_of_point(point) | entry.to_json() for point, entry in self.entries],
            **self._round_trips(),
            **{name: block.to_json() for name, block in self.blocks.items()},
            "notes": list(self.notes),
        }

    def _round_trips(self) -> dict[str, Any]:
        if not self.round_trips:
            return {}
        return {"round_trips": [_of_point(point) | e.to_json() for point, e in self.round_trips]}

    def to_text(self) -> str:
        """summary.json as it lies on disk: the same bytes for the same bundle."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def summarize_sweep(sweep: Sweep) -> SweepSummary:
    """Every figure of `sweep`, from the bundles of its complete points alone."""
    from wanlat.analysis.blocks import blocks_of_sweep

    points = tuple(
        (point, summarize(point.bundle, with_blocks=False))
        for point in sweep.complete
        if point.bundle is not None
    )
    untrusted = tuple(
        point.name for point in sweep.complete if point.bundle and not is_trusted(point.bundle)
    )
    return SweepSummary(sweep, points, untrusted, _notes(sweep, untrusted), blocks_of_sweep(sweep))


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


def _of_point(point: Point) -> dict[str, Any]:
    return {"point": point.name, "values": dict(point.values)}


def _notes(sweep: Sweep, untrusted: tuple[str, ...]) -> tuple[str, ...]:
    """How it ended, what is missing and why, and what the run and its points warned of."""
    notes = []
    reason = sweep.manifest.get("reason")
    how = {
        "interrupted": "The matrix was interrupted",
        "running": "The matrix was killed",
        "failed": "The matrix failed",
    }.get(sweep.status)
    if how is not None:
        notes.append(f"{how}{f' ({str(reason).rstrip(chr(46))})' if reason else ''}.")
    if missing := sweep.missing:
        whys = [f"{point.name} ({point.why_missing})" for point in missing]
        notes.append(
            f"{count(len(missing), 'point')} of {len(sweep.points)} missing, in no figure: "
            f"{listing(whys, _NAMED_AT_MOST)}. `wanlat run --resume {sweep.directory}` measures "
            "what is not complete."
        )
    if untrusted:
        notes.append(
            "Calibration failed, so that they are in no chart and no comparison: "
            f"{listing(untrusted, _NAMED_AT_MOST)}."
        )
    if any(point.bundle is not None and point.bundle.is_load for point in sweep.complete):
        notes.append(QUIET)
    warnings = sweep.manifest.get("warnings")
    notes += [str(text) for text in warnings] if isinstance(warnings, list) else []
    return (*notes, *_warnings_of_points(sweep))


def _warnings_of_points(sweep: Sweep) -> list[str]:
    """What points warned of, each warning once, with the points that did."""
    said: dict[str, list[str]] = {}
    for point in sweep.complete:
        warnings = point.bundle.manifest.get("warnings") if point.bundle else None
        for text in warnings if isinstance(warnings, list) else ():
            said.setdefault(str(text), []).append(point.name)
    own = sweep.manifest.get("warnings")
    known = set(own) if isinstance(own, list) else set()
    return [
        f"{text} ({listing(names, _NAMED_AT_MOST)})"
        for text, names in said.items()
        if text not in known
    ]
