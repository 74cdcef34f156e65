"""What a test needs of the machine: a store, a lab. Where it is absent the test is skipped.

Only what the machine lacks skips a test: a store that is not installed, namespaces that the kernel
refuses. What is ours and does not work fails it. WANLAT_REQUIRE names stores and programs that
must be there; then nothing is skipped for want of them, or of a lab.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from wanlat.emulator import doctor
from wanlat.emulator.lab import Lab
from wanlat.systems import registry
from wanlat.systems.engine.definition import SHIPPED
from wanlat.systems.engine.program import find as find_program
from wanlat.systems.errors import SystemMissing
from wanlat.topologies import mininet_import
from wanlat.topologies.errors import MachineError
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve
from wanlat.topologies.variants import with_nodes

_OURS = {"quorum", "service"}
_DEBIAN = {name: name for name in ("tshark", "zsh", "fish")}
_DEBIAN |= {
    "sshd": "openssh-server",
    "slurmctld": "slurm-wlm",
    "mvn": "maven",
    "javac": "default-jdk-headless",
}
"""The packages of Debian that programs are in."""
_REQUIRED = os.environ.get("WANLAT_REQUIRE", "").split()


def needs(*names: str) -> None:
    """Skip where a store, a program or Mininet is absent, and say how to get it."""
    tools: dict[str, Callable[[], object]] = {
        **{name: partial(registry.find_tool, name) for name in registry.tools()},
        "nginx-light": _nginx,
        **{name: partial(_on_path, name) for name in _DEBIAN},
        "mininet": _mininet,
        "chromium": chromium,
    }
    for name in names:
        find = tools[name] if name in tools else registry.get(name).find
        try:
            find()
        except SystemMissing as absent:
            if name in _REQUIRED or name in _OURS:
                raise
            pytest.skip(str(absent))


def _nginx() -> None:
    front = registry.get("minio-nginx").definition.front
    assert front is not None
    find_program(front.program, SHIPPED)


def _on_path(name: str) -> None:
    if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
        package = _DEBIAN[name]
        raise SystemMissing(f"{name} is not installed (Debian, Ubuntu: apt-get install {package})")


def _mininet() -> None:
    if not mininet_import.is_installed():
        raise SystemMissing("Mininet is not installed (Debian, Ubuntu: apt-get install mininet)")


def chromium() -> str:
    """The path of a browser, where what drives it is installed too."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise SystemMissing("chromium is not installed (Debian: apt-get install chromium)")
    for module in ("playwright", "axe_playwright_python"):
        if find_spec(module) is None:
            raise SystemMissing(
                f"{module} is not installed (pip install --require-hashes -r "
                "requirements-browser.txt)"
            )
    return found


@contextmanager
def lab_of(
    topology: str,
    storage: Literal["memory", "disk"] = "memory",
    nodes: int | None = None,
    **given: Any,
) -> Iterator[Lab]:
    """A lab, of so many nodes if not the topology's; skips where this machine cannot hold one."""
    asked = load(topology)
    plan = resolve(asked if nodes is None else with_nodes(asked, nodes))
    with ExitStack() as stack:
        try:
            lab = stack.enter_context(Lab(plan, storage=storage, **given))
        except MachineError as impossible:
            if _REQUIRED or not machine_lacks_a_lab():
                raise
            pytest.skip(str(impossible))
        yield lab


@cache
def machine_lacks_a_lab() -> bool:
    """Whether `wanlat doctor` finds no way to a lab, and the kernel does refuse the namespaces.

    The second is asked of somebody else's program: a doctor who finds our own bug skips nothing.
    """
    if all(check.ok for check in doctor.examine() if check.name == "sandbox"):
        return False
    namespaces = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork"]
    done = subprocess.run([*namespaces, "true"], capture_output=True, check=False)
    return done.returncode != 0
