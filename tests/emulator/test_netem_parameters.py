"""What netem is sent for an impairment; tests/kernel show what the kernel makes of it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.plans import ms
from wanlat.emulator.backends.netem_ledger import Ledger
from wanlat.emulator.backends.netem_options import NetemOptions, attribute, attributes
from wanlat.emulator.backends.netem_parameters import (
    ORDERING_RATE_BYTES,
    options,
    queue_limit,
    unsupported,
)
from wanlat.emulator.backends.traffic_control import Statistics
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

ONE = 2**32 - 1


def delays_ns(asked: Impairment) -> np.ndarray:
    """Return every delay that tabledist() of sch_netem.c can give, in the order of the table."""
    sent = options(asked)
    table = np.frombuffer(sent.table, np.int16).astype(np.int64)
    assert 0 < len(table) <= 16384  # NETEM_DIST_MAX
    assert 0 < sent.jitter_ns < 2**31
    rest = (sent.jitter_ns % 8192) * table
    rest = np.trunc((rest + np.where(rest >= 0, 4096, -4096)) / 8192).astype(np.int64)
    return rest + (sent.jitter_ns // 8192) * table + sent.latency_ns


SAMPLE = shapes.standardised([*np.random.default_rng(3).gamma(0.3, size=800)])


@pytest.mark.parametrize(
    ("distribution", "table"), [("normal", ()), ("pareto", ()), ("table", SAMPLE)]
)
@pytest.mark.parametrize("jitter_ms", [0.01, 5, 200])
def test_a_table_gives_the_shape_tail_included(
    distribution: str, table: tuple[float, ...], jitter_ms: float
) -> None:
    asked = ms(10 * jitter_ms, jitter_ms, distribution=distribution, table=table)
    quantiles = np.array(shapes.shape(distribution, table))
    expected = asked.delay_ns + asked.jitter_ns * quantiles
    step = max(1.0, np.abs(quantiles).max() / 4) / 8192 * asked.jitter_ns
    assert np.abs(delays_ns(asked) - expected).max() <= step + 2


@pytest.mark.parametrize("jitter_ns", [1, 999, 10_000_000, 2_000_000_000, 8_000_000_000])
def test_even_jitter_is_even_at_any_size(jitter_ns: int) -> None:
    from scipy import stats

    found = delays_ns(Impairment(10**10, jitter_ns)) - 10**10
    assert np.abs(found).max() <= jitter_ns
    if jitter_ns > 8192:
        assert stats.kstest(found, stats.uniform(-jitter_ns, 2 * jitter_ns).cdf).pvalue > 0.999


@pytest.mark.parametrize(
    "asked",
    [
        ms(20, 5, correlation=0.2),
        ms(20, 5, reorder=True, rate_bps=10**6),
        Impairment(10**11, 9 * 10**9),
        ms(10_000, 1_000, distribution="pareto"),
        ms(1, duplicate=0.1, bursts=GilbertElliott(0.1, 0.5)),
        ms(1, duplicate=0.3, loss=0.2),
    ],
)
def test_what_netem_would_get_wrong_is_refused(asked: Impairment) -> None:
    assert unsupported(asked)


@pytest.mark.parametrize(
    "asked",
    [
        ms(20, correlation=0.2),  # of no jitter
        ms(20, reorder=True, rate_bps=10**6),
        Impairment(10**11, 8 * 10**9),
        ms(1, loss=1, duplicate=0.3),
        ms(1, duplicate=1),
        ms(20, 5, distribution="pareto", overtake=0.1, loss=0.01, duplicate=0.01, corrupt=0.01),
        ms(20, 5, bursts=GilbertElliott(0.01, 0.3), rate_bps=10**6),
    ],
)
def test_everything_else_is_not(asked: Impairment) -> None:
    assert unsupported(asked) is None
    assert NetemOptions.decode(options(asked).encode()) == options(asked)


def test_duplication_and_loss_come_out_as_asked_for() -> None:
    """Against netem_enqueue() done in numbers: duplicate first, then lose, and each copy again."""
    from scipy import stats

    draw = np.random.default_rng(5)
    for loss, duplicate in [(0.1, 0.1), (0.01, 0.4), (0.05, 0.3), (0.15, 0.15)]:
        sent = options(ms(1, loss=loss, duplicate=duplicate))
        n = 1_000_000
        lose, double = sent.loss / ONE, sent.duplicate / ONE
        doubled, lost, lost_again = (draw.random(n) < each for each in (double, lose, lose))
        arrived = 1 + doubled - lost
        # One copy of two goes straight on; the other enters anew, if the packet has two left.
        arrived -= (arrived == 2) & lost_again
        assert stats.binomtest(int(np.sum(arrived == 0)), n, loss).pvalue > 1e-4
        delivered = int(np.sum(arrived > 0))
        assert stats.binomtest(int(np.sum(arrived == 2)), delivered, duplicate).pvalue > 1e-4


def test_the_order_is_kept_by_a_rate_unless_jitter_may_reorder() -> None:
    assert options(ms(5)).rate_bytes == ORDERING_RATE_BYTES
    assert options(ms(5, 1)).rate_bytes == ORDERING_RATE_BYTES
    assert options(ms(5, 1, reorder=True)).rate_bytes == 0
    assert options(ms(5, 1, rate_bps=8_000_000)).rate_bytes == 1_000_000
    assert 65536 * 10**9 // ORDERING_RATE_BYTES == 0


def test_the_queue_holds_rate_times_the_longest_delay() -> None:
    full_s = 8 * 1514
    assert queue_limit(ms(100)) >= 10**10 * 0.1 / full_s
    assert queue_limit(ms(100, 20)) >= 10**10 * 0.12 / full_s
    longest_s = ms(100, 20, distribution="pareto").range_ns[1] / 1e9
    assert queue_limit(ms(100, 20, distribution="pareto")) >= 10**10 * longest_s / full_s
    assert queue_limit(ms(100, duplicate=1)) >= 2 * 10**10 * 0.1 / full_s
    limited = ms(100, rate_bps=10**8, queue_bytes=15_140)
    assert queue_limit(limited) == 10**8 * 0.1 // full_s + 1 + 10
    assert queue_limit(Impairment(1800 * 10**9)) < 2**31


def test_random_parameters_survive_encoding() -> None:
    draw = random.Random(6)

    def word() -> int:
        return draw.getrandbits(32)

    for _ in range(500):
        sent = NetemOptions(
            latency_ns=draw.getrandbits(50),
            jitter_ns=draw.getrandbits(31),
            table=draw.randbytes(2 * draw.randint(0, 300)),
            limit=word(),
            loss=word(),
            bursts=draw.choice([None, (word(), word(), word(), word())]),
            gap=word(),
            reorder=word(),
            duplicate=word(),
            corrupt=word(),
            rate_bytes=draw.choice([word(), draw.getrandbits(60)]),
            corr=(word(), word(), word()),
            seed=draw.choice([None, draw.getrandbits(64)]),
        )
        assert NetemOptions.decode(sent.encode()) == sent


def test_attributes_are_told_apart_whatever_their_length() -> None:
    block = b"".join(attribute(each, bytes(each)) for each in range(1, 9))
    assert [(number, len(value)) for number, value in attributes(block)] == [
        (each, each) for each in range(1, 9)
    ]


# -- losses told from drops -------------------------------------------------------------------


def counted(asked: Impairment, packets: int, drops: int) -> tuple[int, int, int]:
    found = Ledger(asked).counters(Statistics(0, packets, drops, 0))
    return found.lost, found.queue_drops, found.overflows


def test_drops_without_loss_are_the_queues() -> None:
    assert counted(ms(1), 1000, 7) == (0, 0, 7)
    assert counted(ms(1, rate_bps=10**6), 1000, 7) == (0, 7, 0)


def test_drops_that_chance_explains_are_losses() -> None:
    assert counted(ms(1, loss=0.1), 9000, 1000) == (1000, 0, 0)
    assert counted(ms(1, loss=0.1), 9000, 1100) == (1100, 0, 0)
    bursts = GilbertElliott(0.01, 0.1)
    assert counted(ms(1, bursts=bursts), 9000, 1300)[0] == 1300


def test_drops_that_chance_does_not_explain_are_the_queues() -> None:
    assert counted(ms(1, loss=0.1), 8000, 2000) == (1000, 0, 1000)
    assert counted(ms(1, loss=0.1, rate_bps=10**6), 8000, 2000) == (1000, 1000, 0)


def test_chance_alone_is_never_taken_for_the_queue() -> None:
    """Bursts vary more than single losses do."""
    draw = np.random.default_rng(8)
    chain = GilbertElliott(0.02, 0.1, h=0.2, k=0.99)
    for _ in range(30):
        bad, drops, turns, losses = False, 0, draw.random(5000), draw.random(5000)
        for turn, loss in zip(turns, losses, strict=True):
            drops += loss >= (chain.h if bad else chain.k)
            bad = turn >= chain.r if bad else turn < chain.p
        assert counted(ms(1, bursts=chain), 5000 - drops, drops)[1:] == (0, 0)


def test_each_impairment_answers_for_its_own_time() -> None:
    ledger = Ledger(ms(1, loss=0.5))
    ledger.change(Statistics(0, 500, 500, 0), ms(1))
    assert ledger.counters(Statistics(0, 1500, 503, 0)).overflows == 3
    ledger.change(Statistics(0, 1500, 503, 0), ms(1, rate_bps=10**6))
    found = ledger.counters(Statistics(0, 2000, 513, 0))
    assert (found.lost, found.queue_drops, found.overflows) == (500, 10, 3)


def test_counters_may_wrap() -> None:
    ledger = Ledger(ms(1))
    ledger.change(Statistics(0, 2**32 - 10, 2**32 - 1, 0), replace(ms(1), loss=0.5))
    assert ledger.counters(Statistics(0, 90, 99, 0)).overflows == 2**32 - 1
