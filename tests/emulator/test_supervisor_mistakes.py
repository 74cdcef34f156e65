"""What goes wrong in a lab's own processes: a mistake of ours is never said to be the machine's.

Who takes a refusal of the machine for a reason to skip a test must not be told of one where wanlat
has a bug.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.emulator.plans import mesh, ms
from tests.wanlat.running import lab_up
from wanlat.emulator import owner
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import MachineError

GUARD = owner._GUARD_PROGRAM
PLANTED = """
import errno
from wanlat.emulator import sandbox, supervisor

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__("odd")

def fails(*_):
    {how}

{where} = fails
"""


def plant(monkeypatch: pytest.MonkeyPatch, where: str, how: str) -> None:
    """Have a function of the guard or the supervisor do something else."""
    planted = PLANTED.format(where=where, how=how)
    monkeypatch.setattr(owner, "_GUARD_PROGRAM", f"{planted}\n{GUARD}")


def enter() -> BaseException:
    """Return what making a lab ends with."""
    with pytest.raises(BaseException) as caught, Lab(mesh(1, 1)):
        pass
    return caught.value


@pytest.mark.parametrize(
    ("how", "kind", "says"),
    [
        ("raise TypeError('planted')", TypeError, "planted"),
        ("raise KeyError('planted')", KeyError, "planted"),
        ("assert _ == 'planted'", AssertionError, ""),
        ("raise OSError(errno.EBADF, 'planted')", OSError, "planted"),
        ("raise FileNotFoundError(errno.ENOENT, 'planted')", FileNotFoundError, "planted"),
        # What cannot be sent as it is still says what it was.
        ("raise Odd(1, 2)", RuntimeError, "Odd: odd"),
        ("raise type('Local', (Exception,), {})('planted')", RuntimeError, "Local: planted"),
    ],
)
def test_a_mistake_in_a_request_is_raised_as_itself(
    how: str, kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "supervisor.Supervisor.build", how)
    error = enter()
    assert type(error) is kind, repr(error)
    assert says in str(error)
    (note,) = error.__notes__
    assert "Traceback" in note
    assert "in fails" in note, "where it was raised"
    assert "report" in note


@pytest.mark.parametrize("number", ["EPERM", "ENOSPC", "ENOSYS", "EMFILE"])
def test_a_refusal_of_the_machine_in_a_request_is_one(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = f"raise OSError(errno.{number}, 'planted')"
    plant(monkeypatch, "supervisor.Supervisor.build", how)
    error = enter()
    assert type(error) is MachineError
    assert "could not build: " in str(error)
    assert "planted" in str(error)


@pytest.mark.parametrize(
    "where",
    [
        "sandbox.read_limits",  # in the guard
        "sandbox._leave_guard",  # in the supervisor, before it serves
        "supervisor.Supervisor._serve_all",
        "supervisor.Supervisor._serve",
    ],
)
def test_a_mistake_outside_of_requests_is_raised_as_itself(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, where, "raise TypeError('planted')")
    error = enter()
    assert type(error) is TypeError, repr(error)
    assert "in fails" in error.__notes__[0]


def test_a_guard_that_cannot_even_begin_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_GUARD_PROGRAM", "import wanlat.emulator.no_such_module")
    error = enter()
    assert type(error) is RuntimeError
    assert "guard" in str(error)


@pytest.mark.parametrize(
    ("where", "what", "says"),
    [
        ("sandbox._enter_namespaces", "'unshare'", "seccomp"),
        ("sandbox._leave_guard", "'unshare'", "seccomp"),
        ("sandbox._mount_private_directories", "'mount', '/proc'", "systempaths=unconfined"),
    ],
)
def test_namespaces_that_are_refused_are_explained_whenever_that_is(
    where: str, what: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, where, f"raise OSError(errno.EPERM, {what})")
    error = enter()
    assert type(error) is MachineError, repr(error)
    assert says in str(error)


def test_a_lab_lives_on_after_a_mistake_in_a_request() -> None:
    with Lab(mesh(1, 1)) as lab:
        with pytest.raises(TypeError):
            lab._ask("signal", "too few arguments")
        assert lab.run("n1", ["echo", "alive"]).stdout == "alive\n"


def test_who_waits_is_told_of_the_end_though_an_answer_was_lost() -> None:
    with Lab(mesh(1, 1)) as lab:
        sleeper = lab.spawn("n1", ["sleep", "60"])
        home = str(lab.node("n1").directory)
        # As if Ctrl-C had come before the answer: nobody knows that this was started.
        lab._ask("spawn", "n1", ["true"], {"PATH": "/usr/bin:/bin"}, home, (False,) * 3)
        assert lab.run("n1", ["true"]).returncode == 0
        lab.abort("That is enough.")
        with pytest.raises(MachineError, match="That is enough"):
            sleeper.wait(60)


def test_a_mistake_at_the_end_of_a_record_ends_the_lab_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab(mesh(1, 1))
    with pytest.raises(KeyError, match="planted"), lab:
        pid = lab.supervisor_pid

        def fails() -> None:
            raise KeyError("planted")

        monkeypatch.setattr(lab, "stop_capture", fails)
    assert not Path(f"/proc/{pid}").exists()


def test_a_program_that_cannot_start_where_it_is_to_is_no_mistake_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with (
        Lab(mesh(1, 1)) as lab,
        pytest.raises(MachineError, match="could not be started on n1: File exists"),
    ):
        lab.spawn("n1", ["true"], cwd=str(file))


@pytest.mark.parametrize(
    ("ends", "kind"),
    [("exit 101", RuntimeError), ("kill -ABRT $$", RuntimeError), ("kill -KILL $$", MachineError)],
)
def test_a_wire_that_ends_by_itself_is_a_mistake_and_one_that_is_killed_is_not(
    ends: str, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "wire"
    program.write_text(f"#!/bin/sh\n{ends}\n")
    program.chmod(0o755)
    monkeypatch.setenv("WANLAT_BIN_DIR", str(tmp_path))
    with pytest.raises(kind, match="wire process ended"), Lab(mesh(2, wan=ms(1)), backend="wire"):
        pass


def test_a_running_lab_tells_its_clients_of_a_mistake(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    planted = PLANTED.format(where="supervisor.Supervisor.change", how="raise TypeError('planted')")
    (site / "sitecustomize.py").write_text(
        "from wanlat.emulator import owner\n"
        f"owner._GUARD_PROGRAM = {planted!r} + chr(10) + owner._GUARD_PROGRAM\n"
    )
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", path)
        with lab_up(tmp_path) as up:
            done = up("change", "dc1/dc2", "delay=30ms")
    assert done.returncode == 1, done
    assert "TypeError: planted" in done.stderr
    assert "report" in done.stderr
