"""What many bundles of round trips say, by operation, topology and system, cluster by cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wanlat.analysis.bundle import Series, read_bundle
from wanlat.analysis.endpoints import PLACEMENTS, endpoint_order
from wanlat.analysis.figures.result import Row
from wanlat.analysis.figures.round_trips import NO_SLOPE, RoundTrips, round_trips
from wanlat.analysis.names import format_ms, row_labels
from wanlat.bundle import documents

RTT_MS, _NEAR_MS = 100.0, 5.0
"""The RTT that latencies are given at, and how far from it one that was measured may lie."""


@dataclass(frozen=True)
class Line:
    """One operation of one version of a system on one topology: an entry for each cluster."""

    series: Series
    topology: str
    endpoint: str
    placement: str
    rows: tuple[Row, ...]
    entries: tuple[RoundTrips, ...]

    @property
    def clusters(self) -> str:
        """How many clusters its figures are of."""
        return "one cluster" if len(self.rows) == 1 else f"{len(self.rows)} clusters"

    def each(self, cell: Callable[[Row], str | None]) -> str:
        """A cell that has what every cluster says, once where all say the same."""
        return "; ".join(dict.fromkeys(cell(row) or "" for row in self.rows))

    @property
    def latency(self) -> str:
        """The median latency at `RTT_MS`, ms, of each cluster."""
        points = [each.points for each in self.entries]
        ms = [each.latency_ms[abs(each.rtt_ms - RTT_MS) <= _NEAR_MS] for each in points]
        return "; ".join(format_ms(float(np.median(each)) if each.size else None) for each in ms)


def read_lines(directories: Sequence[Path]) -> tuple[list[Path], list[Line]]:
    """The bundles that have round trips, and what they say."""
    used, cells = list[Path](), dict[tuple[Series, str, str, str], list[tuple[Row, RoundTrips]]]()
    for directory in directories:
        bundle = read_bundle(directory) if (directory / documents.RttSteps.FILE).exists() else None
        figures = round_trips(bundle) if bundle and bundle.status == "complete" else None
        if figures is None:
            continue
        used.append(directory)
        for row, entry in zip(figures.rows, figures.arrays, strict=True):
            key = entry.series, entry.topology, entry.endpoint, entry.placement
            cells.setdefault(key, []).append((row, entry))
    order = endpoint_order(endpoint for _, _, endpoint, _ in cells)

    def place(key: tuple[Series, str, str, str]) -> tuple[object, ...]:
        series, topology, endpoint, placement = key
        return order.index(endpoint), topology, series, PLACEMENTS.index(placement)

    return used, [
        Line(*key, *(tuple(each) for each in zip(*cells[key], strict=True)))
        for key in sorted(cells, key=place)
    ]


def no_slope(lines: Sequence[Line]) -> str | None:
    """Where latencies are on no line, and why."""
    return NO_SLOPE.of([(line.endpoint, row) for line in lines for row in line.rows])


def labels_of(lines: Sequence[Line]) -> dict[Series, str]:
    """What the chart calls each system."""
    return row_labels(list(dict.fromkeys(line.series for line in lines)))
