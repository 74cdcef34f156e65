"""What do nodes and requests use: memory, CPU time, disk, network?

From samples of instants and of counters. Counters grow by what requests use, and by what the
cluster does of its own accord. The latter is known from idle windows, and subtracted; without one
it stays in, and that is said. (It cannot be fitted: with one request always in flight, requests and
time are the same column.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Series
from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.figures.drill.events import Event, read_events
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.bundle.documents import Prefills, Reclaims
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document, read_table

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle

IDLE, LOADED = "idle", "loaded"
NODE, FRONT, LINK = "node", "front", "link"
"""Kinds of what is sampled; a front stands before the cluster (nginx)."""
LEAST_IDLE_S = 2.0
"""Usage in idle windows that are shorter in all is not known well enough to be subtracted."""
_SHORTEST_IDLE_NS = 500_000_000
_SOON_NS = 100_000_000
_MOSTLY = 0.5
_SAMPLING = ("every_s", "cost_cpu_share", "late_p99_ms", "stretched", "failed")
_WORDS = ("system", "kind", "subject")
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
"""Of a node while idle, or loaded: the column, and what of its values."""

Span = tuple[int, int]
"""A stretch of a run, on the samples' clock, ns."""


@dataclass(frozen=True)
class Sampled:
    """What a chart draws of a system: samples in order of time, requests, when it was idle."""

    rows: pd.DataFrame
    requests: pd.DataFrame
    idle: Sequence[Span]


def resources(bundle: Bundle) -> Figures | None:
    """What each system of `bundle` used; None where nothing was sampled. Arrays: `Sampled`.

    `nodes` has an entry for each node and front: usage while `idle` and while `loaded` (None: it
    never was), and the space of its directory at the end. `per_request` is a mean over all requests
    while loaded, whatever their endpoint; `stored` what stored bytes take. Either is None where it
    is not known.
    """
    return figures_of(_systems(bundle))


def _systems(bundle: Bundle) -> Iterator[tuple[Row, Sampled]]:
    rows = read_rows(bundle.directory)
    if rows.empty:
        return
    requests, events = requests_of(bundle), read_events(bundle.directory)
    said = bundle.manifest.get("resources")
    target = bundle.manifest.get("target")
    sampling = {key: said.get(key) if isinstance(said, Mapping) else None for key in _SAMPLING}
    for name, own in rows.groupby("system", sort=False):
        system, its = str(name), requests[requests["system"] == name]
        mine = [event for event in events if event.subject == system]
        spans = _spans(bundle, system, own, its, mine)
        nodes = [
            _used(kind, subject, of_one, spans) for (kind, subject), of_one in _by_subject(own)
        ]
        # What requests use while nodes are broken says nothing of requests; and of a load that was
        # killed only the probe's requests are known.
        is_known = not bundle.is_drill and (
            not bundle.is_load or (bundle.directory / "load.parquet").is_file()
        )
        series = next((s for s in bundle.systems if s.system == system), Series(system, ""))
        windows = sorted((span, kind) for kind in spans for span in spans[kind])
        origin_ns = int(rows["t_ns"].iloc[0])
        row = {
            **series._asdict(),
            "windows": [
                {
                    "kind": kind,
                    "begin_s": round((begin_ns - origin_ns) / 1e9, 3),
                    "end_s": round((end_ns - origin_ns) / 1e9, 3),
                }
                for (begin_ns, end_ns), kind in windows
            ],
            "nodes": nodes,
            "node_rss_bytes": {window: _memory(nodes, window) for window in (IDLE, LOADED)},
            "idle_usage_subtracted": _is_idle_known(spans),
            "per_request": _per_request(its, own, spans) if is_known else None,
            "stored": _stored(bundle, system, own, its, mine),
            "sampling": sampling,
            "target": target.get("node") if isinstance(target, Mapping) else None,
        }
        yield row, Sampled(own, its, spans[IDLE])


# -- what a bundle has -------------------------------------------------------------------------


