"""Whether the machine's limits admit a lab of a certain size: said before it is built.

The limits are read by the guard before it makes the sandbox: inside, /proc/sys/user shows the
limits of the sandbox's own user namespace, which has none.

Neighbour entries need no room: those of a lab are permanent, and permanent entries do not count
towards net.ipv4.neigh.default.gc_thresh3 (neigh_alloc(), net/core/neighbour.c, since Linux 5.0).
"""

from __future__ import annotations

import contextlib
import resource

from wanlat.topologies.errors import MachineError

# Besides those of sites and nodes: the guard's, the core, and one to await the end with.
_OWN_NAMESPACES = 3
_OWN_DESCRIPTORS = 64
_OWN_MOUNTS = 1000  # what the host has mounted is mounted in the sandbox too

# An empty namespace with its interface and routes: 0.36 MB of kernel memory on Linux 6.18.
_NODE_BYTES = 400_000

Limits = dict[str, int]
"""What a process may have, by the name of what limits it. One that cannot be read is left out."""

_SYSCTLS = {
    "user.max_net_namespaces": "/proc/sys/user/max_net_namespaces",
    "fs.mount-max": "/proc/sys/fs/mount-max",
}
_SOFT, _HARD, _MEMORY = "ulimit -n", "ulimit -Hn", "MemAvailable"


def read_limits() -> Limits:
    """Return what this process may have."""
    limits: Limits = {}
    for name, path in _SYSCTLS.items():
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            limits[name] = int(file.read())
    memory = available_memory_bytes()
    if memory is not None:
        limits[_MEMORY] = memory
    for name, value in zip((_SOFT, _HARD), resource.getrlimit(resource.RLIMIT_NOFILE), strict=True):
        if value != resource.RLIM_INFINITY:
            limits[name] = value
    return limits


def available_memory_bytes() -> int | None:
    """Return how much memory can be had without swapping; None where the kernel does not say."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def check(limits: Limits, *, sites: int, nodes: int, sockets: int) -> None:
    """Raise MachineError when a lab needs more than ``limits`` admit.

    ``sockets`` are those of the wire process: two for every spliced link.
    """
    namespaces = sites + nodes + _OWN_NAMESPACES
    soft, hard = sites + _OWN_DESCRIPTORS, sockets + _OWN_DESCRIPTORS if sockets else 0
    needs = (
        (
            "user.max_net_namespaces",
            namespaces,
            "network namespaces",
            f"sudo sysctl -w user.max_net_namespaces={2 * namespaces}",
        ),
        (
            "fs.mount-max",
            namespaces + _OWN_MOUNTS,
            "mounts",
            f"sudo sysctl -w fs.mount-max={namespaces + 100_000}",
        ),
        (_SOFT, soft, "open files in one process", f"ulimit -n {soft}"),
        (
            _HARD,
            hard,
            "open files in one process",
            f"as root, ulimit -Hn {hard}; or LimitNOFILE, where a service manager sets it",
        ),
        (_MEMORY, (sites + nodes) * _NODE_BYTES, "bytes of memory", "use a smaller topology"),
    )
    for name, need, what, remedy in needs:
        limit = limits.get(name)
        if limit is not None and need > limit:
            raise MachineError(
                f"A lab of {nodes} nodes in {sites} sites needs {need} {what}, and the limit "
                f"({name}) is {limit}. To allow it: {remedy}"
            )
