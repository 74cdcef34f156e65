"""A topology of Mininet's as a topology file: hosts are nodes, switches that have hosts are sites.

Mininet sets a link's `delay`, `jitter`, `loss` and `bw` on the interfaces at both of its ends, each
for what leaves there: the round trip over a link of `delay='5ms'` is 10 ms, and every direction
loses its `loss`. `params1` and `params2` are for one end each.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.formats.network import SHARED_RATE, Way, hosts_document
from wanlat.topologies.imported import Imported, host_names, imported
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
_MODULE = "mininet_custom"  # as `mn --custom` calls a file: what it does as a program is not done
_NEITHER = (
    "none: no class of Topo, no `topos`, and no function without arguments that builds a Mininet"
)


def _way(options: Mapping[str, Any]) -> Way:
    """What the options of an interface do. UserError for a time that tc does not take."""
    bw, delay_ns = options.get("bw"), _ns(options.get("delay"))
    return Way(
        delay_ns,
        min(_ns(options.get("jitter")), delay_ns),  # netem cuts off what would be early
        min(max(float(options.get("loss") or 0), 0), 100) / 100,
        bw * 10**6 if bw and 0 < bw <= _MOST_MBIT else math.inf,
    )


def import_mininet(target: str, *, name: str | None = None) -> Imported:
    """Make a topology of `FILE.py:TOPO[,ARGUMENT…]`, as `mn --custom FILE.py --topo TOPO` builds.

    `TOPO` is a key of the file's `topos`, a class in it, or a function that builds a Mininet; it
    may be left out where there is one. The file is executed, and such a function up to where it
    starts its network: what it adds is recorded, and nothing is built. Between sites that are not
    neighbours lies the path over the fewest links. What `wanlat topology export --to mininet`
    wrote comes back as it was.

    UserError for what has no counterpart, MachineError where Mininet is not installed.
    """
    file, _, what = target.partition(".py:")
    path = Path(file if target.endswith(".py") else f"{file}.py")
    notes: list[str] = []
    topo = _built(path, what, notes)
    comment = f"Made by `wanlat topology import` from {path.name}."
    exported = getattr(topo, "wanlat", None)
    if isinstance(exported, dict) and "topology" in exported:
        document = exported["topology"] | ({"name": name} if name else {})
        return imported({"description": "", **document}, source=target, comments=[comment])
    document = hosts_document(_ways(topo, notes), topo.hosts(), notes)
    document["name"] = name or host_names([what.partition(",")[0] or path.stem], [])[0]
    document["description"] = f"from {path.name}, a topology of Mininet's"
    return imported(document, source=target, comments=[comment], notes=notes)


def _built(path: Path, what: str, notes: list[str]) -> Any:
    """A topology of the user's: that of his class, or what his script adds to a Mininet."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    _find_mininet()
    from mininet.topo import Topo  # type: ignore[import-not-found]
    from mininet.util import buildTopo, splitArgs  # type: ignore[import-not-found]

    from wanlat.topologies.mininet_recorder import recorded

    try:
        with recorded() as networks:
            inside = networks.run(lambda: runpy.run_path(str(path), run_name=_MODULE)) or {}
            classes = {
                key: value
                for key, value in inside.items()
                if isinstance(value, type) and issubclass(value, Topo) and value is not Topo
            }
            topos = {**classes, **inside.get("topos", {})}
            # Those of Mininet's library are parts of the script's network, and not that.
            own = {k: v for k, v in classes.items() if not v.__module__.startswith("mininet.")}
            only = list(own or inside.get("topos", {}))
            builders = {} if only else networks.builders(inside, _MODULE)
            if not what and not only and networks.made:
                return networks.topo(notes)
            only = only or list(builders)
            wanted = what or (only[0] if len(only) == 1 else "")
            first = wanted.partition(",")[0]
            callables = {key: value for key, value in inside.items() if inspect.isfunction(value)}
            if first not in topos and first in {**callables, **builders}:
                _, arguments, named = splitArgs(wanted)
                networks.run(lambda: inside[first](*arguments, **named))
                return networks.topo(notes, f"{first}()")
            if first not in topos:
                near = did_you_mean(first, [*topos, *builders])
                lacking = f"no topology {show(first)}{near}" if first else "not one topology"
                known = listing({**topos, **builders}, at_most=20) or _NEITHER
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


def _ways(topo: Any, notes: list[str]) -> dict[str, dict[str, Way]]:
    """What leaves each node towards each of its neighbours meets; and what is left out."""
    ways: dict[str, dict[str, Way]] = {name: {} for name in topo.nodes()}
    left_out = set()
    for a, b, options in topo.links(withInfo=True):
        both = {key: value for key, value in options.items() if key not in _PLUGS}
        if b in ways[a]:
            raise UserError(f"{a} and {b} have two links; between two nodes there is one")
        for near, far, end in ((a, b, "params1"), (b, a, "params2")):
            # As Mininet's Link does: options for both ends win over those for one.
            own = {**(options.get(end) or {}), **both}
            try:
                ways[near][far] = _way(own)
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
    if any(way.rate_bps < math.inf for way in every):
        notes.append(SHARED_RATE)
    return ways


def _ns(time: Any) -> float:
    """A time as tc reads it, in nanoseconds."""
    match = _TIME.fullmatch(str(0 if time is None else time).strip())
    if match is None:
        raise UserError(f"{show(time)} is no time that tc takes, such as '5ms'")
    return round(float(match[1]) * _NS[match[2][:1]])
