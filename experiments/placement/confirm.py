"""Predicted placements, measured: a matrix over topologies of their regions, with the leader where
it is predicted to be and a client at each target node.

A client's way to another region is the matrix's own figure and is not measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import Placement, Placements
from wanlat.emulator.lab import BackendName
from wanlat.experiments.config.endpoints import endpoints_of, name_of
from wanlat.experiments.config.study import Study
from wanlat.experiments.matrix_points import PreparedPoints, StudyPoints, prepare_points
from wanlat.experiments.placement.search import Ranking
from wanlat.systems.base import System
from wanlat.topologies.model import Topology

STUDY = "placement"


@dataclass(frozen=True)
class How:
    """How often and how it is measured."""

    samples: int = 30
    replicates: int = 3
    seed: int | None = None
    backend: BackendName | None = None
    directory: Path | None = None


def prepare_confirmation(
    ranking: Ranking, topology: Topology, best: int, how: How
) -> PreparedPoints:
    """Return what measures the ``best`` placements, the middle one and the last.

    ``topology`` is that of the ranking. Raises UserError or MachineError.
    """
    ranks = [*range(1, min(best, len(ranking)) + 1), *ranking.to_confirm]
    document = ranking.document(sorted({*ranks}))
    return prepare_points(
        StudyPoints(study_of(document, ranking, how)),
        directory=how.directory,
        backend=how.backend,
        topologies={
            placement.name: topology_of(topology, placement) for placement in document.placements
        },
        besides=(document,),
    )


def study_of(document: Placements, ranking: Ranking, how: How) -> Study:
    """Return the study that measures placements: each is a grid of its matrix."""
    protocol, system = ranking.model.protocol, document.system
    key = protocol.leader_option

    def grid(placement: Placement) -> dict[str, list[str]]:
        targets = [*dict.fromkeys(request.target for request in placement.requests)]
        leads = {} if key is None else {f"options.{system}.{key}": [str(placement.leader)]}
        return {"topology": [placement.name], "client": targets, **leads}

    keys: dict[str, Any] = {
        "name": STUDY,
        "description": f"Placements of {system} in regions of {document.matrix}, as predicted",
        "topology": document.placements[0].name,
        "systems": [system],
        "options": {system: dict(protocol.given)},
        "endpoints": _endpoints(protocol.system, [*document.mix]),
        "samples": how.samples,
        "replicates": how.replicates,
        "seed": how.seed,
        "matrix": [grid(placement) for placement in document.placements],
    }
    return Study.model_validate(keys)


def _endpoints(system: System, names: Sequence[str]) -> list[Any]:
    """Return endpoints as a study has them: of a system's own definition the whole request."""
    own = {name_of(endpoint): endpoint.to_dict() for endpoint in endpoints_of(system)}
    return [own.get(name, name) for name in names]


def topology_of(topology: Topology, placement: Placement) -> Topology:
    """Return the part of a topology that a placement's regions are: a node in each, of its name."""
    raw = topology.to_dict()
    kept = [site for site in raw["sites"] if site["name"] in placement.regions]
    raw["sites"] = [{**site, "nodes": [site["name"]]} for site in kept]
    raw["name"], raw["description"] = placement.name, ", ".join(placement.regions)
    if pairs := raw.get("links", {}).get("pairs"):
        raw["links"]["pairs"] = [pair for pair in pairs if _ends(pair) <= {*placement.regions}]
    return Topology.model_validate(raw)


def _ends(pair: dict[str, Any]) -> set[str]:
    return {*pair.get("between", ())} or {pair["from"], pair["to"]}
