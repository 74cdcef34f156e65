"""What a bundle says about the machine and its TCP: enough to tell two runs apart."""

from __future__ import annotations

import platform
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.emulator.machine import cores, cpu_model, memory_bytes
from wanlat.topologies.version import VERSION

_TCP_SETTINGS = {
    "congestion_control": "tcp_congestion_control",
    "slow_start_after_idle": "tcp_slow_start_after_idle",
    "rmem": "tcp_rmem",
    "wmem": "tcp_wmem",
    "ecn": "tcp_ecn",
    "sack": "tcp_sack",
    "no_metrics_save": "tcp_no_metrics_save",
}


def collect() -> dict[str, Any]:
    """Return the machine's part of a manifest."""
    return {
        "wanlat": VERSION,
        "kernel": platform.release(),
        "cpu": {"model": cpu_model(), "cores": cores()},
        "memory_bytes": memory_bytes(),
    }


def tcp(lab: Lab, node: str) -> dict[str, Any]:
    """Return the TCP settings in force on a node: the kernel's defaults, which nobody changed."""
    files = [f"/proc/sys/net/ipv4/{name}" for name in _TCP_SETTINGS.values()]
    lines = lab.run(node, ["cat", *files]).stdout.splitlines()
    values = [" ".join(line.split()) for line in lines]
    return {
        key: int(value) if value.isdigit() else value
        for key, value in zip(_TCP_SETTINGS, values, strict=False)
    }
