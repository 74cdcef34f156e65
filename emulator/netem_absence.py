"""Why a kernel has no netem, as exactly as the machine tells, and how to have it.

sch_netem is a module of its own in most distributions; it may not be built, not be installed,
not be loaded, or not be ours to load. What is looked at is gathered first (`Facts`) and judged
then (`explain`).
"""

from __future__ import annotations

import gzip
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Built = Literal["y", "m", "n", ""]  # into the kernel, as a module, not at all; not known

_OPTION = re.compile(r"^(?:# )?CONFIG_NET_SCH_NETEM(?:=([ym])| is not set)$", re.MULTILINE)
_BARRED = re.compile(r"^\s*(?:blacklist\s+sch_netem\b|install\s+sch_netem\s+/\S*/(?:false|true)\b)")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the machine says about its kernel and that kernel's modules."""

    release: str = "6.1.0"
    kernel: str = ""  # /proc/version
    distribution: tuple[str, ...] = ()  # ID and ID_LIKE of os-release
    built: Built = ""
    built_source: str = ""  # the file that says so
    has_module_directory: bool = True
    module_file: str = ""
    barred_in: str = ""  # the file of modprobe's that forbids to load it
    is_loaded: bool = False
    loading_is_off: bool = False
    container: str = ""  # what kind
    runner: str = ""  # of a continuous integration service


@dataclass(frozen=True, slots=True)
class Absence:
    """Why there is no netem, and the way to have it."""

    why: str
    remedy: str


def explain(facts: Facts) -> Absence:
    """Return the first reason that applies."""
    return next(_reasons(facts))


def _reasons(facts: Facts) -> Iterator[Absence]:
    yield from _no_module_would_help(facts)
    yield from _not_ours_to_load(facts)
    yield from _not_installed(facts)
    if facts.barred_in:
        yield Absence(
            f"{facts.barred_in} forbids to load sch_netem",
            f"take that line out of {facts.barred_in}, then: sudo modprobe sch_netem",
        )
    yield Absence(
        "sch_netem is there, but not loaded, and the kernel did not load it when it was asked for",
        "sudo modprobe sch_netem (it says what is wrong if it fails: with Secure Boot, a missing "
        "signature); at every start: echo sch_netem | sudo tee /etc/modules-load.d/sch_netem.conf",
    )


def _no_module_would_help(facts: Facts) -> Iterator[Absence]:
    if "gvisor" in facts.kernel.lower() or "PST 2016" in facts.kernel:
        yield Absence(
            "this is gVisor, whose kernel has no queueing disciplines",
            "use another container runtime (runc), or a virtual machine",
        )
    elif facts.is_loaded:
        yield Absence(
            "sch_netem is loaded, but the kernel refuses it here",
            "what forbids it is likely a filter of the container (seccomp): run outside of it",
        )
    elif facts.built == "n" and _is_wsl(facts):
        yield Absence(
            "this is WSL2, and its kernel is built without netem"
            f" ({facts.built_source}: CONFIG_NET_SCH_NETEM is not set)",
            "build WSL2's kernel with CONFIG_NET_SCH_NETEM=y and name it in .wslconfig "
            "([wsl2] kernel=...), or use a virtual machine with a distribution's kernel",
        )
    elif facts.built == "n":
        yield Absence(
            f"this kernel ({facts.release}) is built without netem ({facts.built_source}: "
            "CONFIG_NET_SCH_NETEM is not set), as minimal kernels of virtual machines are",
            "boot a distribution's own kernel"
            + (f" on the host of this {facts.container} container" if facts.container else "")
            + ": no package adds netem to this one",
        )
    elif facts.built == "y":
        yield Absence(
            f"netem is built into this kernel ({facts.built_source}), which refuses it here",
            "what forbids it is likely a filter of the container (seccomp): run outside of it",
        )


def _not_ours_to_load(facts: Facts) -> Iterator[Absence]:
    if facts.loading_is_off:
        yield Absence(
            "this kernel loads no more modules (kernel.modules_disabled is 1)",
            "load sch_netem before that is set (/etc/modules-load.d), and restart the machine",
        )
    if facts.container and not facts.module_file:
        yield Absence(
            f"this is a {facts.container} container: the kernel and its modules are the host's, "
            "and the host has not loaded sch_netem",
            "on the host: sudo modprobe sch_netem (a package may be missing there: `wanlat doctor` "
            "on the host says which)",
        )


