"""The pass that measures rates: trains of full packets, and how far apart they arrive.

A link with a rate lets packets leave one transmission time after the other as long as some wait.
So a train is sent that keeps the link's queue filled and never overflows it: half the queue at
once, then a little faster than the rate; or, where that half is over too soon for this process to
be in time with more, what fits into the queue at once. The line through the instants of arrival
over the bytes arrived has the rate as its slope, whatever the path's delay (packet train
dispersion: Dovrolis, Ramanathan and Moore, "What do packet dispersion techniques measure?",
INFOCOM 2001).
"""

from __future__ import annotations

import heapq
import math
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from wanlat.emulator.arrivals import Arrivals, Frames, instants_ns
from wanlat.emulator.calibration.pairs import Pair, batches
from wanlat.emulator.calibration.rounds import Finding
from wanlat.emulator.calibration.switched import DRAWN, UNDELIVERED, without
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.lab import Lab
from wanlat.emulator.patience import STALL_S, wait
from wanlat.topologies.resolve import Impairment, Plan

Tell = Callable[[float], None]
Instants = np.ndarray[Any, np.dtype[np.int64]]

_SINK_PORT = 9  # bound and never read, so that nobody answers
_DATA_BYTES = 1472
_FRAME_BYTES = _DATA_BYTES + 8 + 20 + 14  # what a rate counts: the Ethernet frame
_UDP_SEGMENT = 103  # linux/udp.h: one call sends many datagrams
_MOST_SEGMENTS = 40
_LEAST_QUEUE_BYTES = 64 * 1024  # of a rate without a queue of its own
_FILLED, _FULL = 0.5, 0.85  # parts of the queue: at once, and at most
_FASTER = 1.15  # than the rate
_LONGEST_S, _LARGEST_BYTES, _FEWEST = 0.25, 2 << 20, 16  # of a train
_CALL_S = 0.0002  # between two calls, where packets would follow each other faster
_SHORT_S, _TRAINS, _SHORT_TRAINS = 0.02, 5, 15  # a short train can fall into one hold-up whole
_ARRIVED = 0.9  # of a train, at least
_STRAIGHT = 0.03  # of a train's length: how far off their line its packets are, at the median
_ENOUGH = 3  # trains
_AGREED = 4  # times further from the requested rate than from each other
_HELD_UP_S = 0.002  # this process may be, without the queue running empty
_BURST_BYTES = 128 * 1024  # at once and not more: what a backend's receive buffer has room for
_LINE_POINTS = 250
_TOGETHER_BPS = 300e6  # of trains at the same time: this process has to keep up
_STAMP_S = 10e-6  # how far off the ends of the line through a train's stamps are, at best
_LATE_S = 0.15


@dataclass(frozen=True)
class Rated:
    """A path's slowest rate, bit/s, and the smallest queue in front of a rate on it, bytes."""

    rate_bps: int
    queue_bytes: int

    @property
    def packet_s(self) -> float:
        """Return how long a full packet takes."""
        return 8 * _FRAME_BYTES / self.rate_bps

    @classmethod
    def of(cls, steps: Sequence[Impairment]) -> Rated | None:
        """Return that of a path; None where no rate is asked for."""
        rated = [step for step in steps if step.rate_bps is not None]
        if not rated:
            return None
        return cls(
            min(step.rate_bps for step in rated if step.rate_bps is not None),
            min(_queue_bytes(step) for step in rated),
        )


