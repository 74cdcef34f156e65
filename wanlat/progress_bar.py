"""The progress bar of a terminal. Apart, because Rich takes a while to be imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import (
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)


class Lane:
    """One of the bars: of what is done beside other things."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._stage: str | None = None
        self._task: TaskID | None = None

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Show that ``done`` of ``total`` of a stage is done (None: not known), and details."""
        if stage != self._stage or self._task is None:
            self.end()
            self._task = self._bar.add_task(stage.replace("[", r"\["), total=total, detail="")
            self._stage = stage
        self._bar.update(self._task, completed=done, total=total, detail=detail)

    def end(self) -> None:
        """Take it away."""
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None


class Bar(Progress):
    """A bar for each lane, followed by details where there are any."""

    is_live = True

    def __init__(self, **settings: Any) -> None:
        """``settings`` are Rich's."""
        super().__init__(**settings)
        self._own = Lane(self)

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Show progress in the lane of its own."""
        self._own(stage, done, total, detail)

    @contextmanager
    def lane(self) -> Iterator[Lane]:
        """Yield a lane for what is done beside other things."""
        lane = Lane(self)
        try:
            yield lane
        finally:
            lane.end()

    @classmethod
    def get_default_columns(cls) -> tuple[ProgressColumn, ...]:
        """What is done of how much, the time left and taken, and the details."""
        stage, bar, _, left = super().get_default_columns()
        detail = TextColumn("{task.fields[detail]}", markup=False)
        return SpinnerColumn(), stage, bar, MofNCompleteColumn(), left, TimeElapsedColumn(), detail
