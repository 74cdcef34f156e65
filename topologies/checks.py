"""What must hold in a topology, besides the types of its fields."""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction as Exact
from itertools import combinations
from typing import Any

from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.limits import (
    MAX_LINK_RTT_NS,
    MAX_NODES,
    MAX_NODES_PER_SITE,
    MAX_SITES,
    MIN_QUEUE_BYTES,
    NAME_PATTERN,
)
from wanlat.topologies.shapes import extent
from wanlat.topologies.units import LARGEST_COUNT, Duration
from wanlat.topologies.wording import did_you_mean, listing, short, show

_MOST_NAMED = 50
Direction = tuple[str, str]


def link(values: Mapping[str, Any]) -> list[Finding]:
    """Jitter and its shape against rtt or delay, queue against rate, of a link or direction.

    `values` are the fields of a model, by name and of its types; those that are None may lack. Loss
    in bursts is checked where it is a mapping: a model of it has been.
    """
    return list(_link(values))


def bursts(values: Mapping[str, Any]) -> list[Finding]:
    """The states of loss in bursts: both are entered, and the bad one is the worse."""
    findings = []
    for key, state in (("p", "never enters the bad state"), ("r", "never leaves the bad state")):
        if not values[key].value:
            instead = "; without bursts, write `loss: FRACTION`" if key == "p" else ""
            findings.append(Finding((key,), f"`0%` {state}; more than `0%`{instead}"))
    if values["h"] > values["k"]:
        text = (
            f"the bad state would deliver more ({show(str(values['h']))}) than the good one"
            f" ({show(str(values['k']))}); h and k are what is delivered, where tc wants 1-h and"
            " 1-k"
        )
        findings.append(Finding(("h",), text))
    return findings


