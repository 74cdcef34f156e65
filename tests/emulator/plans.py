"""Small plans for tests of the emulator."""

from __future__ import annotations

from wanlat.topologies.resolve import Impairment, LanLink, Node, Plan, Site, WanLink

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
    made: list[Site] = []
    for index in range(1, sites + 1):
        members = tuple(
            Node(f"n{(index - 1) * nodes + number}", f"dc{index}", f"10.{index}.0.{number}")
            for number in range(1, nodes + 1)
        )
        made.append(Site(f"dc{index}", index, f"10.{index}.0.0/16", f"10.{index}.255.254", members))
    everyone = tuple(node for site in made for node in site.nodes)
    links = tuple(
        WanLink(a.name, b.name, wan, back or wan)
        for place, a in enumerate(made)
        for b in made[place + 1 :]
    )
    lans = tuple(LanLink(node.name, node.site, lan, lan) for node in everyone)
    return Plan(name, tuple(made), everyone, lans, links)
