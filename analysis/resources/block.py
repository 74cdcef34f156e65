"""The block "resources" of one bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Series
from wanlat.analysis.drill.events import Event, read_events
from wanlat.analysis.resources.asked import are_all_known, requests_of, spans_of
from wanlat.analysis.resources.costs import METHOD, Counter, knows_background, request_costs
from wanlat.analysis.resources.model import ASKED, REST, Resources, Sampling, Subject, Window
from wanlat.analysis.resources.read import read_rows
from wanlat.analysis.resources.stored import stored_of
from wanlat.analysis.resources.use import space_at_end, use_of
from wanlat.analysis.resources.windows import windows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.grid import Grid

_KEPT_UNDER = "resources"
_KINDS = ("node", "front", "own")
_DEFINITIONS = {
    "rest": "after the cluster was ready and before it was asked for anything; in a study of round "
    "trips also before each visit",
    "asked": "from the first request that counts to the last one's end, warm-up included; under "
    "load, the load",
    "rss_bytes": "resident memory of all processes of a node, shared pages counted in each",
    "cpu_share": "of one core",
    "network_peak_over_mean": "the greatest interval between two looks over the mean of all, "
    "received and sent together",
    "requests": METHOD,
    "wan_bytes": "on all WAN links, both directions, with headers, as the kernel counts them",
    "disk_bytes_per_stored_byte": "growth of what the directories of all nodes take (blocks, not "
    "lengths), over the bytes of the objects that were stored",
}


@dataclass(frozen=True)
class ResourcesBlock:
    """What every system of a run used; a block of its report (`wanlat.analysis.blocks`)."""

    bundle: Bundle
    sampling: Sampling
    systems: tuple[Resources, ...]
    requests: pd.DataFrame

    @property
    def origin_ns(self) -> int:
        """The first look of the run."""
        return min(int(each.frame["t_ns"].iloc[0]) for each in self.systems)

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            **self.sampling.to_json(),
            "definitions": _DEFINITIONS,
            "systems": [each.to_json(self.origin_ns) for each in self.systems],
        }

    def grids(self) -> Sequence[Grid]:
        """What nodes use, what a request costs, what a stored byte costs."""
        from wanlat.analysis.resources.table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """Resources over time, under the latency."""
        from wanlat.analysis.charts import resources

        return {"resources": resources.draw(self)}


def block_of(bundle: Bundle) -> ResourcesBlock | None:
    """The block of `bundle`, made once; None where nothing was sampled."""
    if _KEPT_UNDER not in bundle.derived:
        bundle.derived[_KEPT_UNDER] = _made(bundle)
    made: ResourcesBlock | None = bundle.derived[_KEPT_UNDER]
    return made


def _made(bundle: Bundle) -> ResourcesBlock | None:
    rows = read_rows(bundle.directory)
    if rows.empty:
        return None
    requests = requests_of(bundle)
    events = read_events(bundle.directory)
    systems = tuple(
        _of_system(bundle, _series(bundle, str(name)), own, requests, events)
        for name, own in rows.groupby("system", sort=False)
    )
    return ResourcesBlock(bundle, Sampling.of(bundle.manifest), systems, requests)


def _of_system(
    bundle: Bundle,
    series: Series,
    rows: pd.DataFrame,
    requests: pd.DataFrame,
    events: Sequence[Event],
) -> Resources:
    name = series.system
    own = requests[requests["system"] == name]
    windows = windows_of(name, rows, spans_of(bundle, name, requests), events)
    by_subject = {
        (str(kind), str(subject)): part
        for (kind, subject), part in rows.groupby(["kind", "subject"], sort=False)
    }
    return Resources(
        series=series,
        windows=windows,
        subjects=tuple(
            _subject(kind, subject, part, windows)
            for wanted in _KINDS
            for (kind, subject), part in by_subject.items()
            if kind == wanted
        ),
        # What requests cost while nodes are broken is no cost of requests.
        requests=()
        if bundle.is_drill or not are_all_known(bundle)
        else request_costs(
            own, windows, _counters(by_subject), bundle.seed, apart=not bundle.is_load
        ),
        background_known=knows_background(windows),
        stored=stored_of(bundle, name, rows, own),
        frame=rows,
    )


def _subject(kind: str, name: str, rows: pd.DataFrame, windows: Sequence[Window]) -> Subject:
    space, files = space_at_end(rows)
    return Subject(
        kind=kind,
        name=name,
        at_rest=use_of(rows, [w for w in windows if w.kind == REST]),
        asked=use_of(rows, [w for w in windows if w.kind == ASKED]),
        space_bytes=space,
        files=files,
    )


def _counters(
    by_subject: Mapping[tuple[str, str], pd.DataFrame],
) -> tuple[Counter, Counter, Counter]:
    def of(*kinds: str) -> list[pd.DataFrame]:
        return [rows for (kind, _), rows in by_subject.items() if kind in kinds]

    return (
        Counter(of("link"), "tx_bytes"),
        Counter(of("node"), "tx_bytes"),
        Counter(of("node", "front"), "cpu_ns", 1e-6),
    )


def _series(bundle: Bundle, system: str) -> Series:
    return next((s for s in bundle.systems if s.system == system), Series(system, ""))
