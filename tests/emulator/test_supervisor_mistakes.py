"""What goes wrong in a lab's own processes: a mistake of ours is never said to be the machine's.

Who takes a refusal of the machine for a reason to skip a test must not be told of one where wanlat
has a bug.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import write_program
from tests.emulator.plans import mesh, ms
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
    "where",
    [
        "supervisor.Supervisor.build",  # a request
        "sandbox.read_limits",  # in the guard
        "sandbox._leave_guard",  # in the supervisor, before it serves
        "supervisor.Supervisor._serve_all",
    ],
)
@pytest.mark.parametrize(
    "how",
    ["raise TypeError('planted')", "raise OSError(errno.EBADF, 'planted')", "raise Odd(1, 2)"],
)
def test_a_mistake_is_raised_as_such_wherever_it_happens(
    where: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, where, how)
    error = enter()
    if where == "sandbox._leave_guard" and "OSError" in how:  # a refusal, whichever it is
        assert type(error) is MachineError
        return
    assert type(error) is RuntimeError, repr(error)
    assert str(error).startswith(("TypeError: planted", "OSError: ", "Odd: odd"))
    assert "in fails" in error.__notes__[0], "where it was raised"
    assert "report" in error.__notes__[0]


def test_a_refusal_of_the_machine_in_a_request_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "supervisor.Supervisor.build", "raise OSError(errno.EMFILE, 'planted')")
    error = enter()
    assert type(error) is MachineError
    assert "could not build: " in str(error)


@pytest.mark.parametrize(
    ("where", "what", "says"),
    [
        ("sandbox._enter_namespaces", "'unshare'", "seccomp"),
        ("sandbox._leave_guard", "'unshare'", "seccomp"),
        ("sandbox.mounts.make_private", "'mount', '/proc'", "systempaths=unconfined"),
        ("sandbox.mounts.seal", "'unshare'", "seccomp"),
    ],
)
def test_namespaces_that_are_refused_are_explained_whenever_that_is(
    where: str, what: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, where, f"raise OSError(errno.EPERM, {what})")
    error = enter()
    assert type(error) is MachineError, repr(error)
    assert says in str(error)


@pytest.mark.parametrize(
    ("ends", "kind"),
    [("exit 101", RuntimeError), ("kill -ABRT $$", RuntimeError), ("kill -KILL $$", MachineError)],
)
def test_a_wire_that_ends_by_itself_is_a_mistake_and_one_that_is_killed_is_not(
    ends: str, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "wire", ends)
    monkeypatch.setenv("WANLAT_BIN_DIR", str(tmp_path))
    with pytest.raises(kind, match="wire process ended"), Lab(mesh(2, wan=ms(1)), backend="wire"):
        pass
