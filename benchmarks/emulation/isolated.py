"""Namespaces of their own for programs that set up networks themselves: the host's stays as it is.

What runs inside is root there and nobody outside; every process and interface ends with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.emulation import contender
from benchmarks.emulation.contender import Found, Task
from benchmarks.emulation.peers import find
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.systems.engine.definition import Program
from wanlat.topologies.errors import RunFailed

_UNSHARE = (
    *("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork"),
    *("--mount-proc", "--kill-child"),
)
_TIMEOUT_S = 300


class IsolatedContender:
    """A program of others, started anew for each RTT and for the throughput.

    ``module`` is run in namespaces of its own as ``python -m MODULE BINARY RTT_MS COUNT SECONDS``
    and prints what the asking program printed: round trips if COUNT, else iperf3's JSON.
    Raises SystemMissing when the program is not there.
    """

    def __init__(self, recipe: Program, module: str) -> None:
        binary = find(recipe)
        self.name = recipe.name
        self.version = binary.version.removeprefix("v")
        self._module = module
        self._path = binary.path

    def measure(self, task: Task) -> Found:
        """Carry a task out. Raises RunFailed."""
        found = Found()
        for rtt_ms, count in task.rtts_ms.items():
            found.rtt_ns[rtt_ms] = json.loads(self._inside(rtt_ms, count, 0))
        printed = self._inside(task.throughput_rtt_ms, 0, task.throughput_s)
        found.gbit_per_s = contender.gbit_per_s(printed)
        return found

    def _inside(self, rtt_ms: float, count: int, seconds: int) -> str:
        arguments = (str(self._path), str(rtt_ms), str(count), str(seconds))
        return run_module(self._module, arguments, _TIMEOUT_S)


def run_module(module: str, arguments: Sequence[str], timeout_s: float) -> str:
    """Run a Python module in namespaces of its own and return what it printed.

    Raises RunFailed with its last words.
    """
    argv = [*_UNSHARE, sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            argv,
            cwd=SEARCH_PATH,
            env=os.environ | {"PYTHONPATH": str(SEARCH_PATH)},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunFailed(f"{module} took longer than {timeout_s:.0f} s.") from None
    if done.returncode != 0:
        raise RunFailed(f"{module} ended with code {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout
