"""Several faults, each started and ended at its instant, whatever the others are doing.

Each beginning and each end happens in a thread of its own, so that a slow one (a process that
takes its time to end) makes no other late. What concerns the same node or the same link happens
one after the other, in the order in which it is due.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from wanlat.emulator.faults.fault import Fault, FaultFailed, Scene
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import listing

Kind = Literal["inject", "heal", "occurrence"]


@dataclass(frozen=True, eq=False)
class Step:
    """One fault with its times, in ns from the timeline's origin.

    ``until_ns`` None: until the timeline is cut short, be that after its run. It means nothing
    to a fault that is over by itself.
    """

    id: int
    fault: Fault
    at_ns: int
    until_ns: int | None

    @property
    def title(self) -> str:
        """The fault's id in the journal: ``1 kill n2``."""
        return f"{self.id} {self.fault.kind} {self.fault.subject}"

    def concerns(self, other: Step) -> bool:
        """Whether both hit the same node or link, so that one has to wait for the other."""
        ours, theirs = self.fault, other.fault
        return (
            self is other
            or not set(ours.nodes).isdisjoint(theirs.nodes)
            or not set(ours.directions).isdisjoint(theirs.directions)
        )


@dataclass(frozen=True)
class Mark:
    """What happened to a fault, and when it took effect (CLOCK_MONOTONIC)."""

    t_ns: int
    kind: Kind
    step: Step
    detail: Mapping[str, Any]
    """``id``, ``kind``, ``affects``, ``subject``, ``detail``, ``nodes``, ``directions``,
    ``late_ms`` (None where nothing was due), and for one of several its number ``occurrence`` and
    ``state``, down or up."""


