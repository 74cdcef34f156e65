"""``wanlat study``: the YAML files that say what to measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.output import counted, emit, remark, say, show_list
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study

app = App("List, show and validate studies.")


@app.command("list")
def list_(as_json: o.Json = False) -> None:
    """List the shipped studies."""
    show_studies(as_json=as_json)


def show_studies(*, as_json: bool) -> None:
    """Print the names of the shipped studies, their systems, and what they measure."""
    from wanlat.experiments.config.files import shipped
    from wanlat.experiments.config.study import load

    keys = ("name", "systems", "description")
    entries = [{key: getattr(load(name), key) for key in keys} for name in shipped()]
    show_list(entries, as_json=as_json)


@app.command()
def show(study: o.StudyName, as_json: o.Json = False, _quiet: o.Quiet = False) -> None:
    """Print the YAML of a study, and what it measures."""
    from wanlat.experiments.config.files import find

    path = find(study)
    from wanlat.experiments.config.study import load

    read = load(study)
    if as_json:
        emit(read.to_dict())
        return
    typer.echo(path.read_text(encoding="utf-8-sig").rstrip("\n"))
    from wanlat.experiments.config.endpoints import name_of
    from wanlat.experiments.matrix_points import points_of

    points = points_of(read)
    topologies = dict.fromkeys(point.study.topology for point in points)
    varied = dict.fromkeys(name for point in points for name in point.values)
    by = f", by {listing(varied)}" if varied else ""
    remark(f"measures {listing(map(name_of, read.endpoints))}")
    many = counted(len(points), "point")
    remark(f"on {listing(topologies)}, of {listing(read.systems)}: {many}{by}")


@app.command()
def validate(file: o.File) -> None:
    """Check a study; every mistake is reported with its line."""
    from wanlat.experiments.config.study import load

    study = load(file)
    say(f"{file}: {study.name} is valid: {counted(_checked(study), 'point')}")


def _checked(study: Study) -> int:
    """Check the topologies and the options of all points; return how many these are.

    Raises UserError. Whether the systems are installed is not looked at.
    """
    from wanlat.experiments.matrix_points import points_of
    from wanlat.systems import registry
    from wanlat.topologies.load import load
    from wanlat.topologies.resolve import resolve
    from wanlat.topologies.scale import with_nodes

    points = points_of(study)
    plans = {}
    for point in points:
        key = point.study.topology, point.study.nodes
        if key not in plans:
            topology = load(point.study.topology)
            plans[key] = resolve(with_nodes(topology, key[1]) if key[1] else topology)
        system = registry.get(point.system)
        options = system.parse_options(point.study.options.get(point.system))
        system.check_topology(plans[key], options)
    return len(points)
