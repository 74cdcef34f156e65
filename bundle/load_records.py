"""The records of `oneshot load`: 72 bytes a request, written as it happens.

A run under load that was killed leaves them; one that ended leaves load.parquet.
probes/oneshot/README.md has the layout, for whoever reads them without this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wanlat.bundle import beneath, tables
from wanlat.bundle.documents import OUTCOMES
from wanlat.bundle.errors import BundleError

MAGIC = b"wanlat load 1\n\0\0"
RECORD = np.dtype(
    [
        *((name, "u1") for name in ("endpoint", "outcome", "flags", "")),
        *((name, "<u2") for name in ("error", "worker")),
        *((name, "<i8") for name in ("start_ns", "due_ns", "first_byte_ns", "total_ns")),
        *((name, "<i8") for name in ("elapsed_ns", "object_bytes")),
        *((name, "<u4") for name in ("index", "verify_ns")),
        *(("bucket", "<u2"), ("status", "<u2"), ("grpc_status", "<i2"), ("", "<u2")),
    ]
)
"""A record. -1: none (of instants, ``grpc_status``); 0: none (of ``error``, ``status``)."""

OPERATIONS = ("read", "write", "exists", "delete")
"""What a record's number of an endpoint does; its name is in the file."""
RAMP, NEW_CONNECTION = 1, 2
"""Of ``flags``."""

_ENDPOINT, _NAME, _NAME_AT = 254, 255, 8
"""In the place of an endpoint: this is no request, but the name of an endpoint, or of a kind of
error; from there.
"""
_NO_SUCH = {"due_ns": -1, "first_byte_ns": -1, "total_ns": -1, "grpc_status": -1, "status": 0}
"""What stands for null."""


@dataclass(frozen=True)
class Records:
    """Records of one file. ``rows`` has the fields of ``RECORD``; ``errors`` the kinds' names."""

    rows: np.ndarray[Any, Any]
    """In the order in which requests ended, shape (n,)."""
    errors: Sequence[str]
    """Of error 1, 2, …"""
    endpoints: Sequence[str] = OPERATIONS
    """By number."""
    is_cut: bool = False
    """Does the file end in the middle of a record? Whoever wrote it was killed, or writes on."""


def read_records(path: Path) -> Records:
    """Read a file of records, also of a writer that was killed (a torn last record is left out).

    Raises BundleError when it is none or damaged, OSError when it cannot be read.
    """
    with beneath.opened(path) as file:
        content = file.read()
    count, torn = divmod(len(content), RECORD.itemsize)
    if not content.startswith(MAGIC) and (count > 1 or not MAGIC.startswith(content[: len(MAGIC)])):
        raise BundleError(
            f"{path} has no records of load: it does not begin with {MAGIC[:13].decode()!r}."
        )
    rows = np.frombuffer(content, RECORD, count)[1:]
    names, endpoints = (
        {int(row["error"]): _name_in(row.tobytes()) for row in rows[rows["endpoint"] == kind]}
        for kind in (_NAME, _ENDPOINT)
    )
    rows = rows[rows["endpoint"] < _ENDPOINT]
    if (rows["endpoint"] >= len(OPERATIONS)).any() or (rows["outcome"] >= len(OUTCOMES)).any():
        raise BundleError(f"{path} is damaged: a record is of no endpoint or outcome there is.")
    errors = [names.get(number, "other") for number in range(1, max(names, default=0) + 1)]
    called = [endpoints.get(number, does) for number, does in enumerate(OPERATIONS)]
    return Records(rows, errors, called, is_cut=torn > 0)


def _name_in(record: bytes) -> str:
    return record[_NAME_AT:][: record[1]].decode(errors="replace")


def records_table(records: Records, constant: Mapping[str, str] | None = None) -> pa.Table:
    """Return the rows of ``load.parquet`` (docs/reference/bundle.md), with constant columns before
    them."""
    rows, constant = records.rows, constant or {}
    is_ramp, is_new = (rows["flags"] & RAMP) != 0, (rows["flags"] & NEW_CONNECTION) != 0
    error = rows["error"].astype(np.int32) - 1
    columns = {
        **{name: pa.repeat(value, len(rows)) for name, value in constant.items()},
        **{name: pa.array(rows[name]) for name in tables.LOAD.names if name in rows.dtype.names},
        **{name: pa.array(rows[name], mask=rows[name] == none) for name, none in _NO_SUCH.items()},
        "endpoint": _words(rows["endpoint"], records.endpoints),
        "outcome": _words(rows["outcome"], OUTCOMES),
        "error": _words(error, records.errors, mask=error < 0),
        "phase": _words(is_ramp, ("load", "ramp")),
        "new_connection": pa.array(is_new),
        "object": pa.array(rows["index"]),
    }
    schema = pa.schema([field for field in tables.LOAD if field.name in columns])
    return pa.table(columns).select(schema.names).cast(schema)


def _words(
    numbers: np.ndarray[Any, Any], names: Sequence[str], mask: np.ndarray[Any, Any] | None = None
) -> pa.Array:
    indices = pa.array(numbers.astype(np.int32), mask=mask)
    named = pa.DictionaryArray.from_arrays(indices, pa.array(list(names), pa.string()))
    return named.dictionary_decode()
