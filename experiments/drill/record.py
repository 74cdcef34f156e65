"""What is kept of a drill while it runs: how far it got, and what is to be told of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal

from wanlat.bundle.write import BundleWriter
from wanlat.experiments.drill.prepare import PreparedDrill
from wanlat.experiments.session import Outcome, Report, Session

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
objects are there; a phase has begun; every object was verified after the heal; and after the
restart; the lab is gone."""


@dataclass
class Record:
    """One run: what it is to do, where it writes, and whether it is to stop."""

    prepared: PreparedDrill
    session: Session
    tell_every_s: float
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def bundle(self) -> BundleWriter:
        """Where it writes."""
        return self.session.bundle

    @property
    def outcome(self) -> Outcome:
        """How it went so far."""
        return self.session.outcome

    @property
    def report(self) -> Report:
        """Who is told how far it is."""
        return self.session.recording.report

    @property
    def system(self) -> str:
        """The name of the system under test."""
        return self.prepared.system.name

    def tell(self, stage: str, done: float = 0, total: float | None = None) -> None:
        """Show what is being done, how much of it is, and of how much."""
        self.session.tell(stage, done, total)

    def reach(self, stage: Reached) -> None:
        """Have it on disk how far it got."""
        self.outcome.reached = stage
        self.bundle.event("stage", stage)
        self.bundle.write_manifest(reached=stage)

    def warn(self, text: str) -> None:
        """Have a reader of the bundle told."""
        self.session.recording.warn(text)
