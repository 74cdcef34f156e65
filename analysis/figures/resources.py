"""What do nodes and requests use: memory, CPU time, disk, network?

From samples of levels and of counters. Counters grow by what requests use, and by what the cluster
does of its own accord. The latter is known from idle windows, and subtracted; without one it stays
in, and a note reports it. (It cannot be fitted: with one request always in flight, requests and
time are the same column.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from wanlat.analysis.names import below, digits
from wanlat.analysis.section import Answer, Column, Figures, Note, Row, Section, Table, figures_of
from wanlat.bundle import beneath, tables
from wanlat.bundle.documents import Reclaim, Reclaims, RttSteps, Titles
from wanlat.bundle.errors import BundleError
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.read import read_document, read_table
from wanlat.bundle.run import Run, Series

IDLE, LOADED = "idle", "loaded"
NODE, FRONT, LINK = "node", "front", "link"
"""Kinds of what is sampled; a front stands before the cluster (nginx)."""
LEAST_IDLE_S = 2.0
"""Usage in idle windows that are shorter in all is not known well enough to be subtracted."""
_SHORTEST_IDLE_NS, _SOON_NS = 500_000_000, 100_000_000
_SAMPLING = ("every_s", "cost_cpu_share", "late_p99_ms", "stretched", "failed")
_SUBJECT = ["kind", "subject"]
_LEVELS = {
    "rss_bytes_median": ("rss_bytes", "median"),
    "rss_bytes_max": ("rss_bytes", "max"),
    "threads": ("threads", "max"),
    "open_files": ("open_files", "max"),
}
_RATES = {
    "cpu_ns": "cpu_share",
    "read_bytes": "read_bytes_per_s",
    "written_bytes": "written_bytes_per_s",
    "rx_bytes": "rx_bytes_per_s",
    "tx_bytes": "tx_bytes_per_s",
    "rx_packets": "rx_packets_per_s",
    "tx_packets": "tx_packets_per_s",
}
"""Counters, and what they grow by in a second is called."""

Span = tuple[int, int]
"""A stretch of a run, on the samples' clock, ns."""


def resources(bundle: Run) -> Figures | None:
    """What each system of `bundle` used; None where nothing was sampled.

    `nodes` has an entry for each node and front: usage while `idle` and while `loaded` (None: it
    never was), and the space of its directory at the end. `per_request` is a mean over all requests
    while loaded, whatever their endpoint; None of drills, with nodes that were broken.
    """
    return figures_of((row, None) for row in _systems(bundle))


def _systems(bundle: Run) -> Iterator[Row]:
    sampling, target = bundle.manifest.resources, bundle.manifest.target
    sampled = read_rows(bundle)
    if sampled.empty:
        return  # of a study of millions of requests they are not even read
    requests = _requests(bundle)
    for name, rows in sampled.groupby("system", sort=False):
        system, own = str(name), requests[requests["system"] == name]
        series = next((s for s in bundle.systems if s.system == system), Series(system, ""))
        windows, times = _windows(bundle, system, rows, own), rows["t_ns"].unique()
        spans = {window: _sampled(windows[window], times) for window in windows}
        used = {window: _usage(rows, windows[window], spans[window]) for window in windows}
        is_idle_known = _seconds(spans[IDLE]) >= LEAST_IDLE_S
        grown = used[LOADED] - used[IDLE].fillna(0.0) if is_idle_known else used[LOADED]
        served = own[_within(own["begin_ns"], spans[LOADED])]
        # Of a load that was killed only the probe's own requests are known.
        is_cut = bundle.is_load and not beneath.is_file(bundle.directory / "load.parquet")
        is_counted = len(served) and not bundle.is_drill and not is_cut
        subjects = rows[rows["kind"] != LINK].groupby(_SUBJECT, sort=False)
        nodes = [_node(subject, used) for _, subject in subjects]
        spaces = [node["space_bytes"] for node in nodes if node["space_bytes"] is not None]
        yield {
            **series._asdict(),
            "nodes": nodes,
            "space_bytes": sum(spaces) if spaces else None,
            "node_rss_bytes": {
                window: _number(used[window].loc[NODE, "rss_bytes_median"].mean())
                for window in used
            },
            "busiest_node_over_mean": _number(_busiest(used[LOADED].loc[NODE, "cpu_share"])),
            "idle_usage_subtracted": is_idle_known,
            "per_request": _each(grown * _seconds(spans[LOADED]), served) if is_counted else None,
            "sampling": {key: getattr(sampling, key, None) for key in _SAMPLING},
            "target": target.node if target else None,
        }


