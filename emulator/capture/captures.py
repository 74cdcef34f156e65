"""The part of a lab that records its packets."""

from __future__ import annotations

import contextlib
import os

from wanlat.emulator.binaries import binary
from wanlat.emulator.capture import Capture, CaptureStatus
from wanlat.emulator.sandboxed import Sandboxed
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Plan


class Captures(Sandboxed):
    """The part of a lab that records what crosses its WAN links, if it is told to."""

    def __init__(self, plan: Plan, capture: Capture | None) -> None:
        Sandboxed.__init__(self, plan)
        self._wanted_capture = capture
        self._capture_status: CaptureStatus | None = None
        self._is_capturing = False

    @property
    def capture(self) -> CaptureStatus | None:
        """Return how the packet record stands, or ended; None where there is none.

        None also when the lab ended otherwise than by its block: such a record has no end.
        """
        if self._is_capturing and not self.fate:
            status: CaptureStatus = self._ask("capture_status")[0]
            return status
        return self._capture_status

    def stop_capture(self) -> CaptureStatus | None:
        """Complete the packet record now instead of with the lab; return how it ended.

        Packets that are on their way are in it as held. Raises MachineError.
        """
        if self._is_capturing:
            self._is_capturing = False
            self._capture_status = self._ask("stop_capture")[0]
        return self._capture_status

    def _start_capture(self) -> None:
        wanted = self._wanted_capture
        if wanted is None:
            return
        if not self.plan.wan_links:
            raise UserError(
                f"{self.plan.name} has one site and no WAN link, so there is nothing to record."
            )
        program = binary("wire")
        try:
            file = os.open(wanted.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(
                f"Packets cannot be recorded to {wanted.file}: {error.strerror}."
            ) from error
        try:
            self._ask("start_capture", program, wanted.limit_bytes, wanted.snap_bytes, fds=(file,))
        finally:
            os.close(file)
        self._is_capturing = True

    def _end_capture(self) -> None:
        """Complete the record if it can still be done; else it ends where it is."""
        with contextlib.suppress(MachineError):
            self.stop_capture()
