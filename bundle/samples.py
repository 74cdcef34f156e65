"""Samples from disk, in one shape whichever of the two files they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.bundle import tables
from wanlat.bundle.documents import NOT_SENT, OUTCOMES, PLACEMENTS, UNKNOWN
from wanlat.bundle.errors import BundleError, NoSamplesError
from wanlat.bundle.lateness import with_network_error
from wanlat.bundle.outcomes import outcome_of
from wanlat.bundle.read import read_manifest, read_some, read_table

_GROUPED = ("system", "version", "topology", "endpoint", "outcome", "phase")
_REQUIRED = (*_GROUPED, "total_ns")
TIMED = (
    *("system", "version", "endpoint", "placement", "outcome"),
    *("total_ns", "first_byte_ns", "retransmits", "new_connection", "late", "held_up_ns"),
)
"""The columns that latencies are made of."""
CHECKED = (*TIMED, "topology", "phase", "error", "start_ns", "network_error_ns")
"""With the columns that decide which rows count: the least that is read of a run."""
_JUDGED = ("start_ns", "elapsed_ns", "object_bytes", "rtt_ms")
"""The columns that determine how late the network was for a request."""
_KINDS = {
    **dict.fromkeys((*_GROUPED, "placement", "client", "error"), "string"),
    **dict.fromkeys(("seq", "start_ns", "connect_ns", "first_byte_ns", "total_ns"), "Int64"),
    **dict.fromkeys(("object_bytes", "retransmits", "status", "grpc_status"), "Int64"),
    **{"rtt_ms": "Float64", "new_connection": "boolean"},
    # How late the network was meanwhile, and whether too late; empty where that is not known.
    **{"network_error_ns": "Int64", "late": "boolean", "held_up_ns": "Int64"},
    # Of the probe's own work, and of studies of round trips; empty elsewhere.
    **dict.fromkeys(("verify_ns", "make_ns", "rtt_step"), "Int64"),
    # Of drills; empty in studies.
    **dict.fromkeys(("due_ns", "elapsed_ns"), "Int64"),
    **dict.fromkeys(("drill_client", "target", "operation", "key"), "string"),
}


def read_samples(
    directory: Path, topology: str, *, may_lack: bool = False, names: Sequence[str] = tuple(_KINDS)
) -> tuple[pd.DataFrame, bool, bool]:
    """Every request that a run recorded; whether that is all columns; whether a line was cut short.

    Of a table the columns `names` are read alone, of lines all. Columns that a writer may leave out
    are there and empty; words are categories. `topology` is the one the manifest names; "" skips
    that check. `may_lack` takes a run without any file of samples for one without samples. Raises
    NoSamplesError, and BundleError where a row cannot be counted one way only.
    """
    table = read_table(directory, "samples", {name: _KINDS[name] for name in names})
    if table is None and not may_lack:
        raise NoSamplesError(
            f"{directory} has no samples: neither samples.parquet nor samples.jsonl is there. "
            "The run ended before its first request, or they were not kept; run it again."
        )
    frame, path, truncated = table or (pd.DataFrame(), directory, False)
    are_lines = path.suffix == ".jsonl"
    if are_lines:
        frame = _with_network_error(frame, directory)
    wanted = tuple(_KINDS) if are_lines or frame.empty else names
    if frame.empty:
        frame = pd.DataFrame(columns=list(wanted))
    if absent := [name for name in _REQUIRED if name not in frame.columns]:
        raise BundleError(
            f"{path} lacks the column {', '.join(absent)}: something else than wanlat wrote it, "
            "or it is damaged."
        )
    frame = pd.DataFrame({name: _typed(frame, name, path) for name in wanted}, copy=False)
    if {"outcome", "error"} <= {*frame.columns}:
        frame["outcome"] = outcomes_of(frame)
    for wrong, what in _wrongs(frame, topology):
        if wrong.any():
            raise BundleError(_refusal(path, wrong, what))
    return frame, wanted == tuple(_KINDS), truncated


def _with_network_error(frame: pd.DataFrame, directory: Path) -> pd.DataFrame:
    """The requests of a run that was killed, with how late the network was, if it recorded that.

    One that ends writes that beside its samples.
    """
    import pyarrow as pa

    bins = read_table(directory, "lateness")
    allowed_ms = read_manifest(directory).max_network_error_ms
    needed = pa.schema([tables.SAMPLES.field(name) for name in _JUDGED])
    if bins is None or allowed_ms is None or frame.empty:
        return frame
    instants = bins[0].reindex(columns=tables.LATENESS.names)
    rows = with_network_error(
        pa.Table.from_pandas(frame.reindex(columns=list(_JUDGED)), schema=needed),
        pa.Table.from_pandas(instants, schema=tables.LATENESS, preserve_index=False),
        1e6 * allowed_ms,
    )
    columns = rows.select(["network_error_ns", "late", "held_up_ns"]).to_pandas()
    return frame.assign(**{str(name): columns[name].to_numpy() for name in columns})


def read_rows(directory: Path, at: NDArray[np.intp], names: Sequence[str]) -> pd.DataFrame:
    """The samples in these rows of the table, ascending, with the columns `names`.

    For the few that are looked at one by one of however many there are. Raises BundleError.
    """
    rows, path = read_some(directory, "samples", at, names)
    return pd.DataFrame({name: _typed(rows, name, path) for name in names}, copy=False)


def _typed(frame: pd.DataFrame, name: str, path: Path) -> pd.Series[Any]:
    """A column as its kind, as small as it can be: millions of rows have few different words.

    Words are categories (with "" for who wants to fill in missing ones), and whole numbers of which
    none is missing are plain ones. Raises BundleError.
    """
    kind = _KINDS[name]
    empty: Any = pd.CategoricalDtype([""]) if kind == "string" else kind
    column = frame[name] if name in frame else pd.Series(index=frame.index, dtype=empty)
    try:
        if kind == "string":
            return _words(column, name)
        if kind == "Int64" and column.dtype != "int64":
            column = column.astype("Int64")
            return column.astype("int64") if column.notna().all() else column
        return column.astype(empty) if kind != "Int64" else column
    except (TypeError, ValueError) as error:
        raise BundleError(
            f"{path}, column {name}, is damaged: {error} (expected {kind.lower()})."
        ) from error


def outcomes_of(frame: pd.DataFrame) -> pd.Series[Any]:
    """The outcomes of requests, as `wanlat.bundle.outcomes.outcome_of` has them."""
    words = frame["error"].astype("category").cat
    ours = [error for error in words.categories if outcome_of("fail", str(error)) == NOT_SENT]
    is_ours = (frame["outcome"] == "fail") & frame["error"].isin(ours)
    if not is_ours.any():
        return frame["outcome"]
    return frame["outcome"].astype(pd.CategoricalDtype(list(OUTCOMES))).mask(is_ours, NOT_SENT)


def _words(column: pd.Series[Any], name: str) -> pd.Series[Any]:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype("string").astype("category")
    words = {*column.cat.categories.astype(str)}
    if name == "placement":  # bundles from before it was recorded lack it
        return column.cat.set_categories(sorted(words | {UNKNOWN})).fillna(UNKNOWN)
    return column.cat.set_categories(sorted(words if name in _REQUIRED else words | {""}))


def _wrongs(frame: pd.DataFrame, topology: str) -> Iterator[tuple[pd.Series[bool], str]]:
    """Which rows cannot be counted, and why."""
    for name in ("system", "version", "endpoint", "outcome", "phase"):
        yield frame[name].isna(), f"has no {name}"
    for what, known in (("a placement", PLACEMENTS), ("an outcome", OUTCOMES)):
        unknown = ~frame[what.partition(" ")[2]].isin(known)
        yield unknown, f"has {what} that is not {', '.join(known)}"
    missing = frame["total_ns"].isna()
    yield (frame["outcome"] == "ok") & missing, "succeeded but has no total_ns"
    yield (frame["total_ns"] < 0).fillna(False), "has a negative total_ns"
    if topology:
        yield ~frame["topology"].isin([topology]), f"is not of the manifest's topology, {topology}"


def _refusal(path: Path, wrong: pd.Series[bool], what: str) -> str:
    position = int(wrong.to_numpy(dtype=bool).argmax())
    others = int(wrong.sum()) - 1
    more = f" (and {others} more)" if others else ""
    return (
        f"{path}: the sample in row {position + 1}{more} {what}. It cannot be counted, so no "
        "figure made from this file could be trusted; run the study again."
    )
