"""The owner's end of a sandbox: starts the guard, talks to the supervisor, notices the end.

Lab is what users meet; this is what it stands on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from wanlat.emulator import interpreter
from wanlat.emulator.backends import Counters, LateBin, LatenessReport
from wanlat.emulator.capture import CaptureStatus
from wanlat.emulator.failures import REPORT_IT
from wanlat.emulator.links import Direction
from wanlat.emulator.process import Exit
from wanlat.emulator.rpc import Closed, Stream, pickled
from wanlat.topologies import errors
from wanlat.topologies.errors import MachineError, WanlatError

_START_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 120.0
"""Of any request: the largest lab is built in seconds, even on a busy machine."""
_ANSWERS = pickled(
    *(Direction, Counters, LatenessReport, LateBin, CaptureStatus, RuntimeError),
    *(errors.WanlatError, errors.UserError, errors.MachineError, errors.RunFailed),
)
"""All that a supervisor sends. It stands among programs that may be hostile, and who takes it
over is not to take over its owner, which is outside.
"""
_GUARD_PROGRAM = "from wanlat.emulator.sandbox import main; main()"


class Owner:
    """A running sandbox. ``fate``: how it ended; it is empty while the sandbox lives.

    ``disk`` is removed at its end. Its programs may write below ``writable``.

    Raises MachineError when the machine refuses a sandbox; a mistake of ours as itself.
    """

    def __init__(self, disk: Path | None = None, writable: Sequence[Path] = ()) -> None:
        self.fate = ""
        self._why: Exception | None = None
        """Why it ended, where a process of the sandbox could report it."""
        self._lock = threading.Lock()  # of what the listening thread changes too
        self._sending = threading.Lock()
        self._is_over = False
        self._numbers = itertools.count(1)
        started: Future[tuple[Any, list[int]]] = Future()
        self._answers = {0: started}  # the first comes unasked: the supervisor's process id
        self._exits: dict[int, Future[Exit | None]] = {}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stream = Stream(ours, codec=_ANSWERS)
        lifeline_read, lifeline = os.pipe()
        self._lifeline: int | None = lifeline
        with theirs:
            self._guard = _start_guard(theirs.fileno(), lifeline_read, disk, writable)
        os.close(lifeline_read)
        threading.Thread(target=self._listen, name="lab", daemon=True).start()
        try:
            self.supervisor_pid: int = self._result(started, _START_TIMEOUT_S)[0]
        except BaseException:
            self.close()
            if self._why is None and self._guard.returncode > 0:  # by itself: it was not killed
                raise RuntimeError(
                    f"The lab's guard ended with exit code {self._guard.returncode}; its last "
                    f"words are above. {REPORT_IT}"
                ) from None
            raise

    def close(self) -> None:
        """End the sandbox and everything in it. Safe to repeat.

        Returns once every process has ended and the kernel has removed the network as well.
        """
        self._let_go()
        self._guard.wait()
        self._stream.close()

    def abort(self, why: str) -> None:
        """End everything at once, from any thread; whoever waits for any of it gets ``why``."""
        self.fate = self.fate or why
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            self._stream.finish()  # the supervisor ends the lab in good order,
            os.close(lifeline)  # and the guard sees that it does

    def call(
        self, operation: str, *arguments: Any, fds: tuple[int, ...] = ()
    ) -> tuple[Any, list[int]]:
        """Have the supervisor do something; return its answer and descriptors.

        Raises MachineError when the sandbox has ended, and what the supervisor raised: refusals
        of the machine are MachineErrors, mistakes of ours themselves.
        """
        number, answer = next(self._numbers), Future[tuple[Any, list[int]]]()
        with self._lock:
            if self.fate:
                raise self._end()
            self._answers[number] = answer
        try:
            with self._sending, contextlib.suppress(Closed):  # then the listener knows why
                self._stream.send((number, operation, arguments), fds, _ANSWER_TIMEOUT_S)
        except TimeoutError:  # it may have half of the request: nothing can follow
            self.abort("Its supervisor takes no more requests.")
            raise self._end() from None
        try:
            return self._result(answer, _ANSWER_TIMEOUT_S)
        finally:
            with self._lock:
                self._answers.pop(number, None)

    def exit_of(self, pid: int) -> Future[Exit | None]:
        """Return what is done when a process has ended: once to who starts it, once to who hears.

        Either may be the first.
        """
        with self._lock:
            if pid in self._exits:
                return self._exits.pop(pid)
            end = Future[Exit | None]()
            if self._is_over:
                end.set_result(None)
            else:
                self._exits[pid] = end
            return end

    def _result(
        self, answer: Future[tuple[Any, list[int]]], timeout_s: float
    ) -> tuple[Any, list[int]]:
        try:
            return answer.result(timeout_s)
        except TimeoutError:
            if answer.done():  # it is what the supervisor raised
                raise
            raise MachineError(
                f"The lab's sandbox gave no answer within {timeout_s:.0f} s."
            ) from None

    def _end(self) -> Exception:
        """Return what to raise when the sandbox has ended."""
        return self._why or MachineError(f"The lab has ended. {self.fate}")

    def _listen(self) -> None:
        """Receive what the sandbox sends, in a thread of its own, until it ends."""
        try:
            while True:
                (kind, *content), fds = self._stream.receive()
                self._hear(kind, content, fds)
        except Closed:
            pass
        except Exception as error:  # what cannot be read here: no caller is to wait for ever
            self._note_end(error)
            self.abort(self.fate)
        with self._lock:
            self.fate = self.fate or "Its supervisor is gone."
            self._is_over = True
            answers, exits = list(self._answers.values()), list(self._exits.values())
            self._answers.clear()
            self._exits.clear()
        for answer in answers:
            answer.set_exception(self._end())
        for end in exits:
            if not end.done():  # else it has been taken by no caller yet
                end.set_result(None)

    def _hear(self, kind: str, content: list[Any], fds: list[int]) -> None:
        if kind == "exit":
            pid, code, instant_ns = content
            self.exit_of(pid).set_result(Exit(code, instant_ns))
        elif kind == "broken":
            self.abort(f"Its emulation broke: {content[0]}.")
        elif kind == "over":  # and the end of the stream follows
            self._note_end(content[0])
        else:
            number, value = content
            with self._lock:
                answer = self._answers.pop(number, None)
            if answer is None:  # the caller was interrupted
                for fd in fds:
                    os.close(fd)
            elif kind == "error":
                answer.set_exception(value)
            else:
                answer.set_result((value, fds))

    def _note_end(self, error: Exception) -> None:
        """Keep why the sandbox ends, unless that is known already."""
        if not self.fate:
            self._why = error
            is_ours = isinstance(error, WanlatError)
            self.fate = str(error) if is_ours else f"It failed: {type(error).__name__}: {error}"


def _start_guard(
    channel_fd: int, lifeline_fd: int, disk: Path | None, writable: Sequence[Path]
) -> subprocess.Popen[bytes]:
    arguments = [str(channel_fd), str(lifeline_fd), str(os.getpid()), str(disk or "")]
    arguments += [str(directory.absolute()) for directory in writable]
    return subprocess.Popen(
        interpreter.bare_command(_GUARD_PROGRAM, *arguments),
        pass_fds=(channel_fd, lifeline_fd),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # Ctrl-C reaches the caller alone. A process group is enough for that, and a session
        # would cost wire its place in the scheduler (see wanlat.emulator.backends.wire).
        process_group=0,
        env=interpreter.bare_environment(),
    )
