"""The samples of a page: a bounded number of them, lane by lane, for the chart that shows each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.charts.style import styles
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.groups import in_order, positions
from wanlat.analysis.names import series_labels
from wanlat.analysis.section import runs_of
from wanlat.bundle.documents import OUTCOMES, REMOTE, Titles, titles_of
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run, Series
from wanlat.bundle.samples import read_rows

if TYPE_CHECKING:
    from wanlat.analysis.figures.drill.read import Drill

MOST = 10_000
"""So many samples at most are on a page."""
SLOWEST = 20
"""So many of the slowest stay in a lane, however many there are."""
_FEWEST = 10
_TIMES = ("connect_ns", "first_byte_ns", "total_ns", "network_error_ns")
READ = (*_TIMES, "seq", "start_ns", "elapsed_ns", "outcome", "error", "retransmits", "rtt_ms")
_LONGEST_ERROR = 200
_LOOK = ("dark", "fill", "marker")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Lane:
    """The samples of one row of the chart: `n` were taken, `columns` are of those shown.

    Its `facts`: `name`, of which run or point (`of`), whether its marks are `open`.
    """

    series: Series
    n: int
    facts: Row
    columns: Mapping[str, list[Any]]


def strip_of(sources: Sequence[tuple[str, Run | Matrix]]) -> dict[str, Any]:
    """The lanes of runs, and of points of matrices, with their samples as a page has them.

    A lane is one endpoint's samples at one placement, or those of one client's reads or writes in a
    drill; `of` names its run or point where there are several. Of more than `MOST` samples each
    lane has its share: failures (up to a quarter), the slowest, and of the others an even choice in
    the order they were sent.
    """
    bundles = [
        (" ".join(filter(None, (name, point))), bundle)
        for name, source in sources
        for point, bundle in runs_of(source)
    ]
    listed = [(bundle, list(_lanes(bundle, point))) for point, bundle in bundles]
    share = max(_FEWEST, MOST // max(1, sum(len(lanes) for _, lanes in listed)))
    lanes = []
    for bundle, its in listed:
        every = _shown(bundle, [rows for _, rows, _ in its], share)
        zero = _zero_us(bundle, every)
        for (one, rows, facts), columns in zip(its, every, strict=True):
            lanes.append(Lane(one, len(rows), facts, since(columns, zero)))
    drills = [bundle for _, bundle in bundles if bundle.is_drill]
    rtts = {b.measured_rtt.median_ms for _, b in bundles if b.measured_rtt and _is_even(b)}
    is_one = bool(rtts) and max(rtts) <= 1.1 * min(rtts)
    is_drill = len(bundles) == len(drills) == 1
    return document(
        lanes,
        titles_of(*(source.manifest for _, source in sources)),
        rtt_ms=round(max(rtts), 3) if is_one else None,
        timeline=timeline(_drill(drills[0]).document) if is_drill else None,
    )


def document(
    lanes: Sequence[Lane],
    titles: Titles,
    *,
    rtt_ms: float | None = None,
    timeline: Row | None = None,
) -> dict[str, Any]:
    """Lanes as JSON: times in µs; a column of which all values are the same is that value."""
    series = list(dict.fromkeys(lane.series for lane in lanes))
    looks, labels, errors = styles(series), series_labels(series, titles), dict[str, int]()
    made = []
    for lane in lanes:
        columns = {name: _short(values) for name, values in lane.columns.items() if name != "error"}
        texts = lane.columns["error"]
        numbers = [errors.setdefault(text, len(errors)) if text else None for text in texts]
        own = {"series": series.index(lane.series), "n": lane.n, "shown": len(texts)}
        made.append({**own, **lane.facts, **columns, "error": _short(numbers)})
    return {
        "lanes": made,
        "series": [
            {"name": labels[one], **{key: getattr(looks[one], key) for key in _LOOK}}
            for one in series
        ],
        "errors": list(errors),
        "outcomes": list(OUTCOMES),
        "rtt_ms": rtt_ms,
        "timeline": timeline,
    }


def since(columns: Mapping[str, list[Any]], zero_us: int) -> dict[str, list[Any]]:
    """Columns with instants counted from `zero_us`."""
    at = [None if instant is None else instant - zero_us for instant in columns["at"]]
    return {**columns, "at": at}


def thinned(failed: NDArray[np.bool_], times: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Which of the samples of a lane are shown where there are more than `most`; ascending."""
    count = len(failed)
    if count <= most:
        return np.arange(count)
    few = min(SLOWEST, most // 4)
    slowest = np.argpartition(np.nan_to_num(times, nan=-1.0), -few)[-few:]
    kept = np.union1d(_evenly(np.flatnonzero(failed), most // 4), slowest)
    is_left = np.ones(count, dtype=bool)
    is_left[kept] = False
    others = np.flatnonzero(is_left)
    return np.union1d(kept, _evenly(others, most - len(kept)))


def _evenly(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    if len(places) <= most:
        return places
    chosen: NDArray[np.intp] = places[np.linspace(0, len(places) - 1, most).astype(int)]
    return chosen


def _lanes(bundle: Run, point: str) -> Iterator[tuple[Series, pd.DataFrame, Row]]:
    """Each lane's rows, as few columns as are needed to choose which to show, and its facts."""
    if bundle.is_drill:
        from wanlat.analysis.figures.drill.requests import PHASES

        drill, rows = _drill(bundle), bundle.samples
        rows = rows[rows["phase"].isin(PHASES) & rows["due_ns"].notna()]
        for client, operation, _ in drill.clients:
            of_client = rows["drill_client"] == client["client"]
            own = rows[of_client & (rows["operation"] == operation)]
            name = f"{operation}s of {client['client']}"
            yield drill.series, own, {"name": name, "of": point, "open": False}
        return
    groups = positions(bundle.timed)
    for group in in_order(groups, bundle):
        facts = {
            "name": with_placement(group.endpoint, group.placement),
            "of": point,
            "open": group.placement == REMOTE,
        }
        yield group.series, bundle.timed.iloc[groups[group]], facts


def _shown(bundle: Run, lanes: Sequence[pd.DataFrame], most: int) -> list[dict[str, list[Any]]]:
    """The columns of what is shown of each lane, read at once."""
    kept = [
        lane.index[
            thinned((lane["outcome"] != OUTCOMES[0]).to_numpy(), _finite(lane["total_ns"]), most)
        ]
        for lane in lanes
    ]
    if not kept:
        return []
    at = np.sort(np.concatenate(kept))
    names = (*READ, "due_ns") if bundle.is_drill else READ
    is_read = "samples" in vars(bundle) or bundle.given is not None
    rows = (
        bundle.samples.loc[at, list(names)] if is_read else read_rows(bundle.directory, at, names)
    )
    columns = pd.DataFrame(columns_of(rows, bundle.is_drill), index=at, dtype=object)
    return [
        {str(name): values.tolist() for name, values in columns.loc[places].items()}
        for places in kept
    ]


def columns_of(rows: pd.DataFrame, is_drill: bool) -> dict[str, list[Any]]:
    """What a page has of samples, `at` on the run's clock."""
    us = {name: _finite(rows[name]) / 1e3 for name in map(str, rows) if name.endswith("_ns")}
    started = us["due_ns"] if is_drill else us["start_ns"]
    total = np.where(np.isnan(us["total_ns"]), us["elapsed_ns"], us["total_ns"])
    texts = rows["error"].astype(object).where(rows["error"].notna(), "").astype(str)
    columns: dict[str, list[Any]] = {
        "seq": _whole(_finite(rows["seq"])),
        "at": _whole(started),
        "connect": _whole(us["connect_ns"]),
        "first": _whole(us["first_byte_ns"]),
        "total": _whole(total),
        "network": _whole(us["network_error_ns"]),
        "rtt": [ms if math.isfinite(ms) else None for ms in _finite(rows["rtt_ms"]).tolist()],
        "again": _whole(_finite(rows["retransmits"])),
        "outcome": [OUTCOMES.index(outcome) for outcome in rows["outcome"].astype(str)],
        "error": [text[:_LONGEST_ERROR] for text in texts],
    }
    if is_drill:
        columns["wait"] = _whole(us["start_ns"] - started)
    return columns


def _zero_us(bundle: Run, shown: Sequence[Mapping[str, list[Any]]]) -> int:
    """When times count from: of a drill its origin, else when the first of its samples was sent."""
    if bundle.is_drill:
        return round((_drill(bundle).origin_ns or 0) / 1e3)
    return min((at for columns in shown for at in columns["at"] if at is not None), default=0)


def timeline(drill: Row) -> Row:
    """What was broken when, in seconds since the origin, and the phases that were reached."""
    from wanlat.analysis.figures.drill.read import fault_label

    return {
        "faults": [
            {"name": fault_label(fault), "begin": fault["begin_s"], "end": fault["end_s"]}
            for fault in drill["faults"]
        ],
        "phases": [
            {"name": phase["name"], "begin": phase["begin_s"], "end": phase["end_s"]}
            for phase in drill["phases"]
            if phase["begin_s"] is not None
        ],
    }


def _drill(bundle: Run) -> Drill:
    from wanlat.analysis.figures.drill.read import read_drill  # not for every report

    return read_drill(bundle)


def _is_even(bundle: Run) -> bool:
    """Whether multiples of one RTT mean something for all samples of a run."""
    rtt = bundle.measured_rtt
    return rtt is not None and rtt.is_uniform and not bundle.has_rtt_steps


def _finite(column: pd.Series[Any]) -> NDArray[np.float64]:
    return column.to_numpy(dtype="float64", na_value=np.nan)


def _whole(values: NDArray[np.float64]) -> list[int | None]:
    return [int(value) if math.isfinite(value) else None for value in np.rint(values).tolist()]


def _short(values: list[Any]) -> Any:
    return values[0] if values and all(value == values[0] for value in values) else values
