"""How late the network was at which time, and so during which requests.

The emulation records it in bins of time (`lateness.parquet`): the greatest lateness of the packets
that left within a bin, and of a sentinel that only wakes up. What left late by 80 ms was held up
for 80 ms: a request that was on its way at any moment of these may be late because of it.

**Whether a request counts is decided by a window that does not depend on how long it took**: the
first `window_ns` of it. Of requests judged by their whole length the long ones would be left out
most often (one that takes T remains with probability exp(-rate * T)), and figures would be those of
the quick ones. What happens behind the window is not left out but bounded: `held_up_ns`.
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

LEAST_WINDOW_NS = 20_000_000
"""Where the network has no length: about as long as stalls of a busy machine last."""

Instants = np.ndarray[Any, np.dtype[np.int64]]


def window_ns(rtt_ms: float | np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return how much of a request, from its start, decides whether it counts: a round trip, ns.

    ``rtt_ms``: the requested RTT of its network, the same for all requests that are compared; NaN:
    not known.
    """
    known = np.nan_to_num(np.asarray(rtt_ms, dtype=np.float64))
    return np.maximum(LEAST_WINDOW_NS, 1e6 * known).astype(np.int64)


class Lateness:
    """The greatest lateness at any time, from the bins that are known."""

    def __init__(self, bins: Iterable[tuple[int, int]] = ()) -> None:
        """``bins``: when each begins, and the greatest lateness in it, ns."""
        self._greatest: dict[int, int] = {}
        self._ordered: tuple[Instants, Instants] | None = None
        for start_ns, max_ns in bins:
            self.add(start_ns, max_ns)

    def add(self, start_ns: int, max_ns: int) -> None:
        """Take in a bin."""
        for place in range((start_ns - max_ns) // BIN_NS, start_ns // BIN_NS + 1):
            self._greatest[place] = max(max_ns, self._greatest.get(place, 0))
        self._ordered = None

    def during(self, begins_ns: Instants, ends_ns: Instants) -> Instants:
        """Return the greatest lateness between each two instants, ns; 0: none worth mentioning."""
        places, greatest_ns = self._in_order()
        first, behind = _within(places, begins_ns, ends_ns)
        ranges = np.stack((first, behind), axis=-1).ravel()
        latest: Instants = np.zeros(first.shape, dtype=np.int64)
        if ranges.size:
            latest = np.maximum.reduceat(np.append(greatest_ns, 0), ranges)[::2]
        return np.where(behind > first, latest, 0)

    def held_up(self, begins_ns: Instants, ends_ns: Instants, allowed_ns: Instants) -> Instants:
        """Return for how long between each two instants the network was more than so late, ns.

        A chain of messages that wait for one another stands still for no longer than that.
        """
        held = np.zeros(begins_ns.shape, dtype=np.int64)
        places, greatest_ns = self._in_order()
        for allowed in np.unique(allowed_ns):
            first, behind = _within(places[greatest_ns > allowed], begins_ns, ends_ns)
            held = np.where(allowed_ns == allowed, (behind - first) * BIN_NS, held)
        shorter: Instants = np.minimum(held, ends_ns - begins_ns)
        return shorter

    def _in_order(self) -> tuple[Instants, Instants]:
        """Return the numbers of the bins, ascending, and the greatest lateness in each."""
        if self._ordered is None:
            pairs = np.array(sorted(self._greatest.items()), dtype=np.int64).reshape(-1, 2)
            self._ordered = pairs[:, 0], pairs[:, 1]
        return self._ordered


def _within(
    places: Instants, begins_ns: Instants, ends_ns: Instants
) -> tuple[np.ndarray[Any, np.dtype[np.intp]], np.ndarray[Any, np.dtype[np.intp]]]:
    """Return which of ``places`` lie between each two instants: the first, and that behind."""
    first = np.searchsorted(places, begins_ns // BIN_NS, side="left")
    behind = np.searchsorted(places, ends_ns // BIN_NS, side="right")
    return first, behind


def with_network_error(rows: pa.Table, bins: pa.Table | None, allowed_ns: float) -> pa.Table:
    """Return requests with how late the network was during each, filled in where it is missing.

    Columns `network_error_ns` (greatest lateness until the answer), `late` (it exceeds what is
    allowed within the window) and `held_up_ns` (most by which lateness can have made it longer).
    ``bins``: rows of `lateness.parquet`; None: it is not known. Of a request that was never sent
    none is known.
    """
    unknown = (
        rows["start_ns"].is_null().to_numpy()
        if bins is not None
        else np.ones(rows.num_rows, np.bool_)
    )
    columns = [
        bins[name].to_pylist() if bins is not None else [] for name in ("start_ns", "max_ns")
    ]
    lateness = Lateness(zip(*columns, strict=True))
    starts, took, sizes = (
        rows[name].fill_null(0).to_numpy() for name in ("start_ns", "elapsed_ns", "object_bytes")
    )
    rtts_ms = rows["rtt_ms"].to_numpy() if "rtt_ms" in rows.column_names else np.zeros(len(starts))
    allowed = (allowed_ns + MOVING_NS * sizes).astype(np.int64)
    columns_ns = {
        "network_error_ns": lateness.during(starts, starts + took),
        "late": lateness.during(starts, starts + window_ns(rtts_ms)) > allowed,
        "held_up_ns": lateness.held_up(starts, starts + took, allowed),
    }
    for name, column in columns_ns.items():
        values = pa.array(column, mask=unknown)
        place = rows.schema.get_field_index(name)
        if place < 0:
            rows = rows.append_column(name, values)
        else:
            rows = rows.set_column(place, name, pc.coalesce(rows[name], values))
    return rows
