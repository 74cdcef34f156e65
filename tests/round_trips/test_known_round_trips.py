"""The instrument, calibrated: what it says of the reference store is what that is built to do.

Real clusters in real labs. Both answers are held to the truth: the slope of latency against RTT,
and the longest chain of messages in the packet record.
"""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

from tests.round_trips.labs import Came, Labs
from tests.round_trips.runs import DISTURBED, KNOWN, WITHIN

pytestmark = pytest.mark.minutes


@pytest.mark.parametrize("run", KNOWN)
def test_no_slope_is_said_to_be_another_number_of_round_trips(came: Came, run: str) -> None:
    assert not came.wrong(KNOWN[run].truth), came


def test_most_slopes_are_decided_and_right(labs: Labs) -> None:
    """An instrument that never knows would pass every other test."""
    said, errors = [], []
    for name, run in (KNOWN | DISTURBED).items():
        came = labs.came(name)
        for asked, truth in run.truth.items():
            said.append(came.said(asked, truth))
            if (slope := came.round_trips[asked].round_trips) is not None:
                errors.append(abs(slope - truth))
    assert said.count("truth") >= 0.75 * len(said), Counter(said)
    assert statistics.median(errors) <= WITHIN


@pytest.mark.parametrize("run", KNOWN)
def test_the_packets_chain_is_exactly_that_number(came: Came, run: str) -> None:
    truth = KNOWN[run].truth
    chains = {asked: came.round_trips[asked].chain_round_trips for asked in truth}
    assert chains == truth, came


@pytest.mark.parametrize("run", KNOWN)
def test_no_request_beats_what_its_placement_allows(came: Came, run: str) -> None:
    for asked, truth in KNOWN[run].truth.items():
        least = came.round_trips[asked].least_round_trips
        assert least is not None, asked
        assert least <= truth
