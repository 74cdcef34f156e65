"""Options and arguments that several commands share, with what turns their text into values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wanlat.commands import completion
from wanlat.output import be_quiet, be_verbose
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.topologies.model import Topology


def argument(
    metavar: str, summary: str, complete: completion.Complete | None = None, **more: Any
) -> Any:
    """Return what Typer is to know of an argument."""
    return typer.Argument(metavar=metavar, help=summary, autocompletion=complete, **more)


def option(
    metavar: str | None,
    summary: str,
    *names: str,
    parse: Callable[[str], Any] | None = None,
    complete: completion.Complete | None = None,
    **more: Any,
) -> Any:
    """Return what Typer is to know of an option: its value, its help, its names if unusual.

    ``parse`` makes a value of its text; its UserError is reported with the option's name.
    """

    def parsed(text: str) -> Any:
        assert parse is not None
        try:
            return parse(text)
        except UserError as error:
            raise typer.BadParameter(str(error)) from None

    parser = None if parse is None else parsed
    return typer.Option(
        *names, metavar=metavar, help=summary, parser=parser, autocompletion=complete, **more
    )


def flag(summary: str, *names: str, **more: Any) -> Any:
    """Return what Typer is to know of an option without a value."""
    return typer.Option(*names, help=summary, **more)


def _jobs(text: str) -> int:
    """Read a number of jobs; 0 is `auto`. Raises UserError."""
    if text == "auto":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= 32:
        raise UserError(f"{text!r}: give a number from 1 to 32, or auto.")
    return int(text)


_YAML = "A shipped {}, or the path of a YAML file"
TopologyName = Annotated[str, argument("TOPOLOGY", _YAML.format("topology"), completion.topologies)]
DrillNames = Annotated[
    str | None,
    argument(
        "DRILL,DRILL|all",
        "Shipped drills, or paths of YAML files; `all`: every shipped one",
        completion.drills,
    ),
]
File = Annotated[str, argument("FILE", "A YAML file")]
Systems = Annotated[
    str | None,
    option("A,B", "Systems under test, one after another", complete=completion.systems),
]
TopologyChoice = Annotated[
    str | None,
    option(
        "TOPOLOGY",
        "Use this topology: a shipped one, or the path of a YAML file",
        complete=completion.topologies,
    ),
]
Client = Annotated[str | None, option("NODE|SITE", "Where the client runs")]
Backend = Annotated[
    Literal["netem", "wire"] | None,
    option(
        "[netem|wire]",
        "What emulates the network: the kernel's netem, or wire in user space "
        "(default: netem where the kernel has it)",
    ),
]
Rtt = Annotated[
    Duration | None, option("TIME", "RTT of every WAN link, e.g. 50ms", parse=Duration.parse)
]
Jitter = Annotated[
    Duration | None, option("TIME", "Jitter of every WAN link, e.g. 0ms", parse=Duration.parse)
]
MaxNetworkError = Annotated[
    str | None,
    option(
        "TIME",
        "Largest accepted error of the network during a sample (default: 2 ms; of drills 25)",
    ),
]
SystemOptions = Annotated[
    list[str] | None, option("SYSTEM.KEY=VALUE", "Set an option of a system; may be repeated")
]
Set = Annotated[
    list[str] | None,
    option(
        "PARAMETER=VALUE",
        "Set any parameter of the YAML file, inner ones with dots; may be repeated",
        "--set",
    ),
]
Matrix = Annotated[
    list[str] | None,
    option("PARAMETER=V1,V2", "Measure every combination of these values; may be repeated"),
]
Advise = Annotated[
    list[str] | None,
    option(
        "[TIMEOUT=V1,V2]",
        "Which timeout? Vary one, and kill who leads: what each value holds, and its price "
        "(default: the first of the system's definition, at the values that it names)",
    ),
]
Resume = Annotated[Path | None, option("BUNDLE", "Resume an incomplete run")]
Trust = Annotated[
    bool,
    flag("With --resume: use the programs and files outside the bundle that it names", "--trust"),
]
Bobd = Annotated[
    Path | None, option("PATH", "Program of the system bob", exists=True, dir_okay=False)
]
StorageChoice = Annotated[
    Literal["memory", "disk"] | None, option("[memory|disk]", "Where the stores keep their data")
]
_RECORD = "Record every packet that crosses a WAN link"
CaptureChoice = Annotated[
    bool | None, flag(f"{_RECORD} (default: in studies of round trips)", "--capture/--no-capture")
]
CaptureLimit = Annotated[
    Size, option("SIZE", "Largest size of the packet record", parse=Size.parse)
]
CaptureSnap = Annotated[
    Size, option("SIZE", "Bytes of each packet that are recorded", parse=Size.parse)
]
DEFAULT_LIMIT, DEFAULT_SNAP = Size(256 << 20), Size(256)
DryRun = Annotated[
    bool, flag("Say what would run, on what and for how long, and start nothing", "--dry-run")
]
Seed = Annotated[int | None, option("N", "Random seed (default: generated and recorded)", min=0)]
Samples = Annotated[
    int | None,
    option("N", "Samples per endpoint, placement and RTT step (default: the study's)", min=1),
]
Replicates = Annotated[
    int | None,
    option("N", "Fresh clusters that each point is measured on (default: the file's, or 1)", min=1),
]
Jobs = Annotated[
    int | None,
    option(
        "N|auto",
        "Points of a matrix, or drills, that are run at once; auto: as many as the machine carries "
        "(default 1)",
        parse=_jobs,
    ),
]
Engine = Annotated[
    Literal["dask"] | None,
    option("dask", "Have points measured by Dask's workers, one at a time on each machine"),
]
Scheduler = Annotated[
    str | None,
    option(
        "ADDRESS|local:N|ssh:HOST,…|slurm:N",
        "Dask's scheduler, or the workers to start for this run (default: local:1)",
    ),
]
Shard = Annotated[
    str | None,
    option("I/N", "Measure the I-th of N parts of a matrix; `wanlat merge` puts them together"),
]
Out = Annotated[
    Path | None, option("DIR", "Output directory (default: in results/)", "--out", "-o")
]
Junit = Annotated[Path | None, option("FILE", "Write what passed and failed as JUnit XML")]
Force = Annotated[bool, flag("Overwrite existing files", "--force")]
Json = Annotated[bool, flag("Print one JSON document on stdout, all else on stderr", "--json")]
Quiet = Annotated[
    bool,
    flag("Print results and errors, no progress or remarks", "--quiet", "-q", callback=be_quiet),
]
Verbose = Annotated[
    bool,
    flag(
        "Print every stage, and the tables of resource usage",
        *("--verbose", "-v"),
        callback=be_verbose,
    ),
]


def refuse_others(context: typer.Context, because: str, *fitting: str) -> None:
    """Raise UserError for what is given on the command line besides the parameters that fit.

    Options of output fit everywhere.
    """
    known = {*fitting, "bobd", "as_json", "verbose", "quiet", "_verbose", "_quiet"}
    names = []
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name not in known and source is not None and source.name == "COMMANDLINE":
            is_option = parameter.param_type_name == "option"
            names.append(parameter.opts[0] if is_option else parameter.metavar)
    if names:
        raise UserError(f"{because}, so {listing(map(str, names))} cannot count.")


def topology_of(name: str, rtt: Duration | None = None, jitter: Duration | None = None) -> Topology:
    """Return a topology with the options' changes. Raises UserError."""
    from wanlat.topologies.load import load

    topology = load(name)
    if rtt is None and jitter is None:
        return topology
    from wanlat.topologies.variants import override

    return override(topology, rtt, jitter)
