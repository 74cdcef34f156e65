"""What a bundle says of RTT steps: ``rtt_steps.json``, their events, and where the time went."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wanlat.bundle.documents import RttStep, RttStepPair, RttSteps
from wanlat.bundle.write import BundleWriter
from wanlat.emulator.calibration.between_sites import BetweenSites, longest_s, pairs_between_sites
from wanlat.emulator.lab import Lab
from wanlat.experiments.config.rtt_steps import RoundTripsSpec
from wanlat.topologies.resolve import Plan


class StepCalibration(BetweenSites):
    """Measures the RTT between sites at each RTT step. A context manager."""

    def __init__(self, lab: Lab, plan: Plan, target: str, seed: int) -> None:
        pairs = pairs_between_sites(plan, target, seed)
        here = plan.node(target).site
        self._near = {pair for pair in pairs if plan.node(pair[0]).site == here}
        super().__init__(lab, pairs)

    def into(self, step: RttStep) -> None:
        """Measure every pair as the lab is now, and put what was found into the step.

        Its RTT is the median over the pairs that lead from the target node's site.
        """
        began_ns = time.monotonic_ns()
        step.pairs = [RttStepPair.model_validate(pair) for pair in self.measure()]
        near = (p.measured_rtt_ms for p in step.pairs if (p.source, p.destination) in self._near)
        known = [rtt_ms for rtt_ms in near if rtt_ms is not None]
        step.measured_rtt_ms = statistics.median(known) if known else None
        passed = all(pair.verdict == "pass" for pair in step.pairs)
        step.verdict = "pass" if passed else "fail"
        step.calibrated_ns = (began_ns, time.monotonic_ns())


def worst_of(step: RttStep) -> RttStepPair:
    """Return a pair of a step that failed."""
    return next(pair for pair in step.pairs if pair.verdict != "pass")


@dataclass
class RttStepsRecord:
    """The RTT steps of all systems of a run, written after each, so that a run that is killed
    keeps the whole ones.
    """

    bundle: BundleWriter
    steps: list[RttStep] = field(default_factory=list)
    times: dict[str, TimeBudget] = field(default_factory=dict)

    def add(self, step: RttStep) -> None:
        """Take in a step that has ended."""
        self.steps.append(step)
        self.bundle.write(RttSteps(rtt_steps=self.steps))

    def failed(self, system: str) -> list[RttStep]:
        """Return the steps of a system whose network was not what was requested."""
        return [each for each in self.steps if each.system == system and each.verdict != "pass"]

    def event(self, step: RttStep, what: str, t_ns: int | None = None) -> None:
        """Note what begins in a step: change, idle, calibrate, warmup, measure; or its end."""
        known = step.model_dump(include={"rtt_step", "requested_rtt_ms"})
        self.bundle.event("rtt step", step.system, json.dumps(known | {"what": what}), t_ns)

    def note_time(self, system: str, budget: TimeBudget) -> None:
        """Write into the manifest where a system's time went, and that of all together."""
        self.times[system] = budget
        of_each = {name: each.to_dict() for name, each in self.times.items()}
        systems = [{"system": name, **_sum([each])} for name, each in of_each.items()]
        said = {"rtt_steps": len(self.steps), **_sum([*of_each.values()]), "systems": systems}
        self.bundle.write_manifest(round_trips=said)


@dataclass
class TimeBudget:
    """One system's time, in seconds. ``latencies_s`` is the sum over all requests of the steps,
    to warm up and measured; ``startup`` is what came before them, by its name: the lab, its proof,
    the cluster, the objects. Settling includes calibrating.
    """

    stated_settling_s: float
    latencies_s: float = 0.0
    settling_s: float = 0.0
    total_s: float = 0.0
    startup: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: RoundTripsSpec) -> TimeBudget:
        """Return that of a study: how long all steps settle and are calibrated, at most."""
        calibrating_s = sum(longest_s(rtt.s) for rtt in spec.rtts)
        return cls(spec.repeats * (len(spec.rtts) * spec.settle.s + calibrating_s))

    @property
    def startup_s(self) -> float:
        """How long everything took before the first step."""
        return sum(self.startup.values())

    def progress(self) -> str:
        """Say how far it has come."""
        return (
            f"{self.latencies_s:.0f} s of requests, settling {self.settling_s:.0f} s of "
            f"{self.stated_settling_s:.0f} s stated"
        )

    def remark(self) -> str:
        """Say what it came to."""
        parts = ", ".join(f"{name} {took_s:.0f} s" for name, took_s in self.startup.items())
        return (
            f"{self.total_s:.0f} s in all: {self.latencies_s:.0f} s of requests, "
            f"{self.settling_s:.0f} s of settling and calibrating ({self.stated_settling_s:.0f} s "
            f"stated), {self.startup_s:.0f} s to start ({parts})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        stated = {"settling_s": self.stated_settling_s, "startup_s": self.startup_s}
        took = {"latencies_s": self.latencies_s, "settling_s": self.settling_s}
        return {
            "stated": {**stated, "startup": self.startup},
            "took": {**took, "startup_s": self.startup_s, "total_s": self.total_s},
        }


def _sum(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the numbers of nested mappings, key by key; to the millisecond."""
    total: dict[str, Any] = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        values = [part[key] for part in parts if key in part]
        nested = isinstance(values[0], Mapping)
        total[key] = _sum(values) if nested else round(sum(values), 3)
    return total
