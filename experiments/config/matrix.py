"""The `matrix` of a study: which parameters take which values, and which combinations there are.

As in GitHub Actions: lists of values, of which every combination is measured; `exclude` leaves
combinations out, `include` adds single ones. A list of such mappings is their union.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.wording import did_you_mean, show
from wanlat.topologies.yaml_lines import findings_in
from wanlat.topologies.yaml_model import YamlModel
from wanlat.topologies.yaml_tree import Document

MAX_POINTS = 10_000
"""Of so many, each of some seconds at least, nobody sees the end."""
NOT_IN_A_MATRIX = {
    "name": "it names the bundle",
    "description": "it changes nothing that is measured",
    "matrix": "a matrix has no matrix in it",
}

_OPTIONS = "options"


class NoSuchPlace(ValueError):
    """A parameter that leads into something that is no mapping. The message says what it is."""


def combinations(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, int]]:
    """Yield every combination of a grid: of each parameter the place of its value."""
    places = [range(len(values)) for values in grid.values()]
    for chosen in product(*places):
        yield dict(zip(grid, chosen, strict=True))


def with_values(raw: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a study with parameters set, and without its matrix.

    Of two parameters of which one lies in the other, the inner one wins. Raises NoSuchPlace.
    """
    changed = {key: value for key, value in raw.items() if key != "matrix"}
    for name in sorted(values, key=lambda each: each.count(".")):
        keys = name.split(".")
        inner = changed
        for depth, key in enumerate(keys[:-1]):
            there = inner.get(key)
            if there is not None and not isinstance(there, Mapping):
                place = ".".join(keys[: depth + 1])
                found = json.dumps(there, default=str)
                raise NoSuchPlace(f"`{place}` is {found} here, so it has no `{keys[depth + 1]}`")
            inner[key] = dict(there or {})
            inner = inner[key]
        inner[keys[-1]] = deepcopy(values[name])
    return changed


def value_at(raw: Mapping[str, Any], name: str) -> Any:
    """Return what a parameter is in the keys of a study; None where it is not there."""
    found: Any = raw
    for key in name.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def is_of(parameter: str, system: str) -> bool:
    """Whether a parameter means something to a system: it is none, or one of its own options."""
    keys = parameter.split(".")
    return keys[0] != _OPTIONS or len(keys) < 2 or keys[1] == system


def axes_of(grid: Mapping[str, Any]) -> dict[str, Any]:
    """Return a grid's parameters and their values, without what it excludes."""
    return {name: values for name, values in grid.items() if name != EXCLUDE}


