"""``wanlat place``: in which regions a cluster's nodes, its leader and its clients are near."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wanlat import options as o
from wanlat.commands import completion
from wanlat.commands.settings import adopted_one, use_bobd, with_options
from wanlat.output import counted, emit, inform, print_table, remark
from wanlat.results import show_report, summaries
from wanlat.running import demand_complete, leave, measure_points, reporting
from wanlat.suggested import Given, as_given, given
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.bundle.documents import Placement, Placements
    from wanlat.experiments.placement.confirm import How
    from wanlat.experiments.placement.search import Ranking
    from wanlat.topologies.model import Topology

_MATRICES = (".csv", ".tsv", ".txt")


def place(
    context: typer.Context,
    matrix: Annotated[
        str,
        o.argument(
            "MATRIX",
            "RTTs between regions: a shipped topology, or the path of a YAML or CSV file",
            completion.topologies,
        ),
    ],
    system: Annotated[
        str, o.option("S", "The system that is to be placed", complete=completion.system)
    ],
    nodes: Annotated[int, o.option("N", "Nodes, each in a region of its own", min=1)] = 3,
    regions: Annotated[
        str, o.option("A,B", "Regions that may have a node (default: all of the matrix)")
    ] = "",
    fixed: Annotated[str, o.option("A,B", "Regions that have a node in any case")] = "",
    clients: Annotated[
        str,
        o.option("A=70%,B=30%", "Where clients are (default: as many in each of the regions)"),
    ] = "",
    mix: Annotated[
        str,
        o.option("E=80%,F=20%", "Their requests (default: as many reads of objects as writes)"),
    ] = "",
    rank_by: Annotated[
        Literal["mean", "worst", "lost"],
        o.option(
            "[mean|worst|lost]",
            "Latency to rank by: the mean over clients, that of the worst client, or the mean once "
            "the worst region to lose is lost",
        ),
    ] = "mean",
    top: Annotated[int, o.option("N", "Placements that are shown", min=1)] = 5,
    from_: Annotated[
        Path | None,
        o.option(
            "BUNDLE",
            "A study of round trips, for endpoints of which the system promises nothing",
            "--from",
        ),
    ] = None,
    option: o.SystemOptions = None,
    confirm: Annotated[
        int | None,
        o.option("N", "Measure the best N, the middle one and the last", min=1),
    ] = None,
    samples: Annotated[
        int, o.option("N", "Samples per endpoint, client and cluster, of --confirm", min=1)
    ] = 30,
    replicates: Annotated[
        int, o.option("N", "Fresh clusters per client and placement, of --confirm", min=1)
    ] = 3,
    jobs: o.Jobs = None,
    seed: o.Seed = None,
    bobd: o.Bobd = None,
    backend: o.Backend = None,
    out: o.Out = None,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Rank the regions to put a cluster's nodes in, and its leader.

    Latencies are predicted: the round trips that the system's definition promises, times the RTTs
    of the matrix. --confirm measures some of them and states how far off they are.
    """
    system = adopted_one(system)
    use_bobd(bobd, [system])

    from wanlat.experiments.placement.confirm import How
    from wanlat.experiments.placement.search import Wish, rank

    topology = _topology(matrix)
    own = with_options({}, option, [system]).get(system, {}) if option else {}
    wish = Wish(
        system=system,
        topology=topology,
        nodes=nodes,
        regions=regions,
        clients=clients,
        mix=mix,
        fixed=fixed,
        rank_by=rank_by,
        options=own,
        measured=_measured(from_, system) if from_ else {},
    )
    ranking = rank(wish)
    shown = ranking.document([*range(1, min(top, len(ranking)) + 1)])
    _show(shown, nodes)
    if confirm is not None:
        how = How(samples, replicates, seed, backend, out)
        _confirm(
            ranking, topology, confirm, how, jobs, given(context), as_json=as_json, verbose=verbose
        )
    elif as_json:
        emit(shown.model_dump(mode="json"))


