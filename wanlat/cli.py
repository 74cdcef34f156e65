"""The command line: every error of ours becomes one paragraph and an exit code.

What a command needs is imported when that command runs: the list of commands, and an
error in their names, need none of it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from wanlat.app import App
from wanlat.bundle.errors import BundleError
from wanlat.output import printed, report_unforeseen
from wanlat.streams import OutputLost
from wanlat.topologies.errors import (
    MachineError,
    UserError,
    WanlatError,
    way_out_of_machine,
    with_way_out,
)
from wanlat.topologies.version import VERSION
from wanlat.topologies.wording import show

COMMANDS = {
    "doctor": "Check this machine, with the fix for what is missing.",
    "topology": "List, show, validate, import and export topologies.",
    "calibrate": "Compare an emulated network with its topology.",
    "study": "List, show and validate studies.",
    "run": "Run a study: measure the latency of each endpoint.",
    "drill": "Run drills: inject faults, then check every object.",
    "system": "List, show and install the systems under test.",
    "place": "Rank the regions to put a cluster's nodes in, and its leader.",
    "trace": "Draw the messages and the critical path of one request.",
    "merge": "Make one bundle of the shards of a run, and show it.",
    "report": "Write the summary, tables, charts and page of a bundle again.",
    "view": "Show bundles in a browser, and follow runs that are under way.",
    "compare": "Report which endpoints changed between two bundles.",
    "lab": "Run commands in an emulated network, and change its links.",
    "capture": "Convert the packet records of a run.",
    "completion": "Print the script that completes wanlat's words in a shell.",
}
"""All commands, in the order in which they are listed, each a module of `wanlat.commands`; and
the first paragraph of their help, for which nothing is imported."""


def load(name: str) -> Any:
    """Import a command, a function of that name or an `App`, and return what Click runs."""
    module = import_module(f"wanlat.commands.{name}")
    holder = App()
    holder.callback()(_no_options)  # so that one command is a group of one
    if hasattr(module, "app"):
        holder.add_typer(module.app, name=name)
    else:
        holder.command(name)(getattr(module, name))
    group = typer.main.get_command(holder)
    assert isinstance(group, TyperGroup)
    return group.commands[name]


class _Commands(TyperGroup):
    """The commands by name and summary; the one that runs or completes its words is imported."""

    def resolve_command(self, *arguments: Any, **named: Any) -> Any:
        name, listed, rest = super().resolve_command(*arguments, **named)
        if name is None or listed is None:
            return name, listed, rest
        return name, load(name), rest


def _no_options() -> None:
    """Stand for a command: its options are not known before it is imported."""


app = App(
    "What does distance do to this store? Emulated datacenters, real clusters, "
    "one request at a time.",
    cls=_Commands,
)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_no_options)


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


def _reword(mistake: typer.TyperException) -> None:
    """Describe a wrong value of an option as one in a file, instead of in Pydantic's words."""
    from pydantic import ValidationError

    cause = mistake.__cause__
    if isinstance(cause, ValidationError):
        from wanlat.topologies.yaml_lines import describe

        errors = cause.errors(include_url=False)
        mistake.message = "; ".join(
            finding.text for error in errors for finding in describe(error, None)
        )


def main() -> None:
    """Run the command line. Exit codes: 0 passed, 1 did not hold, 2 wrong input, 3 the machine.

    And 128 plus the number of the signal that interrupted it.
    """
    # pyarrow's own pool keeps what was freed: 20 MiB by the end of a report. (It reads this when it
    # is imported, which nothing here does before it must.)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        _run()
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except typer.TyperException as mistake:
        _reword(mistake)
        mistake.show()  # type: ignore[attr-defined]  # those of options and arguments have it
        sys.exit(UserError.exit_code)
    except OutputLost as error:
        if error.reader_left:
            sys.exit(1)
        _end(error, error.exit_code)
    except BundleError as error:
        _end(error, UserError.exit_code)
    except WanlatError as error:
        _end(error, error.exit_code)
    except KeyboardInterrupt as interrupt:
        from wanlat.running import interruption_code

        print(str(interrupt) or "interrupted", file=sys.stderr)
        sys.exit(interruption_code())
    except Exception as error:
        report_unforeseen(error)
        sys.exit(MachineError.exit_code)


def _run() -> None:
    """Run the command that is named, to the last byte of what it prints."""
    if "_WANLAT_COMPLETE" in os.environ:
        from wanlat.commands.completion import prepare

        prepare()
        app(prog_name="wanlat")
    _check_encoding(sys.argv[1:])
    # Not app(): Typer turns Ctrl-C into an exit without a word.
    command = typer.main.get_command(app)
    try:
        with command.make_context("wanlat", sys.argv[1:]) as context:
            command.invoke(context)
    finally:
        sys.stdout.flush()


def _check_encoding(arguments: list[str]) -> None:
    """Raise UserError for a word that is no text: bundles and reports could not name it.

    What follows ``--`` is another program's.
    """
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word in ours:
        if any("\ud800" <= character <= "\udfff" for character in word):
            encoding = sys.getfilesystemencoding().upper()
            raise UserError(
                f"{show(word)} is not {encoding}, and what a bundle names is text. Rename the "
                "file, or call from its directory and name it by a link."
            )


def _end(error: Exception, exit_code: int) -> NoReturn:
    """Print an error of ours, and where the documentation has more of it.

    What is the machine's own fault has its exit code, whatever was being done.
    """
    if way_out_of_machine(error):
        exit_code = MachineError.exit_code
    print(f"wanlat: {printed(with_way_out(error))}", file=sys.stderr)
    from wanlat.fix_it import place_of

    if exit_code != UserError.exit_code and (place := place_of(str(error))):
        print(f"More: {place}", file=sys.stderr)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
