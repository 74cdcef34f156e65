"""The ``netem`` backend: the kernel's sch_netem.

A WAN link is a cable between two routers with a netem queueing discipline on each router's
interface. A LAN link that is impaired is spliced through a bridge in the core namespace, with
netem on both of its ports: the node's own interface stays free of it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from wanlat.emulator import addressing, rtnetlink
from wanlat.emulator.addressing import CORE, End
from wanlat.emulator.backends import Counters, LatenessReport, cannot_be_changed, netem_options
from wanlat.emulator.backends.sentinel import LOOPBACK, Sentinel
from wanlat.emulator.links import Direction, Link
from wanlat.emulator.network import Network
from wanlat.emulator.rtnetlink import Refusal, Request, Socket, Statistics
from wanlat.topologies import netem
from wanlat.topologies.errors import MachineError
from wanlat.topologies.netem import Netem
from wanlat.topologies.resolve import Impairment

_SETTLE_SLACK_S = 0.05

# Six standard deviations, and a few packets: one in 10⁹ such figures is above by chance.
_DEVIATIONS = 6
_FEW = 5
_START = Statistics(0, 0, 0, 0)

unsupported = netem.unsupported


def available() -> bool:
    """Return whether the kernel has sch_netem, by putting one on this namespace's loopback.

    Must be called where the loopback is ours: in the core namespace of a sandbox.
    """
    control = Socket()
    try:
        control.send(
            [
                rtnetlink.put_qdisc(*LOOPBACK, "netem", netem_options.encode(Netem())),
                rtnetlink.remove_qdisc(*LOOPBACK),
            ]
        )
    except Refusal as refusal:
        if refusal.errno in (errno.ENOENT, errno.EOPNOTSUPP):
            return False
        raise
    finally:
        control.close()
    return True


@dataclass
class _Port:
    """The interface that sends into one direction of a link, and what its netem does."""

    end: End
    impairment: Impairment
    ledger: Ledger
    limit: int = 0
    held_until_ns: int = 0  # packets that were let in before the last change have left by then
    table: bytes = b""  # the one that the kernel has
    changes: int = 0

    def look(self) -> Request:
        return rtnetlink.look_at_qdisc(self.end.index, self.end.name)


class NetemBackend:
    """One netem queueing discipline a direction.

    ``seed`` is of the random draws, where the kernel has such a thing (Linux 6.6).
    """

    name = "netem"

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        self._network: Network | None = None
        self._ports: dict[Direction, _Port] = {}
        self._controls: dict[str, Socket] = {}
        self._lock = threading.Lock()
        self._unsettled: set[Direction] = set()
        self._timer: threading.Timer | None = None
        self._sentinel: Sentinel | None = None

    # -- start --------------------------------------------------------------------------------

    def start(self, network: Network) -> None:
        """Put netem on every impaired link. Raises MachineError without sch_netem."""
        self._network = network
        if not available():
            raise MachineError(
                "This kernel has no netem (sch_netem): the module is neither loaded nor to be "
                "found. `wanlat doctor` says how to have it. The other backend needs no kernel "
                "module: --backend wire"
            )
        self._open(CORE)
        links = [link for link in network.links if link.kind == "wan" or network.is_spliced(link)]
        self._bridge([link for link in links if network.is_spliced(link)])
        for link in links:
            for direction, end, impairment in zip(
                link.directions, self._egress(link), (link.ab, link.ba), strict=True
            ):
                self._open(end.namespace)
                self._ports[direction] = _Port(end, impairment, Ledger(impairment))
        self._exchange(
            (direction, self._put(direction, netem.netem(port.impairment), change=False))
            for direction, port in self._ports.items()
        )
        if self._ports:
            self._sentinel = Sentinel(self._controls[CORE])

    def _bridge(self, links: list[Link]) -> None:
        assert self._network is not None
        requests: list[Request] = []
        for link in links:
            name, bridge = addressing.splice_bridge(link.kind, link.index)
            requests.append(rtnetlink.bridge(name, bridge))
            for end in self._network.splice(link):
                requests.append(rtnetlink.into_bridge(end.index, end.name, bridge))
        self._send(CORE, requests)

    def _egress(self, link: Link) -> tuple[End, End]:
        """Return the interfaces that send into the directions ab, ba."""
        assert self._network is not None
        if self._network.is_spliced(link):
            towards_a, towards_b = self._network.splice(link)
            return towards_b, towards_a
        return self._network.ends(link)

    def _open(self, namespace: str) -> None:
        assert self._network is not None
        if namespace not in self._controls:
            with self._network.namespaces.entered(namespace):
                self._controls[namespace] = Socket()

    # -- changes ------------------------------------------------------------------------------

    def stop(self) -> None:
        """Leave it to the kernel, which takes everything down with the namespaces."""

    def change(self, changes: Mapping[Direction, Impairment]) -> tuple[int, int]:
        """Change parameters in place; packets already queued keep their due time.

        Returns the instants before and after the kernel took all of them. Those of one namespace
        go in one call.
        """
        for direction in changes:
            if direction not in self._ports:
                raise cannot_be_changed(direction)
        with self._lock:
            window_ns = self._change(changes, self._limits(changes))
            self._settle_later()
        return window_ns

    def _change(
        self, changes: Mapping[Direction, Impairment], limits: Mapping[Direction, int]
    ) -> tuple[int, int]:
        requests: list[tuple[Direction, Request]] = []
        for direction, impairment in changes.items():
            parameters = netem.netem(impairment)
            parameters = replace(parameters, limit=limits.get(direction, parameters.limit))
            pair = [self._ports[direction].look(), self._put(direction, parameters, change=True)]
            # What is dropped between the look and the change counts as of the impairment that
            # may lose packets, if one of the two may.
            ordered = pair if may_lose(impairment) else pair[::-1]
            requests += [(direction, request) for request in ordered]
        before_ns = time.monotonic_ns()
        try:
            seen = self._exchange(requests)
        except MachineError:
            for direction in changes:
                self._ports[direction].table = b""  # it may be there or not: send it next time
            raise
        after_ns = time.monotonic_ns()
        for direction, impairment in changes.items():
            port = self._ports[direction]
            port.impairment = impairment
            port.ledger.change(seen[direction], impairment)
        return before_ns, after_ns

    def _put(self, direction: Direction, parameters: Netem, *, change: bool) -> Request:
        """Return the request, and remember what the kernel then has.

        Every change gets a seed of its own: the kernel starts its random numbers anew, and would
        else draw the same ones after each change.
        """
        port = self._ports[direction]
        text = f"{self._seed} {direction} {port.changes}"
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        encoded = netem_options.encode(parameters, seed, with_table=parameters.table != port.table)
        port.changes += 1
        port.limit = parameters.limit
        port.table = parameters.table or port.table
        return rtnetlink.put_qdisc(port.end.index, port.end.name, "netem", encoded, change=change)

    # -- limits while old packets wait --------------------------------------------------------

    def _limits(self, changes: Mapping[Direction, Impairment]) -> dict[Direction, int]:
        """Return the limits of queues in which packets wait.

        netem_enqueue() compares all that waits with the new limit, and would turn newcomers away
        until enough of what was let in under the old one has left. Those newcomers in their turn
        wait behind the old ones. So the limit covers both until the old ones have left.
        """
        limits = {}
        seen = self._exchange((direction, self._ports[direction].look()) for direction in changes)
        now_ns = time.monotonic_ns()
        for direction, following in changes.items():
            waiting, port = seen[direction].waiting, self._ports[direction]
            if waiting == 0:
                continue
            held_ns = port.impairment.range_ns[1]
            # A full queue of a rate stays full, whatever is changed: it has no old packets.
            if port.impairment.rate_bps and following.rate_bps is None:
                held_ns += waiting * 8 * netem.PACKET_BYTES * 10**9 // port.impairment.rate_bps
            port.held_until_ns = max(port.held_until_ns, now_ns + held_ns)
            wanted = netem.queue_limit(following, held_ns=port.held_until_ns - now_ns)
            limits[direction] = max(port.limit, wanted)
            if following.rate_bps is not None:
                self._unsettled.add(direction)
        return limits

    def _settle_later(self) -> None:
        """Have queues shrink to what was requested once the old packets have left."""
        if self._unsettled and self._timer is None:
            first_ns = min(self._ports[direction].held_until_ns for direction in self._unsettled)
            delay_s = max(0.0, (first_ns - time.monotonic_ns()) / 1e9) + _SETTLE_SLACK_S
            self._timer = threading.Timer(delay_s, self._settle)
            self._timer.daemon = True
            self._timer.start()

    def _settle(self) -> None:
        with self._lock:
            self._timer = None
            now_ns = time.monotonic_ns()
            due = {
                direction
                for direction in self._unsettled
                if self._ports[direction].held_until_ns <= now_ns
            }
            self._unsettled -= due
            too_long = {direction: self._ports[direction].impairment for direction in due}
            with contextlib.suppress(MachineError):  # the lab is about to end
                self._change(too_long, {})
            self._settle_later()

    # -- counters -----------------------------------------------------------------------------

    def counters(self) -> dict[Direction, Counters]:
        """Return the queueing disciplines' own counters, losses apart from drops (`Ledger`)."""
        with self._lock:
            seen = self._exchange(
                (direction, port.look()) for direction, port in self._ports.items()
            )
        return {
            direction: port.ledger.counters(seen[direction])
            for direction, port in self._ports.items()
        }

    def lateness(self, since: int) -> LatenessReport | None:
        """Return how late a sentinel's packets left, whatever link they would have crossed."""
        return self._sentinel.since(since) if self._sentinel else None

    # -- netlink ------------------------------------------------------------------------------

    def _exchange(
        self, requests: Iterable[tuple[Direction, Request]]
    ) -> dict[Direction, Statistics]:
        """Send requests, those of one namespace in one call; return what looks have seen."""
        batches: dict[str, list[tuple[Direction, Request]]] = defaultdict(list)
        for direction, request in requests:
            batches[self._ports[direction].end.namespace].append((direction, request))
        seen = {}
        for namespace, batch in batches.items():
            answers = self._send(namespace, [request for _, request in batch])
            for (direction, _), answer in zip(batch, answers, strict=True):
                if answer is not None:
                    seen[direction] = rtnetlink.qdisc_statistics(answer)
        return seen

    def _send(self, namespace: str, requests: list[Request]) -> list[bytes | None]:
        try:
            return self._controls[namespace].send(requests)
        except Refusal as refusal:
            raise MachineError(
                f"The kernel refused to {refusal.what} in {namespace}: {refusal.strerror}."
            ) from refusal