class Timeline:
    """Faults over time, on a scene. It runs once.

    ``note`` hears of every injection, healing and occurrence once it is in force, from the thread
    in which it happened: several at once, so it must be safe for that.

    Raises UserError for faults that exclude each other.
    """

    def __init__(self, scene: Scene, steps: Sequence[Step], note: Callable[[Mark], None]) -> None:
        self._scene = replace(
            scene, on_occurrence=self._occurrence, on_failure=self._failed_between
        )
        self._steps = tuple(steps)
        for place, step in enumerate(steps):
            if any(_exclude(step, other) for other in steps[:place]):
                raise UserError(
                    f"The fault `{step.title}` overlaps with another of its kind on the same node, "
                    "which has one at a time. Give one of them other times."
                )
        self._note = note
        self._lock = threading.Lock()
        self._active: list[Step] = []  # in the order of beginning; ended ones leave
        self._error: BaseException | None = None
        self._halted = scene.stopping
        self._idle = threading.Event()  # nothing of ours runs, and all is undone that is to be
        self._idle.set()

    @property
    def in_force(self) -> tuple[Step, ...]:
        """Return the steps with a fault in force, oldest first."""
        with self._lock:
            return tuple(self._active)

    def run(self, origin_ns: int) -> None:
        """Carry out all of it, and return when that is done or was cut short.

        ``origin_ns``: the instant (CLOCK_MONOTONIC) from which the steps' times count.

        Raises FaultFailed when a fault could not be applied or undone, MachineError when the lab
        ended, and what ``note`` raises. Everything else has been undone then.
        """
        self._idle.clear()
        events = _in_order(self._steps)
        # All are there from the beginning: on a busy machine a thread that wakes up is served
        # within milliseconds, and one that is made anew has to wait its turn.
        threads = [
            threading.Thread(
                target=self._execute,
                args=(
                    event,
                    origin_ns,
                    [earlier for earlier in events[:place] if earlier.step.concerns(event.step)],
                ),
                name=event.step.title,
                daemon=True,
            )
            for place, event in enumerate(events)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self._halted.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        finally:
            if self._halted.is_set():
                self._undo_all()
            self._idle.set()
        if self._error is not None:
            raise self._error

    def cut_short(self) -> None:
        """Undo all that is in force and begin nothing more; safe to repeat.

        Returns when that is done, so ``note`` must not call it. While `run` runs, what fails is
        raised there; afterwards, here.
        """
        self._halted.set()
        if not self._idle.is_set():
            self._idle.wait()
            return
        before = self._error
        self._undo_all()
        if self._error is not before and self._error is not None:
            raise self._error

    def _execute(self, event: _Event, origin_ns: int, before: Sequence[_Event]) -> None:
        due_ns = origin_ns + event.due_ns
        try:
            if self._halts_before(due_ns):
                return
            for earlier in before:
                earlier.is_done.wait()
            if self._halted.is_set():
                return
            (self._end if event.is_end else self._begin)(event.step, due_ns)
        except BaseException as error:
            self._fail(error)
        finally:
            event.is_done.set()

    def _begin(self, step: Step, due_ns: int) -> None:
        with self._lock:
            self._active.append(step)  # from now on it has to be undone, also if it fails half-way
        try:
            instant = step.fault.begin(self._scene)
        except Exception as error:
            raise self._failure(step, "could not be applied", error) from error
        self._report("inject", step, instant, due_ns=due_ns)
        if not step.fault.is_undone:
            self._end(step, None)

    def _end(self, step: Step, due_ns: int | None) -> None:
        try:
            instant = step.fault.end(self._scene)
        except Exception as error:
            raise self._failure(step, "could not be undone", error) from error
        finally:
            with self._lock:
                if step in self._active:
                    self._active.remove(step)
        self._report("heal", step, instant, due_ns=due_ns)

    def _undo_all(self) -> None:
        """Undo what is in force, the last first; later failures are reported with the first."""
        while self.in_force:
            step = self.in_force[-1]
            try:
                self._end(step, None)
            except BaseException as error:
                self._fail(error)

    def _report(
        self, kind: Kind, step: Step, instant: int, due_ns: int | None = None, **more: Any
    ) -> None:
        late_ms = None if due_ns is None else round((instant - due_ns) / 1e6, 3)
        self._note(Mark(instant, kind, step, {**described(step), "late_ms": late_ms, **more}))

    def _occurrence(self, fault: Fault, instant: int, more: Mapping[str, Any]) -> None:
        self._report("occurrence", self._step_of(fault), instant, **more)

    def _failed_between(self, fault: Fault, error: BaseException) -> None:
        self._fail(self._failure(self._step_of(fault), "could not go on", error))

    def _step_of(self, fault: Fault) -> Step:
        return next(step for step in self._steps if step.fault is fault)

    def _failure(self, step: Step, what: str, error: BaseException) -> BaseException:
        fate = self._scene.lab.fate
        if fate:  # then nothing can be applied or undone, and that is why
            ended = MachineError(f"The lab has ended. {fate}")
            return error if isinstance(error, MachineError) else ended
        where = listing(step.fault.nodes or map(str, step.fault.directions), at_most=6)
        how = f" ({step.fault.detail})" if step.fault.detail else ""
        at = f" on {where}" if where else ""
        return FaultFailed(
            f"The fault `{step.title}`{how} {what}{at}, so the drill ends here and all other "
            f"faults are undone. {error or type(error).__name__}"
        )

    def _fail(self, error: BaseException) -> None:
        """Keep the first failure, and halt."""
        with self._lock:
            if self._error is None:
                self._error = error
            elif self._error is not error and not self._scene.lab.fate:
                with contextlib.suppress(Exception):
                    self._error.add_note(f"And then: {error}")
        self._halted.set()

    def _halts_before(self, due_ns: int) -> bool:
        """Wait for an instant; return whether the timeline was cut short or failed before."""
        while not self._halted.is_set():
            left_s = (due_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return False
            self._halted.wait(left_s)
        return True


def _exclude(one: Step, other: Step) -> bool:
    """Return whether two are of a kind that a node has one of at a time, and overlap."""
    return (
        one.fault.is_exclusive
        and one.fault.kind == other.fault.kind
        and not set(one.fault.nodes).isdisjoint(other.fault.nodes)
        and all(
            first.until_ns is None or second.at_ns < first.until_ns
            for first, second in ((one, other), (other, one))
        )
    )


@dataclass(eq=False)
class _Event:
    due_ns: int
    is_end: bool
    step: Step
    is_done: threading.Event = field(default_factory=threading.Event)


def _in_order(steps: Sequence[Step]) -> list[_Event]:
    """Return beginnings and ends as they are due; at one instant ends first, then as in the file.

    So a node that is killed anew at the instant of its start is started, and then killed. A step
    that ends with its beginning has started before.
    """
    events: list[_Event] = []
    for step in steps:
        events.append(_Event(step.at_ns, False, step))
        if step.fault.is_undone and step.until_ns is not None:
            events.append(_Event(max(step.until_ns, step.at_ns + 1), True, step))
    return sorted(events, key=lambda event: (event.due_ns, not event.is_end))


def described(step: Step) -> dict[str, Any]:
    """Return a fault as events have it."""
    fault = step.fault
    return {
        "id": step.id,
        "kind": fault.kind,
        "affects": fault.affects,
        "subject": fault.subject,
        "detail": fault.detail,
        "nodes": list(fault.nodes),
        "directions": [str(direction) for direction in fault.directions],
    }
