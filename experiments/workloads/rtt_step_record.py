"""What a bundle holds of visits: ``visits.json``, their events, and what the manifest says."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wanlat.bundle.write import BundleWriter
from wanlat.emulator.calibration.between_sites import longest_s
from wanlat.experiments.config.rtt_steps import RoundTripsSpec
from wanlat.topologies.units import Duration


@dataclass
class RttStep:
    """One visit as ``visits.json`` has it. Instants are CLOCK_MONOTONIC, in ns."""

    system: str
    number: int
    rtt: Duration
    jitter: Duration
    changed_ns: int = 0
    idle_ns: tuple[int, int] = (0, 0)
    calibrated_ns: tuple[int, int] = (0, 0)
    begun_ns: int = 0
    ended_ns: int = 0
    pairs: Sequence[Mapping[str, Any]] = ()
    near: frozenset[tuple[str, str]] = frozenset()
    """The pairs that lead from the site of the node that is asked."""

    @property
    def passed(self) -> bool:
        """Whether every pair was as asked for."""
        return all(pair["verdict"] == "pass" for pair in self.pairs)

    @property
    def measured_rtt_ms(self) -> float | None:
        """The median over the pairs from the site of the node that is asked."""
        known = [
            pair["measured_rtt_ms"]
            for pair in self.pairs
            if (pair["from"], pair["to"]) in self.near and pair["measured_rtt_ms"] is not None
        ]
        return statistics.median(known) if known else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "system": self.system,
            "visit": self.number,
            "requested_rtt_ms": self.rtt.ms,
            "requested_jitter_ms": self.jitter.ms,
            "changed_ns": self.changed_ns,
            "idle_ns": list(self.idle_ns),
            "calibrated_ns": list(self.calibrated_ns),
            "begun_ns": self.begun_ns,
            "ended_ns": self.ended_ns,
            "pairs": [dict(pair) for pair in self.pairs],
            "measured_rtt_ms": self.measured_rtt_ms,
            "verdict": "pass" if self.passed else "fail",
        }


@dataclass
class RttStepsRecord:
    """The visits of all systems of a run, written after each, so that a run that is killed keeps
    the whole ones.
    """

    bundle: BundleWriter
    visits: list[RttStep] = field(default_factory=list)
    budgets: dict[str, Budget] = field(default_factory=dict)

    def add(self, entry: RttStep) -> None:
        """Take in a visit that has ended."""
        self.visits.append(entry)
        visits = [each.to_dict() for each in self.visits]
        self.bundle.write_json("visits.json", {"visits": visits})

    def failed(self, system: str) -> list[RttStep]:
        """Return the visits of a system whose network was not what was asked for."""
        return [each for each in self.visits if each.system == system and not each.passed]

    def event(self, entry: RttStep, what: str, t_ns: int | None = None) -> None:
        """Note what begins in a visit: change, idle, calibrate, warmup, measure; or its end."""
        detail = {"visit": entry.number, "requested_rtt_ms": entry.rtt.ms, "what": what}
        self.bundle.event("visit", entry.system, json.dumps(detail), t_ns)

    def note_time(self, system: str, budget: Budget) -> None:
        """Write into the manifest where a system's time went."""
        self.budgets[system] = budget
        self.bundle.write_manifest(round_trips={"visits": len(self.visits), **pooled(self.budgets)})


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
