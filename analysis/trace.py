"""One request, message by message: what crossed the WAN links between its start and its answer.

A trace is of the *typical* request of an endpoint: of those whose critical path is as long as
most requests' is, the one with the median latency. Its messages come from the packet record
(docs/capture.md), its path from `wanlat.analysis.packets.critical_path`, what is background from
`wanlat.analysis.packets.background`; docs/traces.md says how to read the picture.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.calibration import EQUAL_WITHIN
from wanlat.analysis.groups import Group, grouped
from wanlat.analysis.names import count, display_system
from wanlat.analysis.packets.background import read_background
from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.record import Record, read_record, steps_of, why_no_record
from wanlat.analysis.placement import with_placement
from wanlat.analysis.trace_messages import Packets, Span, messages_within
from wanlat.analysis.trace_model import Lane, Trace
from wanlat.bundle.errors import BundleError

MOST_RTT_MS = 100.0
"""Of a study with several RTTs, the greatest up to this is drawn: farther apart shows no more."""
_AFTER_RTTS = 1.25
_LEAST_AFTER_MS = 5.0
_EQUAL_WITHIN_MS = 1.0


def trace_of(bundle: Bundle, group: Group, *, slowest: bool = False) -> Trace:
    """The trace of the typical request of `group`, or of the slowest one.

    Raises BundleError where there is no packet record, or no request of the group that it covers.
    """
    found = _System(bundle, group.series.system)
    return found.traces([found.pick(group, slowest)])[0]


def traces_of(bundle: Bundle, groups: Sequence[Group]) -> list[Trace]:
    """The typical requests of `groups`, of those that there is one of: a record may have ended."""
    made = []
    for system in dict.fromkeys(group.series.system for group in groups):
        with suppress(BundleError):
            found = _System(bundle, system)
            picked = []
            for group in groups:
                if group.series.system == system:
                    with suppress(BundleError):
                        picked.append(found.pick(group))
            made += found.traces(picked)
    return made


@dataclass(frozen=True)
class _Picked:
    """The sample that is drawn of a group, and the places of its critical path's packets."""

    group: Group
    sample: pd.Series[Any]
    links: tuple[int, ...]
    words: str
    notes: tuple[str, ...]


