"""The command line: every error of ours becomes one paragraph and an exit code.

What a command needs is imported when that command is asked for: the list of commands, and an
error in their names, need none of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from wanlat.app import App
from wanlat.topologies.errors import WanlatError
from wanlat.topologies.version import VERSION


class Place(NamedTuple):
    """Where a command is: a function, or an `App`, in a module of `wanlat.commands`."""

    module: str
    attribute: str
    summary: str
    """Its line in the list of commands: the first paragraph of its own help."""

    def load(self, name: str) -> Any:
        """Import the command and return what Click runs."""
        found = getattr(import_module(f"wanlat.commands.{self.module}"), self.attribute)
        holder = App()
        holder.callback()(_no_options)  # so that one command is a group of one
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name)
        else:
            holder.command(name)(found)
        group = typer.main.get_command(holder)
        assert isinstance(group, TyperGroup)
        return group.commands[name]


COMMANDS = {
    "doctor": Place("doctor", "doctor", "Check this machine, and say how to fix what is missing."),
    "topology": Place("topology", "app", "List, show, validate, import and export topologies."),
    "calibrate": Place("calibrate", "calibrate", "Compare an emulated network with its topology."),
    "study": Place("study", "app", "List, show and validate studies."),
    "run": Place("run", "run", "Run a study: measure the latency of each endpoint."),
    "drill": Place("drill", "app", "Run drills: inject faults, then check every object."),
    "system": Place("system", "app", "List and install the systems under test."),
    "trace": Place("trace", "trace", "Draw the messages and the critical path of one request."),
    "report": Place("report", "report", "Write the summary, tables and charts of a bundle again."),
    "compare": Place("compare", "compare", "Report which endpoints changed between two bundles."),
    "lab": Place("lab", "app", "Run commands in an emulated network, and change its links."),
    "capture": Place("capture", "app", "Convert the packet records of a run."),
    "completion": Place(
        "completion", "completion", "Print the script that completes wanlat's words in a shell."
    ),
}
"""All commands, in the order in which they are listed."""


class _Interrupted(BaseException):
    """Ctrl-C, under a name that Typer does not turn into an exit without a word."""


@contextmanager
def _reporting_interruptions() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise _Interrupted from None


class _Commands(TyperGroup):
    """The commands by name and summary; the one that runs or completes its words is imported."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        with _reporting_interruptions():
            return super().make_context(*arguments, **named)

    def invoke(self, *arguments: Any, **named: Any) -> Any:
        with _reporting_interruptions():
            return super().invoke(*arguments, **named)

    def resolve_command(self, *arguments: Any, **named: Any) -> Any:
        name, listed, rest = super().resolve_command(*arguments, **named)
        if name is None or listed is None:
            return name, listed, rest
        return name, COMMANDS[name].load(name), rest


def _no_options() -> None:
    """Stand for a command whose options are not known before it is imported."""


app = App(
    "What does distance do to this store? Emulated datacenters, real clusters, "
    "one request at a time.",
    cls=_Commands,
)
for _name, _place in COMMANDS.items():
    app.command(_name, help=_place.summary)(_no_options)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wanlat {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. Exit codes: 0 passed, 1 did not hold, 2 wrong input, 3 the machine."""
    # pyarrow's own pool keeps what was freed: 20 MiB by the end of a report. (It reads this when it
    # is imported, which nothing here does before it must.)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if "_WANLAT_COMPLETE" in os.environ:
        from wanlat.commands.completion import prepare

        prepare()
    try:
        app()
    except WanlatError as error:
        print(f"wanlat: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, _Interrupted):
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
