"""The round trips of many bundles, by operation, topology and system, cluster by cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.round_trips import (
    DECIDED,
    NO_SLOPE,
    RoundTrips,
    decided,
    round_trips,
    slope_cell,
    stated,
    ways,
    ways_cell,
)
from wanlat.analysis.names import EN_DASH, format_ms, row_labels
from wanlat.analysis.section import Row
from wanlat.bundle import beneath, documents
from wanlat.bundle.documents import PLACEMENTS, Titles
from wanlat.bundle.run import Run, Series, read_run

RTT_MS, _NEAR_MS = 100.0, 5.0
"""The RTT that latencies are given at, and how far from it one that was measured may lie."""
SEVERAL = 3
"""From so many clusters on their mean is given, and not each of them."""
LEADER, FOLLOWER = "leader", "follower"


@dataclass(frozen=True)
class Line:
    """One operation of one version of a system on one topology: an entry for each cluster.

    `target`: whether the target node leads, "" where the system has no leader. A row is that of a
    table of round trips, with `promised_round_trips`: those of the system's own protocol, or None.
    """

    series: Series
    topology: str
    endpoint: str
    target: str
    placement: str
    rows: tuple[Row, ...]
    entries: tuple[RoundTrips, ...]

    @property
    def clusters(self) -> str:
        """How many clusters its figures are of."""
        return "one cluster" if len(self.rows) == 1 else f"{len(self.rows)} clusters"

    def per_cluster(self, cell: Callable[[Row], str | None]) -> str:
        """A cell that has the figures of every cluster, once where they are the same."""
        return "; ".join(dict.fromkeys(cell(row) or "" for row in self.rows))

    @property
    def headline(self) -> str:
        """What its requests take, with shares: of each cluster, of several of all of them."""
        if len(self.rows) >= SEVERAL and (lines := ways(self.rows)):
            return ways_cell(lines)
        return self.per_cluster(
            lambda row: ways_cell(ways([row])) if row["modes"] else slope_cell(row)
        )

    @property
    def latency(self) -> str:
        """The median latency at `RTT_MS`, ms, of each cluster; of several the range."""
        points = [entry.points for entry in self.entries]
        near = [point.latency_ms[abs(point.rtt_ms - RTT_MS) <= _NEAR_MS] for point in points]
        ms = [float(np.median(latencies)) for latencies in near if latencies.size]
        if len(ms) >= SEVERAL:
            ms = [min(ms), max(ms)]
            return f" {EN_DASH} ".join(dict.fromkeys(map(format_ms, ms)))
        return "; ".join(map(format_ms, ms)) or EN_DASH


def read_lines(directories: Sequence[Path]) -> tuple[list[Path], list[Line]]:
    """The bundles that have round trips, and their figures.

    Without those with a bucket that was filled first: that is another question.
    """
    used = list[Path]()
    cells = dict[tuple[Series, str, str, str, str], list[tuple[Row, RoundTrips]]]()
    for directory in directories:
        has_steps = beneath.is_file(directory / documents.RttSteps.FILE)
        bundle = read_run(directory) if has_steps else None
        if bundle is None or bundle.status != "complete":
            continue
        if bundle.manifest.study and bundle.manifest.study.prefill:
            continue
        if (figures := round_trips(bundle)) is None:
            continue
        used.append(directory)
        promised = stated(bundle, "promised_round_trips")
        for row, entry in zip(figures.rows, figures.arrays, strict=True):
            known = getattr(promised.get(entry.group), "round_trips", None)
            target = _target(bundle, entry.series.system)
            key = entry.series, entry.topology, entry.endpoint, target, entry.placement
            cells.setdefault(key, []).append(({**row, "promised_round_trips": known}, entry))
    order = endpoint_order(key[2] for key in cells)

    def place(key: tuple[Series, str, str, str, str]) -> tuple[object, ...]:
        series, topology, endpoint, target, placement = key
        followers_last = target == FOLLOWER, PLACEMENTS.index(placement)
        return order.index(endpoint), topology, series, *followers_last

    return used, [
        Line(*key, *(tuple(column) for column in zip(*cells[key], strict=True)))
        for key in sorted(cells, key=place)
    ]


def _target(bundle: Run, system: str) -> str:
    """Whether the node that requests went to leads, where the manifest has its roles."""
    known, target = bundle.manifest.system(system), bundle.manifest.target
    leaders = known.roles.get(LEADER) if known else None
    if not leaders or target is None:
        return ""
    return LEADER if target.node in leaders else FOLLOWER


def no_slope(lines: Sequence[Line], titles: Titles) -> str | None:
    """Where no line explains latencies, and why."""
    return NO_SLOPE.sentence([(line.endpoint, row) for line in lines for row in line.rows], titles)


def what_decides(lines: Sequence[Line], titles: Titles) -> str | None:
    """What decides how many round trips a request takes, where they differ."""
    return DECIDED.sentence(
        [(line.endpoint, {**line.rows[0], "decided": decided(line.rows)}) for line in lines], titles
    )


def labels_of(lines: Sequence[Line], titles: Titles) -> dict[Series, str]:
    """What the chart calls each system."""
    return row_labels(list(dict.fromkeys(line.series for line in lines)), titles)
