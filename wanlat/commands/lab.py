"""``wanlat lab``: a topology to try things on by hand."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.app import App
from wanlat.commands import lab_running
from wanlat.commands.capture import LabCapture, show_capture, store_of
from wanlat.interruption import heed_interruptions
from wanlat.options import (
    DEFAULT_LIMIT,
    DEFAULT_SNAP,
    Backend,
    CaptureLimit,
    CaptureSnap,
    Jitter,
    Json,
    Rtt,
    TopologyName,
    topology_of,
)
from wanlat.output import emit, say
from wanlat.topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from wanlat.emulator.capture import Capture
    from wanlat.emulator.capture.store import CaptureStore
    from wanlat.emulator.lab import Lab

app = App("Run commands in an emulated network, and change its links.")
_FEW_NODES = 12


@app.command(
    "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def exec_(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TOPOLOGY] NODE -- COMMAND...",
            help="TOPOLOGY of a new lab for this command alone; none with --lab",
        ),
    ],
    lab: lab_running.LabName = None,
    backend: Backend = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
    capture: LabCapture = None,
    capture_limit: CaptureLimit = DEFAULT_LIMIT,
    capture_snap: CaptureSnap = DEFAULT_SNAP,
) -> None:
    """Run one command on a node of a new or running lab, and end with its exit code."""
    if lab is not None:
        if backend or rtt or jitter or capture:
            raise UserError("With --lab the lab is there already: leave other options out.")
        node, argv = _command(words, ("NODE",))
        code = lab_running.run_inside(lab, node, argv)
    else:
        topology, node, argv = _command(words, ("TOPOLOGY", "NODE"))
        read = topology_of(topology, rtt, jitter)

        from wanlat.emulator.lab import Lab
        from wanlat.topologies.resolve import resolve

        plan = resolve(read)
        plan.node(node)
        store = store_of(capture, capture_limit, capture_snap)
        made = Lab(plan, backend=backend, capture=_prepared(store))
        with _recorded(made, store) as fresh:
            code = _run(fresh, node, argv)
    raise typer.Exit(code if code >= 0 else 128 - code)


@app.command()
def up(
    topology: TopologyName,
    backend: Backend = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name for other terminals (default: the topology's)"),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append every change of a link to FILE, as JSON lines"),
    ] = None,
    cables: Annotated[
        bool,
        typer.Option(
            "--cables",
            help="Do not emulate LAN links without impairments: faster, but they cannot be changed",
        ),
    ] = False,
    capture: LabCapture = None,
    capture_limit: CaptureLimit = DEFAULT_LIMIT,
    capture_snap: CaptureSnap = DEFAULT_SNAP,
    as_json: Json = False,
) -> None:
    """Keep a lab up until interrupted; other terminals inspect it, change it, enter its nodes."""
    heed_interruptions()
    read = topology_of(topology, rtt, jitter)

    from wanlat.emulator.control.server import ControlServer
    from wanlat.emulator.lab import Lab
    from wanlat.output import people
    from wanlat.topologies.resolve import resolve

    plan = resolve(read)
    store = store_of(capture, capture_limit, capture_snap)
    lab = Lab(
        plan,
        backend=backend,
        capture=_prepared(store),
        splice="needed" if cables else "all",
        journal=journal,
    )
    with _recorded(lab, store), ControlServer(lab, name or plan.name) as server:
        try:
            _tell(lab, server.name)
            people.file.flush()
            if as_json:
                emit(server.description())
            while not lab.fate:
                signal.sigtimedwait([], 0.5)
        except KeyboardInterrupt:
            say("ended")
            return
        raise MachineError(f"The lab has ended. {lab.fate}")


app.command("list")(lab_running.list_)
app.command()(lab_running.show)
app.command()(lab_running.change)
app.command()(lab_running.cut)
app.command()(lab_running.heal)
app.command()(lab_running.restore)
app.command()(lab_running.journal)


def _prepared(store: CaptureStore | None) -> Capture | None:
    return store.prepare() if store else None


@contextmanager
def _recorded(lab: Lab, store: CaptureStore | None) -> Iterator[Lab]:
    """Have a lab up; when it is down, complete the record of its packets if there is one."""
    try:
        with lab:
            yield lab
    finally:
        if store is not None:
            store.note(None, lab.capture)
            show_capture(store)


def _command(words: list[str], names: tuple[str, ...]) -> list[Any]:
    """Return what stands before the command, word by word, and the command."""
    before, command = words[: len(names)], words[len(names) :]
    if len(before) < len(names) or "--" in before:
        raise UserError(f"The form is: wanlat lab exec {' '.join(names)} -- COMMAND...")
    argv = command[1:] if command[:1] == ["--"] else command
    if not argv:
        raise UserError("There is no command after `--`.")
    return [*before, argv]


def _run(lab: Lab, node: str, argv: list[str]) -> int:
    process = lab.spawn(
        node,
        argv,
        env=os.environ,
        cwd=str(Path.cwd()),
        stdin=sys.stdin,
        stdout=sys.stdout,
        stderr=sys.stderr,
    )
    return lab_running.wait_for(process)


def _tell(lab: Lab, name: str) -> None:
    plan, node = lab.plan, lab.nodes[0]
    link = f"{plan.wan_links[0].a}/{plan.wan_links[0].b}" if plan.wan_links else node.name
    site = f"{plan.sites[0].name}" if plan.wan_links else node.name
    say(f"{name} is up on {lab.backend}, process {os.getpid()}. From another terminal:")
    for command, does in (
        ("show", "what its links do, what they carried and lost"),
        (f"change {link} delay=+100ms loss=1%", "change them in place; --for 30s takes it back"),
        (f"cut {site} --for 10s", "let nothing pass; heal ends it"),
        ("restore", "back to the topology"),
        (f"exec --lab {name} {node.name} -- ip route", "one command on a node"),
    ):
        say(f"  wanlat lab {command:<42} {does}")
    nodes = lab.nodes if len(lab.nodes) <= _FEW_NODES else lab.nodes[:1]
    say("A shell on a node:")
    for each in nodes:
        say(f"  {each.name:<8} {each.address:<12} {_enter(lab, each.name)}")
    if len(nodes) < len(lab.nodes):
        last = lab.nodes[-1].name
        say(f"  and so on for the others, up to {last}: {len(lab.nodes)} nodes in all")
    say("Ctrl-C ends it.")


def _enter(lab: Lab, node: str) -> str:
    pid = lab.supervisor_pid
    return (
        f"nsenter --target {pid} --user --preserve-credentials --mount --pid --uts --ipc "
        f"--net=/proc/{pid}/root/run/netns/{node} --wd=/ bash"
    )
