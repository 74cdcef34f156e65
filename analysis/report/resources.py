"""The section of resource usage: per node, per request, per stored byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.resources import FRONT, IDLE, LOADED, NODE, resources
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.names import EN_DASH
from wanlat.analysis.report.formats import below
from wanlat.analysis.report.section import Answer, Column, Note, Section, Table

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Sweep

KIB, MIB = 2**10, 2**20
MOST_PERCENT = 1
"""Of one core: what sampling is allowed to take."""
_NODES_IN_FULL = 6


def number(value: float | None, unit: float = 1) -> str:
    """`value` in units of `unit` with about three digits; a dash for None."""
    if value is None:
        return EN_DASH
    scaled = value / unit
    if scaled == 0 or (unit == 1 and scaled == int(scaled)):
        return str(int(scaled))
    return f"{scaled:.{0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2}f}"


def sampling_of(rows: Sequence[Row]) -> Mapping[str, Any]:
    """What the manifest says of how samples were taken; of a matrix where that cost most."""
    said: list[Mapping[str, Any]] = [row["sampling"] for row in rows]
    return max(said, key=lambda each: each["cost_cpu_share"] or 0.0)


def sampling_note(rows: Sequence[Row]) -> str | None:
    """How often samples were taken, and what that cost."""
    sampling, said = sampling_of(rows), []
    cost, every_s = sampling["cost_cpu_share"], sampling["every_s"]
    if sampling["failed"]:
        said.append(f"Sampling ended early: {sampling['failed'].rstrip('.')}.")
    if cost == 0 and every_s:
        said.append(
            f"Sampled only where stages begin and end: it was over in less than {every_s:g} s."
        )
    elif cost is not None:
        every = f" every {every_s:g} s" if every_s else ""
        dear = f", more than the {MOST_PERCENT} % it may take" if 100 * cost > MOST_PERCENT else ""
        said.append(f"Sampled{every}, which took {100 * cost:.2f} % of one core{dear}.")
        if sampling["stretched"]:
            said.append(f"Less often than wanted: {sampling['stretched'].rstrip('.')}.")
    return " ".join(said) or None


def _nodes(figures: Figures) -> Figures | None:
    """A row for each node; of many, for the median of each figure and the target; then fronts."""
    return figures_of((row, None) for each in figures.rows for row in _nodes_of(each))


def _nodes_of(row: Row) -> Iterator[Row]:
    nodes = [each for each in row["nodes"] if each["kind"] == NODE]
    common = {key: row[key] for key in ("system", "version", "sampling")}
    is_long = len(nodes) > _NODES_IN_FULL
    if is_long:
        yield {**common, **_median(nodes), "name": f"{len(nodes)} nodes, median"}
    for node in nodes:
        if not is_long or node["name"] == row["target"]:
            yield {**common, **node, "name": node["name"] + ", target" * is_long}
    for front in row["nodes"]:
        if front["kind"] == FRONT:
            yield {**common, **front, "name": f"{front['name']}, front"}


def _median(nodes: Sequence[Row]) -> Row:
    """The median of each figure of several nodes."""

    def of(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return median(known) if known else None

    windows = {
        window: {key: of([below(node, f"{window}.{key}") for node in nodes]) for key in keys}
        for window in (IDLE, LOADED)
        for keys in [next((list(node[window]) for node in nodes if node[window]), [])]
    }
    return {**windows, "space_bytes": of([node["space_bytes"] for node in nodes])}


def _known(key: str) -> Callable[[Figures], Figures | None]:
    """The rows that have something under a key."""
    return lambda figures: figures.where(lambda row: row[key] is not None)


def _of(header: str, key: str, unit: float = 1) -> Column:
    return Column(header, lambda row: number(below(row, key), unit))


def _ratio(header: str, key: str) -> Column:
    return Column(header, lambda row: None if (r := below(row, key)) is None else f"{r:.2f}")


def _by_options(row: Row) -> str | None:
    copies = row["stored"]["stated_copies"]
    return None if copies is None else f"{copies:.2f} ({row['stored']['scheme']})"


_NODE = Column("node", "{name}", words=True)
_PER_REQUEST = (
    _of("requests", "per_request.requests"),
    _of("WAN KiB", "per_request.wan_bytes", KIB),
    _ratio("WAN / object", "per_request.wan_over_object_bytes"),
    _of("sent KiB", "per_request.sent_bytes", KIB),
    _of("CPU ms", "per_request.cpu_ms"),
)
_REQUEST_NOTES = (
    Note(
        "Per request: mean over all requests, whatever their endpoint. WAN: on all links between "
        "sites, both directions, with headers. Sent: by all nodes, whoever to. CPU: of all nodes."
    ),
    Note(
        "Includes what the cluster uses when idle, where no idle window of at least 2 s was "
        "sampled (`resources: {{idle: 10s}}`): {rows}.",
        lambda row: not row["idle_usage_subtracted"],
    ),
)
_STORED = Table(
    "Disk usage per stored byte",
    _known("stored"),
    (
        _of("objects", "stored.objects"),
        _of("stored MiB", "stored.stored_bytes", MIB),
        _of("disk MiB", "stored.disk_bytes", MIB),
        _ratio("disk/stored", "stored.disk_bytes_per_stored_byte"),
        Column("by its options", _by_options, words=True),
        _ratio("written/put", "stored.written_bytes_per_put_byte"),
    ),
    (
        Note(
            "Disk: blocks of all nodes' directories, and by how much they grew. By its options: "
            "copies of a byte that replication or erasure coding makes; beyond that are blocks "
            "that are not full, indexes, and what is allocated ahead."
        ),
    ),
)

RESOURCES = Section(
    key="resources",
    title="Resource usage",
    figures=resources,
    columns=(),
    definitions={
        "idle": "after the cluster was ready and before the first request; in a study of round "
        "trips also before each RTT step",
        "loaded": "from the first request that counts to the last one's end, warm-up included; "
        "under load, the load",
        "rss_bytes": "resident memory of all processes of a node, shared pages counted in each",
        "cpu_share": "of one core",
        "per_request": "growth of counters while loaded, less as long an idle time's, over all "
        "requests, whatever their endpoint",
        "wan_bytes": "on all WAN links, both directions, with headers, as the kernel counts them",
        "disk_bytes_per_stored_byte": "growth of what the directories of all nodes take (blocks, "
        "not lengths), over the bytes of the objects that were stored",
    },
    beside=lambda figures: sampling_of(figures.rows),
    hidden=frozenset(("sampling", "target")),
    charts={"resources": "wanlat.analysis.charts.resources:draw"},
    tables=(
        Table(
            "Resource usage per node: memory, CPU, files",
            _nodes,
            (
                _NODE,
                _of("idle MiB", "idle.rss_bytes_median", MIB),
                _of("loaded MiB", "loaded.rss_bytes_median", MIB),
                _of("max MiB", "loaded.rss_bytes_max", MIB),
                _of("idle CPU %", "idle.cpu_share", 0.01),
                _of("loaded CPU %", "loaded.cpu_share", 0.01),
                _of("threads", "loaded.threads"),
                _of("open files", "loaded.open_files"),
            ),
            (
                Note(
                    "Memory: resident, median of samples, of all processes of a node; CPU: of one "
                    "core. Max, threads and files: the most while loaded."
                ),
                Note(sampling_note),
            ),
            group=lambda row: row["system"],
        ),
        Table(
            "Resource usage per node: disk and network",
            _nodes,
            (
                _NODE,
                _of("disk MiB", "space_bytes", MIB),
                _of("read KiB/s", "loaded.read_bytes_per_s", KIB),
                _of("written KiB/s", "loaded.written_bytes_per_s", KIB),
                _of("in KiB/s", "loaded.rx_bytes_per_s", KIB),
                _of("out KiB/s", "loaded.tx_bytes_per_s", KIB),
                _of("packets in/s", "loaded.rx_packets_per_s"),
                _of("out/s", "loaded.tx_packets_per_s"),
            ),
            (
                Note(
                    "While loaded. Disk: what a node's directory takes at the end; read and "
                    "written: as disks saw it. A packet is what the kernel hands on, up to 64 KiB."
                ),
            ),
            group=lambda row: row["system"],
        ),
        Table(
            "Resource usage per request",
            _known("per_request"),
            _PER_REQUEST,
            _REQUEST_NOTES,
        ),
        _STORED,
    ),
)

_MATRIX = replace(
    RESOURCES,
    title="Resource usage per node and per request",
    rows="points",
    columns=(
        _of("idle MiB", "node_rss_bytes.idle", MIB),
        _of("loaded MiB", "node_rss_bytes.loaded", MIB),
        *_PER_REQUEST,
    ),
    notes=(
        Note("Memory: resident, of a node, median of samples, mean over nodes."),
        *_REQUEST_NOTES,
        Note(sampling_note),
    ),
    hidden=RESOURCES.hidden | {"windows", "nodes"},
    charts="wanlat.analysis.charts.resources:charts_of_matrix",
    tables=(_STORED,),
)
"""Of a matrix nodes have a mean; their own figures are in the points' summaries."""


def resources_of_matrix(sweep: Sweep) -> Answer | None:
    """The section of a matrix."""
    return _MATRIX.of_matrix(sweep)
