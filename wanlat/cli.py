"""The command line: every error of ours becomes one paragraph and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from topologies.errors import WanlatError
from topologies.version import VERSION
from wanlat.commands import capture, lab, systems, topology
from wanlat.commands.calibrate import calibrate
from wanlat.commands.compare import compare
from wanlat.commands.crosscheck import crosscheck
from wanlat.commands.doctor import doctor
from wanlat.commands.drill import drill
from wanlat.commands.matrix import matrix
from wanlat.commands.report import report
from wanlat.commands.run import run
from wanlat.commands.trace import trace
from wanlat.output import people

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="What does distance do to this store? Emulated datacenters, real clusters, "
    "one request at a time.",
)
app.add_typer(topology.app, name="topology")
app.add_typer(lab.app, name="lab")
app.add_typer(systems.app, name="systems")
app.add_typer(capture.app, name="capture")
app.command()(doctor)
app.command()(calibrate)
app.command()(run)
app.command()(trace)
app.command()(drill)
app.command()(report)
app.command()(compare)
app.command()(matrix)
app.command()(crosscheck)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wanlat {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. Exit codes: 0 passed, 1 did not hold, 2 wrong input, 3 the machine."""
    # pyarrow's own pool keeps what was freed: 20 MiB by the end of a report. (It reads this when it
    # is imported, which nothing here does before it must.)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        app()
    except WanlatError as error:
        people.print(f"wanlat: {error}", markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        people.print("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
