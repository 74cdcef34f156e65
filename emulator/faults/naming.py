"""Which links a fault is about: targets as `emulator.targets` has them, and roles.

A role stands for its nodes. Alone, it is the LAN links of all of them; but several
that are all the nodes of one site are the site, that is its WAN links: what they say to each other
goes on. (`node.NAME` and `site.NAME` say which is meant.) At an end of `A:B` or `A/B`, or as a
group of a partition, it is a group of nodes, which must be all the nodes of their sites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.roles import is_pick
from wanlat.emulator.links import Direction
from wanlat.emulator.targets import Targets
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

_ALL = ("wan", "lan", "all")
_ENDS = re.compile(r"\s*(->|→|:|/)\s*")
_ONE_WAY, _BOTH_WAYS = " → ", " ↔ "


@dataclass(frozen=True)
class Links:
    """The directions of links that a target names, and the nodes where it names nodes."""

    subject: str
    directions: tuple[Direction, ...]
    nodes: tuple[str, ...] = ()


def links(kind: str, target: object, plan: Plan, roles: Roles) -> Links:
    """Return what a target (a text, or a list of several) names. Raises UserError."""
    parts = [_one(kind, text, plan, roles) for text in texts(kind, target)]
    return Links(
        ", ".join(part.subject for part in parts),
        tuple(dict.fromkeys(each for part in parts for each in part.directions)),
        tuple(dict.fromkeys(node for part in parts for node in part.nodes)),
    )


def groups(kind: str, target: object, plan: Plan, roles: Roles) -> list[list[str]]:
    """Return the sites of each group that a target names. Raises UserError.

    A group is a text (`dc1,dc2`, `majority`) or a list of texts.
    """
    if isinstance(target, str) or not isinstance(target, Sequence):
        raise _said(kind, f"{show(target)} is not a list of groups, such as `[minority, rest]`")
    found = [_sites(kind, texts(kind, group), plan, roles) for group in target]
    if len(found) < 2:
        raise _said(kind, "it needs two groups or more; the others are a role with `select: rest`")
    seen: dict[str, int] = {}
    for number, group in enumerate(found, start=1):
        for site in group:
            if site in seen:
                raise _said(
                    kind,
                    f"site {show(site)} is in group {seen[site]} and in group {number}: a "
                    "partition runs between sites, since no link lies between the nodes of one",
                )
            seen[site] = number
    return found


def nodes(kind: str, target: object, plan: Plan, roles: Roles) -> tuple[str, ...]:
    """Return the nodes that a target names: nodes, roles, or all of a site. Raises UserError."""
    sites = {site.name: [node.name for node in site.nodes] for site in plan.sites}
    known = [node.name for node in plan.nodes]
    named: dict[str, None] = {}
    for text in texts(kind, target):
        for word in _words(text):
            prefix, name = _prefix(word, roles)
            if name in roles:
                named.update(dict.fromkeys(roles[name]))
            elif name in known and prefix != "site":
                named[name] = None
            elif name in sites and prefix != "node":
                named.update(dict.fromkeys(sites[name]))
            else:
                raise _unknown(kind, word, plan, roles)
    return tuple(named)


def texts(kind: str, target: object) -> list[str]:
    """Return the texts of a target that is one or a list of them. Raises UserError."""
    found = [target] if isinstance(target, str) else target
    if (
        not isinstance(found, Sequence)
        or not found
        or not all(isinstance(text, str) and text.strip() for text in found)
    ):
        raise _said(
            kind, f"{show(target)} is no target; name a node, a site, a role, or several in a list"
        )
    return list(found)


def _one(kind: str, text: str, plan: Plan, roles: Roles) -> Links:
    targets = Targets(plan)
    ends = _ENDS.split(text.strip())
    if len(ends) > 1:
        if len(ends) > 3:
            raise _said(kind, f"the target {show(text)} has more than two ends")
        first, sign, second = ends
        left, right = (_end(kind, side, plan, roles) for side in (first, second))
        arrow, sign = (_BOTH_WAYS, "/") if sign == "/" else (_ONE_WAY, ":")
        try:
            directions = targets.directions(f"{','.join(left)}{sign}{','.join(right)}")
        except UserError as error:
            raise _said(kind, str(error)) from None
        return Links(f"{_shown(left)}{arrow}{_shown(right)}", directions)
    words = [each for word in _words(text) for each in _alone(kind, word, plan, roles)]
    try:
        directions = targets.directions(words)
    except UserError as error:
        raise _said(kind, str(error)) from None
    names = {node.name for node in plan.nodes} - {site.name for site in plan.sites}
    hit = [
        bare
        for word in words
        if (bare := word.removeprefix("node.")) in names or word.startswith("node.")
    ]
    return Links(_shown(words), directions, tuple(dict.fromkeys(hit)))


def _end(kind: str, side: str, plan: Plan, roles: Roles) -> list[str]:
    """Return one end of a link as nodes and sites."""
    result: list[str] = []
    for word in _words(side):
        _, name = _prefix(word, roles)
        if name in roles:
            result += [f"node.{node}" for node in roles[name]]
        else:
            _check_known(kind, word, plan, roles)
            result.append(word)
    return result


def _alone(kind: str, word: str, plan: Plan, roles: Roles) -> list[str]:
    """Return a word that stands for itself, in words that `wanlat.emulator.targets` knows."""
    prefix, name = _prefix(word, roles)
    bare, dot, suffix = name.rpartition(".")
    if dot and bare in roles and suffix in ("lan", "wan"):
        return [f"{_whole_site(kind, bare, plan, roles)}.{suffix}"]
    if name not in roles:
        _check_known(kind, word, plan, roles)
        return [word]
    members = [f"node.{node}" for node in roles[name]]
    site = _site_of(roles[name], plan)
    if prefix == "site":
        return [f"site.{_whole_site(kind, name, plan, roles)}"]
    if site is not None and len(members) > 1 and prefix != "node":
        return [f"site.{site}"]
    return members


def _whole_site(kind: str, name: str, plan: Plan, roles: Roles) -> str:
    site = _site_of(roles[name], plan)
    if site is None:
        raise _said(
            kind, f"role {show(name)} is {listing(roles[name])}, which is not one whole site"
        )
    return site


def _site_of(members: Sequence[str], plan: Plan) -> str | None:
    """Return the site of which these are all the nodes."""
    for site in plan.sites:
        if {node.name for node in site.nodes} == set(members):
            return site.name
    return None


def _sites(kind: str, group: Iterable[str], plan: Plan, roles: Roles) -> list[str]:
    """Return the sites of a group that names sites, or all the nodes of sites."""
    members = nodes(kind, list(group), plan, roles)
    found: list[str] = []
    for site in plan.sites:
        inside = [node.name for node in site.nodes if node.name in members]
        rest = [node.name for node in site.nodes if node.name not in members]
        if inside and rest:
            raise _said(
                kind,
                f"{listing(inside)} shares the WAN links of site {site.name} with "
                f"{listing(rest, at_most=5)}, so a partition cannot tell them apart. Put all "
                f"nodes of {site.name} into one group, use a topology with one node a site, or "
                "take `blackhole` for a single node",
            )
        if inside:
            found.append(site.name)
    return found


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _prefix(word: str, roles: Roles) -> tuple[str, str]:
    """Return `site` or `node` and what they precede."""
    if word in roles:
        return "", word
    prefix, dot, name = word.partition(".")
    return (prefix, name) if dot and prefix in ("site", "node") else ("", word)


def _check_known(kind: str, word: str, plan: Plan, roles: Roles) -> None:
    _, name = _prefix(word, roles)
    known = {site.name for site in plan.sites} | {node.name for node in plan.nodes}
    bare, dot, suffix = name.rpartition(".")
    if dot and suffix in ("wan", "lan") and bare in known:
        return
    if name not in known and name not in _ALL:
        raise _unknown(kind, word, plan, roles)


def _unknown(kind: str, word: str, plan: Plan, roles: Roles) -> UserError:
    sites, members = [each.name for each in plan.sites], [each.name for each in plan.nodes]
    known = [*roles, *sites, *members]
    also = f"; the roles are {listing(roles, at_most=20)}" if roles else ""
    if is_pick(word):
        return _said(
            kind,
            f"{show(word)} selects nodes, and several faults may mean the same ones; give them a "
            f"role, `roles: {{victim: {{select: {word}}}}}`, and name it here{also}",
        )
    return _said(
        kind,
        f"there is no {show(word)}{did_you_mean(word, known)}; topology {plan.name} has the sites "
        f"{listing(sites, at_most=20)} and the nodes {listing(members, at_most=20)}{also}",
    )


def _said(kind: str, what: str) -> UserError:
    return UserError(f"The fault {show(kind)}: {what.removesuffix('.')}.")


def _shown(words: Iterable[str]) -> str:
    return ", ".join(word.removeprefix("node.").removeprefix("site.") for word in words)
