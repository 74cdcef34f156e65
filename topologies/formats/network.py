"""What a graph does to packets, and the topology that is made of it.

Delays along a path add up, jitters add as standard deviations do, of losses each strikes what the
others let through, and the smallest rate counts.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Any, Literal

from wanlat.topologies.errors import UserError
from wanlat.topologies.imported import Imported, host_names, imported, milliseconds
from wanlat.topologies.limits import MAX_SITES
from wanlat.topologies.units import Duration, Fraction, Rate
from wanlat.topologies.wording import did_you_mean, listing, short, show

SHARED_RATE = (
    "a link with a rate is shared by all that crosses it; here every pair of sites has a path, and"
    " a rate, of its own"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may add to a file: see `wanlat topology import`.

    `default` is the round trip of a link for which the file has none; `unit` that of bare numbers
    (milliseconds where None); `inside` whether what lies within a place counts; `places` are those
    to take, or how many of the first, by default all.
    """

    name: str | None = None
    nodes: int = 1
    jitter: Duration | Fraction | None = None
    default: Duration | None = None
    unit: Literal["s", "ms", "us", "ns"] | None = None
    inside: bool = True
    places: int | Sequence[str] | None = None


@dataclass(frozen=True)
class Way:
    """What one direction of a link, or of a path, does to packets.

    `jitter_ns` is the half-width of an even spread; `reorder`: whether it lets packets overtake.
    Parts are from 0 to 1, the rate in bits a second.
    """

    delay_ns: float = 0
    jitter_ns: float = 0
    loss: float = 0
    rate_bps: float = math.inf
    reorder: bool = False
    duplicate: float = 0
    corrupt: float = 0

    def __add__(self, other: Way) -> Way:
        """One after the other."""
        return Way(
            self.delay_ns + other.delay_ns,
            math.hypot(self.jitter_ns, other.jitter_ns),
            1 - (1 - self.loss) * (1 - other.loss),
            min(self.rate_bps, other.rate_bps),
            self.reorder or other.reorder,
            1 - (1 - self.duplicate) * (1 - other.duplicate),
            1 - (1 - self.corrupt) * (1 - other.corrupt),
        )

    def without(self, part: Way) -> Way:
        """What is left of a path when its ends do `part` of it. ValueError where they do more."""
        loss = 1 - (1 - self.loss) / (1 - part.loss) if part.loss < 1 else -1.0
        if part.delay_ns > self.delay_ns or loss < -1e-9:
            raise ValueError
        left_ns = self.delay_ns - part.delay_ns
        jitter_ns = math.sqrt(max(0.0, self.jitter_ns**2 - part.jitter_ns**2))
        return replace(
            self, delay_ns=left_ns, jitter_ns=min(jitter_ns, left_ns), loss=max(0.0, loss)
        )

    def half(self) -> Way:
        """One of two legs that are alike and together do this."""
        return replace(
            self,
            delay_ns=self.delay_ns / 2,
            jitter_ns=self.jitter_ns / math.sqrt(2) if self.jitter_ns <= self.delay_ns / 2 else 0,
            loss=1 - math.sqrt(1 - self.loss),
        )

    def fields(self, key: str, factor: int = 1) -> dict[str, Any]:
        """The keys of a link in a topology file; `rtt` has both directions' delay and jitter."""
        fields: dict[str, Any] = {key: milliseconds(self.delay_ns * factor)}
        if self.jitter_ns:
            fields["jitter"] = milliseconds(self.jitter_ns * factor)
            fields |= {"reorder": True} if self.reorder else {}
        for name in ("loss", "duplicate", "corrupt"):
            if part := getattr(self, name):
                fields[name] = f"{part * 100:.10f}".rstrip("0").rstrip(".") + "%"
        if self.rate_bps < math.inf:
            fields["rate"] = str(Rate(max(1, round(self.rate_bps))))
        return fields


Ways = Mapping[str, Mapping[str, Way]]
"""From each node to each of its neighbours."""


def paths(ways: Ways, start: str, *, by_links: bool = False) -> dict[str, Way]:
    """The way from a node to every one that it reaches, itself too.

    The quickest one; with `by_links` that over the fewest links, and of these the quickest.
    """
    waiting: list[tuple[float, float, int, str, Way]] = [(0, 0, 0, start, Way())]
    reached: dict[str, Way] = {}
    number = 0  # decides between equals, for a way has no order
    while waiting:
        links, _, _, node, way = heapq.heappop(waiting)
        if node in reached:
            continue
        reached[node] = way
        for far, step in ways.get(node, {}).items():
            if far not in reached:
                number += 1
                longer = way + step
                entry = (links + by_links, longer.delay_ns, number, far, longer)
                heapq.heappush(waiting, entry)
    return reached


