"""Where the command line writes: people read stderr, scripts read one JSON document on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_PIPE_WIDTH = 120  # of logs and pipes, which have no width of their own

people = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else _PIPE_WIDTH)
"""The console for everything that people read."""


def emit(document: Any) -> None:
    """Print the one JSON document of a ``--json`` command."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def say(text: str, *, style: str | None = None) -> None:
    """Print a line for people, exactly as it is (no markup)."""
    people.print(text, style=style, markup=False, soft_wrap=True)


class Bar(Progress):
    """A bar with a line of text underneath, where there is something to say."""

    detail = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, and the line, cut where the terminal ends."""
        yield from super().get_renderables()
        if self.detail:
            yield Text(f"  {self.detail}", no_wrap=True, overflow="ellipsis")


class Reporter:
    """Progress of long work: a bar with the time left on a terminal, plain lines elsewhere."""

    def __init__(self, progress: Bar | None) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("", total=None)
        self._told = ("", "")

    @property
    def is_live(self) -> bool:
        """Whether it can be told something new every moment, because the old goes away."""
        return self._progress is not None

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Report that ``done`` of ``total`` of a stage is done (None: not known), and details."""
        if self._progress is not None and self._task is not None:
            if stage != self._told[0]:
                self._progress.reset(self._task, description=stage)
                self._progress.tasks[self._task].total = total  # None too, which reset leaves out
            self._progress.detail = detail
            self._progress.update(self._task, description=stage, completed=done, total=total)
        elif (stage, detail) != self._told:
            say(f"{stage}: {detail}" if detail else stage)
        self._told = (stage, detail)


@contextmanager
def reporter() -> Iterator[Reporter]:
    """Show progress on stderr while the block runs."""
    if not people.is_terminal:
        yield Reporter(None)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=people, transient=True) as progress:
        yield Reporter(progress)
