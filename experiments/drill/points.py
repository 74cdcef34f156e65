"""Several drills, on several systems, several times: points, as those of a matrix of studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import Field

from wanlat.bundle import REPLICATE
from wanlat.bundle.write import default_directory
from wanlat.emulator.lab import BackendName
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.prepare import PreparedDrill, prepare
from wanlat.experiments.matrix_points import (
    AnyPoint,
    PreparedPoints,
    Shard,
    Unfinished,
    in_order,
    of_shard,
    parameters_of,
    seed_of_all,
)
from wanlat.experiments.reach import reach
from wanlat.experiments.session import CaptureWanted, Outcome, Report
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import show

_AROUND_S = 25.0
"""About what a lab, a cluster and reading all objects take, besides the phases."""


class DrillPoint(AnyPoint):
    """A drill on one system: one cluster."""

    drill: Drill = Field(exclude=True, repr=False)
    scale: float = Field(exclude=True, repr=False)

    @property
    def said(self) -> str:
        """Say which of its system's drills it is."""
        return " ".join(str(value) for value in self.values.values())

    @property
    def expected_s(self) -> float:
        """How long it takes about."""
        phases = self.drill.phases
        return self.scale * (phases.before.s + phases.during.s + phases.after.s) + _AROUND_S

    @property
    def max_network_error_ms(self) -> float:
        """What its network may be late by."""
        return self.drill.max_network_error.ms

    def seed(self, seed: int) -> int:
        """Return its seed: the drill's own if it is run once, else one that is drawn."""
        if self.drill.seed is not None and REPLICATE not in self.values:
            return self.drill.seed
        return super().seed(seed if self.drill.seed is None else self.drill.seed)


@dataclass(frozen=True, kw_only=True)
class PreparedDrills(PreparedPoints[DrillPoint]):
    """Drills of which every one was looked at, on every system."""

    drills: tuple[Drill, ...]
    names: tuple[str, ...]
    """Of the systems."""
    replicates: int
    scale: float
    claims: tuple[Path, ...]
    """Files of claims besides the shipped ones."""

    @property
    def own(self) -> dict[str, Any]:
        """What of its manifest only this kind has."""
        how: dict[str, Any] = {"names": list(self.names), "replicates": self.replicates}
        how |= {"scale": self.scale, "claims": [str(each.absolute()) for each in self.claims]}
        points = _points(self.drills, self.names, self.replicates, self.scale)
        own = {"kind": "drills", "drills": [each.to_dict() for each in self.drills], "how": how}
        return own | {"parameters": parameters_of(points)}

    def prepare(self, point: DrillPoint) -> PreparedDrill:
        """Return one drill ready to be run. Raises UserError or MachineError."""
        return prepare(
            point.drill,
            system=point.system,
            scale=self.scale,
            seed=point.seed(self.seed),
            claims=self.claims,
            backend=self.backend,
            capture=self.capture,
            directory=self.directory / point.directory,
            topologies=self.topologies,
        )

    def measure(self, point: DrillPoint, report: Report) -> Outcome:
        """Prepare and run a drill."""
        ready = self.prepare(point)
        self.check_same_programs([ready])
        return runner.run(ready, report)


def prepare_drills(
    drills: Sequence[Drill],
    names: Sequence[str],
    *,
    replicates: int = 1,
    scale: float = 1.0,
    claims: Sequence[Path] = (),
    directory: Path | None = None,
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    seed: int | None = None,
    topologies: Mapping[str, Topology] | None = None,
    shard: Shard | None = None,
    systems: Sequence[Mapping[str, Any]] = (),
) -> PreparedDrills:
    """Look at everything that could be wrong with any of them. Raises UserError or MachineError.

    ``systems``: of drills that were looked at before, which program each system is.
    """
    found = [each.name for each in drills]
    for name in found:
        if found.count(name) > 1:
            raise UserError(f"Two drills are named {show(name)}; run one of them by itself.")
    known = topologies or {each.topology: load_topology(each.topology) for each in drills}
    drawn, one = seed_of_all(seed, shard), drills[0].name if len(drills) == 1 else "drills"
    points = in_order(_points(drills, names, replicates, scale), drawn)
    made = PreparedDrills(
        drills=tuple(drills),
        names=tuple(names),
        replicates=replicates,
        scale=scale,
        claims=tuple(claims),
        points=of_shard(points, shard),
        every=tuple(points),
        seed=drawn,
        directory=directory or default_directory(one),
        backend=backend,
        capture=capture,
        topologies=known,
        systems=tuple(systems),
        shard=shard,
    )
    if systems:
        return made
    programs = {each.system: made.prepare(each).program for each in points}
    return replace(made, systems=tuple(programs.values()))


def _points(
    drills: Sequence[Drill], names: Sequence[str], replicates: int, scale: float
) -> list[DrillPoint]:
    found: list[DrillPoint] = []
    for drill, name, number in product(drills, names, range(1, replicates + 1)):
        values: dict[str, Any] = {"drill": drill.name}
        values |= {REPLICATE: number} if replicates > 1 else {}
        called = "-".join([drill.name, name, *([f"{number}"] if replicates > 1 else [])])
        found.append(
            DrillPoint(
                point=len(found),
                name=called,
                system=name,
                values=values,
                directory=f"points/{called}",
                drill=drill,
                scale=scale,
            )
        )
    return found


class UnfinishedDrills(Unfinished):
    """The bundle of several drills, and what its manifest says."""

    @property
    def drills(self) -> list[Drill]:
        """Its drills. Raises UserError where this version has no such drills."""
        try:
            return [Drill.model_validate(each) for each in self.manifest["drills"]]
        except ValueError as error:
            raise UserError(
                f"--resume {self.directory}: its drills are none to this version of wanlat "
                f"(it was begun by {self.manifest.get('wanlat')}): {error}"
            ) from error

    @property
    def outside(self) -> list[str]:
        """What it names outside the bundle, in words. Raises UserError."""
        names = self.manifest["how"]["names"]
        drills = [each.model_copy(update={"systems": names}) for each in self.drills]
        return reach(self.manifest, drills)

    def again(self, systems: Sequence[Mapping[str, Any]] = ()) -> PreparedDrills:
        """Prepare it as it was begun; ``systems`` as of `prepare_drills`.

        Raises UserError or MachineError.
        """
        told = self.manifest["how"]
        more = told | {"claims": [*map(Path, told["claims"])], "systems": systems}
        return prepare_drills(self.drills, **more, **self.how)

    def prepared(self) -> PreparedDrills:
        """Return it as it was prepared then, looking at nothing again."""
        return replace(self.again(self.manifest["systems"]), instruments=self.instruments)
