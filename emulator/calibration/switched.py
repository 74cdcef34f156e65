"""Impairments that are off for as long as something else is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction
from wanlat.emulator.links import requested as requested_of
from wanlat.topologies.resolve import Impairment, Plan

DRAWN = ("jitter_ns", "overtake")
"""What makes packets' delays differ."""
UNDELIVERED = ("loss", "bursts", "duplicate", "corrupt")
"""What makes packets differ in number."""

_NOTHING = Impairment()


@contextmanager
def without(lab: Lab, requested: Plan, fields: tuple[str, ...]) -> Iterator[None]:
    """Switch these fields off, on links for which ``requested`` asks for them.

    Where it does not, they stay: what nobody asked for is an error to be found.
    """
    asked = requested_of(requested)
    changes: dict[Direction, Impairment] = {}
    for direction, now in lab.impairments.items():
        wanted = asked.get(direction, _NOTHING)
        off = {
            name: getattr(_NOTHING, name)
            for name in fields
            if getattr(wanted, name) != getattr(_NOTHING, name)
        }
        if (changed := replace(now, **off)) != now:
            changes[direction] = _valid(changed)
    with _changed(lab, changes):
        yield


@contextmanager
def nothing(lab: Lab) -> Iterator[None]:
    """Switch everything off."""
    with _changed(
        lab, {each: _NOTHING for each, now in lab.impairments.items() if now.is_noop is False}
    ):
        yield


def _valid(impairment: Impairment) -> Impairment:
    """Without jitter there is nothing for draws to be shaped or related by."""
    if impairment.jitter_ns:
        return impairment
    return replace(impairment, distribution="uniform", table=(), correlation=0.0)


@contextmanager
def _changed(lab: Lab, changes: dict[Direction, Impairment]) -> Iterator[None]:
    if not changes:
        yield
        return
    before = {direction: lab.impairments[direction] for direction in changes}
    lab.change(changes, origin="calibration")
    try:
        yield
    finally:
        lab.change(before, origin="calibration")
