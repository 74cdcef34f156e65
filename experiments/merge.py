"""Shards of a matrix, measured apart (on other machines, at other times), made one bundle again."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import Points
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_json, read_manifest
from wanlat.bundle.write import now_iso, take_directory, write_manifest
from wanlat.experiments.manifest import machine
from wanlat.experiments.matrix import Unfinished
from wanlat.experiments.matrix_points import Point, Progress, in_order, points_of
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

_ALIKE = ("study", "seed", "systems", "topologies", "parameters", "requested", "wanlat")
"""What points must have in common to be compared: each a key of the manifest."""
_OF_RUN = ("started", "ended", "status", "reason", "command", "shard", "warnings")


def merge(parts: Sequence[Path], directory: Path) -> Path:
    """Make one bundle of the bundles of shards; return it.

    A complete point is taken from whichever part has it. What no part completed is left to
    `wanlat run --resume`. Raises UserError where the parts are not of one study, or two of them
    measured the same point.
    """
    manifests = {part: _manifest(part) for part in parts}
    first = next(iter(manifests))
    for part, manifest in manifests.items():
        _check_alike(first, manifests[first], part, manifest)
    begun = Unfinished(directory, manifests[first])
    points = in_order(points_of(begun.study), begun.manifest["seed"])
    found = _complete(parts)
    hold = take_directory(directory, "Name a new one with --out.")
    with closing(hold):
        for point in points:
            if point.name in found:
                part, entry = found[point.name]
                shutil.copytree(part / entry.directory, directory / point.directory)
                for key in ("status", "reason", "began", "ended", "attempts"):
                    setattr(point, key, getattr(entry, key))
        Progress(directory, points).write()
        write_manifest(directory, _merged(manifests, points))
    return directory


def _manifest(part: Path) -> dict[str, Any]:
    try:
        kind = read_manifest(part).kind
        if kind != "matrix":
            raise UserError(f"{part} is a bundle of kind {kind}; merged are matrices, or shards.")
        return read_json(part / "manifest.json")
    except BundleError as error:
        raise UserError(str(error)) from error


def _check_alike(first: Path, one: Mapping[str, Any], part: Path, other: Mapping[str, Any]) -> None:
    """Raise UserError where two parts are not of one study, measured by the same programs."""
    differs = [key for key in _ALIKE if one.get(key) != other.get(key)]
    if differs:
        hint = " Give all shards the same --seed." if "seed" in differs else ""
        raise UserError(
            f"{first} and {part} are not of one run: they differ in {listing(differs)}.{hint}"
        )


def _complete(parts: Sequence[Path]) -> dict[str, tuple[Path, Point]]:
    """Return the complete points of all parts by name, each with where it lies."""
    found: dict[str, tuple[Path, Any]] = {}
    for part in parts:
        try:
            document = read_document(part, Points)
        except BundleError as error:
            raise UserError(str(error)) from error
        for entry in document.points if document else ():
            if entry.status != "complete":
                continue
            if entry.name in found:
                raise UserError(
                    f"Point {entry.name} was measured in {found[entry.name][0]} and in {part}. "
                    "Leave one of them out, or remove the point's directory from it."
                )
            found[entry.name] = (part, entry)
    return found


def _merged(manifests: Mapping[Path, dict[str, Any]], points: Sequence[Point]) -> dict[str, Any]:
    """Return the manifest of the whole: what the parts have in common, and where each was made."""
    whole = dict(next(iter(manifests.values())))
    missing = [point.name for point in points if point.status != "complete"]
    reason = f"No part has {len(missing)} of {len(points)} points: {listing(missing, at_most=3)}."
    warnings = dict.fromkeys(each for one in manifests.values() for each in one["warnings"])
    kept = ("shard", "started", "ended", *machine())
    return {key: value for key, value in whole.items() if key not in _OF_RUN} | {
        "status": "failed" if missing else "complete",
        "reason": reason if missing else None,
        "shard": None,
        "warnings": list(warnings),
        "command": whole["command"],
        "started": min(one["started"] for one in manifests.values()),
        "ended": now_iso(),
        "parts": [{key: one.get(key) for key in kept} for one in manifests.values()],
    }
