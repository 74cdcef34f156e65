"""What must hold across a topology, besides the types of its fields.

Every function takes raw YAML values (or a dumped model) of which any part may have the wrong
type: such parts are passed over here and told by the model.
"""

import re
from collections.abc import Iterator
from fractions import Fraction as Exact
from itertools import combinations
from typing import Any, TypeVar, get_args

from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.limits import (
    MAX_LINK_RTT_NS,
    MAX_NODES,
    MAX_SITES,
    MIN_QUEUE_BYTES,
    NAME_PATTERN,
)
from wanlat.topologies.shapes import Distribution, extent
from wanlat.topologies.tables import Table, TableError
from wanlat.topologies.units import LARGEST_COUNT, Duration, Fraction, Quantity, QuantityError, Size
from wanlat.topologies.wording import did_you_mean, listing, short, show

_MOST_NAMED = 50


def topology(raw: Any) -> list[Finding]:
    """Every cross-check of a topology file."""
    return [*_sites(raw), *_links(raw)]


def link(raw: Any) -> list[Finding]:
    """Jitter and its shape against rtt or delay, queue against rate, of a link or direction."""
    return list(_link(raw))


def bursts(raw: Any) -> list[Finding]:
    """The states of loss in bursts: both are entered, and the bad one is the worse."""
    return list(_bursts(raw))


def _link(raw: Any) -> Iterator[Finding]:
    if not isinstance(raw, dict):
        return
    values: dict[Any, Any] = raw
    yield from _shape(values)
    for base in ("rtt", "delay"):
        length = _quantity(Duration, values.get(base))
        if length is None:
            continue
        limit_ns = MAX_LINK_RTT_NS if base == "rtt" else MAX_LINK_RTT_NS // 2
        if length.ns > limit_ns:
            text = f"{show(str(length))} is too long; a link has a {base} of at most "
            yield Finding((base,), f"{text}{show(str(Duration(limit_ns)))}")
        yield from _jitter(values, base, length)
        part = _quantity(Fraction, values.get("reorder"))
        if part is not None and part.value and not length.ns:
            text = f"a packet overtakes those on their way, and the {base} here is 0"
            yield Finding(
                ("reorder",), f"{text}; give a longer one, or remove `reorder`", at_key=True
            )
    yield from (found.under(("loss",)) for found in _bursts(values.get("loss")))
    yield from _queue(values)


def _shape(values: dict[Any, Any]) -> Iterator[Finding]:
    """What describes the jitter needs one, and a table its distribution."""
    jitter = values.get("jitter")
    if jitter is None or _quantity(Duration, jitter) == Duration(0):
        for key in ("distribution", "table", "correlation"):
            if values.get(key) is not None:
                text = f"`{key}` says how the jitter is drawn, and there is no jitter"
                yield Finding((key,), f"{text}; give a `jitter`, or remove it", at_key=True)
    distribution, table = values.get("distribution"), values.get("table")
    if distribution == "table" and table is None:
        text = "needs a `table` beside it: a file of samples, or a list of numbers"
        yield Finding(("distribution",), f"`table` {text}")
    if table is not None and distribution != "table":
        beside = "" if distribution is None else f", not of {show(distribution)}"
        text = f"`table` is the shape of `distribution: table`{beside}; write that, or remove it"
        yield Finding(("table",), text, at_key=True)
    correlation = _quantity(Fraction, values.get("correlation"))
    if correlation is not None and correlation.value == 1:
        text = "with `100%` every packet has the draw of the first, which is no jitter"
        yield Finding(("correlation",), f"{text}; less than `100%`")


