"""An incomplete run of a matrix, to resume: whether what resumes it is what began it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import Points
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_json, read_manifest
from wanlat.experiments.config.study import Study
from wanlat.experiments.manifest import machine
from wanlat.experiments.session import CaptureWanted
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing

_NOT_MEASURED = ("description",)
_MOST_TOLD = 5
_MACHINE = ("wanlat", "kernel", "cpu", "memory_bytes")


@dataclass
class Unfinished:
    """The bundle of a matrix, and what its manifest says."""

    directory: Path
    manifest: dict[str, Any]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do.

        A point whose directory was removed is to be measured again.
        """
        found = read_document(self.directory, Points)
        return self.manifest["status"] == "complete" and all(
            (self.directory / each.directory).exists() for each in (found.points if found else ())
        )


def read_unfinished(directory: Path) -> Unfinished:
    """Return a bundle to resume. Raises UserError where there is none, or not of a matrix."""
    try:
        kind = read_manifest(directory).kind
    except BundleError as error:
        raise UserError(f"--resume {directory}: {error}") from error
    if kind != "matrix":
        raise UserError(
            f"--resume {directory}: that is a bundle of kind {kind}, which is measured in one go: "
            "run it again. A study with a `matrix` is resumed point by point."
        )
    return Unfinished(directory, read_json(directory / "manifest.json"))


def study_of(unfinished: Unfinished) -> Study:
    """Return the study of a bundle. Raises UserError where this version has no such studies."""
    try:
        return Study.model_validate(unfinished.manifest["study"])
    except ValueError as error:
        raise UserError(
            f"--resume {unfinished.directory}: its study is none to this version of wanlat "
            f"(it was begun by {unfinished.manifest.get('wanlat')}): {error}"
        ) from error


def topologies_of(unfinished: Unfinished) -> dict[str, Topology]:
    """Return the topologies of a bundle, by what its study calls them."""
    found = unfinished.manifest["topologies"]
    return {name: Topology.model_validate(each) for name, each in found.items()}


def capture_of(unfinished: Unfinished) -> CaptureWanted | None:
    """Return what the bundle's packets were to be recorded with."""
    wanted = (unfinished.manifest.get("requested") or {}).get("capture")
    return CaptureWanted(**wanted) if wanted else None


def check_same_study(unfinished: Unfinished, study: Study, seed: int | None) -> None:
    """Raise UserError when a study, or a seed in its place, differs from the bundle's."""
    before, now = _plain(study_of(unfinished)), _plain(study)
    if seed is not None and seed != unfinished.manifest["seed"]:
        now["seed"] = seed
        before["seed"] = unfinished.manifest["seed"]
    differs = list(_differences(before, now))
    if not differs:
        return
    told = [f"{name}: {_text(old)} there, {_text(new)} here" for name, old, new in differs]
    rest = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    raise UserError(
        f"--resume {unfinished.directory}: that is the bundle of another study "
        f"({'; '.join(told[:_MOST_TOLD])}{rest}). To go on as it was begun: `wanlat run --resume "
        f"{unfinished.directory}`, with nothing else. To measure something else: a new bundle."
    )


def check_same_topologies(unfinished: Unfinished, now: Mapping[str, Topology]) -> None:
    """Raise UserError when a topology is no longer what it was."""
    before = topologies_of(unfinished)
    for name, topology in now.items():
        if name in before and before[name].to_dict() != topology.to_dict():
            raise UserError(
                f"--resume {unfinished.directory}: topology {name} has changed since it was begun. "
                f"`wanlat run --resume {unfinished.directory}`, without the study, goes on with "
                "the topology as it was."
            )


def check_same_stores(
    directory: Path, before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
) -> None:
    """Raise UserError when a system is another program now: points would not compare."""
    known = {each["name"]: each for each in before}
    for each in now:
        old = known.get(each["name"])
        if old is not None and old["sha256"] != each["sha256"]:
            raise UserError(
                f"{directory}: system {each['name']} is another program now: "
                f"{_program(old)} before, {_program(each)} now. The points of a matrix "
                "are compared with each other. Put the former one back, or begin a new bundle."
            )


def machine_remarks(before: Mapping[str, Any]) -> list[str]:
    """Tell what of the machine is another than when a bundle was begun."""
    now = machine()
    changed = [name for name in _MACHINE if before.get(name) not in (None, now[name])]
    if not changed:
        return []
    told = listing(f"{name} {_text(before[name])}, then {_text(now[name])}" for name in changed)
    return [f"It was resumed under other conditions: {told}. What is compared may differ so."]


def _plain(study: Study) -> dict[str, Any]:
    return {name: value for name, value in study.to_dict().items() if name not in _NOT_MEASURED}


def _differences(before: Any, now: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys([*before, *now]):
            inner = f"{at}.{name}" if at else str(name)
            yield from _differences(before.get(name), now.get(name), inner)
    elif before != now:
        yield at, before, now


def _program(system: Mapping[str, Any]) -> str:
    return f"{system['version']} (sha256 {system['sha256'][:12]})"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return "nothing" if value is None else str(value)
