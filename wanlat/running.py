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
    """Return the exit code of a run that is not complete: of Ctrl-C as a shell reports it."""
    return 130 if ended.status == "interrupted" else 1


def incomplete(
    ended: Outcome | MatrixOutcome, progress: str = "", more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Say how far a run came that is not complete, and where that is; return it as a document.

    No charts then: who interrupts a run wants it to end, and half a study is no result.
    """
    directory = ended.directory
    say(
        f"{progress}What was measured is kept in {directory}; `wanlat report {directory}` shows it."
    )
    bundle = {"directory": str(directory), "status": ended.status, "reason": ended.reason}
    return {"bundle": {**bundle, **(more or {})}, "endpoints": []}


def leave(ended: Outcome | MatrixOutcome, document: Mapping[str, Any], as_json: bool) -> NoReturn:
    """End the command after a run that is not complete."""
    if as_json:
        emit(document)
    raise typer.Exit(exit_code(ended))
