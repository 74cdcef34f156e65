"""``wanlat lab``: an emulated network to try things on by hand, also from other terminals."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands.capture import LabCapture, recorded_lab
from wanlat.emulator.control import client
from wanlat.output import emit, inform, people, print_table, show_list
from wanlat.running import deferred_interruptions, heed_interruptions, reporter
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import show as shown

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process

app = App("Run commands in an emulated network, and change its links.")

_FEW_ROWS, _MANY_ROWS = 40, 200
_FEW_LINES = 10
_FOLLOW_S = 0.3
_EMIT_ENTRY = ("t_ns", "not_before_ns", "clock", "link", "from", "to", "before", "after", "origin")


def _seconds(text: str) -> float:
    seconds = Duration.parse(text).s
    if not seconds:
        raise UserError("0 would change nothing; give a longer time.")
    return seconds


LabName = Annotated[
    str | None, o.option("NAME|PID", "The running lab (default: the only one)", "--lab")
]
For = Annotated[
    float | None,
    o.option("TIME", "Undo the change after this time, e.g. 30s", "--for", parse=_seconds),
]
_TARGET = "As of `wanlat lab change -h`"
Targets = Annotated[list[str] | None, o.argument("TARGET", f"{_TARGET} (default: all)")]


@app.command(
    "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def exec_(
    context: typer.Context,
    words: Annotated[
        list[str],
        o.argument(
            "[TOPOLOGY] NODE -- COMMAND...",
            "TOPOLOGY of a new lab for this command alone; none with --lab",
        ),
    ],
    lab: LabName = None,
    backend: o.Backend = None,
    rtt: o.Rtt = None,
    jitter: o.Jitter = None,
    capture: LabCapture = None,
    capture_limit: o.CaptureLimit = o.DEFAULT_LIMIT,
    capture_snap: o.CaptureSnap = o.DEFAULT_SNAP,
) -> None:
    """Run one command on a node of a new or running lab, and end with its exit code."""
    if lab is not None:
        o.refuse_others(context, "With --lab the lab is there already", "lab", "words")
        node, argv = _command(words, ("NODE",))
        with client.find(lab) as running:
            running.spawn(node, argv, (0, 1, 2))
            code = _wait_for(running)
    else:
        topology, node, argv = _command(words, ("TOPOLOGY", "NODE"))
        read = o.topology_of(topology, rtt, jitter)

        from wanlat.topologies.resolve import resolve

        plan = resolve(read)
        plan.node(node)
        with recorded_lab(plan, capture, capture_limit, capture_snap, backend=backend) as fresh:
            streams: Any = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
            code = _wait_for(
                fresh.spawn(node, argv, env=os.environ, cwd=str(Path.cwd()), **streams)
            )
    raise typer.Exit(code if code >= 0 else 128 - code)


def _command(words: list[str], names: tuple[str, ...]) -> list[Any]:
    """Return what stands before the command, word by word, and the command."""
    before, command = words[: len(names)], words[len(names) :]
    if len(before) < len(names) or "--" in before:
        raise UserError(f"The form is: wanlat lab exec {' '.join(names)} -- COMMAND...")
    argv = command[1:] if command[:1] == ["--"] else command
    if not argv:
        raise UserError("There is no command after `--`.")
    return [*before, argv]


def _wait_for(process: client.LabClient | Process) -> int:
    """Wait for a command; Ctrl-C goes to it, and what ignores that is killed by its lab's end."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(2)
        except TimeoutError:
            return -signal.SIGKILL


