"""The `matrix` of a study: which parameters take which values, and which combinations there are.

As in GitHub Actions: lists of values, of which every combination is measured; `exclude` leaves
combinations out, `include` adds single ones. A list of such mappings is their union.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from wanlat.topologies.findings import Finding, Path, path_text
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_model import YamlModel, refused, unique
from wanlat.topologies.yaml_tree import Document

MAX_POINTS = 10_000
"""Of so many, each of some seconds at least, no user sees the end."""
NOT_IN_A_MATRIX = {
    "name": "it names the bundle",
    "description": "it changes nothing that is measured",
    "matrix": "a matrix has no matrix in it",
    "replicates": "every point has as many",
    "replicate": "`replicates` says how many there are",
}
MATRIX, SYSTEMS = "matrix", "systems"
REPLICATES = "replicates"
"""On how many fresh clusters each point is measured, and which of them one is, from 1 on."""

Values = Mapping[str, Any]
"""Parameters, dotted for inner ones, with the value of each."""


class Grid(YamlModel):
    """Parameters with the values that each takes: every combination, and others."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[
        str, Annotated[list[Any], Field(min_length=1), unique("each value is measured once")]
    ] = Field(init=False)

    exclude: list[Annotated[dict[str, Any], Field(min_length=1)]] | None = Field(
        default=None, description="Combinations with all these values are left out"
    )
    include: list[Annotated[dict[str, Any], Field(min_length=1)]] | None = Field(
        default=None, description="Single combinations that are measured too"
    )

    @property
    def axes(self) -> dict[str, list[Any]]:
        """Return the parameters that vary, and their values."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _varies(self) -> Self:
        if not self.axes and not self.include:
            raise ValueError("it varies nothing; name parameters with lists of values")
        findings = [
            Finding((name,), f"`{name}` cannot be varied: {why}", at_key=True)
            for name, why in NOT_IN_A_MATRIX.items()
            if name in self.axes
        ]
        known = sorted({*self.axes, SYSTEMS})
        for place, excluded in enumerate(self.exclude or ()):
            for name in excluded.keys() - known:
                near = did_you_mean(name, known)
                text = f"`{name}` does not vary here{near}, so nothing can be excluded by it"
                findings.append(Finding(("exclude", place, name), text, at_key=True))
        if findings:
            raise refused(findings)
        return self


def _union(raw: Any) -> Any:
    """Take one grid for a union of one."""
    grids = [raw] if isinstance(raw, dict) else raw
    if not isinstance(grids, list) or not grids:
        text = (
            f"{show(raw)} is no matrix; it is a mapping of parameters to lists of values, such as "
            "`{nodes: [1, 2, 4]}`, or a list of such mappings"
        )
        raise PydanticCustomError("matrix", "{text}", {"text": text})
    return grids


Matrix = Annotated[list[Grid], BeforeValidator(_union, json_schema_input_type=Grid | list[Grid])]
"""The union of its grids."""


class NoSuchPlace(ValueError):
    """A parameter that leads into something that is no mapping. The message has what it is."""

    def __init__(self, parameter: str, text: str) -> None:
        super().__init__(text)
        self.parameter = parameter


def with_values(raw: Values, values: Values) -> dict[str, Any]:
    """Return the keys of a study with parameters set, and without its matrix.

    Of two parameters of which one lies in the other, the inner one wins. Raises NoSuchPlace.
    """
    changed = {key: value for key, value in raw.items() if key != MATRIX}
    for name in sorted(values, key=lambda name: name.count(".")):
        *outer, last = name.split(".")
        inner = changed
        for depth, key in enumerate(outer, start=1):
            there = inner.get(key)
            if there is not None and not isinstance(there, Mapping):
                obstacle = f"`{'.'.join(outer[:depth])}` is {json.dumps(there, default=str)} here"
                raise NoSuchPlace(name, f"{obstacle}, so it has no `{[*outer, last][depth]}`")
            inner[key] = dict(there or {})
            inner = inner[key]
        inner[last] = deepcopy(values[name])
    return changed


def value_at(raw: Values, *keys: str | int) -> Any:
    """Return what a parameter is in the keys of a study; None where it is not there."""
    value: Any = raw
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


@dataclass(frozen=True)
class Combination:
    """A value of each parameter, on one system: what a point measures."""

    system: str
    values: Values
    """Without what are options of other systems."""
    places: Mapping[str, Path]
    """Where each value stands in the study."""

    @property
    def label(self) -> str:
        """Which one it is, in words."""
        return ", ".join([self.system, *(f"{name} {show(v)}" for name, v in self.values.items())])

    def study(self, raw: Values) -> dict[str, Any]:
        """Return the keys of the study that it is. Raises NoSuchPlace."""
        keys = with_values(raw, self.values)
        options = keys.get("options")
        if isinstance(options, Mapping):
            keys["options"] = {name: own for name, own in options.items() if name == self.system}
        return keys | {SYSTEMS: [self.system], REPLICATES: 1}


def format_findings(findings: Sequence[Finding]) -> str:
    """Return mistakes in a study that is in no file, as one text."""
    return "; ".join(
        f"{path_text(finding.path) or 'study'}: {finding.text}" for finding in findings
    )


def parts(matrix: Sequence[Grid]) -> Iterator[tuple[Path, dict[str, list[Any]], list[Values]]]:
    """Yield what a matrix is the union of: where it stands, parameters with values, exclusions.

    What a grid includes is a part of its own, of which every parameter has one value.
    """
    for number, grid in enumerate(matrix):
        if grid.axes:
            yield (MATRIX, number), grid.axes, list(grid.exclude or ())
        for place, included in enumerate(grid.include or ()):
            lists = {k: v if isinstance(v, list) else [v] for k, v in included.items()}
            yield (MATRIX, number, "include", place), lists, []


def combinations(matrix: Sequence[Grid] | None, systems: Sequence[str]) -> Iterator[Combination]:
    """Yield every combination on every system, grid by grid; without a matrix one a system."""
    if matrix is None:
        yield from (Combination(system, {}, {}) for system in systems)
    for path, axes, excluded in parts(matrix or ()):
        for system in axes.get(SYSTEMS, systems):
            own = {name: values for name, values in axes.items() if _is_of(name, system)}
            for chosen in product(*(range(len(values)) for values in own.values())):
                places = dict(zip(own, chosen, strict=True))
                values = {name: own[name][place] for name, place in places.items()}
                known = {**values, SYSTEMS: system}
                if not any(exclusion.items() <= known.items() for exclusion in excluded):
                    at = {name: (*path, name, place) for name, place in places.items()}
                    yield Combination(system, values, at)


def matrix_mistakes(
    raw: Values, matrix: Sequence[Grid], systems: Sequence[str], model: type[YamlModel]
) -> list[Finding]:
    """Return what is wrong in the combinations of a study's matrix, each mistake once.

    What is wrong with a value is reported at the value; what does not go together with the rest of
    a combination is reported with the combination. ``raw``: the keys of the study.
    """
    findings = list(_of_systems(matrix, systems))
    every = list(islice(combinations(matrix, systems), MAX_POINTS + 1))
    if len(every) * int(raw.get(REPLICATES, 1)) > MAX_POINTS:
        findings.append(Finding((MATRIX,), f"these are too many points; at most {MAX_POINTS}"))
    if findings:
        return findings
    combinations_of: dict[Finding, list[str]] = {}
    for combination in every:
        for finding, is_at_value in _of_combination(raw, combination, model):
            combinations_of.setdefault(finding, []).append(
                "" if is_at_value else f" (with {combination.label})"
            )
    return [
        # What is wrong whatever the values are is not because of them.
        replace(finding, text=finding.text + (with_what[0] if len(with_what) < len(every) else ""))
        for finding, with_what in combinations_of.items()
    ]


def _of_systems(matrix: Sequence[Grid], systems: Sequence[str]) -> Iterator[Finding]:
    """Find systems that are not the study's, and options of those that are not measured."""
    for path, axes, _ in parts(matrix):
        measured = axes.get(SYSTEMS, list(systems))
        for place, name in enumerate(measured):
            if name not in systems:
                text = f"{show(name)} is none of the study's `systems`; name it there too"
                yield Finding((*path, SYSTEMS, place), text)
        for name in axes:
            if name != SYSTEMS and not any(_is_of(name, system) for system in measured):
                text = f"`{name}` is an option of a system that is not measured here"
                yield Finding((*path, name), f"{text}; these are {listing(measured)}", at_key=True)


def _of_combination(
    raw: Values, combination: Combination, model: type[YamlModel]
) -> Iterator[tuple[Finding, bool]]:
    """Find its mistakes, where the matrix has them, and whether that is at a value of its own."""
    try:
        keys = combination.study(raw)
    except NoSuchPlace as error:
        yield Finding(combination.places[error.parameter][:-1], str(error), at_key=True), True
        return
    for finding in checked(Document(keys), model)[1]:
        for name, place in combination.places.items():
            own = tuple(name.split("."))
            rest = finding.path[len(own) :]
            if finding.path[: len(own)] == own and (rest or not finding.at_key):
                yield replace(finding, path=(*place, *rest), see=None), True
                break
            # There is no such parameter; or what it leads into is none, and has no such key.
            is_around = finding.path and finding.path == own[: len(finding.path)]
            if is_around and (finding.at_key or value_at(raw, *finding.path) is None):
                yield replace(finding, path=place[:-1], at_key=True, see=None), True
                break
        else:
            yield finding, False


def _is_of(parameter: str, system: str) -> bool:
    """Whether a parameter means something to a system: it is none, or one of its own options."""
    kind, *inner = parameter.split(".")
    return kind != SYSTEMS and (kind != "options" or not inner or inner[0] == system)
