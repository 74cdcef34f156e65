"""A drill on a terminal: what was attempted and what came of it, phase by phase, and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.drill.wording import (
    FAILS,
    HOLDS,
    bound_of,
    durability_sentence,
    how_it_ended,
    outage_sentence,
    percent,
)
from wanlat.analysis.names import EN_DASH, format_ms, series_labels

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wanlat.analysis.drill.model import ClientFigures, Drill, Figures

_FIGURES = ("due", "ok", "fail", "unknown", "available", "p50 ms", "p99 ms", "max ms")
_LONGEST_NAME = 20
"""Characters of a client's name on one line."""
_VERDICT_STYLES = {HOLDS: "green", FAILS: "bold red"}
_DURABILITY_STYLES = {"pass": "green", "fail": "bold red"}


def print_drill(drill: Drill, console: Console) -> None:
    """Print the table of `drill`, then outage and recovery, durability, claims and notes.

    It fits 100 columns; a narrower terminal breaks words and never cuts a figure.
    """
    from rich.padding import Padding
    from rich.text import Text

    def line(text: str, style: str = "") -> None:
        console.print(Padding(Text(text, style=style), (0, 1)))

    console.print(phases_table(drill))
    if any(figures.not_sent for client in drill.clients for figures in client.phases.values()):
        never = sum(f.not_sent for client in drill.clients for f in client.phases.values())
        line(f"fail has {never} never sent: an earlier request was waiting until their deadline.")
    if how := how_it_ended(drill):
        line(f"{how}.", "bold red")
    line(f"{outage_sentence(drill)}.", "bold red" if drill.recovered is False else "")
    line(
        f"{durability_sentence(drill.durability)}.",
        _DURABILITY_STYLES.get(drill.durability.verdict, "yellow"),
    )
    if drill.claims:
        console.print(claims_table(drill))
    for note in drill.notes:
        line(f"• {note}")


def phases_table(drill: Drill) -> Table:
    """One row a phase and client: counts, availability, and latencies of the ok from due."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    label = series_labels([drill.series])[drill.series]
    table = Table(
        title=Text(f"{drill.name}: {label} on {drill.topology}"),
        title_justify="left",
        title_style="bold",
        caption="latency of the ok, from when they were due",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("phase", no_wrap=True)
    table.add_column("client", overflow="fold", max_width=_LONGEST_NAME)
    table.add_column("of", no_wrap=True)
    for header in _FIGURES:
        # Units go to a line of their own, which keeps the columns as narrow as their numbers.
        table.add_column(header.replace(" ms", "\nms"), justify="right", overflow="fold")
    for phase in drill.phases:
        if not phase.reached:
            table.add_row(phase.name, Text("not reached", style="yellow"), end_section=True)
            continue
        name = phase.name if phase.complete else f"{phase.name} (cut)"
        last = ""
        for number, client in enumerate(drill.clients, start=1):
            figures = client.phases.get(phase.name)
            if figures is None:
                continue
            table.add_row(
                name,
                Text("" if client.client == last else client.client),
                "reads" if client.operation == "read" else "writes",
                *_cells(figures),
                style=_row_style(client, phase.name),
                end_section=number == len(drill.clients),
            )
            name, last = "", client.client
    return table


def _cells(figures: Figures) -> list[str]:
    latency = figures.from_due
    return [
        str(figures.attempted),
        str(figures.ok),
        str(figures.fail),
        str(figures.unknown),
        percent(figures.availability),
        format_ms(latency.p50_ms),
        format_ms(latency.p99_ms),
        format_ms(latency.max_ms),
    ]


def _row_style(client: ClientFigures, phase: str) -> str | None:
    figures = client.phases[phase]
    return "yellow" if figures.fail or figures.unknown else None


def claims_table(drill: Drill) -> Table:
    """One row a claim: its verdict, what it says and who says it, its bound, and what was found."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim", overflow="fold", ratio=3)
    table.add_column("found", overflow="fold", ratio=2)
    for claim in drill.claims:
        text = Text(claim.claim)
        text.append(f"\n{claim.id}, {claim.source}", style="dim")
        verdict = Text(claim.verdict, style=_VERDICT_STYLES.get(claim.verdict, "yellow"))
        table.add_row(verdict, text, Text(f"{bound_of(claim.spec)}: {claim.evidence or EN_DASH}"))
    return table
