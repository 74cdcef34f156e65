"""Topologies in Mininet have the round trips that wanlat asks for: measured with real pings."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from topologies.load import load
from topologies.resolve import Plan, resolve

ROOT = Path(__file__).parents[2]
CUSTOM = ROOT / "topologies" / "export" / "mininet.py"

needs_mininet = pytest.mark.skipif(
    shutil.which("mn") is None,
    reason="Mininet is not installed (Debian, Ubuntu: apt-get install mininet)",
)

# Every pair has a round trip of its own; directions differ; LANs add up; between n5 and n6 lies
# nothing, so that they show what the path itself takes.
DISTINCT = """
name: distinct
sites:
  - {name: a, nodes: [n1, r1], lan: {rtt: 40ms}}
  - {name: b, nodes: [a-host-with-a-name-of-many-chars]}
  - {name: c, nodes: [n5]}
  - {name: d, nodes: [n6]}
links:
  pairs:
    - {between: [a, b], rtt: 30ms}
    - {from: a, to: c, delay: 40ms}
    - {from: c, to: a, delay: 10ms}
    - {between: [b, c], rtt: 90ms}
    - {between: [c, d], rtt: 0ms}
    - {between: [a, d], rtt: 70ms}
    - {from: b, to: d, delay: 60ms, jitter: 10ms, distribution: normal, duplicate: 50%}
    - {from: d, to: b, delay: 60ms, rate: 8mbit}
"""

# User-Mode Linux shares the machine's processors: what it has to do may be late by this much. An
# ARP exchange would make the first packet of a pair later than that: by 20 ms over the LAN, by 30
# and more over a WAN link.
LATE_MS = 15.0
LEAST_LATE_MS = 2.0  # the quickest of ten packets


@dataclass(frozen=True)
class Line:
    requested_ms: float
    first_ms: float
    min_ms: float
    mean_ms: float
    max_ms: float
    lost: int


def measured(topology: str, *, count: int) -> tuple[dict[tuple[str, str], Line], str]:
    """Build a topology in Mininet, ping between all its nodes; also what was said."""
    done = subprocess.run(
        [
            *("mn", "--custom", str(CUSTOM), "--topo", f"wanlat,{topology}"),
            *("--test", f"wanlat,{count}"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    number = r"([\d.]+|nan)"
    pattern = (
        rf"^rtt (\S+) (\S+) requested {number} first {number}"
        rf" min {number} mean {number} max {number} lost (\d+)$"
    )
    lines = {
        (a, b): Line(*map(float, figures), lost=int(lost))
        for a, b, *figures, lost in re.findall(pattern, done.stdout, flags=re.MULTILINE)
    }
    return lines, done.stderr


def every_pair(plan: Plan) -> set[tuple[str, str]]:
    return {(a.name, b.name) for a in plan.nodes for b in plan.nodes if a != b}


def out_of_place(plan: Plan, lines: dict[tuple[str, str], Line]) -> list[str]:
    """The pairs whose pings are early, late or lost."""
    bare_ms = lines["n5", "n6"].min_ms
    wrong = []
    for (a, b), line in lines.items():
        low, high = plan.range_ms(a, b)
        in_place = (
            line.lost == 0
            and line.requested_ms == pytest.approx(plan.rtt_ms(a, b), abs=0.001)
            and line.min_ms > low - 0.1  # no packet is early: 64 ns a tick, and ping's rounding
            and line.min_ms < high + bare_ms + LEAST_LATE_MS
            and line.first_ms < high + bare_ms + LATE_MS
        )
        if not in_place:
            wrong.append(f"{a}-{b}: {low}..{high} and {bare_ms} bare, {line}")
    return wrong


def better(one: Line, other: Line | None) -> Line:
    """Of two networks' figures for a pair, those that the machine spoiled less."""
    if other is None:
        return one
    return replace(
        one,
        first_ms=min(one.first_ms, other.first_ms),
        # The earliest of all: it shows a packet that came early.
        min_ms=min(one.min_ms, other.min_ms),
        lost=min(one.lost, other.lost),
    )


@needs_mininet
def test_every_pair_has_its_round_trip_from_the_first_packet_on(tmp_path: Path) -> None:
    file = tmp_path / "distinct.yaml"
    file.write_text(DISTINCT)
    plan = resolve(load(file))
    best: dict[tuple[str, str], Line] = {}
    for _attempt in (1, 2, 3):  # a busy machine spoils a measurement, a defect spoils all of them
        lines, said = measured(str(file), count=10)
        assert set(lines) == every_pair(plan)
        best = {pair: better(line, best.get(pair)) for pair, line in lines.items()}
        wrong = out_of_place(plan, best)
        if not wrong:
            break
    assert not wrong, "\n".join(wrong)
    jittered = lines["a-host-with-a-name-of-many-chars", "n6"]
    assert jittered.max_ms - jittered.min_ms > 5  # ten draws of a standard deviation of 10 ms
    assert "single" in said  # what a user has to know is told


@needs_mininet
def test_a_shipped_topology_by_name_has_its_delays_and_jitter() -> None:
    plan = resolve(load("three-datacenters"))
    for _attempt in (1, 2, 3):
        lines, _ = measured("three-datacenters", count=5)
        assert set(lines) == every_pair(plan)
        low = min(line.min_ms - plan.range_ms(*pair)[0] for pair, line in lines.items())
        far = [line.mean_ms - plan.rtt_ms(*pair) for pair, line in lines.items() if is_far(line)]
        if statistics.median(far) < 5:
            break
    assert low > -0.1  # no packet is early
    assert len(far) == 24
    # Each mean of five is ± 3.7 ms (a round trip is triangular on ± 20), their median ± 0.9.
    assert statistics.median(far) == pytest.approx(1.5, abs=1.5 + 3.5)


def is_far(line: Line) -> bool:
    return line.requested_ms > 50


@needs_mininet
def test_a_users_mistake_ends_mininet_without_its_clean_up() -> None:
    done = subprocess.run(
        ["mn", "--custom", str(CUSTOM), "--topo", "wanlat,fife-sites", "--test", "none"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "five-sites" in done.stderr
    assert "Traceback" not in done.stderr and "Cleaning up" not in done.stderr
