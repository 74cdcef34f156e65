"""Topologies in Mininet have the round trips that wanlat asks for: measured with real pings."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line import ran
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Prober
from wanlat.topologies.load import load
from wanlat.topologies.mininet_import import import_mininet
from wanlat.topologies.resolve import Plan, resolve

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

# User-Mode Linux shares the machine's processors: the quickest of ten packets of a pair may be late
# by this much, and those of one pair more, if the machine stalls just then. One is hidden by that,
# but the defect of a link shows in both of its directions.
LEAST_LATE_MS = 5.0
STALLED_PAIRS = 1

# The first packet of a pair may be late by this much. An ARP exchange would make it later than
# that, by 20 ms over the LAN, by 30 and more over a WAN link: in the ten pairs of a host that asks
# for its neighbours. Others on the machine may do so in a few.
FIRST_LATE_MS = 15.0
LATE_FIRSTS = 5


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
    built = ("mn", "--custom", CUSTOM, "--topo", f"wanlat,{topology}", "--test", f"wanlat,{count}")
    done = ran(*built, cwd="/")
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


@needs_mininet
def test_every_pair_has_its_round_trip_from_the_first_packet_on(tmp_path: Path) -> None:
    file = tmp_path / "distinct.yaml"
    file.write_text(DISTINCT)
    plan = resolve(load(file))
    lines, said = measured(str(file), count=10)
    assert set(lines) == every_pair(plan)
    bare_ms = lines["n5", "n6"].min_ms
    late, first_late = [], []
    for (a, b), line in lines.items():
        low, high = plan.range_ms(a, b)
        assert line.requested_ms == pytest.approx(plan.rtt_ms(a, b), abs=0.001)
        # No packet is early: 64 ns a tick, and ping's rounding.
        assert line.min_ms > low - 0.1, (a, b, low, line)
        if line.min_ms > high + bare_ms + LEAST_LATE_MS:
            late.append((a, b, high, line))
        if line.first_ms > high + bare_ms + FIRST_LATE_MS:
            first_late.append((a, b, high, line))
    # ping waits for the last ones no longer than two round trips: a stall makes it lose those.
    assert sum(line.lost for line in lines.values()) <= 10 * STALLED_PAIRS
    assert len(late) <= STALLED_PAIRS, late
    assert len(first_late) <= LATE_FIRSTS, first_late
    jittered = lines["a-host-with-a-name-of-many-chars", "n6"]
    assert jittered.max_ms - jittered.min_ms > 5  # ten draws of a standard deviation of 10 ms
    assert "single" in said  # what a user has to know is told


# A topology of Mininet's own: a line of switches, and a host behind a slow line of its own.
NATIVE = """
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Switch
from mininet.topo import Topo


class Bridge(Switch):
    def start(self, controllers):
        self.cmd(f"ip link add br-{self} type bridge; ip link set br-{self} up")
        for name in self.intfNames()[1:]:  # without lo
            self.cmd(f"ip link set {name} up master br-{self}")


class Net(Topo):
    def build(self):
        s1, s2, s3 = (self.addSwitch(f"s{i}") for i in (1, 2, 3))
        for host, switch, options in (
            ("h1", s1, {}),
            ("h2", s2, {"delay": "20ms"}),
            ("h3", s3, {"params1": {"delay": "5ms"}, "params2": {"delay": "35ms"}}),
        ):
            self.addLink(self.addHost(host), switch, cls=TCLink, **options)
        self.addLink(s1, s2, cls=TCLink, delay="50ms", bw=100)
        self.addLink(s2, s3, cls=TCLink, delay="30ms")


if __name__ == "__main__":
    net = Mininet(topo=Net(), switch=Bridge, controller=None)
    net.start()
    for a in net.hosts:
        for b in net.hosts:
            if a is not b:
                a.cmd("ping -n -c 1 -W 5", b.IP())  # ARP
                print("PINGED", a, b, a.cmd("ping -n -c 5 -i 0.2 -W 5", b.IP()).split("= ")[-1])
    net.stop()
"""


@needs_mininet
def test_a_topology_of_mininets_has_the_same_pings_under_mininet_and_wanlat(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(NATIVE)
    done = ran("/usr/bin/python3", str(file))
    theirs = {
        (a, b): float(ms)
        for a, b, ms in re.findall(r"PINGED (\w+) (\w+) ([\d.]+)/", done.stdout + done.stderr)
    }
    plan = resolve(import_mininet(f"{file}:Net").topology)
    assert set(theirs) == every_pair(plan), done.stdout + done.stderr
    nodes = [node.name for node in plan.nodes]
    with Lab(plan, backend="netem") as lab, Prober(lab, nodes) as prober:
        echoes = prober.measure(sorted(theirs), 5, 0.2, 1)
    # No packet is early, and the quickest of five is late by a stall at most: 40 ms and more lie
    # between the pairs.
    for pair, ms in theirs.items():
        for measured_ms in (ms, min(echoes[pair].rtt_ns) / 1e6):
            late_ms = measured_ms - plan.rtt_ms(*pair)
            assert -0.1 < late_ms < 15, (pair, measured_ms, plan.rtt_ms(*pair))
