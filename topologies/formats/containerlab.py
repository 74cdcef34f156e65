"""A topology of containerlab's, with the impairments of a script beside it.

Source: schemas/clab.schema.json and cmd/tools_netem.go of github.com/srl-labs/containerlab. The
file has no place for impairments: commands `containerlab tools netem set` set them on a running
lab, each on what leaves an interface. `NAME.netem.sh` beside `NAME.clab.yml` holds them, as
`wanlat topology export --to containerlab` writes it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.figures import TIME, Parser
from wanlat.topologies.formats.network import (
    Options,
    Place,
    Places,
    Way,
    hosts_document,
    places_topology,
)
from wanlat.topologies.formats.yaml_documents import documents, mapping
from wanlat.topologies.imported import Imported, host_names, imported
from wanlat.topologies.netem import ORDERING_RATE_32_BPS
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.units import QuantityError
from wanlat.topologies.wording import listing, show

_BRIDGES = {"bridge", "ovs-bridge"}
_OUTSIDE = {"host", "mgmt-net", "macvlan"}  # ends of links that are no nodes
_LARGEST_SCRIPT = 4 * 2**20
_NAMES = {"-n": "node", "--node": "node", "-i": "interface", "--interface": "interface"}
_PAIR = 2

End = tuple[str, str]
"""A node and its interface."""


def read(path: Path, options: Options) -> Imported:
    """The topology of a lab. Raises UserError, also where its links have no impairments."""
    document = next(part for part in documents(path) if isinstance(part, dict))
    inner = document["topology"]
    nodes = {
        name: mapping(own, f"{path}: topology.nodes.{name}")
        for name, own in mapping(inner["nodes"], f"{path}: topology.nodes").items()
    }
    linked = inner.get("links") or []
    if not isinstance(linked, list):
        raise UserError(f"{path}: topology.links is {show(linked)}, and no list")
    notes: list[str] = []
    links = list(_links(path, linked, nodes, notes))
    ways = _ways(path, document, nodes, links, options, notes)
    defaults = mapping(inner.get("defaults"), f"{path}: topology.defaults")
    kinds = {name: _kind(defaults, own) for name, own in nodes.items()}
    routers = [name for name, own in nodes.items() if _forwards(own)]
    hosts = [
        name
        for name, far in ways.items()
        if len(far) == 1
        and kinds[name] not in _BRIDGES
        and (len(ways[next(iter(far))]) > 1 or next(iter(far)) in routers)
        and name not in routers
    ]
    name = (
        options.name
        or host_names([str(document.get("name") or path.name.partition(".")[0])], [])[0]
    )
    if (len(hosts) < _PAIR and not routers) or options.places is not None:
        places = {node: Place(node) for node in ways if kinds[node] not in _BRIDGES}
        what = "a topology of containerlab's"
        graph = Places(str(path), what, ways, places, by_links=True, notes=notes)
        return places_topology(graph, replace(options, name=name))
    others = [node for node in ways if node not in hosts]
    notes.append(
        "nodes with one link are hosts; the others forward, and no store runs there:"
        f" {listing(others, at_most=8)}"
    )
    groups = [str(nodes[node].get("group") or "") for node in others]
    labels = {
        node: group for node, group in zip(others, groups, strict=True) if groups.count(group) == 1
    }
    made = hosts_document(ways, hosts, notes, {node: text for node, text in labels.items() if text})
    head = {"name": name, "description": f"from {path.name}, a topology of containerlab's"}
    comment = f"Made by `wanlat topology import` from {path.name}."
    return imported({**head, **made}, source=str(path), comments=[comment], notes=notes)


def _forwards(node: Mapping[str, Any]) -> bool:
    sysctls = node.get("sysctls")
    return isinstance(sysctls, dict) and str(sysctls.get("net.ipv4.ip_forward")) == "1"


def _kind(defaults: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    return str(node.get("kind") or defaults.get("kind") or "")


def _links(
    path: Path, links: list[Any], nodes: Mapping[str, Any], notes: list[str]
) -> Iterator[tuple[End, End]]:
    """The ends of each link between two nodes."""
    outside = 0
    for number, link in enumerate(links):
        ends = link.get("endpoints") if isinstance(link, dict) else None
        if not isinstance(ends, list) or len(ends) != _PAIR:
            outside += 1
            continue
        pair = []
        for end in ends:
            if isinstance(end, dict):
                node, interface = str(end.get("node")), str(end.get("interface") or "")
            else:
                node, _, interface = str(end).partition(":")
            pair.append((node, interface))
        if any(node in _OUTSIDE and node not in nodes for node, _ in pair):
            outside += 1
            continue
        for node, _ in pair:
            if node not in nodes:
                raise UserError(f"{path}: topology.links[{number}]: there is no node {show(node)}")
        yield pair[0], pair[1]
    if outside:
        notes.append(f"{outside} links that do not join two nodes are left out")


def _ways(
    path: Path,
    document: Mapping[str, Any],
    nodes: Mapping[str, Any],
    links: list[tuple[End, End]],
    options: Options,
    notes: list[str],
) -> dict[str, dict[str, Way]]:
    """What each direction of the links does."""
    script = path.with_name(f"{path.name.partition('.')[0]}.netem.sh")
    impairments: dict[End, Way] = {}
    if script.exists():
        prefix = document.get("prefix", "clab")
        lab = f"{prefix}-{document.get('name')}-" if prefix else ""
        impairments = dict(_netem(script, lab))
        notes.append(f"impairments are those of {script.name}, beside it")
    elif options.default is not None:
        every = Way(options.default.ns / 2)
        impairments = {end: every for ends in links for end in ends}
        notes.append(f"each of its links has an RTT of {options.default} by default")
    else:
        raise UserError(
            f"{path} is a topology of containerlab's, which says what is linked"
            f" ({len(nodes)} nodes, {len(links)} links) and not what the links do. Put the commands"
            f" `containerlab tools netem set` into {script.name} beside it, or say with --default"
            " 10ms what RTT each link has"
        )
    ways: dict[str, dict[str, Way]] = {node: {} for node in nodes}
    for ends in links:
        (a, _), (b, _) = ends
        if b in ways[a]:
            raise UserError(f"{path}: {a} and {b} have two links; between two nodes there is one")
        ways[a][b], ways[b][a] = (impairments.get(end, Way()) for end in ends)
    return {node: far for node, far in ways.items() if far}


def _netem(script: Path, lab: str) -> Iterator[tuple[End, Way]]:
    """The impairments that a script sets, by what they are set on."""
    try:
        text = read_text(script, "a script", _LARGEST_SCRIPT)
    except UnreadableFile as problem:
        raise UserError(problem.at(str(script))) from None
    for number, line in enumerate(text.replace("\\\n", "  ").splitlines(), start=1):
        if "netem set" not in line or line.lstrip().startswith("#"):
            continue
        try:
            words = [
                part for word in shlex.split(line, comments=True) for part in word.split("=", 1)
            ]
            given = dict(pairwise(words))
            names = {_NAMES[word]: value for word, value in given.items() if word in _NAMES}
            way = _way(given)
        except (QuantityError, ValueError) as problem:
            raise UserError(f"{script}:{number}: {problem}") from None
        if len(names) != _PAIR:
            raise UserError(f"{script}:{number}: -n NODE and -i INTERFACE say what it is set on")
        yield (names["node"].removeprefix(lab), names["interface"]), way


def _way(given: Mapping[str, str]) -> Way:
    """What one command sets: times with units, percent, kbit/s."""
    read = Parser()
    delay_ns = read.time_ns(given.get("--delay", "0"), TIME["ms"])
    jitter_ns = min(read.time_ns(given.get("--jitter", "0"), TIME["ms"]), delay_ns)
    rate = float(read.number(given.get("--rate", "0"))[0]) * 1000
    way = Way(
        delay_ns,
        jitter_ns,
        read.loss(given.get("--loss", "0"), 100).value,
        corrupt=read.loss(given.get("--corruption", "0"), 100).value,
    )
    return with_rate(way, rate)


def with_rate(way: Way, rate_bps: float) -> Way:
    """What netem makes of a rate (0: none): it keeps the order, which jitter without one does not.

    The rate that an export writes for that alone is none.
    """
    if not rate_bps:
        return replace(way, reorder=way.jitter_ns > 0)
    return way if rate_bps == ORDERING_RATE_32_BPS else replace(way, rate_bps=rate_bps)
