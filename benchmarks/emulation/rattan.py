"""rattan: `rattan link` between a namespace of its making and the one it is started in.

python -m benchmarks.emulation.rattan BINARY RTT_MS COUNT SECONDS      inside namespaces
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.emulation import contender, isolated
from benchmarks.emulation.contender import Found, Task
from benchmarks.emulation.peers import RATTAN, find
from topologies.errors import RunFailed

_TIMEOUT_S = 300


class RattanContender:
    """The rattan that is installed."""

    name = "rattan"

    def __init__(self) -> None:
        binary = find(RATTAN)
        self.version = binary.version
        self._path = binary.path

    def measure(self, task: Task) -> Found:
        """Start rattan once for each RTT, and once for the throughput."""
        found = Found()
        for rtt_ms, count in task.rtts_ms.items():
            found.rtt_ns[rtt_ms] = json.loads(self._inside(rtt_ms, count, 0))
        printed = self._inside(task.throughput_rtt_ms, 0, task.throughput_s)
        found.gbit_per_s = contender.gbit_per_s(printed)
        return found

    def _inside(self, rtt_ms: float, count: int, seconds: int) -> str:
        arguments = (str(self._path), str(rtt_ms), str(count), str(seconds))
        return isolated.run_module("benchmarks.emulation.rattan", arguments, _TIMEOUT_S)


def _inside(binary: str, rtt_ms: float, count: int, seconds: int) -> None:
    """Serve in this namespace, ask from rattan's own; print what the asking program printed."""
    for argv in (["mount", "-t", "tmpfs", "none", "/run"], ["ip", "link", "set", "lo", "up"]):
        subprocess.run(argv, check=True)
    serving = contender.SERVE if count else contender.iperf_server()
    server = subprocess.Popen(serving, stdout=subprocess.DEVNULL)
    try:
        # The address of this end is known to the program inside only: $RATTAN_BASE.
        asking = (
            contender.ask("$RATTAN_BASE", contender.PORT, count)
            if count
            else contender.iperf_client("$RATTAN_BASE", contender.IPERF_PORT, seconds)
        )
        one_way = f"{rtt_ms * 1000 / 2:.0f}us"
        done = subprocess.run(
            [
                *(binary, "link", "--uplink-delay", one_way, "--downlink-delay", one_way),
                *("--", "sh", "-c", " ".join(asking)),
            ],
            capture_output=True,
            text=True,
            env=os.environ | {"RUST_LOG": "off"},  # it logs to the stream we read from
            check=False,
        )
    finally:
        server.kill()
        server.wait()
    if done.returncode != 0:
        raise RunFailed(f"rattan ended with code {done.returncode}: {done.stderr[-800:]}")
    sys.stdout.write(done.stdout)


if __name__ == "__main__":
    _inside(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
