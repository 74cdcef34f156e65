"""What became of the packets of one netem: losses told from drops, as far as they can be.

netem counts what it loses on request and what does not fit into its queue as one figure
(netem_enqueue(): both end in qdisc_qstats_drop()). But it is known how much loss chance
explains, and what is above that was the queue.
"""

from __future__ import annotations

import math

from wanlat.emulator.backends import Counters
from wanlat.emulator.rtnetlink import Statistics
from wanlat.topologies.resolve import Impairment

# Six standard deviations, and a few packets: one in 10⁹ such figures is above by chance.
_DEVIATIONS = 6
_FEW = 5
_START = Statistics(0, 0, 0, 0)


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
    """Tell whether drops under an impairment are expected."""
    return impairment.loss_probability > 0 or impairment.rate_bps is not None
