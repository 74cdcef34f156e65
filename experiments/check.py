"""A system's definition tried out: a small cluster on one site, and each of its requests."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from wanlat.emulator.doctor import demand_lab
from wanlat.experiments.config.endpoints import endpoints_of, name_of
from wanlat.experiments.config.study import Study
from wanlat.experiments.prepare import Prepared, prepare
from wanlat.experiments.session import Outcome
from wanlat.probes.protocols import PLANNERS
from wanlat.systems.base import System
from wanlat.systems.engine.protocols.requests import Requested
from wanlat.systems.engine.read_back import EffectiveSetting

_NODES = 3


@dataclass(frozen=True)
class Checked:
    """How a check ended. Its bundle is kept where something is not as it should be.

    ``rows``: one for each request, as `samples.parquet` has it.
    """

    ended: Outcome
    rows: Sequence[Mapping[str, Any]]
    settings: Sequence[EffectiveSetting]

    @property
    def is_answered(self) -> bool:
        """Whether all requests were made and answered as they should."""
        is_complete = self.ended.status == "complete"
        return is_complete and all(row["outcome"] == "ok" for row in self.rows)

    @property
    def differing(self) -> list[EffectiveSetting]:
        """What is not in effect as it was configured, or could not be read."""
        return [setting for setting in self.settings if not setting.is_as_expected]

    def one_of_each(self, endpoints: Sequence[str | Requested]) -> list[dict[str, Any]]:
        """Return a request of each endpoint and placement, in that order: a failed one, if any.

        With its `endpoint`, `outcome`, `ms` and `error`.
        """
        order = {name: place for place, name in enumerate(map(name_of, endpoints))}

        def rank(row: Mapping[str, Any]) -> tuple[int, bool, int]:
            return order.get(row["endpoint"], -1), row["outcome"] == "ok", row["start_ns"]

        first: dict[tuple[str, str], dict[str, Any]] = {}
        for row in sorted(self.rows, key=rank):
            ms = row["total_ns"] and round(row["total_ns"] / 1e6, 2)
            answer = {**row, "ms": ms}
            shown = {key: answer[key] for key in ("endpoint", "outcome", "ms", "error")}
            first.setdefault((row["endpoint"], row["placement"]), shown)
        return [*first.values()]

    def closes_connections(self) -> list[str]:
        """Return the endpoints of which every request, but the first of all, made a connection."""
        later = sorted(self.rows, key=lambda row: row["start_ns"])[1:]
        made: dict[str, bool] = {}
        for row in later:
            made[row["endpoint"]] = made.get(row["endpoint"], True) and bool(row["new_connection"])
        return [endpoint for endpoint, always in made.items() if always]


def endpoints_to_try(system: System) -> list[str | Requested]:
    """Return all endpoints of a system, in the order of its protocol or its definition."""
    known = PLANNERS[system.api(system.parse_options())].endpoints
    return [*(known or endpoints_of(system))]


def check(
    system: System, endpoints: Sequence[str | Requested], measure: Callable[[Prepared], Outcome]
) -> Checked:
    """Have a cluster of three nodes, or as near to three as the system has, measured.

    Each endpoint twice, without latency; ``measure`` runs the study.

    Raises UserError, MachineError, SystemFailed.
    """
    study = Study(
        name="check",
        topology="one-site",
        nodes=min(max(_NODES, system.min_nodes), system.max_nodes),
        systems=[system.name],
        endpoints=[*endpoints],
        samples=2,
        warmup=0,
    )
    place = Path(tempfile.mkdtemp(prefix=f"wanlat-check-{system.name}-"))
    is_kept = False
    try:
        prepared = prepare(study, directory=place / "bundle")
        demand_lab(prepared.plan, prepared.backend)
        is_kept = True  # its messages name its logs
        checked = _result(measure(prepared), system.name)
        is_wrong = bool(checked.differing) or not checked.is_answered
        is_kept = is_wrong and checked.ended.status != "interrupted"
    finally:
        if not is_kept:
            shutil.rmtree(place, ignore_errors=True)
    return checked


def _result(ended: Outcome, system: str) -> Checked:
    manifest = json.loads((ended.directory / "manifest.json").read_text("utf-8"))
    read = manifest.get("settings", {}).get(system, [])
    rows = parquet.read_table(ended.directory / "samples.parquet").to_pylist()
    return Checked(ended, rows, [EffectiveSetting.recorded(entry) for entry in read])
