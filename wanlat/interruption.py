"""How a run ends: Ctrl-C and SIGTERM included, and what is said of it then."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from wanlat.output import remark, say

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


class Ended(Protocol):
    """A run, a matrix or a drill that has ended."""

    directory: Path
    status: str
    reason: str | None

    @property
    def warnings(self) -> Sequence[str]:
        """What a reader of the results must know."""

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader may want to know."""


def show_ending(ended: Ended, what: str = "run") -> None:
    """Print the remarks and warnings, and how it ended unless it is complete."""
    for each in ended.remarks:
        remark(each)
    for warning in ended.warnings:
        say(f"warning: {warning}", style="yellow")
    if ended.status == "interrupted":
        say("Interrupted.", style="bold yellow")
    elif ended.status != "complete":
        say(f"The {what} failed: {ended.reason}", style="bold red")


def exit_code(ended: Ended) -> int:
    """Return the exit code of a run that is not complete."""
    return INTERRUPTED if ended.status == "interrupted" else 1


def document(ended: Ended) -> dict[str, Any]:
    """Return where its bundle is, and how it ended."""
    return {
        "directory": str(ended.directory),
        "status": ended.status,
        "reason": ended.reason,
    }
