"""``wanlat capture``: packet records, and what the commands that make them share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wanlat.app import App
from wanlat.output import say
from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    from wanlat.emulator.capture.store import CaptureStore
    from wanlat.topologies.units import Size

app = App("Convert the packet records of a run.")

LabCapture = Annotated[
    Path | None,
    typer.Option(
        "--capture",
        metavar="DIR",
        help="Record every packet that crosses a WAN link into this directory",
    ),
]


@app.callback()
def _group() -> None:
    """Keep `table` a command of its own while it is the only one."""


@app.command()
def table(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Packet records: pcapng files of wanlat")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The Parquet table to write")
    ] = Path("packets.parquet"),
) -> None:
    """Write the table of packets again, from the records of a run, even a killed one."""
    from wanlat.emulator.capture.table import write_table

    for file in files:
        if not file.is_file():
            raise UserError(f"There is no file {file}.")
    summary = write_table(
        {file.stem if len(files) > 1 else None: file for file in files}, out.absolute()
    )
    if summary.cut_short:
        say("A record ends within a packet, as one does that was killed; the rest is there.")
    say(f"{summary.packets} packets: {out}")


def store_of(directory: Path | None, limit: Size, snap: Size) -> CaptureStore | None:
    """Return where a lab of the command line records."""
    if directory is None:
        return None
    from wanlat.emulator.capture.store import CaptureStore

    return CaptureStore(
        directory,
        directory / "packets.parquet",
        limit.bytes,
        snap.bytes,
    )


def show_capture(store: CaptureStore) -> None:
    """Complete the record of a lab that has ended: its table, its facts; say where they are."""
    if not store.is_begun():
        store.discard_empty()  # the lab never came up
        return
    document = store.finish()
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        (store.directory / "capture.json").write_text(text, "utf-8")
    except OSError as error:
        say(f"capture.json cannot be written: {error.strerror}")
    for remark in store.remarks():
        say(f"warning: {remark}", style="yellow")
    if document["table_error"]:
        say(f"warning: {document['table_error']}", style="yellow")
    say(f"{document['packets']} packets: {store.directory}/packets.pcapng")