def _topology(matrix: str) -> Topology:
    """Return the topology that a matrix is. Raises UserError."""
    from wanlat.topologies.load import load

    if not matrix.endswith(_MATRICES):
        return load(matrix)
    from wanlat.topologies.matrix import MatrixError
    from wanlat.topologies.matrix_import import import_matrix

    try:
        imported = import_matrix(matrix)
    except MatrixError as error:
        raise MatrixError(
            f"{error}\n`wanlat topology import {matrix} -o regions.yaml` has options for a matrix "
            "like that; `wanlat place regions.yaml` takes what it writes."
        ) from None
    for note in imported.notes:
        remark(note)
    return imported.topology


def _measured(bundle: Path, system: str) -> dict[str, float]:
    """Return the round trips of a system's endpoints in a bundle, on average. Raises UserError."""
    from wanlat.bundle.errors import refusing

    round_trips: dict[str, list[float]] = {}
    with refusing(bundle):
        for summary in summaries(bundle):
            for row in summary.get("round_trips", ()):
                if row["system"] == system and row["mean_round_trips"] is not None:
                    mean = row["mean_round_trips"]
                    round_trips.setdefault(row["endpoint"], []).append(mean)
    if not round_trips:
        raise UserError(
            f"--from {bundle}: its report has no round trips of {system}. Name the bundle of "
            f"`wanlat run round-trips --systems {as_given([system])[0]}`, after `wanlat report` "
            "of it."
        )
    return {
        endpoint: max(0.0, sum(values) / len(values)) for endpoint, values in round_trips.items()
    }


def _show(ranking: Placements, nodes: int) -> None:
    """Print the ranking, and what it is from."""
    has_leader = any(placement.leader for placement in ranking.placements)
    endpoints = [*ranking.mix] if len(ranking.mix) > 1 else []
    titles = ["RANK", "REGIONS", *(["LEADER"] if has_leader else []), "MEAN MS"]
    titles += [f"{endpoint} MS" for endpoint in endpoints]
    titles += ["WORST CLIENT", "ITS MS", "WORST LOSS", "THEN MS"]
    rows = [_row(placement, endpoints, has_leader) for placement in ranking.placements]
    print_table(titles, rows, to=inform)
    sources = listing(f"{name} {source}" for name, source in ranking.sources.items())
    remark(
        f"Predicted of {counted(ranking.compared, 'placement')} of {counted(nodes, 'node')}, "
        f"ranked by {ranking.rank_by}; round trips: {sources}. What nodes compute, write and queue "
        "comes on top."
    )


def _row(placement: Placement, endpoints: list[str], has_leader: bool) -> list[str]:
    lost = placement.lost
    leads = f", {lost.leader} leads" if lost.leader else ""
    return [
        str(placement.rank),
        " ".join(placement.regions),
        *([placement.leader or "–"] if has_leader else []),
        f"{placement.mean_ms:.1f}",
        *(f"{placement.endpoints[name]:.1f}" for name in endpoints),
        placement.worst_client,
        f"{placement.worst_client_ms:.1f}",
        f"{lost.region}{leads}",
        "no answer" if lost.mean_ms is None else f"{lost.mean_ms:.1f}",
    ]


def _confirm(
    ranking: Ranking,
    topology: Topology,
    best: int,
    how: How,
    jobs: int | None,
    options: Given,
    *,
    as_json: bool,
    verbose: bool,
) -> None:
    """Measure some of the placements and show predicted against measured."""
    from wanlat.experiments.placement.confirm import prepare_confirmation

    prepared = prepare_confirmation(ranking, topology, best, how)
    ended = measure_points(prepared, None, jobs, None, out=how.directory)
    document = demand_complete(ended, "run", options)
    if document is not None:
        leave(ended, document, as_json)
    with reporting(ended.directory):
        show_report(ended.directory, as_json=as_json, verbose=verbose)
    inform(f"bundle: {ended.directory}")
