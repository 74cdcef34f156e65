"""``wanlat crosscheck``: do independent clients measure what oneshot measures?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from wanlat.commands.settings import use_bobd, with_options
from wanlat.options import Backend, Json, Rtt, Seed, backend_name, topology_of
from wanlat.output import emit, people, reporter, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

_STYLE = {"agree": "green", "explained": "yellow", "unexplained": "bold red"}


def table_of(document: dict[str, Any]) -> Table:
    """Return the comparisons as a table for people."""
    title = (
        f"{document['system']} {document['label']}, {document['rtt_ms']:.1f} ms from "
        f"{document['standing']['distance']} to {document['asked']}: medians, ms"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("endpoint", "client"):
        table.add_column(column, no_wrap=True)
    for column in ("oneshot", "client's", "difference", "overhead", "round trips"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for entry in document["comparisons"]:
        figures = ["–"] * 5
        if entry["oneshot_ms"] is not None:
            low, high = entry["overhead_ci95_ms"]
            figures = [
                f"{entry['oneshot_ms']['distance']:.2f}",
                f"{entry['client_ms']['distance']:.2f}",
                f"{entry['difference_ms']:+.2f}",
                f"{entry['overhead_ms']:.2f} ({low:.2f}–{high:.2f})",
                f"{entry['extra_round_trips']:+.2f}",
            ]
        verdict = entry["verdict"]
        table.add_row(
            entry["endpoint"], entry["client"], *figures, f"[{_STYLE[verdict]}]{verdict}[/]"
        )
    return table


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def crosscheck(
    topology: Annotated[
        str,
        typer.Argument(metavar="TOPOLOGY", help="A shipped topology or the path of a YAML file."),
    ] = "five-sites",
    system: Annotated[str, typer.Option(help="The store that is asked.")] = "quorum",
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Endpoints. Default: all that the store's API has."),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="boto3, minio-py (S3), grpcurl, grpcio (Bob), or the path of a program "
            "(docs/crosscheck.md). Default: all that are installed.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="SYSTEM.KEY=VALUE", help="An option of the store; may be repeated."),
    ] = None,
    bobd: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The program of system bob.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=6, max=10_000, help="Of each endpoint, client and position.")
    ] = 20,
    rtt: Rtt = None,
    jitter: Annotated[
        str, typer.Option(metavar="TIME", help="Set every WAN link's jitter.")
    ] = "0ms",
    seed: Seed = None,
    backend: Backend = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON document here as well.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure endpoints with oneshot and with clients of other makers; explain differences."""
    from wanlat.experiments.crosscheck.prepare import prepare
    from wanlat.experiments.crosscheck.run import run

    if bobd is not None:
        use_bobd(bobd, [system])
    prepared = prepare(
        topology_of(topology, rtt, jitter),
        system,
        endpoints=_listed(endpoint),
        clients=_listed(client),
        samples=samples,
        options=with_options({}, option or [], [system]).get(system),
        seed=seed,
        backend=backend_name(backend),
    )
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no directory {out.absolute().parent}.")
    with reporter() as report:
        document = run(prepared, report)
    _show(document)
    if out is not None:
        out.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if as_json:
        emit(document)
    raise typer.Exit(1 if document["verdict"] == "unexplained" else 0)


def _show(document: dict[str, Any]) -> None:
    people.print(table_of(document))
    unsteady = dict.fromkeys(
        entry["endpoint"]
        for entry in document["comparisons"]
        if entry["compared"] == "times without the store's"
    )
    if unsteady:
        say(
            f"The store's own time is unsteady ({listing(unsteady)}), so difference and overhead "
            "are of times without it."
        )
    for entry in document["comparisons"]:
        where = f"{entry['endpoint']}, {entry['client']}"
        for one in entry["explained_by"]:
            say(f"{where}: {one['text']}, seen in {one['requests']} of {entry['n']} requests")
        for text in entry["also_seen"]:
            say(f"{where}: now and then: {text}")
        if entry["error"]:
            say(f"{where}: {entry['failed']} requests failed, the first with {entry['error']}")
        if entry["reason"]:
            say(f"{where}: {entry['reason']}", style=_STYLE[entry["verdict"]])
    for client in document["clients"]:
        for text in client["first_request"]:
            say(f"first request: {text}")
    say(f"verdict: {document['verdict']}", style=_STYLE[document["verdict"]])