def read_rows(directory: Path) -> pd.DataFrame:
    """Every row of nodes, fronts and links in order of time; empty where nothing was sampled.

    Figures are floats, NaN where there is none. Raises BundleError for a file that is damaged.
    """
    import pandas as pd

    from wanlat.bundle.tables import RESOURCES

    figures = [name for name in RESOURCES.names if name not in ("t_ns", *_WORDS)]
    found = read_table(directory, "resources")
    if found is None or found[0].empty:
        return pd.DataFrame(columns=["t_ns", *_WORDS, *figures])
    frame, path, _ = found
    missing = {"t_ns", *_WORDS} - set(frame.columns)
    if missing:
        raise BundleError(f"{path} is damaged: it has no {', '.join(sorted(missing))}.")
    kinds = frame["kind"].isin((NODE, FRONT, LINK))
    frame = frame[kinds].reindex(columns=["t_ns", *_WORDS, *figures])
    types = {"t_ns": "int64", **dict.fromkeys(figures, "float64")}
    return frame.astype(types).sort_values("t_ns", kind="stable", ignore_index=True)


def requests_of(bundle: Bundle) -> pd.DataFrame:
    """Every request that counts, one row each; of a run under load those of the load.

    Columns: system, is_ok, object_bytes, begin_ns, end_ns. Warm-up requests use as much as measured
    ones, so they are in it; preparing is not.
    """
    import pandas as pd

    samples = bundle.samples
    counted = samples[(samples["phase"] != "prepare") & samples["start_ns"].notna()]
    if bundle.is_load:
        counted = counted[counted["phase"] == "loaded"]
    parts = [(counted, counted["total_ns"].fillna(counted["elapsed_ns"]))]
    if (load := read_table(bundle.directory, "load")) is not None:
        parts.append((load[0], load[0]["elapsed_ns"]))
    found = []
    for part, taken_ns in parts:
        begin_ns = part["start_ns"].astype("int64")
        columns = {
            "system": part["system"],
            "is_ok": part["outcome"] == "ok",
            "object_bytes": part["object_bytes"].fillna(0).astype("int64"),
            "begin_ns": begin_ns,
            "end_ns": begin_ns + taken_ns.fillna(0).astype("int64"),
        }
        found.append(pd.DataFrame(columns))
    return pd.concat(found, ignore_index=True)


def reclaim_entry(directory: Path, system: str) -> Mapping[str, Any] | None:
    """What reclaim.json says of `system`. Raises BundleError where it is damaged."""
    return _entry(read_document(directory, Reclaims), system)


def _entry(found: Prefills | Reclaims | None, system: str) -> Mapping[str, Any] | None:
    entries = found.systems if found is not None else ()
    return next((each.model_dump() for each in entries if each.system == system), None)


# -- when a system was idle, and when it was loaded ----------------------------------------------


def _spans(
    bundle: Bundle, system: str, rows: pd.DataFrame, requests: pd.DataFrame, events: Sequence[Event]
) -> Mapping[str, list[Span]]:
    """IDLE and LOADED, in order of time, as far as there are `rows` of resources.

    In a study of round trips a system is loaded RTT step by RTT step, and idle before each; in one
    of reclaimed space loaded while it was filled and while it removed; else from its first request
    that counts to the last one's end. Before its load it is idle.
    """
    times = sorted(set(rows["t_ns"]))
    first_ns = next((event.t_ns for event in events if event.kind == "loaded"), times[0])
    idle = [(times[0], first_ns)] if first_ns - times[0] >= _SHORTEST_IDLE_NS else []
    loaded = _of_steps(events, "warmup", "end")
    if not loaded and (entry := reclaim_entry(bundle.directory, system)) is not None:
        spans = (entry.get("filled_ns"), entry.get("removed_ns"))
        loaded = [(int(span[0]), int(span[1])) for span in spans if span]
    elif not loaded and not requests.empty:
        loaded = [(int(requests["begin_ns"].min()), int(requests["end_ns"].max()))]
    found = {IDLE: [*idle, *_of_steps(events, IDLE, "calibrate")], LOADED: loaded}
    snapped = {kind: [_snapped(span, times, kind) for span in found[kind]] for kind in found}
    return {
        kind: sorted(span for span in snapped[kind] if span is not None and span[1] > span[0])
        for kind in snapped
    }


