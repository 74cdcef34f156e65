"""The packet record of a lab, if it is told to make one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from wanlat.emulator.capture import Capture, CaptureStatus, rows_of
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan


class Captures:
    """Records what crosses a lab's WAN links. ``ask`` is the lab's way to its supervisor."""

    def __init__(self, plan: Plan, ask: Callable[..., Any], wanted: Capture | None) -> None:
        self.last: CaptureStatus | None = None
        """How the record ended; None while it goes on, and where there is none."""
        self._plan = plan
        self._ask = ask
        self._wanted = wanted
        self._is_going_on = False

    def status(self) -> CaptureStatus | None:
        """Return how the record stands, or ended; None where there is none."""
        if self._is_going_on:
            status: CaptureStatus = self._ask("capture_status")[0]
            return status
        return self.last

    def stop(self) -> CaptureStatus | None:
        """Complete the record; return how it ended. Raises MachineError."""
        if self._is_going_on:
            self._is_going_on = False
            self.last = self._ask("stop_capture")[0]
        return self.last

    def start(self) -> None:
        """Begin the record, where one is wanted. Raises UserError, MachineError."""
        wanted = self._wanted
        if wanted is None:
            return
        if not self._plan.wan_links:
            raise UserError(
                f"{self._plan.name} has one site and no WAN link, so there is nothing to record."
            )
        with contextlib.ExitStack() as opened:
            files = []
            for path in (wanted.file, rows_of(wanted.file)):
                try:
                    files.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
                except OSError as error:
                    raise UserError(
                        f"Packets cannot be recorded to {path}: {error.strerror}."
                    ) from error
                opened.callback(os.close, files[-1])
            self._ask("start_capture", wanted.limit_bytes, wanted.snap_bytes, fds=tuple(files))
        self._is_going_on = True
