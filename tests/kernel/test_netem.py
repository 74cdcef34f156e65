"""The netem backend applies what was asked for: measured with packets, and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from emulator.backends.netem_parameters import queue_limit
from emulator.calibration import Tolerance, calibrate
from emulator.lab import Lab
from emulator.links import lan_down, lan_up, wan
from emulator.prober import Prober
from tests.emulator.plans import mesh, ms


@pytest.fixture
def tolerance(bare_ms: float, stage_ms: float) -> Tolerance:
    """Return the usual tolerance on top of what this kernel's path and its timers cost.

    User-Mode Linux shares two processors with the host; its stragglers are its own.
    """
    usual = Tolerance()
    return replace(
        usual,
        median_ms=usual.median_ms + bare_ms + 2 * stage_ms,
        near_median_ms=usual.near_median_ms + bare_ms + 4 * stage_ms,
        p99_ms=15,
        edge_ms=10,
    )


def faults(document: dict[str, Any]) -> list[str]:
    """Return what is wrong with each pair, with its figures."""
    return [
        f"{pair['from']}-{pair['to']}: {pair['reasons']} {pair['error_ms']}"
        for pair in document["pairs"]
        if pair["reasons"]
    ]


def qdiscs(lab: Lab, namespace: str) -> list[dict[str, object]]:
    """Return what tc says of a namespace's netem queueing disciplines."""
    shown = lab.run("n1", ["ip", "netns", "exec", namespace, "tc", "-j", "qdisc", "show"])
    return [each for each in json.loads(shown.stdout) if each["kind"] == "netem"]


def test_netem_is_the_default_where_the_kernel_has_it() -> None:
    with Lab(mesh(2, wan=ms(1))) as lab:
        assert lab.backend == "netem"


def test_delays_pass_calibration(tolerance: Tolerance) -> None:
    with Lab(mesh(3, 2, wan=ms(50), lan=ms(0.125))) as lab:
        document = calibrate(
            lab,
            pairs=[("n1", "n2"), ("n3", "n4"), ("n1", "n3"), ("n5", "n1"), ("n4", "n6")],
            samples=100,
            tolerance=tolerance,
        )
    assert document["verdict"] == "pass", faults(document)


def test_jitter_is_uniform_and_keeps_the_order(tolerance: Tolerance) -> None:
    with Lab(mesh(2, wan=ms(50, jitter=10))) as lab:
        document = calibrate(lab, samples=60, jitter_samples=200, tolerance=tolerance)
    assert document["verdict"] == "pass", faults(document)
    assert [pair["reordered"] for pair in document["pairs"]] == [0, 0]


def test_order_is_kept_also_when_packets_are_closer_than_the_jitter() -> None:
    with Lab(mesh(2, wan=ms(20, jitter=10))) as lab, Prober(lab, ["n1", "n2"]) as prober:
        echoes = prober.measure([("n1", "n2")], 500, 0.002, 1)["n1", "n2"]
    assert (echoes.lost, echoes.reordered) == (0, 0)


def test_reordering_comes_on_request() -> None:
    plan = mesh(2, wan=ms(20, jitter=10, reorder=True))
    with Lab(plan) as lab, Prober(lab, ["n1", "n2"]) as prober:
        echoes = prober.measure([("n1", "n2")], 500, 0.002, 1)["n1", "n2"]
    assert echoes.reordered > 50


def test_a_wrong_delay_fails(tolerance: Tolerance) -> None:
    with Lab(mesh(2, wan=ms(55))) as lab:
        document = calibrate(
            lab, against=mesh(2, wan=ms(50)), samples=40, tolerance=tolerance, attempts=1
        )
    assert document["verdict"] == "fail"


def test_loss_is_within_its_binomial_interval() -> None:
    with Lab(mesh(2, wan=ms(1, loss=0.1))) as lab, Prober(lab, ["n1", "n2"]) as prober:
        echoes = prober.measure([("n1", "n2")], 1500, 0.002, 0.5)["n1", "n2"]
    arrives = 0.9**2
    assert stats.binomtest(echoes.lost, echoes.sent, 1 - arrives).pvalue > 0.001


def test_tc_reads_back_delay_jitter_rate_and_limit() -> None:
    asked = ms(50, jitter=10, rate_bps=80_000_000)
    with Lab(mesh(2, wan=asked)) as lab:
        (netem,) = qdiscs(lab, "site.dc1")
    options = netem["options"]
    assert isinstance(options, dict)
    assert options["delay"] == {"delay": 0.05, "jitter": 0.01, "correlation": 0}
    assert options["rate"]["rate"] == 10_000_000
    assert options["limit"] == queue_limit(asked)


def test_impairments_change_in_place_without_losing_a_packet() -> None:
    with Lab(mesh(2, wan=ms(30))) as lab, Prober(lab, ["n1", "n2"]) as prober:
        for delay in (5, 40, 1, 30):
            lab.change({wan("dc1", "dc2"): ms(delay), wan("dc2", "dc1"): ms(delay)})
            echoes = prober.measure([("n1", "n2")], 60, 0.005, 0.5)["n1", "n2"]
            assert echoes.lost == 0
            assert sorted(echoes.rtt_ns)[30] / 1e6 == pytest.approx(2 * delay, abs=2)


def test_every_lan_link_can_be_changed_when_all_are_spliced() -> None:
    with Lab(mesh(1, 2), splice="all") as lab, Prober(lab, ["n1", "n2"]) as prober:
        lab.change({lan_up("n1", "dc1"): ms(8), lan_down("n1", "dc1"): ms(4)})
        echoes = prober.measure([("n1", "n2")], 60, 0.005, 0.5)["n1", "n2"]
    assert sorted(echoes.forward_ns)[30] / 1e6 == pytest.approx(8, abs=1.5)
    assert sorted(echoes.backward_ns)[30] / 1e6 == pytest.approx(4, abs=1.5)


def test_drops_of_a_queue_that_is_too_short_are_told_apart() -> None:
    with Lab(mesh(2, wan=ms(5))) as lab, Prober(lab, ["n1", "n2"]) as prober:
        prober.measure([("n1", "n2")], 50, 0.002, 0.5)
        counters = lab.counters()[wan("dc1", "dc2")]
    assert counters.packets == 50
    assert (counters.lost, counters.queue_drops, counters.overflows) == (0, 0, 0)
