"""What became of the disk space of one system after objects were removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

FREED_ALL = 0.9
"""From this share of what removed objects took on, it counts as given back."""
FREED_NOTHING = 0.05
"""Up to this, as not."""


@dataclass(frozen=True)
class Course:
    """Space of all nodes together: `t_s` since the removal ended, bytes.

    A node counts with what it was last seen to have.
    """

    t_s: Values
    space_bytes: Values
    trash_bytes: Values

    def at(self, t_s: float) -> float | None:
        """Bytes when it was last looked at before `t_s`; None before the first look."""
        known = self.space_bytes[self.t_s <= t_s]
        return float(known[-1]) if known.size else None


@dataclass(frozen=True)
class Reclaimed:
    """One system. Bytes are of all nodes; what removed objects took is their share of `grown`.

    `watched_s` is how long it was watched; what a run that was cut short had not reached is None.
    `lost` of `kept` objects that were to stay could not be read; `still_there` of `removed_looked`
    removed ones could.
    """

    series: Series
    where: tuple[tuple[str, str], ...]
    objects: int
    object_bytes: int
    removed: int
    which: str
    empty_bytes: float
    full_bytes: float
    removing_s: float
    watched_s: float
    kept: int | None
    lost: int | None
    removed_looked: int | None
    still_there: int | None
    course: Course = field(repr=False, compare=False)

    @property
    def grown(self) -> float:
        """By how much the directories grew as the objects were written."""
        return self.full_bytes - self.empty_bytes

    @property
    def taken_by_removed(self) -> float:
        """What the removed objects took of that."""
        return self.grown * self.removed / self.objects

    def freed_at(self, t_s: float) -> float | None:
        """The share of it that was given back, so long after the removal."""
        space = self.course.at(t_s)
        if space is None or self.taken_by_removed <= 0 or t_s > self.watched_s + 1:
            return None
        return (self.full_bytes - space) / self.taken_by_removed

    @property
    def freed(self) -> float | None:
        """The share that was given back when watching ended."""
        return self.freed_at(self.watched_s)

    def freed_after_s(self, share: float) -> float | None:
        """When so much of it was given back and stayed so; None: not while it was watched."""
        wanted = self.full_bytes - share * self.taken_by_removed
        inside = self.course.t_s <= self.watched_s + 1
        t_s, space = self.course.t_s[inside], self.course.space_bytes[inside]
        above = space > wanted
        if not t_s.size or above[-1]:
            return None
        last = int(above.nonzero()[0][-1]) + 1 if above.any() else 0
        return max(0.0, float(t_s[last]))

    def trash_share(self) -> float:
        """The greatest share of what the removed objects took that lay in a trash at once."""
        inside = self.course.trash_bytes
        return float(inside.max()) / self.taken_by_removed if inside.size else 0.0

    @property
    def trash_left(self) -> float:
        """What lay there when watching ended, as such a share."""
        inside = self.course.trash_bytes[self.course.t_s <= self.watched_s + 1]
        return float(inside[-1]) / self.taken_by_removed if inside.size else 0.0

    def to_json(self, instants_s: Sequence[float]) -> dict[str, Any]:
        """The entry of summary.json; shares are of what the removed objects took."""
        return {
            "system": self.series.system,
            "version": self.series.version,
            **({"values": dict(self.where)} if self.where else {}),
            "objects": self.objects,
            "object_bytes": self.object_bytes,
            "removed": self.removed,
            "which": self.which,
            "empty_bytes": round(self.empty_bytes),
            "full_bytes": round(self.full_bytes),
            "removing_s": round(self.removing_s, 3),
            "watched_s": round(self.watched_s, 3),
            "freed": [
                {"after_s": after_s, "share": _digits(self.freed_at(after_s))}
                for after_s in instants_s
            ],
            "freed_at_end": _digits(self.freed),
            "freed_half_after_s": _digits(self.freed_after_s(0.5)),
            "freed_most_after_s": _digits(self.freed_after_s(FREED_ALL)),
            "trash_at_most": _digits(self.trash_share()),
            "trash_at_end": _digits(self.trash_left),
            "kept_looked_for": self.kept,
            "kept_lost": self.lost,
            "removed_looked_for": self.removed_looked,
            "removed_still_there": self.still_there,
        }


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
