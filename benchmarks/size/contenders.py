"""Who is timed: wanlat and, where it is installed, Mininet with Linux bridges."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

from wanlat.emulator.lab import Lab
from wanlat.emulator.owner import Owner
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.resolve import Impairment, LanLink, Node, Plan, Site, WanLink

SANDBOX, NETWORK, DIRECTORIES = "sandbox", "network and emulation", "the rest"
PHASES = (SANDBOX, NETWORK, DIRECTORIES)
OURS, PEER = "wanlat", "Mininet, Linux bridges"

_SITES = {2: 2, 10: 2, 30: 3, 100: 5, 300: 10, 1000: 20}
_DELAY_NS = 20_000_000
_MININET_SCRIPT = Path(__file__).with_name("mininet_network.py")
_SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's Mininet is installed for this one
_MININET_TIMEOUT_S = 600
_AFTER_MININET_S = 3


@dataclass(frozen=True)
class Timing:
    """One network up and down, in seconds; ``phases`` are parts of the way up."""

    up_s: float
    down_s: float
    phases: dict[str, float]


def sites_of(nodes: int) -> int:
    """Return over how many sites so many nodes are spread."""
    return _SITES.get(nodes, max(2, round(nodes**0.5 / 1.6)))


def plan(nodes: int) -> Plan:
    """Return a plan of ``nodes`` nodes; every two of its sites are joined by a delayed link."""
    count = sites_of(nodes)
    wide = Impairment(delay_ns=_DELAY_NS)
    sites = []
    for site in range(count):
        places = range(nodes * site // count, nodes * (site + 1) // count)
        members = tuple(
            Node(f"n{place + 1}", f"dc{site + 1}", f"10.{site + 1}.0.{number + 1}")
            for number, place in enumerate(places)
        )
        sites.append(
            Site(
                f"dc{site + 1}",
                site + 1,
                f"10.{site + 1}.0.0/16",
                f"10.{site + 1}.255.254",
                members,
            )
        )
    everyone = tuple(node for site in sites for node in site.nodes)
    return Plan(
        "size",
        tuple(sites),
        everyone,
        tuple(LanLink(node.name, node.site, Impairment(), Impairment()) for node in everyone),
        tuple(WanLink(a.name, b.name, wide, wide) for a, b in combinations(sites, 2)),
    )


@contextmanager
def _timed(method: str, phases: dict[str, float], phase: str) -> Iterator[None]:
    """Add what a method of Owner takes to a phase."""
    original = getattr(Owner, method)

    def timed(*arguments: Any, **more: Any) -> Any:
        start = time.monotonic()
        try:
            return original(*arguments, **more)
        finally:
            phases[phase] += time.monotonic() - start

    with patch.object(Owner, method, timed):
        yield


def time_wanlat(nodes: int) -> Timing:
    """Time a lab with the wire backend, all of whose WAN links are impaired."""
    lab = Lab(plan(nodes), backend="wire")
    phases = dict.fromkeys(PHASES, 0.0)
    start = time.monotonic()
    with ExitStack() as stack:
        with _timed("__init__", phases, SANDBOX), _timed("ask", phases, NETWORK):
            stack.enter_context(lab)
        up = time.monotonic()
        phases[DIRECTORIES] = up - start - sum(phases.values())
        answer = lab.run(
            "n1", ["ping", "-c1", "-W5", lab.nodes[-1].address], timeout_s=20
        ).returncode
        end = time.monotonic()
    down = time.monotonic()
    if answer != 0:
        raise RunFailed(f"The last of {nodes} nodes does not answer.")
    return Timing(up - start, down - end, phases)


def mininet_obstacle() -> str | None:
    """Say why Mininet cannot be timed here; None when it can."""
    if os.geteuid() != 0:
        return "Mininet needs root."
    for program, package in (("mnexec", "mininet"), ("brctl", "bridge-utils")):
        if shutil.which(program) is None:
            return f"There is no {program}: apt-get install --no-install-recommends {package}"
    return None


def time_mininet(nodes: int) -> Timing:
    """Time Mininet, in namespaces of its own: nothing of it touches the machine's network."""
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += [_SYSTEM_PYTHON, str(_MININET_SCRIPT), str(nodes), str(sites_of(nodes))]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_MININET_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RunFailed(f"Mininet failed with {nodes} nodes: {done.stderr.strip()[-500:]}")
    # Unlike a lab it does not await the kernel, which goes on taking its namespaces down and
    # would disturb what is measured next.
    time.sleep(_AFTER_MININET_S)
    found = json.loads(done.stdout.splitlines()[-1])
    if not found["works"]:
        raise RunFailed(f"The last of Mininet's {nodes} hosts does not answer.")
    return Timing(found["up_s"], found["down_s"], {})
