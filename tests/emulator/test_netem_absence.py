"""Who has no netem hears why, and how to have it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wanlat.emulator.netem_absence import Facts, explain, gather

CASES = {
    "minimal kernel": (
        Facts(release="6.18.1-fc", built="n", built_source="/proc/config.gz"),
        "/proc/config.gz: CONFIG_NET_SCH_NETEM is not set",
        "boot a distribution's own kernel",
    ),
    "minimal kernel under Docker": (
        Facts(built="n", built_source="/proc/config.gz", container="Docker"),
        "built without netem",
        "on the host of this Docker container",
    ),
    "Fedora": (
        Facts(release="6.11.4-301.fc41.x86_64", distribution=("fedora",), built="m"),
        "6.11.4-301.fc41.x86_64 is not installed",
        "sudo dnf install kernel-modules-extra-6.11.4-301.fc41.x86_64 && sudo modprobe sch_netem",
    ),
    "a rebuild of RHEL": (
        Facts(release="5.14.0-503.el9", distribution=("rocky", "rhel", "centos", "fedora")),
        "is not installed",
        "kernel-modules-extra-5.14.0-503.el9",
    ),
    "a runner of GitHub": (
        Facts(
            release="6.8.0-1021-azure",
            distribution=("ubuntu", "debian"),
            built="m",
            runner="GitHub Actions",
        ),
        "of this GitHub Actions runner is not installed",
        "sudo apt-get install linux-modules-extra-6.8.0-1021-azure && sudo modprobe sch_netem",
    ),
    "WSL2 that says it has none": (
        Facts(
            release="5.15.167.4-microsoft-standard-WSL2",
            built="n",
            built_source="/proc/config.gz",
        ),
        "WSL2, and its kernel is built without netem",
        ".wslconfig",
    ),
    "WSL2 that has a module somewhere": (
        Facts(release="6.6.36.6-microsoft-standard-WSL2", built="m"),
        "WSL2",
        ".wslconfig",
    ),
    "a container": (
        Facts(built="m", container="Podman", has_module_directory=False),
        "Podman container",
        "on the host: sudo modprobe sch_netem",
    ),
    "gVisor": (
        Facts(kernel="Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"),
        "gVisor",
        "another container runtime",
    ),
    "a kernel upgraded under way": (
        Facts(release="6.12.1-arch1", distribution=("arch",), has_module_directory=False),
        "upgraded since the machine started",
        "restart the machine",
    ),
    "installed, not loaded": (
        Facts(built="m", module_file="/lib/modules/x/sch_netem.ko"),
        "not loaded",
        "sudo modprobe sch_netem",
    ),
    "barred": (
        Facts(
            built="m",
            module_file="/lib/modules/x/sch_netem.ko",
            barred_in="/etc/modprobe.d/no-netem.conf",
        ),
        "/etc/modprobe.d/no-netem.conf forbids",
        "take that line out",
    ),
    "loading switched off": (
        Facts(built="m", module_file="/lib/modules/x/sch_netem.ko", loading_is_off=True),
        "modules_disabled",
        "/etc/modules-load.d",
    ),
    "loaded and refused": (Facts(is_loaded=True), "refuses", "seccomp"),
    "nobody knows": (Facts(), "is not installed", "rest of this kernel's modules"),
}


@pytest.mark.parametrize(("facts", "why", "remedy"), CASES.values(), ids=CASES)
def test_the_reason_and_the_way_out(facts: Facts, why: str, remedy: str) -> None:
    found = explain(facts)
    assert why in found.why
    assert remedy in found.remedy


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a root directory of a Fedora machine whose kernel is 6.11.4."""
    for name, content in {
        "proc/sys/kernel/osrelease": "6.11.4",
        "proc/version": "Linux version 6.11.4",
        "proc/sys/kernel/modules_disabled": "0",
        "etc/os-release": 'NAME=Rocky\nID="rocky"\nID_LIKE="rhel centos fedora"',
        "boot/config-6.11.4": "CONFIG_NET_SCHED=y\nCONFIG_NET_SCH_NETEM=m\n",
        "lib/modules/6.11.4/modules.dep": "kernel/net/sched/sch_netem.ko.xz:\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_a_listed_module_whose_file_is_missing_is_not_installed(machine: Path) -> None:
    facts = gather(machine, {})
    assert (facts.built, facts.built_source) == ("m", "/boot/config-6.11.4")
    assert facts.module_file == ""
    assert "kernel-modules-extra-6.11.4" in explain(facts).remedy


def test_a_module_that_is_there_is_found(machine: Path) -> None:
    module = machine / "lib/modules/6.11.4/kernel/net/sched/sch_netem.ko.xz"
    module.parent.mkdir(parents=True)
    module.touch()
    assert gather(machine, {}).module_file == str(module)
    bar = machine / "etc/modprobe.d/local.conf"
    bar.parent.mkdir()
    bar.write_text("# none\ninstall sch_netem /bin/false\n")
    assert gather(machine, {}).barred_in == "/etc/modprobe.d/local.conf"


@pytest.mark.parametrize("text", ["# CONFIG_NET_SCH_NETEM is not set\n", "CONFIG_NET=y\n"])
def test_a_kernel_that_shows_its_own_configuration_is_believed(machine: Path, text: str) -> None:
    with gzip.open(machine / "proc/config.gz", "wt") as file:
        file.write(text)
    facts = gather(machine, {"GITHUB_ACTIONS": "true"})
    assert (facts.built, facts.built_source) == ("n", "/proc/config.gz")
    assert facts.runner == "GitHub Actions"


def test_an_empty_machine_still_gets_a_reason(tmp_path: Path) -> None:
    assert explain(gather(tmp_path, {})).why
