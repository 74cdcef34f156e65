"""What is kept of a drill while it runs: how far it got, and what is to be told of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wanlat.bundle.write import BundleWriter
from wanlat.experiments.drill.prepare import PreparedDrill
from wanlat.experiments.drill.progress import Report

Reached = Literal[
    "lab",
    "calibrated",
    "ready",
    "filled",
    "before",
    "during",
    "after",
    "healed",
    "restarted",
    "done",
]
"""How far a drill got: the network is up; it is proved right; the cluster serves; the first
objects are there; a phase has begun; every object was looked for after the heal; and after the
restart; the lab is gone."""


@dataclass
class Outcome:
    """How a drill ended, and where its bundle is."""

    directory: Path
    status: str = "running"  # complete | interrupted | failed
    reason: str | None = None
    reached: Reached | None = None
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What did not hold though the drill ran to its end: a link that is not again what it was."""
    is_disk_full: bool = False
    """Whether it ended because the disk that the bundle lies on is full."""


@dataclass
class Record:
    """One run: what it is to do, where it writes, and whether it is to stop."""

    prepared: PreparedDrill
    bundle: BundleWriter
    outcome: Outcome
    report: Report
    tell_every_s: float
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def system(self) -> str:
        """The name of the system under test."""
        return self.prepared.system.name

    def tell(self, stage: str, done: float = 0, total: float | None = None) -> None:
        """Show what is being done, how much of it is, and of how much."""
        self.report(f"{self.system}: {stage}", done, total)

    def reach(self, stage: Reached) -> None:
        """Have it on disk how far it got."""
        self.outcome.reached = stage
        self.bundle.event("stage", stage)
        self.bundle.write_manifest(reached=stage)

    def warn(self, text: str) -> None:
        """Have a reader of the bundle told."""
        self.outcome.warnings.append(text)
        self.bundle.write_manifest(warnings=self.outcome.warnings)
