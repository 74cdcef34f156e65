"""The networks of the benchmarks: sites that are all joined by the same link, nothing else."""

from __future__ import annotations

from itertools import combinations

from wanlat.topologies.resolve import Impairment, LanLink, Node, Plan, Site, WanLink


def mesh(name: str, nodes: int, sites: int, way: Impairment) -> Plan:
    """Return a plan of nodes n1… spread over sites dc1…, each two joined by the same link."""
    made = []
    for site in range(1, sites + 1):
        places = range(nodes * (site - 1) // sites, nodes * site // sites)
        members = tuple(
            Node(f"n{place + 1}", f"dc{site}", f"10.{site}.0.{number}")
            for number, place in enumerate(places, 1)
        )
        network = (f"10.{site}.0.0/16", f"10.{site}.255.254")
        made.append(Site(f"dc{site}", site, *network, members))
    everyone = tuple(node for site in made for node in site.nodes)
    plain = Impairment()
    lans = tuple(LanLink(node.name, node.site, plain, plain) for node in everyone)
    wans = tuple(WanLink(a.name, b.name, way, way) for a, b in combinations(made, 2))
    return Plan(name, tuple(made), everyone, lans, wans)
