"""A topology of Mininet's becomes the network that Mininet would build, as far as there is one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import here
from tests.needs import needs
from wanlat.topologies import mininet_import
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.imported import Imported
from wanlat.topologies.load import load, shipped
from wanlat.topologies.mininet_import import import_mininet
from wanlat.topologies.resolve import Impairment, resolve

EXPORTED = Path(__file__).parents[2] / "topologies" / "export" / "mininet.py"
MS = 10**6


def with_mininet(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.programs(pytest.mark.usefixtures("mininet")(test))


@pytest.fixture
def mininet() -> None:
    needs("mininet")


# Two hosts on s1, one behind a slow line; s2 in the middle; s3; and s0 without hosts aside.
NETWORK = """
from mininet.link import TCLink
from mininet.topo import Topo

class Net(Topo):
    def build(self, k=1):
        s0, s1, s2, s3 = (self.addSwitch(f"s{i}") for i in range(4))
        for i in range(1, 5):
            self.addHost(f"h{i}")
        self.addLink("h1", s1)
        self.addLink("h2", s1, cls=TCLink, delay="2ms", bw=10)
        self.addLink(s2, "h3", cls=TCLink, params1={"delay": "3ms"}, params2={"delay": 500})
        self.addLink("h4", s3)
        self.addLink(s1, s2, cls=TCLink, delay=f"{10 * k}ms", jitter="3ms", loss=10, bw=100)
        self.addLink(s2, s3, cls=TCLink, delay="30ms", jitter="4ms", loss=20, bw=50, use_hfsc=True)
        self.addLink(s1, s0, cls=TCLink, delay="1ms")  # as many links, and quicker
        self.addLink(s0, s3, cls=TCLink, delay="{s0_s3}")
"""


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(source: str, what: str = "net.py:Net") -> Imported:
    """Import a file of Mininet's, and make sure that the text loads to the same topology."""
    Path("net.py").write_text(source)
    imported = import_mininet(what)
    Path("made.yaml").write_text(imported.text, encoding="utf-8")
    assert load("made.yaml") == imported.topology
    return imported


