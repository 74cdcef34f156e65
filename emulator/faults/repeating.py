"""Faults that strike again and again, until they end: a crash loop, a flapping link."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from wanlat.emulator.faults.fault import Fault, Hit, Scene

_LONGEST_OCCURRENCE_S = 60.0


class Repeating(Fault):
    """Strikes at its beginning and every ``period``, and heals after the part ``down`` of it.

    Both are settings. Each occurrence is reported: ``{"occurrence": 1, "state": "down"}``, then
    ``"up"``. A beat that a slow occurrence has run over is left out, so that the others keep
    their times.
    """

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self.period_ns: int = self.settings.period.ns
        self.down_ns = round(self.period_ns * self.settings.down.value)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_down = False
        self._occurrences = 0

    @abstractmethod
    def strike(self, scene: Scene) -> int:
        """Break it; return the instant of effect."""

    @abstractmethod
    def heal(self, scene: Scene) -> int:
        """Undo one occurrence; return the instant at which that was in force."""

    def begin(self, scene: Scene) -> int:
        """Strike for the first time, and leave the rest to a thread."""
        first = self._strike(scene)
        self._thread = threading.Thread(
            target=self._go_on, args=(scene, first), name=f"{self.kind} {self.subject}", daemon=True
        )
        self._thread.start()
        return first

    def end(self, scene: Scene) -> int:
        """Stop striking, and heal what is broken."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_OCCURRENCE_S)
        return self._heal(scene) if self._is_down else time.monotonic_ns()

    def _go_on(self, scene: Scene, first_ns: int) -> None:
        try:
            beat = 0
            while self._waits_until(first_ns + beat * self.period_ns + self.down_ns, scene):
                self._heal(scene)
                behind = (time.monotonic_ns() - first_ns) // self.period_ns
                beat = max(beat, behind) + 1
                if not self._waits_until(first_ns + beat * self.period_ns, scene):
                    return
                self._strike(scene)
        except BaseException as error:
            scene.on_failure(self, error)

    def _strike(self, scene: Scene) -> int:
        self._occurrences += 1
        self._is_down = True
        instant = self.strike(scene)
        scene.on_occurrence(self, instant, {"occurrence": self._occurrences, "state": "down"})
        return instant

    def _heal(self, scene: Scene) -> int:
        instant = self.heal(scene)
        self._is_down = False
        scene.on_occurrence(self, instant, {"occurrence": self._occurrences, "state": "up"})
        return instant

    def _waits_until(self, due_ns: int, scene: Scene) -> bool:
        """Wait for an instant; return False if it is over before that."""
        while not (self._over.is_set() or scene.stopping.is_set()):
            left_s = (due_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return True
            self._over.wait(min(left_s, 0.2))  # `stopping` is another's, and looked at besides
        return False
