"""What the sandbox keeps from a lab's programs, and what it leaves them: as root and not.

`escapes.py` tries; docs/explanation/emulation.md promises.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator import failures, mounts
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import MachineError

PYTHON = sys.executable
ESCAPES = Path(__file__).with_name("escapes.py")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Files of the host: a socket that listens, a device if we may make one, a directory."""
    directory = tmp_path_factory.mktemp("host")
    (directory / "given").mkdir()
    if os.geteuid() == 0:
        os.mknod(directory / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(directory / "socket"))
        server.listen()
        yield directory


@pytest.fixture(scope="module")
def hidden() -> Iterator[Path]:
    """A directory where a lab has something else."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def lab(host: Path, hidden: Path) -> Iterator[Lab]:
    with Lab(mesh(2, wan=ms(1)), backend="wire", writable=[host / "given", hidden]) as made:
        yield made


def inside(lab: Lab, script: str, *arguments: object) -> str:
    done = lab.run("n1", ["sh", "-ec", script, "sh", *map(str, arguments)])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_way_out_is_open(lab: Lab, host: Path, hidden: Path) -> None:
    done = lab.run(
        "n1",
        [PYTHON, "-S", ESCAPES, *(host / "socket", host / "given", hidden), *host.glob("device")],
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}


def test_those_who_enter_from_outside_do_not_get_it_writable(lab: Lab) -> None:
    enter = ["nsenter", f"--target={lab.supervisor_pid}", "--user", "--preserve-credentials"]
    enter += ["--mount", "--pid", "--uts", "--ipc", "--wd=/"]
    for command, is_allowed in (("true", True), ("mount -o remount,bind,rw /", False)):
        done = subprocess.run([*enter, "sh", "-c", command], capture_output=True, check=False)
        assert (done.returncode == 0) is is_allowed, done


def test_directories_that_are_given_can_be_written_and_nothing_beside_them(
    lab: Lab, host: Path, hidden: Path
) -> None:
    inside(lab, 'tee "$1/given/file" "$2/file"; ! touch "$1/file" "$2-too"', host, hidden)
    assert (host / "given" / "file").exists() and (hidden / "file").exists()
    assert not (host / "file").exists() and not hidden.with_name(f"{hidden.name}-too").exists()


def test_a_node_sets_its_own_network_and_no_other(lab: Lab) -> None:
    setting = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")
    before = setting.read_text().strip()
    other = "1" if before == "0" else "0"
    assert inside(lab, 'echo "$2" >"$1"; cat "$1"', setting, other) == other
    assert lab.run("n2", ["cat", str(setting)]).stdout.strip() == setting.read_text().strip()
    assert setting.read_text().strip() == before
    inside(lab, "ip link add veth-a type veth peer name veth-b; ip link delete veth-a")


def test_devices_that_programs_need_work(lab: Lab) -> None:
    script = """
        echo gone >/dev/null; test "$(head -c 8 /dev/zero | wc -c)" = 8
        ! echo >/dev/full; head -c 8 /dev/urandom >/dev/shm/random; echo read >/run/file
        echo out >/dev/stdout; cat </dev/fd/0
    """
    assert inside(lab, script) == "out"
    terminal = "import os; _, end = os.openpty(); print(os.ttyname(end))"
    assert lab.run("n1", [PYTHON, "-S", "-c", terminal]).stdout.startswith("/dev/pts/")


def test_programs_may_be_other_users_and_on_other_nodes(lab: Lab) -> None:
    assert inside(lab, "unshare --user --map-user=1000 id -u") == "1000"
    assert "10.2.0.1" in inside(lab, "ip netns exec n2 ip -brief address")


def test_the_supervisor_runs_nothing_that_a_program_puts_over_its_modules() -> None:
    package = Path(failures.__file__).resolve().parent
    script = """
        cp -r "$1" /run/copy
        for each in $(find /run/copy -name '*.py'); do echo 'open("/run/ran", "w")' >"$each"; done
        mount --bind /run/copy "$1"
        rm -r /run/wanlat/nodes/n2; touch /run/wanlat/nodes/n2
    """
    with Lab(mesh(2, wan=ms(1)), backend="wire") as attacked:
        inside(attacked, script, package)
        with pytest.raises(MachineError):
            attacked.run("n2", ["true"])
        inside(attacked, "! test -e /run/ran")


def test_nothing_can_be_imported_once_imports_are_forbidden() -> None:
    code = """if True:
        import importlib, sys
        from wanlat.emulator import imports
        imports.forbid()
        for name in ("wave", "wanlat.emulator.reaper", "_lsprof", "encodings.idna"):
            try:
                importlib.import_module(name)
            except ImportError:
                continue
            sys.exit(name)
    """
    subprocess.run([PYTHON, "-c", code], check=True)


@pytest.mark.parametrize("name", ["plain", "a b", "line\nbreak", "carriage\rreturn", "\udcff"])
def test_a_socket_of_the_hosts_is_found_whatever_its_name_is(tmp_path: Path, name: str) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as after:
        server.bind(str(tmp_path / name).encode("utf-8", "surrogateescape"))
        after.bind(str(tmp_path / "after"))
        assert {str(tmp_path / name), str(tmp_path / "after")} <= set(mounts.host_sockets())


def test_the_null_device_that_a_program_is_given_is_the_labs_own(lab: Lab) -> None:
    script = "import os; os.fchmod(0, os.fstat(0).st_mode & 0o7777)"
    with open("/dev/null", "r+b") as null, tempfile.TemporaryFile() as said:
        process = lab.spawn("n1", [PYTHON, "-S", "-c", script], stdin=null, stderr=said)
        assert process.wait(60) == 1
        said.seek(0)
        assert b"OSError: [Errno 30]" in said.read()
