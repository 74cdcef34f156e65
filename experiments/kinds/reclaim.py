"""Disk space that is given back: objects are written, some are removed, and space is watched."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wanlat.experiments.kinds.base import StudyKind
from wanlat.topologies.units import Duration
from wanlat.topologies.yaml_model import within

LONGEST_WATCH = Duration(24 * 3600 * 10**9)

Which = Literal["spread", "oldest"]


class ReclaimSpec(StudyKind):
    """What makes a study one of disk space that is given back."""

    key = "reclaim"
    purpose = "Makes it a study of disk space that is given back"
    excludes: ClassVar = {
        "prefill": "with `reclaim`, `reclaim.objects` says what is written at first"
    }
    needs_objects = True
    takes_samples = False

    objects: int = Field(default=2000, ge=2, le=10**7, description="Written at first")
    remove: float = Field(default=0.5, gt=0, le=1, description="Share of them that is removed")
    which: Which = Field(
        default="spread",
        description="`spread`: drawn evenly from all; `oldest`: those that were written first",
    )
    workers: int = Field(
        default=8, ge=1, le=1000, description="Requests in flight while writing and removing"
    )
    settle: Duration = Field(
        default=Duration(10 * 10**9), description="Between the writing and the removal"
    )
    watch: Annotated[Duration, within(Duration(1), LONGEST_WATCH)] = Field(
        default=Duration(600 * 10**9), description="How long space is watched after the removal"
    )

    @property
    def removed(self) -> int:
        """How many objects are removed."""
        return max(1, round(self.objects * self.remove))

    def chosen(self, seed: int) -> list[int]:
        """Return the numbers of the objects that are removed, in order."""
        if self.which == "oldest":
            return list(range(self.removed))
        return sorted(random.Random(f"{seed}/reclaim").sample(range(self.objects), self.removed))


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as half-open ranges."""
    periods: list[tuple[int, int]] = []
    for number in numbers:
        if periods and periods[-1][1] == number:
            periods[-1] = periods[-1][0], number + 1
        else:
            periods.append((number, number + 1))
    return periods
