"""A study or a drill with what the command line says: parameters set, and parameters varied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from wanlat.experiments.config.matrix import (
    MATRIX,
    SYSTEMS,
    NoSuchPlace,
    Values,
    matrix_mistakes,
    parts,
    told,
    with_values,
)
from wanlat.experiments.config.study import Study
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.wording import listing
from wanlat.topologies.yaml_lines import checked
from wanlat.topologies.yaml_model import YamlModel
from wanlat.topologies.yaml_tree import Document

M = TypeVar("M", bound=YamlModel)


def set_values(raw: Values, settings: Values) -> dict[str, Any]:
    """Return the keys of a file with parameters set, without its matrix. Raises UserError."""
    try:
        return with_values(raw, settings)
    except NoSuchPlace as error:
        raise UserError(f"--set: {error}.") from error


def validated(
    what: str, raw: dict[str, Any], model: type[M], also: Callable[[M], Iterable[Finding]]
) -> M:
    """Return what is made of changed keys; ``also`` looks for mistakes besides the model's.

    Raises UserError, which tells every mistake.
    """
    made, wrong = checked(Document(raw), model)
    if made is not None and not wrong:
        wrong = list(also(made))
    if made is None or wrong:
        text = told(wrong).rstrip(".")
        raise UserError(f"{what} with what the command line changes: {text}.")
    return made


def changed(
    study: Study, settings: Values, axes: Mapping[str, Sequence[Any]] | None = None
) -> Study:
    """Return the study with parameters set to values, and others varied over several.

    Parameters are dotted for inner keys. One that is set is varied no longer; one that is varied is
    so in every grid of the study's matrix. Raises UserError, which tells every mistake.
    """
    settings, axes = dict(settings), dict(axes or {})
    if not settings and not axes:
        return study
    if double := settings.keys() & axes.keys():
        raise UserError(f"`{min(double)}` is set and varied; do one of them.")
    if MATRIX in settings:
        raise UserError("`matrix` is not set as a whole: give --matrix PARAMETER=V1,V2.")
    each_system = list(axes.pop(SYSTEMS, ()))
    if each_system:
        settings[SYSTEMS] = each_system
    raw = set_values(study.to_dict(), settings)
    grids = _grids(study, settings, axes, raw[SYSTEMS])
    if each_system and not any(grids):
        grids = [{SYSTEMS: each_system}]
    if any(grids):
        # A grid that is left without an axis is one point: any parameter with its own value.
        raw[MATRIX] = [grid or {"samples": [raw["samples"]]} for grid in grids]

    def of_points(made: Study) -> list[Finding]:
        return matrix_mistakes(raw, made.matrix, made.systems, Study) if made.matrix else []

    return validated(f"Study {study.name}", raw, Study, of_points)


def _grids(
    study: Study, settings: Values, axes: Mapping[str, Sequence[Any]], systems: Any
) -> list[dict[str, Any]]:
    """Return the grids of the systems that are chosen, without what is set and with what varies."""
    found: list[dict[str, Any]] = []
    for _, own, excluded in list(parts(study.matrix or ())) or [((), {}, [])]:
        left = {name: values for name, values in own.items() if not _is_set(name, settings)}
        if SYSTEMS in own and isinstance(systems, list):
            left[SYSTEMS] = [name for name in own[SYSTEMS] if name in systems]
            if not left[SYSTEMS]:
                continue
        for name in settings:
            for around in left:
                if name.startswith(f"{around}."):
                    raise UserError(
                        f"`{name}` cannot be set: the study varies `{around}`, which holds it. "
                        f"Set `{around}` as a whole."
                    )
        varied = {**left, **axes}
        kept = [each for each in excluded if each.keys() <= {*varied, SYSTEMS}]
        found.append({**varied, "exclude": kept} if kept else varied)
    if not found:
        raise UserError(
            f"Study {study.name}: no grid of its matrix is for {listing(systems)}. "
            f"They are for {listing(study.systems)}."
        )
    return found


def _is_set(name: str, settings: Values) -> bool:
    """Whether a parameter is set. (A grid's own systems stay its own: of those that are chosen.)"""
    return name != SYSTEMS and any(name == one or name.startswith(f"{one}.") for one in settings)