def read_rows(bundle: Run) -> pd.DataFrame:
    """Every sample of nodes, fronts and links in order of time; empty where nothing was sampled.

    Figures are floats, NaN where there is none. Raises BundleError for a file that is damaged.
    """
    words = ["system", *_SUBJECT]
    types = {name: "float64" for name in tables.RESOURCES.names if name not in words} | {
        "t_ns": "int64"
    }
    table = read_table(bundle.directory, "resources")
    if table is None or table[0].empty:
        return pd.DataFrame(columns=tables.RESOURCES.names)
    frame, path, _ = table
    if missing := {"t_ns", *words} - set(frame.columns):
        raise BundleError(
            f"{path} is damaged: it has no {', '.join(sorted(missing))}. Run the study again."
        )
    frame = frame[frame["kind"].isin((NODE, FRONT, LINK))]
    frame = frame.reindex(columns=tables.RESOURCES.names).astype(types)
    return frame.sort_values("t_ns", kind="stable", ignore_index=True)


def reclaim_of(bundle: Run, system: str) -> Reclaim | None:
    """How, by the bundle, space of a system was reclaimed. Raises BundleError."""
    document = read_document(bundle.directory, Reclaims)
    entries = document.systems if document is not None else ()
    return next((entry for entry in entries if entry.system == system), None)


