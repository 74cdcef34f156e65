"""A topology as the JSON that `topologies/export/mininet.py` builds in Mininet.

Mininet runs under the system's Python, which has none of wanlat's packages: so everything is
worked out here, down to netem's arguments, and Mininet's side only carries it out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wanlat.topologies.export.exported import Exported
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import netem, tc_words
from wanlat.topologies.resolve import Impairment, Plan, resolve

FORMAT = "wanlat-mininet-1"  # mininet.py refuses any other


def mininet_plan(topology: Topology) -> Exported:
    """Return the one file `NAME.mininet.json`; its notes are in it under `notes`."""
    plan = resolve(topology)
    notes = tuple(_notes(plan))
    document = _document(topology, plan, notes)
    text = json.dumps(document, indent=1) + "\n"
    return Exported({f"{topology.name}.mininet.json": text}, notes)


def impairments(plan: Plan) -> Iterator[Impairment]:
    """Yield every direction's impairment, LAN links first."""
    for lan in plan.lan_links:
        yield from (lan.up, lan.down)
    for wan in plan.wan_links:
        yield from (wan.forward, wan.backward)


def _document(topology: Topology, plan: Plan, notes: tuple[str, ...]) -> dict[str, Any]:
    tables: dict[tuple[int, ...], str] = {}

    def direction(impairment: Impairment) -> dict[str, Any]:
        name = ""
        if impairment.jitter_ns and impairment.distribution != "uniform":
            table = netem(impairment).entries
            name = tables.setdefault(table, f"wanlat-{len(tables) + 1}")
        return {"delay_ns": impairment.delay_ns, "netem": list(tc_words(impairment, name))}

    lan_links = [
        {"node": link.node, "up": direction(link.up), "down": direction(link.down)}
        for link in plan.lan_links
    ]
    wan_links = [
        {
            "a": link.a,
            "b": link.b,
            "forward": direction(link.forward),
            "backward": direction(link.backward),
        }
        for link in plan.wan_links
    ]
    return {
        "format": FORMAT,
        "name": topology.name,
        "description": topology.description,
        "notes": list(notes),
        "topology": topology.to_dict(),  # what `wanlat topology import` gives back
        "single_segments": any(each.counts_packets for each in impairments(plan)),
        "sites": [
            {"name": site.name, "subnet": site.subnet, "router_address": site.router_address}
            for site in plan.sites
        ],
        "nodes": [
            {"name": node.name, "site": node.site, "address": node.address} for node in plan.nodes
        ],
        "lan_links": lan_links,
        "wan_links": wan_links,
        "tables": {name: list(numbers) for numbers, name in tables.items()},
    }


def _notes(plan: Plan) -> Iterator[str]:
    every = list(impairments(plan))
    if any(each.counts_packets for each in every):
        yield (
            "loss, duplication, corruption and rates count packets, so every host sends single"
            " packets and no large segments: TCP is slower than it would be"
        )
