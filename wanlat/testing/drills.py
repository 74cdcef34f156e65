"""Whole drills from a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.topologies.errors import RunFailed, UserError
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.analysis.figures.drill.read import Drill


@dataclass(frozen=True)
class DrillResult:
    """What came of a drill: ``passed``, ``failures``, ``longest_outage_s``, ``recovery_s``, …

    Each entry of the block ``drill`` of its summary.json is an attribute; ``drill.document`` is
    all of it, and ``directory`` its bundle.
    """

    drill: Drill
    directory: Path

    def __getattr__(self, name: str) -> Any:
        document = object.__getattribute__(self, "drill").document
        if name not in document:
            raise AttributeError(f"a drill has no figure `{name}`")
        return document[name]

    def availability(
        self, operation: str, phase: str = "during", *, client: str | None = None
    ) -> float | None:
        """Return ok ÷ due of the ``read``s or ``write``s of a phase, 0 to 1.

        ``client``: of that one's; default: of all clients, the victim's among them. None where
        nothing was due; what this machine could not send is in no share. Raises UserError for a
        client that the drill has not.
        """
        counts = [
            figures["phases"].get(phase) or {"attempted": 0, "not_sent": 0, "expired": 0, "ok": 0}
            for client_of, kind, figures in self.drill.clients
            if kind == operation and client in (None, client_of["client"])
        ]
        if not counts:
            known = listing(entry["client"] for entry in self.drill["clients"])
            raise UserError(
                f"No client `{client}` did a `{operation}` in {self.name}; there are `read` "
                f"and `write`, of {known}."
            )
        from wanlat.analysis.claims import due_of

        due = sum(map(due_of, counts))
        return sum(phase_counts["ok"] for phase_counts in counts) / due if due else None


@dataclass
class Drills:
    """Runs drills on the system and the topology of the test; ``count`` of them so far.

    result = wanlat_drill("one-node-killed", scale=0.2)
    assert result.passed, result.failures
    """

    directory: Path
    system: str
    options: Mapping[str, Any]
    topology: str | None
    seed: int
    locate: Callable[[str | Path], str] = str
    """Where the path of a file leads."""
    count: int = 0

    def __call__(
        self,
        drill: str | Path,
        *,
        scale: float = 1.0,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
        claims: Sequence[str | Path] = (),
    ) -> DrillResult:
        """Run a drill, by its name or the path of its file, and return what came of it.

        ``scale`` multiplies its times; ``settings`` are parameters of its file, dotted for inner
        keys; ``claims`` are files of claims besides the shipped ones.
        Raises UserError, MachineError, and RunFailed when it did not come to its end. The bundle
        is kept when the test fails.
        """
        from wanlat.analysis.figures.drill.read import read_drill
        from wanlat.analysis.report import report
        from wanlat.experiments.drill import runner
        from wanlat.experiments.drill.prepare import load, prepare
        from wanlat.experiments.session import silent

        self.count += 1
        prepared = prepare(
            load(
                self.locate(drill),
                topology=self.topology,
                systems=[self.system],
                settings=settings,
            ),
            system=self.system,
            options=self.options,
            scale=scale,
            seed=self.seed if seed is None else seed,
            claims=[Path(self.locate(file)) for file in claims],
            directory=self.directory / f"drill-{self.count}",
        )
        ended = runner.run(prepared, silent)
        if ended.status == "interrupted":
            raise KeyboardInterrupt(ended.reason)
        report(ended.directory)
        if ended.status != "complete":
            raise RunFailed(
                f"Drill {prepared.drill.name} on {self.system} did not come to its end: "
                f"{ended.reason} Its bundle: {ended.directory}"
            )
        return DrillResult(read_drill(ended.directory), ended.directory)
