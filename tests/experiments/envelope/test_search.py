"""The search, on stand-ins for clusters whose limits are planted."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from wanlat.bundle.documents import Network
from wanlat.experiments.envelope.search import (
    Axis,
    Limit,
    Question,
    SearchPlan,
    SequentialTest,
    moved,
)

RTT = Axis("rtt", 5.0, 2000.0, 0.03)
LOSS = Axis("loss", 0.001, 0.5, 0.2, (0.005, 0.02, 0.05, 0.2))
TEST = SequentialTest()

Chance = Callable[[Question], float]
"""How likely a trial holds."""


def up_to(limit_ms: float) -> Chance:
    """A limit of the RTT."""
    return lambda question: float(question.network.rtt_ms <= limit_ms)


@dataclass
class StandIn:
    """Decides by trials as a cluster would, and counts what that takes."""

    chance: Chance
    random: random.Random
    trials: int = 0
    asked: list[Question] = field(default_factory=list)

    def __call__(self, question: Question) -> bool:
        self.asked.append(question)
        held: list[bool] = []
        while (verdict := TEST.verdict(held)) is None:
            held.append(self.random.random() < self.chance(question))
        self.trials += len(held)
        return verdict == "holds"


def steps(axis: Axis) -> list[float]:
    """The values of a grid of the same precision."""
    count = math.ceil(math.log(axis.high / axis.low) / math.log(1 + axis.precision))
    return [axis.low * (axis.high / axis.low) ** (n / count) for n in range(count + 1)]


def frontier_at(loss: float) -> float:
    """A planted limit of the RTT, ms, which falls with the loss and is 5 ms at 10 %."""
    return 310.0 * (1 - loss / 0.1) if loss < 0.1 * (1 - 5 / 310) else 4.0


def find(plan: SearchPlan, chance: Chance, seed: int) -> tuple[list[Limit], StandIn]:
    cluster = StandIn(chance, random.Random(seed))
    return plan.find(cluster, random.Random(f"{seed}/order")), cluster


@pytest.mark.parametrize("beyond", [0.0, 0.3], ids=["always", "seven times in ten"])
def test_a_planted_limit_is_found_within_3_percent_at_a_tenth_of_a_grid(beyond: float) -> None:
    """It refuses above its limit, or with a probability; and 2 of 100 trials fail by chance."""

    def chance(question: Question) -> float:
        return 0.98 if question.network.rtt_ms <= limit_ms else beyond

    drawn, found, trials, of_grids = random.Random(1), 0, 0, 0
    for seed in range(200):
        limit_ms = drawn.uniform(20, 1900)
        (limit,), cluster = find(SearchPlan((RTT,)), chance, seed)
        assert limit.estimate is not None
        found += abs(limit.estimate / limit_ms - 1) <= 0.03
        grid = StandIn(chance, random.Random(seed))
        for value in steps(RTT):
            grid(Question(Network(rtt_ms=value)))
        trials, of_grids = trials + cluster.trials, of_grids + grid.trials
    assert found >= 190
    assert trials <= of_grids / 10


def test_a_frontier_of_two_axes_is_found_within_3_percent_at_a_tenth_of_a_grid() -> None:
    def chance(question: Question) -> float:
        network = question.network
        return 0.98 if network.rtt_ms <= frontier_at(network.loss) else 0.1

    plan, off = SearchPlan((RTT, LOSS)), []
    for seed in range(50):
        limits, cluster = find(plan, chance, seed)
        assert [limit.axis.name for limit in limits] == ["rtt", "loss", *["rtt"] * 4]
        assert (limits[-1].inside, limits[-1].at.loss) == (None, 0.2), "nowhere, at such a loss"
        for limit in (limits[0], *limits[2:-1]):
            assert limit.estimate is not None
            off.append(abs(limit.estimate / frontier_at(limit.at.loss) - 1))
        assert limits[1].estimate == pytest.approx(0.1 * (1 - 5 / 310), rel=0.2)
        grid = StandIn(chance, random.Random(seed))
        for rtt_ms in steps(RTT):
            for loss in (0.0, *steps(LOSS)):
                grid(Question(Network(rtt_ms=rtt_ms, loss=loss)))
        assert cluster.trials <= grid.trials / 10
    assert sum(each <= 0.03 for each in off) >= 0.95 * len(off)


def test_a_limit_outside_of_the_axis_is_said_to_be_there() -> None:
    for limit_ms, ends in ((3000.0, (2000.0, None)), (1.0, (None, 5.0))):
        (limit,), _ = find(SearchPlan((RTT,)), up_to(limit_ms), 3)
        assert (limit.inside, limit.outside, limit.estimate) == (*ends, None)


def test_planted_hysteresis_is_reported_and_where_it_ends() -> None:
    """Who has been beyond 200 ms does not hold before it is back at 120 ms."""

    def chance(question: Question) -> float:
        broke = question.after is not None and question.after.rtt_ms > 200
        return float(question.network.rtt_ms <= (120 if broke else 200))

    for seed in range(20):
        (limit,), _ = find(SearchPlan((RTT,)), chance, seed)
        assert limit.has_hysteresis
        assert limit.estimate == pytest.approx(200, rel=0.03)
        assert limit.back == pytest.approx(120, rel=0.03)
    (limit,), _ = find(SearchPlan((RTT,)), lambda q: up_to(200)(q) * (q.after is None), 1)
    assert (limit.back, limit.has_hysteresis) == (None, True)
    (limit,), _ = find(SearchPlan((RTT,)), up_to(200), 1)
    assert (limit.back, limit.has_hysteresis) == (limit.inside, False)


def test_drift_is_distinguished_from_distance() -> None:
    """A cluster that gets worse as time passes has two verdicts at one RTT; a steady one none."""
    asked = 0

    def drifting(question: Question) -> float:
        nonlocal asked
        asked += 1
        return float(question.network.rtt_ms <= (300 if asked < 40 else 150))

    (limit,), _ = find(SearchPlan((RTT,)), drifting, 5)
    assert limit.changed
    assert limit.estimate == pytest.approx(150, rel=0.03)
    (limit,), _ = find(SearchPlan((RTT,)), up_to(300), 5)
    assert not limit.changed


def test_rtts_are_no_order_in_time() -> None:
    plan = SearchPlan((RTT, LOSS))
    _, cluster = find(plan, lambda q: float(q.network.rtt_ms <= frontier_at(q.network.loss)), 2)
    rtts = [question.network.rtt_ms for question in cluster.asked]
    place = range(len(rtts))
    ranked = sorted(place, key=rtts.__getitem__)
    concordant = sum(1 if a < b else -1 for n, a in enumerate(ranked) for b in ranked[n + 1 :])
    pairs = len(rtts) * (len(rtts) - 1) / 2
    assert abs(concordant) / pairs < 0.3


def test_a_verdict_is_wrong_as_seldom_as_stated() -> None:
    drawn = random.Random(4)
    for share, wrong in ((TEST.holds, "fails"), (TEST.fails, "holds")):
        count = 0
        for _ in range(4000):
            held: list[bool] = []
            while (verdict := TEST.verdict(held)) is None:
                held.append(drawn.random() < share)
            count += verdict == wrong
        assert count / 4000 <= TEST.error
    assert TEST.verdict([True] * 4) is None
    assert TEST.verdict([True] * 5) == "holds"
    assert TEST.verdict([False] * 2) == "fails"
    assert SequentialTest(0.95, 0.9, 0.01, most=3).verdict([True] * 3) == "undecided"


def test_a_jitter_is_never_more_than_the_rtt() -> None:
    near, far = Network(rtt_ms=5), Network(rtt_ms=50, jitter_ms=20)
    assert moved(near, "jitter", 20) == Network(rtt_ms=20, jitter_ms=20)
    assert moved(far, "rtt", 10) == Network(rtt_ms=10, jitter_ms=10)
    assert moved(far, "loss", 0.1) == Network(rtt_ms=50, jitter_ms=20, loss=0.1)
