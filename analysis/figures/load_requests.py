"""The requests of a load, as they were recorded: load.parquet, or the records of a killed run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.names import series_order
from wanlat.bundle import load_records
from wanlat.bundle.documents import OUTCOMES
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_table

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]

_RAMP = "ramp"
_COLUMNS = (
    *("system", "start_ns", "due_ns", "elapsed_ns", "endpoint", "object_bytes"),
    *("outcome", "error", "phase"),
)
_NULLABLE = {pa.int64(): pd.Int64Dtype()}


@dataclass(frozen=True)
class Requests:
    """Requests of one system's load, in the order in which they began; every array of shape (n,).

    Seconds count from the end of the load's ramp, so those of the ramp began before 0. `ended_s` is
    when a request's clock stopped, however it ended; `due_s` is NaN where it was due at no instant.
    The load ended at `until_s`: no request was begun after.
    """

    series: Series
    until_s: float
    operation: NDArray[np.object_]
    outcome: NDArray[np.object_]
    error: NDArray[np.object_]
    began_s: Values
    ended_s: Values
    due_s: Values
    bytes: Values

    @property
    def is_ok(self) -> Flags:
        """Which of them succeeded."""
        return np.asarray(self.outcome == "ok")

    @property
    def lasted_ms(self) -> Values:
        """From when each was sent until its clock stopped."""
        return 1e3 * (self.ended_s - self.began_s)

    @property
    def operations(self) -> list[str]:
        """The operations there are, reads before writes, then by the alphabet."""
        return sorted(set(self.operation), key=lambda name: (name.startswith("Put"), name))


def recorded(bundle: Bundle) -> Iterator[tuple[Series, Mapping[str, Any], pd.DataFrame, bool]]:
    """Of each system what its manifest says of the load, its rows, and whether the last is torn.

    Raises BundleError where a file is damaged.
    """
    said = bundle.manifest.get("load", {})
    found = dict(_tables(bundle))
    for series in series_order(found, bundle.systems):
        frame, is_cut = found[series]
        if not frame.empty:
            yield series, said.get(series.system) or {}, frame, is_cut


def requests_of(
    series: Series, frame: pd.DataFrame, said: Mapping[str, Any]
) -> tuple[Requests, int]:
    """The requests, and the instant that their seconds count from: when the ramp was over."""
    frame = frame.sort_values("start_ns", kind="stable")
    if wrong := set(map(str, frame["outcome"])) - set(OUTCOMES):
        raise BundleError(f"Records of {series.system}'s load have an outcome {min(wrong)!r}.")
    start_ns = frame["start_ns"].to_numpy(dtype="int64")
    if said.get("began_ns") is not None:
        zero_ns = int(said["began_ns"]) + round((said.get("ramp_ms") or 0.0) * 1e6)
    else:
        began = start_ns[frame["phase"] != _RAMP]
        zero_ns = int(began[0] if began.size else start_ns[0])
    # Of a killed run: with the last request begun.
    until_ns = max(said.get("ended_ns") or int(start_ns.max()), zero_ns)  # it may end in its ramp
    # Nanoseconds since the machine started fit into a float's 53 bits for 100 days; less first.
    due_ns = frame["due_ns"].astype("Int64") - zero_ns
    requests = Requests(
        series=series,
        until_s=(until_ns - zero_ns) / 1e9,
        operation=frame["endpoint"].to_numpy(dtype=object),
        outcome=frame["outcome"].to_numpy(dtype=object),
        error=frame["error"].astype(object).fillna("").to_numpy(dtype=object),
        began_s=(start_ns - zero_ns) / 1e9,
        ended_s=(start_ns + frame["elapsed_ns"].to_numpy(dtype="int64") - zero_ns) / 1e9,
        due_s=due_ns.to_numpy(dtype="float64", na_value=np.nan) / 1e9,
        bytes=frame["object_bytes"].fillna(0).to_numpy(dtype="float64"),
    )
    return requests, zero_ns


def within(at_s: Values, part: tuple[float, float]) -> Flags:
    """Which instants lie in a part, its begin included."""
    return (at_s >= part[0]) & (at_s < part[1])


def _tables(bundle: Bundle) -> Iterator[tuple[Series, tuple[pd.DataFrame, bool]]]:
    """Rows of load.parquet of each system, and whether its last record is torn.

    Records of a run that was killed, which are removed last, go before the table.
    """
    known = {one.system: one for one in bundle.systems}
    found = read_table(bundle.directory, "load")
    if found is not None:
        frame, path, _ = found
        if absent := [name for name in _COLUMNS if name not in frame.columns]:
            raise BundleError(
                f"{path} lacks the column {', '.join(absent)}: something else than wanlat wrote "
                "it, or it is damaged."
            )
        for name, rows in frame.groupby("system", sort=False):
            yield known.get(str(name), Series(str(name), "unknown")), (rows, False)
    for path in sorted(bundle.directory.glob("load-*.raw")):
        records = load_records.read_records(path)
        frame = load_records.records_table(records).to_pandas(types_mapper=_NULLABLE.get)
        system = path.stem.removeprefix("load-")
        yield known.get(system, Series(system, "unknown")), (frame, records.is_cut)
