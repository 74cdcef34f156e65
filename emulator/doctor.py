"""Checks of the machine, each done and not guessed: what works, what does not, what fixes it."""

from __future__ import annotations

import errno
import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wanlat.emulator.backends import choice
from wanlat.emulator.binaries import binary
from wanlat.emulator.cgroup import CpuGroup
from wanlat.emulator.lab import BackendName, Lab
from wanlat.emulator.links import requested
from wanlat.emulator.machine import check_limits, cores, cpu_model, read_limits
from wanlat.topologies.errors import MachineError, WanlatError
from wanlat.topologies.resolve import Impairment, LanLink, Node, Plan, Site

_PROGRAMS = ("wire", "oneshot", "quorum")
_RECEIVE_BUFFER_BYTES = 8 << 20
_SEEDED_LINUX = (6, 6)  # TCA_NETEM_PRNG_SEED


@dataclass(frozen=True)
class Check:
    """One question to the machine. ``required``: nothing can be measured without it."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True


def examine() -> Iterator[Check]:
    """Yield the checks one by one, as they are done."""
    yield Check(
        "python",
        sys.version_info >= (3, 11),
        platform.python_version(),
        "wanlat needs Python 3.11 or later (Debian, Ubuntu: apt-get install python3.11-venv)",
    )
    yield Check("machine", True, f"Linux {platform.release()}, {cores()} × {cpu_model()}")
    for name in _PROGRAMS:
        try:
            yield Check(f"program {name}", True, str(binary(name)))
        except WanlatError as error:
            yield Check(f"program {name}", False, "not built", str(error))
    try:
        with Lab(_one_node()) as lab:
            yield Check("sandbox", True, "user, mount, PID, network, UTS and IPC namespaces")
            yield _netem(lab)
            yield _direct_io(lab)
    except WanlatError as error:
        yield Check("sandbox", False, "a lab cannot be made", str(error))
    yield _receive_buffer()
    yield _processor_limits()


def demand_lab(plan: Plan | None = None, backend: BackendName | None = None) -> None:
    """Raise MachineError when this machine refuses a lab, before anything is started for one.

    A lab of one node is made and ended, which takes a fraction of a second; of ``plan`` only what
    it requests of the backend, and its size, are looked at.
    """
    if plan is not None:
        if backend is not None:
            choice.check(backend, requested(plan))
        limits = read_limits()
        check_limits(limits, sites=len(plan.sites), nodes=len(plan.nodes), sockets=0)
    with Lab(_one_node(), backend=backend):
        pass


def _one_node() -> Plan:
    node = Node("n1", "here", "10.1.0.1")
    lan = LanLink("n1", "here", Impairment(), Impairment())
    site = Site("here", 1, "10.1.0.0/16", "10.1.255.254", (node,))
    return Plan("doctor", (site,), (node,), (lan,), ())


def _netem(lab: Lab) -> Check:
    if lab.backend == "netem":
        linux = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
        seed = "" if linux >= _SEEDED_LINUX else "; before Linux 6.6 its draws take no seed"
        return Check(
            "netem",
            True,
            f"the kernel has sch_netem: the default backend, unless only `wire` does it{seed}",
        )
    return Check(
        "netem",
        False,
        f"the kernel {platform.release()} has no sch_netem, or refuses it here. The backend `wire` "
        "is used instead, in user space: it keeps the order within each flow and not across "
        "flows, and needs a processor of its own under load",
        "to have netem, which is not needed: on the host, sudo modprobe sch_netem (the module is "
        "in a distribution's linux-modules-extra, kernel-modules-extra or the like)",
        required=False,
    )


def _direct_io(lab: Lab) -> Check:
    path = lab.nodes[0].host_directory / "direct"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return Check(
            "direct I/O in memory",
            False,
            "tmpfs has no O_DIRECT before Linux 6.6",
            "MinIO needs it: run it with --storage disk",
            required=False,
        )
    return Check("direct I/O in memory", True, "tmpfs has O_DIRECT, which MinIO needs")


def _receive_buffer() -> Check:
    """Wire's sockets hold what arrives while it is not running; the limit is the host's."""
    path = Path("/proc/sys/net/core/rmem_max")
    size = int(path.read_text()) if path.exists() else 0
    return Check(
        "receive buffer",
        size >= _RECEIVE_BUFFER_BYTES,
        f"net.core.rmem_max is {size} bytes",
        "bursts through the backend `wire` may be dropped (the bundle then says so); "
        f"to allow more: sudo sysctl -w net.core.rmem_max={_RECEIVE_BUFFER_BYTES}",
        required=False,
    )


def _processor_limits() -> Check:
    try:
        CpuGroup(0.5).remove()
    except MachineError as error:
        return Check(
            "processor limits",
            False,
            "the fault cpu-throttled of drills is unavailable",
            str(error),
            required=False,
        )
    return Check("processor limits", True, "a control group can be made, for cpu-throttled")
