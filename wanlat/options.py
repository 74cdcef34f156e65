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

if TYPE_CHECKING:
    from wanlat.topologies.model import Topology


def quantity(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what parses an option's value, and has a mistake reported with the option's name."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except UserError as error:
            raise typer.BadParameter(str(error)) from None

    return parsed


duration, size = quantity(Duration.parse), quantity(Size.parse)

TopologyName = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        help="A shipped topology, or the path of a YAML file",
        autocompletion=completion.names(completion.topologies),
    ),
]
StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A shipped study, or the path of a YAML file",
        autocompletion=completion.names(completion.studies),
    ),
]
DrillName = Annotated[
    str,
    typer.Argument(
        metavar="DRILL",
        help="A shipped drill, or the path of a YAML file",
        autocompletion=completion.names(completion.drills),
    ),
]
File = Annotated[str, typer.Argument(metavar="FILE", help="A YAML file")]
Systems = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Systems under test, one after another",
        autocompletion=completion.lists(completion.systems),
    ),
]
TopologyChoice = Annotated[
    str | None,
    typer.Option(
        metavar="TOPOLOGY",
        help="Use this topology: a shipped one, or the path of a YAML file",
        autocompletion=completion.names(completion.topologies),
    ),
]
Client = Annotated[
    str | None,
    typer.Option(metavar="NODE|SITE", help="Where the client runs"),
]
Backend = Annotated[
    Literal["netem", "wire"] | None,
    typer.Option(
        metavar="[netem|wire]",
        help="What emulates the network: the kernel's netem, or wire in user space "
        "(default: netem where the kernel has it)",
    ),
]
Rtt = Annotated[
    Duration | None,
    typer.Option(parser=duration, metavar="TIME", help="RTT of every WAN link, e.g. 50ms"),
]
Jitter = Annotated[
    Duration | None,
    typer.Option(parser=duration, metavar="TIME", help="Jitter of every WAN link, e.g. 0ms"),
]
MaxP99Error = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Largest accepted p99 delay error (default 2 ms)"),
]
SystemOptions = Annotated[
    list[str] | None,
    typer.Option(metavar="SYSTEM.KEY=VALUE", help="Set an option of a system; may be repeated"),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PARAMETER=VALUE",
        help="Set any parameter of the study, inner ones with dots; may be repeated",
    ),
]
Matrix = Annotated[
    list[str] | None,
    typer.Option(
        "--matrix",
        metavar="PARAMETER=V1,V2",
        help="Measure every combination of these values; may be repeated",
    ),
]
Resume = Annotated[Path | None, typer.Option(metavar="BUNDLE", help="Resume an incomplete run")]
Bobd = Annotated[Path | None, typer.Option(metavar="PATH", help="Program of the system bob")]
StorageChoice = Annotated[
    Literal["memory", "disk"] | None,
    typer.Option(metavar="[memory|disk]", help="Where the stores keep their data"),
]
CaptureWish = Annotated[
    bool, typer.Option("--capture", help="Record every packet that crosses a WAN link")
]
CaptureChoice = Annotated[
    bool | None,
    typer.Option(
        "--capture/--no-capture",
        help="Record every packet that crosses a WAN link (default: in studies of round trips)",
    ),
]
CaptureLimit = Annotated[
    Size,
    typer.Option(parser=size, metavar="SIZE", help="Largest size of the packet record"),
]
CaptureSnap = Annotated[
    Size,
    typer.Option(parser=size, metavar="SIZE", help="Bytes of each packet that are recorded"),
]
DEFAULT_LIMIT, DEFAULT_SNAP = Size(256 << 20), Size(256)
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Say what would run, on what and for how long, and start nothing"
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Random seed (default: generated and recorded)"),
]
Samples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Samples per endpoint, placement and RTT step (default: the study's)",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Output directory (default: in results/)"),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, all else on stderr")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", callback=be_quiet, help="Print results and errors, no progress or remarks"
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        callback=be_verbose,
        help="Print every stage, and the tables of resource usage",
    ),
]


def topology_of(name: str, rtt: Duration | None = None, jitter: Duration | None = None) -> Topology:
    """Return a topology with the options' changes. Raises UserError."""
    from wanlat.topologies.load import load

    topology = load(name)
    if rtt is None and jitter is None:
        return topology
    from wanlat.topologies.override import override

    return override(topology, rtt, jitter)
