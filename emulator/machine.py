"""What this machine is, what it allows a process, and why it refuses a sandbox.

The limits are read by the guard before it makes the sandbox: inside, /proc/sys/user shows the
limits of the sandbox's own user namespace, which has none.

Neighbour entries need no room: those of a lab are permanent, and permanent entries do not count
towards net.ipv4.neigh.default.gc_thresh3 (neigh_alloc(), net/core/neighbour.c, since Linux 5.0).
"""

from __future__ import annotations

import os
import resource
import sys

from wanlat.topologies.errors import MachineError

# Besides those of sites and nodes: the guard's, the core, and one to await the end with.
_OWN_NAMESPACES = 3
_OWN_DESCRIPTORS = 64
_OWN_MOUNTS = 1000  # what the host has mounted is mounted in the sandbox too
# An empty namespace with its interface and routes: 0.36 MB of kernel memory on Linux 6.18.
_NODE_BYTES = 400_000

Limits = dict[str, int]
"""What a process may have, by the name of what limits it. One that cannot be read is left out."""

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_NO_USER_NAMESPACES = (
    # the setting, the value that forbids them, one that does not, whether root is spared
    ("user.max_user_namespaces", "0", "15000", False),
    ("kernel.unprivileged_userns_clone", "0", "1", True),
    (_APPARMOR, "1", "0", True),
)
_PROFILE = (
    r"printf 'abi <abi/4.0>,\nprofile wanlat {python} flags=(unconfined) {{\n  userns,\n}}\n' | "
    "sudo tee /etc/apparmor.d/wanlat && sudo apparmor_parser --replace /etc/apparmor.d/wanlat"
)


def _read(path: str) -> str:
    """Return the text of a file of the kernel's; nothing where there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _sysctl(name: str) -> str:
    return _read("/proc/sys/" + name.replace(".", "/"))


def _field(path: str, name: str) -> str:
    """Return the first value of a name in a file of the form ``name: value``."""
    for line in _read(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def cpu_model() -> str:
    """Return the processor's name as the kernel gives it, or the architecture."""
    return _field("/proc/cpuinfo", "model name") or os.uname().machine


def memory_bytes() -> int:
    """Return the size of main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def available_memory_bytes() -> int | None:
    """Return how much memory can be had without swapping; None where that is unknown."""
    available = _field("/proc/meminfo", "MemAvailable")
    return int(available.split()[0]) * 1024 if available else None


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def read_limits() -> Limits:
    """Return what this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    values = {
        "user.max_net_namespaces": _sysctl("user.max_net_namespaces"),
        "fs.mount-max": _sysctl("fs.mount-max"),
        "MemAvailable": available_memory_bytes(),
        "ulimit -n": soft if soft != resource.RLIM_INFINITY else None,
        "ulimit -Hn": hard if hard != resource.RLIM_INFINITY else None,
    }
    return {name: int(value) for name, value in values.items() if value not in (None, "")}


def check_limits(limits: Limits, *, sites: int, nodes: int, sockets: int) -> None:
    """Raise MachineError when a lab needs more than ``limits`` admit, before it is built.

    ``sockets`` are those of the wire process: two for every spliced link.
    """
    namespaces = sites + nodes + _OWN_NAMESPACES
    mounts = namespaces + _OWN_MOUNTS
    soft, hard = sites + _OWN_DESCRIPTORS, sockets + _OWN_DESCRIPTORS if sockets else 0
    files, memory = "open files in one process", (sites + nodes) * _NODE_BYTES
    for name, need, what, remedy in (
        ("user.max_net_namespaces", namespaces, "network namespaces", "sudo sysctl -w {0}={1}"),
        ("fs.mount-max", mounts, "mounts", "sudo sysctl -w {0}={1}"),
        ("ulimit -n", soft, files, "{0} {1}"),
        ("ulimit -Hn", hard, files, "as root, {0} {1}; or LimitNOFILE of a service manager"),
        ("MemAvailable", memory, "bytes of memory", "use a smaller topology"),
    ):
        if need > limits.get(name, need):
            raise MachineError(
                f"A lab of {nodes} nodes in {sites} sites needs {need} {what}, and the limit "
                f"({name}) is {limits[name]}. To allow it: {remedy.format(name, 2 * need)}"
            )


def explain_sandbox_failure(error: OSError) -> str:
    """Return one paragraph for a sandbox that could not be made."""
    return (
        "A lab needs user, mount, PID, network, UTS and IPC namespaces of its own, and the kernel "
        f"refused: {error}. {_remedy(error)}"
    )


def _remedy(error: OSError) -> str:
    if not os.path.exists("/proc/self/ns/user"):  # noqa: PTH110 - the guard has no pathlib
        return "It was built without user namespaces (CONFIG_USER_NS): boot a distribution's own."
    for name, forbids, allows, spares_root in _NO_USER_NAMESPACES:
        if _sysctl(name) == forbids and not (spares_root and os.geteuid() == 0):
            forbidden = f"The setting {name} is {forbids}, which forbids it."
            allow = f"sudo sysctl -w {name}={allows}"
            if name != _APPARMOR:
                return f"{forbidden} Allow it: {allow}"
            profile = _PROFILE.format(python=os.path.realpath(sys.executable))
            return (
                f"{forbidden} Ubuntu has it so since 23.10. Either allow it to all programs until "
                f"the next boot: {allow}; or to wanlat's Python alone: {profile}"
            )
    if error.filename == "/proc":
        return (
            "Containers mask parts of /proc, which forbids a /proc of the lab's own: run outside "
            "the container, or start it with --security-opt systempaths=unconfined (Docker) or "
            "--security-opt unmask=ALL (Podman)."
        )
    return (
        "Seccomp filters of containers do that: run outside the container, or start it with "
        "--security-opt seccomp=unconfined. `wanlat doctor` checks each need in turn."
    )
