"""Waiting for packets that are still on their way."""

from __future__ import annotations

import time

STALL_S = 0.05
"""A wait that ends so much later than it should: the machine, and packets with it, stood still."""

_STEP_S = 0.01


def wait(patience_s: float) -> None:
    """Wait, in steps, so that a stall of the machine uses up one step and not all of the wait."""
    steps = max(1, round(patience_s / _STEP_S))
    for _ in range(steps):
        time.sleep(patience_s / steps)