def _requests(bundle: Run) -> pd.DataFrame:
    """Every request that counts, one row each; of a run under load those of the load.

    Columns: system, is_ok, object_bytes, begin_ns, end_ns. Warm-up requests use as much as measured
    ones, so they are in it; preparing is not.
    """
    samples = bundle.samples
    is_counted = samples["phase"] == "loaded" if bundle.is_load else samples["phase"] != "prepare"
    parts = [samples[is_counted & samples["start_ns"].notna()]]
    if (load := read_table(bundle.directory, "load")) is not None:
        parts.append(load[0].assign(total_ns=load[0]["elapsed_ns"]))
    frames = []
    for part in parts:
        begin_ns = part["start_ns"].astype("int64")
        taken_ns = part["total_ns"].fillna(part["elapsed_ns"]).fillna(0).astype("int64")
        columns = {
            "system": part["system"].astype(str),
            "is_ok": part["outcome"] == "ok",
            "object_bytes": part["object_bytes"].fillna(0).astype("int64"),
            "begin_ns": begin_ns,
            "end_ns": begin_ns + taken_ns,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _windows(
    bundle: Run, system: str, rows: pd.DataFrame, requests: pd.DataFrame
) -> dict[str, list[Span]]:
    """When it was IDLE, and when LOADED and soon after: of each time begin and end.

    In a study of round trips a system is loaded RTT step by RTT step, and idle before each; in one
    of reclaimed space loaded while it was filled and while it removed; else from its first request
    that counts to the last one's end. Before its load it is idle.
    """
    first_ns = rows["t_ns"].min()
    table = read_table(bundle.directory, "events")
    events = table[0] if table is not None else pd.DataFrame(columns=["kind", "subject", "t_ns"])
    loaded_ns = events.loc[(events["kind"] == LOADED) & (events["subject"] == system), "t_ns"]
    is_long = len(loaded_ns) and loaded_ns.iloc[0] - first_ns >= _SHORTEST_IDLE_NS
    idle: list[Any] = [(first_ns, loaded_ns.iloc[0])] if is_long else []
    loaded: list[Any] = [(requests["begin_ns"].min(), requests["end_ns"].max())]
    steps = read_document(bundle.directory, RttSteps)
    if steps is not None:
        own = [step for step in steps.rtt_steps if step.system == system]
        idle += [step.idle_ns for step in own]
        loaded = [(step.begun_ns, step.ended_ns) for step in own]
    elif (reclaimed := reclaim_of(bundle, system)) is not None:
        loaded = [reclaimed.filled_ns, reclaimed.removed_ns]
    return {
        window: [(span[0], span[1] + soon_ns) for span in spans if span and None not in span]
        for window, spans, soon_ns in ((IDLE, idle, 0), (LOADED, loaded, _SOON_NS))
    }


def _sampled(windows: Sequence[Span], times: Any) -> list[Span]:
    """Each window from the first sample in it to the last one.

    Between two samples it is not known when a counter grew. A study samples right after its first
    request and right after its last one. None where samples lie too far apart to know.
    """
    sampled = []
    for begin_ns, end_ns in windows:
        inside = times[(times >= begin_ns) & (times <= end_ns)]
        if inside.size > 1 and np.ptp(inside) >= (end_ns - _SOON_NS - begin_ns) / 2:
            sampled.append((int(inside[0]), int(inside[-1])))
    return sampled


def _seconds(spans: Sequence[Span]) -> float:
    return sum(end_ns - begin_ns for begin_ns, end_ns in spans) / 1e9


def _within(t_ns: pd.Series[int], spans: Sequence[Span]) -> Any:
    inside = [t_ns.between(*span).to_numpy() for span in spans]
    return np.logical_or.reduce([np.zeros(len(t_ns), bool), *inside])


def _usage(rows: pd.DataFrame, windows: Sequence[Span], spans: Sequence[Span]) -> Any:
    """Usage in these windows: a row for each kind and subject, NaN for what is not known.

    Levels, and what counters grow by in a second in `spans`: between two samples linearly.
    """
    counters: Any = rows.groupby(["t_ns", *_SUBJECT])[list(_RATES)].last().unstack(_SUBJECT)
    counters = counters.interpolate("index", limit_direction="both")
    begins, ends = (counters.loc[[span[end] for span in spans]].to_numpy() for end in (0, 1))
    grown = pd.Series((ends - begins).sum(axis=0), index=counters.columns) / (
        _seconds(spans) or np.nan
    )
    rates: Any = grown.unstack(0)[list(_RATES)].rename(columns=_RATES)
    levels = rows[_within(rows["t_ns"], windows)].groupby(_SUBJECT).agg(**_LEVELS)
    return levels.reindex(rates.index).join(rates.assign(cpu_share=rates["cpu_share"] / 1e9))


def _node(rows: pd.DataFrame, used: dict[str, Any]) -> dict[str, Any]:
    """The entry of a node or front; bytes, shares of one core, and such things a second."""
    kind, name = rows[_SUBJECT].iloc[0]
    space = rows[rows["space_bytes"].notna()].tail(1)
    entry = {"kind": kind, "name": name}
    for window, usage in used.items():
        own = usage.loc[(kind, name)].to_dict()
        figures = {key: _number(own[key], whole=key in _LEVELS) for key in own}
        entry[window] = figures if any(figure is not None for figure in figures.values()) else None
    return entry | {key: _number(space[key].max(), whole=True) for key in ("space_bytes", "files")}


def _busiest(shares: Any) -> float:
    """The CPU time of the node that used most, over the mean of all; NaN where none is known."""
    return float(shares.max() / shares.mean()) if shares.mean() > 0 else np.nan


def _each(grown: Any, requests: pd.DataFrame) -> Row:
    """What counters `grown` by these `requests` make of each of them."""
    kinds = (grown / len(requests)).groupby("kind").sum(min_count=1).clip(lower=0)
    kinds = kinds.reindex([NODE, FRONT, LINK])
    object_bytes, wan_bytes = requests["object_bytes"].mean(), kinds["tx_bytes_per_s"][LINK]
    return {
        "requests": len(requests),
        "object_bytes": round(object_bytes),
        "wan_bytes": _number(wan_bytes),
        "sent_bytes": _number(kinds["tx_bytes_per_s"][NODE]),
        "cpu_ms": _number(kinds["cpu_share"][[NODE, FRONT]].sum(min_count=1) * 1e3),
        "wan_over_object_bytes": _number(wan_bytes / object_bytes) if object_bytes else None,
    }


def _number(value: float, *, whole: bool = False) -> float | int | None:
    """`value` with six digits, or `whole`; None for NaN."""
    if np.isnan(value):
        return None
    return round(value) if whole else float(f"{value:.6g}")


KIB, MIB = 2**10, 2**20


def number(value: float | None, unit: float = 1) -> str:
    """`value` in units of `unit` with three digits; a dash for None."""
    return digits(None if value is None else value / unit, 3)


def _sampling_of(rows: Sequence[Row]) -> Mapping[str, Any]:
    """How samples were taken, by the manifest; of a matrix where that cost most."""
    samplings: list[Mapping[str, Any]] = [row["sampling"] for row in rows]
    return max(samplings, key=lambda sampling: sampling["cost_cpu_share"] or 0.0)


def _sampling_note(rows: Sequence[Row], _titles: Titles) -> str | None:
    """How often samples were taken, and what that cost."""
    sampling = _sampling_of(rows)
    sentences = [
        f"{sampling[key].rstrip('.')}." for key in ("failed", "stretched") if sampling[key]
    ]
    if sampling["every_s"]:
        percent = 100 * (sampling["cost_cpu_share"] or 0.0)
        sentences.append(
            f"Sampled every {sampling['every_s']:g} s, at {percent:.2f} % of one core."
        )
    return " ".join(sentences) or None


def _nodes(figures: Figures) -> Figures | None:
    """A row for each node and front of each system."""
    return figures_of(
        ({"system": row["system"], "version": row["version"], **node}, None)
        for row in figures.rows
        for node in row["nodes"]
    )


def _of(header: str, key: str, unit: float = 1) -> Column:
    return Column(header, lambda row: number(below(row, key), unit))


_NODES = Table(
    "Resource usage per node",
    _nodes,
    (
        Column("node", lambda row: row["name"] + ", front" * (row["kind"] == FRONT), words=True),
        _of("idle MiB", "idle.rss_bytes_median", MIB),
        _of("loaded MiB", "loaded.rss_bytes_median", MIB),
        _of("max MiB", "loaded.rss_bytes_max", MIB),
        _of("idle CPU %", "idle.cpu_share", 0.01),
        _of("loaded CPU %", "loaded.cpu_share", 0.01),
        _of("disk MiB", "space_bytes", MIB),
        _of("read KiB/s", "loaded.read_bytes_per_s", KIB),
        _of("written KiB/s", "loaded.written_bytes_per_s", KIB),
        _of("in KiB/s", "loaded.rx_bytes_per_s", KIB),
        _of("out KiB/s", "loaded.tx_bytes_per_s", KIB),
    ),
    (
        Note(
            "CPU: of one core. Disk: what a node's directory takes at the end; all else while "
            "loaded, as disks and the node's interface saw it."
        ),
    ),
    group=lambda row: row["system"],
)

RESOURCES = Section(
    key="resources",
    title="Resource usage per request",
    figures=resources,
    columns=(
        _of("idle MiB", "node_rss_bytes.idle", MIB),
        _of("loaded MiB", "node_rss_bytes.loaded", MIB),
        Column("requests", "{per_request[requests]}"),
        _of("WAN KiB", "per_request.wan_bytes", KIB),
        _of("WAN / object", "per_request.wan_over_object_bytes"),
        _of("sent KiB", "per_request.sent_bytes", KIB),
        _of("CPU ms", "per_request.cpu_ms"),
    ),
    definitions={
        "idle": "after the cluster was ready and before the first request; in a study of round "
        "trips also before each RTT step",
        "loaded": "from the first request that counts to the last one's end, warm-up included; "
        "under load, the load",
        "rss_bytes": "resident memory of all processes of a node, shared pages counted in each",
        "cpu_share": "of one core",
        "busiest_node_over_mean": "CPU time of the node that used most, over the nodes' mean",
        "per_request": "growth of counters while loaded, less as long an idle time's, over all "
        "requests, whatever their endpoint",
        "space_bytes": "what the directories of nodes take at the end; of a system, of all of them",
        "wan_bytes": "on all WAN links, both directions, with headers, as the kernel counts them",
    },
    notes=(
        Note(
            "Memory: resident, of a node, median of samples, mean over nodes. The rest: mean over "
            "all requests, whatever their endpoint. WAN: on all links between sites, both "
            "directions, with headers. Sent: by all nodes, whoever to. CPU: of all nodes."
        ),
        Note(
            "Includes what the cluster uses when idle, where no idle window of at least 2 s was "
            "sampled (`resources: {{idle: 10s}}`): {rows}.",
            lambda row: not row["idle_usage_subtracted"],
        ),
        Note(_sampling_note),
    ),
    beside=lambda figures: _sampling_of(figures.rows),
    hidden=frozenset(("sampling", "target")),
    tables=(_NODES,),
)

_MATRIX = replace(
    RESOURCES,
    rows="points",
    hidden=RESOURCES.hidden | {"nodes"},
    charts="wanlat.analysis.charts.resources:charts_of_matrix",
    tables=(),
)
"""Of a matrix nodes have a mean; their own figures are in the points' summaries."""


def resources_of(source: Run | Matrix) -> Answer | None:
    """The section of a run, or of a matrix."""
    return (RESOURCES if source.manifest.kind != "matrix" else _MATRIX).answer(source)
