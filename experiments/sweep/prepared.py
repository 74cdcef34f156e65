"""A sweep of which every point was looked at, before any of them is begun."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wanlat.bundle.write import default_directory
from wanlat.emulator.lab import BackendName
from wanlat.experiments.prepared import CaptureWanted, Prepared, Subject, prepare
from wanlat.experiments.study import Study
from wanlat.experiments.sweep.expand import Point, in_order, points_of, seed_of
from wanlat.experiments.sweep.points import DIRECTORY
from wanlat.systems.base import Binary
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology


@dataclass(frozen=True)
class PreparedSweep:
    """A sweep of which every point was looked at."""

    study: Study
    points: tuple[Point, ...]
    """In the order in which they are run."""
    seed: int
    directory: Path
    backend: BackendName | None = None
    capture: CaptureWanted | None = None
    topologies: Mapping[str, Topology] = field(default_factory=dict)
    """By what points call them, before their number of nodes is changed."""
    systems: tuple[Mapping[str, Any], ...] = ()
    """Which program each of them is."""

    def prepare(
        self,
        point: Point,
        directory: Path | None = None,
        *,
        resumed: bool = False,
        binaries: MutableMapping[str, Binary] | None = None,
    ) -> Prepared:
        """Return a point ready to be run. Raises UserError or MachineError."""
        return prepare(
            point.study,
            directory=directory or self.directory / DIRECTORY / point.name,
            backend=self.backend,
            capture=self.capture,
            seed=seed_of(point, self.seed),
            topologies=self.topologies,
            resumed=resumed,
            binaries=binaries,
        )


def prepare_sweep(
    study: Study,
    *,
    directory: Path | None = None,
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    seed: int | None = None,
    topologies: Mapping[str, Topology] | None = None,
) -> PreparedSweep:
    """Look at everything that could be wrong with any point. Raises UserError or MachineError.

    ``topologies`` are used in place of files.
    """
    if seed is None:
        seed = secrets.randbits(32) if study.seed is None else study.seed
    points = points_of(study)
    names = dict.fromkeys(point.study.topology for point in points)
    known = topologies or {}
    prepared = PreparedSweep(
        study,
        tuple(in_order(points, seed)),
        seed,
        directory or default_directory(study.name),
        backend,
        capture,
        {name: known.get(name) or load_topology(name) for name in names},
    )
    systems: dict[str, Mapping[str, Any]] = {}
    binaries: dict[str, Binary] = {}
    for point in points:
        try:
            (subject,) = prepared.prepare(point, binaries=binaries).subjects
        except (UserError, MachineError) as error:
            raise type(error)(f"Point {point.name} of the sweep: {error}") from error
        systems.setdefault(point.system, program(subject))
    return replace(prepared, systems=tuple(systems.values()))


def program(subject: Subject) -> dict[str, Any]:
    """Return which program a system is."""
    found = subject.binary
    return {"name": subject.system.name, "version": found.version, "sha256": found.sha256}
