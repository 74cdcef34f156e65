"""Every combination of a sweep as a study, before anything starts: mistakes with their lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanlat.experiments.sweep.expand import (
    MAX_POINTS,
    NOT_SWEPT,
    NoSuchPlace,
    combinations,
    is_of,
    with_values,
)
from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_lines import findings_in
from wanlat.topologies.yaml_model import YamlModel
from wanlat.topologies.yaml_tree import Document

_KEY = "sweep"


def check_grids(raw: Any, systems: Sequence[Any]) -> list[Finding]:
    """Find what is wrong in a sweep itself: values given twice, parameters that are none.

    ``systems`` are those of the study: the ones that a grid may name.
    """
    findings = []
    for path, grid in _grids(raw):
        for name, values in grid.items():
            if str(name) in NOT_SWEPT:
                text = f"`{name}` cannot be swept: {NOT_SWEPT[str(name)]}"
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
    """Find what is wrong in the combinations of a sweep, where the file has it.

    What is wrong with a value is told at the value; what does not go together with the rest of a
    combination is told with the combination. Each mistake is told once.
    """
    raw = document.raw
    systems = raw.get("systems") or model.model_fields["systems"].get_default()
    grids = list(_grids(raw.get(_KEY)))
    count = sum(
        math.prod(len(values) for name, values in grid.items() if name != "systems")
        for _, grid in grids
    )
    if count * len(systems) > MAX_POINTS:
        text = f"{count} combinations on {len(systems)} systems; at most {MAX_POINTS} points"
        yield Finding((_KEY,), text)
        return
    told: set[tuple[Path, str]] = set()
    for path, grid in grids:
        own = grid.get("systems", systems)
        used = {
            name: values for name, values in grid.items() if any(is_of(name, each) for each in own)
        }
        for unused in set(grid) - set(used):
            text = f"`{unused}` is an option of a system that this grid does not measure"
            yield Finding((*path, unused), text, at_key=True)
        for chosen in combinations(used):
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
        # What is wrong only with these values, at a place that has no part in the sweep.
        said = ", ".join(f"{name} {show(value)}" for name, value in values.items())
        return Finding(found.path, f"{found.text} (with {said})", at_key=found.at_key)


def _grids(raw: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the grids of a sweep that are mappings, and the ways to them."""
    if isinstance(raw, Mapping):
        yield (_KEY,), raw
    elif isinstance(raw, list | tuple):
        for place, grid in enumerate(raw):
            if isinstance(grid, Mapping):
                yield (_KEY, place), grid