def _snapped(span: Span, times: Sequence[int], kind: str) -> Span | None:
    """From the first sample in a span to the last one in it, or soon after it.

    Between two samples nobody knows when a counter grew. A study samples right after its first
    request and right after its last one. Where samples are too far apart, a loaded span is cut to
    where there are any; but of an idle one nothing is known then (None): what came after was more.
    """
    begin, end = bisect_left(times, span[0]), bisect_right(times, span[1] + _SOON_NS) - 1
    if begin < end and times[end] - times[begin] >= (span[1] - span[0]) * _MOSTLY:
        return times[begin], times[end]
    return (max(span[0], times[0]), min(span[1], times[-1])) if kind == LOADED else None


def _of_steps(events: Sequence[Event], first: str, last: str) -> list[Span]:
    """From one stage of an RTT step to another, of every step that came so far."""
    found: list[Span] = []
    begun_ns: int | None = None
    for event in events:
        what = event.facts.get("what") if event.kind == "rtt step" else None
        if what == first:
            begun_ns = event.t_ns
        elif what == last and begun_ns is not None:
            found.append((begun_ns, event.t_ns))
            begun_ns = None
    return found


def _seconds(spans: Sequence[Span]) -> float:
    return sum((end_ns - begin_ns) / 1e9 for begin_ns, end_ns in spans)


def _is_idle_known(spans: Mapping[str, list[Span]]) -> bool:
    """Whether it was idle for long enough to know what it uses of its own accord."""
    return _seconds(spans[IDLE]) >= LEAST_IDLE_S


# -- what nodes and requests use -----------------------------------------------------------------


