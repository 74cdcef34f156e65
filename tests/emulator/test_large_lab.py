"""A lab of 24 nodes is a lab like any other."""

from __future__ import annotations

import socket
import time

from tests.emulator.plans import mesh
from wanlat.emulator.lab import Lab
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve
from wanlat.topologies.scale import with_nodes


def listening(lab: Lab, node: str) -> socket.socket:
    server = lab.socket(node, socket.AF_INET, socket.SOCK_STREAM)
    server.bind((lab.plan.node(node).address, 0))
    server.listen()
    server.settimeout(10)
    return server


def test_each_of_24_nodes_reaches_others() -> None:
    with Lab(mesh(3, 8)) as lab:
        names = [node.name for node in lab.nodes]
        assert len(set(names)) == 24
        for name, other in zip(names, [*names[9:], *names[:9]], strict=True):
            with listening(lab, other) as server, lab.connect(name, server.getsockname()) as client:
                accepted, address = server.accept()
                accepted.close()
                assert address[0] == lab.plan.node(name).address == client.getsockname()[0]


def test_nodes_that_are_added_are_as_far_away_as_the_others_of_their_site() -> None:
    plan = resolve(with_nodes(load("three-datacenters"), 24))
    first, last = plan.nodes[0].name, plan.nodes[-1].name
    with Lab(plan) as lab, listening(lab, last) as server:
        began_s = time.monotonic()
        lab.connect(first, server.getsockname()).close()
        took_ms = (time.monotonic() - began_s) * 1000
    assert plan.node(last).site == "dc3"
    assert plan.rtt_ms(first, last) == 100.5
    assert took_ms > 80.0
