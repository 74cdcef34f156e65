"""A program that writes down when it ran, so that what happened to it can be measured."""

from __future__ import annotations

import functools
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from emulator.faults.fault import Fault, Scene
from emulator.faults.timeline import Mark, Step, Timeline
from emulator.lab import Lab
from systems.nodes import NodeProcess

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

    def silence(self, at_ns: int, name: str = "beats") -> tuple[int, int]:
        """Return the last beat until an instant and the first one after it."""
        beats = self.beats_ns(name)
        after = int(np.searchsorted(beats, at_ns, side="right"))
        return int(beats[after - 1]), int(beats[after])

    def await_beat(self, name: str = "beats", after_ns: int = 0) -> None:
        """Wait until it has beaten after an instant."""
        deadline = time.monotonic() + 10
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


class Noise:
    """What the machine itself does to sleeps meanwhile, since others may keep it busy."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._worst_s = 0.0
        self._slept_ns = time.monotonic_ns()
        self._thread = threading.Thread(target=self._sleep, daemon=True)

    def __enter__(self) -> Noise:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def worst_s(self) -> float:
        """By how much the latest of its sleeps so far was late."""
        return max(self._worst_s, (time.monotonic_ns() - self._slept_ns) / 1e9 - EVERY_S)

    @property
    def slack_ns(self) -> int:
        """How much earlier than told a start may have been: it is told once it is known."""
        return round((0.05 + 4 * self.worst_s) * 1e9)

    def near(self, expected: Any, within: float = 0.05) -> Any:
        """Return what is as expected within that, and what several processes may be late (s).

        A fault goes through four of them: the timeline, the lab, the program, and whoever looks.
        """
        return pytest.approx(expected, abs=within + 4 * self.worst_s)

    def _sleep(self) -> None:
        while not self._over.is_set():
            time.sleep(EVERY_S)
            now_ns = time.monotonic_ns()
            self._worst_s = max(self._worst_s, (now_ns - self._slept_ns) / 1e9 - EVERY_S)
            self._slept_ns = now_ns


def in_some_round(test: Callable[..., None]) -> Callable[..., None]:
    """Have a test of times pass when one of five rounds does: others may keep the machine busy."""

    @functools.wraps(test)
    def rounds(**fixtures: Any) -> None:
        for number in range(5):
            try:
                return test(**fixtures)
            except AssertionError:
                if number == 4:
                    raise
        return None

    return rounds


class Played:
    """A timeline that runs in a thread, and what it has told."""

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
        self.timeline = Timeline(scene, steps, self._told)
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

    def told(self, kind: str, step: int | None = None) -> list[int]:
        """Return the instants of the marks of one kind, of one step or all."""
        return sorted(
            mark.t_ns for mark in self.marks if mark.kind == kind and step in (None, mark.step.id)
        )

    def _told(self, mark: Mark) -> None:
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
