"""The section of resource usage: per node and per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.resources import FRONT, resources
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.report.formats import below, digits
from wanlat.analysis.report.section import Answer, Column, Note, Section, Table

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Sweep

KIB, MIB = 2**10, 2**20


def number(value: float | None, unit: float = 1) -> str:
    """`value` in units of `unit` with three digits; a dash for None."""
    return digits(None if value is None else value / unit, 3)


def sampling_of(rows: Sequence[Row]) -> Mapping[str, Any]:
    """What the manifest says of how samples were taken; of a matrix where that cost most."""
    said: list[Mapping[str, Any]] = [row["sampling"] for row in rows]
    return max(said, key=lambda each: each["cost_cpu_share"] or 0.0)


def sampling_note(rows: Sequence[Row]) -> str | None:
    """How often samples were taken, and what that cost."""
    sampling = sampling_of(rows)
    said = [f"{sampling[key].rstrip('.')}." for key in ("failed", "stretched") if sampling[key]]
    if sampling["every_s"]:
        percent = 100 * (sampling["cost_cpu_share"] or 0.0)
        said.append(f"Sampled every {sampling['every_s']:g} s, at {percent:.2f} % of one core.")
    return " ".join(said) or None


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
        "per_request": "growth of counters while loaded, less as long an idle time's, over all "
        "requests, whatever their endpoint",
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
        Note(sampling_note),
    ),
    beside=lambda figures: sampling_of(figures.rows),
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


def resources_of_matrix(sweep: Sweep) -> Answer | None:
    """The section of a matrix."""
    return _MATRIX.of_matrix(sweep)
