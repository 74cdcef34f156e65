"""What nodes and requests use: from samples of counters and of instants, within windows.

Counters grow by what requests use, and by what the cluster does of its own accord. The latter is
known from idle windows, and subtracted; without one it stays in, and that is said. (It cannot be
fitted: with one request always in flight, requests and time are the same column.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from wanlat.analysis.resources.windows import IDLE, LOADED, Window, is_idle_known, of_kind, seconds

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

END = "end"
"""Beside IDLE and LOADED: when the run was over."""
_RATE = "rate"
_FIGURES = {
    "rss_bytes_median": ("rss_bytes", "median"),
    "rss_bytes_max": ("rss_bytes", "max"),
    "threads": ("threads", "max"),
    "open_files": ("open_files", "max"),
    "cpu_share": ("cpu_ns", _RATE),
    "read_bytes_per_s": ("read_bytes", _RATE),
    "written_bytes_per_s": ("written_bytes", _RATE),
    "rx_bytes_per_s": ("rx_bytes", _RATE),
    "tx_bytes_per_s": ("tx_bytes", _RATE),
    "rx_packets_per_s": ("rx_packets", _RATE),
    "tx_packets_per_s": ("tx_packets", _RATE),
}
"""Of each kind of window: the column, and what of its values."""
_AT_END = ("space_bytes", "files")
_WHOLE = (*_AT_END, "rss_bytes_median", "rss_bytes_max", "threads", "open_files")


@dataclass(frozen=True)
class PerRequest:
    """Means over all requests in the loaded windows, whatever their endpoint. NaN: not known.

    Bytes on WAN links, both directions together; bytes that the nodes sent, whoever to; CPU time of
    all nodes and of what stands before them; how many times the object's bytes crossed WAN links.
    """

    requests: int
    object_bytes: int
    wan_bytes: float
    sent_bytes: float
    cpu_ms: float
    wan_over_object_bytes: float


def usage_of(rows: pd.DataFrame, windows: Sequence[Window]) -> pd.DataFrame:
    """A row for each (kind, name) of nodes and fronts; columns are (IDLE | LOADED | END, figure).

    NaN: not known, there was no such window, or it has no such thing. `cpu_share` is of one core.
    """
    import pandas as pd

    found = {}
    for of, own in rows[rows["kind"] != "link"].groupby(["kind", "subject"], sort=False):
        figures = {
            (window, figure): _figure(own, of_kind(windows, window), *how)
            for window in (IDLE, LOADED)
            for figure, how in _FIGURES.items()
        }
        space = own.dropna(subset=["space_bytes"]).tail(1)
        at_end = {(END, figure): float(space[figure].sum(min_count=1)) for figure in _AT_END}
        found[of] = pd.Series(figures | at_end)
    return pd.DataFrame(found).T.rename_axis(["kind", "name"])


def usage_to_json(usage: pd.DataFrame) -> list[dict[str, Any]]:
    """The entries of summary.json; null for a window that there was not."""
    found: list[dict[str, Any]] = []
    for kind, name in usage.index:
        row = usage.loc[kind, name]
        entry: dict[str, Any] = {"kind": kind, "name": name}
        for window in (IDLE, LOADED):
            is_known = bool(row[window].notna().any())
            entry[window] = to_json(row[window]) if is_known else None
        found.append({**entry, **to_json(row[END])})
    return found


def per_request(
    requests: pd.DataFrame, rows: pd.DataFrame, windows: Sequence[Window]
) -> PerRequest | None:
    """Usage per request: growth of counters while loaded, less that of as long an idle time, over
    the number of requests. None where none was sent.
    """
    import numpy as np

    loaded = of_kind(windows, LOADED)
    begin_ns = requests["begin_ns"]
    inside = np.zeros(len(requests), dtype=bool)
    for window in loaded:
        inside |= ((begin_ns >= window.begin_ns - 1) & (begin_ns < window.end_ns)).to_numpy()
    count = int(inside.sum())
    if not count:
        return None

    def mean(kinds: Collection[str], column: str) -> float:
        grown = total_growth(rows, kinds, loaded, column)
        if is_idle_known(windows):
            idle = of_kind(windows, IDLE)
            idle_grown = total_growth(rows, kinds, idle, column)
            grown -= np.nan_to_num(idle_grown) / seconds(idle) * seconds(loaded)
        return float(np.maximum(0.0, grown / count))

    object_bytes = float(requests["object_bytes"][inside].mean())
    wan_bytes = mean(("link",), "tx_bytes")
    return PerRequest(
        requests=count,
        object_bytes=round(object_bytes),
        wan_bytes=wan_bytes,
        sent_bytes=mean(("node",), "tx_bytes"),
        cpu_ms=mean(("node", "front"), "cpu_ns") / 1e6,
        wan_over_object_bytes=wan_bytes / object_bytes if object_bytes > 0 else nan,
    )


def total_growth(
    rows: pd.DataFrame, kinds: Collection[str], windows: Sequence[Window], column: str
) -> float:
    """By how much the counters of all subjects of `kinds` grew in `windows`; NaN where unknown."""
    import pandas as pd

    subjects = rows[rows["kind"].isin(kinds)].groupby(["kind", "subject"], sort=False)
    grown = pd.Series([growth(own, windows, column) for _, own in subjects], dtype="float64")
    return float(grown.sum(min_count=1))


def growth(rows: pd.DataFrame, windows: Sequence[Window], column: str) -> float:
    """By how much a counter grew in `windows`, between samples linearly; NaN where unknown."""
    import numpy as np

    known = rows.dropna(subset=[column])
    if known.empty:
        return nan
    t, value = known["t_ns"].to_numpy("float64"), known[column].to_numpy("float64")
    ends = [(w.begin_ns, w.end_ns) for w in windows]
    return float(sum(np.interp(end, t, value) - np.interp(begin, t, value) for begin, end in ends))


def _figure(rows: pd.DataFrame, windows: Sequence[Window], column: str, how: str) -> float:
    if not windows:
        return nan
    if how != _RATE:
        return float(_within(rows, windows, column).agg(how))
    unit = 1e9 if column.endswith("_ns") else 1.0
    return growth(rows, windows, column) / unit / seconds(windows)


def _within(rows: pd.DataFrame, windows: Sequence[Window], column: str) -> pd.Series[float]:
    """What was seen in the windows; where no sample fell into one, the one before its end."""
    import numpy as np

    known = rows.dropna(subset=[column])
    t = known["t_ns"].to_numpy("int64")
    inside = np.zeros(t.size, dtype=bool)
    for window in windows:
        seen = (t >= window.begin_ns) & (t <= window.end_ns)
        before = int(np.searchsorted(t, window.end_ns, side="right")) - 1
        if not seen.any() and before >= 0:
            seen[before] = True
        inside |= seen
    return known[column][inside]


def to_json(figures: Mapping[str, Any] | pd.Series[float]) -> dict[str, Any]:
    """Figures for summary.json: with six digits, or whole where they are counts; null for NaN."""
    return {
        str(name): rounded(value, whole=name in _WHOLE) if isinstance(value, float) else value
        for name, value in figures.items()
    }


def rounded(value: float, *, whole: bool = False) -> float | int | None:
    """`value` with six digits, or `whole`; None for NaN."""
    if isnan(value):
        return None
    return round(value) if whole else float(f"{value:.6g}")
