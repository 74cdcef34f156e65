"""A fault for as long as a ``with`` block lasts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wanlat.emulator.faults.catalogue import parse
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.faults.timeline import Step, described
from wanlat.emulator.lab import Lab
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import WanlatError


class Faults:
    """Breaks things in a lab.

    with wanlat_fault("kill", "n2"): ...
    with wanlat_fault("slow", "dc1/dc2", rtt="200ms"): ...

    Kinds, targets and settings are those of a drill's file (docs/reference/faults.md), a setting's
    `-` an underscore here. When the block ends, however it ends, the fault is undone; one that
    cannot be applied or undone raises FaultFailed.
    """

    def __init__(
        self, lab: Lab, cluster: Cluster | None, event: Callable[[str, str, str, int], None]
    ) -> None:
        """``event`` receives its kind, subject, detail, and instant (CLOCK_MONOTONIC, ns)."""
        self._lab = lab
        self._event = event
        self._scene = Scene(lab, cluster.nodes if cluster else {})
        self._number = 0

    @contextmanager
    def __call__(self, kind: str, target: str | list[str], **settings: Any) -> Iterator[int]:
        """Break ``target`` for a while; yields the instant of effect (CLOCK_MONOTONIC, ns)."""
        plain = {key.replace("_", "-"): value for key, value in settings.items()}
        fault = parse(kind, target, plain, self._lab.plan, {})
        fault.check(self._lab)
        self._number += 1
        step = Step(self._number, fault, 0, None)
        detail = json.dumps(described(step))
        try:
            started_ns = fault.begin(self._scene)
        except BaseException:
            with suppress(WanlatError):  # part of it may have been applied
                fault.end(self._scene)
            raise
        self._event("inject", step.title, detail, started_ns)
        try:
            yield started_ns
        finally:
            self._event("heal", step.title, detail, fault.end(self._scene))
