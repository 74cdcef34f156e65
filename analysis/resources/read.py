"""Reading resources.parquet, or the lines of a run that was killed, in one shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_lines

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "rss_bytes",
    "cpu_ns",
    "threads",
    "open_files",
    "read_bytes",
    "written_bytes",
    "space_bytes",
    "files",
    "trash_bytes",
    "space_began_ns",
    "rx_bytes",
    "tx_bytes",
    "rx_packets",
    "tx_packets",
)
_WORDS = ("system", "kind", "subject")


def read_rows(directory: Path) -> pd.DataFrame:
    """Every row in order of time; empty where nothing was sampled.

    Figures are floats, NaN where there is none. Raises BundleError for a file that is damaged.
    """
    import pandas as pd

    lines, table = directory / "resources.jsonl", directory / "resources.parquet"
    frame = pd.DataFrame()
    if lines.is_file():
        frame = pd.DataFrame(read_lines(lines)[0])
    elif table.is_file():
        frame = _read_table(table)
    if frame.empty:
        return pd.DataFrame(columns=["t_ns", *_WORDS, *COLUMNS])
    missing = {"t_ns", *_WORDS} - set(frame.columns)
    if missing:
        raise BundleError(f"{table} is damaged: it has no {', '.join(sorted(missing))}.")
    frame = frame.reindex(columns=["t_ns", *_WORDS, *COLUMNS])
    frame["t_ns"] = frame["t_ns"].astype("int64")
    frame[list(COLUMNS)] = frame[list(COLUMNS)].astype("float64")
    return frame.sort_values("t_ns", kind="stable", ignore_index=True)


def _read_table(path: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(path)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise BundleError(f"{path} cannot be read: {error}. It is damaged.") from error
