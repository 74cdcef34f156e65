"""The moment's calibration between sites: which pairs, and what is taken for a wrong network."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration.between_sites import judge, longest_s, pairs_between_sites
from wanlat.emulator.calibration.rounds import ONE_ROUND, measure_in_rounds
from wanlat.emulator.prober import Echoes
from wanlat.topologies.resolve import Impairment

PAIR = ("n1", "n2")
BOTH_WAYS = (ms(25), ms(25))
PATH_MS = 0.06  # what no link is asked for and every packet takes


def judged(
    rtts_ms: list[float], steps: tuple[Impairment, ...] = BOTH_WAYS, lost: int = 0
) -> dict[str, Any]:
    """The entry after a single round."""
    echoes = Echoes(
        sent=len(rtts_ms) + lost,
        numbers=list(range(len(rtts_ms))),
        rtt_ns=[round(each * 1e6) for each in rtts_ms],
    )
    (entry,) = measure_in_rounds(
        [PAIR],
        lambda *_: {PAIR: echoes},
        lambda pair, found, this: judge(pair, steps, found, this),
        ONE_ROUND,
    ).values()
    return entry


def right(count: int = 40, seed: int = 1) -> list[float]:
    noise = random.Random(seed)
    return [50 + PATH_MS + noise.expovariate(1 / 0.02) for _ in range(count)]


def test_the_median_is_what_was_measured() -> None:
    entry = judged(right())
    assert entry["verdict"] == "pass"
    assert entry["requested_rtt_ms"] == 50
    assert entry["measured_rtt_ms"] == pytest.approx(50 + PATH_MS, abs=0.05)
    assert (entry["sent"], entry["lost"], entry["reasons"]) == (40, 0, [])


def test_a_store_that_holds_up_some_echoes_makes_no_network_wrong() -> None:
    held_up = [each + 30 for each in right(8, seed=2)]
    entry = judged(right(32) + held_up)
    assert entry["verdict"] == "pass"
    assert entry["measured_rtt_ms"] == pytest.approx(50 + PATH_MS, abs=0.1)
    assert entry["p99_ms"] > 79


@pytest.mark.parametrize(
    ("rtts_ms", "words"),
    [
        ([each - 0.3 for each in right()], "early"),
        ([each + 0.6 for each in right()], "late: median"),
        (right(25) + [each + 3 for each in right(15)], "25% of the echoes"),
        ([], "no echo came back"),
    ],
)
def test_a_network_that_is_not_what_was_asked_for_is_seen(rtts_ms: list[float], words: str) -> None:
    entry = judged(rtts_ms)
    assert entry["verdict"] == "fail"
    assert words in entry["reasons"][0]


def test_a_loss_is_wrong_unless_it_was_asked_for() -> None:
    assert "lost" in judged(right(35), lost=5)["reasons"][0]
    lossy = (ms(25, loss=0.05), ms(25, loss=0.05))
    assert judged(right(35), lossy, lost=5)["verdict"] == "pass"


def test_a_jitter_may_be_anywhere_in_its_range_and_nowhere_else() -> None:
    steps = (ms(25, 5), ms(25, 5))
    draw = random.Random(3)
    within = [50 + draw.uniform(-5, 5) + draw.uniform(-5, 5) for _ in range(40)]
    assert judged(within, steps)["verdict"] == "pass"
    assert judged([each + 12 for each in within], steps)["verdict"] == "fail"


def test_every_two_sites_are_measured_those_of_the_asked_node_first() -> None:
    pairs = pairs_between_sites(mesh(4), "n3", seed=1)
    assert [a for a, _ in pairs[:3]] == ["n3"] * 3
    assert {frozenset(pair) for pair in pairs} == {
        frozenset((f"n{a}", f"n{b}")) for a in range(1, 5) for b in range(1, a)
    }


def test_of_many_sites_those_of_the_asked_node_and_some_others() -> None:
    pairs = pairs_between_sites(mesh(15), "n1", seed=1)
    assert {b for a, b in pairs if a == "n1"} == {f"n{n}" for n in range(2, 16)}
    assert len(pairs) == 40
    assert pairs == pairs_between_sites(mesh(15), "n1", seed=1)
    assert pairs != pairs_between_sites(mesh(15), "n1", seed=2)


def test_it_is_stated_how_long_it_takes_at_most() -> None:
    assert longest_s(0.2) == pytest.approx(3.8)
