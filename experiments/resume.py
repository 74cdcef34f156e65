"""Bundles of points that are not complete: what is left of them, and whether it may be run.

A point that is measured already is never measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import Document, Manifest, Points
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_manifest
from wanlat.bundle.write import now_iso
from wanlat.experiments.drill.points import Drills
from wanlat.experiments.manifest import instruments, machine
from wanlat.experiments.matrix_points import (
    Batch,
    PreparedPoints,
    Shard,
    StudyPoints,
    check_same_programs,
    prepare_points,
)
from wanlat.experiments.reach import reach
from wanlat.experiments.session import CaptureWanted
from wanlat.systems import registry
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing, show

BATCHES: Mapping[str, type[Batch]] = {batch.kind: batch for batch in (StudyPoints, Drills)}
"""By the kinds of bundles that have points."""


@dataclass
class Unfinished:
    """The bundle of a matrix, and its manifest."""

    directory: Path
    manifest: Manifest

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do.

        A point without its directory, which was removed, is to be measured again.
        """
        document = read_document(self.directory, Points)
        return self.manifest.status == "complete" and all(
            (self.directory / point.directory).exists()
            for point in (document.points if document else ())
        )

    @property
    def batch(self) -> Batch:
        """What it measures. Raises UserError where this version has no such studies or drills."""
        try:
            return BATCHES[self.manifest.kind].from_manifest(self.manifest)
        except ValueError as error:
            raise UserError(
                f"--resume {self.directory}: this version of wanlat cannot read what it measures "
                f"(it was started by {self.manifest.wanlat}): {error}"
            ) from error

    @property
    def how(self) -> dict[str, Any]:
        """How it is measured: arguments of `prepare_points`.

        On the topologies as they were, and with the record of packets that was wanted.
        """
        manifest, wanted = self.manifest, self.manifest.requested or {}
        return {
            "directory": self.directory,
            "backend": wanted.get("backend"),
            "capture": CaptureWanted(**wanted["capture"]) if wanted.get("capture") else None,
            "topologies": {
                name: Topology.model_validate(keys) for name, keys in manifest.topologies.items()
            },
            "seed": manifest.seed,
            "shard": Shard.parse(manifest.shard) if manifest.shard else None,
        }

    @property
    def outside(self) -> list[str]:
        """What it names outside the bundle, in words. Raises UserError."""
        return reach(self.manifest, self.batch.parts)

    def prepared(self) -> PreparedPoints:
        """Return it as it was prepared then, looking at nothing again. Raises UserError."""
        made = prepare_points(self.batch, systems=as_written(self.manifest.systems), **self.how)
        return replace(made, instruments=(*as_written(self.manifest.instruments),))

    def kept(self, systems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what stays of its manifest where it is resumed with these programs.

        Raises UserError where one is another than before.
        """
        (old,), now = as_written([self.manifest]), machine()
        check_same_programs(self.directory, self.manifest.systems, systems)
        check_same_programs(self.directory, self.manifest.instruments, instruments())
        differs = listing(
            f"{name} {was}, then {now[name]}"
            for name in now
            if (was := old.get(name)) not in (None, now[name])
        )
        text = f"It was resumed under other conditions: {differs}. What is compared may differ so."
        remarks = [text] if differs and text not in old["warnings"] else []
        return {
            "warnings": [*old["warnings"], *remarks],
            "command": old["command"],
            "started": old["started"],
            "attempts": old["attempts"] + 1,
            "resumed": [*old.get("resumed", []), now_iso()],
        }


def as_written(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Return the keys that documents were written with."""
    return [document.model_dump(mode="json", exclude_unset=True) for document in documents]


def unfinished_of(directory: Path, manifest: Manifest) -> Unfinished:
    """Return the bundle of a matrix, or of several drills, by its manifest.

    Raises UserError where a system of the user's own was not given to this process by its
    directory: no code is loaded because a manifest names it.
    """
    named = registry.adopted(manifest.adopted)
    for name, given in manifest.adopted.items():
        if name not in named:  # whoever wrote the manifest would run a hooks.py of theirs
            raise UserError(
                f"{directory}: system {show(name)} is none of wanlat's, and its definition may "
                f"bring code along. The manifest says that it was in {show(given)}; if you trust "
                "what is there now, name it: --systems DIR."
            )
    return Unfinished(directory, manifest)


def read_unfinished(
    directory: Path, by: str | None = None, *, is_trusted: bool = False
) -> Unfinished:
    """Return a bundle to resume ``by`` a command (None: whichever).

    Raises UserError where there is none, or one that has no points, or one that is not trusted and
    names programs or files of this machine.
    """
    try:
        manifest = read_manifest(directory)
    except BundleError as error:
        raise UserError(f"--resume {directory}: {error}") from error
    if manifest.kind not in BATCHES:
        raise UserError(
            f"--resume {directory}: that is a bundle of kind {manifest.kind}, which is measured in "
            "one go: run it again. A study with a `matrix`, and one of the envelope, is resumed."
        )
    command = BATCHES[manifest.kind].command
    if by not in (None, command):
        raise UserError(f"`wanlat {command} --resume {directory}` resumes that.")
    unfinished = unfinished_of(directory, manifest)
    if not is_trusted and (outside := unfinished.outside):
        raise UserError(
            f"--resume {directory}: the bundle names what is outside of it, and resuming would run "
            f"or read that on this machine: {listing(outside)}. If you trust the bundle, give "
            "--trust, too."
        )
    return unfinished
