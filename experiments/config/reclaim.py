"""The `reclaim` of a study: how much is written, how much is removed, how long to watch."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from wanlat.topologies.units import Duration
from wanlat.topologies.yaml_model import YamlModel

LONGEST_WATCH = Duration(24 * 3600 * 10**9)

Which = Literal["spread", "oldest"]


def _watch(watch: Duration) -> Duration:
    if not 0 < watch.ns <= LONGEST_WATCH.ns:
        raise ValueError(f"{watch} is not more than 0 and at most {LONGEST_WATCH}")
    return watch


class ReclaimSpec(YamlModel):
    """What makes a study one of disk space that is given back."""

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
    watch: Annotated[Duration, AfterValidator(_watch)] = Field(
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
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return found