def no_path(start: str, end: str) -> UserError:
    """The error of two places that no links join."""
    return UserError(f"no links lead from {short(start)} to {short(end)}")


# -- places, which are nodes of the graph ------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A node of the graph where hosts may be: its name there, and what lies within.

    `inside` is one direction between two hosts of it; `up_bps` and `down_bps` are what each host's
    own line carries.
    """

    name: str
    inside: Way | None = None
    up_bps: float = math.inf
    down_bps: float = math.inf


@dataclass
class Places:
    """A graph of places and routers; `ways` by the nodes' keys, `places` in the file's order.

    `by_links`: a path is the one over the fewest links, not the quickest.
    """

    source: str
    what: str
    ways: dict[str, dict[str, Way]]
    places: dict[str, Place]
    by_links: bool = False
    notes: list[str] = field(default_factory=list)
    comments: tuple[str, ...] = ()


def places_topology(graph: Places, options: Options) -> Imported:
    """Make each place a site, with the path between them as the link. Raises UserError."""
    notes = list(graph.notes)
    chosen = _chosen(graph, options, notes)
    inside = {key: _inside(place, options, notes) for key, place in chosen.items()}
    names = host_names([place.name for place in chosen.values()], notes, 32 - 4)
    sites = dict(zip(chosen, names, strict=True))
    pairs: list[dict[str, Any]] = []
    missing: list[str] = []
    reached = {key: paths(graph.ways, key, by_links=graph.by_links) for key in sites}
    for a, b in combinations(sites, 2):
        there, back = (
            _between(reached[x].get(y), (chosen[x], chosen[y]), (inside[x], inside[y]), options)
            for x, y in ((a, b), (b, a))
        )
        if there is not None and there == back:
            pairs.append({"between": [sites[a], sites[b]], **there.fields("rtt", 2)})
            continue
        for way, x, y in ((there, a, b), (back, b, a)):
            if way is None:
                missing.append(f"{short(chosen[x].name)} to {short(chosen[y].name)}")
            else:
                pairs.append({"from": sites[x], "to": sites[y], **way.fields("delay")})
    if missing and options.default is None:
        raise UserError(
            f"{graph.source}: no links lead from {listing(missing, at_most=5)};"
            " --default says what lies there, --places takes a part"
        )
    links: dict[str, Any] = {"default": {"rtt": str(options.default)}} if missing else {}
    if missing:
        lacking = listing(missing, at_most=5)
        notes.append(f"{len(missing)} ways are {options.default} by default: {lacking}")
    if any("rate" in pair for pair in pairs):
        notes.append(SHARED_RATE)
    document = {
        "name": options.name or host_names([_stem(graph.source)], [])[0],
        "description": f"{len(sites)} places of {graph.what}",
        "sites": [
            {"name": site, "nodes": options.nodes, **_lines(chosen[key], inside[key])}
            for key, site in sites.items()
        ],
        "links": links | {"pairs": pairs},
    }
    return imported(
        document,
        source=graph.source,
        comments=[
            f"Made by `wanlat topology import` from {graph.what} ({_file(graph.source)}).",
            *graph.comments,
        ],
        notes=notes,
        places={site: chosen[key].name for key, site in sites.items()},
    )


def _file(source: str) -> str:
    return source.rpartition("/")[2]


def _stem(source: str) -> str:
    return _file(source).partition(".")[0]


def _chosen(graph: Places, options: Options, notes: list[str]) -> dict[str, Place]:
    """The places that become sites: all, or those that are named."""
    chosen = graph.places
    if isinstance(options.places, int):
        chosen = dict(islice(chosen.items(), options.places))
    elif options.places is not None:
        keys = {place.name: key for key, place in graph.places.items()}
        keys |= {key: key for key in graph.places}
        for name in options.places:
            if name not in keys:
                near = did_you_mean(name, list(keys))
                known = listing([place.name for place in graph.places.values()], at_most=20)
                raise UserError(f"{graph.source} has no place {show(name)}{near}; it has {known}")
        chosen = {keys[name]: graph.places[keys[name]] for name in options.places}
    elif len(graph.places) > 2:
        notes.append(
            f"each of its {len(graph.places)} places is a site; --places A,B,C takes some, and what"
            " lies between them stays as it is"
        )
    if not chosen:
        raise UserError(f"{graph.source}: {graph.what} has no places")
    if len(chosen) > MAX_SITES:
        raise UserError(
            f"{graph.source} has {len(chosen)} places, and a topology at most {MAX_SITES} sites;"
            " --places A,B,C takes some, and what lies between them stays as it is"
        )
    return chosen


def _inside(place: Place, options: Options, notes: list[str]) -> Way:
    """What lies between two hosts of a place, one way; nothing where it has only one."""
    if place.inside is None or not options.inside:
        return Way()
    if options.nodes == 1:
        note = "what lies within a place is left out, for each has one node; --nodes gives it more"
        notes += [note] if note not in notes else []
        return Way()
    return place.inside


def _between(
    path: Way | None,
    ends: tuple[Place, Place],
    inside: tuple[Way, Way],
    options: Options,
) -> Way | None:
    """The WAN link's own share of a path: a packet passes half of each place's network besides."""
    if path is None:
        return None
    try:
        way = path.without(inside[0].half() + inside[1].half())
    except ValueError:
        a, b = (short(end.name) for end in ends)
        raise UserError(
            f"from {a} to {b} lies less ({milliseconds(path.delay_ns)}, {path.loss:.3g} lost) than"
            " within the two; --no-inside leaves that out"
        ) from None
    if way.jitter_ns or options.jitter is None:
        return way
    if isinstance(options.jitter, Fraction):
        return replace(way, jitter_ns=way.delay_ns * options.jitter.value)
    return replace(way, jitter_ns=options.jitter.ns / 2)


def _lines(place: Place, inside: Way) -> dict[str, Any]:
    """The site's own network: a `lan`, or where its hosts' lines have rates an `access`."""
    if place.up_bps == place.down_bps == math.inf:
        return {"lan": inside.fields("rtt", 2)} if inside != Way() else {}
    leg = inside.half()
    up, down = (replace(leg, rate_bps=bps) for bps in (place.up_bps, place.down_bps))
    return {"access": {"up": up.fields("delay"), "down": down.fields("delay")}}


# -- hosts, which hang on switches -------------------------------------------------------------


def hosts_document(
    ways: Ways, hosts: Sequence[str], notes: list[str], labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The sites and links of a topology file: each switch that has hosts is a site.

    Hosts of one switch with different lines are sites of their own: a site's nodes have the same.
    Between two sites lies the path over the fewest links. `labels` name the switches' sites.
    Raises UserError for a host that does not hang on one switch.
    """
    is_host = set(hosts)
    groups: dict[tuple[str, Way, Way], list[str]] = {}
    for host in hosts:
        ends = list(ways[host])
        if len(ends) != 1 or ends[0] in is_host:
            where = f"is linked to {listing(ends)}" if ends else "has no link"
            raise UserError(f"host {host} {where}; a node hangs on one switch, and on nothing else")
        line = (ends[0], ways[host][ends[0]], ways[ends[0]][host])
        groups.setdefault(line, []).append(host)
    seen = Counter[str]()
    called = []
    for switch, *_ in groups:
        seen[switch] += 1
        label = (labels or {}).get(switch, switch)
        called.append(label if seen[switch] == 1 else f"{label}-{seen[switch]}")
    names = host_names(called, notes)
    nodes = dict(zip(hosts, host_names(hosts, notes), strict=True))
    sites = []
    for site, ((_, up, down), members) in zip(names, groups.items(), strict=True):
        made: dict[str, Any] = {"name": site, "nodes": [nodes[host] for host in members]}
        if (up, down) != (Way(), Way()):
            made["access"] = {"up": up.fields("delay"), "down": down.fields("delay")}
        sites.append(made)
    between_switches = {
        near: {far: way for far, way in ends.items() if far not in is_host}
        for near, ends in ways.items()
        if near not in is_host
    }
    reached = {switch: paths(between_switches, switch, by_links=True) for switch, *_ in groups}
    pairs: list[dict[str, Any]] = []
    for (a, (start, *_)), (b, (end, *_)) in combinations(zip(names, groups, strict=True), 2):
        if end not in reached[start] or start not in reached[end]:
            raise no_path(f"switch {start}", f"switch {end}")
        pairs += pair(a, b, reached[start][end], reached[end][start])
    return {"sites": sites, "links": {"pairs": pairs} if pairs else {}}


def pair(a: str, b: str, there: Way, back: Way) -> Iterable[dict[str, Any]]:
    """The entries of `pairs` for two sites: one where both directions are alike."""
    if there == back:
        return [{"between": [a, b], **there.fields("rtt", 2)}]
    return [
        {"from": a, "to": b, **there.fields("delay")},
        {"from": b, "to": a, **back.fields("delay")},
    ]
