"""When the machine stood still, and how much of a time that was.

A virtual machine is taken off its processors by its host; then nothing runs, and clocks go on.
`wire` sees that (`emulator/wire/src/stalls.rs`) and keeps packets by running time, which is
CLOCK_MONOTONIC without the stalls. Who measures with that clock takes them off here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Instants = np.ndarray[Any, np.dtype[np.int64]]

TABLE = "stalls"
"""Of a bundle whose machine stood still: rows of ``tables.STALLS``."""
DURATIONS = {
    "samples": ("connect_ns", "sent_ns", "first_byte_ns", "total_ns"),
    "load": ("first_byte_ns", "total_ns", "elapsed_ns"),
}
"""The columns of a table that count from ``start_ns`` and are read without stalls. ``elapsed_ns``
of samples is not one of them: it says when, on the clock that packets and events are told by."""


class Stalls:
    """Stalls of a machine: any number, in the order of time, and none within another."""

    def __init__(self, spans_ns: Sequence[tuple[int, int]] | Instants = ()) -> None:
        """``spans_ns``: from when until when, CLOCK_MONOTONIC in ns, shape (n, 2)."""
        spans = np.asarray(spans_ns, dtype=np.int64).reshape(-1, 2)
        self._starts, self._ends = spans[:, 0], spans[:, 1]
        self._before = np.concatenate(([0], np.cumsum(self._ends - self._starts)))

    def __len__(self) -> int:
        """Return how many there are."""
        return int(self._starts.size)

    @property
    def total_ns(self) -> int:
        """How long all of them lasted."""
        return int(self._before[-1])

    @property
    def longest_ns(self) -> int:
        """How long the longest lasted; 0 without any."""
        return int((self._ends - self._starts).max(initial=0))

    def until(self, instants_ns: Instants) -> Instants:
        """Return how long the machine stood still before each instant, ns, in their shape."""
        if not len(self):
            return np.zeros_like(instants_ns)
        begun = np.searchsorted(self._starts, instants_ns, side="right")
        left = np.clip(self._ends[np.maximum(begun - 1, 0)] - instants_ns, 0, None)
        stalled: Instants = self._before[begun] - np.where(begun > 0, left, 0)
        return stalled

    def within(self, since_ns: Instants, until_ns: Instants) -> Instants:
        """Return how much of each time the machine stood still, ns, in their shape."""
        stalled: Instants = self.until(until_ns) - self.until(since_ns)
        return stalled


def without_stalls(rows: pd.DataFrame, stalls: Stalls, durations: Sequence[str]) -> pd.DataFrame:
    """Return requests whose ``durations`` count running time alone; all instants in ns.

    An instant at which one was due is put off by what stalled until it was sent, so that from there
    on, too, running time is counted. What is not known stays so.
    """
    starts = rows["start_ns"].astype("Int64")
    changed = {}
    for name in (*durations, "due_ns"):
        if name not in rows:
            continue
        values = rows[name].astype("Int64")
        known = (values.notna() & starts.notna()).to_numpy(dtype=bool)
        since_ns: Instants = starts[known].to_numpy(np.int64)
        value_ns: Instants = values[known].to_numpy(np.int64)
        if name == "due_ns":
            right_ns = value_ns + stalls.within(value_ns, np.maximum(since_ns, value_ns))
        else:
            right_ns = value_ns - stalls.within(since_ns, since_ns + value_ns)
        values = values.copy()
        values[known] = right_ns
        changed[name] = values
    return rows.assign(**changed)
