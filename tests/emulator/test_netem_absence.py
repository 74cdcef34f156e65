"""Who has no netem hears why, and how to have it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wanlat.emulator.netem_absence import explain

RELEASE = "6.11.4"
CONFIG, MODULES = f"boot/config-{RELEASE}", f"lib/modules/{RELEASE}"
LISTED = {
    CONFIG: "CONFIG_NET_SCHED=y\nCONFIG_NET_SCH_NETEM=m\n",
    f"{MODULES}/modules.dep": "kernel/net/sched/sch_netem.ko.xz:\n",
}
INSTALLED = {**LISTED, f"{MODULES}/kernel/net/sched/sch_netem.ko.xz": ""}


@pytest.mark.parametrize(
    ("files", "why", "remedy"),
    [
        ({CONFIG: "# CONFIG_NET_SCH_NETEM is not set\n"}, f"/{CONFIG}", "boot"),
        # What the running kernel says of itself counts, not what lies in /boot.
        ({**INSTALLED, "proc/config.gz": "CONFIG_NET=y\n"}, "/proc/config.gz", "boot"),
        ({}, "no module", "install"),
        (LISTED, "no module", "install"),  # its file is missing
        (INSTALLED, "refuses", "modprobe sch_netem"),
        ({"sys/module/sch_netem/refcnt": "0"}, "refuses", "seccomp"),
        ({"proc/config.gz": "CONFIG_NET_SCH_NETEM=y\n"}, "refuses", "seccomp"),
    ],
)
def test_the_reason_and_the_way_out(
    files: dict[str, str], why: str, remedy: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    found = explain(tmp_path, RELEASE)
    assert why in found.why
    assert remedy in found.remedy
