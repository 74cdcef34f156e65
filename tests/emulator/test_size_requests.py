"""Requests written byte for byte say what they are meant to, and a refusal names its request."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.emulator.plans import mesh
from wanlat.emulator import rtnetlink
from wanlat.emulator.addressing import End
from wanlat.emulator.lab import Lab
from wanlat.emulator.rtnetlink import Request

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def decoded(kind: str, request: Request) -> Any:
    """Return what pyroute2 reads in a request, with its message of that name."""
    header = rtnetlink._HEADER.pack(16 + len(request.body), request.kind, request.flags, 1, 0)
    module = import_module(f"pyroute2.netlink.rtnl.{kind}")
    message = getattr(module, kind)(header + request.body)
    message.decode()
    return message


def test_a_pair_has_both_its_ends_where_they_belong() -> None:
    near = End("n1", "eth0", 2, "02:01:00:00:00:05")
    far = End("site.dc1", "n5", 7, "02:02:00:00:00:05")
    link = decoded("ifinfmsg", rtnetlink.veth(near, far, 9))
    assert (link["index"], link["flags"] & 1, link["change"]) == (2, 1, 1)
    assert link.get_attr("IFLA_IFNAME") == "eth0"
    assert link.get_attr("IFLA_ADDRESS") == "02:01:00:00:00:05"
    assert link.get_attr("IFLA_NET_NS_FD") is None
    assert link.get_attr("IFLA_NUM_TX_QUEUES") == link.get_attr("IFLA_NUM_RX_QUEUES") == 1
    info = link.get_attr("IFLA_LINKINFO")
    assert info.get_attr("IFLA_INFO_KIND") == "veth"
    peer = info.get_attr("IFLA_INFO_DATA").get_attr("VETH_INFO_PEER")
    assert (peer["index"], peer["flags"]) == (7, 0)
    assert peer.get_attr("IFLA_IFNAME") == "n5"
    assert peer.get_attr("IFLA_ADDRESS") == "02:02:00:00:00:05"
    assert peer.get_attr("IFLA_NET_NS_FD") == 9


_SEND = """
import socket
from wanlat.emulator import rtnetlink
calls = []
class Counting(socket.socket):
    def send(self, data):
        calls.append(len(data))
        return super().send(data)
many = [rtnetlink.address(1, "lo", f"10.99.{i // 200}.{i % 200 + 1}") for i in range(1000)]
with rtnetlink.Socket(Counting(socket.AF_NETLINK, socket.SOCK_RAW)) as netlink:
    netlink.send(many)
    print(len(calls))
    for wrong in (
        [rtnetlink.address(1, "lo", "10.98.0.1"), rtnetlink.address(77, "eth7", "10.98.0.2"),
         rtnetlink.address(78, "eth8", "10.98.0.3")],
        many[:1],
        [rtnetlink.route(2, "eth0", "10.97.0.0/16", "0.0.0.0")],
        many,
    ):
        try:
            netlink.send(wrong)
        except rtnetlink.Refusal as refusal:
            print(refusal)
    print(netlink.traffic(1).tx_packets, netlink.are_operating([2]))
"""


_SEND_ONE = "import socket; socket.socket(2, 2).sendto(b'one', ('127.0.0.1', 9))"
"""A packet on the loopback interface, with nothing but Python."""


def test_a_thousand_requests_take_few_calls_and_a_refusal_names_the_one_refused() -> None:
    with Lab(mesh(1, 1), backend="wire") as lab:
        assert lab.run("n1", [sys.executable, "-c", _SEND_ONE]).returncode == 0
        done = lab.run("n1", [sys.executable, "-c", _SEND], env={"PYTHONPATH": str(CHECKOUT)})
        addresses = lab.run("n1", ["ip", "-br", "addr", "show", "lo"]).stdout
    assert done.stderr == ""
    calls, unknown, twice, *_, many, counted = done.stdout.splitlines()
    assert int(calls) <= 40
    assert unknown.startswith("give the interface eth7 the address 10.98.0.2:")
    assert "ENODEV" in unknown
    assert twice.startswith("give the interface lo the address 10.99.0.1:")
    assert "EEXIST" in twice
    assert many.startswith("give the interface lo the address 10.99.0.1:")  # the first of many
    assert addresses.count("10.99.") == 1000
    assert "10.98.0.1/32" in addresses
    assert counted == "2 True"  # the echo and its answer
