"""One way to run what takes long: Ctrl-C heeded, progress shown, how it ended said."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

import typer

from wanlat.output import emit, is_quiet, is_verbose, people, remark, say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from wanlat.experiments.matrix import MatrixOutcome
    from wanlat.experiments.session import Outcome

Ended = TypeVar("Ended", "Outcome", "MatrixOutcome")
"""A run, a trace or a drill that has ended; or a matrix."""

_LINE_EVERY_S = 60.0


class Reporter(Protocol):
    """Shows how far something is: ``done`` of ``total`` of a stage (None: not known), and details.

    ``is_live``: every report replaces the one before it. ``lane`` yields what reports of one thing
    that is done beside others.
    """

    is_live: bool

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Show it."""

    @contextmanager
    def lane(self) -> Iterator[Self]:
        """Yield one for what is done beside other things."""
        yield self


class Lines(Reporter):
    """Progress where there is no terminal: a line a minute, or for every new stage and detail."""

    is_live = False

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, log: bool = False) -> None:
        """``log``: a line for every new one."""
        self._log = log
        self._last = ("", "")
        self._clock = clock
        self._next_s = clock()

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        now_s, before = self._clock(), self._last
        self._last = (stage, detail)
        if self._last == before if self._log else now_s < self._next_s:
            return
        self._next_s = now_s + _LINE_EVERY_S
        of = f", {done:.0f} of {total:.0f}" if total and not self._log else ""
        remark(f"{stage}: {detail}" if detail else f"{stage}{of}")


class Bar(Reporter):
    """A bar of a terminal, with the details behind it."""

    is_live = True

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage = ""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        if stage != self._stage:
            self._end()
            name = stage.replace("[", r"\[")
            self._task, self._stage = self._progress.add_task(name, total=total, detail=""), stage
        self._progress.update(self._task, completed=done, total=total, detail=detail)

    @contextmanager
    def lane(self) -> Iterator[Self]:
        lane = type(self)(self._progress)
        try:
            yield lane
        finally:
            lane._end()

    def _end(self) -> None:
        if self._stage:
            self._progress.remove_task(self._task)
            self._stage = ""


@contextmanager
def bar(console: Console) -> Iterator[Bar]:
    """Show a bar, or several, while the block runs."""
    from rich import progress as rich

    columns = rich.Progress.get_default_columns()
    detail = rich.TextColumn("{task.fields[detail]}", markup=False)
    counts = (rich.MofNCompleteColumn(), columns[3], rich.TimeElapsedColumn())
    spinner = rich.SpinnerColumn()
    with rich.Progress(
        spinner, *columns[:2], *counts, detail, console=console, transient=True
    ) as shown:
        yield Bar(shown)


@contextmanager
def reporter(*, log: bool = False) -> Iterator[Reporter]:
    """Show progress on stderr while the block runs; ``log``, or `--verbose`: as of `Lines`."""
    if not people().is_terminal or is_quiet():
        yield Lines(log=log or is_verbose())
        return
    with bar(people()) as shown:
        yield shown


def heed_interruptions() -> None:
    """Have SIGINT and SIGTERM raise KeyboardInterrupt.

    SIGINT too: a shell script starts its background jobs with it ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def carry_out(work: Callable[[Reporter], Ended], what: str = "run", *, log: bool = False) -> Ended:
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
    place = ended.directory
    say(f"{progress}What was measured is kept in {place}; `wanlat report {place}` shows it.")
    bundle = {"directory": str(place), "status": ended.status, "reason": ended.reason}
    return {"bundle": {**bundle, **(more or {})}, "endpoints": []}


def leave(ended: Outcome | MatrixOutcome, document: Mapping[str, Any], as_json: bool) -> NoReturn:
    """End the command after a run that is not complete."""
    if as_json:
        emit(document)
    raise typer.Exit(exit_code(ended))
