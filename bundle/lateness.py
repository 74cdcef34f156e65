"""How late the network was at which time, and so during which requests.

What emulates a network tells it in bins of time (`lateness.parquet`): the greatest lateness of the
packets that left within a bin, and of a sentinel that only wakes up. What left late by 80 ms was
held up for 80 ms: a request that was on its way at any moment of these may be late because of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wanlat.bundle import BIN_NS

MOVING_NS = 10
"""What a request's network may be late by for each byte of its object, beyond what is allowed.

To move bytes takes the emulation time as well, and what waits behind them is late: 800 Mbit/s, with
all the copies that a store makes.
"""

Instants = np.ndarray[Any, np.dtype[np.int64]]


class Lateness:
    """The greatest lateness at any time, from the bins that are known."""

    def __init__(self, bins: Iterable[tuple[int, int]] = ()) -> None:
        """``bins``: when each begins, and the greatest lateness in it, ns."""
        self._greatest: dict[int, int] = {}
        for start_ns, max_ns in bins:
            self.add(start_ns, max_ns)

    def add(self, start_ns: int, max_ns: int) -> None:
        """Take in a bin."""
        for place in range((start_ns - max_ns) // BIN_NS, start_ns // BIN_NS + 1):
            self._greatest[place] = max(max_ns, self._greatest.get(place, 0))

    def during(self, begins_ns: Instants, ends_ns: Instants) -> Instants:
        """Return the greatest lateness between each two instants, ns; 0: none worth mentioning."""
        places = np.array(sorted(self._greatest), dtype=np.int64)
        greatest = np.array([*(self._greatest[place] for place in places.tolist()), 0])
        first = np.searchsorted(places, begins_ns // BIN_NS, side="left")
        behind = np.searchsorted(places, ends_ns // BIN_NS, side="right")
        ranges = np.stack((first, behind), axis=-1).ravel()
        found: Instants = np.zeros(first.shape, dtype=np.int64)
        if ranges.size:
            found = np.maximum.reduceat(greatest, ranges)[::2]
        return np.where(behind > first, found, 0)


def with_network_error(rows: pa.Table, bins: pa.Table | None, allowed_ns: float) -> pa.Table:
    """Return requests with the columns `network_error_ns` and `late`, filled in where they are not.

    ``bins``: rows of `lateness.parquet`; None: it is not known. A request that was never sent has
    none of both.
    """
    unknown = (
        rows["start_ns"].is_null().to_numpy()
        if bins is not None
        else np.ones(rows.num_rows, np.bool_)
    )
    columns = [
        bins[name].to_pylist() if bins is not None else [] for name in ("start_ns", "max_ns")
    ]
    starts, took, sizes = (
        rows[name].fill_null(0).to_numpy() for name in ("start_ns", "elapsed_ns", "object_bytes")
    )
    errors = Lateness(zip(*columns, strict=True)).during(starts, starts + took)
    found = {
        "network_error_ns": pa.array(errors, mask=unknown),
        "late": pa.array(errors > allowed_ns + MOVING_NS * sizes, mask=unknown),
    }
    for name, values in found.items():
        place = rows.schema.get_field_index(name)
        if place < 0:
            rows = rows.append_column(name, values)
        else:
            rows = rows.set_column(place, name, pc.coalesce(rows[name], values))
    return rows
