"""One way to run what takes long: Ctrl-C, progress, and how it ended."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar

import typer

from wanlat.bundle.errors import BundleError
from wanlat.fix_it import place_of
from wanlat.output import (
    counted,
    emit,
    inform,
    is_quiet,
    is_verbose,
    people,
    remark,
    report_unforeseen,
)
from wanlat.remaining import Remaining
from wanlat.streams import not_waiting
from wanlat.suggested import Given, resuming
from wanlat.topologies.errors import MachineError, WanlatError, way_out_of_machine, with_way_out
from wanlat.topologies.stop import Stop

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from wanlat.experiments.matrix import MatrixOutcome
    from wanlat.experiments.matrix_points import PreparedPoints
    from wanlat.experiments.resume import Unfinished
    from wanlat.experiments.session import Outcome

Ended = TypeVar("Ended", "Outcome", "MatrixOutcome")
"""A run, a trace or a drill that has ended; or a matrix, or several drills."""

_LINE_EVERY_S = 60.0
_REASONS = {
    signal.SIGINT: "interrupted by the user",
    signal.SIGTERM: "ended by SIGTERM",
    signal.SIGHUP: "ended by SIGHUP, as when a terminal is closed",
}
_received: list[int] = []
"""Signals that interrupted this command, in their order."""
_MOST_FAILURES = 20


class Reporter:
    """Shows how far something is: in a row of a live table, or as a line a minute."""

    def __init__(
        self,
        shown: Progress | None = None,
        *,
        log: bool = False,
        clock: Callable[[], float] = time.monotonic,
        whole: Reporter | None = None,
        left: Remaining | None = None,
    ) -> None:
        """``shown``: where the rows are. ``log``, without: a line for every new stage and detail.

        ``whole``: what this is a part of, if it is done beside others. ``left`` judges how long the
        rest takes.
        """
        self._left = left or Remaining(clock=clock)
        self._shown = shown
        self._log = log
        self._clock = clock
        self._next_s = clock()
        self._last: tuple[str, str] = ("", "")
        self._done = self._rest = ""
        self._whole = whole
        self._lanes: list[Reporter] = []

    @property
    def is_live(self) -> bool:
        """Whether every report replaces the one before it."""
        return self._shown is not None

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Report that ``done`` of ``total`` of a stage is done (None: not known), and details."""
        before, self._last = self._last, (stage, detail)
        is_known = self._whole is not None or detail.endswith(" left")
        left = "" if is_known else self._left(stage, done, total)
        if self._shown is not None:
            if stage != before[0]:
                self._end(before[0])
                self._task = self._shown.add_task(stage.replace("[", r"\["), detail="")
            details = "; ".join(filter(None, [detail, left]))
            self._shown.update(self._task, completed=done, total=total, detail=details)
            return
        self._done = f", {done:.0f} of {total:.0f}" if total else ""
        self._rest = f", {left}" if left else ""
        if not self._log or self._lanes:
            (self._whole or self)._print_now_and_then()
        elif self._last != before:
            remark(f"{stage}: {detail}{self._rest}" if detail else f"{stage}{self._rest}")

    def _print_now_and_then(self) -> None:
        """Print a line if it is time: of the whole, and of all its parts that are being done."""
        if self._clock() >= self._next_s:
            self._next_s = self._clock() + _LINE_EVERY_S
            remark("; ".join(lane._line for lane in (self, *self._lanes)))

    @property
    def _line(self) -> str:
        stage, detail = self._last
        done = self._done if self._lanes or not detail else ""
        return f"{stage}{done}{f': {detail}' if detail else ''}{self._rest}"

    def _end(self, stage: str) -> None:
        if self._shown is not None and stage:
            self._shown.remove_task(self._task)

    @contextmanager
    def lane(self) -> Iterator[Reporter]:
        """Yield what reports of one thing that is done beside others: a row of its own."""
        lane = Reporter(self._shown, log=self._log, clock=self._clock, whole=self)
        self._lanes.append(lane)
        try:
            yield lane
        finally:
            self._lanes.remove(lane)
            lane._end(lane._last[0])


