"""The netem backend does to packets what was asked for.

The kernel that runs these shares two processors with whatever else runs on the host, and has no
fine timers: how late packets are is compared with a link of the same run, and a measurement that
fails is made again (a busy machine spoils one, a defect spoils all).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from emulator.lab import Lab
from emulator.links import lan_down, lan_up, wan
from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from topologies import shapes
from topologies.resolve import GilbertElliott, Impairment

ATTEMPTS = 4
FORWARD = wan("dc1", "dc2")


@pytest.fixture(scope="module")
def lab() -> object:
    with Lab(mesh(2, wan=ms(1)), backend="netem") as made:
        yield made


def again(claim: Callable[[], None]) -> None:
    """Check a claim about time up to ATTEMPTS times."""
    for attempt in range(ATTEMPTS):
        try:
            claim()
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def binomial(found: int, tries: int, probability: float) -> float:
    """Return how likely a figure at least as far off is; tests reject below one in 10,000."""
    return float(stats.binomtest(found, tries, probability).pvalue)


def put(lab: Lab, asked: Impairment) -> None:
    lab.change({FORWARD: asked})


# -- delay ------------------------------------------------------------------------------------


def test_netem_is_the_default_where_the_kernel_has_it() -> None:
    with Lab(mesh(2, wan=ms(1))) as lab:
        assert lab.backend == "netem"


@pytest.mark.parametrize("delay_ms", [0.5, 20, 250])
def test_a_delay_comes_on_top_of_the_bare_path(lab: Lab, delay_ms: float) -> None:
    def claim() -> None:
        put(lab, ms(0))
        bare_ns = float(np.median(packets.send(lab, "n1", "n2", 200).delay_ns))
        put(lab, ms(delay_ms))
        passage = packets.send(lab, "n1", "n2", 200, settle_s=0.3 + delay_ms / 1e3)
        assert passage.lost == 0
        assert passage.delay_ns.min() >= delay_ms * 1e6
        assert np.median(passage.delay_ns) - bare_ns == pytest.approx(delay_ms * 1e6, abs=0.5e6)

    again(claim)


def test_each_direction_has_a_delay_of_its_own() -> None:
    def claim() -> None:
        with Lab(mesh(2, wan=ms(8), back=ms(30)), backend="netem") as lab:
            there = packets.send(lab, "n1", "n2", 100).delay_ns
            back = packets.send(lab, "n2", "n1", 100).delay_ns
        assert np.median(there) / 1e6 == pytest.approx(8, abs=1)
        assert np.median(back) / 1e6 == pytest.approx(30, abs=1)

    again(claim)


def test_every_lan_link_can_be_changed_when_all_are_spliced() -> None:
    def claim() -> None:
        with Lab(mesh(1, 2), splice="all", backend="netem") as lab:
            lab.change({lan_up("n1", "dc1"): ms(8), lan_down("n1", "dc1"): ms(4)})
            up = packets.send(lab, "n1", "n2", 100).delay_ns
            down = packets.send(lab, "n2", "n1", 100).delay_ns
        assert np.median(up) / 1e6 == pytest.approx(8, abs=1)
        assert np.median(down) / 1e6 == pytest.approx(4, abs=1)

    again(claim)


# -- jitter -----------------------------------------------------------------------------------

SAMPLE = shapes.standardised([*np.random.default_rng(1).gamma(2.0, size=500)])


@pytest.mark.parametrize(
    ("distribution", "table"), [("uniform", ()), ("normal", ()), ("pareto", ()), ("table", SAMPLE)]
)
def test_delays_follow_the_distribution(
    lab: Lab, distribution: str, table: tuple[float, ...]
) -> None:
    """With reordering, packets draw their delays however close they are."""
    asked = ms(400, 100, distribution=distribution, table=table, reorder=True)
    quantiles = np.array(shapes.shape(distribution, table) or np.linspace(-1, 1, 4097))

    def distribution_ns(delays_ns: np.ndarray) -> np.ndarray:
        places = np.linspace(0, 1, len(quantiles))
        return np.interp((delays_ns - 400e6) / 100e6, quantiles, places)

    def claim() -> None:
        # How late this kernel's timers are at this moment, with the same number under way.
        put(lab, ms(400))
        late = packets.send(lab, "n1", "n2", 1000, interval_s=0.0004, settle_s=0.6)
        late_ns = float(np.median(late.delay_ns)) - 400e6
        put(lab, asked)
        longest_s = asked.range_ns[1] / 1e9
        passage = packets.send(lab, "n1", "n2", 5000, interval_s=0.0004, settle_s=longest_s)
        assert passage.lost == 0
        assert stats.kstest(passage.delay_ns - late_ns, distribution_ns).pvalue > 0.01
        assert abs(lag_one(passage.delays_in_order())) < 0.06

    again(claim)


def lag_one(values: np.ndarray) -> float:
    return float(np.corrcoef(values[:-1], values[1:])[0, 1])


def test_an_even_jitter_of_half_a_second_is_even(lab: Lab) -> None:
    """netem's own is not: 2^32 is no multiple of 2 × jitter, and some delays get a fifth more."""
    asked = ms(900, 900, reorder=True)

    def claim() -> None:
        put(lab, asked)
        passage = packets.send(lab, "n1", "n2", 5000, interval_s=0.0004, settle_s=1.9)
        assert stats.kstest(passage.delay_ns, stats.uniform(0, 1.8e9).cdf).pvalue > 0.01

    again(claim)