def _queue_bytes(step: Impairment) -> int:
    if step.queue_bytes is not None:
        return step.queue_bytes
    assert step.rate_bps is not None
    return max(_LEAST_QUEUE_BYTES, step.rate_bps * step.delay_ns // 8_000_000_000)


@dataclass(frozen=True)
class Train:
    """How many full packets are sent when: offsets from its beginning, ascending.

    It is sent ``times`` times, one every ``every_s``.
    """

    offsets_s: tuple[float, ...]
    packets: tuple[int, ...]
    times: int
    every_s: float

    @property
    def length(self) -> int:
        """Return how many packets it has."""
        return sum(self.packets)

    @classmethod
    def for_rate(cls, rated: Rated) -> Train:
        """Return a train that fills the queue and does not overflow it."""
        packet_s = rated.packet_s
        room = max(2, rated.queue_bytes // _FRAME_BYTES)
        paced = _FILLED * room * packet_s > _HELD_UP_S
        at_once = max(1, math.floor(_FILLED * room))
        longest = max(_FEWEST, min(_LONGEST_S / packet_s, _LARGEST_BYTES / _FRAME_BYTES))
        # The queue grows by the part of each packet that the rate has not sent meanwhile.
        more = (_FULL * room - at_once) / (1 - 1 / _FASTER)
        total = int(min(longest, at_once + max(0.0, more)))
        if not paced:
            total = at_once = max(2, int(min(_FULL * room, _BURST_BYTES / _FRAME_BYTES)))
        at_once = min(at_once, total)
        together = max(1, min(_MOST_SEGMENTS, math.ceil(_CALL_S / packet_s), room // 8))
        offsets, packets = [], []
        for sent in range(0, at_once, _MOST_SEGMENTS):
            offsets.append(0.0)
            packets.append(min(_MOST_SEGMENTS, at_once - sent))
        sent = at_once
        while sent < total:
            offsets.append((sent - at_once + 1) * packet_s / _FASTER)
            packets.append(min(together, total - sent))
            sent += packets[-1]
        lasts_s = total * packet_s
        times = _SHORT_TRAINS if lasts_s < _SHORT_S else _TRAINS
        # The next one finds the queue empty again.
        return cls(tuple(offsets), tuple(packets), times, 1.3 * lasts_s + 0.003)


def rate_pass(
    lab: Lab, requested: Plan, pairs: Sequence[Pair], tell: Tell, *, size: int = 1
) -> dict[Pair, list[float | None]]:
    """Return the rate of each pair that has one, bit/s, by each of several trains; ``size`` times.

    None: too little of a train arrived, or this process was held up and the queue ran empty.
    """
    rated = {pair: rate for pair in pairs if (rate := Rated.of(requested.path(*pair)))}
    if not rated:
        return {}
    turns = [batch for batch in _batches(requested, rated) for _ in range(size)]
    found: dict[Pair, list[float | None]] = {pair: [] for pair in rated}
    with without(lab, requested, (*DRAWN, *UNDELIVERED)):
        for number, batch in enumerate(turns):
            tell(number / len(turns))
            with _Senders(lab, batch) as senders:
                for pair, trains_bps in senders.measure(rated).items():
                    found[pair] += trains_bps
    tell(1.0)
    return found


def _batches(plan: Plan, rated: dict[Pair, Rated]) -> Iterator[list[Pair]]:
    """Split pairs so that those of a batch share no link, and are not too much for one process."""
    for batch in batches(plan, list(rated)):
        taken: list[Pair] = []
        load_bps = 0.0
        for pair in batch:
            if taken and load_bps + rated[pair].rate_bps > _TOGETHER_BPS:
                yield taken
                taken, load_bps = [], 0.0
            taken.append(pair)
            load_bps += rated[pair].rate_bps
        yield taken


class _Senders:
    """Sockets of pairs that share no link, for trains at the same time."""

    def __init__(self, lab: Lab, pairs: Sequence[Pair]) -> None:
        self._lab = lab
        self._pairs = pairs
        self._open = ExitStack()
        self._sockets: dict[Pair, socket.socket] = {}
        try:
            for pair in pairs:
                self._sockets[pair] = self._socket(pair)
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> _Senders:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _socket(self, pair: Pair) -> socket.socket:
        source, target = pair
        address = (self._lab.node(target).address, _SINK_PORT)
        sink = self._open.enter_context(self._lab.socket(target, socket.AF_INET, socket.SOCK_DGRAM))
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sink.bind(address)
        sender = self._lab.socket(source, socket.AF_INET, socket.SOCK_DGRAM)
        self._open.enter_context(sender)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, _DATA_BYTES)
        sender.connect(address)
        return sender

    def measure(self, rated: dict[Pair, Rated]) -> dict[Pair, list[float | None]]:
        """Send trains for each pair, all pairs at the same time; return their rates of arrival."""
        trains = {pair: Train.for_rate(rated[pair]) for pair in self._pairs}
        with ExitStack() as rings:
            arrivals = {
                pair: rings.enter_context(
                    Arrivals(self._lab, pair[1], 2 * train.times * train.length + 4096)
                )
                for pair, train in trains.items()
            }
            sent_s = self._send(trains)
            self._lab.check()
            wait(self._patience_s(trains, rated))
            return {
                pair: [
                    None
                    if _starved(train, sent_s[pair][turn], rated[pair])
                    else slope_bps(arrived_ns, train.length)
                    for turn, arrived_ns in enumerate(_by_train(arrivals[pair].frames(), train))
                ]
                for pair, train in trains.items()
            }

    def _send(self, trains: dict[Pair, Train]) -> dict[Pair, list[list[float]]]:
        """Return when each call of each train was made, s."""
        pairs = list(trains)
        events = heapq.merge(*(_events(place, trains[pair]) for place, pair in enumerate(pairs)))
        sent_s: dict[Pair, list[list[float]]] = {
            pair: [[] for _ in range(train.times)] for pair, train in trains.items()
        }
        data = [_numbered(train) for train in trains.values()]
        now = time.monotonic
        begun = begin = now() + 0.002
        for offset_s, place, turn, first, count in events:
            while (early_s := begin + offset_s - now()) > 0:
                if early_s > 0.0005:
                    time.sleep(early_s - 0.0003)
            if early_s < -STALL_S:
                begin -= early_s  # the schedule, not the clock: the gap is told
            pair = pairs[place]
            self._sockets[pair].send(
                data[place][first * _DATA_BYTES : (first + count) * _DATA_BYTES]
            )
            sent_s[pair][turn].append(now() - begun)
        return sent_s

    def _patience_s(self, trains: dict[Pair, Train], rated: dict[Pair, Rated]) -> float:
        """Return how long the last packet may take: the path's delay and the queue before it."""
        return _LATE_S + max(
            sum(step.delay_ns for step in self._lab.plan.path(*pair)) / 1e9
            + 1.5 * train.length * rated[pair].packet_s
            for pair, train in trains.items()
        )


def _events(place: int, train: Train) -> Iterator[tuple[float, int, int, int, int]]:
    """Yield when, which pair's, which train's, from which packet on, and how many."""
    for turn in range(train.times):
        first = turn * train.length
        for offset_s, count in zip(train.offsets_s, train.packets, strict=True):
            yield turn * train.every_s + offset_s, place, turn, first, count
            first += count


def _numbered(train: Train) -> memoryview:
    """Return the data of all packets of all trains, each beginning with its number."""
    data = np.zeros((train.times * train.length, _DATA_BYTES), dtype=np.uint8)
    data[:, :4] = np.arange(len(data), dtype=">u4").view(np.uint8).reshape(-1, 4)
    return data.reshape(-1).data


def _by_train(frames: Frames, train: Train) -> list[Instants]:
    """Return the instants of arrival of each train's packets, ns."""
    full = frames[frames["length"] == _FRAME_BYTES]
    numbers = np.ascontiguousarray(full["packet"][:, 28:32]).view(">u4")[:, 0].astype(np.int64)
    arrived_ns = instants_ns(full)
    return [arrived_ns[numbers // train.length == turn] for turn in range(train.times)]


def _starved(train: Train, sent_s: Sequence[float], rated: Rated) -> bool:
    """Return whether a packet came after the link had sent everything before it."""
    free_s = sent_s[0]
    for at_s, count in zip(sent_s, train.packets, strict=True):
        if at_s > free_s + rated.packet_s:
            return True
        free_s = max(free_s, at_s) + count * rated.packet_s
    return False


def slope_bps(arrived_ns: Instants, length: int) -> float | None:
    """Return the rate at which a train of ``length`` full packets arrived, bit/s.

    The median of slopes (Theil 1950, Sen 1968): an emulation that was held up delivers some
    packets late, and all of those at once, which a mean would take for another rate. None when
    too few arrived, or when the machine was held up for so long that there is no line.
    """
    from scipy import stats

    if arrived_ns.size < max(3, _ARRIVED * length):
        return None
    chosen = np.unique(np.linspace(0, arrived_ns.size - 1, _LINE_POINTS).astype(np.int64))
    times_s = (arrived_ns[chosen] - arrived_ns[0]) / 1e9
    bits = chosen * 8.0 * _FRAME_BYTES
    line = stats.theilslopes(times_s, bits)
    off_s = np.median(np.abs(times_s - line.intercept - line.slope * bits))
    if line.slope <= 0 or off_s > _STRAIGHT * times_s[-1]:
        return None
    return 1 / float(line.slope)


def densest(values: Sequence[float]) -> tuple[float, float]:
    """Return median and width of the closest half of the values (shorth: Andrews et al. 1972).

    What holds the machine up makes trains differ from each other; a wrong rate makes them agree.
    """
    ordered = np.sort(values)
    half = ordered.size // 2 + 1
    begin = int(np.argmin(ordered[half - 1 :] - ordered[: ordered.size - half + 1]))
    closest = ordered[begin : begin + half]
    return float(np.median(closest)), float(closest[-1] - closest[0])


def rate_figures(
    steps: Sequence[Impairment], trains_bps: Sequence[float | None], tolerance: Tolerance
) -> dict[str, Any] | None:
    """Return what was asked for and measured; None without a rate."""
    rated = Rated.of(steps)
    if rated is None:
        return None
    known = [rate_bps for rate_bps in trains_bps if rate_bps is not None]
    measured, width = densest(known) if len(known) >= _ENOUGH else (None, None)
    length_s = Train.for_rate(rated).length * rated.packet_s
    return {
        "requested_bps": rated.rate_bps,
        "measured_bps": measured,
        "error": None if measured is None else measured / rated.rate_bps - 1,
        "allowed_error": max(tolerance.rate, _STAMP_S / length_s),
        "trains": len(known),
        "spread": None if width is None else width / rated.rate_bps,
    }


def rate_faults(found: dict[str, Any]) -> list[Finding]:
    """Return what is wrong. It is final where trains agree with each other on another rate."""
    asked = bits_a_second(found["requested_bps"])
    if found["measured_bps"] is None:
        words = (
            f"the rate of {asked} could not be measured: this machine does not send, or does not "
            "pass on, so many packets. Ask for a lower rate, or for none"
        )
        return [Finding(words, is_final=False)]
    if abs(found["error"]) <= found["allowed_error"]:
        return []
    words = (
        f"rate {bits_a_second(found['measured_bps'])}, asked for {asked}: "
        f"{found['error']:+.1%}, allowed ±{found['allowed_error']:.1%}"
    )
    return [Finding(words, is_final=abs(found["error"]) > _AGREED * found["spread"])]


def bits_a_second(rate_bps: float) -> str:
    """Return a rate with its unit: 5.03 Mbit/s."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate_bps >= size:
            return f"{rate_bps / size:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"
