"""Rates: trains of full packets, and how far apart they arrive.

A link with a rate lets packets leave one transmission time after the other as long as some wait.
So a train is sent that keeps the link's queue filled and never overflows it: half the queue at
once, then a little faster than the rate; or, where that half is over too soon for this process to
be in time with more, what fits into the queue at once. The line through the instants of arrival
over the bytes arrived has the rate as its slope, whatever the path's delay (packet train
dispersion: Dovrolis, Ramanathan and Moore, "What do packet dispersion techniques measure?",
INFOCOM 2001).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wanlat.emulator.calibration.rounds import Finding, Judged
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.prober import ETHERNET_BYTES, FULL_BYTES, Numbers, Probes
from wanlat.topologies.resolve import Impairment

FRAME_BITS = 8 * (FULL_BYTES + ETHERNET_BYTES)
"""What a rate counts of a packet of a train: its Ethernet frame."""

_FILLED, _FULL = 0.5, 0.85  # parts of the queue: at once, and at most
_FASTER = 1.15  # than the rate
_LONGEST_S, _MOST, _FEWEST = 0.25, 1385, 16  # of a train
_SHORT_S, _TRAINS, _SHORT_TRAINS = 0.02, 5, 15  # a short train can fall into one hold-up whole
_ARRIVED = 0.9  # of a train, at least
_STRAIGHT = 0.03  # of a train's length: how far off their line its packets are, at the median
_ENOUGH = 3  # trains
_AGREED = 4  # times further from the requested rate than from each other
_HELD_UP_S = 0.002  # this process may be, without the queue running empty
_MOST_AT_ONCE = 86  # packets: what a backend's receive buffer has room for
_LINE_POINTS = 250
_STAMP_S = 10e-6  # how far off the ends of the line through a train's stamps are, at best


@dataclass(frozen=True)
class Rated:
    """A path's slowest rate, bit/s, and the smallest queue in front of a rate on it, bytes."""

    rate_bps: int
    queue_bytes: int

    @property
    def packet_s(self) -> float:
        """Return how long a full packet takes."""
        return FRAME_BITS / self.rate_bps

    @classmethod
    def on_path(cls, steps: Sequence[Impairment]) -> Rated | None:
        """Return that of a path; None where no rate is requested."""
        rates = [step.rate_bps for step in steps if step.rate_bps is not None]
        rooms = [step.room_bytes for step in steps if step.room_bytes is not None]
        return cls(min(rates), min(rooms)) if rates else None


