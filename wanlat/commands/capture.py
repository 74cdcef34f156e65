"""``wanlat capture``: packet records, and what the commands that make them share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wanlat import options as o
from wanlat.app import App
from wanlat.output import inform, refuse_to_replace
from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    from wanlat.emulator.capture.store import CaptureStore
    from wanlat.emulator.lab import Lab
    from wanlat.topologies.resolve import Plan
    from wanlat.topologies.units import Size

_RECORD = ("packets.pcapng", "packets.rows", "packets.parquet", "capture.json")
app = App("Convert the packet records of a run.")

LabCapture = Annotated[
    Path | None,
    o.option("DIR", "Record every packet that crosses a WAN link into this directory", "--capture"),
]


@app.callback()
def _group() -> None:
    """Keep `table` a command of its own while it is the only one."""


@app.command()
def table(
    files: Annotated[
        list[Path],
        o.argument("FILE", "Packet records: .rows files of wanlat", exists=True, dir_okay=False),
    ],
    out: Annotated[Path, o.option("FILE", "The Parquet table to write", "--out", "-o")] = Path(
        "packets.parquet"
    ),
    force: o.Force = False,
) -> None:
    """Write the table of packets again, from the records of a run, even a killed one."""
    from wanlat.emulator.capture.table import write_table

    refuse_to_replace([out], force=force)
    summary = write_table(
        {file.stem if len(files) > 1 else None: file for file in files}, out.absolute()
    )
    if summary.cut_short:
        inform("A record ends within a packet, as one does that was killed; the rest is there.")
    inform(f"{summary.packets} packets: {out}")


@contextmanager
def recorded_lab(
    plan: Plan, capture: Path | None, limit: Size, snap: Size, **settings: Any
) -> Iterator[Lab]:
    """Have a lab up, and its packets recorded into a directory if one is given."""
    from wanlat.emulator.capture.store import CaptureStore
    from wanlat.emulator.lab import Lab

    if capture is None:
        with Lab(plan, **settings) as lab:
            yield lab
        return
    if there := [name for name in _RECORD if os.path.lexists(capture / name)]:
        raise UserError(f"{capture / there[0]} exists: name another directory for the record.")
    store = CaptureStore(capture, capture / "packets.parquet", limit.bytes, snap.bytes)
    lab = Lab(plan, capture=store.prepare(), **settings)
    try:
        with lab:
            yield lab
    finally:
        store.note(None, lab.capture)
        _complete(store)


def _complete(store: CaptureStore) -> None:
    """Complete the record of a lab that has ended: its table, its facts; print where they are."""
    if not store.has_started():
        return  # the lab never came up
    document = store.finish()
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        (store.directory / "capture.json").write_text(text, "utf-8")
    except OSError as error:
        inform(f"capture.json cannot be written: {error.strerror}")
    for remark in filter(None, [*store.remarks(), document["table_error"]]):
        inform(f"warning: {remark}", style="yellow")
    inform(f"{document['packets']} packets: {store.directory}/packets.pcapng")
