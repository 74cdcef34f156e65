"""How far a network may be off before it is wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """How far a pair may be off. Times in ms.

    ``median_ms`` holds from ``near_ms`` RTT on, ``near_median_ms`` below; ``p99_ms`` always;
    ``edge_ms`` is how far a jittered round trip may lie outside the range it was asked for;
    ``rate`` is a fraction. ``alpha``: what was measured must not be less probable than this, if
    the network did what was asked of it. It is small because a lab has hundreds of figures, all of
    which a right network must pass.
    """

    median_ms: float = 0.5
    near_median_ms: float = 0.15
    near_ms: float = 2.0
    p99_ms: float = 2.0
    edge_ms: float = 2.0
    rate: float = 0.02
    alpha: float = 1e-4

    def median_for(self, rtt_ms: float) -> float:
        """Return the tolerated median error at a requested round-trip time."""
        return self.median_ms if rtt_ms >= self.near_ms else self.near_median_ms

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
