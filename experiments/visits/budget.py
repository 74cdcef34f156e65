"""Where the time of a study of round trips goes: into requests, and into what it states besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wanlat.emulator.calibration.between_sites import longest_s
from wanlat.experiments.visits.model import RoundTripsSpec


def stated_settling_s(spec: RoundTripsSpec) -> float:
    """Return how long all visits of a system settle and are calibrated, at most."""
    calibrating_s = sum(longest_s(rtt.s) for rtt in spec.rtts)
    return spec.visits * (len(spec.rtts) * spec.settle.s + calibrating_s)


@dataclass
class Budget:
    """One system's time, in seconds. ``latencies_s`` is the sum over all requests of the visits,
    to warm up and measured; ``startup`` is what came before them, by its name: the lab, its proof,
    the cluster, the objects.
    """

    stated_settling_s: float
    latencies_s: float = 0.0
    settling_s: float = 0.0
    total_s: float = 0.0
    startup: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Budget:
        """Return what ``to_dict`` made it of."""
        stated, took = document["stated"], document["took"]
        return cls(
            stated["settling_s"],
            took["latencies_s"],
            took["settling_s"],
            took["total_s"],
            stated["startup"],
        )

    @property
    def startup_s(self) -> float:
        """Return how long everything took before the first visit."""
        return sum(self.startup.values())

    def progress(self) -> str:
        """Say how far it has come."""
        return (
            f"{self.latencies_s:.0f} s of requests, settling {self.settling_s:.0f} s of "
            f"{self.stated_settling_s:.0f} s stated"
        )

    def remark(self) -> str:
        """Say what it came to."""
        return (
            f"{self.total_s:.0f} s in all: {self.latencies_s:.0f} s of requests, "
            f"{self.settling_s:.0f} s of settling and calibrating ({self.stated_settling_s:.0f} s "
            f"stated), {self.startup_s:.0f} s to start ({self._parts()})"
        )

    def _parts(self) -> str:
        return ", ".join(f"{name} {took_s:.0f} s" for name, took_s in self.startup.items())

    def to_dict(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        return {
            "stated": {
                "settling_s": round(self.stated_settling_s, 3),
                "startup_s": round(self.startup_s, 3),
                "startup": {name: round(took_s, 3) for name, took_s in self.startup.items()},
            },
            "took": {
                "latencies_s": round(self.latencies_s, 3),
                "settling_s": round(self.settling_s, 3),
                "startup_s": round(self.startup_s, 3),
                "total_s": round(self.total_s, 3),
            },
        }


def pooled(budgets: Mapping[str, Budget]) -> dict[str, Any]:
    """Return the time of all systems of a run together, and that of each, for the manifest."""
    whole = Budget(
        stated_settling_s=sum(each.stated_settling_s for each in budgets.values()),
        latencies_s=sum(each.latencies_s for each in budgets.values()),
        settling_s=sum(each.settling_s for each in budgets.values()),
        total_s=sum(each.total_s for each in budgets.values()),
        startup={
            name: sum(each.startup.get(name, 0.0) for each in budgets.values())
            for name in dict.fromkeys(key for each in budgets.values() for key in each.startup)
        },
    )
    systems = [{"system": name, **each.to_dict()} for name, each in budgets.items()]
    return {**whole.to_dict(), "systems": systems}
