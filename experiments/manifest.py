"""What a manifest has when a run begins: what runs, where, on which machine."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wanlat.bundle.write import now_iso
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import Lab
from wanlat.emulator.machine import cores, cpu_model, memory_bytes
from wanlat.systems.engine.cache import sha256_of
from wanlat.topologies.errors import MachineError
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.version import VERSION

_INSTRUMENTS = ("oneshot", "wire")
_TCP_SETTINGS = (
    *("congestion_control", "slow_start_after_idle", "rmem", "wmem"),
    *("ecn", "sack", "no_metrics_save"),
)


def beginning(kind: str, seed: int) -> dict[str, Any]:
    """Return what every manifest begins with."""
    return {
        "kind": kind,
        "status": "running",
        "reason": None,
        "warnings": [],
        "seed": seed,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": now_iso(),
        "ended": None,
        "instruments": instruments(),
        **machine(),
    }


def instruments() -> list[dict[str, str]]:
    """Return the programs of our own that measure, and move packets; of those that are built."""
    programs = []
    for name in _INSTRUMENTS:
        with suppress(MachineError):
            programs.append({"name": name, "version": VERSION, "sha256": sha256_of(binary(name))})
    return programs


def manifest_of(
    kind: str,
    *,
    topology: Topology | None,
    seed: int,
    storage: str,
    places: Mapping[str, Mapping[str, str]],
    systems: Sequence[Mapping[str, Any]],
    own: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of a run that begins. ``own``: the keys of only this kind of run.

    ``places``: ``client`` and ``target``, each with its ``node`` and ``site``.
    """
    return {
        **beginning(kind, seed),
        **own,
        "topology": topology.to_dict() if topology is not None else None,
        "backend": None,
        "storage": storage,
        **places,
        "systems": list(systems),
        "tcp": None,
    }


def place_of(plan: Plan, node: str) -> dict[str, str]:
    """Return a node and its site, as manifests have them."""
    return {"node": node, "site": plan.node(node).site}


def machine() -> dict[str, Any]:
    """Return the machine's part of a manifest."""
    return {
        "wanlat": VERSION,
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": {"model": cpu_model(), "cores": cores()},
        "memory_bytes": memory_bytes(),
    }


def tcp(lab: Lab, node: str) -> dict[str, Any]:
    """Return the TCP settings in force on a node: the kernel's defaults, unchanged."""
    files = [f"/proc/sys/net/ipv4/tcp_{name}" for name in _TCP_SETTINGS]
    lines = lab.run(node, ["cat", *files]).stdout.splitlines()
    values = [" ".join(line.split()) for line in lines]
    return {
        name: int(value) if value.isdigit() else value
        for name, value in zip(_TCP_SETTINGS, values, strict=False)
    }
