"""One request, message by message: what crossed the WAN links between its start and its answer.

A trace is of the *typical* request of an endpoint: of those whose longest chain is as long as
most requests' is, the one with the median latency. Its messages come from the packet record
(docs/capture.md), its chain from `wanlat.analysis.packets.chains`, what is background from
`wanlat.analysis.packets.background`; docs/traces.md says how to read the picture.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.names import count, display_system
from wanlat.analysis.placement import with_placement
from wanlat.analysis.summary import Group, grouped
from wanlat.analysis.trace_model import Crossing, Lane, Message, Trace
from wanlat.bundle.errors import BundleError

__all__ = ["Crossing", "Lane", "Message", "Trace", "trace_of", "traces_of"]

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.trace_messages import Packets

MOST_RTT_MS = 100.0
"""Of a study with several RTTs, the greatest up to this is drawn: farther apart shows no more."""
_AFTER_RTTS = 1.25
_LEAST_AFTER_MS = 5.0
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class _Picked:
    """The sample that is drawn of a group, and the places of its chain's packets."""

    group: Group
    sample: pd.Series[Any]
    links: tuple[int, ...]
    words: str
    notes: tuple[str, ...]


def trace_of(bundle: Bundle, group: Group, *, slowest: bool = False) -> Trace:
    """The trace of the typical request of `group`, or of the slowest one.

    Raises BundleError where there is no packet record, or no request of the group that it covers.
    """
    return traces_of(bundle, [group], slowest=slowest)[0]


def traces_of(
    bundle: Bundle, groups: Sequence[Group], *, slowest: bool = False
) -> tuple[Trace, ...]:
    """The traces of several groups, in their order; reads the record once a system.

    Raises BundleError as `trace_of`.
    """
    rows = grouped(bundle.measured)
    made: dict[Group, Trace] = {}
    for system in dict.fromkeys(group.series.system for group in groups):
        mine = [group for group in groups if group.series.system == system]
        for group in mine:
            if group not in rows:
                raise BundleError(_why_absent(bundle, group, list(rows)))
        made |= _of_system(bundle, system, {group: rows[group] for group in mine}, slowest)
    return tuple(made[group] for group in groups)


def _of_system(
    bundle: Bundle, system: str, rows: dict[Group, pd.DataFrame], slowest: bool
) -> dict[Group, Trace]:
    import pandas as pd

    from wanlat.analysis.packets.background import read_background
    from wanlat.analysis.packets.chains import chains
    from wanlat.analysis.packets.record import read_record, why_no_record
    from wanlat.analysis.trace_messages import Packets

    why = why_no_record(bundle, system)
    record = read_record(bundle, system) if why is None else None
    if record is None:
        raise BundleError(
            f"{bundle.directory} cannot be traced: "
            f"{why or f'the packet record has nothing of {system}.'} Run it with --capture."
        )
    background = read_background(bundle, record)
    candidates = {group: _candidates(bundle, group, of_group) for group, of_group in rows.items()}
    samples = pd.concat(list(candidates.values()))
    found = chains(record, samples, background)
    links = dict(zip(samples.index, found.links, strict=True))
    known = set(samples.index[found.known])
    picked = [_pick(group, candidates[group], links, known, slowest) for group in rows]
    all_starts = _starts_ns(bundle, system)
    spans = {one.group: _span_ns(bundle, one.sample, all_starts) for one in picked}
    packets = Packets(bundle, record, background, list(spans.values()))
    return {one.group: _trace(bundle, packets, one, spans[one.group], all_starts) for one in picked}


