"""``wanlat lab`` commands that look at a running lab, or change it, from another terminal."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.emulator.control import client
from wanlat.options import Json, quantity
from wanlat.output import emit, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import show as shown

if TYPE_CHECKING:
    from rich.table import Table

    from wanlat.emulator.process import Process

_FEW_ROWS = 40
_FEW_LINES = 10
_FOLLOW_S = 0.3

LabName = Annotated[
    str | None,
    typer.Option("--lab", metavar="NAME|PID", help="The running lab (default: the only one)"),
]


def _seconds(text: str) -> float:
    seconds = Duration.parse(text).s
    if not seconds:
        raise UserError("0 would change nothing; give a longer time.")
    return seconds


For = Annotated[
    float | None,
    typer.Option(
        "--for",
        parser=quantity(_seconds),
        metavar="TIME",
        help="Undo the change after this time, e.g. 30s",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET", help="As of `wanlat lab change -h` (default: all)"),
]
_EMIT_ENTRY = ("t_ns", "not_before_ns", "clock", "link", "from", "to", "before", "after", "origin")


def list_(as_json: Json = False) -> None:
    """List your running labs."""
    labs = client.labs()
    if as_json:
        emit(labs)
        return
    if not labs:
        say("No lab is running. `wanlat lab up TOPOLOGY` starts one.")
    for lab in labs:
        if "error" in lab:
            typer.echo(f"{lab['pid']:<8} {lab['error']}")
            continue
        size = f"{len(lab['sites'])} sites, {lab['nodes']} nodes"
        since = _time(lab["since"])
        typer.echo(
            f"{lab['pid']:<8} {lab['name']:<20} {lab['backend']:<6} {size:<22} since {since}"
        )


def show(targets: Targets = None, lab: LabName = None, as_json: Json = False) -> None:
    """Show the links of a running lab: settings, packets, losses."""
    with client.find(lab) as running:
        answer = running.ask("show", targets=targets)
    if as_json:
        emit(answer)
        return
    from wanlat.output import people

    rows = answer["directions"]
    told = answer["lab"]
    say(f"{told['name']} on {told['backend']}, process {told['pid']}")
    chosen = rows if targets or len(rows) <= _FEW_ROWS else _of_interest(rows)
    people.print(_table(chosen[: _FEW_ROWS * 5 if targets else _FEW_ROWS]))
    left = len(rows) - min(len(chosen), _FEW_ROWS * 5 if targets else _FEW_ROWS)
    if left:
        say(f"and {left} more directions: name targets to see them, or use --json")
    for hold in answer["holds"]:
        say(f"for another {hold['ends_in_s']:.0f} s: {hold['what']}")


def change(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET... KEY=VALUE...",
            help="TARGET: a node, a site (its WAN links), SITE.lan, A:B (one direction), A/B "
            "(both), groups with commas, or wan, lan, all. KEY: delay, rtt, jitter, loss, rate "
            "and the other keys of topology files; `delay=+200ms` adds, `rate=none` removes",
        ),
    ],
    lab: LabName = None,
    for_: For = None,
    as_json: Json = False,
) -> None:
    """Change links of a running lab, in place, all at one instant.

    wanlat lab change dc1/dc2 delay=200ms loss=5%

    wanlat lab change n1 delay=+200ms --for 30s
    """
    targets = [word for word in words if "=" not in word]
    settings = dict(_setting(word) for word in words if "=" in word)
    if not targets:
        raise UserError(
            "Nothing is named to be changed: give a target before the settings, such as "
            "`dc1/dc2 delay=200ms`; `wanlat lab show` has the names."
        )
    if not settings:
        raise UserError(
            f"Nothing is said to be changed about {' '.join(targets)}: give KEY=VALUE, such as "
            "delay=200ms or loss=5%."
        )
    with client.find(lab) as running:
        answer = running.ask("change", targets=targets, settings=settings, for_s=for_)
    _tell(answer, as_json)


def cut(
    targets: Annotated[
        list[str], typer.Argument(metavar="TARGET", help="As of `wanlat lab change -h`")
    ],
    lab: LabName = None,
    for_: For = None,
    as_json: Json = False,
) -> None:
    """Drop every packet (A:B: in one direction) until it is healed, restored, or time is up."""
    with client.find(lab) as running:
        answer = running.ask("cut", targets=targets, for_s=for_)
    _tell(answer, as_json)


def heal(targets: Targets = None, lab: LabName = None, as_json: Json = False) -> None:
    """End cuts; what else was changed stays."""
    with client.find(lab) as running:
        answer = running.ask("heal", targets=targets)
    _tell(answer, as_json)


def restore(targets: Targets = None, lab: LabName = None, as_json: Json = False) -> None:
    """Return links to what the topology says."""
    with client.find(lab) as running:
        answer = running.ask("restore", targets=targets)
    _tell(answer, as_json)


def journal(
    lab: LabName = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print changes as they come, until Ctrl-C")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print every change since the lab began, with the instant of effect (CLOCK_MONOTONIC)."""
    if follow and as_json:
        raise UserError(
            "--json prints one document, which --follow would never end. For lines of JSON as "
            "they come, start the lab with `wanlat lab up --journal FILE`."
        )
    with client.find(lab) as running:
        answer = running.ask("journal", after=0)
        if as_json:
            emit([_plain(entry) for entry in answer["entries"]])
            return
        if not answer["entries"] and not follow:
            say("Nothing has been changed.")
        while True:
            for entry in answer["entries"]:
                typer.echo(f"{entry['t_ns']}  {_time(entry['clock'])}  {_entry(entry)}")
            if not follow:
                return
            sys.stdout.flush()
            time.sleep(_FOLLOW_S)
            answer = running.ask("journal", after=answer["next"])


