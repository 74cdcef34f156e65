"""Options that several commands share, with the checks that turn text into values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    from wanlat.emulator.lab import BackendName
    from wanlat.topologies.model import Topology
    from wanlat.topologies.units import Duration

TopologyName = Annotated[
    str, typer.Argument(metavar="TOPOLOGY", help="A shipped topology or the path of a YAML file.")
]
Backend = Annotated[
    str | None,
    typer.Option(metavar="netem|wire", help="Default: netem where the kernel has it."),
]
Rtt = Annotated[
    str | None, typer.Option(metavar="TIME", help="Set every WAN link's RTT, e.g. 50ms.")
]
Jitter = Annotated[
    str | None, typer.Option(metavar="TIME", help="Set every WAN link's jitter, e.g. 0ms.")
]
TopologyChoice = Annotated[
    str | None, typer.Option(help="A shipped topology or the path of a YAML file.")
]
Tolerate = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Measure though a busy machine makes one packet in a hundred so late. Default: 2ms.",
    ),
]
SystemOptions = Annotated[
    list[str] | None,
    typer.Option(metavar="SYSTEM.KEY=VALUE", help="An option of a system; may be repeated."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PARAMETER=VALUE",
        help="Any parameter of the study, inner ones with dots; may be repeated.",
    ),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="PARAMETER=V1,V2",
        help="Measure with each of these values, and all combinations; may be repeated.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="BUNDLE", help="Go on with a run that did not complete, where it was."),
]
Bobd = Annotated[Path | None, typer.Option(metavar="PATH", help="The program of system bob.")]
StorageChoice = Annotated[
    str | None, typer.Option(metavar="memory|disk", help="Where the stores' data lies.")
]
CaptureWish = Annotated[
    bool, typer.Option("--capture", help="Record every packet that crosses a WAN link.")
]
CaptureChoice = Annotated[
    bool | None,
    typer.Option(
        "--capture/--no-capture",
        help="Record every packet that crosses a WAN link. Default: of studies of round trips.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout; the rest goes to stderr.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print the tables of resource usage too.")
]
CaptureLimit = Annotated[
    str, typer.Option(metavar="SIZE", help="The packet record does not grow beyond this.")
]
CaptureSnap = Annotated[
    str, typer.Option(metavar="SIZE", help="How much of each packet is recorded.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Of every random choice. Default: drawn and recorded.")
]


def backend_name(text: str | None) -> BackendName | None:
    """Return the backend of that name. Raises UserError."""
    if text is None:
        return None
    if text == "netem":
        return "netem"
    if text == "wire":
        return "wire"
    raise UserError(f"--backend {text!r}: there are `netem` (the kernel's) and `wire` (ours).")


def check_storage(text: str | None) -> None:
    """Raise UserError unless it is a place where stores' data can lie, or none is named."""
    if text not in (None, "memory", "disk"):
        raise UserError(f"--storage {text!r}: there are `memory` and `disk`.")


def size_of(option: str, text: str) -> int:
    """Return the bytes that an option names. Raises UserError."""
    from wanlat.topologies.units import Size

    try:
        return Size.parse(text).bytes
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def _duration(option: str, text: str | None) -> Duration | None:
    from wanlat.topologies.units import Duration

    if text is None:
        return None
    try:
        return Duration.parse(text)
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def topology_of(name: str, rtt: str | None = None, jitter: str | None = None) -> Topology:
    """Return a topology with the options' changes. Raises UserError."""
    from wanlat.topologies.load import load

    topology = load(name)
    if rtt is None and jitter is None:
        return topology
    from wanlat.topologies.override import override

    return override(topology, _duration("--rtt", rtt), _duration("--jitter", jitter))
