"""Whole drills from a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.analysis.drill.model import Drill


@dataclass(frozen=True)
class DrillResult:
    """What came of a drill. ``drill`` has every figure (`wanlat.analysis.drill.model.Drill`)."""

    drill: Drill
    directory: Path
    """Its bundle."""

    @property
    def failures(self) -> tuple[str, ...]:
        """Why it did not pass, a sentence each."""
        return self.drill.failures

    @property
    def passed(self) -> bool:
        """Whether nothing was lost and no claim was refuted."""
        return self.drill.passed

    @property
    def longest_outage_s(self) -> float:
        """The longest time in which a client got no answer."""
        return self.drill.longest_outage_s

    @property
    def recovery_s(self) -> float | None:
        """From the first injection until all is as before; None: not by the end."""
        return self.drill.recovery_s

    def availability(
        self, operation: str, phase: str = "during", *, client: str | None = None
    ) -> float | None:
        """Return ok ÷ attempted of the ``read``s or ``write``s of a phase, 0 to 1.

        ``client``: of that one's; default: of all clients, the victim's among them. None where
        nothing was due. Raises UserError for a client that the drill has not.
        """
        found = [
            each
            for each in self.drill.clients
            if each.operation == operation and client in (None, each.client)
        ]
        if not found:
            known = listing(each.name for each in self.drill.places)
            raise UserError(
                f"No client `{client}` did a `{operation}` in {self.drill.name}; there are `read` "
                f"and `write`, of {known}."
            )
        figures = [each.phases[phase] for each in found if phase in each.phases]
        attempted = sum(each.attempted for each in figures)
        return sum(each.ok for each in figures) / attempted if attempted else None


class Drills:
    """Runs drills on the system and the topology of the test.

    result = wanlat_drill("one-node-killed", scale=0.2)
    assert result.passed, result.failures
    """

    def __init__(
        self,
        directory: Path,
        system: str,
        options: Mapping[str, Any],
        topology: str | None,
        seed: int,
        charts: bool = True,
    ) -> None:
        self._directory = directory
        self._system = system
        self._options = options
        self._topology = topology
        self._seed = seed
        self._charts = charts
        self._count = 0

    def __call__(
        self,
        drill: str | Path,
        *,
        scale: float = 1.0,
        seed: int | None = None,
        claims: Sequence[Path] = (),
    ) -> DrillResult:
        """Run a drill, by its name or the path of its file, and return what came of it.

        ``scale`` multiplies its times; ``claims`` are files of claims besides the shipped ones.
        Raises UserError, MachineError, and RunFailed when it did
        not come to its end. The bundle is kept when the test fails.
        """
        from wanlat.analysis.drill.read import read_drill
        from wanlat.analysis.report import report
        from wanlat.experiments.drill import runner
        from wanlat.experiments.drill.prepare import prepare
        from wanlat.topologies.errors import RunFailed

        self._count += 1
        prepared = prepare(
            str(drill),
            system=self._system,
            options=self._options,
            topology=self._topology,
            scale=scale,
            seed=self._seed if seed is None else seed,
            claims=claims,
            directory=self._directory / f"drill-{self._count}",
        )
        outcome = runner.run(prepared, lambda *_: None)
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if self._charts:
            report(outcome.directory)
        if outcome.status != "complete":
            raise RunFailed(
                f"Drill {prepared.drill.name} on {self._system} did not come to its end: "
                f"{outcome.reason} Its bundle: {outcome.directory}"
            )
        return DrillResult(read_drill(outcome.directory), outcome.directory)
