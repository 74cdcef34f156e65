"""A program that writes down when it ran, so that what happened to it can be measured."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wanlat.emulator.faults.fault import Fault, Scene
from wanlat.emulator.faults.timeline import Mark, Step, Timeline
from wanlat.emulator.lab import Lab
from wanlat.systems.engine.process import NodeProcess

EVERY_S = 0.005
BEAT = f"""
import os, sys, time
beats = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    os.write(beats, b"%d %d\\n" % (os.getpid(), time.monotonic_ns()))
    time.sleep({EVERY_S})
"""


class Heart(NodeProcess):
    """A service whose every beat is in a file of its node."""

    def __init__(self, lab: Lab, node: str, argv: Sequence[str] | None = None) -> None:
        self.home = lab.node(node).host_directory
        argv = argv or [sys.executable, "-S", "-E", "-c", BEAT, "beats"]
        super().__init__("Heart", node, list(argv), {}, self.home / "log")

    def beats_ns(self, name: str = "beats") -> np.ndarray:
        """Return the instants of all beats so far."""
        return self._rows(name)[:, 1]

    def pids(self, name: str = "beats") -> list[int]:
        """Return the processes that have beaten, in order."""
        return list(dict.fromkeys(self._rows(name)[:, 0].tolist()))

    def beats_between(self, begin_ns: int, end_ns: int, name: str = "beats") -> int:
        """Return how often it has beaten after one instant and before another."""
        beats = self.beats_ns(name)
        return int(((beats > begin_ns) & (beats < end_ns)).sum())

    def await_beat(self, name: str = "beats", after_ns: int = 0) -> None:
        """Wait until it has beaten after an instant."""
        deadline = time.monotonic() + 60
        while not (self._rows(name)[-1:, 1] > after_ns).any():
            assert time.monotonic() < deadline, f"{self.node} does not beat: {self.log.read_text()}"
            time.sleep(0.005)

    def clear(self) -> None:
        """End it and forget all it has done."""
        if self.process is not None:
            self.process.send_signal_to_family(signal.SIGKILL)
            self.process.wait(10)
        for path in self.home.iterdir():
            path.unlink()

    def _rows(self, name: str) -> np.ndarray:
        path = self.home / name
        text = path.read_text() if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].split()
        return np.array(lines, dtype=np.int64).reshape(-1, 2)


class Played:
    """A timeline that runs in a thread, and its marks."""

    def __init__(
        self,
        scene: Scene,
        faults: Sequence[tuple[Fault, float, float | None]],
        note: Callable[[Played, Mark], None] = lambda *_: None,
    ) -> None:
        steps = [
            Step(number, fault, round(at * 1e9), None if until is None else round(until * 1e9))
            for number, (fault, at, until) in enumerate(faults, start=1)
        ]
        self.marks: list[Mark] = []
        self.error: BaseException | None = None
        self._note = note
        self._due_ns = {(step.id, "inject"): step.at_ns for step in steps}
        self._due_ns |= {(step.id, "heal"): step.until_ns for step in steps if step.until_ns}
        self.timeline = Timeline(scene, steps, self._take)
        self.origin_ns = time.monotonic_ns() + 20_000_000
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> Played:
        """Wait for its end, and raise what it raised."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self

    def marked(self, kind: str, step: int | None = None) -> list[int]:
        """Return the instants of the marks of one kind, of one step or all."""
        return sorted(
            mark.t_ns for mark in self.marks if mark.kind == kind and step in (None, mark.step.id)
        )

    def due(self, kind: str, step: int = 1) -> int:
        """Return the instant before which a step does not begin (inject), or end (heal)."""
        return self.origin_ns + self._due_ns[step, kind]

    def await_marks(self, kind: str, count: int) -> None:
        """Wait until there are so many marks of one kind."""
        deadline = time.monotonic() + 60
        while len(self.marked(kind)) < count:
            assert time.monotonic() < deadline, f"{count} times {kind} never came"
            time.sleep(0.01)

    def _take(self, mark: Mark) -> None:
        self.marks.append(mark)
        self._note(self, mark)

    def _run(self) -> None:
        try:
            self.timeline.run(self.origin_ns)
        except BaseException as error:
            self.error = error


def play(scene: Scene, *faults: Any) -> Played:
    """Run a timeline of ``(fault, at_s, until_s)`` to its end."""
    return Played(scene, faults).join()
