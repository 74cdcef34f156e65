"""How many packets of so many may be lost, doubled or damaged, by what was requested."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from scipy import special

from wanlat.emulator.calibration.delays import two_sided
from wanlat.topologies.resolve import GilbertElliott, Impairment

UNNOTICED_CORRUPTION = 0.2
"""The part of flipped bits that may hit bytes which every router writes anew: link addresses."""


def lost_part(steps: Iterable[Impairment]) -> float:
    """Return the part of packets that a path loses."""
    return 1 - math.prod(1 - step.loss_probability for step in steps)


def corrupted_part(steps: Iterable[Impairment]) -> float:
    """Return the part of packets that a path flips a bit of."""
    return 1 - math.prod(1 - step.corrupt for step in steps)


def spoilt_part(steps: Sequence[Impairment]) -> float:
    """Return the part of packets that do not arrive whole."""
    return 1 - (1 - lost_part(steps)) * (1 - corrupted_part(steps))


def duplicated_part(steps: Iterable[Impairment]) -> float:
    """Return how many copies more a path makes of a packet, on average."""
    return math.prod(1 + step.duplicate for step in steps) - 1


def p_value(count: int, total: int, part: float, inflation: float = 1.0) -> float:
    """Return how probable it is that ``count`` of ``total`` is at least that far from ``part``.

    Binomial, twice the smaller tail. With ``inflation`` (the variance by that of independent
    events), normal.
    """
    if total == 0:
        return 1.0
    if part <= 0 or part >= 1:
        return 1.0 if count == total * min(1.0, max(0.0, part)) else 0.0
    if inflation == 1:
        at_most = special.bdtr(count, total, part)
        at_least = special.bdtrc(count - 1, total, part) if count else 1.0
        return float(min(1.0, 2 * min(at_most, at_least)))
    return two_sided((count - total * part) / math.sqrt(total * part * (1 - part) * inflation))


def p_value_between(count: int, total: int, least: float, most: float) -> float:
    """The same for a part that is only known to lie between two."""
    part = min(max(count / total if total else least, least), most)
    return p_value(count, total, part)


def inflation(steps: Sequence[Impairment]) -> float:
    """Return by how much bursts raise the variance of the number of losses; 1 without any."""
    return max((_of_chain(step.bursts) for step in steps if step.bursts is not None), default=1.0)


def _of_chain(bursts: GilbertElliott) -> float:
    """Return the variance of a chain's losses by that of independent ones, in the long run.

    The covariance of losses k packets apart is (pi_G pi_B) (k - h)^2 (1 - p - r)^k.
    """
    loss = bursts.loss
    if loss in (0, 1) or bursts.p + bursts.r == 0:
        return 1.0
    memory = 1 - bursts.p - bursts.r
    if memory >= 1:
        return math.inf
    good, bad = bursts.r / (bursts.p + bursts.r), bursts.p / (bursts.p + bursts.r)
    covariance = good * bad * (bursts.k - bursts.h) ** 2 * memory / (1 - memory)
    return max(1.0, 1 + 2 * covariance / (loss * (1 - loss)))


def mean_burst(bursts: GilbertElliott) -> float:
    """Return the mean number of packets that are lost one after the other.

    The losses by the runs of them: a run ends where a lost packet is followed by a delivered one.
    """
    if bursts.loss in (0, 1) or bursts.p + bursts.r == 0:
        return 1 / (1 - bursts.loss) if bursts.loss < 1 else math.inf
    good, bad = bursts.r / (bursts.p + bursts.r), bursts.p / (bursts.p + bursts.r)
    lost = {"good": good * (1 - bursts.k), "bad": bad * (1 - bursts.h)}
    delivered_next = lost["good"] * ((1 - bursts.p) * bursts.k + bursts.p * bursts.h)
    delivered_next += lost["bad"] * ((1 - bursts.r) * bursts.h + bursts.r * bursts.k)
    return sum(lost.values()) / delivered_next if delivered_next else math.inf
