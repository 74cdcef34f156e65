"""Where the command line writes: people read stderr, scripts read one JSON document on stdout."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from wanlat.progress_bar import Bar

    people: Console
    """The console for everything that people read."""

LINE_EVERY_S = 60.0
"""Progress that is not shown in place is reported once in so many seconds."""

_PIPE_WIDTH = 120  # of logs and pipes, which have no width of their own
_volume = {"level": 0}  # below 0: quiet; above: verbose


def be_quiet(wanted: bool) -> None:
    """Leave out progress and remarks from now on, or not; the results and errors stay."""
    _volume["level"] = -1 if wanted else max(_volume["level"], 0)


def be_verbose(wanted: bool) -> None:
    """Say more from now on, or not."""
    _volume["level"] = 1 if wanted else min(_volume["level"], 0)


def is_verbose() -> bool:
    """Whether the user wants to read more."""
    return _volume["level"] > 0


@cache
def _people() -> Console:
    from rich.console import Console

    width = None if sys.stderr.isatty() else _PIPE_WIDTH
    return Console(stderr=True, highlight=False, width=width)


def __getattr__(name: str) -> Any:
    """Make `people` when it is first asked for: Rich takes a while to be imported."""
    if name == "people":
        return _people()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def emit(document: Any) -> None:
    """Print the one JSON document of a ``--json`` command."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_rows(rows: Iterable[Sequence[str]]) -> None:
    """Print rows on stdout, their columns below each other; the last may be of any length."""
    texts = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = [text.ljust(width) for text, width in zip(row[:-1], widths, strict=False)]
        sys.stdout.write("  ".join([*cells, row[-1]]).rstrip() + "\n")


def counted(number: int, what: str) -> str:
    """Return such as `1 point` and `2 points`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def say(text: str, *, style: str | None = None) -> None:
    """Print a line for people, exactly as it is (no markup)."""
    _people().print(text, style=style, markup=False, soft_wrap=True)


def remark(text: str, *, style: str | None = None) -> None:
    """Print a line that is no result; with `--quiet` it is left out."""
    if _volume["level"] >= 0:
        say(text, style=style)


class Reporter:
    """Progress of long work: a bar with the time left on a terminal, a line a minute elsewhere.

    ``log``: where there is no terminal, every new stage and detail is a line.
    """

    def __init__(
        self,
        progress: Bar | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        log: bool = False,
    ) -> None:
        self._log = log
        self._detail = ""
        self._progress = progress
        self._task = None if progress is None else progress.add_task("", total=None)
        self._stage = ""
        self._clock = clock
        self._next_s = clock()

    @property
    def is_live(self) -> bool:
        """Whether every report replaces the one before it, so that there may be many."""
        return self._progress is not None

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Report that ``done`` of ``total`` of a stage is done (None: not known), and details."""
        if self._progress is not None and self._task is not None:
            if stage != self._stage:
                self._progress.reset(self._task, description=stage)
                self._progress.tasks[self._task].total = total  # None too, which reset leaves out
            self._progress.detail = detail
            self._progress.update(self._task, description=stage, completed=done, total=total)
        elif self._log:
            if (stage, detail) != (self._stage, self._detail):
                remark(f"{stage}: {detail}" if detail else stage)
            self._detail = detail
        elif (now_s := self._clock()) >= self._next_s:
            self._next_s = now_s + LINE_EVERY_S
            counted = f", {done:.0f} of {total:.0f}" if total else ""
            remark(f"{stage}: {detail}" if detail else f"{stage}{counted}")
        self._stage = stage


@contextmanager
def reporter(*, log: bool = False) -> Iterator[Reporter]:
    """Show progress on stderr while the block runs; ``log``, or `--verbose`: as of `Reporter`."""
    console = _people()
    if not console.is_terminal or _volume["level"] < 0:
        yield Reporter(None, log=log or is_verbose())
        return
    from wanlat.progress_bar import Bar

    with Bar(console=console, transient=True) as progress:
        yield Reporter(progress)
