"""What one subject used in some windows: from cumulative counters and from instants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wanlat.analysis.resources.model import Use, Window

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

_LEAST_TICKS = 5
"""Of fewer seconds no greatest one is told."""


def use_of(rows: pd.DataFrame, windows: Sequence[Window]) -> Use | None:
    """What the subject of `rows`, in order of time, used in `windows`; None where it has no row."""
    if rows.empty or not windows:
        return None
    seconds = sum(window.seconds for window in windows)
    peak, peak_per_s = _peak(rows, windows)
    memory = _within(rows, windows, "rss_bytes")
    return Use(
        seconds=seconds,
        rss_median=_median(memory),
        rss_max=float(memory.max()) if memory.size else None,
        cpu_share=_share(growth(rows, windows, "cpu_ns"), seconds * 1e9),
        threads=_greatest(_within(rows, windows, "threads")),
        open_files=_greatest(_within(rows, windows, "open_files")),
        read_per_s=_share(growth(rows, windows, "read_bytes"), seconds),
        written_per_s=_share(growth(rows, windows, "written_bytes"), seconds),
        rx_per_s=_share(growth(rows, windows, "rx_bytes"), seconds),
        tx_per_s=_share(growth(rows, windows, "tx_bytes"), seconds),
        rx_packets_per_s=_share(growth(rows, windows, "rx_packets"), seconds),
        tx_packets_per_s=_share(growth(rows, windows, "tx_packets"), seconds),
        peak_network=peak,
        peak_network_per_s=peak_per_s,
    )


def growth(rows: pd.DataFrame, windows: Sequence[Window], column: str) -> float | None:
    """By how much a counter grew in `windows`, between looks linearly; None where it is unknown."""
    import numpy as np

    known = rows[rows[column].notna()]
    if known.empty:
        return None
    t, value = known["t_ns"].to_numpy("float64"), known[column].to_numpy("float64")
    ends = [(w.begin_ns, w.end_ns) for w in windows]
    return float(sum(np.interp(end, t, value) - np.interp(begin, t, value) for begin, end in ends))


def space_at_end(rows: pd.DataFrame) -> tuple[int | None, int | None]:
    """Disk space, and files, when they were last looked at."""
    known = rows[rows["space_bytes"].notna()]
    if known.empty:
        return None, None
    last = known.iloc[-1]
    return int(last["space_bytes"]), int(last["files"])


def _within(rows: pd.DataFrame, windows: Sequence[Window], column: str) -> Values:
    """What was seen in the windows; where no look fell into one, the look before its end."""
    import numpy as np

    known = rows[rows[column].notna()]
    t = known["t_ns"].to_numpy("int64")
    values = known[column].to_numpy("float64")
    inside = np.zeros(t.size, dtype=bool)
    for window in windows:
        seen = (t >= window.begin_ns) & (t <= window.end_ns)
        before = int(np.searchsorted(t, window.end_ns, side="right")) - 1
        if not seen.any() and before >= 0:
            seen[before] = True
        inside |= seen
    return values[inside]


def _peak(rows: pd.DataFrame, windows: Sequence[Window]) -> tuple[float | None, float | None]:
    """The greatest traffic between two looks over the mean of all, and itself a second."""
    import numpy as np

    known = rows[rows["rx_bytes"].notna() & rows["tx_bytes"].notna()]
    t = known["t_ns"].to_numpy("float64") / 1e9
    total = (known["rx_bytes"] + known["tx_bytes"]).to_numpy("float64")
    if t.size < 2:
        return None, None
    begin, end = t[:-1], t[1:]
    inside = np.zeros(begin.size, dtype=bool)
    for window in windows:
        inside |= (begin >= window.begin_ns / 1e9 - 0.01) & (end <= window.end_ns / 1e9 + 0.01)
    # Looks between two stages lie closer together than others, and would make peaks of nothing.
    inside &= (end - begin) >= 0.5 * np.median(end - begin)
    if inside.sum() < _LEAST_TICKS:
        return None, None
    per_s = (total[1:] - total[:-1])[inside] / (end - begin)[inside]
    mean = float(per_s.mean())
    return (float(per_s.max()) / mean if mean > 0 else None), float(per_s.max())


def _share(value: float | None, of: float) -> float | None:
    return None if value is None or of <= 0 else value / of


def _median(values: Values) -> float | None:
    import numpy as np

    return float(np.median(values)) if values.size else None


def _greatest(values: Values) -> int | None:
    return int(values.max()) if values.size else None
