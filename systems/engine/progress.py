"""How a build reports to people: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

from wanlat.systems.engine.kinds import Step

_PLAIN_EVERY_S = 15.0


class Reporter(Protocol):
    """What an installation tells."""

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""

    def building(self, title: str) -> AbstractContextManager[Callable[[Step], None]]:
        """Show one build while the context is open; call what it yields with each step."""


def reporter(console: Console | None = None) -> Reporter:
    """Return the reporter that suits the console, by default standard error."""
    console = console or Console(stderr=True)
    return LiveReporter(console) if console.is_terminal else PlainReporter(console)


class LiveReporter:
    """A bar that moves in place."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(escape(text), highlight=False, soft_wrap=True)

    @contextmanager
    def building(self, title: str) -> Iterator[Callable[[Step], None]]:
        """Show a bar with units done, elapsed time and what is being done."""
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            # What is left of the line, and no more: a long text must not squeeze the others out.
            TextColumn("[dim]{task.fields[doing]}", table_column=Column(ratio=1, no_wrap=True)),
            expand=True,
            console=self._console,
            transient=True,
        )
        with bar:
            task = bar.add_task(escape(title), total=None, doing="")

            def show(step: Step) -> None:
                bar.update(
                    task, completed=step.done or 0, total=step.total, doing=escape(step.doing)
                )

            yield show


class PlainReporter:
    """A line now and then, for logs and pipes."""

    def __init__(
        self,
        console: Console,
        every_s: float = _PLAIN_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._every_s = every_s
        self._clock = clock

    def note(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def building(self, title: str) -> Iterator[Callable[[Step], None]]:
        """Print how far the build is, at most once an interval."""
        begun = self._clock()
        last = begun - self._every_s

        def show(step: Step) -> None:
            nonlocal last
            now = self._clock()
            if now - last >= self._every_s:
                last = now
                self.note(f"{title}: {elapsed(now - begun)}: {counted(step)}{step.doing}")

        yield show


def elapsed(seconds: float) -> str:
    """Return a duration as ``1 min 05 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def counted(step: Step) -> str:
    """Return ``12 of 345, ``, ``12, `` or nothing."""
    if step.done is None:
        return ""
    return f"{step.done} of {step.total}, " if step.total is not None else f"{step.done}, "
