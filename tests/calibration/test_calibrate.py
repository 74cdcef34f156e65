"""Calibration passes a network that does all that was asked, and finds each single wrong thing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.calibration.bench import PAIR, SITES, Bench, told
from tests.calibration.test_rate import ROOM, within_reach
from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import Tolerance, calibrate
from wanlat.emulator.calibration.rounds import ONE_ROUND
from wanlat.topologies.resolve import GilbertElliott, Impairment

EVERYTHING = ms(
    30,
    jitter=4,
    distribution="normal",
    loss=0.02,
    duplicate=0.02,
    corrupt=0.02,
    rate_bps=20_000_000,
    queue_bytes=ROOM,
)
PLAIN = ms(30, jitter=4, distribution="normal")


def test_a_network_that_does_everything_asked_passes(bench: Bench, tolerance: Tolerance) -> None:
    """However late the machine makes packets: that a late link is found is the next test's.

    Nor is the fit of the jitter judged here, which rests on how late packets are without jitter: a
    machine that is busy during one of the two makes them differ. That delays are of the shape that
    was asked for is `test_delays`'; that another shape is found, the next test's.
    """
    tolerance = replace(
        tolerance, median_ms=10_000, near_median_ms=10_000, p99_ms=10_000, edge_ms=10_000
    )
    plan = bench.ask(EVERYTHING)
    document = calibrate(
        bench.lab, against=plan, pairs=[PAIR], samples=60, jitter_samples=200, tolerance=tolerance
    )
    (pair,) = document["pairs"]
    others = [reason for reason in pair["reasons"] if not reason.startswith("jitter on the way")]
    assert others == []
    assert max(pair["jitter"][way]["distance"] for way in ("there", "back")) < 0.15
    assert pair["bare_rtt_ms"]["min"] < 2
    assert pair["jitter"]["there"]["distribution"] == "normal"
    assert pair["rate"]["measured_bps"] == pytest.approx(20e6, rel=0.05)
    assert pair["delivery"]["lost"] > 0
    assert pair["delivery"]["duplicated"] > 0
    assert pair["delivery"]["damaged"] > 0
    assert set(bench.lab.impairments.values()) >= {EVERYTHING}  # they are back in force


# One for each figure that a pass takes. What its judgement makes of others: the unit tests of
# `tests/emulator/test_calibration_*.py`, with samples that are drawn.
WRONG: dict[str, tuple[Impairment, Impairment, str]] = {
    "delay": (replace(PLAIN, delay_ns=32_000_000), PLAIN, "median error"),
    "distribution": (ms(30, jitter=4), PLAIN, "is not normal"),
    "no correlation": (PLAIN, replace(PLAIN, correlation=0.4), "correlation"),
    "loss": (ms(5, loss=0.06), ms(5, loss=0.02), "lost"),
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
    "no overtaking": (ms(20), ms(20, overtake=0.02), "ahead"),
    "reordering unasked": (replace(PLAIN, reorder=True), PLAIN, "overtaken"),
    "no reordering": (PLAIN, replace(PLAIN, reorder=True), "overtaken"),
    "no rate": (ms(5), ms(5, rate_bps=20_000_000, queue_bytes=ROOM), "rate"),
    "rate, by 5 %": (
        ms(5, rate_bps=21_000_000, queue_bytes=ROOM),
        ms(5, rate_bps=20_000_000, queue_bytes=ROOM),
        "rate 21",
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
        samples=40,
        # On a busy machine late packets blur the shape: it takes more of them to be refused.
        jitter_samples=800 if name == "distribution" else 200,
        tolerance=tolerance,
        limits=ONE_ROUND,
    )
    assert document["verdict"] == "fail"
    assert words in told(document)