# -- losses apart from drops ------------------------------------------------------------------


def _explained(impairment: Impairment, offered: int) -> tuple[float, float]:
    """Return how many of so many packets are lost on average, and how many at most."""
    chain = impairment.bursts
    # netem tries each copy again, and counts one that it loses; the share differs by less than
    # the share of copies.
    share = chain.loss if chain else min(1.0, impairment.loss * (1 + impairment.duplicate))
    if share == 0:
        return 0, 0
    # Neighbours in a chain of two states correlate by 1 - turns, which sums to this factor.
    turns = chain.p + chain.r if chain else 1
    spread = max(1.0, (2 - turns) / turns) if turns else 1.0
    deviation = math.sqrt(share * (1 - share) * spread * offered)
    return share * offered, share * offered + _DEVIATIONS * deviation + _FEW * spread


class Ledger:
    """The counts of one direction, through every change of its impairment.

    netem counts what it loses on request and what does not fit into its queue as one figure
    (netem_enqueue(): both end in qdisc_qstats_drop()). But it is known how much loss chance
    explains, and what is above that was the queue.
    """

    def __init__(self, impairment: Impairment) -> None:
        self._impairment = impairment
        self._since = _START
        self._lost = self._queue_drops = self._overflows = 0

    def change(self, seen: Statistics, following: Impairment) -> None:
        """Close the account of the impairment that was in force until ``seen``."""
        self._lost, self._queue_drops, self._overflows = self._with(seen)
        self._since, self._impairment = seen, following

    def counters(self, seen: Statistics) -> Counters:
        """Return what became of packets until ``seen``."""
        lost, queue_drops, overflows = self._with(seen)
        return Counters(seen.packets, seen.bytes, lost, queue_drops, overflows)

    def _with(self, seen: Statistics) -> tuple[int, int, int]:
        drops = (seen.drops - self._since.drops) & 0xFFFFFFFF  # the kernel's counters wrap
        sent = (seen.packets - self._since.packets) & 0xFFFFFFFF
        offered = max(drops, drops + sent + seen.waiting - self._since.waiting)
        mean, largest = _explained(self._impairment, offered)
        lost = drops if drops <= largest else round(mean)
        by_queue = drops - lost
        limited = self._impairment.rate_bps is not None
        return (
            self._lost + lost,
            self._queue_drops + (by_queue if limited else 0),
            self._overflows + (0 if limited else by_queue),
        )


def may_lose(impairment: Impairment) -> bool:
    """Return whether drops under an impairment are expected."""
    return impairment.loss_probability > 0 or impairment.rate_bps is not None
