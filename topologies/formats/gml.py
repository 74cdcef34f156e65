"""GML, the Graph Modelling Language: keys and values, of which lists stand in brackets.

Source: M. Himsolt, "GML: A portable Graph File Format" (1997).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from wanlat.topologies.errors import UserError
from wanlat.topologies.formats.graphs import LARGEST_FILE, Edge, Graph, topology
from wanlat.topologies.formats.network import Options
from wanlat.topologies.imported import Imported
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.wording import show

_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<text>"[^"]*")|(?P<bracket>[\[\]])|(?P<word>[^\s\[\]"#]+)')
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEEPEST = 20

_Value = str | list["_Pair"]
_Pair = tuple[str, "_Value", int]  # key, value, line


def read(path: Path, options: Options) -> Imported:
    """The topology of a graph in GML. Raises UserError."""
    file = str(path)
    try:
        pairs = _parse(read_text(path, "a graph", LARGEST_FILE))
    except UnreadableFile as problem:
        raise UserError(problem.at(file)) from None
    graphs = [value for key, value, _ in pairs if key == "graph" and isinstance(value, list)]
    if len(graphs) != 1:
        raise UserError(f"{file}: a file has one graph in GML, and this has {len(graphs)}")
    graph = Graph("a graph in GML", _plain(graphs[0]))
    is_directed = graph.attributes.get("directed") == "1"
    for key, value, line in graphs[0]:
        if not isinstance(value, list) or key not in ("node", "edge"):
            continue
        own = _plain(value)
        ends = ("id",) if key == "node" else ("source", "target")
        if lacking := [end for end in ends if end not in own]:
            raise UserError(f"{file}:{line}: this {key} has no {show(lacking[0])}")
        if key == "node":
            graph.nodes[own.pop("id")] = own
        else:
            graph.edges.append(Edge(own.pop("source"), own.pop("target"), own, is_directed, line))
    return topology(graph, path, options)


def _plain(pairs: list[_Pair]) -> dict[str, str]:
    return {key: value for key, value, _ in pairs if isinstance(value, str)}


def _parse(text: str) -> list[_Pair]:
    """The pairs of a text. Raises UnreadableFile with the line."""
    top: list[_Pair] = []
    stack = [top]
    key = ""
    for line, kind, token in _tokens(text):
        if token == "]":
            if len(stack) == 1 or key:
                raise UnreadableFile("this is not GML: a `]` too many", line)
            stack.pop()
        elif not key:
            if kind != "word" or not _KEY.fullmatch(token):
                raise UnreadableFile(
                    f"this is not GML: {show(token)} stands where a key does", line
                )
            key = token
        elif token == "[":
            if len(stack) > _DEEPEST:
                raise UnreadableFile("nested too deeply for a graph", line)
            inner: list[_Pair] = []
            stack[-1].append((key, inner, line))
            stack.append(inner)
            key = ""
        else:
            value = html.unescape(token[1:-1]) if kind == "text" else token
            stack[-1].append((key, value, line))
            key = ""
    if len(stack) > 1 or key:
        raise UnreadableFile("the graph in GML ends before its `]`")
    return top


def _tokens(text: str) -> Iterator[tuple[int, str, str]]:
    line, place = 1, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise UnreadableFile("this is not GML: a quotation mark has no second one", line)
        if match.lastgroup:
            yield line, match.lastgroup, match[0]
        line += match[0].count("\n")
        place = match.end()
