"""What is known to fool a measurement, planted in a real cluster: the number stays where it is."""

from __future__ import annotations

import pytest

from tests.round_trips.labs import Came, Labs
from tests.round_trips.runs import DISTURBED, RUNS, WITHIN


@pytest.mark.parametrize("run", DISTURBED)
def test_the_estimate_is_still_the_truth(came: Came, run: str) -> None:
    assert not came.off(DISTURBED[run].truth), came


@pytest.mark.parametrize("run", DISTURBED)
def test_the_estimate_is_not_moved_beyond_its_interval(labs: Labs, came: Came, run: str) -> None:
    twin = DISTURBED[run].twin
    assert twin
    undisturbed = labs.came(twin)
    for asked, found in came.round_trips.items():
        (low, high), (least, most) = (
            each.ci95 or (0.0, 0.0) for each in (found, undisturbed.round_trips[asked])
        )
        assert low <= most and least <= high, (asked, (low, high), (least, most), came, undisturbed)


@pytest.mark.parametrize("run", DISTURBED)
def test_the_chain_is_not_moved(came: Came, run: str) -> None:
    truth = DISTURBED[run].truth
    chains = {asked: came.round_trips[asked].chain_round_trips for asked in truth}
    assert chains == truth, came


@pytest.mark.parametrize("run", ["a delayed acknowledgement"])
def test_a_delayed_acknowledgement_is_a_mode_of_its_own(came: Came, run: str) -> None:
    """Of a third of the requests: as many round trips, and 40 ms on top."""
    for asked, truth in DISTURBED[run].truth.items():
        found = came.round_trips[asked]
        assert found.modes
        late = [m for m in found.modes if m.intercept_ms - found.modes[0].intercept_ms > 30]
        assert late, (asked, found.modes, came)
        assert late[0].intercept_ms - found.modes[0].intercept_ms == pytest.approx(40, abs=8)
        assert late[0].round_trips == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("run", ["a mixture"])
def test_a_mixture_is_taken_apart(came: Came, run: str) -> None:
    """30 % cost one round trip, 70 % three."""
    for asked in RUNS[run].truth:
        found = came.round_trips[asked]
        # Of those that lie on a line: what a busy machine held up lies on none, and is told so.
        explained = sum(mode.share for mode in found.modes)
        cheap = [mode for mode in found.modes if round(mode.round_trips) == 1]
        assert {round(mode.round_trips) for mode in found.modes} == {1, 3}, (found.modes, came)
        assert sum(mode.share for mode in cheap) / explained == pytest.approx(0.3, abs=0.05), came
        assert cheap[0].round_trips == pytest.approx(1, abs=2 * WITHIN)  # of a third as many
        assert found.modes[0].round_trips == pytest.approx(3, abs=WITHIN)
        chains = {chain.round_trips: chain.share for chain in found.chains}
        assert chains[1] == pytest.approx(0.3, abs=0.05), chains
        assert chains[3] == pytest.approx(0.7, abs=0.05), chains


@pytest.mark.parametrize("run", ["Nagle between nodes"])
def test_a_round_trip_that_tcp_waits_for_is_counted_by_both_answers(came: Came, run: str) -> None:
    """Nagle's algorithm between sites is no disturbance: it costs a round trip like any other."""
    assert not came.off(RUNS[run].truth), came
    for asked, truth in RUNS[run].truth.items():
        found = came.round_trips[asked]
        assert found.chain_round_trips == truth, (found.chains, came)
