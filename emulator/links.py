"""Which links a lab has, in the form in which a backend meets them.

A topology is parsed (``topologies.load``), resolved (``topologies.resolve``) and then laid out
here: every link, LAN or WAN, becomes two directions, each with an impairment of its own, and
each known by one key.
"""

from __future__ import annotations

from dataclasses import dataclass

from wanlat.topologies.resolve import Impairment, Plan


@dataclass(frozen=True)
class Direction:
    """One direction of one link, by the names at its ends.

    WAN: from a site to a site. LAN: from a node to its site, or from a site to its node.
    """

    kind: str  # "wan" | "lan"
    source: str
    target: str

    @property
    def opposite(self) -> Direction:
        """Return the other direction of the same link."""
        return Direction(self.kind, self.target, self.source)

    def to_dict(self) -> dict[str, str]:
        """Return it as documents have it."""
        return {"link": self.kind, "from": self.source, "to": self.target}

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class Link:
    """A link with both its directions: ``ab`` from its first end to its second.

    The first end of a LAN link is its node.
    """

    kind: str
    index: int
    a: str
    b: str
    ab: Impairment
    ba: Impairment

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """Return the directions ab and ba."""
        return Direction(self.kind, self.a, self.b), Direction(self.kind, self.b, self.a)


def wan(source: str, target: str) -> Direction:
    """Return the direction from site ``source`` to site ``target``."""
    return Direction("wan", source, target)


def lan_up(node: str, site: str) -> Direction:
    """Return the direction from a node to its site's router."""
    return Direction("lan", node, site)


def lan_down(node: str, site: str) -> Direction:
    """Return the direction from a site's router to one of its nodes."""
    return Direction("lan", site, node)


def links_of(plan: Plan) -> tuple[Link, ...]:
    """Return every link of ``plan``: LAN links in the order of nodes, then WAN links."""
    lan = (
        Link("lan", index, link.node, link.site, link.up, link.down)
        for index, link in enumerate(plan.lan_links)
    )
    wide = (
        Link("wan", index, link.a, link.b, link.forward, link.backward)
        for index, link in enumerate(plan.wan_links)
    )
    return (*lan, *wide)


def requested(plan: Plan) -> dict[Direction, Impairment]:
    """Return what ``plan`` requests of every direction."""
    result: dict[Direction, Impairment] = {}
    for link in links_of(plan):
        ab, ba = link.directions
        result[ab], result[ba] = link.ab, link.ba
    return result
