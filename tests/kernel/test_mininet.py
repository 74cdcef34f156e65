"""Topologies in Mininet have the round trips that wanlat asks for: measured with real pings."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
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

# Every pair has a round trip of its own, the two ways of some differ, and LANs add up.
DISTINCT = """
name: distinct
sites:
  - {name: a, nodes: [n1, r1], lan: {rtt: 4ms}}
  - {name: b, nodes: [a-host-with-a-name-of-many-chars]}
  - {name: c, nodes: [n4]}
links:
  pairs:
    - {between: [a, b], rtt: 30ms}
    - {from: a, to: c, delay: 40ms}
    - {from: c, to: a, delay: 10ms}
    - {between: [b, c], rtt: 80ms}
"""

BARE = """
name: bare
sites:
  - {name: a, nodes: [n1]}
  - {name: b, nodes: [n2]}
links:
  default: {rtt: 0ms}
"""

SHAPED = """
name: shaped
sites:
  - {name: a, nodes: [n1]}
  - {name: b, nodes: [n2]}
links:
  pairs:
    - {from: a, to: b, delay: 20ms, jitter: 4ms, distribution: normal, duplicate: 50%}
    - {from: b, to: a, delay: 10ms, rate: 8mbit}
"""


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
        ["mn", "--custom", str(CUSTOM), "--topo", f"wanlat,{topology}"]
        + ["--test", f"wanlat,{count}"],
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


@pytest.fixture(scope="module")
def bare_ms(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What this kernel's path itself costs, in Mininet, without any delay."""
    file = tmp_path_factory.mktemp("bare") / "bare.yaml"
    file.write_text(BARE)
    lines, _ = measured(str(file), count=20)
    return lines["n1", "n2"].mean_ms


def every_pair(plan: Plan) -> set[tuple[str, str]]:
    return {(a.name, b.name) for a in plan.nodes for b in plan.nodes if a != b}


@needs_mininet
def test_every_pair_has_its_round_trip_from_the_first_packet_on(
    tmp_path: Path, bare_ms: float
) -> None:
    file = tmp_path / "distinct.yaml"
    file.write_text(DISTINCT)
    plan = resolve(load(file))
    lines, _ = measured(str(file), count=10)
    assert set(lines) == every_pair(plan)
    for (a, b), line in lines.items():
        requested = plan.rtt_ms(a, b)
        assert line.requested_ms == pytest.approx(requested, abs=0.001)
        assert line.lost == 0
        # No packet is early; the quickest of ten is late by the path's own time and the timers'.
        assert requested - 0.1 < line.min_ms < requested + bare_ms + 1.5, (a, b, line)
        # An ARP exchange would cost the first one a round trip of the LAN at least.
        assert line.first_ms < requested + bare_ms + 3.5, (a, b, line)


@needs_mininet
def test_a_shipped_topology_by_name_has_its_delays_and_jitter(bare_ms: float) -> None:
    plan = resolve(load("three-datacenters"))
    lines, _ = measured("three-datacenters", count=8)
    assert set(lines) == every_pair(plan)
    errors = []
    for (a, b), line in lines.items():
        requested, jitter = plan.rtt_ms(a, b), plan.jitter_ms(a, b)
        assert line.lost == 0
        assert line.min_ms > requested - jitter - 0.1, (a, b, line)
        assert line.mean_ms < requested + jitter + bare_ms + 1.5, (a, b, line)
        if jitter:
            errors.append(line.mean_ms - requested)
    # 24 pairs of 8 pings, each ± 8.2 ms (triangular on ± 20): the mean is within ± 2.4 at 4 sigma.
    assert abs(sum(errors) / len(errors) - bare_ms) < 2.4 + 1.5


@needs_mininet
def test_distributions_duplicates_and_rates_are_set(tmp_path: Path, bare_ms: float) -> None:
    file = tmp_path / "shaped.yaml"
    file.write_text(SHAPED)
    lines, said = measured(str(file), count=60)
    line = lines["n1", "n2"]
    assert line.lost == 0
    # Normal with 4 ms: of 60, some lie beyond what a uniform ± 4 could give, none beyond 4 sigma.
    assert line.max_ms - 30 - bare_ms > 4
    assert line.max_ms - 30 - bare_ms < 16 + 3
    assert line.mean_ms == pytest.approx(30 + bare_ms, abs=4 * 4 / 60**0.5 + 1)
    assert "single" in said  # what a user has to know is told


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
