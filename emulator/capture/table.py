"""A packet record as a table: one row a packet, in Parquet.

The Rust program reads the pcapng file, which may have been cut short by a kill, and hands over
rows of fixed length; they pass through here a part at a time, so that memory stays bounded.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.emulator.binaries import binary
from wanlat.topologies.errors import MachineError, UserError

SCHEMA = pa.schema(
    [
        ("system", pa.string()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("entry_ns", pa.int64()),
        ("departure_ns", pa.int64()),
        ("fate", pa.string()),
        ("bytes", pa.int64()),
        ("segments", pa.int32()),
        ("frame_bytes", pa.int32()),
        ("captured_bytes", pa.int32()),
        ("source_address", pa.string()),
        ("target_address", pa.string()),
        ("protocol", pa.int16()),
        ("source_port", pa.int32()),
        ("target_port", pa.int32()),
        ("ip_id", pa.int32()),
        ("tcp_seq", pa.int64()),
        ("tcp_ack", pa.int64()),
        ("tcp_flags", pa.int16()),
        ("payload_bytes", pa.int32()),
        ("duplicate", pa.bool_()),
        ("corrupted", pa.bool_()),
    ]
)

FATES = ("sent", "lost", "queue_full", "dropped", "held", "unknown")
"""In the order of ``Outcome`` in emulator/wire/src/capture/packet.rs."""

# The layout is told in emulator/wire/src/capture/rows.rs.
_ROW = np.dtype(
    [
        ("entry_ns", "<i8"),
        ("departure_ns", "<i8"),
        ("bytes", "<i8"),
        ("tcp_seq", "<i8"),
        ("tcp_ack", "<i8"),
        ("interface", "<u4"),
        ("frame_bytes", "<i4"),
        ("captured_bytes", "<i4"),
        ("segments", "<i4"),
        ("source_port", "<i4"),
        ("target_port", "<i4"),
        ("payload_bytes", "<i4"),
        ("ip_id", "<i4"),
        ("tcp_flags", "<i2"),
        ("protocol", "<i2"),
        ("version", "u1"),
        ("fate", "u1"),
        ("marks", "u1"),
        ("padding", "V1"),
        ("source_address", "V16"),
        ("target_address", "V16"),
        ("rest", "V16"),
    ]
)
_ROWS_AT_A_TIME = 1 << 16
_DUPLICATE, _CORRUPTED = 1, 2


@dataclass(frozen=True)
class TableSummary:
    """What a table was made from: rows, and whether any file ended within a block."""

    packets: int
    cut_short: bool


def write_table(files: Mapping[str | None, Path], target: Path) -> TableSummary:
    """Write the records of ``files`` (pcapng, each under the name of its system or None) as one
    Parquet file; a reader sees all of it or nothing.

    Raises UserError when a file is no record of ours, MachineError when the table cannot be
    written (a full disk).
    """
    partial = target.with_name(f".{target.name}.partial")
    packets, cut_short = 0, False
    try:
        with pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
            for system, file in files.items():
                summary: dict[str, Any] = {}
                for rows in _rows(file, summary):
                    writer.write_table(_as_table(rows, system, _link_ends(file)))
                packets += summary["packets"]
                cut_short |= summary["cut_short"]
        os.replace(partial, target)
    except OSError as error:
        raise MachineError(
            f"The table of packets {target} cannot be written: {error.strerror or error}. The "
            "record itself is not lost: `wanlat capture table` makes the table again."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return TableSummary(packets, cut_short)


def _rows(file: Path, summary: dict[str, Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows of a record, and what the program says at their end into ``summary``."""
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            [str(binary("wire")), "rows", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
        ) as reader:
            assert reader.stdout is not None
            try:
                while chunk := _read(reader.stdout, _ROWS_AT_A_TIME * _ROW.itemsize):
                    yield np.frombuffer(chunk, _ROW)
            except BaseException:
                reader.kill()
                raise
        said.seek(0)
        words = said.read().decode(errors="replace").strip()
    if reader.returncode != 0:
        raise UserError(f"{file} is not a whole record: {words.removeprefix('wire: ')}.")
    summary.update(json.loads(words.splitlines()[-1]))


def _read(stream: IO[bytes], length: int) -> bytes:
    """Read so many bytes, or what is left of whole rows."""
    chunk = stream.read(length)
    return chunk[: len(chunk) - len(chunk) % _ROW.itemsize]


def _as_table(rows: npt.NDArray[Any], system: str | None, ends: list[tuple[str, str]]) -> pa.Table:
    def number(name: str, kind: pa.DataType) -> pa.Array:
        values = np.ascontiguousarray(rows[name])
        return pa.array(values, type=kind, mask=values == -1)

    def words(positions: npt.NDArray[Any], choice: list[str]) -> pa.Array:
        indices = pa.array(positions.astype(np.int32))
        return pa.DictionaryArray.from_arrays(indices, pa.array(choice, pa.string())).cast(
            pa.string()
        )

    columns: dict[str, pa.Array] = {
        "system": pa.array([system] * len(rows), pa.string()),
        "source": words(rows["interface"], [source for source, _ in ends]),
        "target": words(rows["interface"], [target for _, target in ends]),
        "fate": words(rows["fate"], list(FATES)),
        "source_address": _addresses(rows, "source_address"),
        "target_address": _addresses(rows, "target_address"),
        "duplicate": pa.array(rows["marks"] & _DUPLICATE != 0),
        "corrupted": pa.array(rows["marks"] & _CORRUPTED != 0),
    }
    for field in SCHEMA:
        if field.name not in columns:
            columns[field.name] = number(field.name, field.type)
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _addresses(rows: npt.NDArray[Any], name: str) -> pa.Array:
    packed = np.zeros(len(rows), np.dtype([("version", "u1"), ("address", "V16")]))
    packed["version"], packed["address"] = rows["version"], rows[name]
    distinct, places = np.unique(packed.view("V17"), return_inverse=True)
    texts = [_address(value.tobytes()) for value in distinct]
    indices = pa.array(places.reshape(-1).astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string())).cast(pa.string())


def _address(packed: bytes) -> str | None:
    version, address = packed[0], packed[1:]
    if version == 4:
        return str(ipaddress.IPv4Address(address[:4]))
    if version == 6:
        return str(ipaddress.IPv6Address(address))
    return None


def _link_ends(file: Path) -> list[tuple[str, str]]:
    """Return source and target of every interface of a record, read off its first blocks."""
    ends: list[tuple[str, str]] = []
    with file.open("rb") as stream:
        while True:
            head = stream.read(8)
            if len(head) < 8:
                return ends
            kind, length = (int.from_bytes(head[at : at + 4], "little") for at in (0, 4))
            if kind not in (0x0A0D0D0A, 1) or length < 12:
                return ends
            body = stream.read(length - 8)
            if kind == 1:
                name_bytes = int.from_bytes(body[10:12], "little")
                source, _, target = body[12 : 12 + name_bytes].decode().partition("->")
                ends.append((source, target))
