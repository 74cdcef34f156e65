"""The progress bar of a terminal. Apart, because Rich takes a while to be imported."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Bar(Progress):
    """A bar with a line of text underneath, where there is something to say."""

    detail = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, and the line, cut where the terminal ends."""
        yield from super().get_renderables()
        if self.detail:
            yield Text(f"  {self.detail}", no_wrap=True, overflow="ellipsis")

    @classmethod
    def get_default_columns(cls) -> tuple[ProgressColumn, ...]:
        """What is done of how much, the time it took, and the time left."""
        return (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
