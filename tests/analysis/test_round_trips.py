"""Lines are found where there are some, and refused where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from round_trips_noise import NOISE, QUIET, Requests, requests

from wanlat.analysis.round_trips import Estimate, estimate

Values = NDArray[np.float64]


def made(seed: int, round_trips: float = 1.0, **how: object) -> Requests:
    """With the noise of a machine that has little else to do, unless told otherwise."""
    how = {"noise": QUIET, **how}
    return requests(np.random.default_rng(seed), round_trips, **how)  # type: ignore[arg-type]


def of(asked: Requests, latency_ms: Values | None = None, seed: int = 1) -> Estimate:
    latencies = asked.latency_ms if latency_ms is None else latency_ms
    return estimate(asked.rtt_ms, latencies, asked.visit, seed)


def tenths(asked: Requests, k: int) -> NDArray[np.bool_]:
    """k of every ten requests."""
    return np.arange(asked.visit.size) % 10 < k


@pytest.mark.parametrize("round_trips", [0.0, 0.5, 1.0, 1.37, 3.0, 5.0])
def test_the_slope_is_the_number_of_round_trips_whole_or_not(round_trips: float) -> None:
    found = of(made(11, round_trips))
    assert found.round_trips == pytest.approx(round_trips, abs=0.01)
    assert found.ci95 is not None and found.ci95[0] <= round_trips <= found.ci95[1]
    whole = int(round_trips) if round_trips == int(round_trips) else None
    assert found.integer == whole
    assert len(found.modes) == 1 and found.modes[0].n + found.unexplained == found.n


@pytest.mark.parametrize("noise", [QUIET, NOISE], ids=["quiet", "busy"])
@pytest.mark.parametrize("seed", range(6))
def test_thirty_per_cent_of_one_round_trip_and_seventy_of_three(
    seed: int, noise: dict[str, list[tuple[float, Values]]]
) -> None:
    asked = made(seed, noise=noise)
    found = of(asked, asked.latency_ms + np.where(tenths(asked, 3), 0, 2 * asked.rtt_ms))
    assert [round(mode.round_trips, 1) for mode in found.modes] == [3.0, 1.0]
    explained = sum(mode.share for mode in found.modes)
    assert explained > (0.93 if noise is QUIET else 0.85)
    assert [mode.share / explained for mode in found.modes] == pytest.approx([0.7, 0.3], abs=0.05)
    for mode, truth in zip(found.modes, (0.7, 0.3), strict=True):
        assert mode.share_ci95[0] <= truth <= mode.share_ci95[1]
    assert found.mean_round_trips == pytest.approx(2.4, abs=0.1)
    assert found.mean_ci95 is not None and found.mean_ci95[0] <= 2.4 <= found.mean_ci95[1]


def test_modes_that_meet_at_no_distance_are_counted_where_they_part() -> None:
    asked = made(3)
    local = tenths(asked, 4)
    found = of(asked, asked.latency_ms - np.where(local, asked.rtt_ms, 0))
    assert [round(mode.round_trips, 1) for mode in found.modes] == [1.0, 0.0]
    assert found.modes[1].share == pytest.approx(0.4, abs=0.04)
    # Who is a member at no distance nobody knows, so most there are of the greater mode.
    assert found.modes[1].n < 0.4 * found.n


def test_three_modes() -> None:
    asked = made(5)
    found = of(asked, asked.latency_ms + asked.rtt_ms * (np.arange(asked.visit.size) % 3))
    assert sorted(round(mode.round_trips) for mode in found.modes) == [1, 2, 3]
    assert [mode.share for mode in found.modes] == pytest.approx([1 / 3] * 3, abs=0.04)


@pytest.mark.parametrize("tenth", [1, 2, 3])
def test_delayed_acknowledgements_are_a_mode_and_move_nothing(tenth: int) -> None:
    asked = made(7)
    quiet = of(asked)
    found = of(asked, asked.latency_ms + np.where(tenths(asked, tenth), 40, 0))
    assert quiet.ci95 is not None and quiet.round_trips is not None
    assert found.round_trips is not None
    assert quiet.ci95[0] <= found.round_trips <= quiet.ci95[1]
    delayed = found.modes[1]
    assert delayed.share == pytest.approx(tenth / 10, abs=0.05)
    assert delayed.ci95[0] <= 1 <= delayed.ci95[1]
    assert delayed.intercept_ms - found.modes[0].intercept_ms == pytest.approx(40, abs=2)


def test_retransmissions_are_on_no_line_and_move_nothing() -> None:
    asked = made(8)
    quiet, rng = of(asked), np.random.default_rng(8)
    late = rng.random(asked.visit.size) < 0.03
    found = of(asked, asked.latency_ms + np.where(late, rng.uniform(200, 1000, late.size), 0))
    assert quiet.ci95 is not None and found.round_trips is not None
    assert quiet.ci95[0] <= found.round_trips <= quiet.ci95[1]
    assert late.sum() <= found.unexplained <= late.sum() + 3
    assert (found.members[late] == -1).all()


def test_a_heartbeat_beside_the_requests_moves_nothing() -> None:
    asked = made(9)
    quiet, rng = of(asked), np.random.default_rng(9)
    met = rng.random(asked.visit.size) < 0.1
    found = of(asked, asked.latency_ms + np.where(met, rng.exponential(1.0, met.size), 0))
    assert quiet.ci95 is not None and found.round_trips is not None
    assert quiet.ci95[0] <= found.round_trips <= quiet.ci95[1]


@pytest.mark.parametrize(
    ("what", "bent"),
    [
        ("a wait of 50 ms hides short distances", lambda rtt, own: np.maximum(rtt, 50) + own),
        ("a wait of 8 ms hides no distance", lambda rtt, own: np.maximum(rtt, 8) + own),
        ("a timeout cuts long ones", lambda rtt, own: np.minimum(rtt, 150) + own),
        ("growing faster than the distance", lambda rtt, own: rtt + 0.001 * rtt**2 + own),
        ("two round trips beyond 60 ms", lambda rtt, own: rtt * np.where(rtt > 60, 2, 1) + own),
    ],
)
def test_what_is_no_line_is_refused_in_words(what: str, bent: object) -> None:
    for seed in range(4):
        asked = made(seed)
        own = asked.latency_ms - asked.rtt_ms
        found = of(asked, bent(asked.rtt_ms, own))  # type: ignore[operator]
        assert not found.fit.is_line, what
        assert found.fit.why and "RTT" in found.fit.why
        assert (found.round_trips, found.ci95, found.integer, found.at(50)) == (None,) * 4
        assert found.mean_round_trips is None


def test_latencies_that_have_nothing_to_do_with_distance_are_refused() -> None:
    asked = made(2)
    found = of(asked, np.random.default_rng(2).uniform(0, 400, asked.visit.size))
    assert not found.fit.is_line and "no line" in (found.fit.why or "")


def test_fewer_than_three_rtts_are_an_error() -> None:
    asked = made(1, rtts_ms=(0.0, 100.0))
    with pytest.raises(ValueError, match="2 different RTTs"):
        of(asked)
    with pytest.raises(ValueError, match="0 different RTTs"):
        estimate(np.array([]), np.array([]), np.array([], dtype=int), 1)


def test_visits_of_one_rtt_that_measured_a_little_differently_are_one_rtt() -> None:
    asked = made(1, rtts_ms=(0.0, 100.0))
    wobble = np.repeat(np.linspace(0, 0.1, 6), 15)
    with pytest.raises(ValueError, match="2 different RTTs"):
        estimate(asked.rtt_ms + wobble, asked.latency_ms, asked.visit, 1)


@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize("visits", [1, 2])
def test_few_requests_give_a_wide_answer_or_none(samples: int, visits: int) -> None:
    for rtts in ((0.0, 50.0, 100.0), (0.0, 25.0, 50.0, 100.0, 200.0)):
        found = of(made(4, 2.0, rtts_ms=rtts, visits=visits, samples=samples))
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


def test_the_same_data_and_seed_give_the_same_estimate() -> None:
    asked = made(6)
    first, second, other = of(asked), of(asked), of(asked, seed=2)
    assert first.modes == second.modes and (first.draws == second.draws).all()
    assert first.main.round_trips == other.main.round_trips
    assert (first.draws != other.draws).any()


def test_the_order_of_requests_does_not_matter() -> None:
    asked = made(6)
    found = of(asked)
    order = np.random.default_rng(0).permutation(asked.visit.size)
    again = estimate(asked.rtt_ms[order], asked.latency_ms[order], asked.visit[order], 1)
    assert again.main.round_trips == pytest.approx(found.main.round_trips, abs=1e-9)
    assert (again.members == found.members[order]).all()


def test_two_runs_of_one_seed_draw_independently() -> None:
    first, second = of(made(21)), of(made(22))
    assert abs(np.corrcoef(first.draws[:, 0], second.draws[:, 0])[0, 1]) < 0.1


def test_the_intervals_are_those_of_the_draws() -> None:
    found = of(made(6, 3.0))
    assert found.ci95 == pytest.approx(tuple(np.percentile(found.draws[:, 0], (2.5, 97.5))))
    at = found.at(100)
    assert at is not None
    latency, (low, high) = at
    assert latency == pytest.approx(found.main.intercept_ms + 100 * found.main.round_trips)
    assert low < latency < high


def test_it_agrees_with_theil_and_sen_and_with_least_squares_by_visit() -> None:
    from scipy.stats import theilslopes

    for seed in range(5):
        asked = made(seed, rtts_ms=(25.0, 50.0, 100.0, 200.0), visits=4)
        found = of(asked)
        visits = range(asked.visit.max() + 1)
        x = np.array([asked.rtt_ms[asked.visit == v][0] for v in visits])
        y = np.array([np.median(asked.latency_ms[asked.visit == v]) for v in visits])
        slope, _, low, high = theilslopes(y, x, 0.95)
        assert found.ci95 is not None and found.round_trips is not None
        assert found.round_trips == pytest.approx(slope, abs=0.004)
        assert low - 0.004 < found.ci95[0] and found.ci95[1] < high + 0.004
        # Least squares on the requests, errors summed by visit (Liang and Zeger 1986).
        design = np.column_stack((np.ones(asked.visit.size), asked.rtt_ms))
        bread = np.linalg.inv(design.T @ design)
        beta = bread @ design.T @ asked.latency_ms
        scores = design * (asked.latency_ms - design @ beta)[:, None]
        sums = np.array([scores[asked.visit == v].sum(0) for v in visits])
        error = float(np.sqrt((bread @ (sums.T @ sums) @ bread)[1, 1]))
        assert abs(found.round_trips - beta[1]) < 3.5 * error + 0.001
