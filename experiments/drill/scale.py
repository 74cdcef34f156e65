"""The same drill in less time: what is a time of its schedule becomes shorter by one factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from wanlat.experiments.drill.model import SHORTEST_EVERY, Drill
from wanlat.experiments.drill.phases import PHASES
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, QuantityError
from wanlat.topologies.wording import show

SCALED_SETTINGS = ("period",)
"""Of faults. Others, such as a delay, are how bad it is, and not how long."""

_LEAST_DEADLINE_NS = 10**9
_STEP_NS = 10**6  # whole milliseconds: nobody wants to read more


def scaled(drill: Drill, factor: float) -> Drill:
    """Return a drill with phases, faults, intervals and claims' windows that much longer.

    Sizes, counts and budgets stay as they are. `every` stays at 20 ms at least. A deadline becomes
    shorter with the rest, but not longer, and stays at 1 s at least, so that it is the same part
    of a phase. Raises UserError when nothing that makes sense is left.
    """
    if not 0 < factor <= 100:
        raise UserError(f"--scale {factor:g}: a drill is scaled by more than 0, and at most 100.")
    if factor == 1:
        return drill
    values = drill.to_dict()
    values["every"] = str(max(_times(drill.every, factor), SHORTEST_EVERY))
    phases = {name: _times(getattr(drill.phases, name), factor) for name in PHASES}
    values["phases"] = {name: str(length) for name, length in phases.items()}
    shorter = max(_times(drill.deadline, factor), Duration(_LEAST_DEADLINE_NS))
    values["deadline"] = str(min(drill.deadline, shorter))
    values["faults"] = [
        _scaled(fault, ("at", "for", *SCALED_SETTINGS), factor) for fault in values["faults"]
    ]
    values["claims"] = [_scaled(claim, ("from", "to"), factor) for claim in values["claims"]]
    try:
        return Drill.model_validate(values)
    except ValidationError as error:
        text = "; ".join(str(one["msg"]) for one in error.errors())
        raise UserError(f"--scale {factor:g}: drill {drill.name} cannot be that: {text}") from None


def _scaled(entry: Mapping[str, Any], keys: tuple[str, ...], factor: float) -> dict[str, Any]:
    changed = dict(entry)
    for key in keys:
        if changed.get(key) is not None:
            try:
                changed[key] = str(_times(Duration.parse(changed[key]), factor))
            except QuantityError as error:
                raise UserError(f"{key} {show(changed[key])}: {error}") from None
    return changed


def _times(length: Duration, factor: float) -> Duration:
    return Duration(round(length.ns * factor / _STEP_NS) * _STEP_NS)
