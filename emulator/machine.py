"""What this machine is, and what keeps it from making a sandbox."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_NO_USER_NAMESPACES = (
    # the setting, the value that forbids them, one that does not, whether root is spared
    ("user.max_user_namespaces", "0", "15000", False),
    ("kernel.unprivileged_userns_clone", "0", "1", True),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0", True),
)


def explain_sandbox_failure(error: OSError) -> str:
    """Return one paragraph for a sandbox that could not be made."""
    return (
        "A lab needs user, mount, PID, network, UTS and IPC namespaces of its own, and the kernel "
        f"refused: {error}. {_remedy(error)}"
    )


def _remedy(error: OSError) -> str:
    if not Path("/proc/self/ns/user").exists():
        return "It was built without user namespaces (CONFIG_USER_NS): boot a distribution's own."
    for name, forbids, allows, spares_root in _NO_USER_NAMESPACES:
        path = Path("/proc/sys", *name.split("."))
        applies = not (spares_root and os.geteuid() == 0)
        if applies and path.exists() and path.read_text().strip() == forbids:
            return (
                f"The setting {name} is {forbids}, which forbids it. "
                f"Allow it: sudo sysctl -w {name}={allows}"
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


def cpu_model() -> str:
    """Return the processor's name as the kernel gives it, or the architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def memory_bytes() -> int:
    """Return the size of main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
