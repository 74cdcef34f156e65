"""One way to run what takes long: Ctrl-C heeded, progress shown, how it ended said."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from wanlat.output import emit, remark, reporter, say

if TYPE_CHECKING:
    from wanlat.experiments.matrix import MatrixOutcome
    from wanlat.experiments.session import Outcome
    from wanlat.output import Lines
    from wanlat.progress_bar import Bar

INTERRUPTED = 130
"""The exit code that a shell reports of a program that Ctrl-C ended."""


Ended = TypeVar("Ended", "Outcome", "MatrixOutcome")
"""A run, a trace or a drill that has ended; or a matrix."""


def heed_interruptions() -> None:
    """Have SIGINT and SIGTERM raise KeyboardInterrupt.

    SIGINT too: a shell script starts its background jobs with it ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def carry_out(
    work: Callable[[Lines | Bar], Ended], what: str = "run", *, log: bool = False
) -> Ended:
    """Do the work with progress; say its remarks and warnings, and how it ended if not complete."""
    with reporter(log=log) as report:
        ended = work(report)
    for each in ended.remarks:
        remark(each)
    for warning in ended.warnings:
        say(f"warning: {warning}", style="yellow")
    if ended.status == "interrupted":
        say("Interrupted.", style="bold yellow")
    elif ended.status != "complete":
        say(f"The {what} failed: {ended.reason}", style="bold red")
    return ended


def exit_code(ended: Outcome | MatrixOutcome) -> int:
    """Return the exit code of a run that is not complete."""
    return INTERRUPTED if ended.status == "interrupted" else 1


def document(ended: Outcome | MatrixOutcome) -> dict[str, Any]:
    """Return where its bundle is, and how it ended."""
    facts = {"status": ended.status, "reason": ended.reason}
    return {"directory": str(ended.directory), **facts}


def leave(
    ended: Outcome | MatrixOutcome, kept: str, more: Mapping[str, Any], *, as_json: bool
) -> NoReturn:
    """End the command after a run that is not complete: say what is kept of it, and where.

    No charts then: who interrupts a run wants it to end, and half a study is no result.
    """
    say(kept)
    if as_json:
        emit({"bundle": document(ended), **more})
    raise typer.Exit(exit_code(ended))