@dataclass(frozen=True)
class Train:
    """When full packets are sent, s after the train's beginning; ``times`` trains in ``every_s``"""

    offsets_s: tuple[float, ...]
    times: int
    every_s: float

    @property
    def length(self) -> int:
        """Return how many packets it has."""
        return len(self.offsets_s)

    @property
    def due_s(self) -> list[float]:
        """Return when the packets of all trains are sent."""
        return [turn * self.every_s + s for turn in range(self.times) for s in self.offsets_s]

    def times_of(self, size: int) -> Train:
        """Return so many times the trains."""
        return Train(self.offsets_s, self.times * size, self.every_s)

    @classmethod
    def for_rate(cls, rated: Rated) -> Train:
        """Return a train that fills the queue and does not overflow it."""
        packet_s = rated.packet_s
        room = max(2, 8 * rated.queue_bytes // FRAME_BITS)
        if _FILLED * room * packet_s > _HELD_UP_S:
            at_once = max(1, math.floor(_FILLED * room))
            longest = max(_FEWEST, min(_LONGEST_S / packet_s, _MOST))
            # The queue grows by the part of each packet that the rate has not sent meanwhile.
            more = (_FULL * room - at_once) / (1 - 1 / _FASTER)
            total = int(min(longest, at_once + max(0.0, more)))
        else:
            total = at_once = max(2, int(min(_FULL * room, _MOST_AT_ONCE)))
        offsets = [max(0, n - at_once + 1) * packet_s / _FASTER for n in range(total)]
        lasts_s = total * packet_s
        times = _SHORT_TRAINS if lasts_s < _SHORT_S else _TRAINS
        # The next one finds the queue empty again.
        return cls(tuple(offsets), times, 1.3 * lasts_s + 0.003)


def train_rates(probes: Probes, train: Train, rated: Rated) -> list[float | None]:
    """Return the rate of each train that was sent, bit/s.

    None: too little of it arrived, or this process was held up and the queue ran empty.
    """
    sent_s = probes.sent_ns.reshape(train.times, train.length) / 1e9
    return [
        None if _starved(sent, rated) else slope_bps(arrived_ns, train.length)
        for sent, arrived_ns in zip(sent_s, by_train(probes, train.length), strict=True)
    ]


def by_train(probes: Probes, length: int) -> list[Numbers]:
    """Return when the packets of each train of ``length`` arrived, in that order, ns."""
    trains = probes.there.numbers // length
    return [probes.there.instants_ns[trains == turn] for turn in range(probes.sent // length)]


def _starved(sent_s: Any, rated: Rated) -> bool:
    """Return whether a packet came after the link had sent everything before it."""
    free_s = sent_s[0]
    for at_s in sent_s:
        if at_s > free_s + rated.packet_s:
            return True
        free_s = max(free_s, at_s) + rated.packet_s
    return False


def slope_bps(arrived_ns: Numbers, length: int) -> float | None:
    """Return the rate at which a train of ``length`` full packets arrived, bit/s.

    The median of slopes (Theil 1950, Sen 1968): an emulation that was held up delivers some
    packets late, and all of those at once, which a mean would take for another rate. None when
    too few arrived, or when the machine was held up for so long that there is no line.
    """
    if arrived_ns.size < max(3, _ARRIVED * length):
        return None
    chosen = np.unique(np.linspace(0, arrived_ns.size - 1, _LINE_POINTS).astype(np.int64))
    times_s, bits = (arrived_ns[chosen] - arrived_ns[0]) / 1e9, chosen * float(FRAME_BITS)
    first, second = np.triu_indices(chosen.size, 1)
    slope = float(np.median((times_s[second] - times_s[first]) / (bits[second] - bits[first])))
    intercept = float(np.median(times_s) - slope * np.median(bits))
    off_s = float(np.median(np.abs(times_s - intercept - slope * bits)))
    return None if slope <= 0 or off_s > _STRAIGHT * times_s[-1] else 1 / slope


def densest(values: Sequence[float]) -> tuple[float, float]:
    """Return median and width of the closest half of the values (shorth: Andrews et al. 1972).

    What holds the machine up makes trains differ from each other; a wrong rate makes them agree.
    """
    ordered = np.sort(values)
    half = ordered.size // 2 + 1
    begin = int(np.argmin(ordered[half - 1 :] - ordered[: ordered.size - half + 1]))
    closest = ordered[begin : begin + half]
    return float(np.median(closest)), float(closest[-1] - closest[0])


def judge_rate(
    steps: Sequence[Impairment], trains_bps: Sequence[float | None], tolerance: Tolerance
) -> Judged:
    """Judge trains on a path with a rate. It is final where they agree on another one."""
    rated = Rated.on_path(steps)
    assert rated is not None
    known = [rate_bps for rate_bps in trains_bps if rate_bps is not None]
    requested, length_s = (
        bits_a_second(rated.rate_bps),
        Train.for_rate(rated).length * rated.packet_s,
    )
    allowed = max(tolerance.rate, _STAMP_S / length_s)
    figures: dict[str, Any] = {
        "requested_bps": rated.rate_bps,
        "measured_bps": None,
        "error": None,
        "allowed_error": allowed,
        "trains": len(known),
        "spread": None,
    }
    entry = {"rate": figures}
    if len(known) < _ENOUGH:
        words = (
            f"the rate of {requested} could not be measured: this machine does not send, or does "
            "not pass on, so many packets. Ask for a lower rate, or for none"
        )
        return entry, [Finding(words, is_final=False)]
    measured_bps, width_bps = densest(known)
    error, spread = measured_bps / rated.rate_bps - 1, width_bps / rated.rate_bps
    figures |= {"measured_bps": measured_bps, "error": error, "spread": spread}
    if abs(error) <= allowed:
        return entry, []
    words = (
        f"rate {bits_a_second(measured_bps)}, requested {requested}: {error:+.1%}, "
        f"allowed ±{allowed:.1%}"
    )
    return entry, [Finding(words, is_final=abs(error) > _AGREED * spread)]


def bits_a_second(rate_bps: float) -> str:
    """Return a rate with its unit: 5.03 Mbit/s."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate_bps >= size:
            return f"{rate_bps / size:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"
