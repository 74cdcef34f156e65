"""What a change or a fault is about, named the way people name it: links, nodes, groups of sites.

    dc1:dc2           from site dc1 to site dc2
    dc1/dc2           both ways between them
    n1                node n1: its LAN link, both ways
    n1:dc1, dc1:n1    one way of it: out of the node, or into it
    dc1               site dc1: all its WAN links, both ways (also: dc1.wan)
    dc1.lan           the LAN links of all its nodes
    dc1,dc2/dc3,dc4   everything between two groups; with `:` only from the first to the second
    wan, lan, all     every WAN link, every LAN link, every link

A group may name nodes, where together they are all the nodes of their sites. Where a site and a
node have the same name, `site.NAME` and `node.NAME` distinguish them.

In a drill, a role stands for its nodes; several that are all the nodes of one site are the site:
their traffic with each other goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from wanlat.emulator.links import Direction, lan_down, lan_up, wan
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

Target = str | Direction | Iterable["Target"]
"""What may be named: a text as above, a direction, or several of these."""

Roles = Mapping[str, Sequence[str]]
"""The nodes of each role of a drill."""

_ENDS = re.compile(r"\s*(->|→|:|/)\s*")  # the first as directions are printed
_SETS = ("wan", "lan", "all")
_PICKS = re.compile(r"one|minority|majority|rest|[1-9]\d{0,5}|(one|[1-9]\d{0,3}) sites?")
_OWN_SITES = (
    "; or give each of its nodes a site of its own in a topology file, with `rtt: 0ms` between "
    "them: then there is a link between every two."
)
_FORMS = (
    "A target is a node, a site, `A:B` for one direction, `A/B` for both, groups of these with "
    "commas, or `wan`, `lan`, `all`."
)


def is_pick(word: str) -> bool:
    """Whether a word selects nodes by chance, or the rest: what only a role can do."""
    return bool(_PICKS.fullmatch(word))


class Targets:
    """Turns names into what they mean on a plan. Raises UserError for what is not there.

    Every method returns its matches in the order of the target, each once.
    """

    def __init__(self, plan: Plan, roles: Roles | None = None) -> None:
        self._plan = plan
        self._roles = dict(roles or {})
        self._sites = {site.name: [node.name for node in site.nodes] for site in plan.sites}
        self._site_of = {node.name: node.site for node in plan.nodes}
        wide = [(link.a, link.b) for link in plan.wan_links]
        self._wan = dict.fromkeys(wan(*ends) for pair in wide for ends in (pair, pair[::-1]))
        self._lan = dict.fromkeys(
            direction for node in self._site_of for direction in self._of_node(node)
        )

    def directions(self, target: Target) -> tuple[Direction, ...]:
        """Return the directions of links that ``target`` names."""
        if isinstance(target, str):
            directions = self._text(target)
        elif isinstance(target, Direction):
            directions = [self._known(target)]
        else:
            directions = [direction for part in target for direction in self.directions(part)]
        if not directions:
            raise UserError(
                f"The target {show(target) if isinstance(target, str) else f'`{target}`'} names no "
                f"link of {self._plan.name}. A site that is alone has no WAN link; the links of "
                "its nodes are `SITE.lan`."
            )
        return tuple(dict.fromkeys(directions))

    def nodes(self, target: object) -> tuple[str, ...]:
        """Return the nodes that a text or a list of texts names; a site stands for all of its."""
        result: dict[str, None] = {}
        for word in (part for text in texts(target) for part in _words(text)):
            nodes, site = self._meanings(word)
            result.update(dict.fromkeys(nodes or self._sites.get(site, [])))
        return tuple(result)

    def nodes_of(self, directions: Iterable[Direction]) -> tuple[str, ...]:
        """Return the nodes with both ways of their LAN link in ``directions``."""
        given = set(directions)
        return tuple(node for node in self._site_of if given.issuperset(self._of_node(node)))

    def groups(self, target: object) -> list[list[str]]:
        """Return the sites of each of two groups or more, of which none is in two."""
        if isinstance(target, str) or not isinstance(target, Sequence):
            raise UserError(f"{show(target)} is not a list of groups, such as `[minority, rest]`")
        groups = [
            self._group([word for text in texts(group) for word in _words(text)])
            for group in target
        ]
        if len(groups) < 2:
            raise UserError("it needs two groups or more; `rest` is a role with `select: rest`")
        self._check_apart(groups)
        return groups

    def shown(self, target: object) -> str:
        """Return what ``target`` names for people: ``n1, n3``, ``dc1 → dc2``; roles as nodes."""
        parts = []
        for text in texts(target):
            first, *rest = _ENDS.split(text.strip())
            parts.append(self._named(first))
            for sign, end in zip(rest[::2], rest[1::2], strict=True):
                parts[-1] += f"{' ↔ ' if sign == '/' else ' → '}{self._named(end)}"
        return ", ".join(parts)

    # -- texts --------------------------------------------------------------------------------

    def _text(self, text: str) -> list[Direction]:
        ends = _ENDS.split(text.strip())
        if len(ends) > 3:
            raise UserError(f"The target {show(text)} has more than two ends. {_FORMS}")
        if len(ends) == 1:
            return [direction for word in _words(text) for direction in self._alone(word)]
        first, sign, second = _words(ends[0]), ends[1], _words(ends[2])
        one_way = self._leg(first, second) or [
            direction.opposite for direction in self._leg(second, first)
        ]
        if not one_way:
            groups = [self._group(first), self._group(second)]
            self._check_apart(groups)
            one_way = [wan(a, b) for a in groups[0] for b in groups[1]]
        return one_way + [direction.opposite for direction in one_way] if sign == "/" else one_way

    def _alone(self, word: str) -> list[Direction]:
        """Return what one word names that is not an end of a link."""
        name, dot, suffix = word.rpartition(".")
        if dot and suffix in ("wan", "lan"):
            site = self._meanings(name)[1]
            if not site:
                raise self._no_site(name)
            inside = [direction for node in self._sites[site] for direction in self._of_node(node)]
            return self._of_site(site) if suffix == "wan" else inside
        if word in _SETS and word not in self._sites and word not in self._site_of:
            sets = {"wan": [*self._wan], "lan": [*self._lan], "all": [*self._wan, *self._lan]}
            return sets[word]
        nodes, site = self._meanings(word)
        if nodes and site and word not in self._roles:
            raise UserError(
                f"{self._plan.name} has a site and a node of the name {show(word)}; "
                f"write `site.{word}` or `node.{word}`."
            )
        if site and len(nodes) != 1:
            return self._of_site(site)
        return [direction for node in nodes for direction in self._of_node(node)]

    def _leg(self, first: list[str], second: list[str]) -> list[Direction]:
        """Return the way from a node to its own site, if that is what two ends are."""
        if len(first) == len(second) == 1:
            nodes, site = self._meanings(first[0])[0], self._meanings(second[0])[1]
            if len(nodes) == 1 and site == self._site_of[nodes[0]]:
                return [lan_up(nodes[0], site)]
        return []

    def _group(self, words: Sequence[str]) -> list[str]:
        """Return the sites that a group names, itself or by all their nodes."""
        sites: dict[str, None] = {}
        nodes: dict[str, set[str]] = {}
        for word in words:
            named, site = self._meanings(word)
            if site:
                sites[site] = None
            for node in () if site else named:
                nodes.setdefault(self._site_of[node], set()).add(node)
        for site, some in nodes.items():
            rest = [node for node in self._sites[site] if node not in some]
            if rest and site not in sites:
                raise UserError(
                    f"{listing(sorted(some))} shares the WAN links of site {site} with "
                    f"{listing(rest, at_most=5)}, so they cannot be distinguished there. Name the "
                    f"site `{site}`, or the node alone for its own LAN link{_OWN_SITES}"
                )
            sites[site] = None
        return [site for site in self._sites if site in sites]

    def _check_apart(self, groups: Sequence[Sequence[str]]) -> None:
        first: dict[str, int] = {}
        for number, site in ((n, site) for n, group in enumerate(groups, 1) for site in group):
            if first.setdefault(site, number) != number:
                raise UserError(
                    f"site {show(site)} is in group {first[site]} and in group {number}, and it "
                    "cannot be on both sides: no link lies between the nodes of one site"
                    f"{_OWN_SITES}"
                )

    # -- words --------------------------------------------------------------------------------

    def _meanings(self, word: str) -> tuple[list[str], str]:
        """Return the nodes and the site that a word may mean; one of them may be none."""
        prefix, dot, name = word.partition(".")
        if not dot or prefix not in ("site", "node"):
            prefix, name = "", word
        if name in self._roles:
            nodes = list(self._roles[name])
            whole = [site for site, all_ in self._sites.items() if set(all_) == set(nodes)]
            site = whole[0] if whole else ""
            if prefix == "site" and not whole:
                raise self._no_site(name)
        else:
            nodes = [name] if name in self._site_of else []
            site = name if name in self._sites else ""
            if not nodes and not site:
                raise self._unknown(word)
        nodes, site = nodes if prefix != "site" else [], site if prefix != "node" else ""
        if not nodes and not site and name not in self._roles:
            raise self._unknown(word)
        return nodes, site

    def _named(self, end: str) -> str:
        words = (word.removeprefix("node.").removeprefix("site.") for word in _words(end))
        return ", ".join(", ".join(self._roles.get(word, [word])) for word in words)

    def _of_node(self, name: str) -> list[Direction]:
        return [lan_up(name, self._site_of[name]), lan_down(name, self._site_of[name])]

    def _of_site(self, name: str) -> list[Direction]:
        out = [direction for direction in self._wan if direction.source == name]
        return out + [direction.opposite for direction in out]

    def _known(self, direction: Direction) -> Direction:
        if direction not in self._wan and direction not in self._lan:
            links = (
                listing((str(direction) for direction in self._wan), at_most=20) or "no WAN link"
            )
            raise UserError(f"There is no link {direction} in {self._plan.name}; it has {links}.")
        return direction

    def _no_site(self, name: str) -> UserError:
        members = listing(self._roles.get(name, ["a node"]))
        return UserError(f"{show(name)} is {members}, which is not one whole site")

    def _unknown(self, word: str) -> UserError:
        if not word:
            return UserError(f"A target has an empty name in it. {_FORMS}")
        roles = f", its roles {listing(self._roles, at_most=20)}" if self._roles else ""
        known = [*self._roles, *self._sites, *self._site_of]
        pick = ""
        if is_pick(word):
            pick = (
                f" It selects nodes, and several faults may mean the same ones: give them a role, "
                f"`roles: {{victim: {{select: {word}}}}}`, and name it here."
            )
        return UserError(
            f"there is no site or node {show(word)}{did_you_mean(word, known)} in "
            f"{self._plan.name}; its sites are {listing(self._sites, at_most=20)}, its nodes "
            f"{listing(self._site_of, at_most=20)}{roles}.{pick} {_FORMS}"
        )


def texts(target: object) -> list[str]:
    """Return the texts of a target that is one or a list of them. Raises UserError."""
    listed = [target] if isinstance(target, str) else target
    if (
        not isinstance(listed, Sequence)
        or not listed
        or not all(isinstance(text, str) and text.strip() for text in listed)
    ):
        raise UserError(
            f"{show(target)} is no target; name a node, a site, a role, or several in a list"
        )
    return list(listed)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]
