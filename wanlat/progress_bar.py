"""The progress bar of a terminal. Apart, because Rich takes a while to be imported."""

from __future__ import annotations

from rich.progress import (
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)


class Bar(Progress):
    """A bar, followed by details where there are any."""

    is_live = True
    _stage = ""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Show that ``done`` of ``total`` of a stage is done (None: not known), and details."""
        if stage != self._stage:
            for task in self.task_ids:
                self.remove_task(task)
            self.add_task(stage.replace("[", r"\["), total=total, detail="")
            self._stage = stage
        self.update(self.task_ids[0], completed=done, total=total, detail=detail)

    @classmethod
    def get_default_columns(cls) -> tuple[ProgressColumn, ...]:
        """What is done of how much, the time left and taken, and the details."""
        stage, bar, _, left = super().get_default_columns()
        detail = TextColumn("{task.fields[detail]}", markup=False)
        return SpinnerColumn(), stage, bar, MofNCompleteColumn(), left, TimeElapsedColumn(), detail
