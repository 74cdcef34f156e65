"""What calibration found: the RTT that a chart prints, and whether it may be drawn at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from wanlat.bundle import documents

EQUAL_WITHIN = 0.1
"""Pairs whose median RTTs lie within this fraction of their median count as equally far apart."""

Pair = documents.CalibratedPair


class MeasuredRtt(NamedTuple):
    """RTT over a set of ordered pairs of nodes.

    `median_ms` is the median over the pairs of their medians, `low_pair_ms` and `high_pair_ms`
    the extreme pairs' medians, `min_ms` and `max_ms` the extreme single round trips, `pairs` the
    number of ordered pairs.
    """

    median_ms: float
    low_pair_ms: float
    high_pair_ms: float
    min_ms: float
    max_ms: float
    pairs: int

    @property
    def is_uniform(self) -> bool:
        """Whether one figure speaks for every pair, so that multiples of it mean something."""
        slack = EQUAL_WITHIN * self.median_ms
        return max(self.high_pair_ms - self.median_ms, self.median_ms - self.low_pair_ms) <= slack


@dataclass(frozen=True)
class Calibration:
    """calibration.json: every ordered pair of every lab, and the verdict over all of them."""

    verdict: documents.Verdict
    pairs: Sequence[Pair]
    document: Mapping[str, Any] = field(compare=False, repr=False)
    """As it was written, for its chart."""

    @property
    def passed(self) -> bool:
        """Whether every pair of every lab was as requested."""
        return self.verdict == "pass"

    def trusts(self, system: str) -> bool:
        """Whether the network was right in the lab of `system`.

        A failure that no pair accounts for is one of every lab.
        """
        labs = {pair.system for pair in self.pairs if pair.verdict != "pass"}
        return self.passed or (bool(labs) and not labs & {system, ""})

    def between_sites(self, site_of: Callable[[str], str]) -> MeasuredRtt | None:
        """RTT over the pairs that cross from one site to another; None if none does."""
        return _rtt_over([p for p in self.pairs if site_of(p.source) != site_of(p.destination)])

    def within_sites(self, site_of: Callable[[str], str]) -> MeasuredRtt | None:
        """RTT over the pairs inside a site; None if none was measured."""
        return _rtt_over([p for p in self.pairs if site_of(p.source) == site_of(p.destination)])


def calibration_of(found: documents.Calibration) -> Calibration:
    """The calibration that a run left, as far as its report needs it."""
    return Calibration(found.verdict, found.pairs, found.model_dump())


def site_of_name(topology: object) -> Callable[[str], str]:
    """Map the name of a node or a site to its site, by a manifest's `topology`.

    A name that the topology does not know is a site of its own.
    """
    sites = sites_by_node(topology)
    return lambda name: sites.get(name, name)


def sites_by_node(topology: object) -> dict[str, str]:
    """The site of each node of a manifest's `topology`.

    Nodes may be a list (of names, or of objects with a name) or a count, which names them
    `dc1-1`, `dc1-2`, ….
    """
    sites: dict[str, str] = {}
    entries = topology.get("sites") if isinstance(topology, Mapping) else None
    for entry in entries if isinstance(entries, list) else []:
        site, nodes = str(entry.get("name")), entry.get("nodes")
        if isinstance(nodes, int):
            nodes = [f"{site}-{number}" for number in range(1, nodes + 1)]
        for node in nodes or []:
            sites[str(node.get("name")) if isinstance(node, Mapping) else str(node)] = site
    return sites


def _rtt_over(pairs: Sequence[Pair]) -> MeasuredRtt | None:
    rtts = [pair.rtt_ms for pair in pairs if pair.rtt_ms is not None]
    if not rtts:
        return None
    medians_ms = [rtt.p50 for rtt in rtts]
    return MeasuredRtt(
        median_ms=median(medians_ms),
        low_pair_ms=min(medians_ms),
        high_pair_ms=max(medians_ms),
        min_ms=min(rtt.min for rtt in rtts),
        max_ms=max(rtt.max for rtt in rtts),
        pairs=len({(pair.source, pair.destination) for pair in pairs if pair.rtt_ms is not None}),
    )
