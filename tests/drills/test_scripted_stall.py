"""The instrument knows how long a stall lasted, because the test stopped the store for so long."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from analysis.drill.model import Drill
from analysis.drill.read import read_drill
from experiments.drill.runner import prepare, run

pytestmark = pytest.mark.drills

STALL_S = 3.0
WITHIN_S = 0.1
ROUNDS = 4
"""A machine that is busy keeps clients waiting by itself, injects late, or is not let through by
the calibration. Then a round tells nothing, and the next may."""

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
vantages:
  stopped: {at: n2}
  elsewhere: {at: n1}
every: 50ms
deadline: 10s
objects: 20
phases: {before: 3s, during: 5s, after: 3s}
faults:
  - {stop: n2, at: 1s, for: 3s}
"""


def test_a_stop_of_three_seconds_is_an_outage_and_a_recovery_of_three_seconds(
    tmp_path: Path,
) -> None:
    (tmp_path / "near.yaml").write_text(NEAR)
    (tmp_path / "stall.yaml").write_text(SCRIPT)
    told = []
    for number in range(ROUNDS):
        prepared = prepare(
            str(tmp_path / "stall.yaml"),
            system="quorum",
            seed=number,
            directory=tmp_path / f"round-{number}",
        )
        outcome = run(prepared)
        drill = read_drill(outcome.directory)
        told.append(in_one_line(drill))
        if outcome.status == "complete" and is_right(drill):
            is_told_of_whom_it_hit(drill)
            return
    pytest.fail("\n".join(told))


def is_right(drill: Drill) -> bool:
    """Whether it is 3.0 s ± 0.1 s, by the drill's own instants and by the script's."""
    (stop,) = drill.faults
    if stop.end_s is None or drill.recovery_s is None:
        return False
    really_s = stop.end_s - stop.begin_s
    figures_s = (drill.longest_outage_s, drill.recovery_s)
    return all(
        abs(figure_s - length_s) <= WITHIN_S
        for figure_s, length_s in itertools.product(figures_s, (STALL_S, really_s))
    )


def is_told_of_whom_it_hit(drill: Drill) -> None:
    """The clients that asked the stopped node were out; the others' majority was there."""
    by_name = {client.name: client for client in drill.clients}
    for name in ("stopped/read", "stopped/write"):
        client = by_name[name]
        assert client.recovered
        assert client.longest_outage_s == pytest.approx(STALL_S, abs=2 * WITHIN_S)
        slow, fast = client.phases["during"].from_due, client.phases["during"].from_start
        assert slow.p50_ms is not None and fast.p50_ms is not None
        assert slow.p50_ms > 500, "most requests of `during` were due while it stood still"
        assert fast.p50_ms < 100, "and all but one were answered at once when they were sent"
    for name in ("elsewhere/read", "elsewhere/write"):
        assert by_name[name].longest_outage_s < 1.0
        assert by_name[name].phases["during"].availability == 1.0
    assert drill.durability.verdict == "pass", drill.durability.why
    assert drill.passed, drill.failures


def in_one_line(drill: Drill) -> str:
    """What one round came to."""
    window = [(fault.begin_s, fault.end_s, fault.late_ms) for fault in drill.faults]
    outages = [
        (outage.vantage, outage.operation, round(outage.begin_s, 3), round(outage.duration_s, 3))
        for outage in drill.outages
    ]
    return (
        f"{drill.status}: stopped {window}, longest outage {drill.longest_outage_s:.3f} s, "
        f"recovery {drill.recovery_s} s, outages {outages}, {drill.reason}"
    )
