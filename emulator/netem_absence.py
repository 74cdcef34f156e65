"""Why a kernel has no netem, as far as the machine tells, and how to have it."""

from __future__ import annotations

import gzip
import platform
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_OPTION = "CONFIG_NET_SCH_NETEM"


class Absence(NamedTuple):
    """Why there is no netem, and the way to have it."""

    why: str
    remedy: str


def explain(root: Path = Path("/"), release: str = platform.release()) -> Absence:
    """Return what keeps a kernel from having sch_netem: not built, not permitted, or no module.

    ``root`` is where its files are.
    """
    for name in ("proc/config.gz", f"boot/config-{release}", f"lib/modules/{release}/config"):
        config = _lines(root / name)
        if config and not any(line in config for line in (f"{_OPTION}=y", f"{_OPTION}=m")):
            return Absence(
                f"this kernel ({release}) is built without netem (/{name}: {_OPTION} is not set)",
                "boot a distribution's own kernel, on the host if this is a container: no package "
                "adds netem to this one",
            )
        if f"{_OPTION}=y" in config:
            break
    else:
        modules = root / "lib/modules" / release
        listed = [line.partition(":")[0] for line in _lines(modules / "modules.dep")]
        module = next((each for each in listed if "/sch_netem.ko" in each), None)
        loaded = (root / "sys/module/sch_netem").exists()
        if not loaded and (module is None or not (modules / module).exists()):
            return Absence(
                f"there is no module sch_netem for the kernel {release}",
                "install the rest of its modules (linux-modules-extra, kernel-modules-extra or the "
                "like; in a container, on the host), then: sudo modprobe sch_netem",
            )
    return Absence(
        f"the kernel {release} has sch_netem, and refuses it here",
        "sudo modprobe sch_netem, outside of any container, says what forbids it: a setting of "
        "modprobe, a missing signature, kernel.modules_disabled, or the container's seccomp filter",
    )


def _lines(path: Path) -> list[str]:
    with suppress(OSError, EOFError):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", errors="replace") as file:
            return [line.strip() for line in file]
    return []