@contextmanager
def bar(console: Console, left: Remaining | None = None) -> Iterator[Reporter]:
    """Show a live table while the block runs: a row for each thing that is done, with a bar."""
    from rich import progress as rich

    stage, done, _, _ = rich.Progress.get_default_columns()
    detail = rich.TextColumn("{task.fields[detail]}", markup=False)
    counts = (rich.MofNCompleteColumn(), rich.TimeElapsedColumn(), detail)
    columns = (rich.SpinnerColumn(), stage, done, *counts)
    with rich.Progress(*columns, console=console, transient=True) as shown:
        yield Reporter(shown, left=left)


@contextmanager
def reporter(*, log: bool = False, left: Remaining | None = None) -> Iterator[Reporter]:
    """Show progress on stderr while the block runs; ``log``, or `--verbose`: as of `Reporter`.

    As lines where nothing can be drawn over: in a pipe, and on a terminal with TERM=dumb.
    """
    if not people().is_interactive or is_quiet():
        yield Reporter(log=log or is_verbose(), left=left)
        return
    with bar(people(), left) as shown:
        yield shown


def heed_interruptions() -> None:
    """Have SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, with its name as reason.

    SIGINT too: a shell script starts its background jobs with it ignored. Not SIGHUP where
    nohup(1) ignores it.
    """
    _received.clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)