@app.command()
def up(
    topology: o.TopologyName,
    backend: o.Backend = None,
    rtt: o.Rtt = None,
    jitter: o.Jitter = None,
    name: Annotated[
        str | None, o.option("NAME", "Name for other terminals (default: the topology's)")
    ] = None,
    journal: Annotated[
        Path | None, o.option("FILE", "Append every change of a link to FILE, as JSON lines")
    ] = None,
    cables: Annotated[
        bool,
        o.flag(
            "Do not emulate LAN links without impairments: faster, but they cannot be changed",
            "--cables",
        ),
    ] = False,
    capture: LabCapture = None,
    capture_limit: o.CaptureLimit = o.DEFAULT_LIMIT,
    capture_snap: o.CaptureSnap = o.DEFAULT_SNAP,
    as_json: o.Json = False,
) -> None:
    """Keep a lab up until interrupted; other terminals inspect it, change it, enter its nodes."""
    heed_interruptions()
    read = o.topology_of(topology, rtt, jitter)

    from wanlat.emulator.control.server import ControlServer
    from wanlat.topologies.resolve import resolve

    plan, splice = resolve(read), "needed" if cables else "all"
    more = {"backend": backend, "splice": splice, "journal": journal}
    with (
        recorded_lab(plan, capture, capture_limit, capture_snap, **more) as lab,
        ControlServer(lab, name or plan.name) as server,
    ):
        try:
            _introduce(lab, server.name)
            people().file.flush()
            if as_json:
                emit(server.description())
            while not lab.fate:
                signal.sigtimedwait([], 0.5)
        except KeyboardInterrupt:
            inform("ended")
            return
        raise MachineError(f"The lab has ended. {lab.fate}")


def _introduce(lab: Lab, name: str) -> None:
    """Print how to look at a lab, to change it and to enter its nodes."""
    plan, node = lab.plan, lab.nodes[0]
    link = f"{plan.wan_links[0].a}/{plan.wan_links[0].b}" if plan.wan_links else node.name
    site = plan.sites[0].name if plan.wan_links else node.name
    inform(f"{name} is up on {lab.backend}, process {os.getpid()}. From another terminal:")
    commands = (
        ("show", "what its links do, what they carried and lost"),
        (f"change {link} delay=+100ms loss=1%", "change them in place; --for 30s takes it back"),
        (f"cut {site} --for 10s", "let nothing pass; heal ends it"),
        ("restore", "back to the topology"),
        (f"exec --lab {name} {node.name} -- ip route", "one command on a node"),
        (f"exec --lab {name} {node.name} -- bash", f"a shell, on one of {len(lab.nodes)} nodes"),
    )
    print_table((), commands, indent="  wanlat lab ", to=inform)
    inform("Ctrl-C ends it.")


@app.command("list")
def list_(as_json: o.Json = False) -> None:
    """List your running labs."""
    labs = client.labs()
    if not labs and not as_json:
        inform("No lab is running. `wanlat lab up TOPOLOGY` starts one.")
    if not as_json:
        keys = ("pid", "name", "backend", "topology", "nodes", "since")
        labs = [{**{key: lab.get(key) for key in keys}, "": lab.get("error", "")} for lab in labs]
    show_list(labs, as_json=as_json)


@app.command()
def show(targets: Targets = None, lab: LabName = None, as_json: o.Json = False) -> None:
    """Show the links of a running lab: settings, packets, losses."""
    answer = _request(lab, "show", targets=targets)
    if as_json:
        emit(answer)
        return
    rows, its = answer["directions"], answer["lab"]
    inform(f"{its['name']} on {its['backend']}, process {its['pid']}")
    most = _MANY_ROWS if targets else _FEW_ROWS
    if not targets and len(rows) > most:  # what is changed, then the WAN links, then the rest
        rows = sorted(rows, key=lambda row: (not row["changed"], row["link"] != "wan"))
    titles = ("direction", "in force", "topology says", "packets", "lost", "queue full", "overflow")
    print_table(titles, map(_direction, rows[:most]), to=inform)
    if len(rows) > most:
        inform(f"and {len(rows) - most} more directions: name targets to see them, or use --json")
    for hold in answer["holds"]:
        inform(f"for another {hold['ends_in_s']:.0f} s: {hold['what']}")


