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
from typing import TypeVar

from wanlat.emulator.targets import Targets, is_pick
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

Select = str | int | Sequence[str]
"""What a role selects, as a drill's file has it."""

Nodes = tuple[str, ...]
T = TypeVar("T")

_DRAWS = 200
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS = ("one", "minority", "majority", "rest")
_RESERVED = {*_WORDS, "site", "node", "wan", "lan", "all"}
_PICKS = "`select` is one, minority, majority, rest, one site, a number, or names"


class _NoRoom(UserError):
    """Chance left too few nodes; another draw may leave more."""


def draw(
    spec: Mapping[str, Select], plan: Plan, system_roles: Mapping[str, Sequence[str]], seed: int
) -> dict[str, Nodes]:
    """Return the nodes of every role, in the order of the roles; nodes in that of the topology.

    ``system_roles``: the nodes that have a role of the system, by its name. The same arguments
    give the same nodes. Raises UserError for names that cannot be, unknown selections, and more
    nodes than there are.
    """
    _check_names(spec, plan)
    fixed = _set_aside(spec, plan, Targets(plan, system_roles))
    for attempt in range(_DRAWS):
        try:
            # This text is a part of every seed: another one would draw other nodes.
            return _drawn(spec, plan, fixed, random.Random(f"wanlat cast {seed} {attempt}"))
        except _NoRoom as error:
            why = error
    raise UserError(
        f"There is no room for all roles in {plan.name}: {why} "
        "Ask for fewer nodes, or use a topology with more."
    )


def _check_names(spec: Mapping[str, Select], plan: Plan) -> None:
    taken = {site.name: "a site" for site in plan.sites} | {
        node.name: "a node" for node in plan.nodes
    }
    for name in spec:
        if not _NAME.fullmatch(name):
            raise UserError(
                f"roles: {show(name)} is no name; one begins with a letter and has letters, "
                "digits, `-` and `_`."
            )
        if name in _RESERVED or name in taken:
            what = f"is {taken[name]} of {plan.name}" if name in taken else "has another meaning"
            raise UserError(f"roles: {show(name)} {what}; choose another name.")
    rests = [name for name, pick in spec.items() if pick == "rest"]
    if len(rests) > 1:
        raise UserError(
            f"roles: {listing(rests)} all select the rest; there is only one rest. Say of the "
            "others how many they are."
        )


def _set_aside(spec: Mapping[str, Select], plan: Plan, targets: Targets) -> dict[str, Nodes]:
    """Return the nodes of the roles that name them outright."""
    fixed: dict[str, Nodes] = {}
    owner: dict[str, str] = {}
    for name, pick in spec.items():
        if is_pick(str(pick)) and isinstance(pick, str | int) and not isinstance(pick, bool):
            if pick == "minority" and len(plan.nodes) < 3:
                raise UserError(
                    f"roles: {name} is a minority, and of the {len(plan.nodes)} nodes of "
                    f"{plan.name} none can be lost with more than half left."
                )
            continue
        try:
            fixed[name] = _ordered(plan, targets.nodes(pick))
        except UserError as error:
            near = did_you_mean(str(pick), _WORDS)
            raise UserError(f"roles: {name} is {show(pick)}{near}: {error} {_PICKS}.") from None
        if not fixed[name]:
            raise UserError(f"roles: {name} is {show(pick)}, which stands for no node just now.")
        for node in fixed[name]:
            if owner.setdefault(node, name) != name:
                raise UserError(
                    f"roles: {name} and {owner[node]} both have {node}, and a node has one role "
                    "at most. Take it out of one of them."
                )
    return fixed


def _drawn(
    spec: Mapping[str, Select], plan: Plan, fixed: Mapping[str, Nodes], chance: random.Random
) -> dict[str, Nodes]:
    """Return all roles. Raises _NoRoom when one finds too few nodes."""
    roles = dict(fixed)
    names = [node.name for node in plan.nodes]
    for name, pick in sorted(spec.items(), key=lambda item: item[1] == "rest"):
        if name in fixed:
            continue
        free = set(names).difference(*roles.values())
        by_site = str(pick).endswith(("site", "sites"))
        units = [tuple(node.name for node in site.nodes) for site in plan.sites]
        if not by_site:
            units = [(node,) for node in names]
        left = [unit for unit in units if unit and free.issuperset(unit)]
        count = len(left) if pick == "rest" else _count(str(pick), len(names))
        if count > len(left) or not count:
            raise _NoRoom(
                f"{name} is {show(pick)}, and {len(left) or 'none'} of the {len(units)} "
                f"{'sites have' if by_site else 'nodes have'} no other role."
            )
        chosen = _chosen(left, count, chance)
        roles[name] = _ordered(plan, [node for unit in chosen for node in unit])
    return {name: roles[name] for name in spec}


def _count(pick: str, nodes: int) -> int:
    words = {"one": 1, "minority": (nodes - 1) // 2, "majority": nodes // 2 + 1}
    first = pick.split(maxsplit=1)[0]
    return words[first] if first in words else int(first)


def _ordered(plan: Plan, nodes: Sequence[str]) -> Nodes:
    return tuple(node.name for node in plan.nodes if node.name in nodes)


def _chosen(pools: Sequence[T], count: int, chance: random.Random) -> list[T]:
    # Only random() is promised to give the same numbers in every Python.
    return sorted(pools, key=lambda _: chance.random())[:count]
