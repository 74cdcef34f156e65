"""A lab runs programs on nodes, lets its owner in, and keeps everything else out."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies.errors import MachineError

PYTHON = sys.executable


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


def test_the_environment_is_the_labs_own(lab, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    words = lab.run("n1", ["env"], env={"MINE": "2"}).stdout.splitlines()
    assert "MINE=2" in words
    assert f"HOME={lab.node('n1').directory}" in words
    assert not any(word.startswith("SECRET") for word in words)


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


def test_nothing_outside_is_reachable_from_inside(lab):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError):
            lab.connect("n1", ("127.0.0.1", port), timeout_s=0.5)
    with pytest.raises(OSError):
        lab.connect("n1", ("192.0.2.1", 80), timeout_s=0.5)


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
        assert lab.impairments == lab.requested


def test_a_supervisor_that_hangs_is_not_waited_for_for_ever(monkeypatch):
    with Lab(mesh(1)) as lab:
        monkeypatch.setattr("wanlat.emulator.owner._ANSWER_TIMEOUT_S", 0.2)
        os.kill(lab.supervisor_pid, signal.SIGSTOP)
        try:
            with pytest.raises(MachineError, match="no answer"):
                lab.counters()
        finally:
            os.kill(lab.supervisor_pid, signal.SIGCONT)
