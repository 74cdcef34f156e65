"""``wanlat study``: the YAML files that say what to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from wanlat.app import App
from wanlat.options import File, Json, Quiet, StudyName
from wanlat.output import counted, emit, print_rows, remark, say
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study

app = App("List, show and validate studies.")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the shipped studies."""
    show_studies(as_json=as_json)


def show_studies(*, as_json: bool) -> None:
    """Print the names of the shipped studies, their systems, and what they measure."""
    from wanlat.experiments.config.files import shipped
    from wanlat.experiments.config.study import load

    studies = [load(name) for name in shipped()]
    if as_json:
        keys = ("name", "description", "systems")
        emit([{key: getattr(study, key) for key in keys} for study in studies])
        return
    rows = [(each.name, ",".join(each.systems), each.description) for each in studies]
    print_rows([("STUDY", "SYSTEMS", "DESCRIPTION"), *rows])


@app.command()
def show(study: StudyName, as_json: Json = False, _quiet: Quiet = False) -> None:
    """Print the YAML of a study, and what it measures."""
    from wanlat.experiments.config.files import find

    path = find(study)
    from wanlat.experiments.config.study import load

    read = load(study)
    if as_json:
        emit(read.to_dict())
        return
    typer.echo(path.read_text(encoding="utf-8-sig").rstrip("\n"))
    for line in about(read):
        remark(line)


@app.command()
def validate(file: File) -> None:
    """Check a study; every mistake is reported with its line."""
    from wanlat.experiments.config.study import load

    study = load(file)
    points = _checked(study)
    say(f"{file}: {study.name} is valid: {counted(points, 'point')}")


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


def about(study: Study) -> Iterator[str]:
    """Say what a study measures, on what."""
    from wanlat.experiments.config.endpoints import name_of
    from wanlat.experiments.matrix_points import points_of

    each = f"{study.samples} samples per endpoint and placement"
    if (steps := study.round_trips) is not None:
        what = (
            f"round trips per request: latency at RTT {listing(map(str, steps.rtts))}, "
            f"{steps.visits} times each, {each} and time"
        )
    elif (load := study.load) is not None:
        what = f"throughput and latency under a load of {load.workers} workers for {load.duration}"
    elif (reclaim := study.reclaim) is not None:
        what = (
            f"disk space that is freed after {reclaim.removed} of {reclaim.objects} objects are "
            f"removed, watched for {reclaim.watch}"
        )
    else:
        what = f"latency of single requests: {each}"
    yield f"measures: {what}"
    yield f"endpoints: {listing(map(name_of, study.endpoints))}"
    points = points_of(study)
    topologies = dict.fromkeys(point.study.topology for point in points)
    varied = dict.fromkeys(name for point in points for name in point.values)
    by = f", by {listing(varied)}" if varied else ""
    many = counted(len(points), "point")
    yield f"on {listing(topologies)}, of {listing(study.systems)}: {many}{by}"
