"""A topology with more nodes, or with fewer: the same sites, the same links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count, islice

from wanlat.topologies.errors import UserError
from wanlat.topologies.limits import MAX_NODES_PER_SITE
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing

_NUMBERED = re.compile(r"(.*?)([0-9]+)")


def with_nodes(topology: Topology, nodes: int) -> Topology:
    """The topology with so many nodes in all, as many in each site; the first sites get the rest.

    A node that stays keeps its name and its site, so that a client at `n3` stays where it is: of
    each site the first nodes stay. New ones are numbered on where nodes have numbers (`n1` to
    `n6`: the next is `n7`), and named after their site where they have none. UserError when a
    site would be left without a node.
    """
    sites = topology.sites
    if nodes < len(sites):
        raise UserError(
            f"nodes: {nodes} is fewer than topology {topology.name} has sites ({len(sites)}: "
            f"{listing(site.name for site in sites)}), and a site has at least one node. Give "
            f"{len(sites)} or more, or another topology."
        )
    if nodes > MAX_NODES_PER_SITE * len(sites):
        raise UserError(f"nodes: {nodes} is more than a site may have ({MAX_NODES_PER_SITE}).")
    each, rest = divmod(nodes, len(sites))
    wanted = [each + (place < rest) for place in range(len(sites))]
    kept = [site.node_names[:number] for site, number in zip(sites, wanted, strict=True)]
    taken = {name for site in sites for name in site.node_names}
    numbered = _numbered(taken)
    grown = []
    for site, stay, number in zip(sites, kept, wanted, strict=True):
        fresh = numbered if numbered is not None else _named_after(site.name, taken)
        names = (*stay, *islice(fresh, number - len(stay)))
        taken.update(names)
        grown.append(site.model_copy(update={"nodes": names}))
    changed: dict[str, object] = {"sites": [site.to_dict() for site in grown]}
    if topology.description and wanted != [len(site.node_names) for site in sites]:
        changed["description"] = (
            f"{topology.description} (as written; here with {nodes} node{'s' * (nodes > 1)})"
        )
    return Topology.model_validate(topology.to_dict() | changed)


def _numbered(taken: Sequence[str] | set[str]) -> Iterator[str] | None:
    """The names after these, where all are one word and a number."""
    parts = [_NUMBERED.fullmatch(name) for name in taken]
    words = {part[1] for part in parts if part is not None}
    if None in parts or len(words) != 1:
        return None
    highest = max(int(part[2]) for part in parts if part is not None)
    (word,) = words
    return (f"{word}{number}" for number in count(highest + 1))


def _named_after(site: str, taken: set[str]) -> Iterator[str]:
    return (name for number in count(1) if (name := f"{site}-{number}") not in taken)
