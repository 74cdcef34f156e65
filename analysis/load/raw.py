"""The load generator's own records, as a run that was killed leaves them (docs/load.md).

A file of records of 72 bytes each, little-endian, behind a header as long as a record. Kinds of
errors are numbers; a record whose endpoint is 255 gives one of them its name, before the first that
uses it. What was written when the writer was killed may end in a part of a record: it is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.bundle.documents import OUTCOMES
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import pandas as pd

MAGIC = b"wanlat load 1\n\0\0"
_BYTES = 72
_NAME = 255
_RAMP = 1
_ENDPOINTS = (
    *("GetObject", "PutObject", "HeadObject", "RemoveObject"),
    *("Get", "Put", "Exist", "Delete"),
)
_FIELDS = (
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
)


def read_raw(path: Path) -> tuple[pd.DataFrame, bool]:
    """The rows of load.parquet from `path`, and whether its last record was torn.

    Raises BundleError where it is no such file, or holds what no generator writes.
    """
    import numpy as np
    import pandas as pd

    try:
        data = path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) < _BYTES and MAGIC.startswith(data[: len(MAGIC)]):
        data = MAGIC.ljust(_BYTES, b"\0")  # killed before it wrote its header: no records
    if data[: len(MAGIC)] != MAGIC:
        raise BundleError(f"{path} is no file of records of a load generator that this reads.")
    whole = len(data) // _BYTES
    records: Any = np.frombuffer(data, dtype=np.dtype(list(_named())), count=whole)[1:]
    is_name = records["endpoint"] == _NAME
    names = {0: None} | {
        int(record["error"]): _name_in(data, 1 + int(place))
        for place, record in zip(np.flatnonzero(is_name), records[is_name], strict=True)
    }
    rows = records[~is_name]
    if rows.size and (
        rows["endpoint"].max() >= len(_ENDPOINTS) or rows["outcome"].max() >= len(OUTCOMES)
    ):
        raise BundleError(f"{path} is damaged: a record is of no endpoint or outcome there is.")
    frame = pd.DataFrame(
        {
            "start_ns": rows["start_ns"],
            "due_ns": _known(rows["due_ns"]),
            "first_byte_ns": _known(rows["first_byte_ns"]),
            "total_ns": _known(rows["total_ns"]),
            "elapsed_ns": rows["elapsed_ns"],
            "worker": rows["worker"].astype("int64"),
            "endpoint": np.array(_ENDPOINTS)[rows["endpoint"]],
            "object_bytes": rows["object_bytes"],
            "outcome": np.array(OUTCOMES)[rows["outcome"]],
            "error": [names.get(int(number), "other") for number in rows["error"]],
            "phase": np.where(rows["flags"] & _RAMP, "ramp", "load"),
        }
    )
    return frame, len(data) % _BYTES != 0


def _named() -> list[tuple[str, str]]:
    return [(name or f"gap{number}", kind) for number, (name, kind) in enumerate(_FIELDS)]


def _name_in(data: bytes, record: int) -> str:
    begin = record * _BYTES
    return data[begin + 8 : begin + 8 + data[begin + 1]].decode("utf-8", "replace")


def _known(values: Any) -> pd.Series[Any]:
    """Nullable integers: -1 stands for what was not there."""
    import pandas as pd

    return pd.Series(values, dtype="Int64").mask(values < 0)
