"""A topology with other delays between its sites, or with another number of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, islice

from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Mistake, path_text
from wanlat.topologies.limits import MAX_NODES_PER_SITE
from wanlat.topologies.load import TopologyError
from wanlat.topologies.model import Topology
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import listing
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_tree import Document

_NUMBERED = re.compile(r"(.*?)([0-9]+)")


def override(
    topology: Topology, rtt: Duration | None = None, jitter: Duration | None = None
) -> Topology:
    """The topology with every link between sites set to this rtt and this jitter.

    None leaves what the file has. A direction that is given alone gets half of each. Links inside
    a site are left alone. A jitter keeps the shape that the file gives it, and 0 has none.
    TopologyError if a jitter would be too large for its rtt.
    """
    values = topology.to_dict()
    links = values["links"]
    options = {"rtt": rtt, "jitter": jitter}
    given = {key: value for key, value in options.items() if value is not None}
    for link in [*links["pairs"], *([links["default"]] if "default" in links else [])]:
        for key, whole in given.items():
            if "from" in link:
                link["delay" if key == "rtt" else key] = Duration(whole.ns // 2)
            else:
                link[key] = whole
        if jitter is not None and not link["jitter"].ns:
            for shape in ("distribution", "table"):
                link.pop(shape, None)
    made, findings = checked(Document(values), Topology)
    if made is None or findings:
        what = " and ".join(f"{key} {value}" for key, value in given.items())
        source = f"topology {topology.name} with {what}"
        raise TopologyError.of_mistakes(
            Mistake(source, None, None, path_text(finding.path), finding.text)
            for finding in findings
        )
    return made


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
    taken = {name for site in sites for name in site.node_names}
    numbered = _numbered(taken)
    grown = []
    for place, site in enumerate(sites):
        wanted = nodes // len(sites) + (place < nodes % len(sites))
        named = (name for n in count(1) if (name := f"{site.name}-{n}") not in taken)
        stay = site.node_names[:wanted]
        names = [*stay, *islice(numbered or named, wanted - len(stay))]
        taken.update(names)
        grown.append(site.to_dict() | {"nodes": names})
    changed: dict[str, object] = {"sites": grown}
    before = [len(site.node_names) for site in sites]
    if topology.description and before != [len(site["nodes"]) for site in grown]:
        changed["description"] = (
            f"{topology.description} (as written; here with {nodes} node{'s' * (nodes > 1)})"
        )
    return Topology.model_validate(topology.to_dict() | changed)


def _numbered(taken: set[str]) -> Iterator[str] | None:
    """The names after these, where all are one word and a number."""
    parts = [_NUMBERED.fullmatch(name) for name in taken]
    words = {part[1] for part in parts if part is not None}
    if None in parts or len(words) != 1:
        return None
    highest = max(int(part[2]) for part in parts if part is not None)
    (word,) = words
    return (f"{word}{number}" for number in count(highest + 1))
