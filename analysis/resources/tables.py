"""The tables of resources: usage per node, per request, per stored byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, row_labels
from wanlat.analysis.resources.usage import END
from wanlat.analysis.resources.windows import IDLE, LOADED

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Series
    from wanlat.analysis.resources.block import ResourcesBlock, ResourcesOfSweep, SystemResources

KIB, MIB = 2**10, 2**20
MOST_PERCENT = 1
"""Of one core: what sampling is allowed to take."""
_NODES_IN_FULL = 6


class _Column(NamedTuple):
    """A header, and how a cell is written of what a row is of."""

    header: str
    cell: Callable[[Any], str]
    is_words: bool = False


class _NodeRow(NamedTuple):
    """A row of usage per node: of one, or of the median of several."""

    system: str
    name: str
    nodes: pd.DataFrame


def number(value: float, unit: float = 1) -> str:
    """`value` in units of `unit` with about three digits; a dash for NaN."""
    if isnan(value):
        return EN_DASH
    scaled = value / unit
    if scaled == 0 or (unit == 1 and scaled == int(scaled)):
        return str(int(scaled))
    places = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
    return f"{scaled:.{places}f}"


def _ratio(value: float) -> str:
    return EN_DASH if isnan(value) else f"{value:.2f}"


def _of_nodes(header: str, window: str, figure: str, unit: float = 1) -> _Column:
    """Of a `_NodeRow`: the median of a figure of `usage.usage_of`."""
    return _Column(header, lambda row: number(row.nodes[window, figure].median(), unit))


def _of_system(
    header: str, part: str, figure: str, write: Callable[[Any], str] = number
) -> _Column:
    """Of a system: a figure of its `per_request` or `stored`; a dash where it has none."""

    def cell(each: SystemResources) -> str:
        found = getattr(each, part)
        return EN_DASH if found is None else write(getattr(found, figure))

    return _Column(header, cell)


def _kib(value: float) -> str:
    return number(value, KIB)


def _mib(value: float) -> str:
    return number(value, MIB)


def _by_options(each: SystemResources) -> str:
    if each.stored is None or each.stored.stated_copies is None:
        return EN_DASH
    return f"{each.stored.stated_copies:.2f} ({each.stored.scheme})"


_NODE = (
    _Column("system", lambda row: row.system, is_words=True),
    _Column("node", lambda row: row.name, is_words=True),
)
_PROCESSES = (
    *_NODE,
    _of_nodes("idle MiB", IDLE, "rss_bytes_median", MIB),
    _of_nodes("loaded MiB", LOADED, "rss_bytes_median", MIB),
    _of_nodes("max MiB", LOADED, "rss_bytes_max", MIB),
    _of_nodes("idle CPU %", IDLE, "cpu_share", 0.01),
    _of_nodes("loaded CPU %", LOADED, "cpu_share", 0.01),
    _of_nodes("threads", LOADED, "threads"),
    _of_nodes("open files", LOADED, "open_files"),
)
_DISK_AND_NETWORK = (
    *_NODE,
    _of_nodes("disk MiB", END, "space_bytes", MIB),
    _of_nodes("read KiB/s", LOADED, "read_bytes_per_s", KIB),
    _of_nodes("written KiB/s", LOADED, "written_bytes_per_s", KIB),
    _of_nodes("in KiB/s", LOADED, "rx_bytes_per_s", KIB),
    _of_nodes("out KiB/s", LOADED, "tx_bytes_per_s", KIB),
    _of_nodes("packets in/s", LOADED, "rx_packets_per_s"),
    _of_nodes("out/s", LOADED, "tx_packets_per_s"),
)
_MEMORY = (
    _Column("idle MiB", lambda each: _mib(each.memory(IDLE))),
    _Column("loaded MiB", lambda each: _mib(each.memory(LOADED))),
)
_PER_REQUEST = (
    _of_system("requests", "per_request", "requests", str),
    _of_system("WAN KiB", "per_request", "wan_bytes", _kib),
    _of_system("WAN / object", "per_request", "wan_over_object_bytes", _ratio),
    _of_system("sent KiB", "per_request", "sent_bytes", _kib),
    _of_system("CPU ms", "per_request", "cpu_ms"),
)
_PER_STORED_BYTE = (
    _of_system("objects", "stored", "objects", str),
    _of_system("stored MiB", "stored", "stored_bytes", _mib),
    _of_system("disk MiB", "stored", "disk_bytes", _mib),
    _of_system("disk/stored", "stored", "disk_bytes_per_stored_byte", _ratio),
    _Column("by its options", _by_options, is_words=True),
    _of_system("written/put", "stored", "written_bytes_per_put_byte", _ratio),
)

_MEMORY_NOTE = (
    "Memory: resident, median of samples, of all processes of a node; CPU: of one core. Max, "
    "threads and files: the most while loaded."
)
_BYTES_NOTE = (
    "While loaded. Disk: what a node's directory takes at the end; read and written: as disks saw "
    "it. A packet is what the kernel hands on, up to 64 KiB."
)
_SWEEP_NOTE = "Memory: resident, of a node, median of samples, mean over nodes."
_REQUEST_NOTE = (
    "Per request: mean over all requests, whatever their endpoint. WAN: on all links between "
    "sites, both directions, with headers. Sent: by all nodes, whoever to. CPU: of all nodes."
)
_GROSS_NOTE = (
    "Of {}: includes what the cluster uses when idle, where no idle window of at least 2 s was "
    "sampled (`resources: {{idle: 10s}}`)."
)
_STORED_NOTE = (
    "Disk: blocks of all nodes' directories, and by how much they grew. By its options: copies of "
    "a byte that replication or erasure coding makes; beyond that are blocks that are not full, "
    "indexes, and what is allocated ahead."
)


def grids_of_run(block: ResourcesBlock) -> list[Grid]:
    """The tables of one bundle; those that would be empty are left out."""
    title, systems = "Resource usage per node", block.systems
    known = [each for each in systems if each.per_request is not None]
    notes = (_MEMORY_NOTE, *sampling_notes(block.sampling))
    rows = list(_node_rows(block))
    ends = frozenset(n for n, (a, b) in enumerate(pairwise(rows)) if a.system != b.system)
    return [
        _table(f"{title}: memory, CPU, files", _PROCESSES, rows, notes, ends),
        _table(f"{title}: disk and network", _DISK_AND_NETWORK, rows, (_BYTES_NOTE,), ends),
        *_systems("Resource usage per request", known, _PER_REQUEST, _request_notes(known)),
        *_stored(systems),
    ]


def grids_of_sweep(block: ResourcesOfSweep) -> list[Grid]:
    """The same of a sweep, a row a point; of nodes their memory."""
    notes = (
        _SWEEP_NOTE,
        *_request_notes(block.systems),
        *sampling_notes(block.sampling, "At the dearest point sampled"),
    )
    title = "Resource usage per node and per request"
    columns = (*_MEMORY, *_PER_REQUEST)
    return [*_systems(title, block.systems, columns, notes), *_stored(block.systems)]


def _node_rows(block: ResourcesBlock) -> Iterable[_NodeRow]:
    """Every node, or, of many, the median of each figure and the target node; then the fronts."""
    labels = _labels(block.systems)
    target = block.bundle.manifest.get("target")
    loaded = target.get("node") if isinstance(target, Mapping) else None
    for system in block.systems:
        label, nodes = labels[system.series], system.nodes
        is_long = len(nodes) > _NODES_IN_FULL
        if is_long:
            yield _NodeRow(label, f"{len(nodes)} nodes, median", nodes)
        for name in nodes.index:
            if not is_long or name == loaded:
                yield _NodeRow(label, f"{name}, target" if is_long else name, nodes.loc[[name]])
        for kind, name in system.usage.index:
            if kind == "front":
                yield _NodeRow(label, f"{name}, nginx", system.usage.loc[[(kind, name)]])


def _systems(
    title: str,
    systems: Sequence[SystemResources],
    columns: Sequence[_Column],
    notes: Iterable[str],
) -> Iterable[Grid]:
    """One table with a row for each of `systems`, at its point; none without any."""
    if not systems:
        return
    labels = _labels(systems)

    def value(number: int, each: SystemResources) -> str:
        found = each.where[number][1]
        return EN_DASH if found is None else str(found)

    words = (
        *(
            _Column(name, partial(value, number), is_words=True)
            for number, (name, _) in enumerate(systems[0].where)
        ),
        _Column("system", lambda each: labels[each.series], is_words=True),
    )
    yield _table(title, (*words, *columns), systems, notes)


def _table(
    title: str,
    columns: Sequence[_Column],
    of: Iterable[Any],
    notes: Iterable[str],
    sections: frozenset[int] = frozenset(),
) -> Grid:
    return Grid(
        title=title,
        headers=tuple(column.header for column in columns),
        rows=tuple(tuple(column.cell(each) for column in columns) for each in of),
        text=frozenset(column.header for column in columns if column.is_words),
        sections=sections,
        notes=tuple(notes),
    )


def _labels(systems: Sequence[SystemResources]) -> dict[Series, str]:
    return row_labels(list(dict.fromkeys(each.series for each in systems)))


def _stored(systems: Sequence[SystemResources]) -> Iterable[Grid]:
    stored = [each for each in systems if each.stored is not None]
    return _systems("Disk usage per stored byte", stored, _PER_STORED_BYTE, (_STORED_NOTE,))


def _request_notes(systems: Sequence[SystemResources]) -> Iterable[str]:
    yield _REQUEST_NOTE
    labels = _labels(systems)
    gross = dict.fromkeys(labels[each.series] for each in systems if not each.is_idle_known)
    if gross:
        yield _GROSS_NOTE.format(", ".join(gross))


def sampling_notes(sampling: Mapping[str, Any], sampled: str = "Sampled") -> Iterable[str]:
    """How often samples were taken, and what that cost."""
    if sampling["failed"]:
        yield f"Sampling ended early: {sampling['failed'].rstrip('.')}."
    if sampling["cost_cpu_share"] is None:
        return
    period = f"{sampling['every_s']:g} s" if sampling["every_s"] else ""
    if period and not sampling["cost_cpu_share"]:
        yield f"{sampled} only where stages begin and end: it was over in less than {period}."
        return
    every = f"every {period}" if period else ""
    share = 100 * sampling["cost_cpu_share"]
    dear = f", more than the {MOST_PERCENT} % it may take" if share > MOST_PERCENT else ""
    yield f"{sampled} {every}, which took {share:.2f} % of one core{dear}."
    if sampling["stretched"]:
        yield f"Less often than wanted: {sampling['stretched'].rstrip('.')}."
