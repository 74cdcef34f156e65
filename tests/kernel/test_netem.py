"""The netem backend does to packets what was asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy  # its modules are imported where they are used

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import lan_down, lan_up, wan
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

FORWARD = wan("dc1", "dc2")


@pytest.fixture(scope="module")
def lab() -> object:
    with Lab(mesh(2, wan=ms(1)), backend="netem") as made:
        yield made


def binomial(found: int, tries: int, probability: float) -> float:
    """Return how likely a figure at least as far off is; tests reject below one in 10,000."""
    return float(scipy.stats.binomtest(found, tries, probability).pvalue)


def put(lab: Lab, asked: Impairment) -> None:
    lab.change({FORWARD: asked})


# -- delay ------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay_ms", [0.5, 20, 250])
def test_a_delay_comes_on_top_of_the_bare_path(lab: Lab, delay_ms: float) -> None:
    put(lab, ms(delay_ms))
    passage = packets.send(lab, "n1", "n2", 200, settle_s=0.3 + delay_ms / 1e3)
    assert passage.lost == 0
    assert 0 <= passage.quickest_late_ns(delay_ms * 1e6) < packets.QUICKEST_LATE_NS


def test_every_lan_link_can_be_changed_when_all_are_spliced() -> None:
    with Lab(mesh(1, 2), splice="all", backend="netem") as lab:
        lab.change({lan_up("n1", "dc1"): ms(8), lan_down("n1", "dc1"): ms(4)})
        up = packets.send(lab, "n1", "n2", 100)
        down = packets.send(lab, "n2", "n1", 100)
    assert 0 <= up.quickest_late_ns(8e6) < packets.QUICKEST_LATE_NS
    assert 0 <= down.quickest_late_ns(4e6) < packets.QUICKEST_LATE_NS


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

    put(lab, asked)
    longest_s = asked.range_ns[1] / 1e9
    passage = packets.send(lab, "n1", "n2", 2000, interval_s=0.001, settle_s=longest_s)
    assert passage.lost == 0
    assert_none_too_short(passage.delay_ns, distribution_ns)
    # Late are those that are on their way when the machine stalls: a quarter, or a third.
    assert scipy.stats.kstest(passage.delay_ns, distribution_ns, alternative="less").statistic < 0.5
    # By chance ± 0.03, and more where one stall follows another.
    assert abs(passage.correlation()) < 0.5


def assert_none_too_short(
    delays_ns: np.ndarray, distribution_ns: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Assert that there are not more short delays than a distribution has, but by chance.

    Nothing that the machine does makes any shorter. By chance there are more once in 10,000 times:
    of 2,000 samples, a distance of 0.05. And any other distribution of the same mean has more.
    """
    assert scipy.stats.kstest(delays_ns, distribution_ns, alternative="greater").pvalue > 1e-4


def test_jitter_keeps_the_order_unless_asked_for_otherwise(lab: Lab) -> None:
    put(lab, ms(20, 10))
    passage = packets.send(lab, "n1", "n2", 5000, interval_s=0.0001)
    assert (passage.lost, passage.doubled, passage.overtaken) == (0, 0, 0)
    put(lab, ms(20, 10, reorder=True))
    assert packets.send(lab, "n1", "n2", 500).overtaken > 50


@pytest.mark.parametrize(
    "more",
    [
        {"bursts": GilbertElliott(0.05, 0.3)},
        {"duplicate": 0.2},
        {"distribution": "pareto"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_the_order_is_kept_beside_every_other_impairment(lab: Lab, more: dict[str, object]) -> None:
    put(lab, ms(20, 10, **more))
    passage = packets.send(lab, "n1", "n2", 2000, interval_s=0.0002)
    assert len(passage.number) > 1000
    assert passage.overtaken == 0


# -- overtaking -------------------------------------------------------------------------------


def test_the_part_asked_for_overtakes_and_the_rest_keeps_its_order(lab: Lab) -> None:
    put(lab, ms(300, 20, overtake=0.25))
    passage = packets.send(lab, "n1", "n2", 2000, settle_s=0.6)
    early = passage.delay_ns < 280e6
    assert passage.lost == 0
    assert binomial(int(early.sum()), 2000, 0.25) > 1e-4
    rest = passage.number[~early]
    assert np.all(np.diff(rest) > 0)


# -- loss, duplication, corruption ------------------------------------------------------------


def test_loss_is_within_its_binomial_interval_and_counted(lab: Lab) -> None:
    put(lab, ms(1, loss=0.1))
    before = lab.counters()[FORWARD]
    passage = packets.send(lab, "n1", "n2", 4000, interval_s=0.0002)
    after = lab.counters()[FORWARD]
    # 400 ± 19: a share that is off by a fifth is found.
    assert binomial(passage.lost, 4000, 0.1) > 1e-4
    assert after.lost - before.lost == passage.lost
    assert after.overflows == before.overflows


@pytest.mark.parametrize(("loss", "duplicate"), [(0.0, 0.1), (0.2, 0.2)])
def test_duplication_and_loss_do_not_disturb_each_other(
    lab: Lab, loss: float, duplicate: float
) -> None:
    """netem delivers a packet chosen for both once, and may lose the copy: of 0.2 and 0.2, 0.16
    would be lost, five standard deviations off."""
    put(lab, ms(1, loss=loss, duplicate=duplicate))
    passage = packets.send(lab, "n1", "n2", 3000, interval_s=0.0002)
    arrived = 3000 - passage.lost
    assert binomial(passage.lost, 3000, loss) > 1e-4
    assert binomial(passage.doubled, arrived, duplicate) > 1e-4


# -- rate and queue ---------------------------------------------------------------------------


def test_a_rate_is_kept() -> None:
    """What waits and what is dropped, `tests/emulator/test_queue.py` shows on both backends."""
    rate_bps, size = 8_000_000, 1000
    with Lab(mesh(2, wan=ms(10, rate_bps=rate_bps)), backend="netem") as lab:
        passage = packets.send(lab, "n1", "n2", 400, interval_s=0, bytes_each=size, settle_s=0.6)
    each_ns = 8 * (size + 42) * 1e9 / rate_bps  # Ethernet, IP and UDP headers
    # None comes before the rate has let all before it through, and itself,
    due_ns = passage.sent_ns[0] + 10e6 + each_ns * np.arange(1, len(passage.number) + 1)
    assert np.all(passage.arrived_ns >= due_ns - 1000)
    # and of stretches of twenty packets, the quickest takes no longer than the rate says.
    assert np.diff(passage.arrived_ns[::20]).min() < 1.1 * 20 * each_ns
