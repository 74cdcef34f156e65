"""What sampling costs, and how long to wait so that it stays below its share of a core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LARGEST_SHARE = 0.008
"""Of one core: what one look costs, over the time to the next."""
SPACE_SHARE = 0.003
"""The part of it that going through directories may take."""
_MOST_SAVED = 5
"""Looks."""
_SAVED_AT_FIRST = 2.5
_NEARLY = 1.02


@dataclass
class Cost:
    """Keeps account of looks. All times in nanoseconds; ``every_ns`` is what was asked for."""

    every_ns: int
    cpu_ns: int = 0
    looks: int = 0
    late_ns: list[int] = field(default_factory=list)
    longest_wait_ns: int = 0
    _stretched_by: int = 0
    """CPU time of the look that made the longest wait."""
    _saved_ns: float = 0.0
    """CPU time that looks so far have left of their share."""

    def __post_init__(self) -> None:
        """Save a little for the first look, which finds little in any cache."""
        self._saved_ns = _SAVED_AT_FIRST * self.every_ns * LARGEST_SHARE

    def space_budget_ns(self, spent_ns: int) -> int:
        """Return the CPU time that a look, which has spent so much, has left for directories.

        There is always some, or on a slow machine no directory would ever be done.
        """
        most = int(self.every_ns * SPACE_SHARE)
        left = int(self.every_ns * LARGEST_SHARE) - spent_ns
        return max(min(most, left), most // 8)

    def wait_after(self, spent_ns: int, late_ns: int) -> int:
        """Take note of a look; return how long after its beginning the next one may begin.

        What cheap looks left is spent on a dear one, but no more than a few looks' share is saved:
        else a run that was idle for long could be disturbed later.
        """
        self.looks += 1
        self.cpu_ns += spent_ns
        self.late_ns.append(late_ns)
        self._saved_ns -= spent_ns
        wait_ns = max(self.every_ns, round(-self._saved_ns / LARGEST_SHARE))
        if wait_ns > self.longest_wait_ns:
            self.longest_wait_ns, self._stretched_by = wait_ns, spent_ns
        most_ns = _MOST_SAVED * self.every_ns * LARGEST_SHARE
        self._saved_ns = min(self._saved_ns + wait_ns * LARGEST_SHARE, most_ns)
        return wait_ns

    def stretched(self, of_what: Callable[[], str]) -> str | None:
        """Say that looks were further apart than was asked for, and why; None when they were not.

        ``of_what`` names what was looked at.
        """
        if self.longest_wait_ns <= self.every_ns * _NEARLY:
            return None
        return (
            f"to look at {of_what()} took up to {self._stretched_by / 1e6:.1f} ms of CPU time, so "
            f"samples lie up to {self.longest_wait_ns / 1e9:.1f} s apart and not "
            f"{self.every_ns / 1e9:g} s"
        )

    def late_p99_ms(self) -> float:
        """Return how late one look in a hundred began, or later; 0 without any."""
        if not self.late_ns:
            return 0.0
        ordered = sorted(self.late_ns)
        place = min(len(ordered) - 1, int(len(ordered) * 0.99))
        return round(ordered[place] / 1e6, 3)
