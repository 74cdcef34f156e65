"""NetworkChaos objects of Chaos Mesh: what the pods of a selector send those of another.

Source: config/crd/bases/chaos-mesh.org_networkchaos.yaml of github.com/chaos-mesh/chaos-mesh.
`latency` is one way; losses are percent; rates are tc's, where `mbps` are megabytes a second.
Direction `to` is what the selected pods send the target, `from` what they get, `both` both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.figures import TIME, Parser
from wanlat.topologies.formats.containerlab import with_rate
from wanlat.topologies.formats.network import Options, Place, Places, Way, places_topology
from wanlat.topologies.formats.yaml_documents import documents, mapping
from wanlat.topologies.imported import Imported
from wanlat.topologies.units import QuantityError
from wanlat.topologies.wording import listing, show

_KIND = "NetworkChaos"
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(bit|bps)", re.IGNORECASE)
_READ = {"delay", "loss", "duplicate", "corrupt", "rate", "bandwidth"}


def is_network(document: Mapping[str, Any]) -> bool:
    """Whether a document has what is read here."""
    spec = document.get("spec")
    is_scheduled = isinstance(spec, dict) and "networkChaos" in spec
    return document.get("kind") == _KIND or (document.get("kind") == "Schedule" and is_scheduled)


def read(path: Path, options: Options) -> Imported:
    """The topology of all objects in a file. Raises UserError with the object that is wrong."""
    notes: list[str] = []
    left_out: dict[str, None] = {}
    given: dict[tuple[str, str], Way] = {}
    names: dict[str, None] = {}
    for document in documents(path):
        if not isinstance(document, dict) or not is_network(document):
            continue
        metadata = mapping(document.get("metadata"), f"{path}: metadata of a {_KIND}")
        name = str(metadata.get("name") or "without a name")
        where = f"{path}: {_KIND} {name}"
        spec = mapping(document.get("spec"), f"{where}: spec")
        if document.get("kind") != _KIND:
            spec = mapping(spec.get("networkChaos"), f"{where}: spec.networkChaos")
        if spec.get("action") == "partition":
            notes.append(f"{name} cuts its pods off, which is no network: the fault `partition`")
            continue
        try:
            way = _way(spec, left_out)
        except QuantityError as problem:
            raise UserError(f"{where}: {problem}") from None
        for a, b in _directions(where, spec):
            names |= dict.fromkeys((a, b))
            given[a, b] = given.get((a, b), Way()) + way
    if not given:
        raise UserError(f"{path} has no {_KIND} that makes a network: {listing(notes)}")
    default = Way(options.default.ns / 2) if options.default else Way()
    ways = {a: {b: given.get((a, b), default) for b in names if b != a} for a in names}
    pairs = [(a, b) for a in names for b in names if a != b and (a, b) not in given]
    if pairs:
        shown = listing((f"{a} to {b}" for a, b in pairs), at_most=5)
        rtt = f"an RTT of {options.default}" if options.default else "0 ms (--default)"
        notes.append(f"{len(pairs)} ways have no object, and {rtt}: {shown}")
    if left_out:
        notes.append(f"left out: {listing(left_out)}")
    places = {name: Place(name, given.get((name, name))) for name in names}
    graph = Places(str(path), "objects of Chaos Mesh", ways, places, by_links=True, notes=notes)
    return places_topology(graph, options)


def _directions(where: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """From which pods to which."""
    target = spec.get("target")
    if not isinstance(target, dict):
        outside = spec.get("externalTargets")
        to = f"to {listing(map(str, outside), at_most=3)}" if outside else "to everybody"
        raise UserError(
            f"{where} is for all that its pods send {to}: there is no second place that a network"
            " could lie between. Give it a `target`; or write a site with an `access` by hand, or"
            " change a running lab: `wanlat lab change NODE delay=10ms`"
        )
    a, b = _name(where, spec.get("selector")), _name(where, target.get("selector"))
    direction = spec.get("direction") or "to"
    if direction not in ("to", "from", "both"):
        raise UserError(f"{where}: direction {show(direction)} is none of to, from and both")
    if direction in ("to", "both"):
        yield a, b
    if direction == "from" or (direction == "both" and a != b):
        yield b, a


def _name(where: str, selector: Any) -> str:
    """What a selector's pods are called: by their labels, else by what there is."""
    own = selector if isinstance(selector, dict) else {}
    for key in ("labelSelectors", "pods", "namespaces", "nodes", "nodeSelectors"):
        value = own.get(key)
        if isinstance(value, dict) and value:
            return "-".join(str(value[label]) for label in sorted(value))
        if isinstance(value, list) and value:
            return "-".join(map(str, value))
    raise UserError(f"{where}: its selector names no pods by labels, names or namespaces")


def _way(spec: Mapping[str, Any], left_out: dict[str, None]) -> Way:
    read = Parser()
    parts = {key: value for key in _READ if isinstance(value := spec.get(key), dict)}
    for key, value in parts.items():
        if str(value.get("correlation") or "0") not in ("0", "0%"):
            left_out["correlation"] = None
        if key == "delay" and value.get("reorder"):
            left_out["reorder"] = None
    for key in ("duration", "scheduler"):
        left_out |= {key: None} if spec.get(key) else {}
    if spec.get("mode", "all") != "all":
        left_out["mode (every pod of a selector is meant)"] = None

    def share(key: str) -> float:
        return read.loss(str(parts.get(key, {}).get(key, "0")), 100).value

    def time_ns(key: str) -> int:
        text = str(parts.get("delay", {}).get(key, "0"))
        value, unit = read.number(text)
        if value and not unit:
            raise QuantityError(f"{key} {show(text)} has no unit; write it as `10ms`")
        return read.time_ns(text, TIME["ms"])

    delay_ns = time_ns("latency")
    jitter_ns = min(time_ns("jitter"), delay_ns)
    rates = [
        _rate(str(parts[key]["rate"]))
        for key in ("rate", "bandwidth")
        if "rate" in parts.get(key, {})
    ]
    way = Way(
        delay_ns,
        jitter_ns,
        share("loss"),
        duplicate=share("duplicate"),
        corrupt=share("corrupt"),
    )
    return with_rate(way, min(rates, default=0))


def _rate(text: str) -> float:
    """Bits a second of a rate as tc reads it: `bps` are bytes."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise QuantityError(f"{show(text)} is no rate that tc takes, such as `10mbit` or `1mbps`")
    base = 1024.0 if match[3] else 1000.0
    power = " kmgt".index(match[2].lower()) if match[2] else 0
    return float(match[1]) * math.pow(base, power) * (8 if match[4].lower() == "bps" else 1)
