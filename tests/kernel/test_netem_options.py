"""What is sent to sch_netem is what it then has: read back by netlink, and by tc."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies.netem import queue_limit
from wanlat.topologies.resolve import GilbertElliott, Impairment

ROUTER = ["ip", "netns", "exec", "site.dc1"]


def shown(lab: Lab) -> dict[str, Any]:
    """Return what tc says of the netem of a router of a lab of two sites."""
    told = lab.run("n1", [*ROUTER, "tc", "-j", "qdisc", "show"]).stdout
    (netem,) = [q for q in json.loads(told) if q["kind"] == "netem"]
    options: dict[str, Any] = netem["options"]
    return options


@pytest.fixture(scope="module")
def lab() -> Any:
    with Lab(mesh(2, wan=ms(1)), backend="netem") as made:
        yield made


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        # tc prints microseconds and six digits; all of them are read back by netlink, below.
        (Impairment(50_012_000, 10_045_000), {"delay": {"delay": 0.050012, "jitter": 0.010045}}),
        (Impairment(200 * 10**9, 2 * 10**9), {"delay": {"delay": 200, "jitter": 2}}),
        (ms(5, loss=0.01), {"loss-random": {"loss": 0.01}}),
        (ms(5, corrupt=0.02), {"corrupt": {"corrupt": 0.02}}),
        (ms(5, duplicate=0.03), {"duplicate": {"duplicate": 0.03}}),
        (
            ms(5, bursts=GilbertElliott(0.01, 0.3, 0.2, 0.999)),
            {"loss-gemodel": {"p": 0.01, "r": 0.3, "1-h": 0.8, "1-k": 0.001}},
        ),
        (ms(5, overtake=0.25), {"reorder": {"reorder": 0.25}}),
        (ms(50, rate_bps=8_000), {"rate": {"rate": 1_000}}),
        (ms(50, rate_bps=40_000_000_000), {"rate": {"rate": 5_000_000_000}}),
    ],
)
def test_tc_shows_what_was_asked_for_and_nothing_of_what_was_before(
    lab: Lab, asked: Impairment, said: dict[str, dict[str, float]]
) -> None:
    lab.change({wan("dc1", "dc2"): asked})
    options = shown(lab)
    for kind, values in said.items():
        told = {key: options[kind][key] for key in values}
        assert told == pytest.approx(values, abs=1.1e-6)
    kinds = {"loss-random", "loss-gemodel", "duplicate", "corrupt", "reorder"}
    assert kinds & set(options) == kinds & set(said)
    assert options["limit"] == queue_limit(asked)