def _jitter(values: dict[Any, Any], base: str, length: Duration) -> Iterator[Finding]:
    """The smallest draw leaves a delay."""
    jitter, shape = _quantity(Duration, values.get("jitter")), _drawn(values)
    if jitter is None or shape is None:
        return
    distribution, lowest = shape
    # Exact, for the limit that is told must be one that is accepted.
    limit = Duration(min(int(length.ns / Exact(-lowest)), LARGEST_COUNT))
    if jitter <= limit:
        return
    allowed = f"so delays would be negative; at most {show(str(limit))}"
    if distribution == "uniform":
        text = f"{show(str(jitter))} is larger than the {base} {show(str(length))}, {allowed}"
    else:
        text = (
            f"{show(str(jitter))} is too large for the {base} {show(str(length))}: the smallest"
            f" draw of {show(distribution)} lies {-lowest:.3g} × jitter below it, {allowed}"
        )
    yield Finding(("jitter",), text)


def _drawn(values: dict[Any, Any]) -> tuple[str, float] | None:
    """The distribution and its smallest draw in units of the jitter; None if that is not known."""
    distribution = values.get("distribution")
    if distribution is None:
        distribution = "uniform"
    if distribution not in get_args(Distribution):
        return None
    try:
        table = Table.parse(values.get("table")).quantiles if distribution == "table" else ()
    except TableError:
        return None
    return distribution, extent(distribution, table)[0]


def _bursts(raw: Any) -> Iterator[Finding]:
    if not isinstance(raw, dict):
        return
    values: dict[Any, Any] = raw
    for key, state in (("p", "never enters the bad state"), ("r", "never leaves the bad state")):
        step = _quantity(Fraction, values.get(key))
        if step is not None and not step.value:
            instead = "; without bursts, write `loss: FRACTION`" if key == "p" else ""
            text = f"{show(str(step))} {state}; more than `0%`{instead}"
            yield Finding((key,), text)
    h = _quantity(Fraction, values.get("h", "0%"))
    k = _quantity(Fraction, values.get("k", "100%"))
    if h is not None and k is not None and h > k:
        text = (
            f"the bad state would deliver more ({show(str(h))}) than the good one"
            f" ({show(str(k))}); h and k are what is delivered, where tc wants 1-h and 1-k"
        )
        yield Finding(("h",) if "h" in values else ("k",), text)


def _queue(values: dict[Any, Any]) -> Iterator[Finding]:
    queue = values.get("queue")
    if queue is None:
        return
    if values.get("rate") is None:
        yield Finding(
            ("queue",),
            "the queue holds what waits for the rate, so it needs a `rate` beside it",
            at_key=True,
        )
    size = _quantity(Size, queue)
    if size is not None and size.bytes < MIN_QUEUE_BYTES:
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
        yield from (found.under(here) for found in _access(site))
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
    total = len(named) + sum(max(count, 0) for count, _ in counted.values())
    if total > MAX_NODES:
        yield Finding(("sites",), f"{total} nodes in all; at most {MAX_NODES}")
    for node, path in named:
        see = seen_nodes.get(node) or _made_by(node, counted)
        if see is not None:
            text = f"node {show(node)} is there already; node names are unique across all sites"
            yield Finding(path, text, see=see)
        seen_nodes.setdefault(node, path)


def _access(site: dict[Any, Any]) -> Iterator[Finding]:
    if site.get("access") is None:
        return
    if site.get("lan") is not None:
        text = "`access` stands in the place of `lan`: both say what the nodes' links do"
        yield Finding(("access",), f"{text}; remove one", at_key=True)
    for way in ("up", "down"):
        values = _mapping(_mapping(site["access"]).get(way))
        # A delay that is not given is 0: a jitter needs one.
        yield from (found.under(("access", way)) for found in _link({"delay": 0, **values}))


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
    if len(sites) > MAX_SITES:
        return  # which is told, and the pairs are more than anybody waits for
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


Q = TypeVar("Q", bound=Quantity)


def _quantity(kind: type[Q], raw: Any) -> Q | None:
    if raw is None or isinstance(raw, kind):
        return raw
    try:
        return kind.parse(raw)
    except QuantityError:
        return None
