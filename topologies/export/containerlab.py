"""A topology as a containerlab topology file, and a script that sets the links' impairments.

Source: schemas/clab.schema.json and cmd/tools_netem.go of github.com/srl-labs/containerlab, state
of 2026-08-21. The schema has no place for impairments; `containerlab tools netem set` sets them
on a running lab.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from wanlat.topologies.export.exported import Exported, commented
from wanlat.topologies.export.mininet_plan import impairments
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import rate_32, uniform_jitter_ns
from wanlat.topologies.resolve import Impairment, Plan, resolve
from wanlat.topologies.units import Duration

# iproute2 is what the nodes' `exec` needs; put the image of your store in its place.
IMAGE = "ghcr.io/srl-labs/network-multitool"

_GATEWAY = "169.254.0.1"  # never on the wire: every node's next hop is its router
_LIMIT = 10_000  # packets that containerlab's netem holds
_PACKET_BITS = 1514 * 8


@dataclass(frozen=True, slots=True)
class _Port:
    """One end of a link, with what leaves through it."""

    container: str
    interface: str
    mac: str
    out: Impairment

    def endpoint(self) -> dict[str, str]:
        return {"node": self.container, "interface": self.interface, "mac": self.mac}


def containerlab(topology: Topology) -> Exported:
    """Return `NAME.clab.yml` and `NAME.netem.sh`, to be run in this order."""
    plan = resolve(topology)
    links = list(_links(plan))
    notes = tuple(_notes(plan))
    yml, script = f"{topology.name}.clab.yml", f"{topology.name}.netem.sh"
    told = "".join(f"- {note}\n" for note in notes)
    head = (
        f"{topology.name}: {topology.description}\n"
        f"Written by `wanlat topology export {topology.name} --to containerlab`.\n\n"
        f"    sudo containerlab deploy --topo {yml}\n"
        f"    sudo sh {script}          # delay, jitter, loss, rate and corruption of the links\n\n"
        "What containerlab cannot express, or does differently:\n" + told
    )
    text = commented(head) + yaml.safe_dump(
        {
            "name": topology.name,
            "topology": {
                "defaults": {"kind": "linux", "image": IMAGE},
                "nodes": _nodes(plan, links),
                "links": [
                    {"type": "veth", "endpoints": [near.endpoint(), far.endpoint()]}
                    for near, far in links
                ],
            },
        },
        sort_keys=False,
        width=1000,
    )
    return Exported({yml: text, script: _script(topology, links, head)}, notes)


def _router(site: str) -> str:
    return f"site.{site}"  # no node's name has a dot


def _mac(kind: int, index: int) -> str:
    octets = (2, kind, *index.to_bytes(4, "big"))
    return ":".join(f"{octet:02x}" for octet in octets)


def _links(plan: Plan) -> Iterator[tuple[_Port, _Port]]:
    """Every link's two ends. eth0 is containerlab's own: the management network."""
    ports: dict[str, int] = {}

    def interface(container: str) -> str:
        ports[container] = ports.get(container, 0) + 1
        return f"eth{ports[container]}"

    for index, lan in enumerate(plan.lan_links):
        router = _router(lan.site)
        yield (
            _Port(lan.node, interface(lan.node), _mac(1, index), lan.up),
            _Port(router, interface(router), _mac(2, index), lan.down),
        )
    for index, wan in enumerate(plan.wan_links):
        a, b = _router(wan.a), _router(wan.b)
        yield (
            _Port(a, interface(a), _mac(3, index), wan.forward),
            _Port(b, interface(b), _mac(4, index), wan.backward),
        )


def _nodes(plan: Plan, links: list[tuple[_Port, _Port]]) -> dict[str, Any]:
    commands: dict[str, list[str]] = {}
    sites = {_router(site.name): site for site in plan.sites}
    for router, site in sites.items():
        commands[router] = [f"ip address add {site.router_address}/32 dev lo"]
    for near, far in links:
        for here, there in ((near, far), (far, near)):
            lines = commands.setdefault(here.container, [])
            device = here.interface
            neighbour = f"lladdr {there.mac} nud permanent dev {device}"
            if here.container not in sites:
                address = plan.node(here.container).address
                lines += [
                    f"ip address add {address}/32 dev {device}",
                    f"ip neigh replace {_GATEWAY} {neighbour}",
                    f"ip route replace 10.0.0.0/8 via {_GATEWAY} dev {device} onlink src {address}",
                ]
            elif there.container not in sites:
                address = plan.node(there.container).address
                lines += [
                    f"ip neigh replace {address} {neighbour}",
                    f"ip route replace {address}/32 dev {device}",
                ]
            else:
                peer = sites[there.container]
                lines += [
                    f"ip neigh replace {peer.router_address} {neighbour}",
                    f"ip route replace {peer.subnet} via {peer.router_address} dev {device} onlink",
                ]
    return {
        container: {
            "group": sites[container].name if container in sites else plan.node(container).site,
            **({"sysctls": {"net.ipv4.ip_forward": 1}} if container in sites else {}),
            "exec": lines,
        }
        for container, lines in commands.items()
    }


def _script(topology: Topology, links: list[tuple[_Port, _Port]], head: str) -> str:
    lines = []
    for port in (port for ends in links for port in ends):
        words = _netem(port.out)
        if words:
            container = f"clab-{topology.name}-{port.container}"
            command = ["containerlab", "tools", "netem", "set", "-n", container]
            lines.append(shlex.join([*command, "-i", port.interface, *words]) + "\n")
    return "#!/bin/sh\n" + commented(head) + "set -e\n" + "".join(lines)


def _netem(impairment: Impairment) -> list[str]:
    words = []
    if impairment.delay_ns:
        words += ["--delay", str(Duration(impairment.delay_ns))]
        jitter_ns = uniform_jitter_ns([impairment])
        words += ["--jitter", str(Duration(jitter_ns))] if jitter_ns else []
    if impairment.loss_probability:
        words += ["--loss", f"{impairment.loss_probability * 100:.10g}"]
    bps = rate_32(impairment)
    if bps is not None:
        words += ["--rate", str(max(1, round(bps / 1000)))]
    if impairment.corrupt:
        words += ["--corruption", f"{impairment.corrupt * 100:.10g}"]
    return words


def _notes(plan: Plan) -> Iterator[str]:
    every = [each for each in impairments(plan) if not each.is_noop]
    jittered = [each for each in every if each.jitter_ns]
    if any(not link.up.is_noop for link in plan.lan_links):
        yield (
            "What lies between a node and its router sits on the interface from which the node"
            " sends, where TCP's small queues slow TCP down; in wanlat it is on the path."
        )
    if any(each.distribution != "uniform" for each in jittered):
        yield (
            "containerlab knows no distribution: delays spread evenly, with the standard deviation"
            " asked for (and never below zero)."
        )
    if any(not each.reorder and each.rate_bps is None for each in jittered):
        yield "A rate of 32 Gbit/s stands where none was asked for: it keeps packets in order."
    if any(each.bursts for each in every):
        yield "Loss in bursts has become independent loss of the same probability."
    if any(each.duplicate for each in every):
        yield "Duplication is left out."
    if any(each.overtake for each in every):
        yield "The part of the packets that overtakes is left out."
    if any(each.delay_ns % 1000 or each.jitter_ns % 1000 for each in every):
        yield "Delays are cut to whole microseconds by containerlab."
    if any(each.rate_bps is not None for each in every):
        yield "Rates are whole kbit/s, and `queue` is left out."
    longest_ns = max((each.range_ns[1] for each in every), default=0)
    if longest_ns:
        mbps = _LIMIT * _PACKET_BITS * 10**3 / longest_ns
        yield (
            f"containerlab's netem holds {_LIMIT} packets and drops the rest: on the longest link"
            f" that is from {mbps:.0f} Mbit/s on."
        )