def _not_installed(facts: Facts) -> Iterator[Absence]:
    if facts.module_file:
        return
    if _is_wsl(facts):
        yield Absence(
            f"this is WSL2, and its kernel ({facts.release}) has no sch_netem at hand",
            "build WSL2's kernel with CONFIG_NET_SCH_NETEM=y and name it in .wslconfig "
            "([wsl2] kernel=...), or use a virtual machine with a distribution's kernel",
        )
    if not facts.has_module_directory:
        yield Absence(
            f"there are no modules of the running kernel (/lib/modules/{facts.release}): it was "
            "upgraded since the machine started, or comes without any",
            "restart the machine, or boot a distribution's own kernel",
        )
    install = _install(facts)
    where = f" of this {facts.runner} runner" if facts.runner else ""
    yield Absence(
        f"sch_netem of the kernel {facts.release}{where} is not installed",
        f"{install} && sudo modprobe sch_netem",
    )


def _is_wsl(facts: Facts) -> bool:
    return "microsoft" in facts.release.lower()


def _install(facts: Facts) -> str:
    for distribution in facts.distribution:
        if distribution in _PACKAGES:
            return _PACKAGES[distribution].format(release=facts.release)
    return "install the rest of this kernel's modules (often called kernel-modules-extra)"


_PACKAGES: Mapping[str, str] = {
    "ubuntu": "sudo apt-get install linux-modules-extra-{release}",
    "debian": "sudo apt-get install linux-image-{release}",
    "amzn": "sudo dnf install kernel-modules-extra-{release}",
    "fedora": "sudo dnf install kernel-modules-extra-{release}",
    "rhel": "sudo dnf install kernel-modules-extra-{release}",
    "centos": "sudo dnf install kernel-modules-extra-{release}",
    "suse": "sudo zypper install kernel-default",
    "opensuse": "sudo zypper install kernel-default",
    "alpine": "sudo apk add linux-lts",
    "arch": "sudo pacman -S linux",
}


# -- what the machine says --------------------------------------------------------------------


def gather(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> Facts:
    """Return the facts of this machine (of another root directory: for tests)."""
    release = platform.release() if root == Path("/") else _text(root / "proc/sys/kernel/osrelease")
    modules = root / "lib/modules" / release
    built, source = _built(root, release)
    module_file = _module_file(modules)
    return Facts(
        release=release,
        kernel=_text(root / "proc/version"),
        distribution=_distribution(root),
        built="m" if module_file and not built else built,
        built_source=source,
        has_module_directory=modules.is_dir(),
        module_file=module_file,
        barred_in=_barred_in(root),
        is_loaded=(root / "sys/module/sch_netem").exists(),
        loading_is_off=_text(root / "proc/sys/kernel/modules_disabled") == "1",
        container=_container(root),
        runner="GitHub Actions" if environment.get("GITHUB_ACTIONS") else "",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _built(root: Path, release: str) -> tuple[Built, str]:
    for name in (
        "proc/config.gz",
        f"boot/config-{release}",
        f"lib/modules/{release}/config",
        f"lib/modules/{release}/build/.config",
    ):
        path = root / name
        try:
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(path, "rt", errors="replace") as file:
                config = file.read()
        except (OSError, EOFError):
            continue
        found = _OPTION.search(config)
        how: Built = "n"
        if found is not None and found[1] is not None:
            how = "y" if found[1] == "y" else "m"
        return how, f"/{name}"
    return "", ""


def _module_file(modules: Path) -> str:
    for line in _text(modules / "modules.dep").splitlines():
        name = line.partition(":")[0]
        if Path(name).name.startswith("sch_netem.ko") and (modules / name).exists():
            return str(modules / name)
    return ""


def _barred_in(root: Path) -> str:
    for directory in ("etc/modprobe.d", "run/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d"):
        for path in sorted((root / directory).glob("*.conf")):
            if any(_BARRED.match(line) for line in _text(path).splitlines()):
                return f"/{path.relative_to(root)}"
    return ""


def _distribution(root: Path) -> tuple[str, ...]:
    for name in ("etc/os-release", "usr/lib/os-release"):
        fields = dict(line.split("=", 1) for line in _text(root / name).splitlines() if "=" in line)
        if fields:
            words = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}"
            return tuple(words.replace('"', "").split())
    return ()


def _container(root: Path) -> str:
    if (root / ".dockerenv").exists():
        return "Docker"
    if (root / "run/.containerenv").exists():
        return "Podman"
    if "kubepods" in _text(root / "proc/1/cgroup"):
        return "Kubernetes"
    named = re.search(r"(?:^|\0)container=([\w-]+)", _text(root / "proc/1/environ"))
    return named[1] if named else ""
