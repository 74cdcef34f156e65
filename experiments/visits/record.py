"""What a bundle holds of visits: ``visits.json``, their events, and what the manifest says."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wanlat.bundle.write import BundleWriter
from wanlat.experiments.visits.budget import Budget, pooled
from wanlat.topologies.units import Duration


@dataclass
class VisitEntry:
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
class VisitsRecord:
    """The visits of all systems of a run, written after each, so that a run that is killed keeps
    the whole ones.
    """

    bundle: BundleWriter
    visits: list[VisitEntry] = field(default_factory=list)
    budgets: dict[str, Budget] = field(default_factory=dict)
    earlier: Sequence[Mapping[str, Any]] = ()
    """Of systems that an earlier attempt completed, as ``visits.json`` has them."""

    def take_over_time(self) -> None:
        """Take in where the time of systems went that an earlier attempt completed."""
        told = self.bundle.manifest.get("round_trips") or {}
        for each in told.get("systems", ()):
            self.budgets[each["system"]] = Budget.from_dict(each)

    def add(self, entry: VisitEntry) -> None:
        """Take in a visit that has ended."""
        self.visits.append(entry)
        visits = [*self.earlier, *(each.to_dict() for each in self.visits)]
        self.bundle.write_json("visits.json", {"visits": visits})

    def failed(self, system: str) -> list[VisitEntry]:
        """Return the visits of a system whose network was not what was asked for."""
        return [each for each in self.visits if each.system == system and not each.passed]

    def event(self, entry: VisitEntry, what: str, t_ns: int | None = None) -> None:
        """Note what begins in a visit: change, idle, calibrate, warmup, measure; or its end."""
        detail = {"visit": entry.number, "requested_rtt_ms": entry.rtt.ms, "what": what}
        self.bundle.event("visit", entry.system, json.dumps(detail), t_ns)

    def note_time(self, system: str, budget: Budget) -> None:
        """Write into the manifest where a system's time went."""
        self.budgets[system] = budget
        visits = len(self.earlier) + len(self.visits)
        self.bundle.write_manifest(round_trips={"visits": visits, **pooled(self.budgets)})
