"""A topology as a containerlab topology file, and a script that sets the links' impairments.

Source: schemas/clab.schema.json and cmd/tools_netem.go of github.com/srl-labs/containerlab, state
of 2026-08-21. The schema has no place for impairments; `containerlab tools netem set` sets them
on a running lab.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from wanlat.topologies.export.exported import Exported, full_from_mbps, head, notes
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import rate_32, uniform_jitter_ns
from wanlat.topologies.resolve import Impairment, Plan, resolve
from wanlat.topologies.units import Duration

# iproute2 is what the nodes' `exec` needs; put the image of your store in its place.
IMAGE = "ghcr.io/srl-labs/network-multitool"

_GATEWAY = "169.254.0.1"  # never on the wire: every node's next hop is its router
_LIMIT = 10_000  # packets that containerlab's netem holds


@dataclass(frozen=True, slots=True)
class _Port:
    """One end of a link, with what leaves through it."""

    container: str
    interface: str
    mac: str
    out: Impairment


def containerlab(topology: Topology) -> Exported:
    """Return `NAME.clab.yml` and `NAME.netem.sh`, to be run in this order."""
    plan = resolve(topology)
    links = list(_links(plan))
    longest_ns = max(impairment.range_ns[1] for impairment in plan.impairments())
    mbps = full_from_mbps(_LIMIT, longest_ns)
    lost = notes("containerlab", plan, limit=_LIMIT, mbps=mbps)
    yml, script = f"{topology.name}.clab.yml", f"{topology.name}.netem.sh"
    usage = (
        f"    sudo containerlab deploy --topo {yml}\n"
        f"    sudo sh {script}          # delay, jitter, loss, rate and corruption of the links\n"
    )
    comment = head(topology, "containerlab", usage, "containerlab", lost)
    document = {
        "name": topology.name,
        "topology": {
            "defaults": {"kind": "linux", "image": IMAGE},
            "nodes": _nodes(plan, links),
            "links": [
                {
                    "type": "veth",
                    "endpoints": [
                        {"node": end.container, "interface": end.interface, "mac": end.mac}
                        for end in ends
                    ],
                }
                for ends in links
            ],
        },
    }
    text = comment + yaml.safe_dump(document, sort_keys=False, width=1000)
    commands = "".join(_commands(topology.name, links))
    return Exported({yml: text, script: f"#!/bin/sh\n{comment}set -e\n{commands}"}, lost)


def _router(site: str) -> str:
    return f"site.{site}"  # no node's name has a dot


def _links(plan: Plan) -> Iterator[tuple[_Port, _Port]]:
    """Every link's two ends. eth0 is containerlab's own: the management network."""
    ports = Counter[str]()

    def port(container: str, kind: int, index: int, out: Impairment) -> _Port:
        ports[container] += 1
        mac = ":".join(f"{octet:02x}" for octet in (2, kind, *index.to_bytes(4, "big")))
        return _Port(container, f"eth{ports[container]}", mac, out)

    for index, lan in enumerate(plan.lan_links):
        yield port(lan.node, 1, index, lan.up), port(_router(lan.site), 2, index, lan.down)
    for index, wan in enumerate(plan.wan_links):
        near = port(_router(wan.a), 3, index, wan.forward)
        yield near, port(_router(wan.b), 4, index, wan.backward)


def _nodes(plan: Plan, links: list[tuple[_Port, _Port]]) -> dict[str, Any]:
    """The containers: what each executes to have its address, its neighbours and its routes."""
    sites = {_router(site.name): site for site in plan.sites}
    commands = {
        router: [f"ip address add {site.router_address}/32 dev lo"]
        for router, site in sites.items()
    }
    for here, there in (pair for near, far in links for pair in ((near, far), (far, near))):
        device = f"dev {here.interface}"
        if here.container not in sites:
            address = plan.node(here.container).address
            lines = commands[here.container] = [f"ip address add {address}/32 {device}"]
            neighbour = _GATEWAY
            route = f"10.0.0.0/8 via {_GATEWAY} {device} onlink src {address}"
        elif there.container not in sites:
            lines = commands[here.container]
            neighbour = plan.node(there.container).address
            route = f"{neighbour}/32 {device}"
        else:
            lines, peer = commands[here.container], sites[there.container]
            neighbour = peer.router_address
            route = f"{peer.subnet} via {neighbour} {device} onlink"
        lines.append(f"ip neigh replace {neighbour} lladdr {there.mac} nud permanent {device}")
        lines.append(f"ip route replace {route}")
    return {
        container: {
            "group": sites[container].name if container in sites else plan.node(container).site,
            **({"sysctls": {"net.ipv4.ip_forward": 1}} if container in sites else {}),
            "exec": lines,
        }
        for container, lines in commands.items()
    }


def _commands(name: str, links: list[tuple[_Port, _Port]]) -> Iterator[str]:
    for port in (port for ends in links for port in ends):
        if words := _netem(port.out):
            ends = ["-n", f"clab-{name}-{port.container}", "-i", port.interface]
            yield shlex.join(["containerlab", "tools", "netem", "set", *ends, *words]) + "\n"


def _netem(impairment: Impairment) -> list[str]:
    """The options; what is false is left out, and so is a jitter without a delay."""
    delay_ns, loss = impairment.delay_ns, impairment.loss_probability
    jitter_ns = uniform_jitter_ns([impairment]) if delay_ns else 0
    bps = rate_32(impairment)
    options = {
        "--delay": delay_ns and str(Duration(delay_ns)),
        "--jitter": jitter_ns and str(Duration(jitter_ns)),
        "--loss": loss and f"{loss * 100:.10g}",
        "--rate": bps and str(max(1, round(bps / 1000))),
        "--corruption": impairment.corrupt and f"{impairment.corrupt * 100:.10g}",
    }
    return [word for key, value in options.items() if value for word in (key, value)]
