"""A packet record as a table: one row a packet, in Parquet.

What ``wire`` knows of packets it writes as rows of fixed length, which are mapped and converted a
part at a time, so that memory stays bounded.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.bundle import beneath
from wanlat.bundle.tables import compact, schema_of
from wanlat.emulator.capture import rows_of
from wanlat.topologies.errors import MachineError, UserError

SCHEMA = schema_of("""
    system          string  whose lab; null of `wanlat lab`
    source          string  site that sends
    target          string  site that receives
    entry_ns        int64   when it entered the link; a copy's is the original's
    departure_ns    int64   when it left the link; null unless `fate` is `sent`
    fate            string  `sent`, `lost`, `queue_full`, `dropped`, or `held` when the record ended
    bytes           int64   on the wire, Ethernet headers included, of all its segments
    segments        int32   how many packets it stands for; 1 unless it is offloaded
    frame_bytes     int32   length of the frame as it crossed
    captured_bytes  int32   how much of it is in the pcapng file
    source_address  string  of the IP header; null: not IP
    target_address  string  of the IP header; null: not IP
    protocol        int16   6 TCP, 17 UDP, 1 ICMP
    source_port     int32   of TCP and UDP
    target_port     int32   of TCP and UDP
    ip_id           int32   identification of the IPv4 packet
    tcp_seq         int64   first sequence number
    tcp_ack         int64   acknowledged up to
    tcp_flags       int16   FIN 1, SYN 2, RST 4, PSH 8, ACK 16
    payload_bytes   int32   as the IP header has it, without padding
    duplicate       bool    a copy that the link made
    corrupted       bool    always false: `wire` flips no bits
""")

FATES = ("sent", "lost", "queue_full", "dropped", "held")
"""In the order of ``Outcome`` in emulator/wire/src/capture/packet.rs."""

# The layout is told in emulator/wire/src/capture/rows.rs.
_VERSION = 1
_LONGS = ("entry_ns", "departure_ns", "bytes", "tcp_seq", "tcp_ack")
_WORDS = (
    *("interface", "frame_bytes", "captured_bytes", "segments"),
    *("source_port", "target_port", "payload_bytes", "ip_id"),
)
_ROW = np.dtype(
    [
        *((name, "<i8") for name in _LONGS),
        *((name, "<i4") for name in _WORDS),
        *((name, "<i2") for name in ("tcp_flags", "protocol")),
        *((name, "u1") for name in ("version", "fate", "duplicate", "padding")),
        *((name, "V16") for name in ("source_address", "target_address")),
    ]
)
_ROWS_AT_A_TIME = 1 << 16

_Rows = npt.NDArray[Any]


@dataclass(frozen=True)
class TableSummary:
    """What a table was made from: rows, and whether any file ended within one."""

    packets: int
    cut_short: bool


def write_table(files: Mapping[str | None, Path], target: Path) -> TableSummary:
    """Write the records of ``files`` (pcapng, or the rows beside them; each under the name of its
    system or None) as one Parquet file; a reader sees all of it or nothing.

    Raises UserError when a file is no record of ours, MachineError when the table cannot be
    written (a full disk).
    """
    packets, cut_short = 0, False
    try:
        target.parent.stat()  # a directory that is not there is a slip: it is not made
        with (
            beneath.replacing(target) as whole,
            pq.ParquetWriter(whole, SCHEMA, **compact(SCHEMA)) as writer,
        ):
            for system, file in files.items():
                names, rows, is_cut = _read(rows_of(file))
                for begin in range(0, len(rows), _ROWS_AT_A_TIME):
                    part = rows[begin : begin + _ROWS_AT_A_TIME]
                    writer.write_table(_as_table(part, system, names))
                packets += len(rows)
                cut_short |= is_cut
    except OSError as error:
        raise MachineError(
            f"The table of packets {target} cannot be written: {error.strerror or error}. The "
            "record itself is not lost: `wanlat capture table` makes the table again."
        ) from error
    return TableSummary(packets, cut_short)


def _read(file: Path) -> tuple[list[str], _Rows, bool]:
    """Return the names of the interfaces of a record, its rows, and whether it ends within one."""
    try:
        with file.open("rb") as stream:
            head = json.loads(stream.readline(1 << 20))
            start = stream.tell()
        if (head["version"], head["row_bytes"]) != (_VERSION, _ROW.itemsize):
            raise ValueError("another version of wanlat wrote it")
        names = list(map(str, head["names"]))
        count, rest = divmod(file.stat().st_size - start, _ROW.itemsize)
        rows = np.memmap(file, _ROW, "r", start, (count,)) if count else np.empty(0, _ROW)
    except OSError as error:
        raise UserError(f"{file} is not a whole record: {error.strerror}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{file} is not a whole record of packets, as wanlat writes it: {error}."
        ) from error
    return names, rows, rest > 0


def _as_table(rows: _Rows, system: str | None, names: list[str]) -> pa.Table:
    ends = [name.partition("->") for name in names]
    columns: dict[str, pa.Array] = {
        "system": pa.array([system] * len(rows), pa.string()),
        "source": _words(rows["interface"], [source for source, _, _ in ends]),
        "target": _words(rows["interface"], [target for _, _, target in ends]),
        "fate": _words(rows["fate"], FATES),
        "source_address": _addresses(rows, "source_address"),
        "target_address": _addresses(rows, "target_address"),
        "duplicate": pa.array(rows["duplicate"] != 0),
        "corrupted": pa.array(np.zeros(len(rows), bool)),  # wire does not
    }
    for field in SCHEMA:
        if field.name not in columns:
            values = np.ascontiguousarray(rows[field.name])
            columns[field.name] = pa.array(values, type=field.type, mask=values == -1)
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _words(places: npt.NDArray[Any], choice: list[Any] | tuple[str, ...]) -> pa.Array:
    indices = pa.array(places.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(choice, pa.string())).cast(pa.string())


def _addresses(rows: _Rows, name: str) -> pa.Array:
    packed = np.zeros(len(rows), np.dtype([("version", "u1"), ("address", "V16")]))
    packed["version"], packed["address"] = rows["version"], rows[name]
    distinct, places = np.unique(packed.view("V17"), return_inverse=True)
    return _words(places.reshape(-1), [_address(value.tobytes()) for value in distinct])


def _address(packed: bytes) -> str | None:
    version, address = packed[0], packed[1:]
    if version == 0:
        return None
    return str(ipaddress.ip_address(address[:4] if version == 4 else address))
