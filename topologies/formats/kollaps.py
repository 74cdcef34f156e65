"""An experiment of Kollaps: services are places, bridges routers.

Source: kollaps/Kollapslib of github.com/miguelammatos/Kollaps. A link's `latency` and `jitter` are
milliseconds one way, `drop` is a fraction, `upload` is from `origin` to `dest`, `download` back; a
link without `download` has one direction. Paths are those over the fewest links; of several
replicas each has the links of its service.
"""

from __future__ import annotations

import math
from pathlib import Path

from wanlat.topologies.errors import UserError
from wanlat.topologies.figures import TIME, Parser
from wanlat.topologies.formats.attributes import rate_bps
from wanlat.topologies.formats.graphs import LARGEST_FILE
from wanlat.topologies.formats.network import Options, Place, Places, Way, places_topology
from wanlat.topologies.formats.xml_tree import Element, parse
from wanlat.topologies.imported import Imported
from wanlat.topologies.limits import MAX_SITES
from wanlat.topologies.units import QuantityError
from wanlat.topologies.wording import did_you_mean, listing, show

_ATTRIBUTES = {
    *("origin", "dest", "latency", "jitter", "drop", "upload", "download", "network"),
}
_HALF = 0.5  # of all packets: hardly meant, unless a percentage is


def read(path: Path, options: Options) -> Imported:
    """The topology of an experiment. Raises UserError with the line that is wrong."""
    root = parse(path, LARGEST_FILE)
    notes: list[str] = []
    unknown: dict[str, None] = {}
    nodes: dict[str, list[str]] = {}  # of each service its replicas, of each bridge itself
    services: list[str] = []
    for group, kind in (("services", "service"), ("bridges", "bridge")):
        for element in _all(root, group, kind):
            name = element.attributes.get("name", "")
            if not name or name in nodes:
                wrong = "is there already" if name else "has no name"
                raise UserError(f"{path}:{element.line}: this {kind} {wrong}")
            nodes[name] = _replicas(path, name, element) if kind == "service" else [name]
            services += nodes[name] if kind == "service" else []
    ways: dict[str, dict[str, Way]] = {node: {} for group in nodes.values() for node in group}
    for link in _all(root, "links", "link"):
        _add(path, link, nodes, ways, options)
        unknown |= dict.fromkeys(link.attributes.keys() - _ATTRIBUTES)
    if unknown:
        notes.append(f"left out, as Kollaps has no such attribute: {listing(unknown, at_most=8)}")
    if any(way.loss >= _HALF for ends in ways.values() for way in ends.values()):
        notes.append("links lose half of the packets or more: `drop` is a fraction, and 0.01 is 1%")
    linked = {far for ends in ways.values() for far in ends} | {
        a for a, ends in ways.items() if ends
    }
    alone = [service for service in services if service not in linked]
    if alone:
        notes.append(f"services without links are left out: {listing(alone, at_most=8)}")
    if any(way.jitter_ns for ends in ways.values() for way in ends.values()):
        notes.append(
            "`jitter` is read as half of an even spread, for the file does not say its shape"
        )
    if events := sum(1 for dynamic in root.all("dynamic") for _ in dynamic.all("schedule")):
        notes.append(
            f"its {events} events (`schedule`) are left out: links are as they begin, and of each"
            " service there are as many as `replicas`; a drill has a timeline of faults"
        )
    places = {service: Place(service) for service in services if service in linked}
    graph = Places(str(path), "an experiment of Kollaps", ways, places, by_links=True, notes=notes)
    return places_topology(graph, options)


def _all(root: Element, group: str, kind: str) -> list[Element]:
    return [element for inner in root.all(group) for element in inner.all(kind)]


def _replicas(path: Path, name: str, service: Element) -> list[str]:
    text = service.attributes.get("replicas", "1")
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SITES:
        raise UserError(
            f"{path}:{service.line}: {show(text)} replicas; each is a site, from 1 to {MAX_SITES}"
        )
    return [name] if text == "1" else [f"{name}-{n}" for n in range(1, int(text) + 1)]


def _add(
    path: Path,
    link: Element,
    nodes: dict[str, list[str]],
    ways: dict[str, dict[str, Way]],
    options: Options,
) -> None:
    """Add the directions of a link, between all replicas of its ends."""
    own = link.attributes
    for end in ("origin", "dest"):
        if own.get(end) not in nodes:
            near = did_you_mean(own.get(end, ""), list(nodes))
            raise UserError(
                f"{path}:{link.line}: {end} is {show(own.get(end))}{near}, which is no service or"
                " bridge of the file"
            )
    try:
        if "latency" not in own and options.default is None:
            raise QuantityError("it has no `latency` (--default says what RTT such links have)")
        default_ns = options.default.ns / 2 if options.default else 0.0
        factor = TIME[options.unit or "ms"]
        delay_ns = Parser().time_ns(own["latency"], factor) if "latency" in own else default_ns
        jitter_ns = min(Parser().time_ns(own.get("jitter", "0"), factor), delay_ns)
        loss = Parser().loss(own.get("drop", "0"), 1).value
        up, down = (_rate(own.get(key)) for key in ("upload", "download"))
    except QuantityError as problem:
        raise UserError(
            f"{path}:{link.line}: the link from {own['origin']} to {own['dest']}: {problem}"
        ) from None
    directions = [("origin", "dest", up)]
    directions += [("dest", "origin", down)] if "download" in own or "upload" not in own else []
    for start, end, rate in directions:
        for near in nodes[own[start]]:
            for far in nodes[own[end]]:
                ways[near].setdefault(far, Way(delay_ns, jitter_ns, loss, rate))


def _rate(text: str | None) -> float:
    if text is None:
        return math.inf
    bps = rate_bps(text)
    if bps is None:
        raise QuantityError(f"{show(text)} has no unit; write it as `100Mbps`")
    return bps
