"""In which order RTTs are visited."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def schedule(rtts: Sequence[T], times: int, seed: int) -> tuple[T, ...]:
    """Return every RTT ``times`` times, in an order that the seed decides.

    Shuffled within each repetition of all of them (randomized blocks), so that a machine that
    slows down in the course of a run meets all RTTs alike, and a run that is cut short has visited
    each as often as the others, give or take one.
    """
    order = random.Random(f"{seed}/schedule")
    visits: list[T] = []
    for _ in range(times):
        block = list(rtts)
        order.shuffle(block)
        visits += block
    return tuple(visits)
