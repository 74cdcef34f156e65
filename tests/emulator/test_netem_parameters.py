"""What netem is sent for an impairment; tests/kernel show what the kernel makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.plans import ms
from wanlat.emulator.backends.netem_ledger import Ledger
from wanlat.emulator.backends.netem_options import decode, encode
from wanlat.emulator.rtnetlink import Statistics
from wanlat.topologies import shapes
from wanlat.topologies.netem import ORDERING_RATE_BPS, netem, queue_limit, unsupported
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


@pytest.mark.parametrize("jitter_ns", [1, 999, 10_000_000, 8_000_000_000])
def test_even_jitter_is_even_at_any_size(jitter_ns: int) -> None:
    found = np.sort(delays_ns(Impairment(10**10, jitter_ns)) - 10**10)
    even = np.linspace(-jitter_ns, jitter_ns, len(found))
    assert np.abs(found - even).max() <= jitter_ns / 4096 + 1


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


def test_the_order_is_kept_by_a_rate_unless_jitter_may_reorder() -> None:
    assert netem(ms(5)).rate_bps == netem(ms(5, 1)).rate_bps == ORDERING_RATE_BPS
    assert netem(ms(5, 1, reorder=True)).rate_bps == 0
    assert netem(ms(5, 1, rate_bps=8_000_000)).rate_bps == 8_000_000
    assert 65536 * 8 * 10**9 // ORDERING_RATE_BPS == 0


def test_the_queue_holds_rate_times_the_longest_delay_and_what_may_wait() -> None:
    assert queue_limit(ms(100)) >= 10**10 * 0.1 / FULL_S
    longest_s = ms(100, 20, distribution="pareto").range_ns[1] / 1e9
    assert queue_limit(ms(100, 20, distribution="pareto")) >= 10**10 * longest_s / FULL_S
    assert queue_limit(ms(100, duplicate=1)) >= 2 * 10**10 * 0.1 / FULL_S
    limited = ms(100, rate_bps=10**8, queue_bytes=15_140)
    assert queue_limit(limited) == 10**8 * 0.1 // FULL_S + 1 + 10
    assert queue_limit(Impairment(1800 * 10**9)) < 2**31


@pytest.mark.parametrize(
    ("rate_bps", "queue_bytes", "room"),
    [
        (None, None, None),
        (10**6, None, 64 << 10),  # the least
        (10**8, None, 1_250_000),  # what it sends in 100 ms
        (10**8, 3000, 3000),
    ],
)
def test_one_rule_says_how_much_waits_for_a_rate(
    rate_bps: int | None, queue_bytes: int | None, room: int | None
) -> None:
    asked = ms(100, rate_bps=rate_bps, queue_bytes=queue_bytes)
    assert asked.room_bytes == room
    if room is not None:
        assert queue_limit(asked) == rate_bps * 0.1 // FULL_S + 1 + room // 1514


def test_every_parameter_is_in_the_attributes() -> None:
    asked = ms(20, 5, bursts=GilbertElliott(0, 1, 1, 0), overtake=1, corrupt=1, rate_bps=80 * 10**9)
    sent, one = netem(asked), 2**32 - 1
    assert decode(encode(sent, seed=7)) == {
        "latency_ns": 20_000_000,
        "jitter_ns": sent.jitter_ns,
        "limit": sent.limit,
        "loss": 0,
        "bursts": (0, one, one, one),
        "gap": 1,
        "reorder": one,
        "duplicate": 0,
        "corrupt": one,
        "rate_bytes": 10**10,
    }
    assert sent.table in encode(sent)
    assert sent.table not in encode(sent, with_table=False)


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


def test_chance_alone_is_never_taken_for_the_queue() -> None:
    """Bursts vary more than single losses do."""
    draw = np.random.default_rng(8)
    chain = GilbertElliott(0.02, 0.1, h=0.2, k=0.99)
    for _ in range(30):
        bad, drops, turns, losses = False, 0, draw.random(5000), draw.random(5000)
        for turn, loss in zip(turns, losses, strict=True):
            drops += loss >= (chain.h if bad else chain.k)
            bad = turn >= chain.r if bad else turn < chain.p
        found = Ledger(ms(1, bursts=chain)).counters(Statistics(0, 5000 - drops, drops, 0))
        assert (found.queue_drops, found.overflows) == (0, 0)


def test_each_impairment_answers_for_its_own_time_and_counters_may_wrap() -> None:
    ledger = Ledger(ms(1, loss=0.5))
    ledger.change(Statistics(0, 500, 500, 0), ms(1))
    assert ledger.counters(Statistics(0, 1500, 503, 0)).overflows == 3
    ledger.change(Statistics(0, 1500, 503, 0), ms(1, rate_bps=10**6))
    found = ledger.counters(Statistics(0, 2000, 513, 0))
    assert (found.lost, found.queue_drops, found.overflows) == (500, 10, 3)
    wrapped = Ledger(ms(1))
    wrapped.change(Statistics(0, 2**32 - 10, 2**32 - 1, 0), ms(1, loss=0.5))
    assert wrapped.counters(Statistics(0, 90, 99, 0)).overflows == 2**32 - 1
