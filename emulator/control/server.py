"""The running lab's end: answers requests of the same user's other processes.

A request is ``{"op": …, …}``; its answer ``{"ok": true, …}`` or ``{"ok": false, "error": …,
"exit_code": …}``. A thread listens, and every connection has a thread of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

from wanlat.emulator.control import address
from wanlat.emulator.failures import REPORT_IT, is_refusal
from wanlat.emulator.impairments import Lease
from wanlat.emulator.journal import Entry, figures, words
from wanlat.emulator.lab import Lab
from wanlat.emulator.process import Process
from wanlat.emulator.rpc import Closed, Stream
from wanlat.topologies.errors import MachineError, RunFailed, UserError, WanlatError

_ORIGIN = "command"
_LONGEST_HOLD_S = 366 * 24 * 3600.0
_SEND_S = 10.0  # a client that takes no answer for so long has none

Answer = dict[str, Any]


class ControlServer:
    """Lets other processes of this user look at a lab and change it, while the block lasts."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.name = name
        self._since = datetime.now(UTC)
        self._leases: dict[threading.Timer, tuple[Lease, str, datetime]] = {}
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._operations: dict[str, Callable[..., Answer]] = {
            "hello": self.description,
            "show": self._show,
            "change": self._change,
            "check": self._check,
            "cut": self._cut,
            "heal": partial(self._end, lab.heal),
            "restore": partial(self._end, lab.restore),
            "journal": self._journal,
        }

    def __enter__(self) -> Self:
        try:
            self._socket = address.listen()
        except OSError as error:
            raise MachineError(
                f"The lab cannot listen for `wanlat lab` commands: {error.strerror}. "
                "Start it again."
            ) from error
        threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
        with self._lock:
            for timer in self._leases:
                timer.cancel()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            if address.is_ours(connection):
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        stream = Stream(connection)
        try:
            while isinstance((received := stream.receive())[0], dict):
                request, fds = received
                if request.get("op") == "exec":
                    _run_for(stream, self.lab, request, fds)
                    return
                stream.send(self._answer(request), timeout_s=_SEND_S)
        except (Closed, TimeoutError):
            pass
        finally:
            stream.close()

    def _answer(self, request: dict[str, Any]) -> Answer:
        try:
            op = request.pop("op", None)
            if op not in self._operations:
                raise UserError(f"This lab does not know how to {op}.")
            return {"ok": True, **self._operations[op](**request)}
        except Exception as error:
            return _refusal(error)

    def description(self) -> Answer:
        """Return what the lab is: name, process, topology, backend, size, since when."""
        return {
            "name": self.name,
            "pid": os.getpid(),
            "topology": self.lab.plan.name,
            "backend": self.lab.backend,
            "sites": [site.name for site in self.lab.plan.sites],
            "nodes": len(self.lab.plan.nodes),
            "since": self._since.isoformat(timespec="seconds"),
            "supervisor_pid": self.lab.supervisor_pid,
        }

    def _show(self, targets: Sequence[str] | None = None) -> Answer:
        lab = self.lab
        in_force, requested, cut = lab.impairments, lab.requested, lab.cut_off
        counters = lab.counters()
        now = datetime.now(UTC)
        with self._lock:
            leases = [
                {"what": what, "ends_in_s": max(0.0, (end - now).total_seconds())}
                for lease, what, end in self._leases.values()
                if lease.ended_ns is None
            ]
        return {
            "lab": self.description(),
            "directions": [
                {
                    **direction.to_dict(),
                    "in_force": figures(in_force[direction]),
                    "requested": figures(requested[direction]),
                    "changed": in_force[direction] != requested[direction],
                    "cut": direction in cut,
                    "words": words(in_force[direction]),
                    "requested_words": words(requested[direction]),
                    "counters": asdict(counters[direction]) if direction in counters else None,
                }
                for direction in (lab.targets.directions(targets) if targets else in_force)
            ],
            "holds": leases,
        }

    def _change(
        self, targets: Sequence[str], settings: dict[str, Any], for_s: float | None = None
    ) -> Answer:
        if for_s is None:
            return self._done(self.lab.change(targets, origin=_ORIGIN, **settings))
        what = " ".join(["+".join(targets), *(f"{key}={value}" for key, value in settings.items())])
        return self._lease(self.lab.changed(targets, origin=_ORIGIN, **settings), what, for_s)

    def _check(self, targets: Sequence[str], several: Sequence[dict[str, Any]]) -> Answer:
        self.lab.check_changes(targets, *several)
        return {}

    def _cut(self, targets: Sequence[str], for_s: float | None = None) -> Answer:
        if for_s is None:
            return self._done(self.lab.cut(targets, origin=_ORIGIN))
        lease = self.lab.cutting(targets, origin=_ORIGIN)
        return self._lease(lease, f"{'+'.join(targets)} cut", for_s)

    def _end(self, how: Callable[..., int], targets: Sequence[str] | None = None) -> Answer:
        return self._done(how(targets or "all", origin=_ORIGIN))

    def _journal(self, after: int = 0) -> Answer:
        entries = self.lab.journal[after:]
        return {"entries": [_line(entry) for entry in entries], "next": after + len(entries)}

    def _lease(self, lease: Lease, what: str, for_s: float) -> Answer:
        if not 0 < for_s <= _LONGEST_HOLD_S:
            raise UserError(f"A change for {for_s:g} s cannot be held; give more than 0.")

        def end() -> None:
            with self._lock:
                del self._leases[timer]
            with contextlib.suppress(WanlatError):  # the lab has ended, or its journal is full
                lease.end()

        timer = threading.Timer(for_s, end)
        timer.daemon = True
        done = self._done(lease.begin())
        until = datetime.now(UTC) + timedelta(seconds=for_s)
        with self._lock:
            self._leases[timer] = (lease, what, until)
        timer.start()
        return {**done, "until": until.isoformat(timespec="milliseconds")}

    def _done(self, t_ns: int) -> Answer:
        entries = [_line(entry) for entry in self.lab.journal[:] if entry.t_ns == t_ns]
        return {"t_ns": t_ns, "clock": _clock(t_ns), "entries": entries}


