"""Whether the machine's limits admit a lab of a certain size: said before it is built.

The limits are read by the guard before it makes the sandbox: inside, /proc/sys/user shows the
limits of the sandbox's own user namespace, which has none.

Neighbour entries need no room: those of a lab are permanent, and permanent entries do not count
towards net.ipv4.neigh.default.gc_thresh3 (neigh_alloc(), net/core/neighbour.c, since Linux 5.0).
"""

from __future__ import annotations

import resource

from wanlat.topologies.errors import MachineError

# Besides those of sites and nodes: the guard's, the core, and one to await the end with.
_OWN_NAMESPACES = 3
_OWN_DESCRIPTORS = 64
_OWN_MOUNTS = 1000  # what the host has mounted is mounted in the sandbox too

# An empty namespace with its interface and routes: 0.36 MB of kernel memory on Linux 6.18.
_NODE_BYTES = 400_000

Limits = dict[str, int]


def read_limits() -> Limits:
    """Return what this process may have, by name. A limit that cannot be read is left out."""
    limits: Limits = {}
    for name, path in (
        ("namespaces", "/proc/sys/user/max_net_namespaces"),
        ("mounts", "/proc/sys/fs/mount-max"),
    ):
        try:
            with open(path, encoding="ascii") as file:
                limits[name] = int(file.read())
        except (OSError, ValueError):
            continue
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    limits["memory"] = int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for name, value in (("descriptors", soft), ("hard descriptors", hard)):
        if value != resource.RLIM_INFINITY:
            limits[name] = value
    return limits


def check(limits: Limits, *, sites: int, nodes: int, sockets: int) -> None:
    """Raise MachineError when a lab needs more than ``limits`` admit.

    ``sockets`` are those of the wire process: two for every spliced link.
    """
    namespaces = sites + nodes + _OWN_NAMESPACES
    needs = (
        (
            "namespaces",
            namespaces,
            "network namespaces",
            "user.max_net_namespaces",
            f"Raise it: sudo sysctl -w user.max_net_namespaces={2 * namespaces}",
        ),
        (
            "mounts",
            namespaces + _OWN_MOUNTS,
            "mounts",
            "fs.mount-max",
            f"Raise it: sudo sysctl -w fs.mount-max={namespaces + 100_000}",
        ),
        (
            "descriptors",
            sites + _OWN_DESCRIPTORS,
            "open files in one process",
            "ulimit -n",
            f"Raise it: ulimit -n {sites + _OWN_DESCRIPTORS}",
        ),
        (
            "hard descriptors",
            sockets + _OWN_DESCRIPTORS if sockets else 0,
            "open files in one process",
            "ulimit -Hn",
            f"Raise it, as root: ulimit -Hn {sockets + _OWN_DESCRIPTORS}; or, where a service "
            "manager sets it, with its LimitNOFILE.",
        ),
    )
    for key, need, what, name, remedy in needs:
        limit = limits.get(key)
        if limit is not None and need > limit:
            raise MachineError(
                f"A lab of {nodes} nodes in {sites} sites needs {need} {what}, and the limit "
                f"({name}) is {limit}. {remedy}"
            )
    memory = limits.get("memory")
    if memory is not None and (sites + nodes) * _NODE_BYTES > memory:
        raise MachineError(
            f"A lab of {nodes} nodes in {sites} sites needs about "
            f"{(sites + nodes) * _NODE_BYTES / 1e6:.0f} MB of memory for its network alone, and "
            f"{memory / 1e6:.0f} MB are available. Use a smaller topology."
        )
