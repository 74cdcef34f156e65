"""What every emulator that takes part can be asked for, and what it answers."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Protocol

PORT = 7000
IPERF_PORT = 5201

SERVE = (sys.executable, "-m", "benchmarks.emulation.pingpong", "serve", str(PORT))


def ask(host: str, port: int, count: int) -> list[str]:
    """Return the command that prints ``count`` round-trip times."""
    program = (sys.executable, "-m", "benchmarks.emulation.pingpong", "ask")
    return [*program, host, str(port), str(count)]


def iperf_server(port: int = IPERF_PORT) -> list[str]:
    """Return the command of iperf3's receiving end."""
    return ["iperf3", "--server", "--port", str(port)]


def iperf_client(host: str, port: int, seconds: int) -> list[str]:
    """Return the command that sends one TCP stream as fast as it goes, and prints JSON."""
    bounds = ["--time", str(seconds), "--omit", "1", "--connect-timeout", "5000"]
    return ["iperf3", "--client", host, "--port", str(port), *bounds, "--json"]


def gbit_per_s(printed: str) -> float:
    """Read what arrived, per second, from iperf3's JSON. Raises ValueError with its error."""
    document = json.loads(printed)
    if "error" in document:
        raise ValueError(f"iperf3: {document['error']}")
    return float(document["end"]["sum_received"]["bits_per_second"]) / 1e9


@dataclass(frozen=True)
class Task:
    """What one turn of one contender measures: round trips at each RTT, and a throughput."""

    rtts_ms: dict[float, int]
    """RTT to ask for → how many round trips to measure."""
    throughput_rtt_ms: float = 1.0
    throughput_s: int = 3


@dataclass
class Found:
    """What one turn found: by requested RTT the measured ones, ns; and Gbit/s."""

    rtt_ns: dict[float, list[int]] = field(default_factory=dict)
    gbit_per_s: float = 0.0

    def as_json(self) -> str:
        """Return a text that `parse` reads."""
        return json.dumps({"rtt_ns": list(self.rtt_ns.items()), "gbit_per_s": self.gbit_per_s})

    @classmethod
    def parse(cls, text: str) -> Found:
        """Read what `as_json` wrote."""
        raw = json.loads(text)
        return cls({float(rtt): times for rtt, times in raw["rtt_ns"]}, raw["gbit_per_s"])


class Contender(Protocol):
    """An emulator that takes part. ``version`` is for the table."""

    name: str
    version: str

    def measure(self, task: Task) -> Found:
        """Carry a task out. Raises MachineError, RunFailed."""
        ...
