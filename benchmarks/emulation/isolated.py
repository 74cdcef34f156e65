"""Namespaces of their own for programs that set up networks themselves: the host's stays as it is.

What runs inside is root there and nobody outside; every process and interface ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from emulator.binaries import CHECKOUT
from topologies.errors import RunFailed

_UNSHARE = (
    *("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork"),
    *("--mount-proc", "--kill-child"),
)


def run_module(module: str, arguments: Sequence[str], timeout_s: float) -> str:
    """Run a Python module in namespaces of its own and return what it printed.

    Raises RunFailed with its last words.
    """
    argv = [*_UNSHARE, sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            argv,
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
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
