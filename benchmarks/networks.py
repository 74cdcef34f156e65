"""The networks of the benchmarks: sites that are all joined by the same link, nothing else."""

from __future__ import annotations

from itertools import pairwise

from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve


def mesh(name: str, nodes: int, sites: int, rtt_ms: float = 0) -> Plan:
    """Return a plan of nodes n1… spread over sites dc1…, each two joined by the same link."""
    names = [f"n{number}" for number in range(1, nodes + 1)]
    ends = [nodes * site // sites for site in range(sites + 1)]
    made = [{"name": f"dc{k}", "nodes": names[i:j]} for k, (i, j) in enumerate(pairwise(ends), 1)]
    links = {"default": {"rtt": f"{rtt_ms}ms"}}
    return resolve(Topology.model_validate({"name": name, "sites": made, "links": links}))
