"""One Mininet network, timed. Run by the system's Python, which has Mininet; prints JSON.

    mininet_network.py NODES SWITCHES

Hosts hang off Linux bridges, as many as the lab beside it has sites; the bridges stand in a row,
since Mininet's bridges run no spanning tree and would let frames circle in a mesh. Nothing is
impaired and there is no controller. To be run in namespaces of its own.
"""

import json
import sys
import time

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo


class Row(Topo):
    """Hosts spread evenly over bridges in a row."""

    def build(self, nodes, switches):  # noqa: D102 - Mininet's name
        bridges = [self.addSwitch(f"s{index + 1}") for index in range(switches)]
        for left, right in zip(bridges, bridges[1:]):  # noqa: B905, RUF007
            self.addLink(left, right)
        for index in range(nodes):
            self.addLink(self.addHost(f"h{index + 1}"), bridges[index * switches // nodes])


def main():
    """Build, check, take down; print what it took."""
    nodes, switches = int(sys.argv[1]), int(sys.argv[2])
    setLogLevel("error")
    Mininet.inited = True  # else it raises limits of the whole machine
    topology = Row(nodes=nodes, switches=switches)
    start = time.monotonic()
    network = Mininet(topology, switch=LinuxBridge, controller=None, build=False)
    network.build()
    network.start()
    up_s = time.monotonic() - start
    first, last = network.hosts[0], network.hosts[-1]
    answered = "1 received" in first.cmd("ping", "-c1", "-W5", last.IP())
    start = time.monotonic()
    network.stop()
    down_s = time.monotonic() - start
    print(json.dumps({"up_s": up_s, "down_s": down_s, "works": answered}))


main()
