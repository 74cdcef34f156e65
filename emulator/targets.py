"""Which directions of which links a change or a fault is about, named the way people name them.

    dc1:dc2           from site dc1 to site dc2
    dc1/dc2           both ways between them
    n1                node n1: its LAN link, both ways
    n1:dc1, dc1:n1    one way of it: out of the node, or into it
    dc1               site dc1: all its WAN links, both ways (also: dc1.wan)
    dc1.lan           the LAN links of all its nodes
    dc1,dc2/dc3,dc4   everything between two groups; with `:` only from the first to the second
    wan, lan, all     every WAN link, every LAN link, every link

A group may name nodes, where together they are all the nodes of their sites. Where a site and a
node have the same name, `site.NAME` and `node.NAME` tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wanlat.emulator.links import Direction, Link, lan_down, lan_up, wan
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

Target = str | Direction | Link | Iterable["Target"]
"""What may be named: a text as above, a direction, a link, or several of these."""

_ARROW = "->"  # as directions are printed; a shell would take it for a redirection


class Targets:
    """Turns names into the directions of a plan's links. Raises UserError for what is not there.

    Every method returns directions in the order in which they were asked for, each once.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sites = {site.name: site for site in plan.sites}
        self._nodes = {node.name: node for node in plan.nodes}
        self._wan = {
            direction: None
            for link in plan.wan_links
            for direction in (wan(link.a, link.b), wan(link.b, link.a))
        }

    def directions(self, target: Target) -> tuple[Direction, ...]:
        """Return what ``target`` names."""
        if isinstance(target, str):
            found = self._text(target)
        elif isinstance(target, Direction):
            found = (self._known(target),)
        elif isinstance(target, Link):
            found = tuple(self._known(each) for each in target.directions)
        else:
            found = _once(each for part in target for each in self.directions(part))
        if not found:
            raise UserError(
                f"The target {_shown(target)} names no link of {self._plan.name}. A site that is "
                "alone has no WAN link; the links of its nodes are `SITE.lan`."
            )
        return found

    def node(self, name: str) -> tuple[Direction, ...]:
        """Return a node's LAN link: out of it, into it."""
        node = self._plan.node(name)
        return lan_up(node.name, node.site), lan_down(node.name, node.site)

    def site(self, name: str) -> tuple[Direction, ...]:
        """Return all WAN links of a site, both ways."""
        others = [other for other in self._sites if other != self._plan.site(name).name]
        return self.between([name], others) if others else ()

    def inside(self, name: str) -> tuple[Direction, ...]:
        """Return the LAN links of all nodes of a site."""
        return _once(each for node in self._plan.site(name).nodes for each in self.node(node.name))

    def every(self, kind: str = "all") -> tuple[Direction, ...]:
        """Return every WAN link, every LAN link (``wan``, ``lan``) or every link (``all``)."""
        lan = _once(each for node in self._nodes for each in self.node(node))
        wide = tuple(self._wan)
        return {"wan": wide, "lan": lan, "all": (*wide, *lan)}[kind]

    def one_way(self, sources: Iterable[str], targets: Iterable[str]) -> tuple[Direction, ...]:
        """Return every WAN direction from a group of sites to another."""
        left, right = self._group(sources), self._group(targets)
        both = [name for name in left if name in right]
        if both:
            raise UserError(
                f"{listing(both)} cannot be on both sides: a partition runs between sites, and "
                "no link lies between the nodes of one site and themselves."
            )
        return tuple(wan(a, b) for a in left for b in right)

    def between(self, group: Iterable[str], other: Iterable[str]) -> tuple[Direction, ...]:
        """Return every WAN direction between two groups of sites, both ways."""
        left, right = list(group), list(other)
        return (*self.one_way(left, right), *self.one_way(right, left))

    def _text(self, text: str) -> tuple[Direction, ...]:
        plain = text.strip().replace(_ARROW, ":")
        for sign in (":", "/"):
            first, found, second = plain.partition(sign)
            if found:
                return self._pair(text, first.split(","), second.split(","), both=sign == "/")
        return _once(each for word in plain.split(",") for each in self._one(word))

    def _pair(
        self, text: str, first: list[str], second: list[str], *, both: bool
    ) -> tuple[Direction, ...]:
        if any(sign in word for word in second for sign in ":/"):
            raise UserError(f"The target {show(text)} has more than two ends. {_FORMS}")
        lan = self._leg(first[0], second[0]) if len(first) == len(second) == 1 else None
        if lan is not None:
            back = Direction(lan.kind, lan.target, lan.source)
            return (lan, back) if both else (lan,)
        return self.between(first, second) if both else self.one_way(first, second)

    def _leg(self, first: str, second: str) -> Direction | None:
        """Return the way between a node and its own site, if that is what two names are."""
        for node_word, site_word, make in ((first, second, lan_up), (second, first, lan_down)):
            kinds = {kind for kind, _ in self._meanings(site_word)}
            names = {name for kind, name in self._meanings(node_word) if kind == "node"}
            _, site_name = _prefix(site_word)
            if "site" in kinds and any(self._nodes[name].site == site_name for name in names):
                (name,) = names
                return make(name, site_name)
        return None

    def _one(self, word: str) -> tuple[Direction, ...]:
        name, dot, suffix = word.rpartition(".")
        _, site = _prefix(name)
        if dot and suffix in ("wan", "lan") and site in self._sites:
            return self.site(site) if suffix == "wan" else self.inside(site)
        meanings = list(self._meanings(word))
        if len(meanings) > 1:
            raise UserError(
                f"{self._plan.name} has a site and a node of the name {show(word)}; "
                f"write `site.{word}` or `node.{word}`."
            )
        if meanings:
            kind, name = meanings[0]
            return self.site(name) if kind == "site" else self.node(name)
        if word in ("wan", "lan", "all"):
            return self.every(word)
        raise self._unknown(word)

    def _meanings(self, word: str) -> Iterator[tuple[str, str]]:
        prefix, name = _prefix(word)
        if prefix in ("", "site") and name in self._sites:
            yield "site", name
        if prefix in ("", "node") and name in self._nodes:
            yield "node", name

    def _group(self, words: Iterable[str]) -> list[str]:
        """Return the sites that a group names, itself or by all their nodes."""
        sites: dict[str, None] = {}
        nodes: dict[str, set[str]] = {}
        for word in words:
            meanings = dict(self._meanings(word))
            if "site" in meanings:
                sites[meanings["site"]] = None
            elif "node" in meanings:
                name = meanings["node"]
                nodes.setdefault(self._nodes[name].site, set()).add(name)
            else:
                raise self._unknown(word)
        for site, named in nodes.items():
            rest = [node.name for node in self._sites[site].nodes if node.name not in named]
            if rest and site not in sites:
                raise UserError(
                    f"{listing(sorted(named))} shares the WAN links of site {site} with "
                    f"{listing(rest, at_most=5)}, so they cannot be told apart there. Name the "
                    f"site `{site}`, or the node alone for its own LAN link."
                )
            sites[site] = None
        return list(sites)

    def _known(self, direction: Direction) -> Direction:
        if direction.kind == "wan":
            known = direction in self._wan
        else:
            known = direction in self._lan_of(direction.source, direction.target)
        if not known:
            links = listing((str(each) for each in self._wan), at_most=20) or "no WAN link"
            raise UserError(f"There is no link {direction} in {self._plan.name}; it has {links}.")
        return direction

    def _lan_of(self, *names: str) -> tuple[Direction, ...]:
        return tuple(each for name in names if name in self._nodes for each in self.node(name))

    def _unknown(self, word: str) -> UserError:
        known = [*self._sites, *self._nodes]
        if not word:
            return UserError(f"A target has an empty name in it. {_FORMS}")
        return UserError(
            f"Topology {self._plan.name} has no site or node {show(word)}"
            f"{did_you_mean(word, known)}; its sites are {listing(self._sites, at_most=20)}, its "
            f"nodes {listing(self._nodes, at_most=20)}. {_FORMS}"
        )


_FORMS = (
    "A target is a node, a site, `A:B` for one direction, `A/B` for both, groups of these with "
    "commas, or `wan`, `lan`, `all`."
)


def _prefix(word: str) -> tuple[str, str]:
    prefix, dot, name = word.partition(".")
    return (prefix, name) if dot and prefix in ("site", "node") else ("", word)


def _once(directions: Iterable[Direction]) -> tuple[Direction, ...]:
    return tuple(dict.fromkeys(directions))


def _shown(target: Target) -> str:
    return show(target) if isinstance(target, str) else f"`{target}`"
