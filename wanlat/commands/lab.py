"""``wanlat lab``: a topology to try things on by hand."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from emulator.lab import Lab
from topologies.errors import MachineError, UserError
from topologies.resolve import resolve
from wanlat.options import Backend, Jitter, Rtt, TopologyName, backend_name, topology_of
from wanlat.output import people, say

app = typer.Typer(no_args_is_help=True, help="A topology to try things on by hand.")


@app.command(
    "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def exec_(
    topology: TopologyName,
    node: Annotated[str, typer.Argument(metavar="NODE")],
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...")],
    backend: Backend = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
) -> None:
    """Run one command on a node of a fresh lab; its exit code is this command's."""
    plan = resolve(topology_of(topology, rtt, jitter))
    plan.node(node)
    argv = command[1:] if command[0] == "--" else command
    if not argv:
        raise UserError("There is no command after `--`.")
    with Lab(plan, backend=backend_name(backend)) as lab:
        process = lab.spawn(
            node,
            argv,
            env=os.environ,
            cwd=str(Path.cwd()),
            stdin=sys.stdin,
            stdout=sys.stdout,
            stderr=sys.stderr,
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            try:
                code = process.wait(2)
            except TimeoutError:
                code = -signal.SIGKILL
    raise typer.Exit(code if code >= 0 else 128 - code)


@app.command()
def up(
    topology: TopologyName,
    backend: Backend = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
) -> None:
    """Keep a lab up until interrupted, and tell how to enter its nodes."""
    plan = resolve(topology_of(topology, rtt, jitter))
    with Lab(plan, backend=backend_name(backend)) as lab:
        say(f"{plan.name} is up on {lab.backend}. Enter a node with:")
        for node in lab.nodes:
            say(f"  {node.name:<8} {node.address:<12} {_enter(lab, node.name)}")
        say("Ctrl-C ends it.")
        people.file.flush()
        try:
            while not lab.fate:
                signal.sigtimedwait([], 0.5)
        except KeyboardInterrupt:
            say("ended")
            return
        raise MachineError(f"The lab has ended. {lab.fate}")


def _enter(lab: Lab, node: str) -> str:
    pid = lab.supervisor_pid
    return (
        f"nsenter --target {pid} --user --preserve-credentials --mount --pid --uts --ipc "
        f"--net=/proc/{pid}/root/run/netns/{node} --wd=/ bash"
    )
