"""A study with what the command line says: parameters set, and parameters varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wanlat.experiments.config.matrix import (
    EXCLUDE,
    NOT_IN_A_MATRIX,
    NoSuchPlace,
    axes_of,
    check_points,
    with_values,
)
from wanlat.experiments.config.study import Study
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.wording import listing
from wanlat.topologies.yaml_lines import findings_in
from wanlat.topologies.yaml_tree import Document

_MATRIX = "matrix"
_SYSTEMS = "systems"


def changed(
    study: Study, settings: Mapping[str, Any], axes: Mapping[str, Sequence[Any]] | None = None
) -> Study:
    """Return the study with parameters set to values, and others varied over several.

    Parameters are dotted for inner keys. One that is set is varied no longer; one that is varied is
    so in every grid of the study's matrix. Raises UserError, which tells every mistake.
    """
    settings, axes = dict(settings), dict(axes or {})
    both = [name for name in settings if name in axes]
    if both:
        raise UserError(f"`{both[0]}` is set and varied; do one of them.")
    if not settings and not axes:
        return study
    if _MATRIX in settings:
        raise UserError("`matrix` is not set as a whole: give --matrix PARAMETER=V1,V2 for each.")
    each_system = list(axes.pop(_SYSTEMS, ()))
    if each_system:
        settings[_SYSTEMS] = each_system
    for name in axes:
        if name in NOT_IN_A_MATRIX:
            raise UserError(f"--matrix {name}: it cannot be varied: {NOT_IN_A_MATRIX[name]}.")
    try:
        raw = with_values(study.to_dict(), settings)
    except NoSuchPlace as error:
        raise UserError(f"--set: {error}.") from error
    grids = [
        _grid(grid, settings, axes)
        for each in study.matrix or ({},)
        if (grid := _of_systems(each, raw[_SYSTEMS])) is not None
    ]
    if not grids:
        raise UserError(
            f"Study {study.name}: no grid of its matrix is for {listing(raw[_SYSTEMS])}. "
            f"They are for {listing(study.systems)}."
        )
    if each_system and not any(grids):
        grids = [{_SYSTEMS: each_system}]
    if any(grids):
        # A grid that is left without an axis is one point: any parameter with its own value.
        raw[_MATRIX] = [grid or {"samples": [raw["samples"]]} for grid in grids]
    document = Document(raw)
    findings = findings_in(document, Study) or list(check_points(document, Study))
    if findings:
        raise UserError(_told(study, findings))
    return Study.model_validate(raw)


def _of_systems(
    grid: Mapping[str, Sequence[Any]], systems: Any
) -> Mapping[str, Sequence[Any]] | None:
    """Return a grid with those of its own systems that are measured; None without any."""
    if _SYSTEMS not in grid or not isinstance(systems, list):
        return grid
    own = [name for name in grid[_SYSTEMS] if name in systems]
    return {**grid, _SYSTEMS: own} if own else None


def _grid(
    grid: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
) -> dict[str, Sequence[Any]]:
    """Return a grid without what is set, and with what is varied."""
    left = {name: values for name, values in axes_of(grid).items() if not _is_set(name, settings)}
    for name in settings:
        around = [axis for axis in left if name.startswith(f"{axis}.")]
        if around:
            raise UserError(
                f"`{name}` cannot be set: the study varies `{around[0]}`, which holds it. Set "
                f"`{around[0]}` as a whole."
            )
    varied = {**left, **axes}
    kept = [each for each in grid.get(EXCLUDE, ()) if set(each) <= {*varied, _SYSTEMS}]
    return {**varied, EXCLUDE: kept} if kept else varied


def _is_set(name: str, settings: Mapping[str, Any]) -> bool:
    if name == _SYSTEMS:
        return False  # a grid's own systems stay its own: of those that are chosen
    return any(name == one or name.startswith(f"{one}.") for one in settings)


def _told(study: Study, findings: Sequence[Finding]) -> str:
    lines = dict.fromkeys(f"{path_text(found.path) or 'study'}: {found.text}" for found in findings)
    return f"Study {study.name} with what the command line changes: {'; '.join(lines)}."
