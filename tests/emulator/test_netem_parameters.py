"""What netem is sent for an impairment; tests/kernel show what the kernel makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.plans import ms
from wanlat.emulator.backends.netem_ledger import Ledger
from wanlat.emulator.rtnetlink import Statistics
from wanlat.topologies import shapes
from wanlat.topologies.netem import netem, unsupported
from wanlat.topologies.resolve import GilbertElliott, Impairment

FULL_S = 8 * 1514


def delays_ns(asked: Impairment) -> np.ndarray:
    """Return every delay that tabledist() of sch_netem.c can give, in the order of the table."""
    sent = netem(asked)
    table = np.array(sent.entries, dtype=np.int64)
    assert 0 < len(table) <= 16384  # NETEM_DIST_MAX
    assert 0 < sent.jitter_ns < 2**31
    rest = (sent.jitter_ns % 8192) * table
    rest = np.trunc((rest + np.where(rest >= 0, 4096, -4096)) / 8192).astype(np.int64)
    return rest + (sent.jitter_ns // 8192) * table + sent.delay_ns


SAMPLE = shapes.standardised([*np.random.default_rng(3).gamma(0.3, size=800)])


@pytest.mark.parametrize(
    ("distribution", "table"), [("normal", ()), ("pareto", ()), ("table", SAMPLE)]
)
@pytest.mark.parametrize("jitter_ms", [0.01, 200])
def test_a_table_gives_the_shape_tail_included(
    distribution: str, table: tuple[float, ...], jitter_ms: float
) -> None:
    asked = ms(10 * jitter_ms, jitter_ms, distribution=distribution, table=table)
    quantiles = np.array(shapes.shape(distribution, table))
    expected = asked.delay_ns + asked.jitter_ns * quantiles
    step = max(1.0, np.abs(quantiles).max() / 4) / 8192 * asked.jitter_ns
    assert np.abs(delays_ns(asked) - expected).max() <= step + 2


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (ms(20, 5, reorder=True, rate_bps=10**6), False),
        (ms(20, reorder=True, rate_bps=10**6), True),
        (Impairment(10**11, 9 * 10**9), False),
        (Impairment(10**11, 8 * 10**9), True),
        (ms(10_000, 1_000, distribution="pareto"), False),
        (ms(1, duplicate=0.1, bursts=GilbertElliott(0.1, 0.5)), False),
        (ms(1, duplicate=0.3, loss=0.2), False),
        (ms(1, loss=1, duplicate=0.3), True),
        (ms(1, duplicate=1), True),
        (ms(20, 5, distribution="pareto", overtake=0.1, loss=0.01, corrupt=0.01), True),
        (ms(20, 5, bursts=GilbertElliott(0.01, 0.3), rate_bps=10**6), True),
    ],
)
def test_what_netem_would_get_wrong_is_refused(asked: Impairment, fits: bool) -> None:
    assert (unsupported(asked) is None) == fits


def test_duplication_and_loss_come_out_as_asked_for() -> None:
    """Against netem_enqueue() done in numbers: duplicate first, then lose, and each copy again."""
    draw, n = np.random.default_rng(5), 1_000_000
    for loss, duplicate in [(0.1, 0.1), (0.01, 0.4), (0.15, 0.15)]:
        sent = netem(ms(1, loss=loss, duplicate=duplicate))
        chances = (sent.duplicate, sent.loss, sent.loss)
        doubled, lost, lost_again = (draw.random(n) < each for each in chances)
        arrived = 1 + doubled - lost
        # One copy of two goes straight on; the other enters anew, if the packet has two left.
        arrived -= (arrived == 2) & lost_again
        assert np.mean(arrived == 0) == pytest.approx(loss, abs=6 * (loss / n) ** 0.5)
        twice = np.mean(arrived == 2) / np.mean(arrived > 0)
        assert twice == pytest.approx(duplicate, abs=6 * (duplicate / n) ** 0.5)


# -- losses told from drops -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "packets", "drops", "counted"),
    [
        (ms(1), 1000, 7, (0, 0, 7)),
        (ms(1, rate_bps=10**6), 1000, 7, (0, 7, 0)),
        (ms(1, loss=0.1), 9000, 1100, (1100, 0, 0)),
        (ms(1, bursts=GilbertElliott(0.01, 0.1)), 9000, 1300, (1300, 0, 0)),
        (ms(1, loss=0.1), 8000, 2000, (1000, 0, 1000)),
        (ms(1, loss=0.1, rate_bps=10**6), 8000, 2000, (1000, 1000, 0)),
    ],
)
def test_what_chance_explains_is_lost_and_the_rest_are_the_queues_drops(
    asked: Impairment, packets: int, drops: int, counted: tuple[int, int, int]
) -> None:
    found = Ledger(asked).counters(Statistics(0, packets, drops, 0))
    assert (found.lost, found.queue_drops, found.overflows) == counted
