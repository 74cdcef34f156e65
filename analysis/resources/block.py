"""The block "resources" of a bundle and of a sweep: resource usage per node and per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Series
from wanlat.analysis.drill.events import Event, read_events
from wanlat.analysis.resources.read import are_all_known, read_rows, requests_of
from wanlat.analysis.resources.stored import PerStoredByte, per_stored_byte
from wanlat.analysis.resources.usage import (
    PerRequest,
    per_request,
    rounded,
    to_json,
    usage_of,
    usage_to_json,
)
from wanlat.analysis.resources.windows import (
    IDLE,
    LOADED,
    Window,
    is_idle_known,
    loaded_spans,
    windows_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.grid import Grid
    from wanlat.analysis.sweep import Sweep

_KEPT_UNDER = "resources"
_SAMPLING = ("every_s", "cost_cpu_share", "late_p99_ms", "stretched", "failed")
_DEFINITIONS = {
    "idle": "after the cluster was ready and before the first request; in a study of round trips "
    "also before each RTT step",
    "loaded": "from the first request that counts to the last one's end, warm-up included; under "
    "load, the load",
    "rss_bytes": "resident memory of all processes of a node, shared pages counted in each",
    "cpu_share": "of one core",
    "per_request": "growth of counters while loaded, less as long an idle time's, over all "
    "requests, whatever their endpoint",
    "wan_bytes": "on all WAN links, both directions, with headers, as the kernel counts them",
    "disk_bytes_per_stored_byte": "growth of what the directories of all nodes take (blocks, not "
    "lengths), over the bytes of the objects that were stored",
}

Where = tuple[tuple[str, Any], ...]
"""Parameters that are swept, with the point's values, as the study has them."""


@dataclass(frozen=True)
class SystemResources:
    """What one system of a run, or at a point of a sweep, used.

    `usage` has a row for each (kind, name) of nodes and fronts (`usage.usage_of`); `rows` are those
    of resources.parquet.
    """

    series: Series
    windows: tuple[Window, ...]
    usage: pd.DataFrame = field(repr=False, compare=False)
    per_request: PerRequest | None
    stored: PerStoredByte | None
    rows: pd.DataFrame = field(repr=False, compare=False)
    where: Where = ()

    @property
    def nodes(self) -> pd.DataFrame:
        """Those of `usage` that are nodes, by name."""
        return self.usage[self.usage.index.get_level_values("kind") == "node"].droplevel("kind")

    @property
    def is_idle_known(self) -> bool:
        """Whether usage per request is without what the cluster uses when idle."""
        return is_idle_known(self.windows)

    def memory(self, window: str) -> float:
        """Median resident memory of a node, IDLE or LOADED: the mean over nodes, bytes."""
        return float(self.nodes[window, "rss_bytes_median"].mean())

    def common_json(self) -> dict[str, Any]:
        """What the summaries of a run and of a sweep both have."""
        return {
            "idle_usage_subtracted": self.is_idle_known,
            "per_request": self.per_request and to_json(asdict(self.per_request)),
            "stored": self.stored and to_json(asdict(self.stored)),
        }


@dataclass(frozen=True)
class ResourcesBlock:
    """Every system of a run; a block of its report (`wanlat.analysis.blocks`)."""

    bundle: Bundle
    systems: tuple[SystemResources, ...]
    requests: pd.DataFrame = field(repr=False, compare=False)

    @property
    def sampling(self) -> dict[str, Any]:
        """What the manifest says of how samples were taken; a run that was killed has none."""
        found = self.bundle.manifest.get("resources")
        said = found if isinstance(found, Mapping) else {}
        return {key: said.get(key) for key in _SAMPLING}

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json; instants are seconds after the run's first sample."""
        origin_ns = min(int(each.rows["t_ns"].iloc[0]) for each in self.systems)
        return {
            **self.sampling,
            "definitions": _DEFINITIONS,
            "systems": [
                {
                    **each.series._asdict(),
                    "windows": [
                        {
                            "kind": window.kind,
                            "begin_s": round((window.begin_ns - origin_ns) / 1e9, 3),
                            "end_s": round((window.end_ns - origin_ns) / 1e9, 3),
                        }
                        for window in each.windows
                    ],
                    "nodes": usage_to_json(each.usage),
                    **each.common_json(),
                }
                for each in self.systems
            ],
        }

    def grids(self) -> Sequence[Grid]:
        """Resource usage per node, per request, per stored byte."""
        from wanlat.analysis.resources.tables import grids_of_run

        return grids_of_run(self)

    def charts(self) -> Mapping[str, Figure]:
        """Resources over time, under the latency."""
        from wanlat.analysis.charts import resources

        return {"resources": resources.draw(self)}


