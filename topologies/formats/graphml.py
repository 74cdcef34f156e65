"""GraphML, a graph as XML. Source: graphml.graphdrawing.org/specification.html."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wanlat.topologies.errors import UserError
from wanlat.topologies.formats.graphs import LARGEST_FILE, Edge, Graph, topology
from wanlat.topologies.formats.network import Options
from wanlat.topologies.formats.xml_tree import Element, parse
from wanlat.topologies.imported import Imported
from wanlat.topologies.wording import show


def read(path: Path, options: Options) -> Imported:
    """The topology of a graph in GraphML. Raises UserError."""
    root = parse(path, LARGEST_FILE)
    graphs = list(root.all("graph"))
    if len(graphs) != 1:
        raise UserError(f"{path}: a file has one graph in GraphML, and this has {len(graphs)}")
    names = {key.attributes.get("id", ""): key for key in root.all("key")}

    def attributes(element: Element) -> dict[str, str]:
        own = dict(_defaults(names, element.name))
        for data in element.all("data"):
            key = names.get(data.attributes.get("key", ""))
            own[_name(key) if key else data.attributes.get("key", "")] = data.text.strip()
        return own

    graph = Graph("a graph in GraphML", attributes(graphs[0]))
    is_directed = graphs[0].attributes.get("edgedefault") == "directed"
    for node in graphs[0].all("node"):
        graph.nodes[_required(path, node, "id")] = attributes(node)
    for edge in graphs[0].all("edge"):
        directed = edge.attributes.get("directed", str(is_directed).lower()) == "true"
        source, target = (_required(path, edge, end) for end in ("source", "target"))
        graph.edges.append(Edge(source, target, attributes(edge), directed, edge.line))
    return topology(graph, path, options)


def _required(path: Path, element: Element, name: str) -> str:
    if name not in element.attributes:
        raise UserError(f"{path}:{element.line}: this {element.name} has no {show(name)}")
    return element.attributes[name]


def _name(key: Element) -> str:
    return key.attributes.get("attr.name") or key.attributes.get("id", "")


def _defaults(names: dict[str, Element], kind: str) -> Iterator[tuple[str, str]]:
    for key in names.values():
        if key.attributes.get("for") in (kind, "all"):
            for default in key.all("default"):
                yield _name(key), default.text.strip()
