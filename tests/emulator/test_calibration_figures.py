"""The arithmetic of calibration, held against known draws and published formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import Tolerance, counts, fit
from wanlat.emulator.calibration.law import Law, path_law
from wanlat.emulator.calibration.pairs import batches, directions_of
from wanlat.emulator.calibration.rate import Rated, Train, densest, slope_bps
from wanlat.emulator.stream import Delivery
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

SHAPES = {
    "uniform": ms(50, jitter=10),
    "normal": ms(50, jitter=6, distribution="normal"),
    "pareto": ms(50, jitter=6, distribution="pareto"),
    "table": ms(50, jitter=6, distribution="table", table=shapes.empirical((1.0, 2.0, 2.5, 9.0))),
}
NO_ERRORS = np.zeros(0)


def draws(asked: Impairment, count: int, seed: int = 1) -> fit.Values:
    """Draw as a backend does: a random place in the list of quantiles, linear in between."""
    random = np.random.default_rng(seed)
    quantiles = shapes.shape(asked.distribution, asked.table)
    if quantiles is None:
        drawn = random.uniform(-1, 1, count)
    else:
        drawn = np.interp(random.uniform(0, 1, count), np.linspace(0, 1, 4096), quantiles)
    return asked.delay_ns / 1e6 + asked.jitter_ns / 1e6 * drawn


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_from_what_was_asked_for_are_not_rejected(shape: str) -> None:
    asked = SHAPES[shape]
    # Of a table of few samples many draws are the same; the machine's lateness tells them apart.
    late = np.random.default_rng(0).exponential(0.05, (20, 5000))
    p_values = [
        fit.fit(draws(asked, 5000, seed) + late[seed], [asked], late[seed - 1]).p_value
        for seed in range(20)
    ]
    assert sum(p_value < 0.05 for p_value in p_values) <= 4  # 1 in 20 is expected


@pytest.mark.parametrize("drawn", SHAPES)
@pytest.mark.parametrize("asked", SHAPES)
def test_draws_from_another_distribution_of_the_same_deviation_are(drawn: str, asked: str) -> None:
    if drawn == asked:
        pytest.skip("the same")
    alike = {**SHAPES, "uniform": ms(50, jitter=6 * math.sqrt(3))}
    found = fit.fit(draws(alike[drawn], 5000), [alike[asked]], NO_ERRORS)
    assert found.p_value < 1e-6


def test_a_sum_of_draws_is_tested_against_its_own_distribution() -> None:
    steps = [ms(1, jitter=1), SHAPES["pareto"], ms(0.25)]
    total = draws(steps[0], 5000, 1) + draws(steps[1], 5000, 2) + 0.25
    assert fit.fit(total, steps, NO_ERRORS).p_value > 0.01
    assert fit.fit(total + 0.5, steps, NO_ERRORS).p_value < 1e-6


def test_early_delays_are_the_links_and_late_ones_may_be_the_machines() -> None:
    asked = SHAPES["uniform"]
    found = {late: fit.fit(draws(asked, 1000) + late, [asked], NO_ERRORS) for late in (-3, 0, 3)}
    assert found[-3].early_p_value < 1e-8
    assert found[0].early_p_value > 0.01
    assert found[3].early_p_value > 0.01
    assert found[3].p_value < 1e-6


@pytest.mark.parametrize("shape", ["uniform", "normal"])
def test_a_jitter_that_is_a_quarter_too_large_is_found(shape: str) -> None:
    asked = SHAPES[shape]
    wide = replace(asked, jitter_ns=round(1.25 * asked.jitter_ns))
    found = [fit.fit(draws(wide, 1000, seed), [asked], NO_ERRORS) for seed in range(10)]
    assert all(each.p_value < 1e-4 for each in found)
    assert found[0].spread == pytest.approx(1.25, abs=0.1)


def test_two_even_draws_make_a_triangle() -> None:
    from scipy import stats

    law = path_law([ms(10, jitter=4), ms(10, jitter=4)])
    triangle = stats.triang(0.5, loc=12, scale=16)
    x = np.linspace(12, 28, 50)
    assert law.cdf(x) == pytest.approx(triangle.cdf(x), abs=1e-3)


def test_lateness_is_expected_where_it_was_measured() -> None:
    late = np.random.default_rng(3).exponential(1.0, 4000)
    measured = draws(SHAPES["uniform"], 5000) + np.random.default_rng(4).exponential(1.0, 5000)
    assert fit.fit(measured, [SHAPES["uniform"]], late).p_value > 0.001
    assert fit.fit(measured, [SHAPES["uniform"]], NO_ERRORS).p_value < 1e-6


def test_quantiles_of_a_law_are_where_it_says() -> None:
    law = Law(np.array([40.0, 60.0]), np.array([0.0, 1.0]))
    assert law.quantiles([0.0, 0.25, 1.0]) == pytest.approx([40, 45, 60])


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.9])
@pytest.mark.parametrize("shape", ["uniform", "pareto"])
def test_correlation_is_that_of_the_scores_whatever_the_distribution(
    shape: str, rho: float
) -> None:
    from scipy import stats

    random = np.random.default_rng(5)
    z = np.zeros(20_000)
    for i, noise in enumerate(random.normal(size=z.size)):
        z[i] = rho * z[i - 1] + math.sqrt(1 - rho**2) * noise if i else noise
    asked = replace(SHAPES[shape], correlation=rho)
    delays_ms = path_law([asked]).quantiles(stats.norm.cdf(z).tolist())
    assert fit.correlation(delays_ms) == pytest.approx(rho, abs=0.02)
    delays_ms[random.integers(0, z.size, 500)] = np.nan  # lost
    assert fit.correlation(delays_ms) == pytest.approx(rho, abs=0.02)
    assert fit.requested_correlation([asked, ms(3)]) == pytest.approx(rho)


def test_related_draws_are_thinned_until_they_are_not() -> None:
    assert fit.apart([SHAPES["normal"]]) == 1
    assert fit.apart([replace(SHAPES["normal"], correlation=0.25)]) == 3
    assert fit.apart([replace(SHAPES["normal"], correlation=0.9)]) == 29


CHAINS = [
    GilbertElliott(p=0.01, r=0.25),
    GilbertElliott(p=0.05, r=0.3, h=0.4, k=0.99),
    GilbertElliott(p=0.5, r=0.5),
]


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_bursts_of_a_chain_are_as_its_simulation_says(chain: GilbertElliott) -> None:
    random = np.random.default_rng(6)
    runs = np.array([_lost(chain, random, 4000) for _ in range(200)])
    counted = runs.sum(axis=1)
    asked = [ms(1, bursts=chain)]
    assert counted.mean() / 4000 == pytest.approx(chain.loss, rel=0.05)
    independent = 4000 * chain.loss * (1 - chain.loss)
    assert counted.var() / independent == pytest.approx(counts.inflation(asked), rel=0.35)
    edges = np.diff(runs.astype(int), axis=1) == 1
    begun = edges.sum() + runs[:, 0].sum()
    assert counted.sum() / begun == pytest.approx(counts.mean_burst(chain), rel=0.05)


def _lost(chain: GilbertElliott, random: np.random.Generator, count: int) -> list[bool]:
    bad, lost = False, []
    for step, delivery in random.uniform(size=(count, 2)):
        bad = step >= chain.r if bad else step < chain.p
        lost.append(bool(delivery >= (chain.h if bad else chain.k)))
    return lost


def test_a_count_is_judged_by_the_binomial_distribution() -> None:
    assert counts.p_value(10, 1000, 0.01) == pytest.approx(1)
    assert counts.p_value(30, 1000, 0.01) < 1e-6
    assert counts.p_value(0, 1000, 0) == 1
    assert counts.p_value(1, 1000, 0) == 0
    assert counts.p_value(30, 1000, 0.01, 25) > 0.1


def delivery(numbers: list[int], sent: int) -> Delivery:
    return Delivery(
        np.arange(sent) * 1000,
        np.array(numbers, dtype=np.int64),
        500 + np.arange(len(numbers)) * 1000,
        0,
    )


def test_what_became_of_datagrams_is_counted() -> None:
    found = delivery([0, 2, 1, 1, 6, 6], 8)
    assert (found.lost, found.duplicated, found.overtaken) == (4, 2, 1)
    assert found.bursts.tolist() == [3, 1]
    assert found.delays_ns.tolist() == [500, 1500, -500, -1500]


def test_nothing_arrived_is_one_burst() -> None:
    found = delivery([], 5)
    assert (found.lost, found.duplicated, found.overtaken, found.bursts.tolist()) == (5, 0, 0, [5])


@pytest.mark.parametrize("rate_bps", [1_000_000, 20_000_000, 400_000_000, 1_000_000_000])
@pytest.mark.parametrize("queue_bytes", [None, 20_000, 10_000_000])
def test_a_train_never_overflows_the_queue_and_never_lets_it_run_empty(
    rate_bps: int, queue_bytes: int | None
) -> None:
    rated = Rated.of([ms(10, rate_bps=rate_bps, queue_bytes=queue_bytes)])
    assert rated is not None
    train = Train.for_rate(rated)
    backlog_s = 0.0
    for before, at, count in zip(
        (0.0, *train.offsets_s), train.offsets_s, train.packets, strict=False
    ):
        backlog_s -= at - before
        assert backlog_s > -rated.packet_s
        backlog_s = max(0.0, backlog_s) + count * rated.packet_s
        assert backlog_s * rate_bps / 8 <= max(rated.queue_bytes, 2 * 1514)
    assert train.length >= 5


def test_rate_is_the_slope_of_a_trains_arrivals() -> None:
    even_ns = (np.arange(100) * 1514 * 8 * 50).astype(np.int64)  # 20 Mbit/s
    assert slope_bps(even_ns, 100) == pytest.approx(20e6, rel=1e-6)
    late_ns = np.maximum(even_ns, np.where(np.arange(100) // 10 % 4 == 0, even_ns + 2_000_000, 0))
    assert slope_bps(late_ns, 100) == pytest.approx(20e6, rel=0.01)
    assert slope_bps(even_ns[:80], 100) is None  # too little of it arrived
    assert slope_bps(np.repeat(even_ns[-1:], 100), 100) is None  # all at once


def test_trains_that_agree_count_and_those_that_were_held_up_do_not() -> None:
    assert densest([20.0, 20.1, 19.9, 35.0, 12.0]) == pytest.approx((20.0, 0.2))


def test_pairs_of_a_batch_share_no_direction_of_a_link() -> None:
    plan = mesh(4, 2)
    names = [node.name for node in plan.nodes]
    pairs = [(a, b) for a in names for b in names if a != b]
    made = batches(plan, pairs, at_most=5)
    assert sorted(pair for batch in made for pair in batch) == sorted(pairs)
    for batch in made:
        used = [direction for pair in batch for direction in directions_of(plan, pair)]
        assert len(used) == len(set(used))
        assert len(batch) <= 5


def test_tolerances_are_in_the_document() -> None:
    assert Tolerance(rate=0.05).as_json()["rate"] == 0.05
