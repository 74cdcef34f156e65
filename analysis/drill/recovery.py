"""How long it took until a client was served as before, for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wanlat.analysis.drill.disturbances import Injection, Request, Says
from wanlat.analysis.drill.model import Outage, SlowStretch

LEAST_GOOD = 3
"""Answers in time, after the last disturbance, without which nobody can say that it was over."""


@dataclass(frozen=True)
class Recovery:
    """`recovered` None: nothing was injected, nothing measured since, or it cannot be told.

    `recovery_s` is from the first injection to the end of the last disturbance, 0 if there was
    none, and `after_heal_s` from the last heal, never negative.
    """

    recovered: bool | None
    recovery_s: float | None
    after_heal_s: float | None


UNKNOWN = Recovery(None, None, None)
NOT_RECOVERED = Recovery(False, None, None)


def recovery_of(
    requests: Sequence[Request],
    outages: Sequence[Outage],
    slow: Sequence[SlowStretch],
    *,
    first_fault: Injection | None,
    last_heal_s: float | None,
) -> Recovery:
    """The recovery of one client, from when the first fault was in force.

    `last_heal_s` is None while something is broken still.

    Where an outage that no fault explains was going on as the first one began, what became of it
    is no fault's either: unknown.
    """
    if first_fault is None:
        return UNKNOWN
    begun_s, in_force_s = first_fault
    since = [each for each in requests if each.end_s > begun_s]
    if not any(each.says is not Says.NOTHING for each in since):
        return UNKNOWN
    if any(outage.before_fault and outage.end_s > begun_s for outage in outages):
        return UNKNOWN
    disturbed: list[Outage | SlowStretch] = [
        *(outage for outage in outages if not outage.before_fault),
        *slow,
    ]
    if not disturbed:
        return _recovered(0.0, in_force_s, last_heal_s)
    end_s = max(each.end_s for each in disturbed)
    good = sum(each.says is Says.GOOD and each.end_s >= end_s for each in requests)
    if good < LEAST_GOOD or not all(each.ended for each in disturbed):
        return NOT_RECOVERED
    return _recovered(max(0.0, end_s - in_force_s), in_force_s, last_heal_s)


def of_all(recoveries: Iterable[Recovery]) -> Recovery:
    """That of the client that took longest; not recovered if one was not; unknown if one is."""
    every = list(recoveries)
    if any(one.recovered is False for one in every):
        return NOT_RECOVERED
    if not every or any(one.recovered is None for one in every):
        return UNKNOWN
    after_heal_s = [one.after_heal_s for one in every if one.after_heal_s is not None]
    return Recovery(
        recovered=True,
        recovery_s=max(one.recovery_s or 0.0 for one in every),
        after_heal_s=max(after_heal_s) if after_heal_s else None,
    )


def _recovered(recovery_s: float, first_fault_s: float, last_heal_s: float | None) -> Recovery:
    after_heal_s = None
    if last_heal_s is not None:
        after_heal_s = max(0.0, first_fault_s + recovery_s - last_heal_s)
    return Recovery(True, recovery_s, after_heal_s)
