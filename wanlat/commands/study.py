"""``wanlat study``: the YAML files that describe what to measure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wanlat.app import App
from wanlat.commands import completion
from wanlat.commands.shipped import Kind
from wanlat.output import counted
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.matrix_points import Point
    from wanlat.topologies.resolve import Plan

app = App("List, show and validate studies.")


def _row(study: Study) -> dict[str, Any]:
    return {"systems": study.systems}


def _facts(study: Study) -> Iterator[str]:
    from wanlat.experiments.config.endpoints import name_of
    from wanlat.experiments.matrix_points import points_of

    points = points_of(study)
    topologies = dict.fromkeys(point.study.topology for point in points)
    varied = dict.fromkeys(name for point in points for name in point.values)
    by = f", by {listing(varied)}" if varied else ""
    yield f"measures {listing(map(name_of, study.endpoints))}"
    many = counted(len(points), "point")
    yield f"on {listing(topologies)}, of {listing(study.systems)}: {many}{by}"


def _extent(study: Study) -> str:
    from wanlat.experiments.matrix_points import points_of

    return counted(len(points_of(study)), "point")


def _check(study: Study) -> Iterator[Finding]:
    """Find where a study's points do not fit their topologies and systems.

    Raises UserError. Whether the systems are installed is not looked at.
    """
    from wanlat.experiments.matrix_points import points_of
    from wanlat.topologies.load import load
    from wanlat.topologies.resolve import resolve
    from wanlat.topologies.variants import with_nodes

    plans: dict[Any, Plan] = {}
    for point in points_of(study):
        name, nodes = key = point.study.topology, point.study.nodes
        if key not in plans:
            plans[key] = resolve(with_nodes(load(name), nodes) if nodes else load(name))
        yield from _of_point(point, plans[key], study.systems.index(point.system))


def _of_point(point: Point, plan: Plan, index: int) -> list[Finding]:
    """Return what is wrong with a point on its topology; ``index``: of its system."""
    from wanlat.experiments.config.study import node_of
    from wanlat.systems import registry

    findings: list[Finding] = []

    @contextmanager
    def at(*path: str | int) -> Iterator[None]:
        try:
            yield
        except UserError as error:
            text = str(error).rstrip(".")
            is_varied = path[0] in point.values
            findings.append(
                Finding(("matrix",), f"{point.label}: {text}") if is_varied else Finding(path, text)
            )

    study = point.study
    for key, node in (("client", study.client), ("target", study.target)):
        if node is not None:
            with at(key):
                node_of(node, plan)
    with at("systems", index):
        system = registry.get(point.system)
        with at("options", point.system):
            system.check_topology(plan, system.parse_options(study.options.get(point.system)))
    return findings


def _files() -> ModuleType:
    from wanlat.experiments.config import files

    return files


def _loader() -> ModuleType:
    from wanlat.experiments.config import study

    return study


STUDIES = Kind(
    noun="study",
    files=_files,
    loader=_loader,
    row=_row,
    facts=_facts,
    extent=_extent,
    check=_check,
    complete=completion.studies,
)
STUDIES.add_to(app)
