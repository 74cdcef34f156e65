"""The ``netem`` backend: the kernel's sch_netem.

A WAN link is a cable between two routers with a netem queueing discipline on each router's
interface. A LAN link that is impaired is spliced through a bridge in the core namespace, with
netem on both of its ports: the node's own interface stays free of it.
"""

from __future__ import annotations

import errno
import hashlib
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from emulator import addressing
from emulator.backends import Counters, netem_parameters, traffic_control
from emulator.backends.netem_ledger import Ledger, may_lose
from emulator.backends.netem_options import NetemOptions
from emulator.backends.traffic_control import Refused, Request, Statistics, TrafficControl
from emulator.links import Direction, Link
from emulator.namespaces import CORE
from emulator.network import Interface, Network
from topologies.errors import MachineError
from topologies.resolve import Impairment

_KIND = "netem"
_LOOPBACK = 1
_NO_NETEM = (
    "This kernel has no netem (sch_netem): the module is neither loaded nor to be found. "
    "`wanlat doctor` says why, and how to have it. The other backend needs no kernel module: "
    "--backend wire"
)

unsupported = netem_parameters.unsupported


def available() -> bool:
    """Tell whether the kernel has sch_netem, by putting one on this namespace's loopback.

    Must be called where the loopback is ours: in the core namespace of a sandbox.
    """
    return _tried(NetemOptions()) is not None


def _tried(asked: NetemOptions) -> NetemOptions | None:
    """Return what the kernel makes of parameters, None when it has no netem."""
    control = TrafficControl()
    try:
        control.send([traffic_control.add(_LOOPBACK, _KIND, asked.encode(), "loopback")])
        looked, _ = control.send(
            [
                traffic_control.look(_LOOPBACK, "loopback"),
                traffic_control.remove(_LOOPBACK, "loopback"),
            ]
        )
    except Refused as refusal:
        if refusal.errno in (errno.ENOENT, errno.EOPNOTSUPP):
            return None
        raise
    finally:
        control.close()
    assert looked is not None
    return NetemOptions.decode(traffic_control.options(looked))


@dataclass
class _Port:
    """The interface whose egress is one direction of a link, and what its netem does."""

    interface: Interface
    index: int
    asked: Impairment
    ledger: Ledger
    limit: int = 0
    table: bytes = b""  # the one that the kernel has
    changes: int = 0


@dataclass
class _Batch:
    """Requests to one namespace, and who is to hear of their answers."""

    requests: list[Request] = field(default_factory=list)
    heard: dict[int, Direction] = field(default_factory=dict)

    def look(self, direction: Direction, port: _Port) -> None:
        self.heard[len(self.requests)] = direction
        self.requests.append(traffic_control.look(port.index, str(direction)))