def is_excluded(grid: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether a grid leaves a combination out: it has all values of one of its exclusions."""
    return any(
        all(name in values and values[name] == value for name, value in each.items())
        for each in grid.get(EXCLUDE, ())
    )


def _union(raw: Any) -> Any:
    """Take one grid for a union of one, and each inclusion for a grid of single values."""
    grids = [raw] if isinstance(raw, dict) else raw
    if not isinstance(grids, list | tuple) or not grids:
        text = (
            f"{show(raw)} is no matrix; it is a mapping of parameters to lists of values, such as "
            "`{nodes: [1, 2, 4]}`, or a list of such mappings"
        )
        raise PydanticCustomError("matrix", "{text}", {"text": text})
    return [grid for _, grid in _grids(grids)] if all(map(_is_grid, grids)) else grids


def _is_grid(raw: Any) -> bool:
    included = raw.get(INCLUDE, ()) if isinstance(raw, Mapping) else None
    return isinstance(included, list | tuple) and all(isinstance(x, Mapping) for x in included)


Grid = dict[str, Annotated[list[Any], Field(min_length=1)]]
"""Parameters, dotted for inner ones, with the values that each takes: all combinations; under
`exclude` those that are left out."""
Matrix = Annotated[list[Annotated[Grid, Field(min_length=1)]], BeforeValidator(_union)]
"""The union of its grids."""


_KEY = "matrix"
INCLUDE, EXCLUDE = "include", "exclude"


def check_grids(raw: Any, systems: Sequence[Any]) -> list[Finding]:
    """Find what is wrong in a matrix itself: values given twice, parameters that are none.

    ``systems`` are those of the study: the ones that a grid may name.
    """
    findings: list[Finding] = []
    for path, grid in _grids(raw):
        findings += _check_exclusions(path, grid)
        for name, values in axes_of(grid).items():
            if str(name) in NOT_IN_A_MATRIX:
                text = f"`{name}` cannot be varied: {NOT_IN_A_MATRIX[str(name)]}"
                findings.append(Finding((*path, name), text, at_key=True))
            first: dict[str, int] = {}
            for place, value in enumerate(values if isinstance(values, list) else ()):
                if name == "systems" and value not in systems:
                    text = f"{show(value)} is none of the study's `systems`; name it there too"
                    findings.append(Finding((*path, name, place), text))
                if (before := first.setdefault(repr(value), place)) != place:
                    text = f"{show(value)} is given twice; each value is measured once"
                    see = (*path, name, before)
                    findings.append(Finding((*path, name, place), text, see=see))
    return findings


def check_points(document: Document, model: type[YamlModel]) -> Iterator[Finding]:
    """Find what is wrong in the combinations of a matrix, where the file has it.

    What is wrong with a value is told at the value; what does not go together with the rest of a
    combination is told with the combination. Each mistake is told once.
    """
    raw = document.raw
    systems = raw.get("systems") or model.model_fields["systems"].get_default()
    grids = list(_grids(raw.get(_KEY)))
    count = sum(
        math.prod(len(values) for name, values in axes_of(grid).items() if name != "systems")
        for _, grid in grids
    )
    if count * len(systems) > MAX_POINTS:
        text = f"{count} combinations on {len(systems)} systems; at most {MAX_POINTS} points"
        yield Finding((_KEY,), text)
        return
    told: set[tuple[Path, str]] = set()
    for path, grid in grids:
        own = grid.get("systems", systems)
        axes = axes_of(grid)
        used = {
            name: values for name, values in axes.items() if any(is_of(name, each) for each in own)
        }
        for unused in set(axes) - set(used):
            text = f"`{unused}` is an option of a system that this grid does not measure"
            yield Finding((*path, unused), text, at_key=True)
        for chosen in combinations(used):
            if is_excluded(grid, {name: grid[name][place] for name, place in chosen.items()}):
                continue
            for found in _Combination(document, path, grid, chosen).findings(model):
                plain = (found.path, found.text.partition(" (with ")[0])
                if plain not in told:
                    told.add(plain)
                    yield found


@dataclass(frozen=True)
class _Combination:
    document: Document
    path: Path
    """Of its grid."""
    grid: Mapping[str, Sequence[Any]]
    chosen: Mapping[str, int]

    def findings(self, model: type[YamlModel]) -> Iterator[Finding]:
        """Find the mistakes of this combination."""
        values = {name: self.grid[name][place] for name, place in self.chosen.items()}
        if "systems" in values:
            values["systems"] = [values["systems"]]  # a point is of one of them
        try:
            raw = with_values(self.document.raw, values)
        except NoSuchPlace as error:
            yield Finding(self.path, str(error))
            return
        spots = dict(self.document.spots)
        for name, place in self.chosen.items():
            there = (*self.path, name, place)
            if there not in self.document.spots:  # an inclusion's value is no list
                there = there[:-1]
            inside = {
                at: spot for at, spot in self.document.spots.items() if at[: len(there)] == there
            }
            for at, spot in inside.items():
                spots[(*name.split("."), *at[len(there) :])] = spot
        for found in findings_in(Document(raw, spots), model):
            yield self._in_file(found, values)

    def _in_file(self, found: Finding, values: Mapping[str, Any]) -> Finding:
        """Return a finding where the file has what it is about."""
        for name, place in self.chosen.items():
            keys = tuple(name.split("."))
            if found.path[: len(keys)] == keys:
                if found.at_key and found.path == keys:  # no such parameter
                    return Finding((*self.path, name), found.text, at_key=True)
                rest = found.path[len(keys) :]
                return Finding((*self.path, name, place, *rest), found.text, at_key=found.at_key)
            is_around = found.path and found.path == keys[: len(found.path)]
            if is_around and found.path not in self.document.spots:  # what it leads into is none
                return Finding((*self.path, name), found.text, at_key=True)
        # What is wrong only with these values, at a place that has no part in the matrix.
        said = ", ".join(f"{name} {show(value)}" for name, value in values.items())
        return Finding(found.path, f"{found.text} (with {said})", at_key=found.at_key)


def _check_exclusions(path: Path, grid: Mapping[str, Any]) -> Iterator[Finding]:
    """Find exclusions that can leave nothing out."""
    known = {*axes_of(grid), "systems"}
    excluded = grid.get(EXCLUDE, ())
    for place, each in enumerate(excluded if isinstance(excluded, list | tuple) else ()):
        if not isinstance(each, Mapping) or not each:
            text = f"{show(each)} excludes nothing; it is a mapping of parameters to values"
            yield Finding((*path, EXCLUDE, place), text)
            continue
        for name in each:
            if name not in known:
                near = did_you_mean(str(name), sorted(known))
                text = f"`{name}` does not vary here{near}, so nothing can be excluded by it"
                yield Finding((*path, EXCLUDE, place, name), text, at_key=True)


def _grids(raw: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the grids of a matrix that are mappings, and the ways to them.

    What a grid includes is a grid of its own, of which every parameter has one value.
    """
    listed = isinstance(raw, list | tuple)
    for place, grid in enumerate(raw if listed else (raw,)):
        if not isinstance(grid, Mapping):
            continue
        path: Path = (_KEY, place) if listed else (_KEY,)
        own = {name: values for name, values in grid.items() if name != INCLUDE}
        if axes_of(own) or INCLUDE not in grid:
            yield path, own
        included = grid.get(INCLUDE, ())
        for number, each in enumerate(included if isinstance(included, list | tuple) else ()):
            if isinstance(each, Mapping):
                lists = {k: v if isinstance(v, list) else [v] for k, v in each.items()}
                yield (*path, INCLUDE, number), lists
