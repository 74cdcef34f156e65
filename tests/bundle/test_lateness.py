"""Requests of which nobody looked at once how late the network was: that is found in the bins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wanlat.bundle import tables
from wanlat.bundle.lateness import (
    BIN_NS,
    LEAST_WINDOW_NS,
    MOVING_NS,
    window_ns,
    with_network_error,
)

MS = 10**6
LATE_NS = 30 * MS
BINS = pa.Table.from_pylist(
    [{"start_ns": 250 * BIN_NS, "n": 3, "max_ns": LATE_NS, "sum_ns": LATE_NS}],
    schema=tables.LATENESS,
)
"""Frames that left at 1,000 ms had been held up since 970 ms."""


def requests(*spans: tuple[int | None, int, int], rtt_ms: float | None = None) -> pa.Table:
    rows = [
        {"start_ns": begin, "elapsed_ns": took, "object_bytes": size, "rtt_ms": rtt_ms}
        for begin, took, size in spans
    ]
    return pa.Table.from_pylist(rows, schema=tables.SAMPLES)


def judged(*spans: tuple[int | None, int, int], rtt_ms: float | None = None) -> dict[str, Any]:
    found = with_network_error(requests(*spans, rtt_ms=rtt_ms), BINS, 2.0 * MS)
    return {name: found[name].to_pylist() for name in ("network_error_ns", "late", "held_up_ns")}


def test_the_network_error_of_a_request_is_the_greatest_lateness_while_it_was_on_its_way() -> None:
    errors_ns = judged(
        (900 * MS, 60 * MS, 0),  # over before
        (900 * MS, 80 * MS, 0),  # reaches into it
        (980 * MS, 1 * MS, 0),  # within
        (1100 * MS, 50 * MS, 0),  # begun after
        (None, 0, 0),  # never sent
    )["network_error_ns"]
    assert errors_ns == [0, LATE_NS, LATE_NS, 0, None]


@pytest.mark.parametrize("took_ms", [1, 10, 60, 120, 10_000])
def test_whether_a_request_is_late_does_not_depend_on_how_long_it_took(took_ms: int) -> None:
    window_ms = 50
    starts_ms = (900, 968 - window_ms - 4, 970 - window_ms, 990, 1010)
    late = judged(*((start * MS, took_ms * MS, 0) for start in starts_ms), rtt_ms=window_ms)["late"]
    assert late == [False, False, True, True, False]


def test_the_window_is_a_round_trip_and_of_a_short_network_twenty_milliseconds() -> None:
    assert [*window_ns(np.array([0.0, 10.0, 250.0, np.nan]))] == [
        *[LEAST_WINDOW_NS] * 2,
        250 * MS,
        LEAST_WINDOW_NS,
    ]


def test_a_request_is_held_up_by_no_more_than_the_time_in_which_the_network_was_late() -> None:
    held_ns = judged((900 * MS, 200 * MS, 0), (980 * MS, 8 * MS, 0), (1100 * MS, MS, 0))
    whole, part, none = held_ns["held_up_ns"]
    assert LATE_NS <= whole <= LATE_NS + 2 * BIN_NS
    assert (part, none) == (8 * MS, 0)


def test_bytes_of_the_requests_own_take_their_time() -> None:
    large = (LATE_NS - 2 * MS) // MOVING_NS
    found = judged((980 * MS, 50 * MS, large), (980 * MS, 50 * MS, large - 1))
    assert found["late"] == [False, True]
    assert [held > 0 for held in found["held_up_ns"]] == [False, True]


def test_without_bins_nobody_knows() -> None:
    found = with_network_error(requests((900 * MS, 60 * MS, 0)), None, 2.0 * MS)
    for name in ("network_error_ns", "late", "held_up_ns"):
        assert found[name].to_pylist() == [None]
