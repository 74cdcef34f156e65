"""Programs of this machine, outside of any lab, that end with whoever started them.

Between the caller and a program stands a process of ours:

    caller ── reaper ── program ── whatever the program starts

The kernel makes the reaper the parent of every orphan below it (PR_SET_CHILD_SUBREAPER, prctl(2)),
so that sessions and daemons do not escape. It sees the caller's end through a pidfd, SIGKILL
included. Then it sends the program SIGTERM, and after `_ORDERLY_S` kills all that is left;
what a program leaves behind at its own end is ended likewise. The reaper itself ends last: a
descriptor that it was given, such as that of a locked file, is open until nothing is left.

Its own SIGKILL is all that it cannot prevent; the program then ends with it (PR_SET_PDEATHSIG),
and what the program started holds the descriptors.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError, CompletedProcess, Popen, TimeoutExpired
from typing import Any, NoReturn

from wanlat.emulator import family, syscalls

_ORDERLY_S = 10.0
"""From SIGTERM to SIGKILL."""
_LEFTOVERS_S = 2.0
"""For what it left behind."""
_KILLED_S = 10.0
"""For what SIGKILL does not end at once, such as a process that waits for a disk."""
_LOOK_EVERY_S = 0.05

_PROGRAM = (
    "import sys; sys.path.append(sys.argv.pop(1)); from wanlat.emulator.reaper import main; main()"
)
_SEARCH_PATH = Path(__file__).parents[2]


class Reaped(Popen[str]):
    """A program that ends with this process, and all that it starts.

    `terminate` sends SIGTERM, `kill` kills all of it; `wait` returns once nothing of it is left.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        held: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        """Start it. ``held``: descriptors that are open as long as any of it lives.

        ``how`` is as of `Popen`. Raises OSError where it cannot be run.
        """
        self.argv = [os.fspath(word) for word in argv]
        reader, writer = os.pipe()
        own = [str(_SEARCH_PATH), str(os.getpid()), str(writer)]
        try:
            super().__init__(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, *own, *self.argv],
                env=env,
                text=True,
                errors="replace",
                pass_fds=(writer, *held),
                start_new_session=True,  # Ctrl-C is for the caller
                **how,
            )
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb") as failure:
            number = failure.read()  # nothing, once the program runs
        if number:
            with self:
                raise OSError(int(number), os.strerror(int(number)), self.argv[0])

    def kill(self) -> None:
        """Kill all of it."""
        self.send_signal(signal.SIGQUIT)

    def end(self, patience_s: float) -> None:
        """Send SIGTERM, and after a while kill all of it."""
        self.terminate()
        try:
            self.wait(patience_s)
        except TimeoutExpired:
            self.kill()
            self.wait()


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    timeout_s: float | None = None,
    check: bool = False,
    **how: Any,
) -> CompletedProcess[str]:
    """Run a program to its end, as `subprocess.run` does; ``how`` is as of `Reaped`.

    Raises OSError, CalledProcessError and TimeoutExpired.
    """
    with Reaped(argv, **how) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except TimeoutExpired as late:
            process.kill()
            raise TimeoutExpired(process.argv, late.timeout) from late
        except BaseException:
            process.end(_ORDERLY_S)
            raise
    if check and process.returncode:
        raise CalledProcessError(process.returncode, process.argv, out, err)
    return CompletedProcess(process.argv, process.returncode, out, err)


# -- the process between ---------------------------------------------------------------------


def main() -> NoReturn:
    """Run a program. Arguments: CALLER_PID FAILURE_FD PROGRAM..."""
    caller_pid, failure, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(failure, False)
    syscalls.adopt_orphans()
    syscalls.set_process_name("wanlat-reaper")
    caller = os.pidfd_open(caller_pid)
    if os.getppid() != caller_pid:  # it has ended, and the number may be another's
        sys.exit(1)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(woken)
    program = os.fork()
    if program == 0:
        _become(argv, failure)
    os.close(failure)
    status, is_killed = _watch(program, caller, wake)
    _end_rest(wake, 0.0 if is_killed else _LEFTOVERS_S)
    _end_as(status)


def _become(argv: list[str], failure: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    parent = os.getppid()
    syscalls.die_with_parent(signal.SIGKILL)
    try:
        if os.getppid() == parent:
            os.execvp(argv[0], argv)
    except OSError as error:
        os.write(failure, str(error.errno).encode())
    os._exit(127)


def _watch(program: int, caller: int, wake: int) -> tuple[int, bool]:
    """Wait until the program has ended, or is to be killed; end it when the caller ends.

    Returns its wait status, and whether all that it started is to be killed too.
    """
    sources, deadline_s = [wake, caller], None
    while (status := _reap(program)) is None:
        left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        ready = syscalls.wait_readable(sources, left_s)
        numbers = os.read(wake, 512) if wake in ready else b""
        if left_s == 0.0 or signal.SIGQUIT in numbers:
            return signal.SIGKILL, True
        if signal.SIGINT in numbers:
            os.kill(program, signal.SIGINT)
        if caller in ready or signal.SIGTERM in numbers:
            os.kill(program, signal.SIGTERM)
            sources, deadline_s = [wake], deadline_s or time.monotonic() + _ORDERLY_S
    return status, False


def _reap(program: int) -> int | None:
    """Take note of whoever has ended; return the program's wait status, None while it runs."""
    status = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                status = ended[1]
    return status


def _end_rest(wake: int, patience_s: float) -> None:
    """End whatever is left of what the program started: in order, and after a while by SIGKILL."""
    began_s, is_terminated = time.monotonic(), False
    while _has_children() and (waited_s := time.monotonic() - began_s) < _KILLED_S:
        if waited_s >= patience_s:
            # Stopped first. Who is being started meanwhile is left to the next look.
            _signal_all(signal.SIGSTOP)
            _signal_all(signal.SIGKILL)
        elif not is_terminated:
            is_terminated = True
            _signal_all(signal.SIGTERM)
        if syscalls.wait_readable([wake], _LOOK_EVERY_S) and signal.SIGQUIT in os.read(wake, 512):
            patience_s = 0.0


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _signal_all(number: int) -> None:
    for pid in family.members(Path("/proc"), os.getpid()):
        if pid != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _end_as(status: int) -> NoReturn:
    """End as the program did."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        with suppress(OSError):  # of SIGKILL
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
