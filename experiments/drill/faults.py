"""A drill's faults at work beside its requests, and their traces in the bundle."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from wanlat.bundle.write import BundleWriter
from wanlat.emulator.calibration import blame
from wanlat.emulator.calibration.live import recalibrate
from wanlat.emulator.faults.fault import Scene, Service
from wanlat.emulator.faults.timeline import Mark, Step, Timeline
from wanlat.emulator.lab import Lab
from wanlat.emulator.process import Process, how_it_ended
from wanlat.experiments.requests import Workers
from wanlat.experiments.session import Session
from wanlat.systems.engine.process import NodeProcess

_UNDOING_S = 3.0


class RecordedService:
    """A node's service that faults may end and start, with its ends and beginnings on record.

    That a process starts is the event ``started``; that one ends by itself is ``died``.
    """

    def __init__(self, service: NodeProcess, bundle: BundleWriter) -> None:
        self._service = service
        self._bundle = bundle
        self._lock = threading.Lock()
        self._ended_on_purpose: set[int] = set()
        if service.process is not None:
            service.process.when_ended(self._note_end)

    @property
    def node(self) -> str:
        """The node's name."""
        return self._service.node

    @property
    def process(self) -> Process | None:
        """The process that was started last."""
        return self._service.process

    @property
    def is_up(self) -> bool:
        """Whether there is a process."""
        return self.process is not None and self.process.poll() is None

    def start(self, lab: Lab) -> None:
        """Start it anew."""
        self._service.start(lab)
        assert self.process is not None
        self._bundle.event("started", self.node)
        self.process.when_ended(self._note_end)

    def stop(self, how: int = signal.SIGKILL) -> None:
        """End it by a signal, on purpose."""
        with self._lock:
            if self.process is not None:
                self._ended_on_purpose.add(id(self.process))
        self._service.stop(how)

    def _note_end(self, process: Process) -> None:
        code = process.poll()
        with self._lock:
            is_surprise = id(process) not in self._ended_on_purpose
        if code is None or not is_surprise:  # None: it ended with the lab
            return
        detail = json.dumps({"exit_code": code, "how": how_it_ended(code), "pid": process.pid})
        self._bundle.event("died", self.node, detail, process.ended_ns)


class FaultInjection:
    """Begins and ends the faults in a thread; calibrates links that were broken once they are
    healed.
    """

    def __init__(
        self,
        session: Session,
        lab: Lab,
        services: Mapping[str, Service],
        steps: Sequence[Step],
        stop: threading.Event,
    ) -> None:
        """``stop`` is set when a fault fails."""
        self._session, self._lab, self._steps, self._stop = session, lab, steps, stop
        self._timeline = Timeline(Scene(lab, services), steps, self._note)
        self._thread: Workers | None = None
        self._healed = threading.Event()

    def start(self, origin_ns: int) -> None:
        """Let the faults' times count from an instant: the beginning of `during`."""
        self._thread = Workers({"faults": lambda: self._run(origin_ns)}, self._stop)
        self._thread.start()

    @property
    def is_healed(self) -> bool:
        """Whether all faults have been undone."""
        return self._healed.is_set()

    @property
    def in_force(self) -> list[str]:
        """The faults that are, in few words each: ``slow n2, +200ms``."""
        faults = [step.fault for step in self._timeline.in_force if step.fault.is_undone]
        return [
            f"{fault.kind} {fault.subject}{f', {fault.detail}' if fault.detail else ''}"
            for fault in faults
        ]

    def check(self) -> None:
        """Raise what a fault failed with."""
        if self._thread is not None:
            self._thread.check()

    def wait(self, timeout_s: float) -> bool:
        """Wait until healed links are measured too; return whether they are."""
        is_done = self._thread is None or self._thread.join(timeout_s)
        self.check()
        return is_done

    def cut_short(self) -> None:
        """Undo what is in force, which may outlive the lab; begin nothing more."""

        def undo() -> None:
            with suppress(BaseException):  # the drill fails already, with what comes first
                self._timeline.cut_short()

        # In a thread: what hangs must not keep the drill from ending.
        undoing = threading.Thread(target=undo, name="undoing faults", daemon=True)
        undoing.start()
        undoing.join(_UNDOING_S)

    def _run(self, origin_ns: int) -> None:
        try:
            self._timeline.run(origin_ns)
        finally:
            self._healed.set()
        directions = dict.fromkeys(
            direction for step in self._steps for direction in step.fault.directions
        )
        if directions and not self._stop.is_set():
            for measured in recalibrate(self._lab, tuple(directions)):
                self._note_link(measured)

    def _note(self, mark: Mark) -> None:
        self._session.bundle.event(mark.kind, mark.step.title, json.dumps(mark.detail), mark.t_ns)

    def _note_link(self, measured: Mapping[str, Any]) -> None:
        subject = f"{measured['from']}->{measured['to']}"
        self._session.bundle.event("recalibrated", subject, json.dumps(measured))
        if measured["verdict"] == "fail":
            why = "; ".join(measured.get("reasons", ())) or "it is off"
            self._session.outcome.failures.append(
                f"The link {subject} is not again what the topology asks for after its fault was "
                f"healed: {why}. {blame([measured])} What was measured after the heal is of "
                "a network that is not as it was."
            )