def _link(values: Mapping[str, Any]) -> Iterator[Finding]:
    base = "rtt" if "rtt" in values else "delay"
    length: Duration = values[base]
    limit = Duration(MAX_LINK_RTT_NS if base == "rtt" else MAX_LINK_RTT_NS // 2)
    if length > limit:
        text = f"{show(str(length))} is too long; a link has a {base} of at most"
        yield Finding((base,), f"{text} {show(str(limit))}")
    yield from _jitter(values, base, length)
    if not isinstance(values.get("reorder"), bool | None) and not length.ns:
        text = f"a packet overtakes those on their way, and the {base} here is 0"
        yield Finding(("reorder",), f"{text}; give a longer one, or remove `reorder`", at_key=True)
    if isinstance(values.get("loss"), dict):
        yield from (finding.under(("loss",)) for finding in bursts(values["loss"]))
    if (queue := values.get("queue")) is None:
        return
    if values.get("rate") is None:
        text = "the queue holds what waits for the rate, so it needs a `rate` beside it"
        yield Finding(("queue",), text, at_key=True)
    if queue.bytes < MIN_QUEUE_BYTES:
        text = f"{show(str(queue))} holds no full packet; at least {MIN_QUEUE_BYTES} bytes"
        yield Finding(("queue",), text)


def _jitter(values: Mapping[str, Any], base: str, length: Duration) -> Iterator[Finding]:
    """What describes the jitter needs one, a table its distribution; and a delay is left."""
    jitter, distribution, table = (values.get(k) for k in ("jitter", "distribution", "table"))
    has_jitter = bool(jitter and jitter.ns)
    for key in () if has_jitter else ("distribution", "table"):
        if values.get(key) is not None:
            text = f"`{key}` says how the jitter is drawn, and there is no jitter"
            yield Finding((key,), f"{text}; give a `jitter`, or remove it", at_key=True)
    if distribution == "table" and table is None:
        text = "`table` needs a `table` beside it: a file of samples, or a list of numbers"
        yield Finding(("distribution",), text)
    elif table is not None and distribution != "table":
        text = "`table` is the shape of `distribution: table`; write that, or remove it"
        yield Finding(("table",), text, at_key=True)
    elif jitter and has_jitter:
        lowest, _ = extent(distribution or "uniform", () if table is None else table.quantiles)
        # Exact, for the limit that is reported must be one that is accepted.
        most = Duration(min(int(length.ns / Exact(-lowest)), LARGEST_COUNT))
        if jitter > most:
            text = f"{show(str(jitter))} is too large for the {base} {show(str(length))}"
            if distribution not in (None, "uniform"):
                smallest = f"{-lowest:.3g} × jitter below it"
                text += f": the smallest draw of {show(distribution)} is {smallest}"
            text += f", so delays would be negative; at most {show(str(most))}"
            yield Finding(("jitter",), text)


def topology(raw: Any) -> list[Finding]:
    """Every check across a topology file. Parts of it may have the wrong type.

    Such parts are passed over here: the model reports them.
    """
    sites = [_mapping(site) for site in _list(_mapping(raw).get("sites"))]
    names = dict.fromkeys(site["name"] for site in sites if isinstance(site.get("name"), str))
    links = _mapping(raw).get("links", {})
    findings = list(_sites(sites))
    return [*findings, *_links(links, list(names))] if isinstance(links, dict) else findings


def _sites(sites: list[dict[Any, Any]]) -> Iterator[Finding]:
    seen_sites: dict[str, Path] = {}
    seen_nodes: dict[str, Path] = {}
    given: list[tuple[str, Path]] = []
    total = 0
    for index, site in enumerate(sites):
        name, nodes, here = site.get("name"), site.get("nodes"), ("sites", index)
        if isinstance(name, str):
            if name in seen_sites:
                text = f"site {show(name)} is there already; every site has a name of its own"
                yield Finding((*here, "name"), text, see=seen_sites[name])
            elif type(nodes) is int and 0 < nodes <= MAX_NODES_PER_SITE:
                total += nodes
                made = (f"{name}-{number}" for number in range(1, nodes + 1))
                seen_nodes |= dict.fromkeys(made, (*here, "nodes"))
                last = f"{name}-{nodes}"
                if re.match(NAME_PATTERN, name) and not re.match(NAME_PATTERN, last):
                    text = f"this makes names up to {show(last)}, longer than 32 characters"
                    yield Finding((*here, "nodes"), f"{text}; shorten the name of the site")
            seen_sites.setdefault(name, (*here, "name"))
        given += [(node, (*here, "nodes", at)) for at, node in enumerate(_list(nodes))]
    if total + len(given) > MAX_NODES:
        text = f"{total + len(given)} nodes in all; at most {MAX_NODES}"
        yield Finding(("sites",), text)
    for node, path in given:
        if isinstance(node, str) and seen_nodes.setdefault(node, path) != path:
            text = f"node {show(node)} is there already; node names are unique across all sites"
            yield Finding(path, text, see=seen_nodes[node])


def _links(links: dict[Any, Any], sites: list[str]) -> Iterator[Finding]:
    given: dict[Direction, Path] = {}
    for index, entry in enumerate(_list(links.get("pairs"))):
        yield from _pair(_mapping(entry), ("links", "pairs", index), sites, given)
    if links.get("default") is not None or len(sites) > MAX_SITES:
        return
    missing = []
    for a, b in combinations(sites, 2):
        lacking = [direction for direction in ((a, b), (b, a)) if direction not in given]
        if len(lacking) == 2:
            missing.append(f"between {short(a)} and {short(b)}")
        else:
            missing.extend(f"from {short(start)} to {short(end)}" for start, end in lacking)
    if missing:
        where = listing(missing, at_most=_MOST_NAMED)
        text = f"there is no `default`, and nothing says what lies {where}"
        yield Finding(("links",), f"{text}; give a `default` or name every pair")


def _pair(
    pair: dict[Any, Any], here: Path, sites: list[str], given: dict[Direction, Path]
) -> Iterator[Finding]:
    """One entry of `pairs`: its sites exist, differ, and no direction of it is given already."""
    if "between" in pair:
        ends = {(*here, "between", at): end for at, end in enumerate(_list(pair["between"]))}
    else:
        ends = {(*here, key): pair.get(key) for key in ("from", "to")}
    for path, end in ends.items():
        if isinstance(end, str) and end not in sites:
            text = f"no site is named {show(end)}{did_you_mean(end, sites)}; allowed: "
            yield Finding(path, text + (listing(map(short, sites), "or", 20) or "none"))
    if len(ends) != 2 or not all(isinstance(end, str) for end in ends.values()):
        return
    a, b = ends.values()
    if a == b:
        text = f"site {show(a)} is paired with itself; what lies inside a site is its `lan`"
        yield Finding(list(ends)[1], text)
        return
    directions = [(a, b), (b, a)] if "between" in pair else [(a, b)]
    for start, end in directions:
        if given.setdefault((start, end), here) != here:
            text = f"the direction from {show(start)} to {show(end)} is given already; give it once"
            yield Finding(here, text, see=given[start, end])
            break


def _mapping(raw: Any) -> dict[Any, Any]:
    return raw if isinstance(raw, dict) else {}


def _list(raw: Any) -> list[Any]:
    return list(raw) if isinstance(raw, list | tuple) else []
