"""Calibration passes a right network, fails a wrong one, and leaves both as they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import Tolerance, calibrate, echoes, pairs_of
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import requested, wan
from wanlat.emulator.prober import Echoes, Prober
from wanlat.topologies.errors import UserError

BUSY = Tolerance(median_ms=1.0, near_median_ms=0.4, p99_ms=5000, edge_ms=5000)
"""A test machine is rarely idle. What a wrong link does to medians (2 ms and more here) fails."""
ANY_DELAY = Tolerance(median_ms=60_000, near_median_ms=60_000, p99_ms=60_000, edge_ms=60_000)
"""Where a right link is to pass however long the machine stalls; tests look at minima then."""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have probes waited for up to a minute: no stall makes one count as lost."""
    monkeypatch.setattr(echoes, "patience_s", lambda *_: 60.0)


@pytest.mark.usefixtures("patient")
def test_a_right_network_passes_and_the_document_has_the_published_keys():
    plan = mesh(3, wan=ms(10))
    with Lab(plan) as lab:
        document = calibrate(lab, samples=250, tolerance=ANY_DELAY)
    assert document["verdict"] == "pass", [pair["reasons"] for pair in document["pairs"]]
    assert (document["topology"], document["backend"]) == ("mesh", lab.backend)
    assert len(document["pairs"]) == 6
    pair = document["pairs"][0]
    assert {"from", "to", "requested_rtt_ms", "requested_jitter_ms", "lost"} <= pair.keys()
    assert {"reordered", "verdict"} <= pair.keys()
    assert pair["bare_rtt_ms"]["min"] < pair["rtt_ms"]["min"] / 4
    assert (pair["jitter"], pair["delivery"], pair["rate"]) == (None, None, None)
    assert list(pair["rtt_ms"]) == ["n", "mean", "stdev", "min", "p50", "p99", "max"]
    assert list(pair["error_ms"]) == ["p50", "p99"]
    assert (pair["duplicated"], pair["corrupted"]) == (0, 0)
    # Nothing is early, but for the clocks' own error; and not all of a second and a half is late.
    assert all(19.98 < pair["rtt_ms"]["min"] < 21 for pair in document["pairs"])
    assert pair["sent"] == pair["rtt_ms"]["n"] == 250


def test_a_wrong_delay_fails():
    with Lab(mesh(2, wan=ms(11))) as lab:
        document = calibrate(lab, against=mesh(2, wan=ms(10)), samples=40, tolerance=BUSY)
    assert document["verdict"] == "fail"
    for pair in document["pairs"]:
        assert pair["error_ms"]["p50"] > 1.98
        assert "median error" in pair["reasons"][0]
        assert pair["rounds"] == 2  # the first may have been a stall; no further one is needed


@pytest.mark.usefixtures("patient")
def test_one_wrong_direction_of_one_link_fails_its_pairs_and_no_other():
    plan, wrong = mesh(3, wan=ms(10)), {("n2", "n3"), ("n3", "n2")}
    with Lab(plan) as lab:
        lab.change({wan("dc2", "dc3"): ms(12)})
        document = calibrate(lab, against=plan, samples=250, tolerance=BUSY)
    for pair in document["pairs"]:
        # What a stall adds to the right ones may fail them too: their quickest probes are right.
        is_wrong = (pair["from"], pair["to"]) in wrong
        assert pair["reasons"] or not is_wrong
        assert (pair["rtt_ms"]["min"] > 21.98) == is_wrong
        assert pair["rtt_ms"]["min"] < (23 if is_wrong else 21)


@pytest.mark.usefixtures("patient")
def test_half_a_millisecond_inside_a_site_is_right_to_a_fraction_of_it():
    plan = mesh(1, 2, lan=ms(0.125))
    with Lab(plan) as lab:
        document = calibrate(lab, samples=300, tolerance=ANY_DELAY)
    pair = document["pairs"][0]
    assert pair["requested_rtt_ms"] == 0.5
    assert document["verdict"] == "pass", pair["reasons"]
    assert 0.48 < pair["rtt_ms"]["min"] < 0.9  # neither none of it nor twice as much