def _run_for(stream: Stream, lab: Lab, request: dict[str, Any], fds: list[int]) -> None:
    """Run a program for a client that lends it its streams.

    Signals come over the stream, the exit code goes back; when the client goes, it is killed.
    """
    sending = threading.Lock()

    def reply(answer: Answer) -> None:
        with sending, contextlib.suppress(Closed, TimeoutError):
            stream.send(answer, timeout_s=_SEND_S)

    def report_end(ended: Process) -> None:
        code = ended.poll()
        if code is None:
            reply(_refusal(MachineError(f"The lab has ended. {lab.fate}")))
        else:
            reply({"ok": True, "exit_code": code})

    try:
        stdin, stdout, stderr = fds
        node, argv, env, cwd = (request[name] for name in ("node", "argv", "env", "cwd"))
        process = lab.spawn(node, argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
    except Exception as error:
        reply(_refusal(error))
        return
    finally:
        for fd in fds:
            os.close(fd)
    process.when_ended(report_end)
    try:
        while True:
            message, _ = stream.receive()
            process.send_signal_to_family(int(message["signal"]))
    except (Closed, KeyError, ValueError, TypeError, WanlatError):
        pass
    finally:
        if process.poll() is None:
            with contextlib.suppress(WanlatError):
                process.send_signal_to_family(signal.SIGKILL)


def _refusal(error: Exception) -> Answer:
    """Return the answer that makes the client raise the same error, or one with its text."""
    if not isinstance(error, WanlatError):  # a mistake, or a request that our client does not send
        message = f"The lab could not do it: {type(error).__name__}: {error}"
        refused = is_refusal(error)
        error = MachineError(message) if refused else RunFailed(f"{message}. {REPORT_IT}")
    return {"ok": False, "error": str(error), "exit_code": error.exit_code}


def _line(entry: Entry) -> dict[str, Any]:
    return {
        **entry.to_dict(),
        "clock": _clock(entry.t_ns),
        "before_words": words(entry.before),
        "after_words": words(entry.after),
    }


def _clock(t_ns: int) -> str:
    """Return the time of day of an instant of CLOCK_MONOTONIC."""
    ago_s = (time.monotonic_ns() - t_ns) / 1e9
    then = datetime.now(UTC) - timedelta(seconds=ago_s)
    return then.isoformat(timespec="milliseconds")
