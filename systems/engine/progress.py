"""How a build reports to people: a line that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

_PLAIN_EVERY_S = 15.0


class Reporter:
    """What an installation prints, by default on standard error."""

    def __init__(self, console: Console | None = None, every_s: float = _PLAIN_EVERY_S) -> None:
        self._console = console or Console(stderr=True)
        self._every_s = every_s

    def note(self, text: str) -> None:
        """Print a line that stays on the screen."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def building(self, title: str) -> Iterator[Callable[[str], None]]:
        """Show one build while the context is open; call what it yields with what it does now."""
        started = last = time.monotonic()
        with self._console.status(escape(title)) as status:

            def show(doing: str) -> None:
                nonlocal last
                now = time.monotonic()
                text = f"{title}: {elapsed(now - started)}: {doing}"
                if self._console.is_interactive:
                    status.update(escape(text))
                elif now - last >= self._every_s:
                    last = now
                    self.note(text)

            yield show


def elapsed(seconds: float) -> str:
    """Return a duration as ``1 min 05 s``, and from an hour on as ``2 h 05 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
