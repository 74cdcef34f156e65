"""The owner's end of a sandbox: starts the guard, talks to the supervisor, notices the end.

Lab is what users meet; this is what it stands on.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.emulator.channel import Channel, Closed
from wanlat.emulator.failures import REPORT_IT
from wanlat.emulator.process import Process
from wanlat.emulator.sandbox import HURRY
from wanlat.topologies.errors import MachineError, WanlatError

_START_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 120.0
"""Of any request: the largest lab is built in seconds, even on a busy machine."""
_GUARD_PROGRAM = "from wanlat.emulator.sandbox import main; main()"


class Owner:
    """A running sandbox. ``fate`` says how it ended; it is empty while the sandbox lives.

    ``disk`` is removed at its end.

    Raises MachineError when the machine refuses a sandbox; a mistake of ours as itself.
    """

    def __init__(self, disk: Path | None) -> None:
        self.fate = ""
        self.supervisor_pid = 0
        self._why: Exception | None = None
        """Why it ended, where a process of the sandbox could say so."""
        self._lock = threading.Lock()  # of what the listening thread changes too
        self._exchange = threading.Lock()  # one request and its answer at a time
        self._answers: queue.SimpleQueue[tuple[str, Any, list[int]]] = queue.SimpleQueue()
        self._number = 0
        self._processes: dict[int, Process] = {}
        self._ended_early: dict[int, tuple[int, int]] = {}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._channel = Channel(ours)
        lifeline_read, lifeline = os.pipe()
        self._lifeline: int | None = lifeline
        with theirs:
            self._guard = _start_guard(theirs.fileno(), lifeline_read, disk)
        os.close(lifeline_read)
        threading.Thread(target=self._listen, name="lab", daemon=True).start()
        try:
            kind, value, _ = self._take_answer(_START_TIMEOUT_S)
            if kind != "supervisor":
                raise self._no_beginning()
        except BaseException:
            self.close()
            raise
        self.supervisor_pid = value

    def close(self, *, hurry: bool = False) -> None:
        """End the sandbox and everything in it. Safe to repeat.

        Returns once every process has ended and, unless in a ``hurry``, the kernel has removed
        the network as well.
        """
        self._let_go(hurry)
        self._guard.wait()
        self._channel.close()

    def abort(self, why: str) -> None:
        """End everything at once, from any thread; whoever waits for any of it is told why."""
        self.fate = self.fate or why
        self._let_go(hurry=True)

    def _let_go(self, hurry: bool) -> None:
        with self._lock:
            lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            if hurry:
                with contextlib.suppress(BrokenPipeError):  # the guard has ended already
                    os.write(lifeline, HURRY)
            self._channel.finish()  # the supervisor ends the lab in good order,
            os.close(lifeline)  # and the guard sees that it does

    def ask(
        self, operation: str, *arguments: Any, fds: tuple[int, ...] = ()
    ) -> tuple[Any, list[int]]:
        """Have the supervisor do something; return its answer and descriptors.

        Raises MachineError when the sandbox has ended, and what the supervisor raised: refusals
        of the machine are MachineErrors, mistakes of ours themselves.
        """
        with self._exchange:
            if self.fate:
                raise self._end()
            self._number += 1
            try:
                self._channel.send((self._number, operation, arguments), fds)
            except Closed:
                self._take_answer(_START_TIMEOUT_S)  # then the listener knows why
                raise self._end() from None
            return self._await_answer(self._number)

    def track(self, process: Process) -> None:
        """Have ``process`` told when it ends."""
        with self._lock:
            self._processes[process.pid] = process
            early = self._ended_early.pop(process.pid, None)
            if early is not None:
                del self._processes[process.pid]
        if early is not None:
            process.end(*early)

    def _await_answer(self, number: int) -> tuple[Any, list[int]]:
        while True:
            kind, value, received = self._take_answer(_ANSWER_TIMEOUT_S)
            if kind == "ended":
                raise self._end()
            answered, content = value
            if answered != number:  # an answer to a request that was interrupted
                for fd in received:
                    os.close(fd)
                continue
            if kind == "error":
                raise content
            return content, received

    def _end(self) -> Exception:
        """Return what to raise when the sandbox has ended."""
        return self._why or MachineError(f"The lab has ended. {self.fate}")

    def _no_beginning(self) -> Exception:
        """Return what to raise when there is no supervisor."""
        if self._why is None and self._guard.wait() > 0:  # by itself: nobody killed it
            return RuntimeError(
                f"The lab's guard ended with exit code {self._guard.returncode}; its last words "
                f"are above. {REPORT_IT}"
            )
        return self._end()

    def _take_answer(self, timeout_s: float) -> tuple[str, Any, list[int]]:
        try:
            kind, value, fds = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise MachineError(
                f"The lab's sandbox gave no answer within {timeout_s:.0f} s."
            ) from None
        if kind == "ended":
            self._answers.put((kind, value, []))  # for whoever asks next
        return kind, value, fds

    def _listen(self) -> None:
        """Sort what the supervisor says (runs in a thread of its own until the sandbox ends)."""
        while True:
            try:
                message, fds = self._channel.receive()
            except Closed:
                break
            except Exception as error:  # what cannot be read here: nobody is to wait for ever
                self._note_end(error)
                self.abort(self.fate)
                break
            kind, *content = message
            if kind in ("reply", "error"):
                self._answers.put((kind, tuple(content), fds))
            elif kind == "exit":
                self._note_exit(*content)
            elif kind == "broken":
                self.abort(f"Its emulation broke: {content[0]}.")
            elif kind == "over":  # and the end of the stream follows
                self._note_end(content[0])
            else:
                self._answers.put((kind, content[0], fds))
        self.fate = self.fate or "Its supervisor is gone."
        with self._lock:
            left = list(self._processes.values())
            self._processes.clear()
        for process in left:
            process.end(None, None)
        self._answers.put(("ended", self.fate, []))

    def _note_end(self, error: Exception) -> None:
        """Keep why the sandbox ends, unless that is known already."""
        if self.fate:
            return
        self._why = error
        is_ours = isinstance(error, WanlatError)
        self.fate = str(error) if is_ours else f"It failed: {type(error).__name__}: {error}"

    def _note_exit(self, pid: int, code: int, instant_ns: int) -> None:
        with self._lock:
            process = self._processes.pop(pid, None)
            if process is None:  # its starter has yet to learn this pid
                self._ended_early[pid] = (code, instant_ns)
        if process is not None:
            process.end(code, instant_ns)


def _start_guard(channel_fd: int, lifeline_fd: int, disk: Path | None) -> subprocess.Popen[bytes]:
    arguments = [str(channel_fd), str(lifeline_fd), str(os.getpid())]
    if disk is not None:
        arguments.append(str(disk))
    search_path = os.pathsep.join([str(SEARCH_PATH), *filter(None, sys.path)])
    return subprocess.Popen(
        # All that it imports is named by PYTHONPATH: not the directory it starts in (-P), and
        # no time is spent on what else the environment has installed (-S).
        [sys.executable, "-P", "-S", "-c", _GUARD_PROGRAM, *arguments],
        pass_fds=(channel_fd, lifeline_fd),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # Ctrl-C reaches the caller alone. A process group is enough for that, and a session
        # would cost wire its place in the scheduler (see wanlat.emulator.backends.wire).
        process_group=0,
        env=os.environ | {"PYTHONPATH": search_path},
    )
