"""rattan: `rattan link` between a namespace of its making and the one it is started in.

python -m benchmarks.emulation.rattan BINARY RTT_MS COUNT SECONDS      inside namespaces
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.emulation import contender
from wanlat.topologies.errors import RunFailed


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
