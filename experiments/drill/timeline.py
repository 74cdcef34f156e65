"""When things happen in a drill: its phases, and by when each stage is over at the latest."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.model import MIN_INTERVAL, PHASES, Drill, Phases
from wanlat.systems.engine.progress import elapsed
from wanlat.systems.engine.wait import ready_timeout_s
from wanlat.topologies.errors import RunFailed, UserError, WanlatError
from wanlat.topologies.units import Duration, QuantityError
from wanlat.topologies.wording import show

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan

WARMUP_S = 2.0
"""Requests before the first phase, which are not counted: connections and caches."""
CALIBRATION_S = 45.0
"""Of the network, before anything is measured on it."""
RECALIBRATION_S = 30.0
"""Until links that were broken are measured again; most of it passes in phase `after`."""
_LAB_S = 15.0  # to make it
_LEAST_LAB_S = 3.0  # and calibrate it, and start a cluster, and again after every node was ended
_GRACE_S = 5.0  # until what is told to end has ended
_REPORT_S = 30.0

SCALED_SETTINGS = ("period",)
"""Of faults. Others, such as a delay, are how bad it is, and not how long."""
_LEAST_DEADLINE = Duration(10**9)
_STEP_NS = 10**6  # whole milliseconds: nobody wants to read more


@dataclass(frozen=True)
class Span:
    """A phase of a drill, on a clock that is 0 where ``before`` begins (a warm-up is negative)."""

    name: str
    begin_ns: int
    until_ns: int


def spans(phases: Phases) -> list[Span]:
    """Return the warm-up and the phases, one after another."""
    phase_spans = [Span("warmup", -round(WARMUP_S * 1e9), 0)]
    for name in PHASES:
        begin_ns = phase_spans[-1].until_ns
        phase_spans.append(Span(name, begin_ns, begin_ns + getattr(phases, name).ns))
    return phase_spans


def scaled(drill: Drill, factor: float) -> Drill:
    """Return a drill with phases, faults and intervals that much longer.

    Sizes, counts and timeouts stay as they are. `interval` stays at 20 ms at least. A deadline
    becomes shorter with the rest, but not longer, and stays at 1 s at least, so that it is the
    same part of a phase. Raises UserError when nothing that makes sense is left.
    """
    if not 0 < factor <= 100:
        raise UserError(f"--scale {factor:g}: a drill is scaled by more than 0, and at most 100.")
    if factor == 1:
        return drill
    values = drill.to_dict()
    values["interval"] = str(max(_times(drill.interval, factor), MIN_INTERVAL))
    shorter = max(_times(drill.deadline, factor), _LEAST_DEADLINE)
    values["deadline"] = str(min(drill.deadline, shorter))
    scale_times(values["phases"], PHASES, factor)
    for raw, spec in zip(values["faults"], drill.faults, strict=True):
        scale_times(raw, ("at", *SCALED_SETTINGS), factor)
        if spec.lasts is not None:  # its end is rounded, as that of the phase is
            until = _times(Duration(spec.at.ns + spec.lasts.ns), factor)
            raw["for"] = str(Duration(until.ns - _times(spec.at, factor).ns))
    try:
        return Drill.model_validate(values)
    except ValidationError as error:
        text = "; ".join(str(one["msg"]) for one in error.errors())
        raise UserError(f"--scale {factor:g}: drill {drill.name} cannot be that: {text}") from None


def scale_times(entry: dict[str, Any], keys: Sequence[str], factor: float) -> None:
    """Make the durations under some keys that much longer. Raises UserError for what is none."""
    for key in keys:
        if entry.get(key) is not None:
            try:
                entry[key] = str(_times(Duration.parse(entry[key]), factor))
            except QuantityError as error:
                raise UserError(f"{key} {show(entry[key])}: {error}") from None


def _times(length: Duration, factor: float) -> Duration:
    return Duration(round(length.ns * factor / _STEP_NS) * _STEP_NS)


class Stated(NamedTuple):
    """The most that each stage of a drill takes, in seconds, in their order."""

    lab: float  # making the network, and calibrating it
    ready: float  # starting the cluster
    fill: float  # writing the objects that are there before anything is measured: 20 a second
    phases: float  # warming up, before, during, after, and the last requests' answers
    healing: float  # starting what is down, until it serves; calibrating links again
    healed: float  # reading every object from every node
    restart: float  # ending every node at once, and starting them again until they serve
    restarted: float  # reading every object from every node again
    report: float  # ending the lab, tables, statistics and charts

    @property
    def total_s(self) -> float:
        """The sum: the stated time."""
        return sum(self)

    def __str__(self) -> str:
        return elapsed(self.total_s)


def stated(drill: Drill, plan: Plan | None = None) -> Stated:
    """Return how long a drill takes at most on one system, on a topology (None: a near one).

    These are limits, at which a drill is ended; most stages of most drills are over much sooner.
    """
    timeouts = drill.timeouts
    serve_s = ready_timeout_s(plan, timeouts.serve_after_restart)
    last = spans(drill.phases)[-1]
    return Stated(
        lab=_LAB_S + CALIBRATION_S,
        ready=ready_timeout_s(plan, timeouts.ready) + _GRACE_S,
        fill=30.0 + drill.objects / 20,
        phases=WARMUP_S + last.until_ns / 1e9 + drill.deadline.s + _GRACE_S,
        healing=RECALIBRATION_S + serve_s + _GRACE_S,
        healed=timeouts.verify_after_heal.s + _GRACE_S,
        restart=serve_s + _GRACE_S,
        restarted=timeouts.verify_after_restart.s + _GRACE_S,
        report=_REPORT_S,
    )


def least_s(drill: Drill) -> float:
    """Return how long a drill takes at least on one system: its phases, and a network for them."""
    return _LEAST_LAB_S + WARMUP_S + spans(drill.phases)[-1].until_ns / 1e9


class Overdue(RunFailed):
    """A stage took longer than was stated."""


@contextmanager
def within(lab: Lab, stage: str, seconds: float) -> Iterator[None]:
    """End the lab, and so whatever waits for something in it, when the block takes longer.

    Raises Overdue in place of what the end of the lab then raises.
    """
    late = Overdue(
        f"{stage} took longer than the {elapsed(seconds)} that it may take, so the drill was ended "
        "there. The logs of the nodes may say what they waited for."
    )
    over = threading.Event()

    def end() -> None:
        over.set()
        lab.abort(str(late))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except WanlatError as error:
        if over.is_set():
            raise late from error
        raise
    finally:
        timer.cancel()
    if over.is_set():
        raise late
