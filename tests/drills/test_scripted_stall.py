"""The instrument knows how long a stall lasted, because the test stopped the store for so long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.late_network import accepting_late_packets
from wanlat.analysis.figures.drill.read import Drill, read_drill
from wanlat.experiments.drill.prepare import prepare
from wanlat.experiments.drill.runner import run

pytestmark = pytest.mark.minutes

WITHIN_S = 0.1
LATER_S = 1.0
"""Later than a store that goes on, and what waited for it, is seen to: by nearly as much as the
stop itself, were it counted twice or to the end of its phase."""

NEAR = """
name: near
sites:
  - {name: dc1, nodes: [n1]}
  - {name: dc2, nodes: [n2]}
  - {name: dc3, nodes: [n3]}
links:
  default: {rtt: 8ms}
"""
SCRIPT = """
name: scripted-stall
description: the node that is asked is stopped for three seconds
topology: near.yaml
systems: [quorum]
clients:
  stopped: {node: n2}
  elsewhere: {node: n1}
interval: 50ms
deadline: 10s
objects: 20
phases: {before: 3s, during: 5s, after: 3s}
faults:
  - {stop: n2, at: 1s, for: 3s}
"""


@pytest.fixture
def drill(tmp_path: Path) -> Drill:
    (tmp_path / "near.yaml").write_text(NEAR)
    (tmp_path / "stall.yaml").write_text(SCRIPT)
    prepared = prepare(
        str(tmp_path / "stall.yaml"), system="quorum", seed=1, directory=tmp_path / "bundle"
    )
    with accepting_late_packets("drill"):
        outcome = run(prepared)
    assert outcome.status == "complete", outcome.reason
    return read_drill(outcome.directory)


def test_a_stop_is_an_outage_and_a_recovery_as_long_as_the_stop_and_hits_who_asked_there(
    drill: Drill,
) -> None:
    by_name = {f"{whose['client']}/{kind}": figures for whose, kind, figures in drill.clients}
    (stop,) = drill["faults"]
    assert stop["end_s"] is not None and drill["recovery_s"] is not None
    really_s = stop["end_s"] - stop["begin_s"]
    # Those who asked elsewhere found a majority; whatever stood still for them was the machine.
    elsewhere = [by_name["elsewhere/read"], by_name["elsewhere/write"]]
    machine_s = max(client["longest_outage_s"] for client in elsewhere)
    assert all(client["phases"]["during"]["availability"] == 1.0 for client in elsewhere)
    for name in ("stopped/read", "stopped/write"):
        client = by_name[name]
        assert client["recovered"]
        assert really_s - WITHIN_S <= client["longest_outage_s"]
        assert client["longest_outage_s"] <= really_s + machine_s + LATER_S
        slow = client["phases"]["during"]
        assert slow["p99_ms"] > 500, "requests of `during` were due while it stood still"
        fast_ms = slow["from_start"]["p50_ms"]
        assert fast_ms < slow["p50_ms"], "and all but one were answered once they were sent"
    assert drill["longest_outage_s"] >= really_s - WITHIN_S
    assert drill["recovery_s"] >= really_s - WITHIN_S
    assert drill["durability"]["verdict"] == "pass", drill["durability"]["why"]
    assert drill["passed"], drill["failures"]
