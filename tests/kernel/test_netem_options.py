"""What is sent to sch_netem is what it then has: read back by netlink, and by tc."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.backends import netem_parameters, traffic_control
from wanlat.emulator.backends.netem_options import NetemOptions
from wanlat.emulator.backends.traffic_control import Refused, TrafficControl
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.emulator.rtnetlink import queueing_discipline
from wanlat.topologies.resolve import GilbertElliott, Impairment


def shown(lab: Lab, namespace: str = "site.dc1") -> dict[str, Any]:
    """Return what tc says of the netem of a router of a lab of two sites."""
    command = ["ip", "netns", "exec", namespace, "tc", "-j", "qdisc", "show"]
    (netem,) = [q for q in json.loads(lab.run("n1", command).stdout) if q["kind"] == "netem"]
    options: dict[str, Any] = netem["options"]
    return options


def tc(lab: Lab, arguments: str, namespace: str = "site.dc1") -> None:
    """Have tc change the netem of a router, past the emulator."""
    (name,) = [
        each["ifname"]
        for each in json.loads(
            lab.run("n1", ["ip", "netns", "exec", namespace, "ip", "-j", "link"]).stdout
        )
        if each["ifname"].startswith("w")
    ]
    command = f"ip netns exec {namespace} tc qdisc change dev {name} root netem {arguments}"
    done = lab.run("n1", command.split())
    assert done.returncode == 0, done.stderr


PROBABILITY = 1e-6  # tc prints no more digits


@pytest.fixture(scope="module")
def lab() -> Any:
    with Lab(mesh(2, wan=ms(1)), backend="netem") as made:
        yield made


def put(lab: Lab, asked: Impairment) -> dict[str, Any]:
    lab.change({wan("dc1", "dc2"): asked})
    return shown(lab)


def test_tc_shows_delay_and_jitter(lab: Lab) -> None:
    # tc prints microseconds; nanoseconds are read back by netlink, below.
    delay = put(lab, Impairment(50_012_000, 10_045_000))["delay"]
    assert delay["delay"] == pytest.approx(0.050012, abs=1.1e-6)
    assert delay["jitter"] == pytest.approx(0.010045, abs=1.1e-6)


def test_tc_shows_a_delay_of_more_than_32_bits_of_nanoseconds(lab: Lab) -> None:
    delay = put(lab, Impairment(200_000_000_000, 2_000_000_000))["delay"]
    assert (delay["delay"], delay["jitter"]) == (200, 2)


def test_tc_shows_loss_duplication_and_corruption(lab: Lab) -> None:
    options = put(lab, ms(5, loss=0.01, corrupt=0.02))
    assert options["loss-random"]["loss"] == pytest.approx(0.01, abs=PROBABILITY)
    assert options["corrupt"]["corrupt"] == pytest.approx(0.02, abs=PROBABILITY)
    options = put(lab, ms(5, duplicate=0.03))
    assert options["duplicate"]["duplicate"] == pytest.approx(0.03, abs=PROBABILITY)
    assert "loss-random" not in options and "corrupt" not in options


def test_tc_shows_loss_in_bursts(lab: Lab) -> None:
    chain = put(lab, ms(5, bursts=GilbertElliott(0.01, 0.3, 0.2, 0.999)))["loss-gemodel"]
    assert [chain[each] for each in ("p", "r", "1-h", "1-k")] == pytest.approx(
        [0.01, 0.3, 0.8, 0.001], abs=PROBABILITY
    )
    assert "loss-gemodel" not in put(lab, ms(5))


def test_tc_shows_overtaking(lab: Lab) -> None:
    options = put(lab, ms(5, overtake=0.25))
    assert options["reorder"]["reorder"] == pytest.approx(0.25, abs=PROBABILITY)
    assert options["gap"] == 1
    assert "reorder" not in put(lab, ms(5))


@pytest.mark.parametrize("rate_bps", [8_000, 80_000_000, 40_000_000_000])
def test_tc_shows_the_rate_and_the_limit(lab: Lab, rate_bps: int) -> None:
    asked = ms(50, rate_bps=rate_bps)
    options = put(lab, asked)
    assert options["rate"]["rate"] == rate_bps // 8
    assert options["limit"] == netem_parameters.queue_limit(asked)


def test_random_parameters_come_back_from_the_kernel_as_they_were_sent() -> None:
    """With a seed, and in one order: what one leaves behind would show in the next."""
    draw = random.Random(4)

    def word() -> int:
        return draw.choice([0, 1, draw.getrandbits(32), 2**32 - 1])

    control = TrafficControl()
    control.send([traffic_control.put(1, "lo", NetemOptions().encode())])
    try:
        for _ in range(500):
            sent = NetemOptions(
                latency_ns=draw.choice([0, draw.getrandbits(20), draw.getrandbits(50)]),
                jitter_ns=draw.choice([0, draw.getrandbits(20), draw.getrandbits(31)]),
                table=draw.choice([b"", draw.randbytes(2 * draw.randint(1, 16384))]),
                limit=draw.getrandbits(31),
                loss=word(),
                bursts=draw.choice([None, (word(), word(), word(), word())]),
                gap=draw.choice([0, 1]),
                reorder=word(),
                duplicate=word(),
                corrupt=word(),
                rate_bytes=draw.choice([0, draw.getrandbits(32), draw.getrandbits(60)]),
                corr=(word(), word(), word()),
                seed=draw.getrandbits(64),
            )
            (_, answer) = control.send(
                [
                    traffic_control.put(1, "lo", sent.encode(), change=True),
                    traffic_control.look(1, "lo"),
                ]
            )
            assert answer is not None
            back = NetemOptions.decode(traffic_control.options(answer))
            # The kernel shows no table, and before 6.6 it has no seed.
            expected = replace(sent, table=b"", seed=sent.seed if back.seed is not None else None)
            assert back == expected
    finally:
        control.send([traffic_control.remove(1, "lo")])
        control.close()


def test_a_refusal_names_the_interface_and_the_kernels_reason() -> None:
    control = TrafficControl()
    with pytest.raises(Refused, match="qdisc") as caught:
        control.send([queueing_discipline(1, "lo", "nonsense", 0x10000, b"")])
    control.close()
    assert caught.value.what == "put nonsense on the interface lo"


def test_netems_own_delay_correlation_has_no_effect(lab: Lab) -> None:
    """Why correlation is refused: asked for 90 % in tc's way, netem delivers none."""
    # With reordering, no packet waits for the one before, which alone would correlate them.
    put(lab, ms(60, 50, reorder=True))
    tc(lab, "limit 10000 delay 60ms 50ms 90%")
    assert shown(lab)["delay"]["correlation"] == pytest.approx(0.9, abs=1e-4)
    passage = packets.send(lab, "n1", "n2", 3000, interval_s=0.0002)
    assert passage.lost == 0
    assert abs(passage.correlation()) < 0.5
