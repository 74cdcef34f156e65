"""The instrument, calibrated: what it says of the reference store is what that is built to do.

Real clusters in real labs. Both answers are held to the truth: the slope of latency against RTT,
and the longest chain of messages in the packet record.
"""

from __future__ import annotations

import pytest

from tests.round_trips.labs import Came
from tests.round_trips.runs import KNOWN

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("run", KNOWN)
def test_the_slope_is_the_number_of_round_trips(came: Came, run: str) -> None:
    assert not came.off(KNOWN[run].truth), came


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
