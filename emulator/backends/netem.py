"""The ``netem`` backend: the kernel's sch_netem, through pyroute2.

A WAN link is a cable between two routers with a netem queueing discipline on each router's
interface. A LAN link that is impaired is spliced through a bridge in the core namespace, with
netem on both of its ports: the node's own interface stays free of it.
"""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from emulator import addressing
from emulator.backends import Counters, netem_options
from emulator.links import Direction, Link
from emulator.namespaces import CORE
from emulator.network import Interface, Network
from topologies.errors import MachineError
from topologies.resolve import Impairment

_HANDLE = 0x10000
_NO_NETEM = (
    "This kernel has no netem (sch_netem): the module is neither loaded nor to be found. "
    "Distributions put it into a package of its own (Fedora and RHEL: kernel-modules-extra; "
    "Debian and Ubuntu have it in linux-modules); WSL2 and minimal virtual machines often lack "
    "it. Use the other backend, which needs no kernel module: --backend wire"
)


def available() -> bool:
    """Tell whether the kernel has sch_netem, by putting one on this namespace's loopback.

    Must be called where the loopback is ours: in the core namespace of a sandbox.
    """
    netem_options.register()
    with IPRoute() as netlink:
        try:
            netlink.tc("add", "netem", index=1, handle=_HANDLE, impairment=Impairment())
        except NetlinkError as error:
            if error.code in (errno.ENOENT, errno.EOPNOTSUPP):
                return False
            raise
        netlink.tc("del", index=1, handle=_HANDLE, root=True)
    return True


def unsupported(impairment: Impairment) -> str | None:
    """Say what of an impairment this backend does not apply; None when it applies all of it."""
    if impairment.distribution != "uniform":
        return f"jitter of the distribution {impairment.distribution}"
    if impairment.correlation:
        return "correlated jitter"
    if impairment.bursts:
        return "loss in bursts"
    if impairment.duplicate or impairment.corrupt or impairment.overtake:
        return "duplication, corruption, overtaking"
    return None


@dataclass(frozen=True)
class _Port:
    """The interface whose egress is one direction of a link."""

    interface: Interface
    index: int


class NetemBackend:
    """One netem queueing discipline a direction."""

    name = "netem"

    def __init__(self) -> None:
        self._network: Network | None = None
        self._ports: dict[Direction, _Port] = {}
        self._asked: dict[Direction, Impairment] = {}

    def start(self, network: Network) -> None:
        """Put netem on every impaired link. Raises MachineError without sch_netem."""
        if not available():
            raise MachineError(_NO_NETEM)
        self._network = network
        for link in network.links:
            if link.kind == "lan" and not network.is_spliced(link):
                continue
            if network.is_spliced(link):
                self._bridge(link)
            for direction, interface in zip(link.directions, self._egress(link), strict=True):
                self._ports[direction] = _Port(interface, self._index(interface))
        for link in network.links:
            ab, ba = link.directions
            if ab in self._ports:
                self._apply("add", ab, link.ab)
                self._apply("add", ba, link.ba)

    def change(self, changes: dict[Direction, Impairment]) -> int:
        """Change parameters in place; packets already queued keep their due time."""
        for direction, impairment in changes.items():
            if direction not in self._ports:
                raise MachineError(
                    f"The link {direction} is a plain cable in this lab and cannot be impaired "
                    'while it runs: make the lab with Lab(..., splice="all").'
                )
            self._apply("change", direction, impairment)
        return time.monotonic_ns()

    def counters(self) -> dict[Direction, Counters]:
        """Return the queueing disciplines' own counters.

        netem counts requested losses and overflows of its queue as one figure, so drops on a
        direction on which neither loss nor a rate was asked for are overflows.
        """
        return {direction: self._read(direction, port) for direction, port in self._ports.items()}

    def _egress(self, link: Link) -> tuple[Interface, Interface]:
        assert self._network is not None
        if self._network.is_spliced(link):
            a, b = addressing.splice_interfaces(link.kind, link.index)
            return Interface(CORE, b), Interface(CORE, a)
        a_end, b_end = self._network.ends(link)
        return (
            Interface(a_end.namespace, a_end.name),
            Interface(b_end.namespace, b_end.name),
        )

    def _bridge(self, link: Link) -> None:
        assert self._network is not None
        name = f"b{link.kind[0]}{link.index}"
        with self._network.namespaces.netlink(CORE) as netlink:
            # No spanning tree, no multicast snooping: a bridge of two ports is a wire.
            netlink.link("add", ifname=name, kind="bridge", br_mcast_snooping=0)
            bridge = netlink.link_lookup(ifname=name)[0]
            netlink.link("set", index=bridge, state="up")
            for port in addressing.splice_interfaces(link.kind, link.index):
                netlink.link("set", index=netlink.link_lookup(ifname=port)[0], master=bridge)

    def _index(self, interface: Interface) -> int:
        assert self._network is not None
        with self._network.namespaces.netlink(interface.namespace) as netlink:
            index: int = netlink.link_lookup(ifname=interface.name)[0]
            return index

    def _apply(self, command: str, direction: Direction, impairment: Impairment) -> None:
        assert self._network is not None
        port = self._ports[direction]
        with self._network.namespaces.netlink(port.interface.namespace) as netlink:
            netlink.tc(command, "netem", index=port.index, handle=_HANDLE, impairment=impairment)
        self._asked[direction] = impairment

    def _read(self, direction: Direction, port: _Port) -> Counters:
        assert self._network is not None
        with self._network.namespaces.netlink(port.interface.namespace) as netlink:
            for message in netlink.get_qdiscs(index=port.index):
                if message.get_attr("TCA_KIND") == "netem":
                    return self._counters(direction, message)
        raise MachineError(f"The netem of {direction} has vanished from {port.interface.name}.")

    def _counters(self, direction: Direction, message: Any) -> Counters:
        statistics = message.get_attr("TCA_STATS")
        drops = statistics["drop"]
        asked: Impairment = self._asked[direction]
        lossy, limited = asked.loss > 0, asked.rate_bps is not None
        return Counters(
            packets=statistics["packets"],
            bytes=statistics["bytes"],
            lost=drops if lossy else 0,
            queue_drops=drops if limited and not lossy else 0,
            overflows=0 if lossy or limited else drops,
        )
