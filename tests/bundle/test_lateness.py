"""Requests of which nobody looked at once how late the network was: that is found in the bins."""

from __future__ import annotations

import pyarrow as pa

from wanlat.bundle import tables
from wanlat.bundle.lateness import BIN_NS, MOVING_NS, with_network_error

MS = 10**6
LATE_NS = 30 * MS
BINS = pa.Table.from_pylist(
    [{"start_ns": 250 * BIN_NS, "n": 3, "max_ns": LATE_NS, "sum_ns": LATE_NS}],
    schema=tables.LATENESS,
)
"""Frames that left at 1,000 ms had been held up since 970 ms."""


def requests(*spans: tuple[int | None, int, int]) -> pa.Table:
    rows = [
        {"start_ns": begin, "elapsed_ns": took, "object_bytes": size} for begin, took, size in spans
    ]
    return pa.Table.from_pylist(rows, schema=tables.LOAD)


def test_a_request_is_late_where_frames_left_late_while_it_was_on_its_way() -> None:
    large = (LATE_NS - 2 * MS) // MOVING_NS
    found = with_network_error(
        requests(
            (900 * MS, 60 * MS, 0),  # over before
            (900 * MS, 80 * MS, 0),  # reaches into it
            (980 * MS, 1 * MS, 0),  # within
            (1100 * MS, 50 * MS, 0),  # begun after
            (980 * MS, 50 * MS, large),  # its own bytes take as long
            (980 * MS, 50 * MS, large - 1),
            (None, 0, 0),  # never sent
        ),
        BINS,
        2.0 * MS,
    )
    assert found["network_error_ns"].to_pylist() == [0, *[LATE_NS] * 2, 0, *[LATE_NS] * 2, None]
    assert found["late"].to_pylist() == [False, True, True, False, False, True, None]


def test_without_bins_nobody_knows() -> None:
    found = with_network_error(requests((900 * MS, 60 * MS, 0)), None, 2.0 * MS)
    assert (found["network_error_ns"].to_pylist(), found["late"].to_pylist()) == ([None], [None])
