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
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from wanlat.emulator.control import address
from wanlat.emulator.control.lines import Lines
from wanlat.emulator.failures import REPORT_IT, is_refusal
from wanlat.emulator.impairment_words import figures, words
from wanlat.emulator.impairments import Hold
from wanlat.emulator.journal import Entry
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.topologies.errors import MachineError, RunFailed, UserError, WanlatError

_ORIGIN = "command"
_LONGEST_HOLD_S = 366 * 24 * 3600.0


class ControlServer:
    """Lets other processes of this user look at a lab and change it, while the block lasts."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.name = name
        self._since = datetime.now(UTC)
        self._holds: dict[threading.Timer, tuple[Hold, str, datetime]] = {}
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._operations: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "hello": lambda _request: self.description(),
            "show": self._show,
            "change": self._change,
            "cut": self._cut,
            "heal": self._heal,
            "restore": self._restore,
            "journal": self._journal,
        }

    def __enter__(self) -> Self:
        try:
            self._socket = address.listen()
        except OSError as error:
            raise MachineError(
                f"The lab cannot listen for `wanlat lab` commands ({error.strerror}): somebody "
                f"holds its name, {address.name_of(os.getpid())}. Start it again."
            ) from error
        threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
        with self._lock:
            for timer in self._holds:
                timer.cancel()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            if not address.is_ours(connection):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(Lines(connection),), daemon=True).start()

    def _serve(self, lines: Lines) -> None:
        try:
            while (request := lines.receive()) is not None:
                if request.get("op") == "exec":
                    _Guest(self.lab, lines).serve(request)
                    return
                lines.send(self._answer(request))
        except ConnectionError:
            pass
        finally:
            lines.close()

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        operation = self._operations.get(str(request.get("op")))
        try:
            if operation is None:
                raise UserError(f"This lab does not know how to {request.get('op')}.")
            return {"ok": True, **operation(request)}
        except WanlatError as error:
            return refusal(error)
        except Exception as error:  # a mistake, or a request that our own client does not send
            return refusal(_unexpected(error))

    def description(self) -> dict[str, Any]:
        """Return what it says of itself: name, process, topology, backend, size, since when."""
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

    def _show(self, request: Mapping[str, Any]) -> dict[str, Any]:
        targets = request.get("targets")
        lab = self.lab
        shown = lab.targets.directions(targets) if targets else tuple(lab.impairments)
        in_force, asked, cut = lab.impairments, lab.requested, lab.cut_off
        counters = lab.counters()
        now = datetime.now(UTC)
        with self._lock:
            holds = [
                {"what": what, "ends_in_s": max(0.0, (end - now).total_seconds())}
                for hold, what, end in self._holds.values()
                if hold.ended_ns is None
            ]
        return {
            "lab": self.description(),
            "directions": [
                {
                    **_ends(each),
                    "in_force": figures(in_force[each]),
                    "requested": figures(asked[each]),
                    "changed": in_force[each] != asked[each],
                    "cut": each in cut,
                    "words": words(in_force[each]),
                    "requested_words": words(asked[each]),
                    "counters": asdict(counters[each]) if each in counters else None,
                }
                for each in shown
            ],
            "holds": holds,
        }

    def _change(self, request: Mapping[str, Any]) -> dict[str, Any]:
        targets, settings = request["targets"], request["settings"]
        what = f"{'+'.join(targets)} {' '.join(f'{k}={v}' for k, v in settings.items())}"
        if request.get("for_s") is None:
            return self._done(self.lab.change(targets, origin=_ORIGIN, **settings))
        hold = self.lab.changed(targets, origin=_ORIGIN, **settings)
        return self._hold(hold, what, request["for_s"])

    def _cut(self, request: Mapping[str, Any]) -> dict[str, Any]:
        targets = request["targets"]
        if request.get("for_s") is None:
            return self._done(self.lab.cut(targets, origin=_ORIGIN))
        hold = self.lab.cutting(targets, origin=_ORIGIN)
        return self._hold(hold, f"{'+'.join(targets)} cut", request["for_s"])

    def _heal(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._done(self.lab.heal(request.get("targets") or "all", origin=_ORIGIN))

    def _restore(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._done(self.lab.restore(request.get("targets") or "all", origin=_ORIGIN))

    def _journal(self, request: Mapping[str, Any]) -> dict[str, Any]:
        after = int(request.get("after", 0))
        entries = self.lab.journal[after:]
        return {"entries": [_line(each) for each in entries], "next": after + len(entries)}

    def _hold(self, hold: Hold, what: str, for_s: float) -> dict[str, Any]:
        if not 0 < for_s <= _LONGEST_HOLD_S:
            raise UserError(f"A change for {for_s:g} s cannot be held; give more than 0.")
        timer = threading.Timer(for_s, self._end_hold)
        timer.daemon = True
        timer.args = [timer]  # it tells which one has ended
        done = self._done(hold.begin())
        end = datetime.now(UTC) + timedelta(seconds=for_s)
        with self._lock:
            self._holds[timer] = (hold, what, end)
        timer.start()
        return {**done, "until": end.isoformat(timespec="milliseconds")}

    def _end_hold(self, timer: threading.Timer) -> None:
        with self._lock:
            hold, _, _ = self._holds.pop(timer)
        with contextlib.suppress(WanlatError):  # the lab has ended, or its journal is full
            hold.end()

    def _done(self, t_ns: int) -> dict[str, Any]:
        entries = []
        for entry in reversed(self.lab.journal[:]):
            if entry.t_ns < t_ns:
                break
            if entry.t_ns == t_ns:
                entries.append(_line(entry))
        return {"t_ns": t_ns, "clock": _clock(t_ns), "entries": entries[::-1]}


class _Guest:
    """A program on a node of the lab, for a client that lends it its streams."""

    def __init__(self, lab: Lab, lines: Lines) -> None:
        self._lab = lab
        self._lines = lines
        self._sending = threading.Lock()

    def serve(self, request: Mapping[str, Any]) -> None:
        """Start it, pass signals to it, tell how it ended; when the client goes, kill it."""
        try:
            stdin, stdout, stderr = self._lines.fds
            node, argv, env, cwd = (request[name] for name in ("node", "argv", "env", "cwd"))
        except (KeyError, TypeError, ValueError) as error:
            self._send(refusal(UserError(f"The request is not complete: {error}")))
            return
        try:
            process = self._lab.spawn(
                node, argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr
            )
        except WanlatError as error:
            self._send(refusal(error))
            return
        except Exception as error:
            self._send(refusal(_unexpected(error)))
            return
        process.when_ended(lambda ended: self._tell(ended.poll()))
        try:
            while (message := self._lines.receive()) is not None:
                process.send_signal_to_all(int(message["signal"]))
        except (ConnectionError, KeyError, ValueError, TypeError, WanlatError):
            pass
        finally:
            if process.poll() is None:
                with contextlib.suppress(WanlatError):
                    process.send_signal_to_all(signal.SIGKILL)

    def _tell(self, code: int | None) -> None:
        if code is None:
            self._send(refusal(MachineError(f"The lab has ended. {self._lab.fate}")))
        else:
            self._send({"ok": True, "exit_code": code})

    def _send(self, document: dict[str, Any]) -> None:
        with self._sending, contextlib.suppress(ConnectionError):
            self._lines.send(document)


def refusal(error: WanlatError) -> dict[str, Any]:
    """Return the answer that makes the client raise the same error."""
    return {"ok": False, "error": str(error), "exit_code": error.exit_code}


def _unexpected(error: Exception) -> WanlatError:
    """Return what the client is told of an error that is none of ours."""
    said = f"The lab could not do it: {type(error).__name__}: {error}"
    return MachineError(said) if is_refusal(error) else RunFailed(f"{said}. {REPORT_IT}")


def _ends(direction: Direction) -> dict[str, str]:
    return {"link": direction.kind, "from": direction.source, "to": direction.target}


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
