"""The tables of resources: what nodes use, what a request costs, what a stored byte costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from wanlat.analysis.grid import Grid
from wanlat.analysis.names import EN_DASH, row_labels
from wanlat.analysis.resources.model import Estimate, RequestCost, Resources, Sampling, Subject, Use

if TYPE_CHECKING:
    from wanlat.analysis.resources.block import ResourcesBlock

MIB = 2**20
MOST_PERCENT = 1
"""Of one core: what looking at the nodes is allowed to take."""
_Cells = Callable[[Sequence[Subject]], list[str]]
_NODES_IN_FULL = 6
_BACKGROUND = (
    "Of requests of {}: what the cluster does of its own accord is in the figures, because it "
    "was not seen at rest for two seconds (`resources: {{rest: 10s}}`)."
)


_TOO_FEW_LOOKS = (
    "Endpoints of {} are not told apart: it was over in too few looks (more samples, or "
    "`resources: {{every: 100ms}}`)."
)


def grids_of(block: ResourcesBlock) -> list[Grid]:
    """The tables of one bundle; those that would be empty are left out."""
    made = (
        _nodes(block, "What a node pays: memory, CPU, files", _PROCESS_HEADERS, _process_cells),
        _nodes(block, "What a node pays: disk and network", _BYTES_HEADERS, _bytes_cells),
        _requests(block.systems),
        stored_grid(block.systems),
    )
    return [grid for grid in made if grid is not None]


def _nodes(block: ResourcesBlock, title: str, headers: Sequence[str], cells: _Cells) -> Grid:
    labels = row_labels([each.series for each in block.systems])
    target = block.bundle.manifest.get("target")
    asked = str(target.get("node")) if isinstance(target, Mapping) else ""
    rows: list[tuple[str, ...]] = []
    sections = []
    for system in block.systems:
        for name, parts in _shown(system, asked):
            rows.append((labels[system.series], name, *cells(parts)))
        sections.append(len(rows) - 1)
    return Grid(
        title=title,
        headers=("system", "node", *headers),
        rows=tuple(rows),
        text=frozenset(("system", "node")),
        sections=frozenset(sections[:-1]),
        notes=tuple(_notes(block)) if cells is _process_cells else (_BYTES_NOTE,),
    )


def _shown(system: Resources, asked: str) -> Iterable[tuple[str, Sequence[Subject]]]:
    """Rows of a system: every node, or, of many, the middle of each figure and the node `asked`."""
    nodes = system.nodes
    if len(nodes) <= _NODES_IN_FULL:
        yield from ((node.name, [node]) for node in nodes)
    else:
        yield f"{len(nodes)} nodes, median", nodes
        yield from ((f"{node.name}, asked", [node]) for node in nodes if node.name == asked)
    for front in (each for each in system.subjects if each.kind == "front"):
        yield f"{front.name}, nginx", [front]


_PROCESS_HEADERS = (
    "MiB at rest",
    "MiB asked (max)",
    "CPU %, rest",
    "CPU %, asked",
    "threads",
    "open files",
)
_BYTES_HEADERS = (
    "disk MiB",
    "read KiB/s",
    "written KiB/s",
    "in KiB/s",
    "out KiB/s",
    "packets in/s",
    "out/s",
    "peak/mean",
)
_BYTES_NOTE = (
    "While it was asked. Disk: what a node's directory takes at the end; read and written: as "
    "disks saw it. A packet is what the kernel hands on, up to 64 KiB. Peak: the greatest interval "
    "of what went in and out, over the mean."
)


def _process_cells(parts: Sequence[Subject]) -> list[str]:
    rest = [part.at_rest for part in parts]
    asked = [part.asked for part in parts]
    memory = number(_of(asked, "rss_median"), MIB)
    most = number(_of(asked, "rss_max"), MIB)
    return [
        number(_of(rest, "rss_median"), MIB),
        memory if memory == EN_DASH else f"{memory} ({most})",
        number(_of(rest, "cpu_share"), 0.01),
        number(_of(asked, "cpu_share"), 0.01),
        number(_of(asked, "threads"), 1),
        number(_of(asked, "open_files"), 1),
    ]


def _bytes_cells(parts: Sequence[Subject]) -> list[str]:
    asked = [part.asked for part in parts]
    return [
        number(_median(part.space_bytes for part in parts), MIB),
        number(_of(asked, "read_per_s"), 1024),
        number(_of(asked, "written_per_s"), 1024),
        number(_of(asked, "rx_per_s"), 1024),
        number(_of(asked, "tx_per_s"), 1024),
        number(_of(asked, "rx_packets_per_s"), 1),
        number(_of(asked, "tx_packets_per_s"), 1),
        number(_of(asked, "peak_network"), 1),
    ]


def _of(uses: Sequence[Use | None], name: str) -> float | None:
    return _median(getattr(use, name) for use in uses if use is not None)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _notes(block: ResourcesBlock) -> Iterable[str]:
    yield (
        "Memory: resident, median of looks, of all processes of a node; CPU: of one core. Threads "
        "and files: the most that were seen."
    )
    yield from sampling_notes(block.sampling)
    ours = [_own(system) for system in block.systems]
    if any(ours):
        yield f"Ours beside it, CPU % of a core and MiB: {'; '.join(filter(None, ours))}."


def sampling_notes(sampling: Sampling, sampled: str = "Sampled") -> Iterable[str]:
    """How often it was looked at, and what that cost."""
    if sampling.failed:
        yield f"Sampling ended early: {sampling.failed.rstrip('.')}."
    if sampling.cost_cpu_share is None:
        return
    period = f"{sampling.every_s:g} s" if sampling.every_s else ""
    if period and not sampling.cost_cpu_share:
        yield f"{sampled} only where stages begin and end: it was over in less than {period}."
        return
    every = f"every {period}" if period else ""
    share = 100 * sampling.cost_cpu_share
    dear = f", more than the {MOST_PERCENT} % it may take" if share > MOST_PERCENT else ""
    yield f"{sampled} {every}, which took {share:.2f} % of one core{dear}."
    if sampling.stretched:
        yield f"So that it took no more: {sampling.stretched.rstrip('.')}."


def _own(system: Resources) -> str:
    parts = [
        f"{each.name} {number(each.asked.cpu_share, 0.01)}, {number(each.asked.rss_max, MIB)}"
        for each in system.subjects
        if each.kind == "own" and each.asked is not None
    ]
    name = row_labels([system.series])[system.series]
    return f"{name}: {' · '.join(parts)}" if parts else ""


def _requests(systems: Sequence[Resources]) -> Grid | None:
    labels = row_labels([each.series for each in systems])
    rows: list[tuple[str, ...]] = []
    sections = []
    for system in systems:
        for cost in system.requests:
            alone = len(system.requests) == 2
            if cost.endpoint is None and alone:
                continue  # of one endpoint, the same figures twice
            if cost.endpoint is not None and not cost.is_known:
                continue
            rows.append((labels[system.series], cost.endpoint or "all", *request_cells(cost)))
        sections.append(len(rows) - 1)
    if not rows:
        return None
    together = [
        labels[each.series]
        for each in systems
        if any(cost.endpoint is not None and not cost.is_known for cost in each.requests)
    ]
    gross = [labels[each.series] for each in systems if not each.background_known]
    return Grid(
        title="What a request costs",
        headers=("system", "endpoint", "requests", *REQUEST_HEADERS),
        rows=tuple(rows),
        text=frozenset(("system", "endpoint")),
        sections=frozenset(sections[:-1]),
        notes=(
            "WAN: on all links between sites, both directions, with headers. Sent: by all nodes, "
            "whoever to. CPU: of all nodes. Endpoints are told apart by least squares [95 %].",
            *([_BACKGROUND.format(", ".join(gross))] if gross else []),
            *([_TOO_FEW_LOOKS.format(", ".join(together))] if together else []),
        ),
    )


REQUEST_HEADERS = ("WAN KiB [95 %]", "WAN / object", "sent KiB [95 %]", "CPU ms [95 %]")


def request_cells(cost: RequestCost) -> list[str]:
    """The figures of a request, under REQUEST_HEADERS, after how many there were."""
    over = cost.wan_over_object
    return [
        str(cost.requests),
        _estimate(cost.wan_bytes, 1024),
        EN_DASH if over is None else f"{over:.2f}",
        _estimate(cost.sent_bytes, 1024),
        _estimate(cost.cpu_ms, 1),
    ]


def stored_grid(systems: Sequence[Resources]) -> Grid | None:
    """What stored bytes cost; None where nothing was stored."""
    labels = row_labels([each.series for each in systems])
    rows = [
        (labels[each.series], *stored_cells(each)) for each in systems if each.stored is not None
    ]
    if not rows:
        return None
    return Grid(
        title="What a stored byte costs",
        headers=("system", *STORED_HEADERS),
        rows=tuple(rows),
        text=frozenset(("system", "by its options")),
        notes=(
            "Disk: blocks of all nodes' directories, and by how much they grew. By its options: "
            "copies of a byte that replication or erasure coding makes; the rest is blocks that "
            "are not full, indexes, and what is allocated ahead.",
        ),
    )


STORED_HEADERS = (
    "objects",
    "stored MiB",
    "disk MiB",
    "disk/stored",
    "by its options",
    "written/put",
)


def stored_cells(system: Resources) -> list[str]:
    """The figures of what was stored, under STORED_HEADERS; dashes where there are none."""
    stored = system.stored
    if stored is None:
        return [EN_DASH] * len(STORED_HEADERS)
    by_options = EN_DASH if stored.copies is None else f"{stored.copies:.2f} ({stored.scheme})"
    return [
        str(stored.objects),
        number(stored.stored_bytes, MIB),
        number(stored.disk_bytes, MIB),
        f"{stored.per_byte:.2f}",
        by_options,
        EN_DASH if stored.written is None else f"{stored.written:.2f}",
    ]


def _estimate(value: Estimate | None, unit: float) -> str:
    if value is None:
        return EN_DASH
    if value.ci95 is None:
        return number(value.value, unit)
    low, high = (number(bound, unit) for bound in value.ci95)
    return f"{number(value.value, unit)} [{low}, {high}]"


def number(value: float | None, unit: float) -> str:
    """`value` in units of `unit` with about three digits."""
    if value is None:
        return EN_DASH
    scaled = value / unit
    if scaled == 0 or (unit == 1 and scaled == int(scaled)):
        return str(int(scaled))
    places = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
    return f"{scaled:.{places}f}"
