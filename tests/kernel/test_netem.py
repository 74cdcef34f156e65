"""What only netem has: its counters, duplicates beside losses, LAN links through a bridge.

All that a topology may request of either backend, `tests/calibration` measures on both.
"""

from __future__ import annotations

import pytest
import scipy  # its modules are imported where they are used

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import lan_down, lan_up, wan

FORWARD = wan("dc1", "dc2")


@pytest.fixture(scope="module")
def lab() -> object:
    with Lab(mesh(2, wan=ms(1)), backend="netem") as made:
        yield made


def binomial(count: int, tries: int, probability: float) -> float:
    """Return how likely a figure at least as far off is; tests reject below one in 10,000."""
    return float(scipy.stats.binomtest(count, tries, probability).pvalue)


def test_every_lan_link_can_be_changed_when_all_are_spliced() -> None:
    with Lab(mesh(1, 2), splice="all", backend="netem") as lab:
        lab.change({lan_up("n1", "dc1"): ms(8), lan_down("n1", "dc1"): ms(4)})
        up = packets.send(lab, "n1", "n2", 100)
        down = packets.send(lab, "n2", "n1", 100)
    assert 0 <= up.quickest_late_ns(8e6) < packets.QUICKEST_LATE_NS
    assert 0 <= down.quickest_late_ns(4e6) < packets.QUICKEST_LATE_NS


def test_loss_is_within_its_binomial_interval_and_counted(lab: Lab) -> None:
    lab.change({FORWARD: ms(1, loss=0.1)})
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
    lab.change({FORWARD: ms(1, loss=loss, duplicate=duplicate)})
    passage = packets.send(lab, "n1", "n2", 3000, interval_s=0.0002)
    arrived = 3000 - passage.lost
    assert binomial(passage.lost, 3000, loss) > 1e-4
    assert binomial(passage.doubled, arrived, duplicate) > 1e-4