def _candidates(bundle: Bundle, group: Group, rows: pd.DataFrame) -> pd.DataFrame:
    """The ok requests that may be drawn: those of the greatest RTT that is not too great."""
    from wanlat.analysis.visits import read_visits

    ok = rows[(rows["outcome"] == "ok") & rows["start_ns"].notna()]
    visits = read_visits(bundle)
    counting = visits.counting(group.series.system) if visits is not None else ()
    if counting and "rtt_step" in ok.columns:
        rtts_ms = sorted({visit.requested_rtt_ms for visit in counting})
        chosen_ms = max([rtt_ms for rtt_ms in rtts_ms if rtt_ms <= MOST_RTT_MS] or rtts_ms[:1])
        numbers = [visit.number for visit in counting if visit.requested_rtt_ms == chosen_ms]
        ok = ok[ok["rtt_step"].isin(numbers)]
    if ok.empty:
        raise BundleError(f"No request of {_name(group)} succeeded, so there is none to draw.")
    return ok


def _pick(
    group: Group,
    rows: pd.DataFrame,
    links: dict[Any, tuple[int, ...]],
    known: set[Any],
    slowest: bool,
) -> _Picked:
    rows = rows[rows.index.isin(known)]
    if rows.empty:
        raise BundleError(
            f"The packet record ended before any request of {_name(group)} was answered. Give it "
            "more room with --capture-limit."
        )
    ordered = rows.sort_values("total_ns", kind="stable")
    lengths = [len(links[index]) for index in ordered.index]
    usual, times = Counter(lengths).most_common(1)[0]
    if slowest:
        chosen = ordered.index[-1]
        words = f"the slowest of {count(len(ordered), 'request')}"
    else:
        alike = [i for i, length in zip(ordered.index, lengths, strict=True) if length == usual]
        chosen = alike[(len(alike) - 1) // 2]
        words = f"the median of {count(times, 'request')} with {count(usual, 'crossing')}"
        if times < len(ordered):
            words += f", of {len(ordered)} in all"
    notes = _on_lengths(lengths, len(links[chosen]))
    return _Picked(group, ordered.loc[chosen], links[chosen], words, notes)


def _on_lengths(lengths: list[int], drawn: int) -> tuple[str, ...]:
    """What other requests' chains are like, if they are not all alike."""
    counted = Counter(lengths)
    others = [
        f"{times} of {count(length, 'crossing')}"
        for length, times in sorted(counted.items())
        if length != drawn
    ]
    if not others:
        return ()
    return (
        f"Of {len(lengths)} requests {counted[drawn]} have {count(drawn, 'crossing')} in their "
        f"longest chain; the others: {', '.join(others)}.",
    )


def _starts_ns(bundle: Bundle, system: str) -> list[int]:
    """When each request of a system was sent, of whatever phase, in order."""
    samples = bundle.samples
    starts = samples.loc[(samples["system"] == system), "start_ns"].dropna()
    return sorted(int(start) for start in starts)


def _span_ns(bundle: Bundle, sample: pd.Series[Any], starts: list[int]) -> tuple[int, int]:
    """From the request's start to where its trace ends: what it leaves behind is part of it."""
    start, end = int(sample["start_ns"]), int(sample["start_ns"]) + int(sample["total_ns"])
    following = _next_ns(starts, start)
    rtt_ms = _rtt(bundle, sample)[0] or _requested_ms(sample)
    latest = end + round(max(_AFTER_RTTS * rtt_ms, _LEAST_AFTER_MS) * _NS_PER_MS)
    return start, latest if following is None else max(end, min(latest, following - 1))


def _next_ns(starts: list[int], start: int) -> int | None:
    place = bisect_right(starts, start)
    return starts[place] if place < len(starts) else None


def _requested_ms(sample: pd.Series[Any]) -> float:
    import pandas as pd

    value = sample["rtt_ms"]
    return 0.0 if pd.isna(value) else float(value)


def _trace(
    bundle: Bundle, packets: Packets, picked: _Picked, span: tuple[int, int], starts: list[int]
) -> Trace:
    import pandas as pd

    from wanlat.analysis.trace_messages import messages_within

    sample = picked.sample
    start, latency_ns = int(sample["start_ns"]), int(sample["total_ns"])
    client = str(sample["client"])
    asked = sample.get("target")
    target = client if asked is None or pd.isna(asked) else str(asked)
    if client == target:
        target = _target(bundle, client)
    lanes = _lanes(bundle, packets)
    rtt_ms, range_ms = _rtt(bundle, sample)
    messages, bare_acks = messages_within(
        packets, span, start + latency_ns, picked.links, client, target
    )
    following = _next_ns(starts, start)
    next_ms = None if following is None else (following - start) / _NS_PER_MS
    until_ms = (span[1] - start) / _NS_PER_MS
    return Trace(
        group=picked.group,
        topology=bundle.topology,
        client=client,
        target=target,
        lanes=lanes,
        rtt_ms=rtt_ms,
        rtt_range_ms=range_ms,
        start_ns=start,
        latency_ms=latency_ns / _NS_PER_MS,
        until_ms=until_ms,
        next_ms=next_ms if next_ms is not None and next_ms <= until_ms + 1 else None,
        messages=messages,
        bare_acks=bare_acks,
        knows_background=packets.knows_background,
        picked=picked.words,
        notes=picked.notes,
    )


def _target(bundle: Bundle, client: str) -> str:
    """The node that was asked, by the manifest."""
    target = bundle.manifest.get("target")
    node = target.get("node") if isinstance(target, dict) else None
    return str(node) if node else client


def _lanes(bundle: Bundle, packets: Packets) -> tuple[Lane, ...]:
    """All nodes, as the topology orders them; those that only the record has at the end."""
    topology = bundle.manifest.get("topology")
    sites = topology.get("sites") if isinstance(topology, dict) else None
    known: list[Lane] = []
    for site in sites if isinstance(sites, list) else []:
        name, nodes = str(site.get("name")), site.get("nodes")
        if isinstance(nodes, int):
            nodes = [f"{name}-{number}" for number in range(1, nodes + 1)]
        for node in nodes if isinstance(nodes, list) else []:
            known.append(Lane(str(node.get("name")) if isinstance(node, dict) else str(node), name))
    record = packets.record
    names = {lane.node for lane in known}
    rest = [
        Lane(node, record.sites[int(site)])
        for node, site in zip(record.nodes, record.node_site, strict=True)
        if node not in names
    ]
    return (*known, *rest)


def _rtt(bundle: Bundle, sample: pd.Series[Any]) -> tuple[float | None, tuple[float, float] | None]:
    """The RTT between sites as measured when the request was made, and its extremes over pairs."""
    import pandas as pd

    from wanlat.analysis.visits import read_visits

    visits = read_visits(bundle)
    visit = sample.get("rtt_step")
    if visits is not None and visit is not None and not pd.isna(visit):
        for one in visits.of(str(sample["system"])):
            if one.number == int(visit) and one.measured_rtt_ms is not None:
                known = [p.measured_rtt_ms for p in one.pairs if p.measured_rtt_ms is not None]
                return _if_uniform(one.measured_rtt_ms, known)
    measured = bundle.measured_rtt
    if measured is None:
        return None, None
    return _if_uniform(measured.median_ms, [measured.low_pair_ms, measured.high_pair_ms])


def _if_uniform(
    median_ms: float, pairs_ms: list[float]
) -> tuple[float | None, tuple[float, float] | None]:
    from wanlat.analysis.calibration import EQUAL_WITHIN

    low, high = min(pairs_ms, default=median_ms), max(pairs_ms, default=median_ms)
    equal = max(high - median_ms, median_ms - low) <= max(EQUAL_WITHIN * median_ms, 1.0)
    return (median_ms if equal else None), (low, high)


def _why_absent(bundle: Bundle, group: Group, present: list[Group]) -> str:
    there = ", ".join(dict.fromkeys(_name(one) for one in present))
    return f"{bundle.directory} has no requests of {_name(group)}; there are {there}."


def _name(group: Group) -> str:
    series, endpoint, placement = group
    return with_placement(f"{display_system(series.system)} {endpoint}", placement)
