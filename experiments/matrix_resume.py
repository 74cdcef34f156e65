"""An incomplete run of a matrix, to resume: whether what resumes it is what began it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import Points
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_json, read_manifest
from wanlat.experiments.config.study import Study
from wanlat.experiments.manifest import machine
from wanlat.experiments.matrix_points import Shard
from wanlat.experiments.session import CaptureWanted
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import listing


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

    @property
    def study(self) -> Study:
        """Its study. Raises UserError where this version has no such studies."""
        try:
            return Study.model_validate(self.manifest["study"])
        except ValueError as error:
            raise UserError(
                f"--resume {self.directory}: its study is none to this version of wanlat "
                f"(it was begun by {self.manifest.get('wanlat')}): {error}"
            ) from error

    @property
    def how(self) -> dict[str, Any]:
        """How it is measured: arguments of `prepare_matrix`.

        On the topologies as they were, and with the record of packets that was wanted.
        """
        wanted = self.manifest.get("requested") or {}
        topologies = self.manifest["topologies"]
        return {
            "directory": self.directory,
            "backend": wanted.get("backend"),
            "capture": CaptureWanted(**wanted["capture"]) if wanted.get("capture") else None,
            "topologies": {name: Topology.model_validate(e) for name, e in topologies.items()},
            "seed": self.manifest["seed"],
            "shard": Shard.parse(shard) if (shard := self.manifest.get("shard")) else None,
        }


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


def check_same_stores(
    directory: Path, before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
) -> None:
    """Raise UserError when a system is another program now: points would not compare."""
    known = {each["name"]: each for each in before}
    for new in now:
        old = known.get(new["name"], new)
        if old["sha256"] != new["sha256"]:
            was, is_ = (f"{e['version']} (sha256 {e['sha256'][:12]})" for e in (old, new))
            raise UserError(
                f"{directory}: system {new['name']} is another program now: {was} before, {is_} "
                "now. The points of a matrix are compared with each other. Put the former one "
                "back, or begin a new bundle."
            )


def machine_remarks(before: Mapping[str, Any]) -> list[str]:
    """Tell what of the machine is another than when a bundle was begun."""
    differs = [
        f"{name} {was}, then {now}"
        for name, now in machine().items()
        if (was := before.get(name)) not in (None, now)
    ]
    text = f"It was resumed under other conditions: {listing(differs)}. What is compared may differ"
    return [f"{text} so."] if differs else []
