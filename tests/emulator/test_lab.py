"""A lab runs programs on nodes, lets its owner in, and keeps everything else out."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator import disk
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies.errors import MachineError, UserError

PYTHON = sys.executable


def host_interfaces() -> str:
    return "\n".join(
        (path / "address").read_text()
        for path in Path("/sys/class/net").iterdir()
        if (path / "address").exists()
    )


@pytest.fixture(scope="module")
def lab():
    with Lab(mesh(2, 2, wan=ms(5))) as made:
        yield made


def test_a_program_runs_on_its_node_and_sees_only_the_lab(lab):
    lines = lab.run("n2", ["ip", "-br", "addr"]).stdout
    assert "10.1.0.2/32" in lines.split()
    interfaces = [line.split()[0].partition("@")[0] for line in lines.splitlines()]
    assert interfaces == ["lo", "eth0"]


def test_exit_codes_and_signals_come_back(lab):
    assert lab.spawn("n1", ["sh", "-c", "exit 7"]).wait(60) == 7
    # The guard ignores SIGINT; what is started in the lab must not inherit that.
    for number in (signal.SIGTERM, signal.SIGINT):
        sleeper = lab.spawn("n1", ["sleep", "60"])
        assert sleeper.poll() is None
        sent_ns = sleeper.send_signal(number)
        assert sleeper.wait(60) == -number
        assert sleeper.ended_ns > sent_ns


def test_an_unknown_node_is_answered_with_the_known_ones(lab):
    with pytest.raises(UserError, match="n1, n2, n3 and n4"):
        lab.spawn("n9", ["true"])


def test_run_kills_what_takes_too_long(lab):
    with pytest.raises(TimeoutError):
        lab.run("n1", ["sleep", "60"], timeout_s=0.2)
    look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    assert "sleep 60" not in lab.run("n1", ["sh", "-c", look]).stdout


def test_the_environment_is_the_labs_own(lab, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    words = lab.run("n1", ["env"], env={"MINE": "2"}).stdout.splitlines()
    assert "MINE=2" in words
    assert f"HOME={lab.node('n1').directory}" in words
    assert not any(word.startswith("SECRET") for word in words)


def test_a_nodes_directory_is_shared_with_the_owner(lab):
    node = lab.node("n3")
    (node.host_directory / "note").write_text("from outside")
    assert lab.run("n3", ["cat", f"{node.directory}/note"]).stdout == "from outside"
    assert not Path(node.directory).exists()


def available_bytes() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


def test_what_a_lab_keeps_in_memory_leaves_the_machine_an_eighth():
    before = available_bytes()
    with Lab(mesh(1, 1)) as lab:
        after = available_bytes()
        said = lab.run("n1", ["df", "--block-size=1", "--output=size", lab.node("n1").directory])
    size = int(said.stdout.split()[-1])
    assert 0.95 * 7 / 8 * min(before, after) < size < 1.05 * 7 / 8 * max(before, after)


def test_connections_are_made_from_inside_and_used_outside(lab):
    server = lab.socket("n3", socket.AF_INET, socket.SOCK_STREAM)
    server.bind((lab.node("n3").address, 4000))
    server.listen()
    begun = time.monotonic()
    with lab.connect("n1", (lab.node("n3").address, 4000)) as client:
        took_ms = (time.monotonic() - begun) * 1000
        accepted, peer = server.accept()
        assert peer[0] == lab.node("n1").address
        client.sendall(b"hello")
        assert accepted.recv(5) == b"hello"
        accepted.close()
    server.close()
    assert took_ms >= 10  # the handshake crossed the emulated link


def test_nothing_inside_is_reachable_from_the_host(lab):
    # Only loopback is tried: the lab's own addresses may be somebody else's outside.
    server = lab.socket("n1", socket.AF_INET, socket.SOCK_STREAM)
    server.bind(("0.0.0.0", 41_000))
    server.listen()
    assert "A028" in lab.run("n1", ["cat", "/proc/net/tcp"]).stdout  # 41000, listening inside
    assert ":A028 00000000:0000 0A" not in Path("/proc/net/tcp").read_text()
    with socket.socket() as outsider:
        assert outsider.connect_ex(("127.0.0.1", 41_000)) != 0
    assert "02:01:00:00" not in host_interfaces()
    server.close()


def test_nothing_outside_is_reachable_from_inside(lab):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError):
            lab.connect("n1", ("127.0.0.1", port), timeout_s=0.5)
    with pytest.raises(OSError):
        lab.connect("n1", ("192.0.2.1", 80), timeout_s=0.5)


def test_callbacks_are_called_once_a_process_ends(lab):
    called = threading.Event()
    process = lab.spawn("n1", ["sleep", "0.1"])
    process.when_ended(lambda _gone: called.set())
    assert called.wait(60)
    late = []
    process.when_ended(late.append)
    assert late == [process]


def test_the_end_of_the_supervisor_is_told_to_everyone_who_waits():
    with Lab(mesh(1, 1)) as lab:
        sleeper = lab.spawn("n1", ["sleep", "60"])
        os.kill(lab.supervisor_pid, signal.SIGKILL)
        with pytest.raises(MachineError, match="supervisor is gone"):
            sleeper.wait(60)
        with pytest.raises(MachineError, match="supervisor is gone"):
            lab.run("n1", ["true"])


def test_a_lab_that_loses_its_wire_ends_and_says_so():
    with Lab(mesh(2, wan=ms(1)), backend="wire") as lab:
        sleeper = lab.spawn("n1", ["sleep", "60"])
        look = 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = wire ] && echo ${p#/proc/}; done'
        (pid,) = lab.run("n1", ["sh", "-c", look]).stdout.split()
        lab.run("n1", ["sh", "-c", f"kill -KILL {pid}"])
        with pytest.raises(MachineError, match="wire process ended with code -9"):
            sleeper.wait(60)


def test_two_labs_at_once_are_two_networks():
    plan = mesh(2, wan=ms(1))
    with Lab(plan) as one, Lab(plan) as two:
        server = one.socket("n2", socket.AF_INET, socket.SOCK_STREAM)
        server.bind((one.node("n2").address, 4000))
        server.listen()
        one.connect("n1", (one.node("n2").address, 4000)).close()
        with pytest.raises(ConnectionRefusedError):
            two.connect("n1", (two.node("n2").address, 4000))
        assert one.supervisor_pid != two.supervisor_pid
        server.close()


def test_data_on_disk_is_gone_with_the_lab(tmp_path, monkeypatch):
    monkeypatch.setenv("WANLAT_LABS", str(tmp_path / "labs"))
    with Lab(mesh(1, 1), storage="disk") as lab:
        node = lab.node("n1")
        lab.run("n1", ["sh", "-c", "echo kept > file"])
        assert (node.host_directory / "file").read_text() == "kept\n"
        assert node.host_directory.is_relative_to(tmp_path)
    assert list((tmp_path / "labs").iterdir()) == []


def test_what_a_dead_lab_left_on_disk_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("WANLAT_LABS", str(tmp_path / "labs"))
    (tmp_path / "labs" / "lab-stale" / "nodes").mkdir(parents=True)
    with Lab(mesh(1, 1), storage="disk"):
        left = [path.name for path in (tmp_path / "labs").iterdir()]
    assert "lab-stale" not in left


def test_no_lab_removes_what_another_is_about_to_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("WANLAT_LABS", str(tmp_path))
    made = threading.Event()

    def make() -> None:
        os.close(disk.make_directory()[1])
        made.set()

    with open_directory(tmp_path) as other:  # another lab, between making its own and locking it
        fcntl.flock(other, fcntl.LOCK_EX)
        (tmp_path / "lab-of-another").mkdir()
        thread = threading.Thread(target=make)
        thread.start()
        assert not made.wait(0.2)
        assert (tmp_path / "lab-of-another").is_dir()
    thread.join(60)
    assert made.is_set()


@contextmanager
def open_directory(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_the_hosts_files_are_read_only_for_root_and_others_alike(storage, tmp_path, monkeypatch):
    monkeypatch.setenv("WANLAT_LABS", str(tmp_path / "labs"))
    (tmp_path / "there").write_text("host")
    script = """
        for place in "$0" /etc /tmp /dev; do
            touch "$place/wanlat-test" 2>/dev/null && echo "$place"
        done
        echo lab > "$0/there" || cat "$0/there"
        for place in . "$TMPDIR" "$HOME" /dev/shm; do touch "$place/own" || echo "$place"; done
        echo gone > /dev/null || echo null
    """
    with Lab(mesh(1), storage=storage) as lab:
        done = lab.run("n1", ["sh", "-c", script, str(tmp_path)])
    assert done.stdout == "host", done
    assert "Read-only file system" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) in (["there"], ["labs", "there"])
    assert not Path("/dev/shm/own").exists()


def test_a_directory_of_the_host_can_be_made_writable(tmp_path):
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    with Lab(mesh(1)) as lab:
        lab.make_writable(mine)
        done = lab.run("n1", ["touch", str(mine / "here"), str(other / "there")])
    assert done.returncode == 1 and "Read-only" in done.stderr
    assert [path.name for path in (*mine.iterdir(), *other.iterdir())] == ["here"]


def test_nodes_know_each_other_by_name(lab):
    script = "import socket; print(*map(socket.gethostbyname, ('n4', 'localhost')))"
    found = lab.run("n1", [PYTHON, "-S", "-c", script]).stdout.split()
    assert found == [lab.node("n4").address, "127.0.0.1"]


def test_a_missing_program_comes_with_its_package(lab, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match="apt-get install iproute2"):
        lab.spawn("n1", ["ss"])
    with pytest.raises(MachineError, match=r"on n1: No such file or directory\.$"):
        lab.spawn("n1", ["no-such-program"])


def test_a_held_change_that_the_journal_cannot_note_is_taken_back(tmp_path):
    journal = tmp_path / "journal"
    with Lab(mesh(2, wan=ms(5)), journal=journal) as lab, open("/dev/full", "a") as full:
        lab.journal._file.close()
        lab.journal._file = full
        with pytest.raises(MachineError, match=r"journal .* could not be written"):
            lab.changed(wan("dc1", "dc2"), ms(50)).begin()
        assert lab.journal.at(wan("dc1", "dc2"), time.monotonic_ns()) == ms(5)


def test_a_supervisor_that_hangs_is_not_waited_for_for_ever(monkeypatch):
    with Lab(mesh(1)) as lab:
        monkeypatch.setattr("wanlat.emulator.owner._ANSWER_TIMEOUT_S", 0.2)
        os.kill(lab.supervisor_pid, signal.SIGSTOP)
        try:
            with pytest.raises(MachineError, match="no answer"):
                lab.counters()
        finally:
            os.kill(lab.supervisor_pid, signal.SIGCONT)


def test_an_unwritable_store_on_disk_is_the_users_to_fix(monkeypatch):
    monkeypatch.setenv("WANLAT_LABS", "/proc/nowhere")
    with pytest.raises(UserError, match="WANLAT_LABS"), Lab(mesh(1, 1), storage="disk"):
        pass


def test_a_stream_that_is_no_file_is_refused_at_once() -> None:
    with Lab(mesh(1)) as lab, pytest.raises(UserError, match=r"not -1\. Open one"):
        lab.spawn("n1", ["true"], stdout=subprocess.PIPE)
