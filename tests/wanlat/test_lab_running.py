"""A lab that ``wanlat lab up`` holds is looked at and changed from other processes.

What packets meet during changes, cuts and holds is tests/emulator/test_live_changes.py's.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT, here, ran
from tests.wanlat.running import TOPOLOGY, Up, lab_up
from wanlat.emulator.control import address, client
from wanlat.topologies.errors import MachineError, UserError

PAGE = CHECKOUT / "docs" / "how-to" / "live-changes.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
EXEC = [sys.executable, "-m", "wanlat", "lab", "exec"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with lab_up(tmp_path_factory.mktemp("up")) as running:
        yield running


@pytest.fixture
def up(shared: Up) -> Iterator[Up]:
    """A lab that is as its topology says."""
    yield shared
    shared.json("restore")


def test_it_is_listed_and_has_said_how_to_look_at_it_and_change_it(up: Up) -> None:
    labs = {lab["name"]: lab for lab in json.loads(here("lab", "list", "--json").stdout)}
    assert labs[up.name]["pid"] == up.process.pid
    assert (labs[up.name]["topology"], labs[up.name]["nodes"]) == ("small", 3)
    assert re.search(rf"^ *{up.process.pid} +{up.name} ", here("lab", "list").stdout, re.M)
    assert here("lab", "show", "--lab", str(up.process.pid)).returncode == 0
    said = up.said.read_text()
    for words in ("show", "change dc1/dc2", "restore", f"exec --lab {up.name} n1 -- bash"):
        assert f"wanlat lab {words}" in said


def test_a_change_is_what_packets_meet_until_it_is_restored_and_is_told(up: Up) -> None:
    before = up.rtt_ms("n1", "10.2.0.1")
    done = up.json("change", "dc1/dc2", "delay=60ms", "jitter=0ms")
    changes = {f"{change['from']}->{change['to']}": change for change in done["changes"]}
    assert changes.keys() == {"dc1->dc2", "dc2->dc1"}
    assert changes["dc1->dc2"]["before"] == {"delay_ns": 10_000_000, "jitter_ns": 1_000_000}
    assert changes["dc1->dc2"]["after"] == {"delay_ns": 60_000_000}
    assert {change["t_ns"] for change in changes.values()} == {done["t_ns"]}
    during = up.rtt_ms("n1", "10.2.0.1")
    (row,) = up.json("show", "dc1:dc2")["directions"]
    assert row["in_force"] == {"delay_ns": 60_000_000}
    assert row["requested"] == {"delay_ns": 10_000_000, "jitter_ns": 1_000_000}
    assert row["changed"] and not row["cut"] and row["counters"]["packets"] >= 10
    table = up("show").stderr
    assert re.search(r"dc1->dc2 +60ms +10ms ± 1ms", table)
    assert re.search(r"n1->dc1 +nothing +the same", table)
    last = up.json("journal")[-1]
    assert (last["t_ns"], last["origin"]) == (done["t_ns"], "command")
    assert json.loads(up.journal.read_text().splitlines()[-1])["t_ns"] == done["t_ns"]
    assert "dc1->dc2: 10ms ± 1ms → 60ms" in up("journal").stdout
    assert up("restore").returncode == 0
    after = up.rtt_ms("n1", "10.2.0.1")
    assert 18 <= before < 60 and 120 <= during < 180 and 18 <= after < 60


def test_a_change_for_a_while_ends_by_itself(up: Up) -> None:
    done = up.json("change", "dc1:dc2", "loss=50%", "--for", "1s")
    assert done["until"] > done["clock"]
    deadline = time.monotonic() + 60
    while "loss" in up.in_force()["dc1->dc2"] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert up.json("journal")[-1]["t_ns"] - done["t_ns"] >= 1e9


def test_a_file_of_delays_is_replayed_at_its_own_pace(up: Up, tmp_path: Path) -> None:
    trace = tmp_path / "delays.txt"
    trace.write_text("# one-way, ms\n25\n25\n26\n55\n57\n54\n25\n26\n")
    before = len(up.json("journal"))
    done = up.json("change", "dc1/dc2", "jitter=0ms", "--trace", str(trace), "--every", "100ms")
    assert (done["values"], done["complete"]) == (8, True)
    assert done["applied"] + done["skipped"] == 8
    changes = [row for row in up.json("journal")[before:] if row["from"] == "dc1"]
    after_ms = [(row["t_ns"] - changes[0]["t_ns"]) / 1e6 for row in changes]
    delays_ms = [row["after"]["delay_ns"] / 1e6 for row in changes]
    # Each begins in its own interval, or was left out: none is early, and none drifts.
    due_ms = {25: (0, 600), 26: (200, 700), 55: (300,), 57: (400,), 54: (500,)}
    for delay, at in zip(delays_ms, after_ms, strict=True):
        assert any(due <= at < due + 100 for due in due_ms[delay]), (delay, at)
    assert up.in_force()["dc2->dc1"] == {"delay_ns": 26_000_000}


def test_a_trace_that_the_jitter_has_no_room_for_changes_nothing(up: Up, tmp_path: Path) -> None:
    trace, before = tmp_path / "delays.txt", up.in_force()
    trace.write_text("25\n0.5\n")
    done = up("change", "dc1/dc2", "--trace", str(trace), "--every", "100ms")
    assert done.returncode == 2 and "jitter" in done.stderr
    assert up.in_force() == before


@pytest.mark.parametrize("is_running", [False, True])
def test_exec_passes_streams_directory_and_exit_code_through(up: Up, is_running: bool) -> None:
    where = ["--lab", str(up.process.pid), "n1"] if is_running else ["one-site", "n1"]
    command = ["--", "sh", "-c", "cat; pwd; ls -d .; exit 7"]
    done = ran(*EXEC, *where, *command, input="hello\n")
    assert (done.returncode, done.stdout) == (7, f"hello\n{Path.cwd()}\n.\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("change dc1/dc9 delay=5ms", "no site or node `dc9` (did you mean"),
        ("change dc1/dc2 dely=5ms", "did you mean `delay`"),
        ("change dc1/dc2 delay=", "has no value"),
        ("change delay=5ms", "give a target"),
        ("change dc1/dc2 loss={p:1%", "cannot be read"),
        ("change dc1/dc2 delay=5ms --for 0", "--for"),
        ("change dc1/dc2 --trace nowhere.txt --every 100ms", "no such file"),
        ("change dc1/dc2 --trace nowhere.txt", "--every 100ms"),
        ("change dc1/dc2 delay=5ms --trace x --every 1s", "The delay is the trace's"),
        ("change --trace nowhere.txt --every 1s x=1", "needs a target"),
        ("journal --follow --json", "--journal FILE"),
        ("exec nx -- true", "no node `nx`"),
        ("exec n1", "no command"),
    ],
)
def test_a_mistake_changes_nothing_and_ends_with_code_2(up: Up, arguments: str, says: str) -> None:
    before = up.in_force()
    done = up(*arguments.split())
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert up.in_force() == before


def test_what_is_not_there_is_told(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    done = up("exec", "n1", "--", "/no-such-program")
    assert done.returncode == 3
    assert "no-such-program could not be started" in done.stderr
    done = here("lab", "show", "--lab", "elsewhere")
    assert done.returncode == 2
    assert up.name in done.stderr
    two = [{"name": "a", "pid": 1}, {"name": "a", "pid": 2}]
    for labs, says in ((two, r"a \(process 1\) and a \(process 2\)"), ([], "No lab is running")):
        monkeypatch.setattr(client, "labs", lambda labs=labs: labs)
        with pytest.raises(UserError, match=says):
            client.find(None)


def test_rubbish_is_answered_or_dropped_and_the_lab_goes_on(up: Up) -> None:
    for line in (b"\n", b"[]\n", b"\xff\n", b'{"op": "fly"}\n', b'{"op": "change"}\n', b"{" * 5000):
        with address.connect(up.process.pid, 5) as rude:
            rude.sendall(line)
            rude.shutdown(socket.SHUT_WR)
            answer = rude.recv(65536)
        assert answer == b"" or json.loads(answer)["ok"] is False
    assert up("show").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_is_not_answered(up: Up) -> None:
    code = (
        "import os, socket; os.setgid(65534); os.setuid(65534); s = socket.socket(1, 1);"
        f"s.connect('\\0{address.name_of(up.process.pid)}');"
        's.sendall(b\'{"op": "hello"}\\n\'); print(s.recv(1000))'
    )
    done = ran(sys.executable, "-c", code)
    closed = ("ConnectionResetError", "BrokenPipeError")
    assert done.stdout.strip() == "b''" or any(each in done.stderr for each in closed), done


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_names_that_another_user_takes_hide_no_lab_and_are_none(up: Up) -> None:
    """Also with the numbers of processes of this user."""
    code = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534); taken = []\n"
        "for pid in map(int, sys.argv[1:]):\n"
        "    for name in (f'wanlat-lab/0/{pid}', f'wanlat-lab/0/{pid}/{0:032x}'):\n"
        "        taken.append(socket.socket(1, 1)); taken[-1].bind('\\0' + name)\n"
        "        taken[-1].listen()\n"
        "print('taken', flush=True); sys.stdin.read()"
    )
    mine = os.getpid()
    numbers = [str(up.process.pid), str(mine)]
    with subprocess.Popen([sys.executable, "-c", code, *numbers], stdin=-1, stdout=-1) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"taken\n"
        assert up.process.pid in address.listening()
        assert up("show").returncode == 0
        assert mine not in address.listening()
        with address.listen():
            assert mine in address.listening()
        stranger.communicate()


def test_nothing_in_the_lab_reaches_the_socket(up: Up) -> None:
    name = f"'\\0{address.name_of(up.process.pid)}'"
    code = f"import socket; print(socket.socket(1, 1).connect_ex({name}))"
    assert up.run("n1", code).strip() == str(errno.ECONNREFUSED)


def test_ctrl_c_ends_one(tmp_path: Path) -> None:
    with lab_up(tmp_path) as ended:
        ended.process.send_signal(signal.SIGINT)
        assert ended.process.wait(60) == 0
        assert ended.process.pid not in address.listening()
        assert ended.said.read_text().rstrip().endswith("ended")


def test_a_large_lab_is_told_in_few_lines_and_killed_leaves_nothing(tmp_path: Path) -> None:
    text = TOPOLOGY.replace("[n1, n2]", "60").replace("[n3]", "60")
    with lab_up(tmp_path, "--cables", text=text) as many:
        said = many.said.read_text()
        assert len(said.splitlines()) < 15 and "120 nodes" in said
        shown = many("show").stderr
        assert len(shown.splitlines()) < 50 and "dc1->dc2" in shown
        refused = many("change", "dc1-1", "delay=5ms")
        assert refused.returncode == 3 and "plain cable" in refused.stderr
        with client.find(many.name) as lab:
            many.process.kill()
            many.process.wait()
            with pytest.raises(MachineError, match="has ended"):
                lab.query("show")
        assert many.process.pid not in [each["pid"] for each in client.labs()]


# -- the page: docs/how-to/live-changes.md ---------------------------------------------------------


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("delays.txt").write_text("50\n80\n")
    blocks = [text for language, text in BLOCKS if language == "" and "wanlat lab" in text]
    begin, commands = blocks
    assert begin.strip() == "wanlat lab up three-datacenters --journal changes.jsonl"
    text = (CHECKOUT / "topologies" / "three-datacenters.yaml").read_text()
    running = client.labs
    with lab_up(tmp_path, text=text) as up:
        # As if it were the only one on this machine, and had its usual name.
        mine = lambda: [lab for lab in running() if lab["pid"] == up.process.pid]  # noqa: E731
        monkeypatch.setattr(client, "labs", mine)
        for line in commands.strip().splitlines():
            _, *words = shlex.split(line)
            if words[1] == "exec":
                continue  # it hands its own streams on
            done = here(*words)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            if words[1] in ("change", "cut", "heal", "restore"):
                state = "stays in force" if "--trace" in words else "in force since"
                assert state in done.stderr, line
        assert len(up.journal.read_text().splitlines()) > 10


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [text for language, text in BLOCKS if language == "python"]
    exec(compile(code, str(PAGE), "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert "dc1->dc2 Impairment(delay_ns=50000000, jitter_ns=10000000" in lines[0]
    assert lines[-1] == "0"
