"""A graph in GML or GraphML, as Shadow and the Topology Zoo have them, as places with paths.

Shadow (docs/network_graph_spec.md of github.com/shadow/shadow): an edge's `latency` is one way,
`packet_loss` a fraction; an edge from a node to itself is what lies between two hosts there; paths
are the quickest. The Topology Zoo (topology-zoo.org): nodes have `Latitude` and `Longitude`, edges
`LinkSpeedRaw`, and no latencies; nodes with `Internal 0` are other networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wanlat.topologies.errors import UserError
from wanlat.topologies.formats.attributes import (
    NS_PER_KM,
    Attributes,
    great_circle_km,
    position,
)
from wanlat.topologies.formats.network import Options, Place, Places, Way, places_topology
from wanlat.topologies.imported import Imported
from wanlat.topologies.units import QuantityError
from wanlat.topologies.wording import listing, short

LARGEST_FILE = 32 * 2**20


@dataclass
class Edge:
    """An edge as the file has it; `line` counts from 1, 0 where it is not known."""

    source: str
    target: str
    attributes: dict[str, str]
    directed: bool = False
    line: int = 0


@dataclass
class Graph:
    """A graph as the file has it: nodes by their id, in order."""

    what: str
    attributes: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)


def topology(graph: Graph, path: Path, options: Options) -> Imported:
    """The topology of a graph. Raises UserError with the edge that is wrong, and the way out."""
    return places_topology(_Reading(graph, str(path), options).places(), options)


class _Reading:
    """What a graph's edges do, and what had to be assumed of them."""

    def __init__(self, graph: Graph, source: str, options: Options) -> None:
        self.graph, self.source, self.options = graph, source, options
        self.attributes = Attributes(options)
        self.notes: list[str] = []
        self.nodes = _own(graph, self.notes)
        self.ways: dict[str, dict[str, Way]] = {key: {} for key in self.nodes}
        self.inside: dict[str, Way] = {}
        self.unknown: list[str] = []
        self.distances = self.defaults = 0

    def places(self) -> Places:
        """The graph's places and the ways between them. Raises UserError."""
        for edge in self.graph.edges:
            self._add(edge)
        if self.unknown:
            raise UserError(_no_latency(self.graph, self.source, self.unknown))
        labelled = [key for key, attributes in self.nodes.items() if _label(attributes)]
        places = {key: self._place(key) for key in labelled or self.nodes}
        if self.distances:
            self.notes.append(
                f"{self.distances} edges have no latency: theirs is that of light in fibre, 5 us a"
                " km along the great circle between their ends; real paths are longer"
            )
        if self.defaults:
            given = self.options.default
            self.notes.append(f"{self.defaults} edges without a latency have an RTT of {given}")
        if routers := len(self.nodes) - len(places):
            self.notes.append(f"{routers} nodes without a label are routers, and no sites")
        notes = [*self.notes, *self.attributes.notes()]
        return Places(self.source, self.graph.what, self.ways, places, notes=notes)

    def _add(self, edge: Edge) -> None:
        place = f"{self.source}:{edge.line}" if edge.line else self.source
        for end in (edge.source, edge.target):
            if end not in self.graph.nodes:
                raise UserError(f"{place}: an edge ends at {short(end)}, and there is no such node")
        if not {edge.source, edge.target} <= self.nodes.keys():
            return
        called = f"{_named(self.graph, edge.source)} to {_named(self.graph, edge.target)}"
        try:
            way, has_delay = self.attributes.edge(edge.attributes)
        except (QuantityError, ValueError) as problem:
            raise UserError(f"{place}: the edge from {called}: {problem}") from None
        if edge.source == edge.target:
            self.inside.setdefault(edge.source, way)
            return
        if not has_delay:
            delay_ns = self._assumed_ns(edge)
            if delay_ns is None:
                self.unknown.append(called)
                return
            way = replace(way, delay_ns=delay_ns)
        directions = [(edge.source, edge.target), (edge.target, edge.source)]
        for start, end in directions[:1] if edge.directed else directions:
            before = self.ways[start].get(end)  # of several edges the quickest counts
            if before is None or way.delay_ns < before.delay_ns:
                self.ways[start][end] = way

    def _assumed_ns(self, edge: Edge) -> float | None:
        """The delay of an edge that has none: by the distance of its ends, or by --default."""
        a, b = (position(self.nodes[end]) for end in (edge.source, edge.target))
        if a is not None and b is not None:
            self.distances += 1
            return round(great_circle_km(a, b) * NS_PER_KM)
        if self.options.default is not None:
            self.defaults += 1
            return self.options.default.ns / 2
        return None

    def _place(self, key: str) -> Place:
        name = _named(self.graph, key)
        try:
            up, down = (self.attributes.line(self.nodes[key], way) for way in ("up", "down"))
        except QuantityError as problem:
            raise UserError(f"{self.source}: the bandwidth of {name}: {problem}") from None
        return Place(name, self.inside.get(key), up, down)


def _own(graph: Graph, notes: list[str]) -> dict[str, dict[str, str]]:
    """The nodes of the network itself: the Zoo marks those of others, which lie nowhere."""
    others = {
        key
        for key, attributes in graph.nodes.items()
        if attributes.get("Internal") == "0" and position(attributes) is None
    }
    if others and len(others) < len(graph.nodes):
        names = listing((_named(graph, key) for key in others), at_most=5)
        notes.append(f"{len(others)} nodes are left out, which are other networks': {names}")
        return {key: own for key, own in graph.nodes.items() if key not in others}
    return graph.nodes


def _label(attributes: Mapping[str, str]) -> str:
    return next((attributes[key] for key in ("label", "name") if attributes.get(key)), "")


def _named(graph: Graph, key: str) -> str:
    label = _label(graph.nodes[key])
    return label or (f"node-{key}" if key.lstrip("-").isdecimal() else key)


def _no_latency(graph: Graph, source: str, edges: list[str]) -> str:
    named = sorted({name for edge in graph.edges for name in edge.attributes})
    have = f"; edges have {listing(named, at_most=8)}" if named else ""
    return (
        f"{source}: {graph.what} in which {len(edges)} of {len(graph.edges)} edges have no latency"
        f' ({listing(edges, at_most=3)}){have}. Give them a `latency` ("8 ms", one way), or their'
        " nodes `Latitude` and `Longitude`; or --default 10ms says what RTT each of them has"
    )
