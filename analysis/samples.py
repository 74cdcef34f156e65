"""Samples from disk, in one shape whichever of the two files they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.placement import PLACEMENTS, UNKNOWN
from wanlat.bundle.documents import OUTCOMES
from wanlat.bundle.errors import BundleError, NoSamplesError
from wanlat.bundle.read import read_table

if TYPE_CHECKING:
    import pandas as pd

_REQUIRED = ("system", "version", "topology", "endpoint", "outcome", "phase", "total_ns")
_TYPES: dict[str, str] = {
    "system": "string",
    "version": "string",
    "topology": "string",
    "client": "string",
    "endpoint": "string",
    "placement": "string",
    "seq": "Int64",
    "start_ns": "Int64",
    "connect_ns": "Int64",
    "first_byte_ns": "Int64",
    "total_ns": "Int64",
    "outcome": "string",
    "error": "string",
    "object_bytes": "Int64",
    "rtt_ms": "Float64",
    "phase": "string",
    "retransmits": "Int64",
    "status": "Int64",
    "grpc_status": "Int64",
    "new_connection": "boolean",
    # Of the probe's own work; empty in bundles from before it was recorded.
    "verify_ns": "Int64",
    "make_ns": "Int64",
    # Of studies of round trips; empty elsewhere.
    "rtt_step": "Int64",
    # Of drills; empty in studies.
    "due_ns": "Int64",
    "elapsed_ns": "Int64",
    "drill_client": "string",
    "target": "string",
    "operation": "string",
    "key": "string",
}


def read_samples(
    directory: Path, topology: str, *, may_lack: bool = False
) -> tuple[pd.DataFrame, bool]:
    """Every request that a run recorded, and whether a cut last line had to be left out.

    `topology` is the one the manifest names; "" skips that check. Columns that a writer may
    leave out are there and empty. `may_lack` takes a run without any file of samples for one
    without samples. Raises BundleError where a row cannot be counted one way only.
    """
    import pandas as pd

    found = read_table(directory, "samples", _TYPES)
    if found is None:
        if may_lack:
            return _checked(pd.DataFrame(columns=list(_TYPES)), directory, topology), False
        raise NoSamplesError(
            f"{directory} has no samples: neither samples.parquet nor samples.jsonl is there. "
            "The run ended before its first request; run the study again."
        )
    frame, path, truncated = found
    if frame.empty:
        frame = pd.DataFrame(columns=list(_TYPES))
    return _checked(frame, path, topology), truncated


def _checked(frame: pd.DataFrame, path: Path, topology: str) -> pd.DataFrame:
    absent = [name for name in _REQUIRED if name not in frame.columns]
    if absent:
        raise BundleError(
            f"{path} lacks the column {', '.join(absent)}: something else than wanlat wrote it, "
            "or it is damaged."
        )
    columns = {}
    for name, kind in _TYPES.items():
        try:
            columns[name] = _typed(frame, name, kind)
        except (TypeError, ValueError) as error:
            raise BundleError(
                f"{path}, column {name}, is damaged: {error} (expected {kind.lower()})."
            ) from error
    frame = type(frame)(columns, copy=False)
    for name in ("system", "version", "endpoint", "outcome", "phase"):
        _refuse(frame[name].isna(), path, f"has no {name}")
    # Bundles from before placement was recorded lack the column.
    placed = frame["placement"]
    if UNKNOWN not in placed.cat.categories:
        placed = placed.cat.add_categories([UNKNOWN])
    frame["placement"] = placed.fillna(UNKNOWN)
    placements = ", ".join(PLACEMENTS)
    _refuse(~frame["placement"].isin(PLACEMENTS), path, f"has a placement that is not {placements}")
    outcomes = ", ".join(OUTCOMES)
    _refuse(~frame["outcome"].isin(OUTCOMES), path, f"has an outcome that is not {outcomes}")
    succeeded = frame["outcome"] == "ok"
    _refuse(succeeded & frame["total_ns"].isna(), path, "succeeded but has no total_ns")
    negative = (frame["total_ns"] < 0).fillna(False)
    _refuse(negative, path, "has a negative total_ns")
    if topology:
        elsewhere = frame["topology"].isna() | (frame["topology"] != topology).fillna(True)
        _refuse(elsewhere, path, f"is not of the manifest's topology, {topology}")
    return frame


def _typed(frame: pd.DataFrame, name: str, kind: str) -> pd.Series[Any]:
    """A column as `kind`, as small as it can be: millions of rows say few different words.

    Words are categories (with "" for who wants to fill in missing ones), and whole numbers of which
    none is missing are plain ones.
    """
    import pandas as pd

    wanted: Any = pd.CategoricalDtype([""]) if kind == "string" else kind
    if name not in frame.columns:
        return pd.Series([None], index=frame.index[:1], dtype=wanted).reindex(frame.index)
    column = frame[name]
    if kind == "Int64" and column.dtype == "int64":
        return column
    if kind != "string":
        column = column.astype(wanted)
        return column.astype("int64") if kind == "Int64" and column.notna().all() else column
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype("string").astype("category")
    words = [str(word) for word in column.cat.categories]
    column = column.cat.rename_categories(words)
    return column.cat.set_categories(sorted(words if name in _REQUIRED else {*words, ""}))


def _refuse(wrong: pd.Series[bool], path: Path, what: str) -> None:
    """Raise BundleError naming the first of the `wrong` rows."""
    if not wrong.any():
        return
    position = int(wrong.to_numpy(dtype=bool).argmax())
    others = int(wrong.sum()) - 1
    more = f" (and {others} more)" if others else ""
    raise BundleError(
        f"{path}: the sample in row {position + 1}{more} {what}. It cannot be counted, so no "
        "figure made from this file could be trusted; run the study again."
    )
