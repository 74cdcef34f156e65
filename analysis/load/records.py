"""Reading what the load generator recorded: load.parquet, or the raw records of a killed run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.load.raw import read_raw
from wanlat.analysis.load.settings import Settings, settings_of
from wanlat.bundle.documents import OUTCOMES
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Flags = NDArray[np.bool_]

TABLE = "load.parquet"
RAW = "load*.raw"
RAMP = "ramp"
_REQUIRED = ("start_ns", "total_ns", "worker", "endpoint", "object_bytes", "outcome")


@dataclass(frozen=True)
class Records:
    """Requests of one system's load, in the order in which they began; every array of shape (n,).

    Seconds count from the load's begin, which is when its ramp was over, so those of the ramp
    began before 0. `ended_s` is when a request's clock stopped, however it ended; `due_s` is NaN
    where it was due at no instant. `until_s` is when the load ended: no request was begun after.
    """

    series: Series
    settings: Settings
    cut: bool
    until_s: float
    operation: NDArray[np.object_]
    outcome: NDArray[np.object_]
    error: NDArray[np.object_]
    worker: NDArray[np.int64]
    began_s: Values
    ended_s: Values
    due_s: Values
    bytes: Values

    @property
    def is_ok(self) -> Flags:
        """Which of them succeeded."""
        found: Flags = self.outcome == "ok"
        return found

    @property
    def operations(self) -> list[str]:
        """The operations there are, reads before writes, then by the alphabet."""
        return sorted(set(self.operation), key=lambda name: (name.startswith("Put"), name))

    @property
    def zero_ns(self) -> int:
        """The instant that seconds count from, on the clock of samples."""
        return self.settings.zero_ns or 0


def read_records(bundle: Bundle) -> list[Records]:
    """What was recorded under load, one for each system; none where there are no records.

    Raises BundleError where a file is damaged.
    """
    found = []
    for series, frame, cut in _frames(bundle):
        settings = settings_of(bundle.manifest, series.system)
        if not frame.empty:
            found.append(_records(series, frame, settings, cut))
    order = {series: rank for rank, series in enumerate(bundle.systems)}
    return sorted(found, key=lambda one: order.get(one.series, len(order)))


def _frames(bundle: Bundle) -> list[tuple[Series, pd.DataFrame, bool]]:
    """A frame for each system. Raw records, which are removed last, go before the table."""
    raw = {_system_of(path, bundle): path for path in sorted(bundle.directory.glob(RAW))}
    found = [(_series(system, bundle), *read_raw(path)) for system, path in raw.items()]
    table = bundle.directory / TABLE
    if table.is_file():
        frame = _read_table(table)
        if "system" not in frame.columns:
            frame["system"] = bundle.systems[0].system if bundle.systems else "unknown"
        if "version" not in frame.columns:
            frame["version"] = [_series(str(name), bundle).version for name in frame["system"]]
        found += [
            (Series(str(system), str(version)), rows, False)
            for (system, version), rows in frame.groupby(["system", "version"], sort=False)
            if system not in raw
        ]
    return found


def _read_table(path: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{path} is damaged: it cannot be read as Parquet ({error}). Run the study again."
        ) from error
    absent = [name for name in _REQUIRED if name not in frame.columns]
    if absent:
        raise BundleError(
            f"{path} lacks the column {', '.join(absent)}: something else than wanlat wrote it, "
            "or it is damaged."
        )
    return frame


def _system_of(path: Path, bundle: Bundle) -> str:
    """load-minio.raw is minio's; load.raw that of the one system there is."""
    named = path.stem.removeprefix("load").lstrip("-")
    return named or (bundle.systems[0].system if bundle.systems else "unknown")


def _series(system: str, bundle: Bundle) -> Series:
    return next((one for one in bundle.systems if one.system == system), Series(system, "unknown"))


def _records(series: Series, frame: pd.DataFrame, settings: Settings, cut: bool) -> Records:
    import numpy as np

    frame = frame.sort_values("start_ns", kind="stable")
    wrong = sorted(set(map(str, frame["outcome"])) - set(OUTCOMES))
    if wrong:
        raise BundleError(f"Records of {series.system}'s load have an outcome {wrong[0]!r}.")
    start_ns = frame["start_ns"].to_numpy(dtype=np.int64)
    lasted = frame["elapsed_ns"] if "elapsed_ns" in frame.columns else frame["total_ns"]
    lasted_ns = lasted.fillna(frame["total_ns"]).fillna(0).to_numpy(dtype=np.int64)
    phase = _column(frame, "phase")
    began = start_ns[phase != RAMP]
    zero_ns = settings.zero_ns or int(began[0] if began.size else start_ns[0])
    due = frame["due_ns"] if "due_ns" in frame.columns else None
    ended_s = (start_ns + lasted_ns - zero_ns) / 1e9
    return Records(
        series=series,
        settings=settings.at(zero_ns),
        cut=cut,
        until_s=_until(settings, zero_ns, start_ns),
        operation=_column(frame, "endpoint"),
        outcome=_column(frame, "outcome"),
        error=_column(frame, "error"),
        worker=frame["worker"].to_numpy(dtype=np.int64),
        began_s=(start_ns - zero_ns) / 1e9,
        ended_s=ended_s,
        due_s=_seconds(due, zero_ns, len(frame)),
        bytes=frame["object_bytes"].fillna(0).to_numpy(dtype=np.float64),
    )


def _until(settings: Settings, zero_ns: int, start_ns: Any) -> float:
    """When the load ended: as recorded; else, of a killed run, with the last request begun."""
    if settings.ended_ns is not None and settings.ended_ns > zero_ns:
        return (settings.ended_ns - zero_ns) / 1e9
    return float(start_ns.max() - zero_ns) / 1e9


def _seconds(column: pd.Series[Any] | None, zero_ns: int, rows: int) -> Values:
    import numpy as np

    if column is None:
        return np.full(rows, np.nan)
    # Nanoseconds since the machine started fit into a float's 53 bits for 100 days; less first.
    relative = column.astype("Int64") - zero_ns
    return relative.to_numpy(dtype=np.float64, na_value=np.nan) / 1e9


def _column(frame: pd.DataFrame, name: str) -> NDArray[np.object_]:
    import numpy as np

    if name not in frame.columns:
        return np.full(len(frame), "", dtype=object)
    return np.asarray(frame[name].astype(object).where(frame[name].notna(), ""), dtype=object)
