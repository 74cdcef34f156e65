"""The records of `oneshot load`: 72 bytes a request, written as it happens.

A run under load that was killed leaves them; one that ended leaves load.parquet. docs/load.md has
the layout, for whoever reads them without this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wanlat.bundle import tables
from wanlat.bundle.errors import BundleError

MAGIC = b"wanlat load 1\n\0\0"
RECORD = np.dtype(
    [
        ("endpoint", "u1"),
        ("outcome", "u1"),
        ("flags", "u1"),
        ("", "u1"),
        ("error", "<u2"),
        ("worker", "<u2"),
        ("start_ns", "<i8"),
        ("due_ns", "<i8"),
        ("first_byte_ns", "<i8"),
        ("total_ns", "<i8"),
        ("elapsed_ns", "<i8"),
        ("object_bytes", "<i8"),
        ("index", "<u4"),
        ("verify_ns", "<u4"),
        ("bucket", "<u2"),
        ("status", "<u2"),
        ("grpc_status", "<i2"),
        ("", "<u2"),
    ]
)
"""A record. -1: none (of instants, ``grpc_status``); 0: none (of ``error``, ``status``)."""

ENDPOINTS = (
    *("GetObject", "PutObject", "HeadObject", "RemoveObject"),
    *("Get", "Put", "Exist", "Delete"),
)
"""By number."""
OUTCOMES = ("ok", "fail", "unknown")

RAMP, NEW_CONNECTION = 1, 2
"""Of ``flags``."""

_NAME = 255
"""In the place of an endpoint: this is no request, but the name of a kind of error."""
_NAME_AT = 8
_PIECE = 200_000
"""Records at a time: 14 MB."""

_NAMES = [name for name in tables.LOAD.names if name not in ("system", "version")]
"""The columns that come of records."""


@dataclass(frozen=True)
class Records:
    """Records of one file. ``rows`` has the fields of ``RECORD``; ``errors`` the kinds' names."""

    rows: np.ndarray[Any, Any]
    """In the order in which requests ended, shape (n,)."""
    errors: Sequence[str]
    """Of error 1, 2, …"""
    is_cut: bool = False
    """Does the file end in the middle of a record? Whoever wrote it was killed."""


class RecordsFile:
    """A file of records, which may be larger than memory."""

    def __init__(self, path: Path) -> None:
        """Look at it. Raises BundleError when it is no such file, OSError when it cannot be read.

        What is not whole at its end is left out: whoever wrote it was killed, or writes on.
        """
        size_bytes = path.stat().st_size
        self.count = max(size_bytes // RECORD.itemsize - 1, 0)
        """Of records, names of errors among them."""
        self.is_cut = size_bytes % RECORD.itemsize != 0
        self._path = path
        with path.open("rb") as stream:
            begin = stream.read(len(MAGIC))
        if not MAGIC.startswith(begin) or (self.count and begin != MAGIC):
            raise BundleError(
                f"{path} has no records of load: it does not begin with {MAGIC[:13].decode()!r}."
            )

    def pieces(self, length: int = _PIECE) -> Iterator[Records]:
        """Yield all records, so many at a time."""
        names: dict[int, str] = {}
        with self._path.open("rb") as stream:
            stream.seek(RECORD.itemsize)
            for begin in range(0, self.count, length):
                count = min(length, self.count - begin)
                data = stream.read(count * RECORD.itemsize)
                rows = np.frombuffer(data, dtype=RECORD, count=len(data) // RECORD.itemsize)
                is_name = rows["endpoint"] == _NAME
                for place in np.flatnonzero(is_name):
                    names[int(rows["error"][place])] = _name_in(data, int(place))
                errors = [names.get(each, "other") for each in range(1, max(names, default=0) + 1)]
                yield Records(rows[~is_name], errors)


def read_records(path: Path) -> Records:
    """Read a file of records, also one whose writer was killed (a torn last record is left out).

    Raises BundleError when it is none or damaged, OSError when it cannot be read.
    """
    records = RecordsFile(path)
    for whole in records.pieces(max(records.count, 1)):
        kinds = (("endpoint", ENDPOINTS), ("outcome", OUTCOMES))
        if any((whole.rows[field] >= len(names)).any() for field, names in kinds):
            raise BundleError(f"{path} is damaged: a record is of no endpoint or outcome there is.")
        return Records(whole.rows, whole.errors, records.is_cut)
    return Records(np.zeros(0, dtype=RECORD), [], records.is_cut)


def records_table(records: Records, constant: Mapping[str, str] | None = None) -> pa.Table:
    """Return the rows of ``load.parquet`` (docs/bundle.md), with constant columns before them."""
    rows = records.rows
    count = len(rows)
    given = constant or {}
    columns: dict[str, pa.Array] = {name: pa.repeat(given[name], count) for name in given}
    errors = rows["error"].astype(np.int64) - 1
    ramp = (rows["flags"] & RAMP) != 0
    known: dict[str, pa.Array] = {
        **{
            name: pa.array(rows[name].astype(np.int64), mask=rows[name] < 0)
            for name in ("due_ns", "first_byte_ns", "total_ns")
        },
        **{
            name: pa.array(rows[name].astype(np.int64))
            for name in ("start_ns", "elapsed_ns", "object_bytes", "verify_ns")
        },
        "object": pa.array(rows["index"].astype(np.int64)),
        "worker": pa.array(rows["worker"].astype(np.int32)),
        "bucket": pa.array(rows["bucket"].astype(np.int32)),
        "status": pa.array(rows["status"].astype(np.int32), mask=rows["status"] == 0),
        "grpc_status": pa.array(rows["grpc_status"].astype(np.int32), mask=rows["grpc_status"] < 0),
        "endpoint": _named(rows["endpoint"].astype(np.int8), ENDPOINTS),
        "outcome": _named(rows["outcome"].astype(np.int8), OUTCOMES),
        "error": _named(errors.astype(np.int16), records.errors, mask=errors < 0),
        "phase": _named((~ramp).astype(np.int8), ("ramp", "load")),
        "new_connection": pa.array((rows["flags"] & NEW_CONNECTION) != 0),
    }
    columns |= {name: known[name] for name in _NAMES}
    return pa.table(columns)


def _named(
    numbers: np.ndarray[Any, Any], names: Sequence[str], mask: np.ndarray[Any, Any] | None = None
) -> pa.Array:
    indices = pa.array(numbers, mask=mask)
    named = pa.DictionaryArray.from_arrays(indices, pa.array(list(names), pa.string()))
    return named.dictionary_decode()


def _name_in(data: bytes, record: int) -> str:
    begin = record * RECORD.itemsize
    text = data[begin + _NAME_AT :][: data[begin + 1]]
    return text.decode(errors="replace")