@contextmanager
def deferred_interruptions() -> Iterator[Stop]:
    """Have SIGINT, SIGTERM and SIGHUP set it while the block lasts, and end nothing.

    For work that may only be left between two of its steps.
    """
    stopping = Stop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    numbers += [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt(_REASONS[signal.Signals(number)])


def interruption_code() -> int:
    """Return the exit code of what was interrupted: 128 and the signal, as a shell reports it."""
    return 128 + (_received or [signal.SIGINT])[0]


def run_with_progress(
    work: Callable[[Reporter], Ended],
    what: str = "run",
    *,
    log: bool = False,
    left: Remaining | None = None,
) -> Ended:
    """Do the work with progress; print its remarks, warnings and end, if it is not complete."""
    with not_waiting(), reporter(log=log, left=left) as report:
        ended = work(report)
    for note in ended.remarks:
        remark(note)
    for warning in ended.warnings:
        inform(f"warning: {warning}", style="yellow")
    if ended.status == "interrupted":
        inform(_sentence(ended.reason), style="bold yellow")
    elif ended.status != "complete":
        inform(f"The {what} failed: {ended.reason}", style="bold red")
        if (place := place_of(str(ended.reason))) is not None:
            inform(f"More: {place}")
    return ended


def _sentence(reason: str | None) -> str:
    """Return why something was interrupted as a sentence of its own."""
    words = reason or "interrupted"
    return f"{words[0].upper()}{words[1:]}."


class _HasDirectory(Protocol):
    """What is prepared, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def directory(self) -> Path:
        """Where its bundle goes."""


R = TypeVar("R", bound=_HasDirectory)


def with_own_directory(prepared: R, out: Path | None) -> R:
    """Return what is prepared with a directory that no other run has; ``out``: the user's choice.

    Raises UserError.
    """
    if out is not None:
        return prepared
    from wanlat.bundle.write import claim_directory  # and with it pyarrow

    return replace(prepared, directory=claim_directory(prepared.directory))


def measure_points(
    prepared: PreparedPoints,
    unfinished: Unfinished | None,
    jobs: int | None,
    workers: str | None,
    *,
    out: Path | None,
    noun: str = "point",
) -> MatrixOutcome:
    """Run the points that are left: ``jobs`` at once (None: one; 0: `auto`), or Dask does.

    ``out``: the directory that the user chose.
    """
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.matrix import run_matrix

    heed_interruptions()
    if workers is None:
        demand_lab(backend=prepared.backend)  # a point that is too large fails by itself
    prepared = with_own_directory(prepared, unfinished.directory if unfinished else out)
    remark(f"{counted(len(prepared.selected), noun)}; bundle: {prepared.directory}")

    def work(report: Reporter) -> MatrixOutcome:
        measure = partial(run_matrix, prepared, report, unfinished=unfinished, lane=report.lane)
        if workers is None:
            return measure(jobs=1 if jobs is None else jobs or None)
        from wanlat.experiments.dask_engine import dask_engine

        with dask_engine(workers, report) as engine:
            return measure(engine=engine)

    return run_with_progress(work, "run" if noun == "point" else f"{noun}s")


@contextmanager
def reporting(bundle: Path) -> Iterator[None]:
    """Where the report of a complete run ends early, print that it can be made later.

    A run stays complete where nothing can be printed or drawn: the exit code is 1, and the
    machine's only where the fault is its own.
    """
    kept = f"All is measured and kept in {bundle}; `wanlat report {quote(str(bundle))}` shows it."
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        inform(f"{_sentence(str(interrupt))} {kept}", style="bold yellow")
        raise typer.Exit(interruption_code()) from None
    except (BundleError, WanlatError) as error:
        way_out = way_out_of_machine(error)
        inform(f"{with_way_out(error)} {kept}", style="bold red")
        raise typer.Exit(MachineError.exit_code if way_out else 1) from error
    except Exception as error:
        report_unforeseen(error, kept)
        raise typer.Exit(MachineError.exit_code if way_out_of_machine(error) else 1) from error


def exit_code(ended: Outcome | MatrixOutcome) -> int:
    """Return the exit code of a run that is not complete."""
    if ended.status == "interrupted":
        return interruption_code()
    return MachineError.exit_code if ended.is_disk_full or ended.is_of_machine else 1


def incomplete(
    ended: Outcome | MatrixOutcome, progress: str = "", more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Print how far an incomplete run came, and where that is; return it as a document.

    No charts then: who interrupts a run wants it to end, and half a study is no result.
    """
    from wanlat.experiments.session import Outcome

    place = ended.directory
    is_empty = isinstance(ended, Outcome) and ended.planned and not ended.measured
    kept = (
        f"The manifest and the logs are in {place}."
        if is_empty
        else f"What was measured is kept in {place}; `wanlat report {quote(str(place))}` shows it."
    )
    is_one = isinstance(ended, Outcome) and ended.status == "interrupted"
    again = " One run is not resumed: the same command begins it again." if is_one else ""
    inform(f"{progress}{kept}{again}")
    bundle = {"directory": str(place), "status": ended.status, "reason": ended.reason}
    return {"bundle": {**bundle, **(more or {})}, "endpoints": []}


def demand_complete(ended: MatrixOutcome, command: str, options: Given) -> dict[str, Any] | None:
    """Print which points are missing, why, and how ``command`` resumes them.

    ``options``: those that the run was given.
    Return that as a document; None where all are complete.
    """
    if ended.status == "complete":
        return None
    for name, reason in [*ended.failures.items()][:_MOST_FAILURES]:
        inform(f"failed: {name}: {reason}", style="red")
    progress = (
        f"{ended.complete} of {ended.points} points are complete and "
        f"{ended.points - ended.complete} are left, {ended.failed} of which failed. "
    )
    counts = {"planned": ended.points, "complete": ended.complete, "failed": ended.failed}
    document = {"bundle": incomplete(ended, progress)["bundle"], "points": counts}
    room = "Make room: then " if ended.is_disk_full else ""
    inform(f"{room}`{resuming(command, ended.directory, options)}` resumes it.")
    return document


def leave(ended: Outcome | MatrixOutcome, document: Mapping[str, Any], as_json: bool) -> NoReturn:
    """End the command after a run that is not complete."""
    if as_json:
        emit(document)
    raise typer.Exit(exit_code(ended))
