"""Several drills, on several systems, several times: points, as those of a matrix of studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from wanlat.bundle import REPLICATE
from wanlat.bundle.documents import Manifest
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.prepare import PreparedDrill, prepare
from wanlat.experiments.matrix_points import AnyPoint, Batch
from wanlat.experiments.session import Outcome, Report
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import show

_AROUND_S = 25.0
"""About what a lab, a cluster and reading all objects take, besides the phases."""


class DrillPoint(AnyPoint):
    """A drill on one system: one cluster."""

    drill: Drill = Field(exclude=True, repr=False)
    scale: float = Field(exclude=True, repr=False)

    @property
    def label(self) -> str:
        """Which of its system's drills it is."""
        return " ".join(str(value) for value in self.values.values())

    @property
    def topology(self) -> str:
        """What it calls its topology."""
        return self.drill.topology

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


@dataclass(frozen=True)
class Drills(Batch):
    """Drills, each on every system, as often as there are replicates."""

    drills: Sequence[Drill]
    names: Sequence[str]
    """Of the systems."""
    replicates: int = 1
    scale: float = 1.0
    claims: Sequence[Path] = ()
    """Files of claims besides the shipped ones."""
    kind = "drills"
    command = "drill run"
    noun = "drill"
    several = "Name several, or give --replicates."

    @property
    def name(self) -> str:
        """That of the one drill."""
        return self.drills[0].name if len(self.drills) == 1 else "drills"

    @property
    def seed(self) -> int | None:
        """The one that all its drills have."""
        seeds = {drill.seed for drill in self.drills}
        return seeds.pop() if len(seeds) == 1 else None

    @property
    def own(self) -> dict[str, Any]:
        """The drills, and how they are run."""
        how: dict[str, Any] = {"names": list(self.names), "replicates": self.replicates}
        how |= {"scale": self.scale, "claims": [str(path.absolute()) for path in self.claims]}
        return {"drills": [drill.to_dict() for drill in self.drills], "how": how}

    @property
    def parts(self) -> Sequence[Drill]:
        """The drills, each for all systems."""
        return [drill.model_copy(update={"systems": list(self.names)}) for drill in self.drills]

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Self:
        """Return the drills of a manifest."""
        drills = [Drill.model_validate(drill) for drill in manifest.drills]
        how = manifest.how or {}
        return cls(drills, **{**how, "claims": [Path(path) for path in how["claims"]]})

    def points(self) -> Sequence[DrillPoint]:
        """Return one for each drill, system and replicate."""
        names = [drill.name for drill in self.drills]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"Two drills are named {show(name)}; run one of them by itself.")
        made: list[DrillPoint] = []
        numbers = range(1, self.replicates + 1)
        for drill, system, number in product(self.drills, self.names, numbers):
            is_one = self.replicates == 1
            name = "-".join([drill.name, system, *([] if is_one else [f"{number}"])])
            made.append(
                DrillPoint(
                    point=len(made),
                    name=name,
                    system=system,
                    values={"drill": drill.name, **({} if is_one else {REPLICATE: number})},
                    directory=f"points/{name}",
                    drill=drill,
                    scale=self.scale,
                )
            )
        return made

    @property
    def is_one(self) -> bool:
        """Whether it is one drill on one system, once."""
        return len(self.drills) * len(self.names) * self.replicates == 1

    def prepare(self, point: DrillPoint | None = None, **how: Any) -> PreparedDrill:
        """Return a point ready to be run; None: the one drill."""
        drill, system = (point.drill, point.system) if point else (self.drills[0], self.names[0])
        more: dict[str, Any] = {"scale": self.scale, "claims": self.claims}
        return prepare(drill, system=system, **more, **how)

    def run(self, ready: PreparedDrill, report: Report) -> Outcome:
        """Run it, and write its bundle."""
        return runner.run(ready, report)
