"""Which nodes a drill is about: roles, each with what it selects, drawn once a run with its seed.

    victim: {select: one}           one node by chance
    lost: {select: minority}        as many as can be lost with more than half left
    many: {select: majority}        the fewest that are more than half
    pair: {select: 2}               so many, by chance
    away: {select: one site}        all nodes of one site, drawn among the sites (also: `2 sites`)
    first: {select: n1}             a node; `dc1`: all nodes of a site; `[n1, dc2]`: all of these
    head: {select: leader}          the nodes that have a role of the system
    survivors: {select: rest}       all that no other role has

A node has one role at most. What is named outright is set aside first, then roles are drawn in
their order, and `rest` comes last; so no draw takes away what another role names. Where chance
leaves no room for a later role (a site of which a node is taken), all is drawn again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

Select = str | int | Sequence[str]
"""What a role selects, as a drill's file has it."""

_DRAWS = 200
_COUNTS = ("one", "minority", "majority")
_WORDS = (*_COUNTS, "rest", "one site")
_RESERVED = {*_COUNTS, "rest", "site", "node", "wan", "lan", "all"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SITES = re.compile(r"(one|[1-9]\d{0,3}) sites?")


def draw(
    spec: Mapping[str, Select],
    plan: Plan,
    system_roles: Mapping[str, Sequence[str]],
    seed: int,
) -> dict[str, tuple[str, ...]]:
    """Return the nodes of every role, in the order of the roles; nodes in that of the topology.

    ``system_roles``: the nodes that have a role of the system, by its name. The same arguments
    give the same nodes. Raises UserError for names that cannot be, unknown selections, and more
    nodes than there are.
    """
    draws = _Draw(plan, system_roles, dict(spec))
    fixed = draws.set_aside()
    for attempt in range(_DRAWS):
        # This text is a part of every seed: another one would draw other nodes.
        roles = draws.drawn(fixed, random.Random(f"wanlat cast {seed} {attempt}"))
        if isinstance(roles, dict):
            return roles
    raise UserError(
        f"There is no room for all roles in {plan.name}: {roles} "
        "Ask for fewer nodes, or use a topology with more."
    )


def is_pick(word: str) -> bool:
    """Whether a word selects by chance, or the rest: what only a role can say."""
    return word in _WORDS or bool(re.fullmatch(r"[1-9]\d*", word) or _SITES.fullmatch(word))


class _Draw:
    """Roles to be drawn: which are fixed, which are left to chance."""

    def __init__(
        self, plan: Plan, system_roles: Mapping[str, Sequence[str]], spec: dict[str, Select]
    ) -> None:
        self._plan = plan
        self._system_roles = system_roles
        self._spec = spec
        self._sites = {site.name: [node.name for node in site.nodes] for site in plan.sites}
        self._nodes = [node.name for node in plan.nodes]
        for name in spec:
            self._check_name(name)

    def set_aside(self) -> dict[str, tuple[str, ...]]:
        """Return the nodes of the roles that say outright which."""
        fixed: dict[str, tuple[str, ...]] = {}
        owner: dict[str, str] = {}
        for name, pick in self._spec.items():
            if self._is_by_chance(name, pick) or pick == "rest":
                continue
            words = [pick] if isinstance(pick, str) else list(pick)  # type: ignore[arg-type]
            wanted = {node for word in words for node in self._named(name, word)}
            for node in self._nodes:
                if node in wanted and owner.setdefault(node, name) != name:
                    raise UserError(
                        f"roles: {name} and {owner[node]} both have {node}, and a node has "
                        "one role at most. Take it out of one of them."
                    )
            fixed[name] = self._ordered(wanted)
        remainders = [name for name, pick in self._spec.items() if pick == "rest"]
        if len(remainders) > 1:
            raise UserError(
                f"roles: {listing(remainders)} all select the rest; there is only one rest. "
                "Say of the others how many they are."
            )
        return fixed

    def drawn(
        self, fixed: Mapping[str, tuple[str, ...]], chance: random.Random
    ) -> dict[str, tuple[str, ...]] | str:
        """Return all roles, or in words what there was too little of."""
        roles = dict(fixed)
        for name, pick in self._spec.items():
            if not self._is_by_chance(name, pick):
                continue
            free = self._free(roles)
            sites = _SITES.fullmatch(str(pick))
            if sites:
                count = 1 if sites[1] == "one" else int(sites[1])
                whole = [
                    nodes for nodes in self._sites.values() if nodes and free.issuperset(nodes)
                ]
                if count > len(whole):
                    return (
                        f"{name} is {show(pick)}, and no other role has nodes in "
                        f"{len(whole) or 'none'} of its {len(self._sites)} sites."
                    )
                roles[name] = self._ordered(
                    {node for nodes in _chosen(whole, count, chance) for node in nodes}
                )
                continue
            count = self._count(pick)
            if count > len(free):
                return (
                    f"{name} is {show(pick)}, that is {count}, with {len(free) or 'none'} of its "
                    f"{len(self._nodes)} nodes left."
                )
            some = [node for node in self._nodes if node in free]
            roles[name] = self._ordered(set(_chosen(some, count, chance)))
        for name, pick in self._spec.items():
            if pick == "rest":
                roles[name] = self._ordered(self._free(roles))
                if not roles[name]:
                    return f"{name} is the rest, and no node is left."
        return {name: roles[name] for name in self._spec}

    def _count(self, pick: Select) -> int:
        nodes = len(self._nodes)
        words = {"one": 1, "minority": (nodes - 1) // 2, "majority": nodes // 2 + 1}
        return words[str(pick)] if str(pick) in words else int(str(pick))

    def _is_by_chance(self, name: str, pick: Select) -> bool:
        if isinstance(pick, str):
            if pick == "minority" and self._count(pick) == 0:
                raise UserError(
                    f"roles: {name} is a minority, and of the {len(self._nodes)} nodes of "
                    f"{self._plan.name} none can be lost with more than half left."
                )
            number = re.fullmatch(r"[1-9]\d{0,5}", pick)
            return pick in _COUNTS or bool(number) or bool(_SITES.fullmatch(pick))
        if isinstance(pick, bool) or (isinstance(pick, int) and pick < 1):
            raise UserError(f"roles: {name} is {show(pick)}; a number of nodes is 1 or more.")
        if isinstance(pick, list | tuple) and not pick:
            raise UserError(f"roles: {name} is an empty list. {self._picks()}")
        if not isinstance(pick, int | list | tuple):
            raise UserError(f"roles: {name} is {show(pick)}. {self._picks()}")
        return isinstance(pick, int)

    def _named(self, name: str, word: object) -> Sequence[str]:
        if not isinstance(word, str):
            raise UserError(f"roles: {name} names {show(word)}, which is no text. {self._picks()}")
        prefix, dot, rest = word.partition(".")
        kind, plain = (prefix, rest) if dot and prefix in ("site", "node") else ("", word)
        meanings: dict[str, Sequence[str]] = {}
        if kind in ("", "node") and plain in self._nodes:
            meanings["node"] = [plain]
        if kind in ("", "site") and plain in self._sites:
            meanings["site"] = self._sites[plain]
        if not kind and word in self._system_roles:
            meanings["role"] = self._system_roles[word]
        if len({tuple(each) for each in meanings.values()}) > 1:
            raise UserError(
                f"roles: {name} is {show(word)}, which is {listing(meanings)} at once. Write "
                f"`node.{word}` or `site.{word}`, or name the nodes."
            )
        if not meanings:
            known = [*_WORDS, *self._sites, *self._nodes, *self._system_roles]
            raise UserError(
                f"roles: {name} is {show(word)}, which is nothing in {self._plan.name}"
                f"{did_you_mean(word, known)}. {self._picks()}"
            )
        (found, *_) = meanings.values()
        if not found:
            raise UserError(f"roles: {name} is {show(word)}, which stands for no node just now.")
        return found

    def _check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UserError(
                f"roles: {show(name)} is no name; one begins with a letter and has letters, "
                "digits, `-` and `_`."
            )
        if name in _RESERVED:
            raise UserError(f"roles: {show(name)} has a meaning of its own; choose another name.")
        for what, taken in (("node", self._nodes), ("site", self._sites)):
            if name in taken:
                raise UserError(
                    f"roles: {show(name)} is a {what} of {self._plan.name}; a role must "
                    "not have its name. Choose another name."
                )

    def _picks(self) -> str:
        also = (
            f"; a role of the system: {listing(self._system_roles)}" if self._system_roles else ""
        )
        return (
            f"`select` is {listing((*_WORDS, 'a number'), 'or')}; a site or a node or a list of "
            f"them: {listing([*self._sites, *self._nodes], at_most=20)}{also}."
        )

    def _free(self, roles: Mapping[str, Sequence[str]]) -> set[str]:
        return set(self._nodes).difference(*roles.values())

    def _ordered(self, nodes: set[str]) -> tuple[str, ...]:
        return tuple(node for node in self._nodes if node in nodes)


def _chosen(some: Sequence[object], count: int, chance: random.Random) -> list:  # type: ignore
    # Only random() is promised to give the same numbers in every Python.
    return sorted(some, key=lambda _: chance.random())[:count]
