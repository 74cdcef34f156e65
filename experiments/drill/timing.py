"""How long a drill takes at most: told when it starts, and obeyed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.model import Drill
from wanlat.systems.progress import elapsed
from wanlat.topologies.errors import RunFailed, WanlatError

WARMUP_S = 2.0
"""Requests before the first phase, which are not counted: connections and caches."""

CALIBRATION_S = 45.0
"""Of the network, before anything is measured on it."""

RECALIBRATION_S = 30.0
"""Until links that were broken are measured again; most of it passes in phase `after`."""


@dataclass(frozen=True)
class Stated:
    """The most that each stage of a drill takes, in seconds, in their order."""

    lab: float
    """Making the network, and proving it right."""
    ready: float
    """Starting the cluster."""
    fill: float
    """Writing the objects that are there before anything is measured."""
    phases: float
    """Warming up, before, during, after, and the last requests' answers."""
    healing: float
    """Starting what is down, until it serves; links that were broken are calibrated again."""
    healed: float
    """Reading every object from every node."""
    restart: float
    """Ending every node at once, and starting them again until they serve."""
    restarted: float
    """Reading every object from every node again."""
    report: float
    """Ending the lab, tables, statistics and charts."""

    @property
    def total_s(self) -> float:
        """The sum: the stated time."""
        return sum(asdict(self).values(), 0.0)

    def __str__(self) -> str:
        return elapsed(self.total_s)


def stated(drill: Drill) -> Stated:
    """Return how long a drill takes at most on one system.

    These are limits, at which a drill is ended; most stages of most drills are over much sooner.
    """
    phases = drill.phases
    timeouts = drill.timeouts
    return Stated(
        lab=_BUILDING_S + CALIBRATION_S,
        ready=timeouts.ready.s + _GRACE_S,
        fill=fill_budget_s(drill),
        phases=WARMUP_S
        + phases.before.s
        + phases.during.s
        + phases.after.s
        + drill.deadline.s
        + _GRACE_S,
        healing=RECALIBRATION_S + timeouts.serve_after_restart.s + _GRACE_S,
        healed=timeouts.verify_after_heal.s + _GRACE_S,
        restart=timeouts.serve_after_restart.s + _GRACE_S,
        restarted=timeouts.verify_after_restart.s + _GRACE_S,
        report=30.0,
    )


def fill_budget_s(drill: Drill) -> float:
    """Return how long writing the first objects may take: 20 a second, and 30 s besides."""
    return 30.0 + drill.objects / 20


_BUILDING_S = 15.0  # of the lab
_GRACE_S = 5.0  # until what is told to end has ended


class Overdue(RunFailed):
    """A stage took longer than was stated."""


@contextmanager
def within(lab: Lab, stage: str, seconds: float) -> Iterator[None]:
    """End the lab, and so whatever waits for something in it, when the block takes longer.

    Raises Overdue in place of what the end of the lab then raises.
    """
    over = threading.Event()

    def end() -> None:
        over.set()
        lab.abort(_late(stage, seconds))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except WanlatError as error:
        if over.is_set() and not isinstance(error, Overdue):
            raise Overdue(_late(stage, seconds)) from error
        raise
    finally:
        timer.cancel()
    if over.is_set():
        raise Overdue(_late(stage, seconds))


def _late(stage: str, seconds: float) -> str:
    return (
        f"{stage} took longer than the {elapsed(seconds)} that it may take, so the drill was ended "
        "there. The logs of the nodes may say what they waited for."
    )
