"""Small plans for tests of the emulator."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Impairment, Plan, resolve

NOTHING = Impairment()


def ms(delay: float, jitter: float = 0.0, **more: object) -> Impairment:
    """Return one direction's impairment, in milliseconds one way."""
    return Impairment(round(delay * 1e6), round(jitter * 1e6), **more)  # type: ignore[arg-type]


def mesh(
    sites: int,
    nodes: int = 1,
    *,
    wan: Impairment = NOTHING,
    back: Impairment | None = None,
    lan: Impairment = NOTHING,
    name: str = "mesh",
) -> Plan:
    """Return sites dc1… of nodes n1… each, with the same impairment between any two sites."""
    names = [f"n{number}" for number in range(1, sites * nodes + 1)]
    made = [
        {"name": f"dc{number}", "nodes": names[first:last]}
        for number, (first, last) in enumerate(pairwise(range(0, len(names) + 1, nodes)), 1)
    ]
    keys = {"name": name, "sites": made, "links": {"default": {"rtt": "0ms"}}}
    plan = resolve(Topology.model_validate(keys))
    links = tuple(replace(link, forward=wan, backward=back or wan) for link in plan.wan_links)
    lans = tuple(replace(link, up=lan, down=lan) for link in plan.lan_links)
    return replace(plan, lan_links=lans, wan_links=links)
