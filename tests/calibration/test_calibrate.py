"""Calibration passes a network that does all that was asked, and finds each single wrong thing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.calibration.bench import PAIR, SITES, Bench, reasons
from tests.calibration.test_rate import ROOM, within_reach
from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import Tolerance, calibrate
from wanlat.emulator.calibration.rounds import ONE_ROUND
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import GilbertElliott, Impairment

ANY_DELAY = Tolerance(median_ms=1e5, near_median_ms=1e5, p99_ms=1e5, edge_ms=1e5, alpha=1e-12)
"""However late a machine makes packets, a right network passes; tests look at minima then."""
NORMAL = ms(30, jitter=4, distribution="normal")
RIGHT = {
    "delay": ms(10),
    "jitter": ms(20, jitter=4),
    "loss": ms(5, loss=0.05),
    "overtaking": ms(20, overtake=0.02),
    "a slow rate, and loss": ms(5, loss=0.02, rate_bps=1_000_000),
    "corruption": ms(5, corrupt=0.05),
    "everything": replace(NORMAL, loss=0.02, duplicate=0.02, rate_bps=20_000_000, queue_bytes=ROOM),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_network_that_does_what_was_asked_passes(bench: Bench, name: str) -> None:
    """Of how late packets are, and so of the fit of their jitter, others judge (`test_delays`)."""
    plan = bench.ask(RIGHT[name])
    in_force = bench.lab.impairments
    document = calibrate(bench.lab, against=plan, pairs=[PAIR], tolerance=ANY_DELAY)
    assert [each for each in reasons(document) if "jitter on the way" not in each] == []
    assert bench.lab.impairments == in_force
    (pair,) = document["pairs"]
    least_ms = sum(step.range_ns[0] for way in (PAIR, PAIR[::-1]) for step in plan.path(*way)) / 1e6
    assert least_ms - 0.1 < pair["rtt_ms"]["min"]
    assert pair["error_ms"]["p50"] >= 0
    assert pair["bare_rtt_ms"]["min"] < 2
    assert (pair["delivery"] is None) == (name == "delay")
    if name == "everything":
        assert pair["rate"]["measured_bps"] == pytest.approx(20e6, rel=0.05)
        assert min(pair["delivery"][key] for key in ("lost", "duplicated")) > 0
    if pair["jitter"]:
        for way in (pair["jitter"]["there"], pair["jitter"]["back"]):
            assert way["early_p_value"] > 1e-6
            quartiles = np.interp([0.25, 0.75], document["quantiles"], way["measured_quantiles_ms"])
            assert quartiles[1] - quartiles[0] > 2


# One for each figure that a pass takes; what its judgement makes of others, its unit tests say.
WRONG: dict[str, tuple[Impairment, Impairment, str]] = {
    "delay": (replace(NORMAL, delay_ns=32_000_000), NORMAL, "median error"),
    "distribution": (ms(30, jitter=4), NORMAL, "is not normal"),
    "no jitter": (ms(20), ms(20, jitter=4), "is not uniform"),
    "jitter unasked": (ms(20, jitter=10), ms(20), "error"),
    "loss": (ms(5, loss=0.06), ms(5, loss=0.02), "lost"),
    "loss unasked": (ms(5, loss=0.06), ms(5), "none requested"),
    "a cut": (ms(5, loss=1.0), ms(5), "no probe came back"),
    "single losses for bursts": (
        ms(5, loss=0.04),
        ms(5, bursts=GilbertElliott(p=0.0125, r=0.3)),
        "bursts of",
    ),
    "duplicates unasked": (ms(5, duplicate=0.1), ms(5), "twice"),
    "no duplicates": (ms(5), ms(5, duplicate=0.02), "duplicated"),
    # (Of damaged packets most are lost: a bit of their headers is wrong.)
    "corruption unasked": (ms(5, corrupt=0.5), ms(5), "damaged"),
    "no corruption": (ms(5), ms(5, corrupt=0.5), "damaged"),
    "no overtaking": (ms(20), ms(20, overtake=0.02), "undelayed"),
    "reordering unasked": (replace(NORMAL, reorder=True), NORMAL, "overtaken"),
    "no reordering": (NORMAL, replace(NORMAL, reorder=True), "overtaken"),
    "no rate": (ms(5), ms(5, rate_bps=20_000_000, queue_bytes=ROOM), "rate"),
    "rate, by 5 %": (
        ms(5, rate_bps=21_000_000, queue_bytes=ROOM),
        ms(5, rate_bps=20_000_000, queue_bytes=ROOM),
        "rate 2",
    ),
}
# One of each pass; the judgement is the same on every backend, and User-Mode Linux is slow.
ON_NETEM = ("delay", "distribution", "loss", "no duplicates", "corruption unasked", "rate, by 5 %")


@pytest.mark.parametrize("name", WRONG)
def test_each_single_wrong_thing_is_found(bench: Bench, tolerance: Tolerance, name: str) -> None:
    if bench.lab.backend == "netem" and name not in ON_NETEM:
        pytest.skip("the judgement is shown on wire")
    built, asked, words = WRONG[name]
    built, asked = (within_reach(bench.lab.backend, each) for each in (built, asked))
    bench.ask(built)
    document = calibrate(
        bench.lab,
        against=mesh(SITES, wan=asked),
        pairs=[PAIR],
        # On a busy machine late packets blur the shape: it takes more of them to be refused.
        samples=800 if name == "distribution" else None,
        tolerance=tolerance,
        limits=ONE_ROUND,
    )
    assert document["verdict"] == "fail"
    assert words in " | ".join(reasons(document))


def test_one_wrong_direction_of_one_link_fails_its_pairs(bench: Bench) -> None:
    """What a stall adds to the right ones may fail them too: their quickest probes are right."""
    plan, wrong = bench.ask(ms(10)), {("n2", "n3"), ("n3", "n2")}
    bench.lab.change({wan("dc2", "dc3"): ms(12)})
    for pair in calibrate(bench.lab, against=plan)["pairs"]:
        is_wrong = (pair["from"], pair["to"]) in wrong
        assert pair["reasons"] or not is_wrong
        assert (pair["rtt_ms"]["min"] > 21.9) == is_wrong


def test_half_a_millisecond_inside_a_site_is_right_to_a_fraction_of_it(bench: Bench) -> None:
    with Lab(mesh(1, 2, lan=ms(0.125)), backend=bench.lab.backend) as lab:  # type: ignore[arg-type]
        pair = calibrate(lab, tolerance=ANY_DELAY)["pairs"][0]
    assert pair["requested_rtt_ms"] == 0.5
    assert 0.48 < pair["rtt_ms"]["min"] < 0.9  # neither none of it nor twice as much


def test_one_node_has_nothing_to_calibrate(bench: Bench) -> None:
    with (
        Lab(mesh(1), backend=bench.lab.backend) as lab,  # type: ignore[arg-type]
        pytest.raises(UserError, match="one node"),
    ):
        calibrate(lab)
