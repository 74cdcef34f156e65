"""A topology of Mininet's as a topology file: hosts are nodes, switches that have hosts are sites.

Mininet sets a link's `delay`, `jitter`, `loss` and `bw` on the interfaces at both of its ends, each
for what leaves there: the round trip over a link of `delay='5ms'` is 10 ms, and every direction
loses its `loss`. `params1` and `params2` are for one end each.
"""

from __future__ import annotations

import heapq
import importlib.util
import math
import re
import runpy
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.imported import Imported, host_names, imported, milliseconds
from wanlat.topologies.units import Rate
from wanlat.topologies.wording import did_you_mean, listing, show

# Mininet comes with distributions, for their own Python: only its package is taken from there.
_DEBIAN = Path("/usr/lib/python3/dist-packages/mininet/__init__.py")

_TIME = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *(s|secs?|ms|msecs?|us|usecs?|ns|nsecs?|)")
_NS = {"s": 10**9, "m": 10**6, "u": 10**3, "n": 1, "": 10**3}  # tc: a bare number is of µs
_READ = {"delay", "jitter", "loss", "bw"}
# Where a link is plugged in, which is no property of it.
_PLUGS = {"node1", "node2", "port1", "port2", "params1", "params2", "cls", "cls1", "cls2", "fast"}
_PLUGS |= {"intf", "intfName1", "intfName2", "addr1", "addr2"}
_MOST_MBIT = 1000  # TCIntf ignores a larger one


@dataclass(frozen=True)
class _Way:
    """What one direction of a link, or of a path, does to packets; `bw` in Mbit/s."""

    delay_ns: float = 0
    jitter_ns: float = 0
    loss: float = 0
    bw: float = math.inf

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> _Way:
        """From the options of an interface. UserError for a time that tc does not take."""
        bw, delay = options.get("bw"), _ns(options.get("delay"))
        return cls(
            delay,
            min(_ns(options.get("jitter")), delay),  # netem cuts off what would be early
            min(max(float(options.get("loss") or 0), 0), 100) / 100,
            bw if bw and 0 < bw <= _MOST_MBIT else math.inf,
        )

    def __add__(self, other: _Way) -> _Way:
        """One after the other: delays add up, jitters as standard deviations do."""
        return _Way(
            self.delay_ns + other.delay_ns,
            math.hypot(self.jitter_ns, other.jitter_ns),
            1 - (1 - self.loss) * (1 - other.loss),
            min(self.bw, other.bw),
        )

    def fields(self, key: str, factor: int = 1) -> dict[str, str]:
        """The keys of a link in a topology file; `rtt` has both directions' delay and jitter."""
        fields = {key: milliseconds(self.delay_ns * factor)}
        if self.jitter_ns:
            fields["jitter"] = milliseconds(self.jitter_ns * factor)
        if self.loss:
            fields["loss"] = f"{self.loss * 100:.10g}%"
        if self.bw < math.inf:
            fields["rate"] = str(Rate(round(self.bw * 10**6)))
        return fields


def import_mininet(target: str, *, name: str | None = None) -> Imported:
    """Make a topology of `FILE.py:TOPO[,ARGUMENT…]`, as `mn --custom FILE.py --topo TOPO` builds.

    `TOPO` is a key of the file's `topos`, or a class in it; it may be left out where there is one.
    The file is executed. Between sites that are not neighbours lies the path over the fewest
    links. What `wanlat topology export --to mininet` wrote comes back as it was.

    UserError for what has no counterpart, MachineError where Mininet is not installed.
    """
    file, _, what = target.partition(".py:")
    path = Path(file if target.endswith(".py") else f"{file}.py")
    topo = _built(path, what)
    comment = f"Made by `wanlat topology import` from {path.name}."
    exported = getattr(topo, "wanlat", None)
    if isinstance(exported, dict) and "topology" in exported:
        document = exported["topology"] | ({"name": name} if name else {})
        return imported({"description": "", **document}, source=target, comments=[comment])
    notes: list[str] = []
    document = _document(topo, notes)
    document["name"] = name or host_names([what.partition(",")[0] or path.stem], [])[0]
    document["description"] = f"from {path.name}, a topology of Mininet's"
    return imported(document, source=target, comments=[comment], notes=notes)