def run_inside(lab: str, node: str, argv: Sequence[str]) -> int:
    """Run a command on a node of a running lab; return its exit code."""
    with client.find(lab) as running:
        running.spawn(node, argv, (0, 1, 2))
        return wait_for(running)


def wait_for(process: client.LabClient | Process) -> int:
    """Wait for a command; Ctrl-C goes to it, and what ignores that is killed by its lab's end."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(2)
        except TimeoutError:
            return -signal.SIGKILL


def _setting(word: str) -> tuple[str, Any]:
    from wanlat.topologies import yaml_tree

    key, _, text = word.partition("=")
    try:
        document = yaml_tree.parse(text)
    except yaml_tree.NotYamlError as error:
        raise UserError(f"{shown(word)}: the value cannot be read: {error.text}") from None
    if document.findings:
        raise UserError(f"{shown(word)}: {document.findings[0].text}")
    if document.raw is None:
        raise UserError(f"{shown(word)} has no value; `{key}=none` removes what {key} says.")
    value = document.raw
    # The lab may have been started elsewhere; names of files are from here.
    if key == "table" and isinstance(value, str):
        value = str(Path(value).absolute())
    if key == "table" and isinstance(value, dict) and isinstance(value.get("file"), str):
        value = value | {"file": str(Path(value["file"]).absolute())}
    return key, value


def _tell(answer: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        emit(
            {
                "t_ns": answer["t_ns"],
                "clock": answer["clock"],
                "until": answer.get("until"),
                "changes": [_plain(entry) for entry in answer["entries"]],
            }
        )
        return
    entries = answer["entries"]
    if not entries:
        say("Nothing changed: that is in force already.")
        return
    for entry in entries[:_FEW_LINES]:
        say(_entry(entry))
    if len(entries) > _FEW_LINES:
        say(f"and {len(entries) - _FEW_LINES} more directions")
    until = f", until {_time(answer['until'])}" if answer.get("until") else ""
    say(f"in force since {_time(answer['clock'])}{until} (instant {answer['t_ns']} ns)")


def _entry(entry: Mapping[str, Any]) -> str:
    return f"{entry['from']}->{entry['to']}: {entry['before_words']} → {entry['after_words']}"


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in _EMIT_ENTRY}


def _time(iso: str) -> str:
    then = datetime.fromisoformat(iso).astimezone()
    return then.strftime("%H:%M:%S") + (f".{then.microsecond // 1000:03d}" if "." in iso else "")


def _of_interest(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what is changed, then the WAN links, then the rest."""
    return sorted(rows, key=lambda row: (not row["changed"], row["link"] != "wan"))


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("direction", "in force", "topology says"):
        table.add_column(title)
    for title in ("packets", "lost", "queue full", "overflow"):
        table.add_column(title, justify="right")
    for row in rows:
        counters = row["counters"]
        numbers = (
            [str(counters[key]) for key in ("packets", "lost", "queue_drops", "overflows")]
            if counters
            else ["cable", "", "", ""]
        )
        table.add_row(
            f"{row['from']}->{row['to']}",
            row["words"],
            row["requested_words"] if row["changed"] else "the same",
            *numbers,
            style="bold" if row["changed"] else None,
        )
    return table
