"""Ctrl-C and SIGTERM: what runs ends in good order, with a bundle that says so."""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130
"""The exit code that a shell reports of a program that Ctrl-C ended."""


def heed_interruptions() -> None:
    """Have both raise KeyboardInterrupt.

    SIGINT too: a shell script starts its background jobs with it ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
