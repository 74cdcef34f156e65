"""The same drill in less time: what is a time of its schedule becomes shorter by one factor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from wanlat.experiments.drill.claim import Claim
from wanlat.experiments.drill.model import SHORTEST_INTERVAL, Drill
from wanlat.experiments.drill.phases import PHASES
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, QuantityError
from wanlat.topologies.wording import show

SCALED_SETTINGS = ("period",)
"""Of faults. Others, such as a delay, are how bad it is, and not how long."""

_LEAST_DEADLINE_NS = 10**9
_STEP_NS = 10**6  # whole milliseconds: nobody wants to read more


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
    values["interval"] = str(max(_times(drill.interval, factor), SHORTEST_INTERVAL))
    phases = {name: _times(getattr(drill.phases, name), factor) for name in PHASES}
    values["phases"] = {name: str(length) for name, length in phases.items()}
    shorter = max(_times(drill.deadline, factor), Duration(_LEAST_DEADLINE_NS))
    values["deadline"] = str(min(drill.deadline, shorter))
    for raw, spec in zip(values["faults"], drill.faults, strict=True):
        _scale(raw, ("at", *SCALED_SETTINGS), factor)
        if spec.lasts is not None:  # its end is rounded, as that of the phase is
            until = _times(Duration(spec.at.ns + spec.lasts.ns), factor)
            raw["for"] = str(Duration(until.ns - _times(spec.at, factor).ns))
    try:
        return Drill.model_validate(values)
    except ValidationError as error:
        text = "; ".join(str(one["msg"]) for one in error.errors())
        raise UserError(f"--scale {factor:g}: drill {drill.name} cannot be that: {text}") from None


def scaled_claims(claims: Iterable[Claim], factor: float) -> tuple[Claim, ...]:
    """Return claims with their windows that much longer, as the drill's phases are."""
    values = [claim.to_dict() for claim in claims]
    for each in values:
        _scale(each.get("availability", {}), ("from", "to"), factor)
    return tuple(Claim.model_validate(each) for each in values)


def _scale(entry: dict[str, Any], keys: tuple[str, ...], factor: float) -> None:
    for key in keys:
        if entry.get(key) is not None:
            try:
                entry[key] = str(_times(Duration.parse(entry[key]), factor))
            except QuantityError as error:
                raise UserError(f"{key} {show(entry[key])}: {error}") from None


def _times(length: Duration, factor: float) -> Duration:
    return Duration(round(length.ns * factor / _STEP_NS) * _STEP_NS)