@pytest.mark.usefixtures("patient")
def test_jitter_fills_its_range_evenly_and_is_back_in_force_afterwards():
    """By what is early: a shape of the same mean has more than were asked for somewhere."""
    plan = mesh(2, wan=ms(20, jitter=4))
    with Lab(plan) as lab:
        before = lab.impairments
        document = calibrate(
            # Late packets make another shape, and are no loss: what chance explains is not asked.
            lab,
            samples=60,
            jitter_samples=1000,
            tolerance=replace(ANY_DELAY, alpha=0.0),
        )
        assert lab.impairments == before == requested(plan)
    assert document["verdict"] == "pass", document["pairs"]
    for pair in document["pairs"]:
        assert 31.9 < pair["rtt_ms"]["min"] < 35.5
        assert pair["rtt_ms"]["max"] > 44.5
        for way in (pair["jitter"]["there"], pair["jitter"]["back"]):
            assert way["n"] == 1000
            assert way["early_p_value"] > 1e-6
            quartiles = np.interp([0.25, 0.75], document["quantiles"], way["measured_quantiles_ms"])
            assert (quartiles > [17, 21]).all()  # of 16 to 24 ms


def test_jitter_that_was_asked_for_but_is_not_there_fails():
    with Lab(mesh(2, wan=ms(20))) as lab:
        document = calibrate(
            lab, against=mesh(2, wan=ms(20, jitter=4)), samples=40, jitter_samples=60
        )
    assert document["verdict"] == "fail"
    assert any("is not uniform" in reason for reason in document["pairs"][0]["reasons"])


def test_jitter_that_nobody_asked_for_fails():
    with Lab(mesh(2, wan=ms(20, jitter=10))) as lab:
        document = calibrate(lab, against=mesh(2, wan=ms(20)), samples=60)
    assert document["verdict"] == "fail"


def test_loss_is_held_against_what_was_asked_for():
    lossy = mesh(2, wan=ms(2, loss=0.2))
    with Lab(lossy) as lab:
        right = calibrate(lab, samples=300, tolerance=ANY_DELAY)
        wrong = calibrate(lab, against=mesh(2, wan=ms(2)), samples=100)
    assert right["verdict"] == "pass", right["pairs"]
    assert "none asked for" in " ".join(wrong["pairs"][0]["reasons"])


def test_a_cut_link_is_told_as_such():
    with Lab(mesh(2, wan=ms(1))) as lab:
        lab.change({wan("dc1", "dc2"): ms(1, loss=1.0)})
        document = calibrate(lab, against=mesh(2, wan=ms(1)), samples=20)
    assert document["pairs"][0]["reasons"] == ["no probe came back"]


def test_both_directions_may_differ():
    plan = mesh(2, wan=ms(20), back=ms(5))
    with Lab(plan) as lab, Prober(lab, ["n1", "n2"]) as prober:
        found = prober.measure([("n1", "n2")], 300, 0.005, 60)["n1", "n2"]
    assert 19.98 < min(found.forward_ns) / 1e6 < 21.5
    assert 4.98 < min(found.backward_ns) / 1e6 < 6.5


def test_one_node_has_nothing_to_calibrate():
    with Lab(mesh(1)) as lab, pytest.raises(UserError, match="one node"):
        calibrate(lab)


def test_every_ordered_pair_is_measured_in_small_labs():
    assert len(pairs_of(mesh(3, 2))) == 30


def test_in_large_labs_every_pair_of_sites_and_every_node_is():
    plan = mesh(10, 20)
    pairs = pairs_of(plan)
    site = {node.name: node.site for node in plan.nodes}
    assert {(site[a], site[b]) for a, b in pairs} >= {
        (a.name, b.name) for a in plan.sites for b in plan.sites if a is not b
    }
    assert {name for pair in pairs for name in pair} == set(site)
    assert len(pairs) == 90 + 200


def test_overtaking_is_counted_by_what_arrives_late():
    assert Echoes(sent=5, numbers=[0, 2, 1, 3]).reordered == 1
    assert Echoes(sent=5, numbers=[0, 2, 1, 3]).lost == 1


def test_tolerance_is_tighter_for_near_pairs():
    tolerance = replace(Tolerance(), near_median_ms=0.1)
    assert tolerance.median_for(0.5) == 0.1
    assert tolerance.median_for(100) == 0.5
