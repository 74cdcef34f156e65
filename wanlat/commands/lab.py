"""``wanlat lab``: a topology to try things on by hand."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import lab_running
from wanlat.commands.capture import LabCapture, recorded_lab
from wanlat.output import emit, print_table, say
from wanlat.running import heed_interruptions
from wanlat.topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

app = App("Run commands in an emulated network, and change its links.")


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
    lab: lab_running.LabName = None,
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
        code = lab_running.run_inside(lab, node, argv)
    else:
        topology, node, argv = _command(words, ("TOPOLOGY", "NODE"))
        read = o.topology_of(topology, rtt, jitter)

        from wanlat.topologies.resolve import resolve

        plan = resolve(read)
        plan.node(node)
        with recorded_lab(plan, capture, capture_limit, capture_snap, backend=backend) as fresh:
            process = fresh.spawn(
                node,
                argv,
                env=os.environ,
                cwd=str(Path.cwd()),
                stdin=sys.stdin,
                stdout=sys.stdout,
                stderr=sys.stderr,
            )
            code = lab_running.wait_for(process)
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
    from wanlat.output import people
    from wanlat.topologies.resolve import resolve

    plan = resolve(read)
    with (
        recorded_lab(
            plan,
            capture,
            capture_limit,
            capture_snap,
            backend=backend,
            splice="needed" if cables else "all",
            journal=journal,
        ) as lab,
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


def _introduce(lab: Lab, name: str) -> None:
    """Say how to look at a lab, to change it and to enter its nodes."""
    plan, node = lab.plan, lab.nodes[0]
    link = f"{plan.wan_links[0].a}/{plan.wan_links[0].b}" if plan.wan_links else node.name
    site = plan.sites[0].name if plan.wan_links else node.name
    say(f"{name} is up on {lab.backend}, process {os.getpid()}. From another terminal:")
    commands = (
        ("show", "what its links do, what they carried and lost"),
        (f"change {link} delay=+100ms loss=1%", "change them in place; --for 30s takes it back"),
        (f"cut {site} --for 10s", "let nothing pass; heal ends it"),
        ("restore", "back to the topology"),
        (f"exec --lab {name} {node.name} -- ip route", "one command on a node"),
    )
    print_table((), commands, indent="  wanlat lab ", to=say)
    pid = lab.supervisor_pid
    say(f"A shell on {node.name} ({node.address}), one of {len(lab.nodes)} nodes in all:")
    say(
        f"  nsenter --target {pid} --user --preserve-credentials --mount --pid --uts --ipc "
        f"--net=/proc/{pid}/root/run/netns/{node.name} --wd=/ bash"
    )
    say("Ctrl-C ends it.")
