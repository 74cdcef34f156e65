"""The progress bar of a terminal. Apart, because Rich takes a while to be imported."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.progress import (
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TimeElapsedColumn,
)
from rich.text import Text


class Bar(Progress):
    """A bar with a line of text underneath, where there is something to say."""

    is_live = True
    _stage = _detail = ""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Show that ``done`` of ``total`` of a stage is done (None: not known), and details."""
        if stage != self._stage:
            for task in self.task_ids:
                self.remove_task(task)
            self.add_task(stage.replace("[", r"\["), total=total)
            self._stage = stage
        self._detail = detail
        self.update(self.task_ids[0], completed=done, total=total)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, and the line, cut where the terminal ends."""
        yield from super().get_renderables()
        if self._detail:
            yield Text(f"  {self._detail}", no_wrap=True, overflow="ellipsis")

    @classmethod
    def get_default_columns(cls) -> tuple[ProgressColumn, ...]:
        """What is done of how much, and the time left and taken."""
        stage, bar, _, left = super().get_default_columns()
        return SpinnerColumn(), stage, bar, MofNCompleteColumn(), left, TimeElapsedColumn()
