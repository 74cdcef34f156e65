"""What this machine lets a lab do, and how to mend what it does not."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Obstacle:
    """Something that keeps labs from working here, and the command that mends it."""

    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


def _sysctl(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None


def user_namespace_obstacle() -> Obstacle | None:
    """Return the setting that forbids unprivileged user namespaces, if one is known to."""
    if not Path("/proc/self/ns/user").exists():
        return Obstacle(
            "This kernel was built without user namespaces (CONFIG_USER_NS).",
            "Use a distribution's own kernel.",
        )
    if _sysctl("user.max_user_namespaces") == "0":
        return Obstacle(
            "User namespaces are switched off: user.max_user_namespaces is 0.",
            "Allow them: sudo sysctl -w user.max_user_namespaces=15000",
        )
    if os.geteuid() == 0:
        return None
    if _sysctl("kernel.unprivileged_userns_clone") == "0":
        return Obstacle(
            "User namespaces are for root only here: kernel.unprivileged_userns_clone is 0.",
            "Allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1",
        )
    if _sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1":
        return Obstacle(
            "AppArmor restricts user namespaces here: "
            "kernel.apparmor_restrict_unprivileged_userns is 1.",
            "Allow them: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    return None


def explain_sandbox_failure(error: OSError) -> str:
    """Return one paragraph for a sandbox that could not be made."""
    obstacle = user_namespace_obstacle()
    if obstacle is not None:
        return f"A lab needs its own namespaces, and the kernel refused: {error}. {obstacle}"
    if "proc" in str(error):
        return (
            f"A lab needs a /proc of its own, and the kernel refused: {error}. Containers mask "
            "parts of /proc, which forbids that: run outside the container, or start it with "
            "--security-opt systempaths=unconfined (Docker) or --security-opt unmask=ALL (Podman)."
        )
    return (
        f"A lab needs user, mount, PID, network, UTS and IPC namespaces, and the kernel refused: "
        f"{error}. Seccomp filters of containers do that: run outside the container, or start it "
        "with --security-opt seccomp=unconfined. `wanlat doctor` checks each need in turn."
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


def available_memory_bytes() -> int | None:
    """Return how much memory can be had without swapping; None where the kernel does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except OSError:
        pass
    return None


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
