"""The faults of a drill at work in a thread of their own, and their traces in the bundle."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from wanlat.emulator.calibration import blame
from wanlat.emulator.calibration.again import recalibrate
from wanlat.emulator.faults.fault import Scene, Service
from wanlat.emulator.faults.timeline import Mark, Step, Timeline
from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.progress import Live
from wanlat.experiments.drill.record import Record

_UNDOING_S = 3.0


class Breaking:
    """Begins and ends the faults; measures links that were broken again once all is healed."""

    def __init__(
        self, record: Record, lab: Lab, services: Mapping[str, Service], live: Live
    ) -> None:
        self._record = record
        self._lab = lab
        self._live = live
        scene = Scene(lab, services)
        self._timeline = Timeline(scene, record.prepared.steps, self._note)
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._healed = threading.Event()

    def start(self, origin_ns: int) -> None:
        """Let the faults' times count from an instant: the beginning of `during`."""
        self._thread = threading.Thread(
            target=self._run, args=(origin_ns,), name="faults", daemon=True
        )
        self._thread.start()

    @property
    def is_healed(self) -> bool:
        """Whether all faults have been undone."""
        return self._healed.is_set()

    def check(self) -> None:
        """Raise what a fault failed with."""
        if self._error is not None:
            raise self._error

    def wait(self, timeout_s: float) -> bool:
        """Wait until healed links are measured too; return whether they are."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        self.check()
        return self._thread is None or not self._thread.is_alive()

    def cut_short(self) -> None:
        """Undo what is in force, which may outlive the lab; begin nothing more."""
        # In a thread: what hangs must not keep the drill from ending.
        undoing = threading.Thread(target=self._cut_short, name="undoing faults", daemon=True)
        undoing.start()
        undoing.join(_UNDOING_S)

    def _cut_short(self) -> None:
        try:
            self._timeline.cut_short()
        except BaseException as error:
            self._error = self._error or error

    def _run(self, origin_ns: int) -> None:
        try:
            self._timeline.run(origin_ns)
            self._healed.set()
            self._calibrate_again()
        except BaseException as error:  # for the thread that waits
            self._error = error
        finally:
            self._healed.set()

    def _note(self, mark: Mark) -> None:
        self._record.bundle.event(mark.kind, mark.step.title, json.dumps(mark.detail), mark.t_ns)
        if mark.kind == "inject" and mark.step.fault.is_undone:
            self._live.broken(mark.step.id, _label(mark.step))
        elif mark.kind == "heal":
            self._live.mended(mark.step.id)

    def _calibrate_again(self) -> None:
        steps = self._record.prepared.steps
        directions = dict.fromkeys(each for step in steps for each in step.fault.directions)
        if not directions or self._record.stop.is_set():
            return
        for measured in recalibrate(self._lab, tuple(directions)):
            self._tell_of(measured)

    def _tell_of(self, measured: Mapping[str, Any]) -> None:
        subject = f"{measured['from']}->{measured['to']}"
        self._record.bundle.event("recalibrated", subject, json.dumps(measured))
        if measured["verdict"] == "fail":
            why = "; ".join(measured.get("reasons", ())) or "it is off"
            self._record.outcome.failures.append(
                f"The link {subject} is not again what the topology asks for after its fault was "
                f"healed: {why}. {blame([measured])} What was measured after the heal is of "
                "a network that is not as it was."
            )


def _label(step: Step) -> str:
    """A fault in few words: ``slow n2, +200ms``."""
    fault = step.fault
    return f"{fault.kind} {fault.subject}{f', {fault.detail}' if fault.detail else ''}"
