"""The other end: finds this user's running labs and queries one of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wanlat.emulator.closing import Closing
from wanlat.emulator.control import address
from wanlat.emulator.rpc import Closed, Stream
from wanlat.topologies.errors import MachineError, RunFailed, UserError, WanlatError
from wanlat.topologies.wording import did_you_mean, listing, show

_PATIENCE_S = 10.0  # a lab that builds 1,000 nodes' worth of counters answers within this
_GREETING_S = 2.0
_ERRORS: dict[int, type[WanlatError]] = {1: RunFailed, 2: UserError, 3: MachineError}


class LabClient(Closing):
    """A connection to one running lab. Raises what the lab raised, or MachineError."""

    def __init__(self, pid: int, *, timeout_s: float = _PATIENCE_S) -> None:
        self.pid = pid
        self._timeout_s = timeout_s
        try:
            self._stream = Stream(address.connect(pid, timeout_s))
        except OSError as error:
            raise MachineError(
                f"The lab of process {pid} cannot be reached: {error.strerror or error}."
            ) from error

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def query(self, operation: str, **request: Any) -> dict[str, Any]:
        """Return the lab's answer."""
        self._send({"op": operation, **request})
        try:
            return self._take(self._timeout_s)
        except TimeoutError as error:
            raise MachineError(
                f"The lab of process {self.pid} gives no answer; is it stopped?"
            ) from error

    def spawn(self, node: str, argv: Sequence[str], fds: tuple[int, int, int]) -> None:
        """Start a program on a node, with these streams, this environment and directory.

        It lives as long as this connection; ``wait`` returns its exit code.
        """
        request = {"op": "exec", "node": node, "argv": list(argv)}
        self._send({**request, "env": dict(os.environ), "cwd": str(Path.cwd())}, fds)

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit code of what ``spawn`` started. Raises TimeoutError."""
        return int(self._take(timeout_s)["exit_code"])

    def send_signal(self, number: int) -> None:
        """Send a signal to what ``spawn`` started. Where that has ended, ``wait`` returns how."""
        self._send({"signal": int(number)})

    def _send(self, request: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        # A lab that takes no more may have sent why before it closed; whoever waits receives it.
        with contextlib.suppress(Closed, TimeoutError):
            self._stream.send(request, fds, self._timeout_s)

    def _take(self, timeout_s: float | None) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._stream.receive(timeout_s)[0]
        except Closed as error:
            raise MachineError(f"The lab of process {self.pid} has ended: {error}.") from error
        if not answer.pop("ok", False):
            raise _ERRORS.get(answer.get("exit_code", 3), MachineError)(answer.get("error"))
        return answer


def labs() -> list[dict[str, Any]]:
    """Return the description of every running lab of this user.

    One that gives no answer has a ``pid`` and an ``error`` only.
    """
    answers = []
    for pid in address.listening():
        try:
            with LabClient(pid, timeout_s=_GREETING_S) as client:
                answers.append(client.query("hello"))
        except MachineError as error:
            if pid in address.listening():  # else it has ended meanwhile
                answers.append({"pid": pid, "error": str(error)})
    return answers


def find(wanted: str | None) -> LabClient:
    """Return a connection to the lab of that name or process id; None: to the only one.

    Raises UserError when there is none, or more than one.
    """
    running = labs()
    if not running:
        raise UserError("No lab is running. `wanlat lab up TOPOLOGY` starts one.")
    fitting = [
        lab for lab in running if wanted is None or wanted in (lab.get("name"), str(lab["pid"]))
    ]
    shown = listing(f"{lab.get('name', '(no answer)')} (process {lab['pid']})" for lab in running)
    if not fitting:
        names = [str(lab["name"]) for lab in running if "name" in lab]
        raise UserError(
            f"No running lab is named {show(wanted)}{did_you_mean(str(wanted), names)}; "
            f"running: {shown}."
        )
    if len(fitting) > 1:
        raise UserError(
            f"More than one lab is running: {shown}. Say which with --lab NAME or its process id."
        )
    return LabClient(fitting[0]["pid"])