def test_jitter_keeps_the_order_unless_asked_for_otherwise(lab: Lab) -> None:
    put(lab, ms(20, 10))
    passage = packets.send(lab, "n1", "n2", 20_000, interval_s=0.0001)
    assert (passage.lost, passage.doubled, passage.overtaken) == (0, 0, 0)
    put(lab, ms(20, 10, reorder=True))
    assert packets.send(lab, "n1", "n2", 500).overtaken > 100


@pytest.mark.parametrize(
    "more",
    [
        {"loss": 0.1},
        {"bursts": GilbertElliott(0.05, 0.3)},
        {"duplicate": 0.2},
        {"corrupt": 0.1},
        {"rate_bps": 10_000_000},
        {"distribution": "pareto"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_the_order_is_kept_beside_every_other_impairment(lab: Lab, more: dict[str, object]) -> None:
    put(lab, ms(20, 10, **more))
    passage = packets.send(lab, "n1", "n2", 2000, interval_s=0.0002)
    assert len(passage.number) > 1000
    assert passage.overtaken == 0


def test_going_from_a_wide_table_back_to_even_jitter_forgets_the_table(lab: Lab) -> None:
    """netem_change() keeps a table unless it gets another."""

    def claim() -> None:
        put(lab, ms(400, 50, distribution="pareto", reorder=True))
        put(lab, ms(100, 20, reorder=True))
        delays_ns = packets.send(lab, "n1", "n2", 2000, settle_s=0.5).delay_ns
        assert 80e6 <= delays_ns.min() < 84e6  # of a Pareto distribution: 88
        assert np.quantile(delays_ns, 0.95) < 123e6  # 128

    again(claim)


def test_a_seed_does_not_repeat_itself_after_a_change(lab: Lab) -> None:
    """netem starts its random numbers anew with each change."""
    asked = ms(50, 40, reorder=True)
    runs = []
    for _ in range(2):
        put(lab, asked)
        runs.append(packets.send(lab, "n1", "n2", 200).delays_in_order())
    assert abs(np.corrcoef(*runs)[0, 1]) < 0.4


# -- overtaking -------------------------------------------------------------------------------


def test_the_part_asked_for_overtakes_and_the_rest_keeps_its_order(lab: Lab) -> None:
    put(lab, ms(100, 20, overtake=0.25))
    passage = packets.send(lab, "n1", "n2", 4000, settle_s=0.5)
    early = passage.delay_ns < 60e6
    assert passage.lost == 0
    assert binomial(int(early.sum()), 4000, 0.25) > 1e-4
    rest = passage.number[~early]
    assert np.all(np.diff(rest) > 0)


# -- loss, duplication, corruption ------------------------------------------------------------


def test_loss_is_within_its_binomial_interval_and_counted(lab: Lab) -> None:
    put(lab, ms(1, loss=0.1))
    before = lab.counters()[FORWARD]
    passage = packets.send(lab, "n1", "n2", 8000, interval_s=0.0002)
    after = lab.counters()[FORWARD]
    assert binomial(passage.lost, 8000, 0.1) > 1e-4
    assert after.lost - before.lost == passage.lost
    assert after.overflows == before.overflows


def test_bursts_have_their_share_and_their_length(lab: Lab) -> None:
    put(lab, ms(1, bursts=GilbertElliott(p=0.02, r=0.25)))
    passage = packets.send(lab, "n1", "n2", 12_000, interval_s=0.0002)
    gone = np.ones(12_000, bool)
    gone[passage.number] = False
    starts = int(np.sum(gone[1:] & ~gone[:-1]))
    # A burst of this chain lasts 1/r packets, and begins p times a packet that is delivered.
    assert binomial(starts, int(np.sum(~gone)), 0.02) > 1e-4
    assert gone.sum() / starts == pytest.approx(4, rel=0.25)


@pytest.mark.parametrize(("loss", "duplicate"), [(0.0, 0.1), (0.1, 0.1), (0.05, 0.3)])
def test_duplication_and_loss_do_not_disturb_each_other(
    lab: Lab, loss: float, duplicate: float
) -> None:
    """netem delivers a packet chosen for both once, and may lose the copy."""
    put(lab, ms(1, loss=loss, duplicate=duplicate))
    passage = packets.send(lab, "n1", "n2", 8000, interval_s=0.0002)
    arrived = 8000 - passage.lost
    assert binomial(passage.lost, 8000, loss) > 1e-4
    assert binomial(passage.doubled, arrived, duplicate) > 1e-4


def test_corruption_flips_one_bit_and_the_checksum_notices(lab: Lab) -> None:
    """Of 100-byte payloads nearly all are dropped by a checksum; no wrong one is delivered."""
    put(lab, ms(1, corrupt=0.2))
    passage = packets.send(lab, "n1", "n2", 4000, interval_s=0.0002, bytes_each=1000)
    # 6 of 1042 bytes are the sender's MAC address, which nobody looks at.
    assert binomial(passage.lost, 4000, 0.2 * (1 - 6 / 1042)) > 1e-4


def test_a_tcp_stream_survives_corruption_unharmed(lab: Lab) -> None:
    put(lab, ms(1, corrupt=0.02))
    content = np.random.default_rng(2).bytes(2_000_000)
    listener = lab.socket("n2", socket.AF_INET, socket.SOCK_STREAM)
    sender = lab.socket("n1", socket.AF_INET, socket.SOCK_STREAM)
    with listener, sender:
        listener.bind(("", 5006))
        listener.listen(1)
        sender.connect((lab.node("n2").address, 5006))
        accepted, _ = listener.accept()
        received = bytearray()
        with accepted:
            accepted.setblocking(False)
            sender.setblocking(False)
            sent = 0
            while len(received) < len(content):
                with contextlib.suppress(BlockingIOError):
                    sent += sender.send(content[sent : sent + 60_000])
                with contextlib.suppress(BlockingIOError):
                    received += accepted.recv(1 << 17)
    assert bytes(received) == content


# -- rate and queue ---------------------------------------------------------------------------


def test_a_rate_is_kept_and_its_queue_drops_the_rest(lab: Lab) -> None:
    rate_bps, size = 8_000_000, 1000
    put(lab, ms(10, rate_bps=rate_bps, queue_bytes=300_000))
    before = lab.counters()[FORWARD]

    def claim() -> None:
        passage = packets.send(lab, "n1", "n2", 3000, interval_s=0.0004, bytes_each=size)
        arrived_ns = passage.sent_ns + passage.delay_ns
        bits = 8 * (size + 42) * (len(arrived_ns) - 1)  # Ethernet, IP and UDP headers
        assert passage.lost > 500
        assert bits / (arrived_ns[-1] - arrived_ns[0]) * 1e9 == pytest.approx(rate_bps, rel=0.02)

    again(claim)
    after = lab.counters()[FORWARD]
    assert after.queue_drops - before.queue_drops > 500
    assert (after.lost, after.overflows) == (before.lost, before.overflows)
