"""Lines are found where there are some, refused where there are none, and known as well as said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from round_trips_noise import NOISE, QUIET, Requests, requests

from wanlat.analysis.figures.agreement import compare
from wanlat.analysis.figures.round_trips import named
from wanlat.analysis.stats.round_trips import Estimate, Mode, estimate
from wanlat.analysis.stats.slopes import levels_of, line_through, points_of

Values = NDArray[np.float64]


def made(seed: int, round_trips: float = 1.0, **how: object) -> Requests:
    """With the noise of a machine that has little else to do, unless told otherwise."""
    how = {"noise": QUIET, **how}
    return requests(np.random.default_rng(seed), round_trips, **how)  # type: ignore[arg-type]


def of(sent: Requests, latency_ms: Values | None = None, seed: int = 1) -> Estimate:
    latencies = sent.latency_ms if latency_ms is None else latency_ms
    return estimate(sent.rtt_ms, latencies, sent.step, seed)


def tenths(sent: Requests, k: int) -> NDArray[np.bool_]:
    """k of every ten requests."""
    return np.arange(sent.step.size) % 10 < k


@pytest.mark.parametrize("round_trips", [0.0, 0.5, 1.0, 1.37, 3.0, 5.0])
def test_the_slope_is_the_number_of_round_trips_whole_or_not(round_trips: float) -> None:
    found = of(made(11, round_trips))
    assert found.round_trips == pytest.approx(round_trips, abs=0.01)
    assert found.ci95 is not None and found.ci95[0] <= round_trips <= found.ci95[1]
    assert found.ci95 == pytest.approx(tuple(np.percentile(found.draws[:, 0], (2.5, 97.5))))
    whole = int(round_trips) if round_trips == int(round_trips) else None
    assert found.integer == whole
    assert len(found.modes) == 1 and found.modes[0].n + found.unexplained == found.n
    assert (at := found.at(100)) is not None and at[1][0] < at[0] < at[1][1]
    assert at[0] == pytest.approx(found.main.intercept_ms + 100 * found.main.round_trips)


@pytest.mark.parametrize("noise", [QUIET, NOISE], ids=["quiet", "busy"])
@pytest.mark.parametrize("seed", range(3))
def test_thirty_per_cent_of_one_round_trip_and_seventy_of_three(
    seed: int, noise: dict[str, list[tuple[float, Values]]]
) -> None:
    sent = made(seed, noise=noise)
    found = of(sent, sent.latency_ms + np.where(tenths(sent, 3), 0, 2 * sent.rtt_ms))
    assert [round(mode.round_trips, 1) for mode in found.modes] == [3.0, 1.0]
    explained = sum(mode.share for mode in found.modes)
    assert explained > (0.93 if noise is QUIET else 0.85)
    for mode, truth in zip(found.modes, (0.7, 0.3), strict=True):
        assert mode.share / explained == pytest.approx(truth, abs=0.05)
        assert mode.share_ci95[0] <= truth <= mode.share_ci95[1]
    assert found.mean_round_trips == pytest.approx(2.4, abs=0.1)
    assert found.mean_ci95 is not None and found.mean_ci95[0] <= 2.4 <= found.mean_ci95[1]


def test_modes_that_meet_at_no_distance_are_counted_where_they_part() -> None:
    sent = made(3)
    found = of(sent, sent.latency_ms - np.where(tenths(sent, 4), sent.rtt_ms, 0))
    assert [round(mode.round_trips, 1) for mode in found.modes] == [1.0, 0.0]
    assert found.modes[1].share == pytest.approx(0.4, abs=0.04)
    # Who is a member at no distance nobody knows, so most there are of the greater mode.
    assert found.modes[1].n < 0.4 * found.n


def test_three_modes() -> None:
    sent = made(5)
    found = of(sent, sent.latency_ms + sent.rtt_ms * (np.arange(sent.step.size) % 3))
    assert sorted(round(mode.round_trips) for mode in found.modes) == [1, 2, 3]
    assert [mode.share for mode in found.modes] == pytest.approx([1 / 3] * 3, abs=0.04)


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_a_leader_that_moves_halfway_makes_two_modes_that_share_no_step(seed: int) -> None:
    sent = made(seed)
    found = of(sent, sent.latency_ms + np.where(sent.step >= 7, sent.rtt_ms, 0))
    assert sorted(round(mode.round_trips, 1) for mode in found.modes) == [1.0, 2.0]


@pytest.mark.parametrize("tenth", [1, 2, 3])
def test_delayed_acknowledgements_are_a_mode_and_move_nothing(tenth: int) -> None:
    sent = made(7)
    found = of(sent, sent.latency_ms + np.where(tenths(sent, tenth), 40, 0))
    assert_unmoved(found, of(sent))
    delayed = found.modes[1]
    assert delayed.share == pytest.approx(tenth / 10, abs=0.05)
    assert delayed.ci95[0] <= 1 <= delayed.ci95[1]
    assert delayed.intercept_ms - found.modes[0].intercept_ms == pytest.approx(40, abs=2)


def test_retransmissions_are_on_no_line_and_heartbeats_on_it_and_neither_moves_anything() -> None:
    sent, rng = made(8), np.random.default_rng(8)
    late = rng.random(sent.step.size) < 0.03
    found = of(sent, sent.latency_ms + np.where(late, rng.uniform(200, 1000, late.size), 0))
    assert_unmoved(found, of(sent))
    assert late.sum() <= found.unexplained <= late.sum() + 3
    assert (found.members[late] == -1).all()
    met = rng.random(late.size) < 0.1
    beside = of(sent, sent.latency_ms + np.where(met, rng.exponential(1.0, met.size), 0))
    assert_unmoved(beside, of(sent))


def assert_unmoved(found: Estimate, quiet: Estimate) -> None:
    assert quiet.ci95 is not None and found.round_trips is not None
    assert quiet.ci95[0] <= found.round_trips <= quiet.ci95[1]


@pytest.mark.parametrize(
    "bent",
    [
        pytest.param(lambda rtt, own: np.maximum(rtt, 50) + own, id="a wait hides short distances"),
        pytest.param(lambda rtt, own: np.maximum(rtt, 8) + own, id="a wait hides no distance"),
        pytest.param(lambda rtt, own: np.minimum(rtt, 150) + own, id="a timeout cuts long ones"),
        pytest.param(lambda rtt, own: rtt + 0.001 * rtt**2 + own, id="growing faster"),
        pytest.param(lambda rtt, own: rtt * np.where(rtt > 60, 2, 1) + own, id="two beyond 60 ms"),
    ],
)
def test_what_is_no_line_is_refused_in_words(bent: Callable[[Values, Values], Values]) -> None:
    for seed in range(4):
        sent = made(seed)
        found = of(sent, bent(sent.rtt_ms, sent.latency_ms - sent.rtt_ms))
        assert not found.fit.is_line
        assert found.fit.why and "RTT" in found.fit.why
        assert (found.round_trips, found.ci95, found.integer, found.at(50)) == (None,) * 4
        assert found.mean_round_trips is None


def test_latencies_that_have_nothing_to_do_with_distance_are_refused() -> None:
    sent = made(2)
    found = of(sent, np.random.default_rng(2).uniform(0, 400, sent.step.size))
    assert not found.fit.is_line and "no line" in (found.fit.why or "")


def test_fewer_than_three_rtts_are_an_error_however_they_were_measured() -> None:
    sent = made(1, rtts_ms=(0.0, 100.0))
    wobble = np.repeat(np.linspace(0, 0.1, 6), 15)
    for rtt_ms in (sent.rtt_ms, sent.rtt_ms + wobble):
        with pytest.raises(ValueError, match="2 different RTTs"):
            estimate(rtt_ms, sent.latency_ms, sent.step, 1)
    with pytest.raises(ValueError, match="0 different RTTs"):
        estimate(np.array([]), np.array([]), np.array([], dtype=int), 1)


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("steps", [1, 2])
def test_few_requests_give_a_wide_answer_or_none(samples: int, steps: int) -> None:
    for rtts in ((0.0, 50.0, 100.0), (0.0, 25.0, 50.0, 100.0, 200.0)):
        found = of(made(4, 2.0, rtts_ms=rtts, steps=steps, samples=samples))
        assert np.isfinite(found.draws).all()
        if found.round_trips is not None and found.ci95 is not None:
            assert found.ci95[0] - 0.1 <= 2 <= found.ci95[1] + 0.1


def test_latencies_without_any_noise_are_known_as_well_as_the_rtt_is() -> None:
    rtt = np.repeat([0.0, 50.0, 100.0, 200.0], 30)
    found = estimate(rtt, 3 * rtt + 2, np.repeat(np.arange(12), 10), 1)
    assert found.round_trips == pytest.approx(3) and found.integer == 3
    assert found.ci95 is not None
    # 0.03 ms at either end, times three round trips, over 200 ms.
    assert 0.0003 < (found.ci95[1] - found.ci95[0]) / 2 < 0.003


def test_data_and_seed_fix_the_estimate_and_the_order_of_requests_does_not_matter() -> None:
    sent = made(6)
    first, second, other = of(sent), of(sent), of(sent, seed=2)
    assert first.modes == second.modes and (first.draws == second.draws).all()
    assert first.main.round_trips == other.main.round_trips
    assert (first.draws != other.draws).any()
    order = np.random.default_rng(0).permutation(sent.step.size)
    again = estimate(sent.rtt_ms[order], sent.latency_ms[order], sent.step[order], 1)
    assert again.main.round_trips == pytest.approx(first.main.round_trips, abs=1e-9)
    assert (again.members == first.members[order]).all()
    # Two runs of one seed draw independently.
    draws = first.draws[:, 0], of(made(22)).draws[:, 0]
    assert abs(np.corrcoef(*draws)[0, 1]) < 0.1


def test_it_agrees_with_theil_and_sen_and_with_least_squares_by_step() -> None:
    from scipy.stats import theilslopes

    for seed in range(5):
        sent = made(seed, rtts_ms=(25.0, 50.0, 100.0, 200.0), steps=4)
        found = of(sent)
        steps = range(sent.step.max() + 1)
        x = np.array([sent.rtt_ms[sent.step == n][0] for n in steps])
        y = np.array([np.median(sent.latency_ms[sent.step == n]) for n in steps])
        slope, _, low, high = theilslopes(y, x, 0.95)
        assert found.ci95 is not None and found.round_trips is not None
        assert found.round_trips == pytest.approx(slope, abs=0.004)
        assert low - 0.004 < found.ci95[0] and found.ci95[1] < high + 0.004
        # Least squares on the requests, errors summed by step (Liang and Zeger 1986).
        design = np.column_stack((np.ones(sent.step.size), sent.rtt_ms))
        bread = np.linalg.inv(design.T @ design)
        beta = bread @ design.T @ sent.latency_ms
        scores = design * (sent.latency_ms - design @ beta)[:, None]
        sums = np.array([scores[sent.step == n].sum(0) for n in steps])
        error = float(np.sqrt((bread @ (sums.T @ sums) @ bread)[1, 1]))
        assert abs(found.round_trips - beta[1]) < 3.5 * error + 0.001


# --- how often intervals hold -------------------------------------------------------------------


@pytest.mark.minutes
def test_the_interval_contains_the_truth_93_to_97_times_in_100() -> None:
    rng, held = np.random.default_rng(20), 0
    for repetition in range(1000):
        sent = requests(rng, 1.0)
        levels = levels_of(sent.rtt_ms)
        points = points_of(sent.rtt_ms, sent.latency_ms, sent.step, levels.of)
        line = line_through(points, levels, np.random.default_rng(repetition), draws=240)
        low, high = np.percentile(line.draws[:, 0], (2.5, 97.5))
        held += low <= 1.0 <= high
        assert abs(line.slope - 1) < 0.03
    assert 930 <= held <= 970


@pytest.mark.minutes
@pytest.mark.parametrize("seed", [30, 40], ids=["one mode", "three modes"])
def test_so_it_does_after_the_search_for_modes_which_finds_those_there_are(seed: int) -> None:
    rng, held, right, refused, shares = np.random.default_rng(seed), 0, 0, 0, 0
    slope, modes = (1.0, 1) if seed == 30 else (3.0, 3)
    for repetition in range(120):
        sent = requests(rng, 1.0)
        lots = rng.random(sent.step.size)
        extra = np.where(lots < 0.6, 2 * sent.rtt_ms, 0) + np.where(lots > 0.9, 40, 0)
        latency_ms = sent.latency_ms + (extra if modes > 1 else 0)
        found = estimate(sent.rtt_ms, latency_ms, sent.step, repetition, draws=200)
        refused += not found.fit.is_line
        held += found.main.ci95[0] <= slope <= found.main.ci95[1]
        right += len(found.modes) == modes
        low, high = found.main.share_ci95
        shares += found.main.share > 0.93 if modes == 1 else low <= 0.6 <= high
    assert refused <= 2
    assert held >= 108
    assert right >= (117 if modes == 1 else 108)
    assert shares >= 102


# --- whether two answers agree ------------------------------------------------------------------

MODE = Mode(1.0, (0.98, 1.0), 2.0, (1.99, 2.01), 3.0, (2.9, 3.1), 225)
THREE = replace(MODE, share=0.7, round_trips=3.0, ci95=(2.98, 3.02))
ONE = replace(MODE, share=0.3, round_trips=1.0, ci95=(0.97, 1.03))


@pytest.mark.parametrize(
    ("ci95", "chain", "agree"),
    [
        ((1.99, 2.01), 2.0, True),
        ((2.05, 2.09), 2.0, True),
        ((2.12, 2.2), 2.0, False),
        ((1.4, 2.6), 2.5, True),
        ((1.99, 2.01), 2.5, False),
    ],
)
def test_a_critical_path_agrees_within_a_tenth_of_the_interval(
    ci95: tuple[float, float], chain: float, agree: bool
) -> None:
    mode = replace(MODE, ci95=ci95)
    assert compare([mode], np.zeros(50, int), np.full(50, chain)).agrees is agree


@pytest.mark.parametrize(
    ("members", "chains", "agree"),
    [
        ([0] * 70 + [1] * 30, [3.0] * 70 + [1.0] * 30, True),
        ([0] * 70 + [1] * 30, [3.0] * 100, False),
        ([0] * 70 + [1] * 30, [3.0] * 40 + [1.0] * 60, False),
        ([0] * 70 + [1] * 30, [3.0] * 65 + [1.0] * 35, True),
        ([0] * 70 + [1] * 30, [1.0] * 70 + [3.0] * 30, False),
        # Latencies on no line, and paths that are not known, contradict nothing.
        ([0] * 70 + [-1] * 30, [3.0] * 70 + [7.0] * 30, True),
        ([0] * 70 + [1] * 30, [3.0] * 70 + [math.nan] * 30, True),
        # One request among few is no disagreement, two are.
        ([0] * 6, [3.0] * 5 + [5.0], True),
        ([0] * 6, [3.0] * 4 + [5.0] * 2, False),
        # No request has both answers.
        ([0] * 5, [math.nan] * 5, None),
    ],
)
def test_when_modes_and_critical_paths_agree(
    members: list[int], chains: list[float], agree: bool | None
) -> None:
    found = compare([THREE, ONE], np.array(members), np.array(chains))
    assert found.agrees is agree
    assert (found.disagreement is not None) is (agree is False)


def test_two_parallel_lines_are_one_length() -> None:
    late = replace(MODE, share=0.4, intercept_ms=43.0)
    members = np.array([0] * 6 + [1] * 4)
    assert compare([MODE, late], members, np.full(10, 2.0)).agrees
    assert named([(2.0, 0.6), (2.01, 0.4)]) == [(2.0, 1.0)]


def test_a_tie_is_not_one_number() -> None:
    assert named([(3.0, 113 / 225), (2.0, 112 / 225)]) == [(3.0, 113 / 225), (2.0, 112 / 225)]
    assert named([(3.0, 0.9), (2.0, 0.1)]) == [(3.0, 0.9)]
