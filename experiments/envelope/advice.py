"""Which timeout? A study of the envelope as a matrix over a timeout's values, with their price.

Which values there are, what bounds them and what moves with them is the system's definition
(`timeouts`). Each value is a point of the matrix; the price is measured in it (`envelope.kills`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wanlat.experiments.config.matrix import MATRIX, SYSTEMS, matrix_mistakes, parts, with_values
from wanlat.experiments.config.study import Study, validated
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.systems import registry
from wanlat.systems.engine import timeouts
from wanlat.systems.engine.definition import Definition
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import did_you_mean, listing, show

KILLS = 6
"""At fewer, not even their extremes are a 95 % interval of the median."""
Wanted = Mapping[str, Sequence[Duration]]
"""Timeouts by name, with values; without any those of the definition."""


def advised(study: Study, wanted: Wanted) -> Study:
    """Return the study with a point for each value of a timeout, and with the price of each.

    Nothing ``wanted``: the first timeout of each system, at the values that its definition has.
    What follows it moves with it, unless the study sets it. Raises UserError.
    """
    envelope = study.kind
    if not isinstance(envelope, EnvelopeSpec):
        raise UserError(
            f"--advise: study {study.name} does not search for limits. Run `envelope`, or a study "
            "with that key."
        )
    raw = study.to_dict()
    raw[MATRIX] = [
        {**own, SYSTEMS: [system], **{f"options.{system}.{key}": [v] for key, v in choice.items()}}
        for system in study.systems
        for own in _grids(study, system)
        for choice in _choices(study, system, wanted)
    ]
    if not envelope.kills:
        raw = {**with_values(raw, {"envelope.kills": KILLS}), MATRIX: raw[MATRIX]}

    def of_points(made: Study) -> Any:
        return matrix_mistakes(raw, made.matrix or (), made.systems, Study)

    return validated(f"Study {study.name}", raw, Study, of_points)


def _grids(study: Study, system: str) -> Iterator[dict[str, Any]]:
    """Yield what the study's matrix varies besides; without one nothing, once."""
    if study.matrix is None:
        yield {}
    for _, own, excluded in parts(study.matrix or ()):
        if system in own.get(SYSTEMS, study.systems):
            yield {**own, "exclude": excluded} if excluded else own


def _choices(study: Study, system: str, wanted: Wanted) -> Iterator[dict[str, str]]:
    """Yield the options of each value."""
    its, given = registry.get(system), study.options.get(system, {})
    definition = its.definition
    for name, values in wanted.items() or [(_first(definition), ())]:
        if name not in definition.timeouts:
            known = list(definition.timeouts)
            raise UserError(
                f"--advise: {system} has no timeout {show(name)}{did_you_mean(name, known)}; it "
                f"has {listing(known) or 'none'}."
            )
        option = definition.timeouts[name].option
        if option in given:
            raise UserError(f"`options.{system}.{option}` is set and varied; do one of them.")
        for value in values or timeouts.tried(definition, name):
            chosen = timeouts.options_of(definition, name, value, given)
            options = its.parse_options({**given, **chosen})
            # What is named is told to be wrong where points are prepared.
            if values or not any(timeouts.invalid(definition, options)):
                yield chosen


def _first(definition: Definition) -> str:
    for name in definition.timeouts:
        return name
    raise UserError(
        f"--advise: the definition of {definition.name} names no `timeouts`. Vary its options with "
        f"`--matrix options.{definition.name}.OPTION=V1,V2`."
    )