@with_mininet
def test_hosts_become_nodes_and_switches_sites_and_paths_links() -> None:
    imported = made(NETWORK.replace("{s0_s3}", "99ms"))
    plan = resolve(imported.topology)
    sites = {site.name: [node.name for node in site.nodes] for site in plan.sites}
    assert sites == {"s1": ["h1"], "s1-2": ["h2"], "s2": ["h3"], "s3": ["h4"]}
    # Mininet's delay is of each direction: a round trip meets it twice.
    assert plan.rtt_ms("h1", "h3") == 2 * 10 + 3 + 0.5
    assert plan.rtt_ms("h2", "h4") == 2 * (2 + 10 + 30)
    assert plan.path("h2", "h3") == (
        Impairment(delay_ns=2 * MS, rate_bps=10**7),
        Impairment(delay_ns=10 * MS, jitter_ns=3 * MS, loss=0.1, rate_bps=10**8),
        Impairment(delay_ns=3 * MS),
    )
    assert plan.path("h3", "h1")[0] == Impairment(delay_ns=MS // 2)  # a bare number is of µs
    _, far, _ = plan.path("h4", "h1")
    # Two links one after the other: delays add up, jitters by squares, and the slower rate counts.
    assert (far.delay_ns, far.jitter_ns, far.rate_bps) == (40 * MS, 5 * MS, 5 * 10**7)
    assert far.loss == pytest.approx(1 - 0.9 * 0.8)
    for word in ("use_hfsc", "overtake", "shared"):
        assert any(word in note for note in imported.notes)


@with_mininet
def test_of_paths_of_as_many_links_the_quickest_counts_and_arguments_are_mininets() -> None:
    source = NETWORK.replace("{s0_s3}", "5ms") + "\ntopos = {'net': Net, 'plain': lambda: Net(k=3)}"
    assert resolve(made(source).topology).rtt_ms("h1", "h4") == 2 * 6
    assert resolve(made(source, "net.py:net,2").topology).rtt_ms("h1", "h3") == 2 * 20 + 3.5
    assert resolve(made(source, "net.py:plain").topology).rtt_ms("h1", "h3") == 2 * 30 + 3.5


@with_mininet
def test_what_was_exported_comes_back_as_it_was() -> None:
    for name in shipped():
        here("topology", "export", name, "--to", "mininet", "--out", "plan.json", "--force")
        assert import_mininet(f"{EXPORTED}:wanlat,plan.json").topology == load(name)


HOST = "from mininet.topo import Topo\nclass Net(Topo):\n    def build(self):\n        "


@with_mininet
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("Net = 1", "has no topology `Net`; it has none: no class of Topo"),
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere"),
        (HOST + "self.addHost('h1')", "host h1 has no link; a node hangs on one switch"),
        (HOST + "self.addLink(self.addHost('h1'), self.addHost('h2'))", "host h1 is linked to h2"),
        (
            HOST + "self.addLink(self.addHost('h1'), self.addSwitch('s1'), delay='soon')",
            "`soon` is no time that tc takes",
        ),
        (
            HOST + "[self.addLink(self.addHost(f'h{i}'), self.addSwitch(f's{i}')) for i in (1, 2)]",
            "no links lead from switch s1 to switch s2",
        ),
    ],
)
def test_what_has_no_counterpart_is_an_error(source: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        made(source)
    assert says in str(caught.value)


# What issue trackers and courses show: scripts that add to a Mininet, and start it.

IMPERATIVE = """
from mininet.link import TCLink
from mininet.net import Mininet


def network():
    net = Mininet(link=TCLink, build=False)
    left, right = net.addSwitch("s1"), net.addSwitch("s2")
    net.addLink(net.addHost("h1"), left, delay="1ms")
    net.addLink(net.addHost("h2"), right, delay="1ms")
    net.addLink(left, right, delay="30ms", bw=50)
    return net


if __name__ == "__main__":
    network().start()
"""
EDITOR = """
import os
from mininet.cli import CLI
from mininet.clean import cleanup
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Controller, OVSKernelSwitch

cleanup()
net = Mininet(topo=None, build=False, ipBase="10.0.0.0/8")
c0 = net.addController(name="c0", controller=Controller, protocol="tcp", port=6633)
s1, s2 = (net.addSwitch(name, cls=OVSKernelSwitch) for name in ("s1", "s2"))
h1, h2 = (net.addHost(f"h{i}", ip=f"10.0.0.{i}", defaultRoute=None) for i in (1, 2))
slow = {"delay": "32ms", "bw": 50, "loss": 1}
net.addLink(h1, s1)
net.addLink("h2", "s2", delay="9ms")
net.addLink(s1, s2, cls=TCLink, **slow)
net.build()
h1.cmd("ip route add default dev h1-eth0")
for controller in net.controllers:
    controller.start()
net.get("s1").start([c0])
open("started", "w")
CLI(net)
net.stop()
"""


@with_mininet
def test_a_script_that_adds_links_is_read_and_nothing_is_started() -> None:
    imported = made(IMPERATIVE, "net.py")
    plan = resolve(imported.topology)
    assert plan.rtt_ms("h1", "h2") == 64
    assert {step.rate_bps for step in plan.path("h1", "h2")} == {None, 50_000_000}
    assert made(IMPERATIVE, "net.py:network").topology.sites == imported.topology.sites


@with_mininet
def test_a_script_of_the_editors_is_read_up_to_where_it_starts() -> None:
    imported = made(EDITOR, "net.py")
    plan = resolve(imported.topology)
    assert plan.rtt_ms("h1", "h2") == 64
    assert plan.path("h1", "h2")[1].loss == pytest.approx(0.01)
    assert not Path("started").exists()
    assert any("no TCLink" in note and "h2-s2" in note for note in imported.notes)
    assert any("ip route add" in note for note in imported.notes)


@with_mininet
def test_a_class_of_mininets_library_that_a_script_imports_is_not_its_network() -> None:
    source = """
from mininet.net import Mininet
from mininet.topo import LinearTopo

def network():
    return Mininet(topo=LinearTopo(4))
"""
    assert len(made(source, "net.py").topology.sites) == 4
    assert len(made(source, "net.py:LinearTopo,3").topology.sites) == 3


@with_mininet
def test_a_function_takes_the_arguments_that_follow_its_name() -> None:
    source = IMPERATIVE.replace("def network()", "def network(ms)").replace('"30ms"', 'f"{ms}ms"')
    source = source.partition("if __name__")[0]
    assert resolve(made(source, "net.py:network,10").topology).rtt_ms("h1", "h2") == 24
    with pytest.raises(UserError, match="no function without arguments that builds a Mininet"):
        made(source, "net.py")


@with_mininet
@pytest.mark.parametrize(
    ("source", "says"),
    [
        (IMPERATIVE + "\ndef other():\n    return Mininet()\n", "it has network and other"),
        (IMPERATIVE.replace("return net", "Mininet()"), "makes 2 networks"),
        ("from mininet.net import Mininet\ndef empty():\n    return Mininet()", "adds no hosts"),
        ("from mininet.node import Node\nNode('r')", "starts the node"),
        (IMPERATIVE.replace("return net", "net.addNAT()"), "addNAT"),
    ],
)
def test_a_script_that_cannot_be_read_is_an_error_that_says_why(source: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        made(source, "net.py")
    assert says in str(caught.value)


def test_without_mininet_there_is_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mininet_import, "is_installed", lambda: False)
    monkeypatch.delitem(sys.modules, "mininet", raising=False)
    Path("net.py").write_text(HOST + "pass")
    with pytest.raises(MachineError, match="apt-get install mininet"):
        import_mininet("net.py:Net")