class NetemBackend:
    """One netem queueing discipline a direction.

    ``seed`` is of the random draws, where the kernel has such a thing (Linux 6.6). ``window_ns``
    are the instants (CLOCK_MONOTONIC) before and after the kernel took the last change.
    """

    name = "netem"

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        self._network: Network | None = None
        self._ports: dict[Direction, _Port] = {}
        self._controls: dict[str, TrafficControl] = {}
        self.window_ns = (0, 0)

    # -- start --------------------------------------------------------------------------------

    def start(self, network: Network) -> None:
        """Put netem on every impaired link. Raises MachineError without sch_netem."""
        self._network = network
        _check_kernel()
        links = [link for link in network.links if link.kind == "wan" or network.is_spliced(link)]
        self._bridge([link for link in links if network.is_spliced(link)])
        self._find_ports(links)
        requests: dict[str, list[Request]] = defaultdict(list)
        for direction, port in self._ports.items():
            sent = netem_parameters.options(port.asked)
            requests[port.interface.namespace].append(
                traffic_control.add(
                    port.index, _KIND, self._encoded(direction, port, sent), str(direction)
                )
            )
        for namespace, batch in requests.items():
            self._send(namespace, batch)

    def _bridge(self, links: list[Link]) -> None:
        if not links:
            return
        assert self._network is not None
        with self._network.namespaces.netlink(CORE) as netlink:
            ports = {name: index for index, name in socket.if_nameindex()}
            for link in links:
                name = f"b{link.kind[0]}{link.index}"
                # No spanning tree, no multicast snooping: a bridge of two ports is a wire.
                netlink.link("add", ifname=name, kind="bridge", br_mcast_snooping=0)
                bridge = socket.if_nametoindex(name)
                netlink.link("set", index=bridge, state="up")
                for port in addressing.splice_interfaces(link.kind, link.index):
                    netlink.link("set", index=ports[port], master=bridge)

    def _find_ports(self, links: Iterable[Link]) -> None:
        assert self._network is not None
        egress = {
            direction: (interface, asked)
            for link in links
            for direction, interface, asked in zip(
                link.directions, self._egress(link), (link.ab, link.ba), strict=True
            )
        }
        indices: dict[str, dict[str, int]] = {}
        for namespace in {interface.namespace for interface, _ in egress.values()}:
            with self._network.namespaces.entered(namespace):
                self._controls[namespace] = TrafficControl()
                indices[namespace] = {name: index for index, name in socket.if_nameindex()}
        for direction, (interface, asked) in egress.items():
            index = indices[interface.namespace][interface.name]
            self._ports[direction] = _Port(interface, index, asked, Ledger(asked))

    def _egress(self, link: Link) -> tuple[Interface, Interface]:
        assert self._network is not None
        if self._network.is_spliced(link):
            a, b = addressing.splice_interfaces(link.kind, link.index)
            return Interface(CORE, b), Interface(CORE, a)
        a_end, b_end = self._network.ends(link)
        return Interface(a_end.namespace, a_end.name), Interface(b_end.namespace, b_end.name)

    # -- changes ------------------------------------------------------------------------------

    def change(self, changes: Mapping[Direction, Impairment]) -> int:
        """Change parameters in place; packets already queued keep their due time.

        Returns the instant at which the kernel had taken all of them. Those of one namespace go
        in one call.
        """
        for direction in changes:
            if direction not in self._ports:
                raise MachineError(
                    f"The link {direction} is a plain cable in this lab and cannot be impaired "
                    'while it runs: make the lab with Lab(..., splice="all").'
                )
        waiting = self._waiting(changes)
        batches: dict[str, _Batch] = defaultdict(_Batch)
        for direction, impairment in changes.items():
            self._put(batches, direction, impairment, waiting.get(direction, 0))
        before_ns = time.monotonic_ns()
        answers = {
            namespace: self._send(namespace, batch.requests) for namespace, batch in batches.items()
        }
        self.window_ns = before_ns, time.monotonic_ns()
        for namespace, batch in batches.items():
            for direction, seen in _statistics(batch, answers[namespace]):
                port = self._ports[direction]
                port.asked = changes[direction]
                port.ledger.change(seen, port.asked)
        return self.window_ns[1]

    def _put(
        self,
        batches: dict[str, _Batch],
        direction: Direction,
        impairment: Impairment,
        waiting: int,
    ) -> None:
        port = self._ports[direction]
        batch = batches[port.interface.namespace]
        sent = netem_parameters.options(impairment)
        sent = replace(sent, limit=sent.limit + waiting)
        request = traffic_control.change(
            port.index, _KIND, self._encoded(direction, port, sent), str(direction)
        )
        # What is dropped between the look and the change counts as of the impairment that may
        # lose packets, if one of the two may.
        if may_lose(impairment):
            batch.look(direction, port)
            batch.requests.append(request)
        else:
            batch.requests.append(request)
            batch.look(direction, port)

    def _waiting(self, changes: Mapping[Direction, Impairment]) -> dict[Direction, int]:
        """Return how many packets wait where the limit would shrink.

        They were let in under a larger limit, and would else keep newcomers out until they have
        left (netem_enqueue() compares the whole queue with the limit).
        """
        batches: dict[str, _Batch] = defaultdict(_Batch)
        for direction, impairment in changes.items():
            port = self._ports[direction]
            if netem_parameters.queue_limit(impairment) < port.limit:
                batches[port.interface.namespace].look(direction, port)
        return {
            direction: seen.waiting
            for namespace, batch in batches.items()
            for direction, seen in _statistics(batch, self._send(namespace, batch.requests))
        }

    def _encoded(self, direction: Direction, port: _Port, sent: NetemOptions) -> bytes:
        """Return what to send, and remember what the kernel then has.

        Every change gets a seed of its own: the kernel starts its random numbers anew, and would
        else draw the same ones after each change.
        """
        seed = hashlib.blake2b(f"{self._seed} {direction} {port.changes}".encode(), digest_size=8)
        port.changes += 1
        port.limit = sent.limit
        known = sent.table == port.table
        port.table = sent.table or port.table
        return replace(
            sent, table=b"" if known else sent.table, seed=int.from_bytes(seed.digest(), "little")
        ).encode()

    # -- counters -----------------------------------------------------------------------------

    def counters(self) -> dict[Direction, Counters]:
        """Return the queueing disciplines' own counters, losses told from drops (`Ledger`)."""
        batches: dict[str, _Batch] = defaultdict(_Batch)
        for direction, port in self._ports.items():
            batches[port.interface.namespace].look(direction, port)
        seen = {
            direction: statistics
            for namespace, batch in batches.items()
            for direction, statistics in _statistics(batch, self._send(namespace, batch.requests))
        }
        return {
            direction: port.ledger.counters(seen[direction])
            for direction, port in self._ports.items()
        }

    def _send(self, namespace: str, requests: list[Request]) -> list[bytes | None]:
        try:
            return self._controls[namespace].send(requests)
        except Refused as refusal:
            raise MachineError(
                f"The kernel refused the netem of {refusal.what}: {refusal.strerror}."
            ) from refusal


def _statistics(
    batch: _Batch, answers: list[bytes | None]
) -> Iterator[tuple[Direction, Statistics]]:
    for place, direction in batch.heard.items():
        answer = answers[place]
        if answer is None:
            raise MachineError(f"The netem of {direction} has vanished.")
        yield direction, traffic_control.statistics(answer)


# Every kind of parameter at once, in values that only 64 bits hold.
_EVERYTHING = NetemOptions(
    latency_ns=10**10 + 1,
    jitter_ns=10**9 + 1,
    table=netem_parameters.EVEN_TABLE,
    limit=1234,
    loss=1,
    bursts=(1, 2, 3, 4),
    gap=1,
    reorder=5,
    duplicate=6,
    corrupt=7,
    rate_bytes=netem_parameters.ORDERING_RATE_BYTES,
)


def _check_kernel() -> None:
    """Raise MachineError unless the kernel has netem and takes every parameter in full.

    It ignores attributes that it does not know.
    """
    taken = _tried(_EVERYTHING)
    if taken is None:
        raise MachineError(_NO_NETEM)
    if replace(taken, table=_EVERYTHING.table, seed=None) != _EVERYTHING:
        raise MachineError(
            "This kernel's netem does not take all parameters (Linux 4.15 and later do): asked for "
            f"{replace(_EVERYTHING, table=b'')}, it has {taken}. Use the other backend: "
            "--backend wire"
        )
