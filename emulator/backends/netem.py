"""The ``netem`` backend: the kernel's sch_netem.

A WAN link is a cable between two routers with a netem queueing discipline on each router's
interface. A LAN link that is impaired is spliced through a bridge in the core namespace, with
netem on both of its ports: the node's own interface stays free of it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from wanlat.emulator import addressing, rtnetlink
from wanlat.emulator.backends import Counters, netem_parameters, traffic_control
from wanlat.emulator.backends.netem_ledger import Ledger, may_lose
from wanlat.emulator.backends.netem_options import NetemOptions
from wanlat.emulator.backends.traffic_control import Refused, Statistics, TrafficControl
from wanlat.emulator.capture import CaptureStatus
from wanlat.emulator.capture import Request as CaptureRequest
from wanlat.emulator.capture.watcher import Watcher
from wanlat.emulator.links import Direction, Link
from wanlat.emulator.namespaces import CORE
from wanlat.emulator.network import End, Network
from wanlat.emulator.rtnetlink import Request
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment

_LOOPBACK = (1, "lo")
_SETTLE_SLACK_S = 0.05
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
        control.send([traffic_control.put(*_LOOPBACK, asked.encode())])
        looked, _ = control.send(
            [traffic_control.look(*_LOOPBACK), traffic_control.remove(*_LOOPBACK)]
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

    end: End
    asked: Impairment
    ledger: Ledger
    limit: int = 0
    held_until_ns: int = 0  # packets that were let in before the last change have left by then
    table: bytes = b""  # the one that the kernel has
    changes: int = 0


@dataclass
class _Batch:
    """Requests to one namespace, and who is to hear of their answers."""

    requests: list[Request] = field(default_factory=list)
    heard: dict[int, Direction] = field(default_factory=dict)

    def look(self, direction: Direction, port: _Port) -> None:
        self.heard[len(self.requests)] = direction
        self.requests.append(traffic_control.look(port.end.index, port.end.name))


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
        self._watcher: Watcher | None = None
        self._lock = threading.Lock()
        self._unsettled: set[Direction] = set()
        self._timer: threading.Timer | None = None

    # -- start --------------------------------------------------------------------------------

    def start(self, network: Network) -> None:
        """Put netem on every impaired link. Raises MachineError without sch_netem."""
        self._network = network
        _check_kernel()
        self._open(CORE)
        links = [link for link in network.links if link.kind == "wan" or network.is_spliced(link)]
        self._bridge([link for link in links if network.is_spliced(link)])
        self._find_ports(links)
        requests: dict[str, list[Request]] = defaultdict(list)
        for direction, port in self._ports.items():
            sent = netem_parameters.options(port.asked)
            requests[port.end.namespace].append(
                traffic_control.put(
                    port.end.index, port.end.name, self._encoded(direction, port, sent)
                )
            )
        for namespace, batch in requests.items():
            self._send(namespace, batch)

    def _bridge(self, links: list[Link]) -> None:
        assert self._network is not None
        requests: list[Request] = []
        for link in links:
            name, bridge = addressing.splice_bridge(link.kind, link.index)
            requests.append(rtnetlink.bridge(name, bridge))
            for end in self._network.splice(link):
                requests.append(rtnetlink.into_bridge(end.index, end.name, bridge))
        self._send(CORE, requests)

    def _find_ports(self, links: Iterable[Link]) -> None:
        for link in links:
            for direction, end, asked in zip(
                link.directions, self._egress(link), (link.ab, link.ba), strict=True
            ):
                self._open(end.namespace)
                self._ports[direction] = _Port(end, asked, Ledger(asked))

    def _egress(self, link: Link) -> tuple[End, End]:
        """Return the interfaces whose egress is the direction ab, ba."""
        assert self._network is not None
        if self._network.is_spliced(link):
            towards_a, towards_b = self._network.splice(link)
            return towards_b, towards_a
        return self._network.ends(link)

    def _open(self, namespace: str) -> None:
        assert self._network is not None
        if namespace not in self._controls:
            with self._network.namespaces.entered(namespace):
                self._controls[namespace] = TrafficControl()

    # -- changes ------------------------------------------------------------------------------

    def stop(self) -> None:
        """Leave it to the kernel, which takes everything down with the namespaces."""

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
        with self._lock:
            window_ns = self._change(changes, self._limits(changes))
            self._settle_later()
        self.window_ns = window_ns
        if self._watcher is not None:
            self._watcher.change(changes)
        return window_ns[1]

    def _change(
        self, changes: Mapping[Direction, Impairment], limits: Mapping[Direction, int]
    ) -> tuple[int, int]:
        batches: dict[str, _Batch] = defaultdict(_Batch)
        for direction, impairment in changes.items():
            self._put(batches, direction, impairment, limits.get(direction))
        before_ns = time.monotonic_ns()
        try:
            answers = {
                namespace: self._send(namespace, batch.requests)
                for namespace, batch in batches.items()
            }
        except MachineError:
            for direction in changes:
                self._ports[direction].table = b""  # it may be there or not: send it next time
            raise
        after_ns = time.monotonic_ns()
        for namespace, batch in batches.items():
            for direction, seen in _statistics(batch, answers[namespace]):
                port = self._ports[direction]
                port.asked = changes[direction]
                port.ledger.change(seen, port.asked)
        return before_ns, after_ns

    def _put(
        self,
        batches: dict[str, _Batch],
        direction: Direction,
        impairment: Impairment,
        limit: int | None,
    ) -> None:
        port = self._ports[direction]
        batch = batches[port.end.namespace]
        sent = netem_parameters.options(impairment, limit=limit)
        request = traffic_control.put(
            port.end.index, port.end.name, self._encoded(direction, port, sent), change=True
        )
        # What is dropped between the look and the change counts as of the impairment that may
        # lose packets, if one of the two may.
        if may_lose(impairment):
            batch.look(direction, port)
            batch.requests.append(request)
        else:
            batch.requests.append(request)
            batch.look(direction, port)

    # -- limits while old packets wait --------------------------------------------------------

    def _limits(self, changes: Mapping[Direction, Impairment]) -> dict[Direction, int]:
        """Return the limits of queues in which packets wait.

        netem_enqueue() compares all that waits with the new limit, and would turn newcomers away
        until enough of what was let in under the old one has left. Those newcomers in their turn
        wait behind the old ones. So the limit covers both until the old ones have left.
        """
        batches: dict[str, _Batch] = defaultdict(_Batch)
        for direction in changes:
            port = self._ports[direction]
            batches[port.end.namespace].look(direction, port)
        limits = {}
        now_ns = time.monotonic_ns()
        for namespace, batch in batches.items():
            for direction, seen in _statistics(batch, self._send(namespace, batch.requests)):
                if seen.waiting == 0:
                    continue
                port, following = self._ports[direction], changes[direction]
                limited = following.rate_bps is not None
                # A full queue of a rate stays full, whatever is changed: it has no old packets.
                held_ns = netem_parameters.waiting_ns(port.asked, 0 if limited else seen.waiting)
                port.held_until_ns = max(port.held_until_ns, now_ns + held_ns)
                limits[direction] = max(
                    port.limit,
                    netem_parameters.queue_limit(
                        following, held_ns=max(0, port.held_until_ns - now_ns)
                    ),
                )
                if limited:
                    self._unsettled.add(direction)
        return limits

    def _settle_later(self) -> None:
        """Have queues shrink to what was asked for once the old packets have left."""
        if self._unsettled and self._timer is None:
            first_ns = min(self._ports[each].held_until_ns for each in self._unsettled)
            delay_s = max(0.0, (first_ns - time.monotonic_ns()) / 1e9) + _SETTLE_SLACK_S
            self._timer = threading.Timer(delay_s, self._settle)
            self._timer.daemon = True
            self._timer.start()

    def _settle(self) -> None:
        with self._lock:
            self._timer = None
            now_ns = time.monotonic_ns()
            due = {each for each in self._unsettled if self._ports[each].held_until_ns <= now_ns}
            self._unsettled -= due
            too_long = {each: self._ports[each].asked for each in due}
            with contextlib.suppress(MachineError):  # the lab is about to end
                self._change(too_long, {})
            self._settle_later()

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
            batches[port.end.namespace].look(direction, port)
        with self._lock:
            seen = {
                direction: statistics
                for namespace, batch in batches.items()
                for direction, statistics in _statistics(
                    batch, self._send(namespace, batch.requests)
                )
            }
        return {
            direction: port.ledger.counters(seen[direction])
            for direction, port in self._ports.items()
        }

    # -- the record of packets ----------------------------------------------------------------

    def start_capture(self, request: CaptureRequest) -> CaptureStatus:
        """Look on at every router and record what crosses the WAN links. Raises MachineError."""
        assert self._network is not None
        asked = {direction: port.asked for direction, port in self._ports.items()}
        self._watcher = Watcher(self._network, asked, request)
        return self._watcher.status()

    def capture_status(self) -> CaptureStatus:
        """Return how the record stands."""
        assert self._watcher is not None
        return self._watcher.status()

    def stop_capture(self) -> CaptureStatus:
        """Have the record completed."""
        assert self._watcher is not None
        watcher, self._watcher = self._watcher, None
        return watcher.stop()

    def _send(self, namespace: str, requests: list[Request]) -> list[bytes | None]:
        try:
            return self._controls[namespace].send(requests)
        except Refused as refusal:
            raise MachineError(
                f"The kernel refused to {refusal.what} in {namespace}: {refusal.strerror}."
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
