"""How long the rest of a run takes: by its estimate at first, then by what has passed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal

_SOON_S = 5.0
"""The pace of a stage that began a moment ago is no ground to judge by."""


class Remaining:
    """Judges what is left of a run of several systems, one after another."""

    def __init__(
        self,
        estimates_s: Mapping[str, float] | None = None,
        *,
        bound: Literal["at least", "at most"] = "at least",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``estimates_s``: of each system, in their order; ``bound``: which kind they are."""
        self._estimates_s, self._bound, self._clock = dict(estimates_s or {}), bound, clock
        self._ahead = [*self._estimates_s]
        self._part, self._part_since_s = "", clock()
        self._stages: dict[str, tuple[float, float]] = {}
        """When each began, and how much of it was done then."""
        self._passed_s = self._estimated_s = 0.0

    def __call__(self, stage: str, done: float, total: float | None) -> str:
        """Return such as `about 3 min 05 s left`, in words; nothing where it is not known.

        A stage begins with the name of its system, as in `garage: measuring`.
        """
        from wanlat.systems.engine.progress import elapsed  # and with it rich

        now_s = self._clock()
        self._follow(stage, done, now_s)
        ratio = self._passed_s / self._estimated_s if self._estimated_s else 1.0
        if self._bound == "at least":
            ratio = max(ratio, 1.0)
        later_s = ratio * sum(self._estimates_s[name] for name in self._ahead)
        estimate_s = self._estimates_s.get(self._part, 0.0) * ratio
        left_s = max(0.0, estimate_s - (now_s - self._part_since_s))
        word: str = self._bound
        since_s, done_before = self._stages[stage]
        made, passed_s = done - done_before, now_s - since_s
        if self._bound == "at least" and total and made > 0 and passed_s >= _SOON_S:
            of_stage_s = passed_s * max(0.0, total - done) / made
            if of_stage_s >= left_s:
                left_s, word = of_stage_s, "about"
        whole_s = left_s + later_s
        return f"{word} {elapsed(whole_s)} left" if whole_s >= 1 else ""

    def _follow(self, stage: str, done: float, now_s: float) -> None:
        """Note what started since the call before, and how long took what is over."""
        part = stage.partition(": ")[0]
        if part in self._ahead:
            if self._part:
                self._passed_s += now_s - self._part_since_s
                self._estimated_s += self._estimates_s[self._part]
            self._part, self._part_since_s = part, now_s
            self._ahead.remove(part)
        if done < self._stages.get(stage, (0.0, float("inf")))[1]:
            self._stages[stage] = now_s, done