class _System:
    """A system's packets and requests. Raises BundleError where there is no packet record."""

    def __init__(self, bundle: Bundle, system: str) -> None:
        why = why_no_record(bundle, system)
        record = read_record(bundle, system) if why is None else None
        if record is None:
            raise BundleError(
                f"{bundle.directory} cannot be traced: "
                f"{why or f'the packet record has nothing of {system}.'} Run it with --capture."
            )
        self.bundle, self.record = bundle, record
        self.background = read_background(bundle, record)
        self.steps = steps_of(bundle, system)
        self.rows = grouped(bundle.measured)
        sent = bundle.samples[bundle.samples["system"] == system]
        self.starts_ns = sorted(int(start) for start in sent["start_ns"].dropna())

    def pick(self, group: Group, slowest: bool = False) -> _Picked:
        """Choose the request of a group. Raises BundleError where there is none to choose."""
        rows = self._candidates(group)
        paths = critical_paths(self.record, rows, self.background)
        links = paths.loc[paths["round_trips"].notna(), "links"]
        rows = rows.loc[links.index].sort_values("total_ns", kind="stable")
        if rows.empty:
            raise BundleError(
                f"The packet record ended before any request of {_name(group)} was answered. Give "
                "it more room with --capture-limit."
            )
        hops = links[rows.index].str.len()
        lengths: Counter[int] = Counter(hops.tolist())
        usual, times = lengths.most_common(1)[0]
        if slowest:
            chosen = rows.index[-1]
            words = f"the slowest of {count(len(rows), 'request')}"
        else:
            alike = rows.index[hops == usual]
            chosen = alike[(len(alike) - 1) // 2]
            words = f"the median of {count(times, 'request')} with {count(usual, 'WAN hop')}"
            words += f", of {len(rows)} in all" if times < len(rows) else ""
        notes = _on_others(lengths, hops[chosen])
        return _Picked(group, rows.loc[chosen], links[chosen], words, notes)

    def traces(self, picked: Sequence[_Picked]) -> list[Trace]:
        """The traces of chosen requests."""
        spans = [self._span(one.sample) for one in picked]
        capture = self.bundle.directory / "capture" / f"{self.record.system}.pcapng"
        packets = Packets(self.record, self.background, capture, spans)
        return [self._trace(packets, *each) for each in zip(picked, spans, strict=True)]

    def _candidates(self, group: Group) -> pd.DataFrame:
        """The ok requests that may be drawn: those of the greatest RTT that is not too great."""
        if group not in self.rows:
            there = ", ".join(dict.fromkeys(map(_name, self.rows)))
            raise BundleError(
                f"{self.bundle.directory} has no requests of {_name(group)}; there are {there}."
            )
        rows = self.rows[group]
        ok = rows[(rows["outcome"] == "ok") & rows["start_ns"].notna()]
        passed = [step for step in self.steps if step.verdict == "pass"]
        if passed and "rtt_step" in ok.columns:
            rtts_ms = sorted({step.requested_rtt_ms for step in passed})
            chosen_ms = max([rtt_ms for rtt_ms in rtts_ms if rtt_ms <= MOST_RTT_MS] or rtts_ms[:1])
            numbers = [step.rtt_step for step in passed if step.requested_rtt_ms == chosen_ms]
            ok = ok[ok["rtt_step"].isin(numbers)]
        if ok.empty:
            raise BundleError(f"No request of {_name(group)} succeeded, so there is none to draw.")
        return ok

    def _next_ns(self, start: int) -> int | None:
        place = bisect_right(self.starts_ns, start)
        return self.starts_ns[place] if place < len(self.starts_ns) else None

    def _span(self, sample: pd.Series[Any]) -> Span:
        """From the request's start to where its trace ends: what it leaves behind is part of it."""
        start, end = int(sample["start_ns"]), int(sample["start_ns"]) + int(sample["total_ns"])
        asked_ms = 0.0 if pd.isna(sample["rtt_ms"]) else float(sample["rtt_ms"])
        after_ms = max(_AFTER_RTTS * (self._rtt_ms(sample)[0] or asked_ms), _LEAST_AFTER_MS)
        latest, following = end + round(after_ms * 1e6), self._next_ns(start)
        return start, latest if following is None else max(end, min(latest, following - 1))

    def _rtt_ms(self, sample: pd.Series[Any]) -> tuple[float | None, tuple[float, float] | None]:
        """The RTT between sites as measured when the request was made, and its extremes over pairs;
        no RTT where links differ too much."""
        number = sample.get("rtt_step")
        steps = [] if number is None or pd.isna(number) else self.steps
        step = next((one for one in steps if one.rtt_step == number), None)
        if step is not None and step.measured_rtt_ms is not None:
            known = [p.measured_rtt_ms for p in step.pairs if p.measured_rtt_ms is not None]
            median_ms, pairs_ms = step.measured_rtt_ms, known or [step.measured_rtt_ms]
        elif (measured := self.bundle.measured_rtt) is not None:
            median_ms, pairs_ms = measured.median_ms, [measured.low_pair_ms, measured.high_pair_ms]
        else:
            return None, None
        low, high = min(pairs_ms), max(pairs_ms)
        equal = max(high - median_ms, median_ms - low) <= max(
            EQUAL_WITHIN * median_ms, _EQUAL_WITHIN_MS
        )
        return (median_ms if equal else None), (low, high)

    def _trace(self, packets: Packets, picked: _Picked, span: Span) -> Trace:
        sample, (start, until) = picked.sample, span
        client = str(sample["client"])
        target = sample.get("target")
        asked = self.record.asked or client if target is None or pd.isna(target) else str(target)
        latency_ns = int(sample["total_ns"])
        messages, bare_acks = messages_within(
            packets, span, start + latency_ns, picked.links, (client, asked)
        )
        rtt_ms, range_ms = self._rtt_ms(sample)
        following = self._next_ns(start)
        is_shown = following is not None and following <= until + 1_000_000
        return Trace(
            group=picked.group,
            topology=self.bundle.topology,
            client=client,
            target=asked,
            lanes=_lanes(self.record),
            rtt_ms=rtt_ms,
            rtt_range_ms=range_ms,
            start_ns=start,
            latency_ms=latency_ns / 1e6,
            until_ms=(until - start) / 1e6,
            next_ms=(following - start) / 1e6 if following is not None and is_shown else None,
            messages=messages,
            bare_acks=bare_acks,
            knows_background=len(self.background.idle) > 0,
            picked=picked.words,
            notes=picked.notes,
        )


def _on_others(lengths: Counter[int], drawn: int) -> tuple[str, ...]:
    """What other requests' critical paths are like, if they are not all alike."""
    others = [
        f"{times} of {count(length, 'hop')}"
        for length, times in sorted(lengths.items())
        if length != drawn
    ]
    if not others:
        return ()
    return (
        f"Of {lengths.total()} requests {lengths[drawn]} have {count(drawn, 'WAN hop')} on their "
        f"critical path; the others: {', '.join(others)}.",
    )


def _lanes(record: Record) -> tuple[Lane, ...]:
    """All nodes, as the topology orders them."""
    sites = (record.sites[place] for place in record.node_site.tolist())
    return tuple(map(Lane, record.nodes, sites))


def _name(group: Group) -> str:
    series, endpoint, placement = group
    return with_placement(f"{display_system(series.system)} {endpoint}", placement)
