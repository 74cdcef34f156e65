"""The emulators of others, each in namespaces of its own: the host's network stays as it is.

    python -m benchmarks.emulation.peers NAME BINARY RTT_MS COUNT SECONDS      inside

What runs inside is root there and nobody outside; every process and interface ends with it. It
prints what the asking program printed: round trips if COUNT, else iperf3's JSON.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.emulation.pingpong import PORT, SERVE, ask_command
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.systems.engine.cache import Cache
from wanlat.systems.engine.defined import recipe_of
from wanlat.systems.engine.definition import Install, Program, Version
from wanlat.systems.engine.install import install
from wanlat.systems.engine.program import find
from wanlat.systems.engine.progress import Reporter
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.units import Size

RATTAN = Program(
    name="rattan",
    install=Install(
        cargo="rattan", version="0.1.1", path_too=True, minutes=6, disk=Size(1_500_000_000)
    ),
)
TOXIPROXY = Program(
    name="toxiproxy",
    install=Install(
        go="github.com/Shopify/toxiproxy/v2/cmd/server", version="v2.5.0", path_too=True
    ),
    version=Version(match="(?!)"),  # only the linker's record tells it
)
IPERF_PORT = 5201
_API_PORT, _PROXY_PORT = 8474, 9000
_UNSHARE = (
    *("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork"),
    *("--mount-proc", "--kill-child"),
)
_TIMEOUT_S = 300


def build() -> None:
    """Build both into the user's cache, where they are not yet. Raises MachineError."""
    recipes = [recipe_of(peer, peer.name) for peer in (RATTAN, TOXIPROXY)]
    install([each for each in recipes if each], Cache.from_environment(), Reporter())


class Peer:
    """One of them, started anew for each RTT and for the throughput."""

    def __init__(self, program: Program) -> None:
        """Raises SystemMissing when it is not there."""
        found = find(program, Path())
        self._arguments = (program.name, str(found.path))
        self.version = found.version.removeprefix("v")

    def ping(self, rtt_ms: float, count: int) -> list[int]:
        """Return round-trip times, ns. Raises RunFailed."""
        times: list[int] = json.loads(self._inside(rtt_ms, count, 0))
        return times

    def gbit_per_s(self, rtt_ms: float, seconds: int) -> float:
        """Return what one TCP stream gets through. Raises RunFailed."""
        return received(self._inside(rtt_ms, 0, seconds))

    def _inside(self, *numbers: float) -> str:
        module = (sys.executable, "-m", "benchmarks.emulation.peers")
        done = subprocess.run(
            [*_UNSHARE, *module, *self._arguments, *map(str, numbers)],
            cwd=SEARCH_PATH,
            env=os.environ | {"PYTHONPATH": str(SEARCH_PATH)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            name = self._arguments[0]
            raise RunFailed(f"{name} ended with code {done.returncode}: {done.stderr[-1000:]}")
        return done.stdout


def iperf_client(host: str, port: int, seconds: int) -> list[str]:
    """Return the command that sends one TCP stream as fast as it goes, and prints JSON."""
    bounds = ["--time", str(seconds), "--omit", "1", "--connect-timeout", "5000"]
    return ["iperf3", "--client", host, "--port", str(port), *bounds, "--json"]


def received(printed: str) -> float:
    """Return what arrived by iperf3's JSON, Gbit/s. Raises RunFailed with its error."""
    document = json.loads(printed)
    if "error" in document:
        raise RunFailed(f"iperf3: {document['error']}")
    return float(document["end"]["sum_received"]["bits_per_second"]) / 1e9


def _main(name: str, binary: str, rtt_ms: float, count: int, seconds: int) -> None:
    """Serve on one side of an emulator, ask from the other, print what the asking one printed."""
    for argv in (["mount", "-t", "tmpfs", "none", "/run"], ["ip", "link", "set", "lo", "up"]):
        subprocess.run(argv, check=True)
    serving = SERVE if count else ["iperf3", "--server", "--port", str(IPERF_PORT)]
    port = PORT if count else IPERF_PORT
    with ExitStack() as stack:
        _start(stack, serving)
        if name == "toxiproxy":
            _start(stack, [binary, "-host", "127.0.0.1", "-port", str(_API_PORT)])
            _set_up_toxiproxy(port, rtt_ms)
            argv = _asking("127.0.0.1", _PROXY_PORT, count, seconds)
        else:
            # The address of this end is known to the program inside only.
            asking = " ".join(_asking("$RATTAN_BASE", port, count, seconds))
            one_way = f"{rtt_ms * 1000 / 2:.0f}us"
            delays = ("--uplink-delay", one_way, "--downlink-delay", one_way)
            argv = [binary, "link", *delays, "--", "sh", "-c", asking]
        quiet = os.environ | {"RUST_LOG": "off"}  # rattan logs to the stream we read from
        subprocess.run(argv, check=True, env=quiet)


def _asking(host: str, port: int, count: int, seconds: int) -> list[str]:
    return ask_command(host, port, count) if count else iperf_client(host, port, seconds)


def _start(stack: ExitStack, argv: Sequence[str]) -> None:
    devices = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    stack.callback(subprocess.Popen(argv, **devices).kill)


def _set_up_toxiproxy(port: int, rtt_ms: float) -> None:
    """Have it listen for the port, with a `latency` toxic in each direction."""
    ends = {"listen": f"127.0.0.1:{_PROXY_PORT}", "upstream": f"127.0.0.1:{port}"}
    _post("/proxies", {"name": "path", "enabled": True, **ends})
    # Whole milliseconds are all that it takes: an odd RTT is split unevenly, with the same sum.
    there_ms = round(rtt_ms) // 2
    for stream, delay_ms in (("upstream", there_ms), ("downstream", round(rtt_ms) - there_ms)):
        toxic = {"type": "latency", "stream": stream, "attributes": {"latency": delay_ms}}
        _post("/proxies/path/toxics", toxic)


def _post(path: str, body: dict[str, Any]) -> None:
    for attempt in range(100):
        connection = http.client.HTTPConnection("127.0.0.1", _API_PORT, timeout=5)
        try:
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            if answer.status >= 300:
                raise RunFailed(f"toxiproxy refused {path}: {answer.read()[:300]!r}")
            return
        except ConnectionRefusedError:
            if attempt == 99:
                raise
            time.sleep(0.05)
        finally:
            connection.close()


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
