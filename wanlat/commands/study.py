"""``wanlat study``: the YAML files that say what to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wanlat.app import App
from wanlat.commands import completion
from wanlat.commands.shipped import Kind
from wanlat.output import counted
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study

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
    """Check the topologies and the options of all points; return how many these are.

    Raises UserError. Whether the systems are installed is not looked at.
    """
    from wanlat.experiments.matrix_points import points_of
    from wanlat.systems import registry
    from wanlat.topologies.load import load
    from wanlat.topologies.resolve import resolve
    from wanlat.topologies.variants import with_nodes

    points = points_of(study)
    plans = {}
    for point in points:
        name, nodes = key = point.study.topology, point.study.nodes
        if key not in plans:
            plans[key] = resolve(with_nodes(load(name), nodes) if nodes else load(name))
        system = registry.get(point.system)
        options = system.parse_options(point.study.options.get(point.system))
        system.check_topology(plans[key], options)
    return counted(len(points), "point")


STUDIES = Kind(
    noun="study",
    files="wanlat.experiments.config.files",
    loader="wanlat.experiments.config.study",
    row=_row,
    facts=_facts,
    extent=_extent,
    complete=completion.studies,
)
STUDIES.add_to(app)