def _built(path: Path, what: str) -> Any:
    """The instance of a user's class of `mininet.topo.Topo`."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    _find_mininet()
    from mininet.topo import Topo  # type: ignore[import-not-found]
    from mininet.util import buildTopo  # type: ignore[import-not-found]

    try:
        inside = runpy.run_path(str(path), run_name="mininet_custom")
        own = {
            key: value
            for key, value in inside.items()
            if isinstance(value, type) and issubclass(value, Topo) and value is not Topo
        }
        topos = {**own, **inside.get("topos", {})}
        only = list(own or topos)
        wanted = what or (only[0] if len(only) == 1 else "")
        first = wanted.partition(",")[0]
        if first not in topos:
            near = did_you_mean(first, list(topos))
            lacking = f"no topology {show(first)}{near}" if first else "not one topology"
            known = listing(topos, at_most=20) or "none"
            raise UserError(f"{path} has {lacking}; it has {known}; give one, as {path}:NAME")
        return buildTopo(topos, wanted)
    except (UserError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as problem:
        text = f"{type(problem).__name__}: {problem}"
        raise UserError(f"{path} does not build a topology of Mininet's: {text}") from problem


def is_installed() -> bool:
    """Whether Mininet's Python package is there, for this Python or for the distribution's."""
    return importlib.util.find_spec("mininet") is not None or _DEBIAN.exists()


def _find_mininet() -> None:
    if not is_installed():
        raise MachineError(
            "Mininet is not installed, and a topology of Mininet's is read by Mininet itself"
            " (Debian, Ubuntu: apt-get install mininet)"
        )
    if importlib.util.find_spec("mininet") is None:
        package = importlib.util.spec_from_file_location("mininet", _DEBIAN)
        assert package is not None and package.loader is not None
        sys.modules["mininet"] = importlib.util.module_from_spec(package)
        package.loader.exec_module(sys.modules["mininet"])


def _ways(topo: Any, notes: list[str]) -> dict[str, dict[str, _Way]]:
    """What leaves each node towards each of its neighbours meets; and what is left out."""
    ways: dict[str, dict[str, _Way]] = {name: {} for name in topo.nodes()}
    left_out = set()
    for a, b, options in topo.links(withInfo=True):
        both = {key: value for key, value in options.items() if key not in _PLUGS}
        if b in ways[a]:
            raise UserError(f"{a} and {b} have two links; between two nodes there is one")
        for near, far, end in ((a, b, "params1"), (b, a, "params2")):
            # As Mininet's Link does: options for both ends win over those for one.
            own = {**(options.get(end) or {}), **both}
            try:
                ways[near][far] = _Way.from_options(own)
            except (TypeError, ValueError) as problem:
                raise UserError(f"the link of {near} and {far}: {problem}") from None
            left_out |= own.keys() - _READ - _PLUGS
    every = [way for far in ways.values() for way in far.values()]
    if left_out:
        notes.append(f"options of links that are left out: {listing(sorted(left_out))}")
    if any(way.jitter_ns for way in every):
        notes.append(
            "in Mininet jitter lets packets overtake each other; here they stay in order, unless"
            " you give a link `reorder: true`"
        )
    if any(way.bw < math.inf for way in every):
        notes.append(
            "a link of Mininet's with `bw` is shared by all that crosses it; here every pair of"
            " sites has a path, and a rate, of its own"
        )
    return ways


def _document(topo: Any, notes: list[str]) -> dict[str, Any]:
    """The sites and links of a topology file."""
    ways = _ways(topo, notes)
    # Hosts of a switch whose lines differ are sites of their own: a site's nodes have the same.
    groups: dict[tuple[str, _Way, _Way], list[str]] = {}
    for host in topo.hosts():
        groups.setdefault(_line(topo, host, ways), []).append(host)
    seen = Counter[str]()
    labels = []
    for switch, *_ in groups:
        seen[switch] += 1
        labels.append(switch if seen[switch] == 1 else f"{switch}-{seen[switch]}")
    names = host_names(labels, notes)
    nodes = dict(zip(topo.hosts(), host_names(topo.hosts(), notes), strict=True))
    sites = []
    for site, ((_, up, down), members) in zip(names, groups.items(), strict=True):
        made: dict[str, Any] = {"name": site, "nodes": [nodes[host] for host in members]}
        if (up, down) != (_Way(), _Way()):
            made["access"] = {"up": up.fields("delay"), "down": down.fields("delay")}
        sites.append(made)
    pairs: list[dict[str, Any]] = []
    between_switches = {
        switch: {far: way for far, way in ways[switch].items() if topo.isSwitch(far)}
        for switch in topo.switches()
    }
    for (a, (start, *_)), (b, (end, *_)) in combinations(zip(names, groups, strict=True), 2):
        path = _path(start, end, between_switches)
        there = sum((ways[x][y] for x, y in pairwise(path)), _Way())
        back = sum((ways[y][x] for x, y in pairwise(path)), _Way())
        if there == back:
            pairs.append({"between": [a, b], **there.fields("rtt", 2)})
        else:
            pairs.append({"from": a, "to": b, **there.fields("delay")})
            pairs.append({"from": b, "to": a, **back.fields("delay")})
    return {"sites": sites, "links": {"pairs": pairs} if pairs else {}}


def _line(topo: Any, host: str, ways: Mapping[str, Mapping[str, _Way]]) -> tuple[str, _Way, _Way]:
    """The switch that a host hangs on, and what its line does, up and down."""
    ends = list(ways[host])
    if len(ends) != 1 or not topo.isSwitch(ends[0]):
        where = f"is linked to {listing(ends)}" if ends else "has no link"
        raise UserError(f"host {host} {where}; a node hangs on one switch, and on nothing else")
    return ends[0], ways[host][ends[0]], ways[ends[0]][host]


def _path(start: str, end: str, ways: Mapping[str, Mapping[str, _Way]]) -> tuple[str, ...]:
    """The switches from one to another over the fewest links; of several ways, the quickest."""
    waiting: list[tuple[int, float, tuple[str, ...]]] = [(0, 0.0, (start,))]
    seen = set()
    while waiting:
        hops, delay_ns, path = heapq.heappop(waiting)
        if path[-1] == end:
            return path
        if path[-1] not in seen:
            seen.add(path[-1])
            for far, way in ways[path[-1]].items():
                heapq.heappush(waiting, (hops + 1, delay_ns + way.delay_ns, (*path, far)))
    raise UserError(f"no links lead from switch {start} to switch {end}")


def _ns(time: Any) -> float:
    """A time as tc reads it, in nanoseconds."""
    match = _TIME.fullmatch(str(0 if time is None else time).strip())
    if match is None:
        raise UserError(f"{show(time)} is no time that tc takes, such as '5ms'")
    return round(float(match[1]) * _NS[match[2][:1]])
