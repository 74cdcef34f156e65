"""What must hold across a topology, besides the types of its fields.

Every function takes raw YAML values (or a dumped model) of which any part may have the wrong
type: such parts are passed over here and told by the model.
"""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from topologies.findings import Finding, Path
from topologies.limits import MAX_LINK_RTT_NS, MIN_QUEUE_BYTES, NAME_PATTERN
from topologies.units import Duration, QuantityError, Size
from topologies.wording import did_you_mean, listing, short, show

_MOST_NAMED = 50


def topology(raw: Any) -> list[Finding]:
    """Every cross-check of a topology file."""
    return [*_sites(raw), *_links(raw)]


def link(raw: Any) -> list[Finding]:
    """Jitter against rtt or delay, queue against rate, of one link or direction."""
    return list(_link(raw))


def _link(raw: Any) -> Iterator[Finding]:
    values = _mapping(raw)
    for base in ("rtt", "delay"):
        length, jitter = _duration(values.get(base)), _duration(values.get("jitter"))
        if length is None:
            continue
        limit_ns = MAX_LINK_RTT_NS if base == "rtt" else MAX_LINK_RTT_NS // 2
        if length.ns > limit_ns:
            text = f"{show(str(length))} is too long; a link has a {base} of at most "
            yield Finding((base,), f"{text}{show(str(Duration(limit_ns)))}")
        if jitter is not None and jitter > length:
            yield Finding(
                ("jitter",),
                f"{show(str(jitter))} is larger than the {base} {show(str(length))}, so delays"
                f" would be negative; at most {show(str(length))}",
            )
    queue = values.get("queue")
    if queue is None:
        return
    if values.get("rate") is None:
        yield Finding(
            ("queue",),
            "the queue holds what waits for the rate, so it needs a `rate` beside it",
            at_key=True,
        )
    try:
        size = Size.parse(queue)
    except QuantityError:
        return
    if size.bytes < MIN_QUEUE_BYTES:
        yield Finding(
            ("queue",), f"{show(str(size))} holds no full packet; at least {MIN_QUEUE_BYTES} bytes"
        )


def _sites(raw: Any) -> Iterator[Finding]:
    seen_sites: dict[str, Path] = {}
    seen_nodes: dict[str, Path] = {}
    counted: dict[str, tuple[int, Path]] = {}
    named: list[tuple[str, Path]] = []
    for index, entry in enumerate(_list(_mapping(raw).get("sites"))):
        here: Path = ("sites", index)
        site = _mapping(entry)
        name, nodes = _text(site.get("name")), site.get("nodes")
        yield from (found.under((*here, "lan")) for found in _link(site.get("lan")))
        if name is not None:
            path: Path = (*here, "name")
            if name in seen_sites:
                text = f"site {show(name)} is there already; every site has a name of its own"
                yield Finding(path, text, see=seen_sites[name])
            elif isinstance(nodes, int) and not isinstance(nodes, bool):
                counted[name] = (nodes, (*here, "nodes"))
                yield from _made_names(name, nodes, (*here, "nodes"))
            seen_sites.setdefault(name, path)
        for position, node in enumerate(_list(nodes)):
            if isinstance(node, str):
                named.append((node, (*here, "nodes", position)))
    for node, path in named:
        see = seen_nodes.get(node) or _made_by(node, counted)
        if see is not None:
            text = f"node {show(node)} is there already; node names are unique across all sites"
            yield Finding(path, text, see=see)
        seen_nodes.setdefault(node, path)


def _made_names(site: str, count: int, path: Path) -> Iterator[Finding]:
    last = f"{site}-{count}"
    if re.match(NAME_PATTERN, site) and not re.match(NAME_PATTERN, last):
        text = f"{show(count)} makes names up to {show(last)}, longer than 32 characters"
        yield Finding(path, f"{text}; shorten the name of the site, or name the nodes")


def _made_by(node: str, counted: dict[str, tuple[int, Path]]) -> Path | None:
    """Where the count stands that makes this name, if one does."""
    site, _, number = node.rpartition("-")
    if site in counted and re.fullmatch("[1-9][0-9]{0,9}", number):
        count, path = counted[site]
        return path if int(number) <= count else None
    return None


def _links(raw: Any) -> Iterator[Finding]:
    sites = list(
        dict.fromkeys(
            name
            for site in _list(_mapping(raw).get("sites"))
            if (name := _text(_mapping(site).get("name"))) is not None
        )
    )
    links = _mapping(_mapping(raw).get("links"))
    yield from (found.under(("links", "default")) for found in _link(links.get("default")))
    given: dict[tuple[str, str], Path] = {}
    for index, entry in enumerate(_list(links.get("pairs"))):
        here: Path = ("links", "pairs", index)
        yield from (found.under(here) for found in _link(entry))
        yield from _pair(_mapping(entry), here, sites, given)
    if links.get("default") is None:
        yield from _missing(sites, given)


def _pair(
    pair: dict[Any, Any], here: Path, sites: list[str], given: dict[tuple[str, str], Path]
) -> Iterator[Finding]:
    """One entry of `pairs`: its sites exist, differ, and no direction of it is given already."""
    if "between" in pair:
        between = _list(pair["between"])
        ends = [((*here, "between", i), end) for i, end in enumerate(between)]
        if len(ends) != 2:
            return
    else:
        ends = [((*here, key), pair.get(key)) for key in ("from", "to")]
    for path, end in ends:
        if isinstance(end, str) and end not in sites:
            known = listing(map(short, sites), "or", at_most=20) or "none, for `sites` names none"
            text = f"no site is named {show(end)}{did_you_mean(end, sites)}; allowed: {known}"
            yield Finding(path, text)
    (_, a), (path_b, b) = ends
    if not (isinstance(a, str) and isinstance(b, str)):
        return
    if a == b:
        text = f"site {show(a)} is paired with itself; what lies inside a site is its `lan`"
        yield Finding(path_b, text)
        return
    directions = [(a, b), (b, a)] if "between" in pair else [(a, b)]
    twice = [direction for direction in directions if direction in given]
    if len(twice) == 2 and given[twice[0]] == given[twice[1]]:
        text = f"the pair {show(a)}, {show(b)} is given already; give it once"
        yield Finding(here, text, see=given[twice[0]])
    else:
        for start, end in twice:
            text = f"the direction from {show(start)} to {show(end)} is given already; give it once"
            yield Finding(here, text, see=given[start, end])
    for direction in directions:
        given.setdefault(direction, here)


def _missing(sites: list[str], given: dict[tuple[str, str], Path]) -> Iterator[Finding]:
    """Without a default, every direction between two sites must be given."""
    missing = []
    for a, b in combinations(sites, 2):
        lacking = [direction for direction in ((a, b), (b, a)) if direction not in given]
        if len(lacking) == 2:
            missing.append(f"between {short(a)} and {short(b)}")
        else:
            missing.extend(f"from {short(start)} to {short(end)}" for start, end in lacking)
    if missing:
        text = (
            f"there is no `default`, and nothing says what lies"
            f" {listing(missing, at_most=_MOST_NAMED)}; give a `default` or name every pair"
        )
        yield Finding(("links",), text)


def _mapping(raw: Any) -> dict[Any, Any]:
    return raw if isinstance(raw, dict) else {}


def _list(raw: Any) -> list[Any]:
    return list(raw) if isinstance(raw, list | tuple) else []


def _text(raw: Any) -> str | None:
    return raw if isinstance(raw, str) else None


def _duration(raw: Any) -> Duration | None:
    try:
        return Duration.parse(raw)
    except QuantityError:
        return None