def _direction(row: Mapping[str, Any]) -> tuple[Any, ...]:
    counters = row["counters"]
    keys = ("packets", "lost", "queue_drops", "overflows")
    return (
        f"{row['from']}->{row['to']}",
        "a plain cable" if counters is None else row["words"],
        row["requested_words"] if row["changed"] else "the same",
        *("–" if counters is None else counters[key] for key in keys),
    )


@app.command()
def change(
    words: Annotated[
        list[str],
        o.argument(
            "TARGET... KEY=VALUE...",
            "TARGET: a node, a site (its WAN links), SITE.lan, A:B (one direction), A/B "
            "(both), groups with commas, or wan, lan, all. KEY: delay, rtt, jitter, loss, rate "
            "and the other keys of topology files; `delay=+200ms` adds, `rate=none` removes",
        ),
    ],
    lab: LabName = None,
    for_: For = None,
    trace: Annotated[
        str | None,
        o.option(
            "[delay=|rtt=]FILE",
            "Replay delays (or RTTs) over time: a value a line, in ms or with a unit",
        ),
    ] = None,
    every: Annotated[
        Duration | None,
        o.option("TIME", "With --trace: from one value to the next", parse=Duration.parse),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Change links of a running lab, in place, all at one instant.

    wanlat lab change dc1/dc2 delay=200ms loss=5%

    wanlat lab change n1 delay=+200ms --for 30s

    wanlat lab change dc1/dc2 --trace delays.txt --every 100ms
    """
    targets = [word for word in words if "=" not in word]
    settings = dict(_setting(word) for word in words if "=" in word)
    if trace is not None or every is not None:
        if trace is None or every is None or not every.ns:
            raise UserError("A trace is a file and a time: --trace delays.txt --every 100ms.")
        if for_ is not None or not targets:
            raise UserError("--trace FILE needs a target, and lasts as long as its file: no --for.")
        _replay(lab, targets, settings, trace, every, as_json)
        return
    if not targets or not settings:
        raise UserError(
            "To change a link, give a target and then KEY=VALUE, such as `dc1/dc2 delay=200ms "
            "loss=5%`; `wanlat lab show` has the names of targets."
        )
    _change(lab, "change", as_json, targets=targets, settings=settings, for_s=for_)


def _replay(
    lab: str | None,
    targets: list[str],
    settings: dict[str, Any],
    trace: str,
    every: Duration,
    as_json: bool,
) -> None:
    """Replay a file of delays, or of RTTs, on a running lab, until it is over or interrupted."""
    from wanlat.emulator.replay import read, replay

    given, separator, file = trace.partition("=")
    is_given = bool(separator) and given in ("delay", "rtt")
    key, file = (given, file) if is_given else ("delay", trace)
    if {"delay", "rtt"} & settings.keys():
        raise UserError(f"The delay is the trace's; leave out {shown(' '.join(settings))}.")
    values = read(Path(file), key=key if is_given else None)
    # It ends between two changes, not within one: what is in force is known then.
    with client.find(lab) as running, reporter() as report, deferred_interruptions() as stopping:
        extremes = [{**settings, key: str(value)} for value in (min(values), max(values))]
        running.query("check", targets=targets, several=extremes)

        def apply(value: Duration) -> int:
            request = {**settings, key: str(value)}
            return int(running.query("change", targets=targets, settings=request)["t_ns"])

        def progress(done: int, value: Duration) -> None:
            left = Duration((len(values) - done + 1) * every.ns // 10**9 * 10**9)
            report(f"{key} {value}", done, len(values), f"{left.s:.0f} s left")

        ended = replay(values, every, apply, stopping, progress)
    worst_ms = round(ended.worst_ns / 1e6, 3)
    if as_json:
        counts = {"values": ended.values, "applied": ended.applied, "skipped": ended.skipped}
        state = {"in_force": {key: str(ended.last)}, "complete": ended.is_whole}
        emit({**counts, "worst_late_ms": worst_ms, **state})
    skipped = f", {ended.skipped} left out, for this machine was late" if ended.skipped else ""
    what = "replayed" if ended.is_whole else "interrupted"
    inform(
        f"{what}: {ended.applied} of {ended.values} values applied{skipped}; the worst was in"
        f" force {worst_ms:g} ms after its instant"
    )
    inform(
        f"{key} {ended.last} stays in force; `wanlat lab restore {' '.join(targets)}` takes it back"
    )
    if not ended.is_whole:
        raise typer.Exit(128 + signal.SIGINT)


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
    if key == "table" and isinstance(value, str):
        value = str(Path(value).absolute())  # the lab may have been started elsewhere
    return key, value


@app.command()
def cut(
    targets: Annotated[list[str], o.argument("TARGET", _TARGET)],
    lab: LabName = None,
    for_: For = None,
    as_json: o.Json = False,
) -> None:
    """Drop every packet (A:B: in one direction) until it is healed, restored, or time is up."""
    _change(lab, "cut", as_json, targets=targets, for_s=for_)


@app.command()
def heal(targets: Targets = None, lab: LabName = None, as_json: o.Json = False) -> None:
    """End cuts; what else was changed stays."""
    _change(lab, "heal", as_json, targets=targets)


@app.command()
def restore(targets: Targets = None, lab: LabName = None, as_json: o.Json = False) -> None:
    """Return links to what the topology defines."""
    _change(lab, "restore", as_json, targets=targets)


@app.command()
def journal(
    lab: LabName = None,
    follow: Annotated[
        bool, o.flag("Print changes as they come, until Ctrl-C", "--follow", "-f")
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Print every change since the lab began, with the instant of effect (CLOCK_MONOTONIC)."""
    if follow and as_json:
        raise UserError(
            "--json prints one document, which --follow would never end. For lines of JSON as "
            "they come, start the lab with `wanlat lab up --journal FILE`."
        )
    with client.find(lab) as running:
        answer = running.query("journal", after=0)
        if as_json:
            emit(_plain(answer["entries"]))
            return
        if not answer["entries"] and not follow:
            inform("Nothing has been changed.")
        while True:
            for entry in answer["entries"]:
                typer.echo(f"{entry['t_ns']}  {_time(entry['clock'])}  {_entry(entry)}")
            if not follow:
                return
            sys.stdout.flush()
            time.sleep(_FOLLOW_S)
            answer = running.query("journal", after=answer["next"])


def _request(lab: str | None, operation: str, **request: Any) -> dict[str, Any]:
    with client.find(lab) as running:
        return running.query(operation, **request)


def _change(lab: str | None, operation: str, as_json: bool, **request: Any) -> None:
    """Have a lab change its links, and print what it did."""
    answer = _request(lab, operation, **request)
    entries = answer["entries"]
    if as_json:
        when = {key: answer.get(key) for key in ("t_ns", "clock", "until")}
        emit({**when, "changes": _plain(entries)})
        return
    for entry in entries[:_FEW_LINES]:
        inform(_entry(entry))
    if len(entries) > _FEW_LINES:
        inform(f"and {len(entries) - _FEW_LINES} more directions")
    if not entries:
        inform("Nothing changed: that is in force already.")
        return
    until = f", until {_time(answer['until'])}" if answer.get("until") else ""
    inform(f"in force since {_time(answer['clock'])}{until} (instant {answer['t_ns']} ns)")


def _entry(entry: Mapping[str, Any]) -> str:
    return f"{entry['from']}->{entry['to']}: {entry['before_words']} → {entry['after_words']}"


def _plain(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{key: entry[key] for key in _EMIT_ENTRY} for entry in entries]


def _time(iso: str) -> str:
    then = datetime.fromisoformat(iso).astimezone()
    return then.strftime("%H:%M:%S") + (f".{then.microsecond // 1000:03d}" if "." in iso else "")
