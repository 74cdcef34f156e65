"""wanlat's own backends, and the bare path: a lab of two sites of one node each.

    python -m benchmarks.emulation.labs BACKEND TASK OUT

`wire` runs in this process; `netem` needs a kernel that has it, so it runs this file in User-Mode
Linux. ``bare`` is a lab without any impairment: what the method itself costs.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.emulation import contender
from benchmarks.emulation.contender import Found, Task
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.emulator.lab import BackendName, Lab
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.resolve import Impairment, LanLink, Node, Plan, Site, WanLink

_ENVIRONMENT = {"PYTHONPATH": str(SEARCH_PATH)}


class LabContender:
    """A backend in a lab on this kernel; ``backend`` None is the bare path."""

    def __init__(self, name: str, backend: BackendName | None) -> None:
        self.name = name
        self.version = "this checkout" if backend else f"Linux {platform.release()}"
        self._backend = backend

    def measure(self, task: Task) -> Found:
        """Carry a task out, in a fresh lab for each RTT."""
        found = Found()
        for rtt_ms, count in task.rtts_ms.items():
            with Lab(_plan(rtt_ms if self._backend else 0), backend=self._backend) as lab:
                found.rtt_ns[rtt_ms] = _ping(lab, count)
        with Lab(
            _plan(task.throughput_rtt_ms if self._backend else 0), backend=self._backend
        ) as lab:
            found.gbit_per_s = _iperf(lab, task.throughput_s)
        return found


class UserModeLinuxContender:
    """A backend (None: the bare path) in a lab inside User-Mode Linux, on the host's files."""

    def __init__(self, name: str, backend: BackendName | None) -> None:
        self.name = name
        self.version = "User-Mode Linux"
        self._backend = backend

    def measure(self, task: Task) -> Found:
        """Boot the kernel, carry the task out in it, and read what it wrote."""
        from tests.kernel import boot

        # Not in /tmp, of which that kernel may have one of its own.
        with tempfile.TemporaryDirectory(prefix=".emulation-", dir=SEARCH_PATH) as directory:
            out = Path(directory, "found.json")
            words = json.dumps(asdict(task) | {"rtts_ms": list(task.rtts_ms.items())})
            printed = BytesIO()
            argv = [sys.executable, "-m", "benchmarks.emulation.labs"]
            code = boot.run([*argv, self._backend or "bare", words, str(out)], output=printed)
            if code != 0 or not out.exists():
                raise RunFailed(
                    f"The measurement in User-Mode Linux ended with code {code} and said:\n"
                    f"{printed.getvalue()[-2000:].decode(errors='replace')}"
                )
            return Found.parse(out.read_text("utf-8"))


def _plan(rtt_ms: float) -> Plan:
    way = Impairment(delay_ns=round(rtt_ms * 1e6 / 2))
    plain = Impairment()
    nodes = [Node(f"n{each}", f"dc{each}", f"10.{each}.0.1") for each in (1, 2)]
    sites = tuple(
        Site(node.site, index, f"10.{index}.0.0/16", f"10.{index}.255.254", (node,))
        for index, node in enumerate(nodes, 1)
    )
    lans = tuple(LanLink(node.name, node.site, plain, plain) for node in nodes)
    return Plan("emulation", sites, tuple(nodes), lans, (WanLink("dc1", "dc2", way, way),))


def _ping(lab: Lab, count: int) -> list[int]:
    lab.spawn("n2", contender.SERVE, env=_ENVIRONMENT)
    argv = contender.ask(lab.node("n2").address, contender.PORT, count)
    times: list[int] = json.loads(_output(lab, argv))
    return times


def _iperf(lab: Lab, seconds: int) -> float:
    lab.spawn("n2", contender.iperf_server())
    _wait_for(lab, contender.IPERF_PORT)
    argv = contender.iperf_client(lab.node("n2").address, contender.IPERF_PORT, seconds)
    return contender.gbit_per_s(_output(lab, argv))


def _wait_for(lab: Lab, port: int) -> None:
    """Wait until n2 listens on ``port``. Raises RunFailed after two seconds."""
    listing = ["ss", "--listening", "--tcp", "--numeric", "--no-header"]
    for _ in range(40):
        if f":{port} " in lab.run("n2", listing).stdout:
            return
    raise RunFailed(f"Nothing came to listen on port {port}.")


def _output(lab: Lab, argv: list[str]) -> str:
    done: subprocess.CompletedProcess[str] = lab.run("n1", argv, env=_ENVIRONMENT, timeout_s=300)
    if done.returncode != 0:
        raise RunFailed(f"{argv[0]} failed: {done.stderr[-500:] or done.stdout[-500:]}")
    return done.stdout


def _inside(arguments: list[str]) -> None:
    backend, words, out = arguments
    raw: dict[str, Any] = json.loads(words)
    task = Task(**raw | {"rtts_ms": {float(rtt): count for rtt, count in raw["rtts_ms"]}})
    chosen: BackendName | None = "netem" if backend == "netem" else None
    found = LabContender(backend, chosen).measure(task)
    Path(out).write_text(found.as_json(), "utf-8")


if __name__ == "__main__":
    _inside(sys.argv[1:])
