"""How far a network may be off before it is wrong, and how many probes show that."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """How far a pair may be off. Times in ms.

    ``median_ms`` holds from ``near_ms`` RTT on, ``near_median_ms`` below; ``p99_ms`` always;
    ``edge_ms`` is how far a jittered round trip may lie outside the requested range;
    ``rate`` is a fraction. ``alpha``: what was measured must not be less probable than this, if
    the network did what was requested. It is small because a lab has hundreds of figures, all of
    which a right network must pass. ``missed`` is how often a wrong one may pass the first round:
    one that holds up ``late_share`` of its packets, or has delays of a distribution that is
    ``distance`` away from the requested one.
    """

    median_ms: float = 0.5
    near_median_ms: float = 0.15
    near_ms: float = 2.0
    p99_ms: float = 2.0
    edge_ms: float = 2.0
    rate: float = 0.02
    alpha: float = 1e-4
    missed: float = 0.05
    late_share: float = 0.03
    distance: float = 0.2

    def median_for(self, rtt_ms: float) -> float:
        """Return the tolerated median error at a requested round-trip time."""
        return self.median_ms if rtt_ms >= self.near_ms else self.near_median_ms

    @property
    def late_ms(self) -> float:
        """How late the machine may make a packet on one link without spoiling its delay.

        A round trip crosses the link between two sites twice.
        """
        return self.p99_ms / 2

    @property
    def echoes(self) -> int:
        """How many echoes show, none of them being late, that less than ``late_share`` are: 99."""
        return math.ceil(math.log(self.missed) / math.log(1 - self.late_share))

    @property
    def delays(self) -> int:
        """How many delays show a distribution that is ``distance`` off: 298.

        By the inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant (1990), once
        for the limit that a right one keeps and once for how far a wrong one stays above it.
        """
        kept = math.sqrt(math.log(2 / max(self.alpha, 1e-12)) / 2)
        above = math.sqrt(math.log(1 / self.missed) / 2)
        return math.ceil(((kept + above) / self.distance) ** 2)

    def as_json(self) -> dict[str, float]:
        """Return the figures for ``calibration.json``."""
        return {
            "median_ms": self.median_ms,
            "near_median_ms": self.near_median_ms,
            "near_ms": self.near_ms,
            "p99_ms": self.p99_ms,
            "edge_ms": self.edge_ms,
            "rate": self.rate,
            "ks_alpha": self.alpha,
        }
