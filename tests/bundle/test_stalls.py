"""What the machine's stalls take off instants and durations, by hand and by brute force."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bundle.test_schema import STUDY
from wanlat.bundle import tables
from wanlat.bundle.read import read_stalls, read_table
from wanlat.bundle.stalls import Stalls, without_stalls
from wanlat.bundle.write import BundleWriter

SPANS = [(100, 130), (200, 250)]


@pytest.mark.parametrize(
    ("since", "until", "stalled"),
    [
        (0, 90, 0),
        (0, 100, 0),
        (0, 110, 10),
        (110, 120, 10),
        (120, 140, 10),
        (130, 200, 0),
        (0, 225, 55),
        (0, 1000, 80),
        (250, 1000, 0),
    ],
)
def test_the_time_stood_still_within_a_time(since: int, until: int, stalled: int) -> None:
    found = Stalls(SPANS).within(np.array([since]), np.array([until]))
    assert found.tolist() == [stalled]


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), max_size=8),
    st.lists(st.integers(0, 300), min_size=1, max_size=20),
)
def test_it_is_what_counting_says(lengths: list[tuple[int, int]], instants: list[int]) -> None:
    spans, now = list[tuple[int, int]](), 0
    for runs, stands in lengths:
        spans.append((now + runs, now + runs + stands))
        now += runs + stands
    still = {each for start, end in spans for each in range(start, end)}
    expected = [sum(each < instant for each in still) for instant in instants]
    assert Stalls(spans).until(np.array(instants)).tolist() == expected


def test_a_request_is_as_long_as_the_machine_ran_during_it() -> None:
    rows = pd.DataFrame(
        {
            "start_ns": [0, 90, 120, None],
            "due_ns": [None, 90, 95, 10],
            "total_ns": [50, 60, None, None],
        }
    )
    found = without_stalls(rows, Stalls(SPANS), ["total_ns"])
    assert found["total_ns"].tolist() == [50, 30, pd.NA, pd.NA]
    # The third was sent 25 after it was due, and 20 of these the machine stood still.
    assert found["due_ns"].tolist() == [pd.NA, 90, 115, 10]
    assert found["start_ns"].tolist()[:3] == [0, 90, 120]


def sample(start_ns: int, total_ns: int) -> dict[str, object]:
    return {"start_ns": start_ns, "total_ns": total_ns, "elapsed_ns": total_ns, "outcome": "ok"}


def test_samples_of_a_bundle_are_read_without_stalls(tmp_path: Path) -> None:
    writer = BundleWriter.create(tmp_path / "bundle", STUDY)
    writer.sample(sample(90, 60))
    writer.sample(sample(300, 60))
    note = writer.table("stalls", tables.STALLS)
    for start_ns, end_ns in SPANS:
        note({"start_ns": start_ns, "end_ns": end_ns})
    for _ in range(2):  # lines of a run that goes on, then tables of one that ended
        found = read_table(writer.directory, "samples")
        assert found is not None
        assert found[0]["total_ns"].tolist() == [30, 60]
        assert found[0]["elapsed_ns"].tolist() == [60, 60]
        only = read_table(writer.directory, "samples", {"total_ns": "Int64"})
        assert only is not None
        assert only[0]["total_ns"].tolist() == [30, 60]
        writer.close("complete", None)
    stalls = read_stalls(writer.directory)
    assert stalls is not None
    assert (len(stalls), stalls.total_ns, stalls.longest_ns) == (2, 80, 50)
    assert not list(writer.directory.glob("*.jsonl"))
