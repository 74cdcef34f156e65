"""A topology as the JSON that `topologies/export/mininet.py` builds in Mininet.

Mininet runs under the system's Python, which has none of wanlat's packages: so everything is
worked out here, down to netem's arguments, and Mininet's side only carries it out.
"""

from __future__ import annotations

import json
from typing import Any

from wanlat.topologies.export.exported import Exported
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import netem, tc_words
from wanlat.topologies.resolve import Impairment, resolve

FORMAT = "wanlat-mininet-1"  # mininet.py refuses any other
_SINGLE = (
    "loss, duplication, corruption and rates count packets, so every host sends single"
    " packets and no large segments: TCP is slower than it would be"
)


def mininet_plan(topology: Topology) -> Exported:
    """Return the one file `NAME.mininet.json`; its notes are in it under `notes`."""
    plan = resolve(topology)
    counts_packets = any(impairment.counts_packets for impairment in plan.impairments())
    notes = (_SINGLE,) if counts_packets else ()
    tables: dict[tuple[int, ...], str] = {}

    def direction(impairment: Impairment) -> dict[str, Any]:
        name = ""
        if impairment.jitter_ns and impairment.distribution != "uniform":
            table = netem(impairment).entries
            name = tables.setdefault(table, f"wanlat-{len(tables) + 1}")
        return {"delay_ns": impairment.delay_ns, "netem": list(tc_words(impairment, name))}

    def link(planned: Any, ends: tuple[str, ...], ways: tuple[str, str]) -> dict[str, Any]:
        named = {end: getattr(planned, end) for end in ends}
        return named | {way: direction(getattr(planned, way)) for way in ways}

    document = {
        "format": FORMAT,
        "name": topology.name,
        "description": topology.description,
        "notes": notes,
        "topology": topology.to_dict(),  # what `wanlat topology import` gives back
        "single_segments": counts_packets,
        "sites": [
            {"name": site.name, "subnet": site.subnet, "router_address": site.router_address}
            for site in plan.sites
        ],
        "nodes": [
            {"name": node.name, "site": node.site, "address": node.address} for node in plan.nodes
        ],
        "lan_links": [link(lan, ("node",), ("up", "down")) for lan in plan.lan_links],
        "wan_links": [link(wan, ("a", "b"), ("forward", "backward")) for wan in plan.wan_links],
        "tables": {name: list(numbers) for numbers, name in tables.items()},
    }
    text = json.dumps(document, indent=1) + "\n"
    return Exported({f"{topology.name}.mininet.json": text}, notes)
