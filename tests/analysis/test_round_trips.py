"""Lines are found where there are some, refused where there are none, and known as well as said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from round_trips_noise import NOISE, QUIET, Requests, requests

from wanlat.analysis.figures.agreement import compare
from wanlat.analysis.figures.round_trips import named
from wanlat.analysis.stats.round_trips import Estimate, Mode, estimate
from wanlat.analysis.stats.slopes import levels_of, line_through

Values = NDArray[np.float64]
Added = Callable[[Requests, np.random.Generator], Values]


def made(seed: int, round_trips: float = 1.0, **how: Any) -> Requests:
    """With the noise of a machine that has little else to do, unless told otherwise."""
    return requests(np.random.default_rng(seed), round_trips, **{"noise": QUIET, **how})


def of(sent: Requests, latency_ms: Values | None = None, seed: int = 1) -> Estimate:
    latencies = sent.latency_ms if latency_ms is None else latency_ms
    return estimate(sent.rtt_ms, latencies, sent.step, seed)


def tenths(sent: Requests, k: int) -> NDArray[np.bool_]:
    """k of every ten requests."""
    return np.arange(sent.step.size) % 10 < k


@pytest.mark.parametrize("round_trips", [0.0, 0.5, 1.0, 1.37, 3.0, 5.0])
def test_the_slope_is_the_number_of_round_trips_whole_or_not(round_trips: float) -> None:
    found = of(made(11, round_trips))
    (mode,) = found.modes
    assert mode.round_trips == pytest.approx(round_trips, abs=0.01)
    assert mode.ci95[0] <= round_trips <= mode.ci95[1]
    assert mode.ci95 == pytest.approx(tuple(np.percentile(found.draws[:, 0], (2.5, 97.5))))
    assert found.integer == (int(round_trips) if round_trips == int(round_trips) else None)
    assert mode.n + found.unexplained == found.n
    assert (at := found.at(100)) is not None and at[1][0] < at[0] < at[1][1]
    assert at[0] == pytest.approx(mode.intercept_ms + 100 * mode.round_trips)


@pytest.mark.parametrize("seed", [0, 3, 4])
@pytest.mark.parametrize(
    ("added", "modes", "how"),
    [
        pytest.param(
            lambda sent, _: np.where(tenths(sent, 3), 0, 2 * sent.rtt_ms),
            {3: 0.7, 1: 0.3},
            {"noise": NOISE},
            id="30 % one and 70 % three, on a busy machine",
        ),
        pytest.param(
            lambda sent, _: -np.where(tenths(sent, 4), sent.rtt_ms, 0),
            {1: 0.6, 0: 0.4},
            {},
            id="modes that meet at no distance are counted where they part",
        ),
        pytest.param(
            lambda sent, _: sent.rtt_ms * (np.arange(sent.step.size) % 3),
            dict.fromkeys((1, 2, 3), 1 / 3),
            {},
            id="three modes",
        ),
        pytest.param(
            lambda sent, _: np.where(sent.step >= 7, sent.rtt_ms, 0),
            {1: None, 2: None},
            {},
            id="a leader that moves halfway: modes that share no step",
        ),
        pytest.param(
            lambda sent, rng: np.where(tenths(sent, 1), rng.exponential(1.0, sent.step.size), 0),
            {1: 1.0},
            {},
            id="heartbeats are no mode",
        ),
        pytest.param(
            lambda sent, _: np.where(sent.step % 7 == 3, 35 * (sent.step > 5), 0),
            {1: None},
            {},
            id="a busy step is no mode",
        ),
    ],
)
def test_modes_are_found_with_their_shares(
    seed: int, added: Added, modes: dict[int, float | None], how: dict[str, Any]
) -> None:
    sent = made(seed, **how)
    found = of(sent, sent.latency_ms + added(sent, np.random.default_rng(seed)))
    assert {round(mode.round_trips, 1) for mode in found.modes} == set(modes)
    explained = sum(mode.share for mode in found.modes)
    shares = {round(mode.round_trips): mode.share / explained for mode in found.modes}
    known = {trips: share for trips, share in modes.items() if share is not None}
    assert {trips: shares[trips] for trips in known} == pytest.approx(known, abs=0.06)
    assert [mode.share for mode in found.modes] == sorted(m.share for m in found.modes)[::-1]
    if len(known) == len(modes):
        assert explained > (0.85 if how else 0.93)
        mean = sum(trips * share for trips, share in known.items())
        assert found.mean_round_trips == pytest.approx(mean, abs=0.1)
        low, high = found.mean_ci95 or (0, 0)
        assert low - 0.01 <= mean <= high + 0.01


@pytest.mark.parametrize(
    "bent",
    [
        pytest.param(lambda rtt, own: np.maximum(rtt, 50) + own, id="a wait hides short distances"),
        pytest.param(lambda rtt, own: np.maximum(rtt, 8) + own, id="a wait hides no distance"),
        pytest.param(lambda rtt, own: np.minimum(rtt, 150) + own, id="a timeout cuts long ones"),
        pytest.param(lambda rtt, own: rtt + 0.001 * rtt**2 + own, id="growing faster"),
        pytest.param(lambda rtt, own: rtt * np.where(rtt > 60, 2, 1) + own, id="two beyond 60 ms"),
        pytest.param(
            lambda _, own: np.random.default_rng(2).uniform(0, 400, own.size), id="any latency"
        ),
    ],
)
def test_what_is_no_line_is_refused_in_words(bent: Callable[[Values, Values], Values]) -> None:
    for seed in range(4):
        sent = made(seed)
        found = of(sent, bent(sent.rtt_ms, sent.latency_ms - sent.rtt_ms))
        assert found.why
        assert (found.modes, found.main, found.integer, found.at(50)) == ((), None, None, None)
        assert (found.mean_round_trips, found.mean_ci95) == (None, None)


def test_fewer_than_three_rtts_are_an_error_however_they_were_measured() -> None:
    sent = made(1, rtts_ms=(0.0, 100.0))
    wobble = np.repeat(np.linspace(0, 0.1, 6), 15)
    for rtt_ms in (sent.rtt_ms, sent.rtt_ms + wobble):
        with pytest.raises(ValueError, match="2 different RTTs"):
            estimate(rtt_ms, sent.latency_ms, sent.step, 1)
    with pytest.raises(ValueError, match="0 different RTTs"):
        estimate(np.array([]), np.array([]), np.array([], dtype=int), 1)


def test_data_and_seed_fix_the_estimate_and_the_order_of_requests_does_not_matter() -> None:
    sent = made(6)
    first, second, other = of(sent), of(sent), of(sent, seed=2)
    assert first.modes == second.modes and (first.draws == second.draws).all()
    assert first.modes[0].round_trips == other.modes[0].round_trips
    assert (first.draws != other.draws).any()
    order = np.random.default_rng(0).permutation(sent.step.size)
    again = estimate(sent.rtt_ms[order], sent.latency_ms[order], sent.step[order], 1)
    assert again.modes[0].round_trips == pytest.approx(first.modes[0].round_trips, abs=1e-9)
    assert (again.members == first.members[order]).all()
    # Two runs of one seed draw independently.
    draws = first.draws[:, 0], of(made(22)).draws[:, 0]
    assert abs(np.corrcoef(*draws)[0, 1]) < 0.1


# --- how often intervals hold -------------------------------------------------------------------


@pytest.mark.minutes
def test_the_interval_contains_the_truth_93_to_97_times_in_100() -> None:
    rng, held = np.random.default_rng(20), 0
    for repetition in range(1000):
        sent, draws = requests(rng, 1.0), np.random.default_rng(repetition)
        levels = levels_of(sent.rtt_ms)
        asked = sent.rtt_ms, sent.latency_ms, sent.step, levels.level
        line = line_through(*asked, draws, draws=498)
        low, high = np.percentile(line.draws[:, 0], (2.5, 97.5))
        held += low <= 1.0 <= high
        assert abs(line.slope - 1) < 0.03
    assert 930 <= held <= 970


@pytest.mark.minutes
@pytest.mark.parametrize("modes", [1, 3])
def test_so_it_does_after_the_search_for_modes_which_finds_those_there_are(modes: int) -> None:
    rng, held, right, refused, shares = np.random.default_rng(30 + modes), 0, 0, 0, []
    for repetition in range(120):
        sent = requests(rng, 1.0)
        lots = rng.random(sent.step.size)
        extra = np.where(lots < 0.6, 2 * sent.rtt_ms, 0) + np.where(lots > 0.9, 40, 0)
        latency_ms = sent.latency_ms + (extra if modes > 1 else 0)
        found = estimate(sent.rtt_ms, latency_ms, sent.step, repetition, draws=400)
        if found.main is None:
            refused += 1
            continue
        held += found.main.ci95[0] <= modes <= found.main.ci95[1]
        right += len(found.modes) == modes
        shares.append(found.main.share)
    assert refused <= 2
    assert min(held, right) >= 108
    assert np.mean(shares) == pytest.approx(1.0 if modes == 1 else 0.6, abs=0.03)


# --- whether two answers agree ------------------------------------------------------------------

MODE = Mode(1.0, 2.0, (1.99, 2.01), 3.0, (2.9, 3.1), 225)
THREE = replace(MODE, share=0.7, round_trips=3.0, ci95=(2.98, 3.02))
ONE = replace(MODE, share=0.3, round_trips=1.0, ci95=(0.97, 1.03))


@pytest.mark.parametrize(
    ("modes", "members", "chains", "agree"),
    [
        ([MODE], [0] * 50, [2.0] * 50, True),
        ([replace(MODE, ci95=(2.05, 2.09))], [0] * 50, [2.0] * 50, True),
        ([replace(MODE, ci95=(2.12, 2.2))], [0] * 50, [2.0] * 50, False),
        ([replace(MODE, ci95=(1.4, 2.6))], [0] * 50, [2.5] * 50, True),
        ([MODE], [0] * 50, [2.5] * 50, False),
        ([THREE, ONE], [0] * 70 + [1] * 30, [3.0] * 70 + [1.0] * 30, True),
        ([THREE, ONE], [0] * 70 + [1] * 30, [3.0] * 100, False),
        ([THREE, ONE], [0] * 70 + [1] * 30, [3.0] * 40 + [1.0] * 60, False),
        ([THREE, ONE], [0] * 70 + [1] * 30, [3.0] * 65 + [1.0] * 35, True),
        ([THREE, ONE], [0] * 70 + [1] * 30, [1.0] * 70 + [3.0] * 30, False),
        # Latencies on no line, and paths that are not known, contradict nothing.
        ([THREE, ONE], [0] * 70 + [-1] * 30, [3.0] * 70 + [7.0] * 30, True),
        ([THREE, ONE], [0] * 70 + [1] * 30, [3.0] * 70 + [math.nan] * 30, True),
        # One request among few is no disagreement, two are.
        ([THREE, ONE], [0] * 6, [3.0] * 5 + [5.0], True),
        ([THREE, ONE], [0] * 6, [3.0] * 4 + [5.0] * 2, False),
        # No request has both answers.
        ([THREE, ONE], [0] * 5, [math.nan] * 5, None),
        # Two parallel lines are one length.
        ([MODE, replace(MODE, share=0.4, intercept_ms=43.0)], [0] * 6 + [1] * 4, [2.0] * 10, True),
    ],
)
def test_when_modes_and_critical_paths_agree(
    modes: list[Mode], members: list[int], chains: list[float], agree: bool | None
) -> None:
    found = compare(modes, np.array(members), np.array(chains))
    assert found.agrees is agree
    assert (found.disagreement is not None) is (agree is False)


def test_a_tie_is_not_one_number() -> None:
    assert named([(3.0, 113 / 225), (2.0, 112 / 225)]) == [(3.0, 113 / 225), (2.0, 112 / 225)]
    assert named([(3.0, 0.9), (2.0, 0.1)]) == [(3.0, 0.9)]
    assert named([(2.0, 0.6), (2.01, 0.4)]) == [(2.0, 1.0)]
