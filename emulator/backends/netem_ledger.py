"""What became of the packets of one netem: losses told from drops, as far as they can be.

netem counts what it loses on request and what does not fit into its queue as one figure
(netem_enqueue(): both end in qdisc_qstats_drop()). But it is known how much loss chance
explains, and what is above that was the queue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wanlat.emulator.backends import Counters
from wanlat.emulator.rtnetlink import Statistics
from wanlat.topologies.resolve import GilbertElliott, Impairment

# Six standard deviations, and a few packets: one in 10⁹ such figures is above by chance.
_DEVIATIONS = 6
_FEW = 5
_START = Statistics(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Loss:
    """How much loss chance makes of many packets: its mean, its variance, a burst's length."""

    share: float
    variance: float
    burst: float = 1.0

    def largest(self, packets: int) -> float:
        """Return how many of so many packets may be lost."""
        if self.share == 0:
            return 0
        deviation = math.sqrt(self.variance * packets)
        return self.share * packets + _DEVIATIONS * deviation + _FEW * self.burst


def _loss_of(impairment: Impairment) -> _Loss:
    if impairment.bursts is not None:
        return _bursty(impairment.bursts)
    # netem tries each copy again, and counts one that it loses; the share differs by less than
    # the share of copies.
    share = impairment.loss * (1 + impairment.duplicate)
    return _Loss(min(1.0, share), impairment.loss * (1 - impairment.loss))


def _bursty(chain: GilbertElliott) -> _Loss:
    lost_bad, lost_good = 1 - chain.h, 1 - chain.k
    turns = chain.p + chain.r
    if turns == 0:
        return _Loss(lost_good, lost_good * (1 - lost_good))
    bad = chain.p / turns
    within = bad * lost_bad * (1 - lost_bad) + (1 - bad) * lost_good * (1 - lost_good)
    between = bad * (1 - bad) * (lost_bad - lost_good) ** 2
    # Neighbours in a chain of two states correlate by 1 - turns, which sums to this factor.
    spread = (2 - turns) / turns
    return _Loss(chain.loss, within + between * spread, max(1.0, 2 / turns))


class Ledger:
    """The counts of one direction, through every change of its impairment."""

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
        loss = _loss_of(self._impairment)
        lost = drops if drops <= loss.largest(offered) else round(loss.share * offered)
        by_queue = drops - lost
        limited = self._impairment.rate_bps is not None
        return (
            self._lost + lost,
            self._queue_drops + (by_queue if limited else 0),
            self._overflows + (0 if limited else by_queue),
        )


def may_lose(impairment: Impairment) -> bool:
    """Tell whether drops under an impairment are expected."""
    return impairment.loss_probability > 0 or impairment.rate_bps is not None