@dataclass(frozen=True)
class ResourcesOfSweep:
    """All points of a sweep; a block of its report (`wanlat.analysis.blocks`).

    `sampling` is that of the point where it cost most; `points` are the names beside `systems`.
    """

    sweep: Sweep
    sampling: dict[str, Any]
    points: tuple[str, ...]
    systems: tuple[SystemResources, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json; the points' own summaries have usage per node."""
        return {
            **self.sampling,
            "points": [
                {
                    "point": point,
                    **each.series._asdict(),
                    "values": dict(each.where),
                    "node_rss_bytes": {
                        window: rounded(each.memory(window)) for window in (IDLE, LOADED)
                    },
                    **each.common_json(),
                }
                for point, each in zip(self.points, self.systems, strict=True)
            ],
        }

    def grids(self) -> Sequence[Grid]:
        """Resource usage per node, per request and per stored byte, point by point."""
        from wanlat.analysis.resources.tables import grids_of_sweep

        return grids_of_sweep(self)

    def charts(self) -> Mapping[str, Figure]:
        """Memory of a node, and CPU time and bytes of a request, against what was swept."""
        from wanlat.analysis.charts import resources_sweep

        return resources_sweep.charts_of(self)


def resources_of(bundle: Bundle) -> ResourcesBlock | None:
    """The block of `bundle`, made once; None where nothing was sampled."""
    if _KEPT_UNDER not in bundle.derived:
        requests = requests_of(bundle)
        systems = _systems(bundle, requests)
        bundle.derived[_KEPT_UNDER] = ResourcesBlock(bundle, systems, requests) if systems else None
    made: ResourcesBlock | None = bundle.derived[_KEPT_UNDER]
    return made


def resources_of_sweep(sweep: Sweep) -> ResourcesOfSweep | None:
    """The block of `sweep`; None where nothing was sampled at any complete point."""
    swept = [parameter.name for parameter in sweep.parameters if sweep.varies(parameter.name)]
    found: list[tuple[str, SystemResources]] = []
    samplings = []
    for point in sweep.complete:
        block = resources_of(point.bundle) if point.bundle is not None else None
        if block is not None:
            where = tuple((name, point.value(name)) for name in swept)
            found += [(point.name, replace(each, where=where)) for each in block.systems]
            samplings.append(block.sampling)
    if not found:
        return None
    dearest = max(samplings, key=lambda each: each["cost_cpu_share"] or 0.0)
    points, systems = zip(*found, strict=True)
    return ResourcesOfSweep(sweep, dearest, points, systems)


def _systems(bundle: Bundle, requests: pd.DataFrame) -> tuple[SystemResources, ...]:
    events = read_events(bundle.directory)
    return tuple(
        _of_system(bundle, str(name), rows, requests[requests["system"] == name], events)
        for name, rows in read_rows(bundle.directory).groupby("system", sort=False)
    )


def _of_system(
    bundle: Bundle,
    name: str,
    rows: pd.DataFrame,
    requests: pd.DataFrame,
    events: Sequence[Event],
) -> SystemResources:
    windows = windows_of(name, rows, loaded_spans(bundle, name, requests), events)
    # What requests use while nodes are broken says nothing of requests.
    has_per_request = not bundle.is_drill and are_all_known(bundle)
    return SystemResources(
        series=next((s for s in bundle.systems if s.system == name), Series(name, "")),
        windows=windows,
        usage=usage_of(rows, windows),
        per_request=per_request(requests, rows, windows) if has_per_request else None,
        stored=per_stored_byte(bundle, name, rows, requests, events),
        rows=rows,
    )