def _by_subject(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Rows of each node and front, with its kind and name, in the order of the samples."""
    for (kind, subject), own in rows[rows["kind"] != LINK].groupby(["kind", "subject"], sort=False):
        yield (str(kind), str(subject)), own


def _used(kind: str, name: str, rows: pd.DataFrame, spans: Mapping[str, list[Span]]) -> Row:
    """The entry of a node; bytes, shares of one core, and such things a second."""
    used: dict[str, Any] = {"kind": kind, "name": name}
    for window in (IDLE, LOADED):
        figures = {
            figure: _figure(rows, spans[window], column, how)
            for figure, (column, how) in _FIGURES.items()
        }
        is_known = any(value is not None for value in figures.values())
        used[window] = figures if is_known else None
    space = rows.dropna(subset=["space_bytes"]).tail(1)
    for column in ("space_bytes", "files"):
        used[column] = _number(float(space[column].sum(min_count=1)), whole=True)
    return used


def _figure(rows: pd.DataFrame, spans: Sequence[Span], column: str, how: str) -> float | int | None:
    if not spans:
        return None
    if how == _RATE:
        unit = 1e9 if column.endswith("_ns") else 1.0
        return _number(_growth(rows, spans, column) / unit / _seconds(spans))
    known = rows.dropna(subset=[column])
    t_ns = known["t_ns"].to_numpy("int64")
    seen: set[int] = set()
    for begin_ns, end_ns in spans:
        inside = range(bisect_left(t_ns, begin_ns), bisect_right(t_ns, end_ns))
        # Where no sample fell into it, the one before its end.
        seen |= set(inside) or ({inside.stop - 1} if inside.stop else set())
    return _number(float(known[column].iloc[sorted(seen)].agg(how)), whole=True)


def _memory(nodes: Sequence[Row], window: str) -> float | int | None:
    """Median resident memory of a node: the mean over nodes, bytes."""
    known = [each[window] for each in nodes if each["kind"] == NODE and each[window] is not None]
    rss = [used["rss_bytes_median"] for used in known if used["rss_bytes_median"] is not None]
    return _number(sum(rss) / len(rss)) if rss else None


def _per_request(
    requests: pd.DataFrame, rows: pd.DataFrame, spans: Mapping[str, list[Span]]
) -> Row | None:
    """Growth of counters while loaded, less that of as long an idle time, over the requests."""
    begin_ns = requests["begin_ns"]
    inside = sum(((begin_ns >= b - 1) & (begin_ns < e) for b, e in spans[LOADED]), begin_ns < 0) > 0
    count = int(inside.sum())
    if not count:
        return None

    def mean(kinds: Collection[str], column: str) -> float:
        grown = _total_growth(rows, kinds, spans[LOADED], column)
        if _is_idle_known(spans):
            idle_grown = _total_growth(rows, kinds, spans[IDLE], column)
            idle_per_s = (0.0 if isnan(idle_grown) else idle_grown) / _seconds(spans[IDLE])
            grown -= idle_per_s * _seconds(spans[LOADED])
        return grown if isnan(grown) else max(0.0, grown / count)

    object_bytes = float(requests["object_bytes"][inside].mean())
    wan_bytes = mean((LINK,), "tx_bytes")
    return {
        "requests": count,
        "object_bytes": round(object_bytes),
        "wan_bytes": _number(wan_bytes),
        "sent_bytes": _number(mean((NODE,), "tx_bytes")),
        "cpu_ms": _number(mean((NODE, FRONT), "cpu_ns") / 1e6),
        "wan_over_object_bytes": _number(wan_bytes / object_bytes if object_bytes > 0 else nan),
    }


def _total_growth(
    rows: pd.DataFrame, kinds: Collection[str], spans: Sequence[Span], column: str
) -> float:
    """By how much the counters of all subjects of `kinds` grew; NaN where none is known."""
    subjects = rows[rows["kind"].isin(kinds)].groupby(["kind", "subject"], sort=False)
    grown = [_growth(own, spans, column) for _, own in subjects]
    known = [each for each in grown if not isnan(each)]
    return sum(known) if known else nan


def _growth(rows: pd.DataFrame, spans: Sequence[Span], column: str) -> float:
    """By how much a counter grew, between samples linearly; NaN where unknown."""
    import numpy as np

    known = rows.dropna(subset=[column])
    if known.empty:
        return nan
    t, value = known["t_ns"].to_numpy("float64"), known[column].to_numpy("float64")
    return float(sum(np.interp(end, t, value) - np.interp(begin, t, value) for begin, end in spans))


# -- what stored bytes take ----------------------------------------------------------------------


def _stored(
    bundle: Bundle, system: str, rows: pd.DataFrame, requests: pd.DataFrame, events: Sequence[Event]
) -> Row | None:
    """Disk usage of what was stored; None where that is not known, or nothing was.

    Over a prefill where there is one: from before it to after it nothing else was written. Else
    over the whole run, if every write and removal in it was acknowledged. `disk_bytes` is what the
    directories of all nodes grew by; `stated_copies` what the system's options say that a byte must
    take, as a number and in words (`scheme`): 3 of three replicas, 1.5 of 4 + 2 erasure coding.
    """
    found = _filled(bundle, system, rows, events)
    said = bundle.manifest.get("resources")
    entry = said.get("systems", {}).get(system, {}) if isinstance(said, Mapping) else {}
    if found is None and entry.get("stored_is_known") and (requests.empty or not bundle.is_load):
        counted = [int(entry[key]) for key in ("stored_objects", "stored_bytes", "put_bytes")]
        span = (int(rows["t_ns"].iloc[0]), int(rows["t_ns"].iloc[-1]))
        found = (counted[0], counted[1], counted[2], span)
    if found is None or found[1] <= 0:
        return None
    objects, stored_bytes, put_bytes, span = found
    grown = _grown(rows, span)
    if grown is None:
        return None
    written = _total_growth(rows, (NODE,), (span,), "written_bytes")
    copies, scheme = _scheme(bundle, system)
    return {
        "objects": objects,
        "stored_bytes": stored_bytes,
        "disk_bytes": grown,
        "disk_bytes_per_stored_byte": _number(grown / stored_bytes),
        "written_bytes_per_put_byte": _number(
            written / put_bytes if written > 0 and put_bytes > 0 else nan
        ),
        "stated_copies": None if copies is None else _number(copies),
        "scheme": scheme,
    }


def _filled(
    bundle: Bundle, system: str, rows: pd.DataFrame, events: Sequence[Event]
) -> tuple[int, int, int, Span] | None:
    """Objects, stored bytes, put bytes, and from when to when, of what was filled beforehand."""
    reclaimed = reclaim_entry(bundle.directory, system)
    if reclaimed is not None and reclaimed.get("settled_ns"):
        objects = int(reclaimed["objects"])
        stored = objects * int(reclaimed["object_bytes"])
        return (
            objects,
            stored,
            stored,
            (int(reclaimed["filled_ns"][0]), int(reclaimed["settled_ns"])),
        )
    filled = _entry(read_document(bundle.directory, Prefills), system)
    prefills = [
        (event.facts.get("what"), event.t_ns) for event in events if event.kind == "prefill"
    ]
    instants = dict(prefills)
    if filled is None or not {"begins", "ends"} <= instants.keys():
        return None
    nodes = rows[(rows["kind"] == NODE) & rows["space_bytes"].notna()]
    # Scanning a directory takes time: a scan that was begun before the end may have missed what was
    # written since. (Bundles without that column have only when it was over.)
    begun_ns = nodes["space_began_ns"].fillna(nodes["t_ns"])
    after_ns = nodes[begun_ns >= instants["ends"]].groupby("subject")["t_ns"].min()
    if len(after_ns) < nodes["subject"].nunique():
        return None
    objects = int(filled["objects"]) * max(1, len(filled.get("buckets") or ()))
    stored = objects * int(filled["object_bytes"])
    return objects, stored, stored, (instants["begins"], int(after_ns.max()))


def _grown(rows: pd.DataFrame, span: Span) -> int | None:
    """By how much the directories of all nodes grew; None where one was not scanned."""
    total = 0.0
    for _, own in rows[rows["kind"] == NODE].groupby("subject"):
        known = own[own["space_bytes"].notna()]
        before, after = (known[known["t_ns"] <= at_ns]["space_bytes"] for at_ns in span)
        if before.empty or after.empty:
            return None
        total += after.iloc[-1] - before.iloc[-1]
    return round(total)


def _scheme(bundle: Bundle, system: str) -> tuple[float | None, str | None]:
    """What the options in effect say that a byte must take, as a number and in words."""
    entries = bundle.manifest.get("systems")
    listed = entries if isinstance(entries, list) else []
    own = next((e for e in listed if isinstance(e, Mapping) and e.get("name") == system), {})
    options = own.get("options")
    if not isinstance(options, Mapping):
        return None, None
    drives, parity = options.get("drives_per_set"), options.get("parity")
    if isinstance(drives, int) and isinstance(parity, int) and drives > parity:
        if drives == 1:
            return 1.0, "one drive"
        data = drives - parity
        return drives / data, f"erasure coding {data} + {parity}"
    copies = options.get("replication_factor")
    # The reference store has a replica on each node.
    if system == "quorum":
        copies = len(sites_by_node(bundle.manifest.get("topology"))) or None
    if isinstance(copies, int):
        return float(copies), "one copy" if copies == 1 else f"{copies} replicas"
    return None, None


def _number(value: float, *, whole: bool = False) -> float | int | None:
    """`value` with six digits, or `whole`; None for NaN."""
    if isnan(value):
        return None
    return round(value) if whole else float(f"{value:.6g}")
