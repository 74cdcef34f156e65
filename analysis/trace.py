"""One request, message by message: what crossed the WAN links between its start and its answer.

A trace is of the *typical* request of an endpoint: of those with a critical path as long as most
requests' is, the one with the median latency. Its messages come from the packet record
(docs/how-to/capture.md), its path from `wanlat.analysis.packets.critical_path`, what is background
from `wanlat.analysis.packets.background`; docs/how-to/traces.md shows how to read the picture.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.groups import Group, grouped, timed
from wanlat.analysis.names import count
from wanlat.analysis.packets.background import read_background
from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.record import read_record, steps_of, why_no_record
from wanlat.analysis.trace_messages import Row, messages_within
from wanlat.bundle.documents import EQUAL_WITHIN, LOCAL, REMOTE
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import Run

Trace = Row
"""The document trace.json, with the keys of docs/how-to/traces.md; times are ms since the start."""

MOST_RTT_MS = 100.0
"""Of a study with several RTTs, the greatest up to this is drawn: farther apart shows no more."""
_AFTER_RTTS, _LEAST_AFTER_MS = 1.25, 5.0
"""How long after the answer a trace goes on, unless the next request is sent before."""
_EQUAL_WITHIN_MS = 1.0


def trace_of(bundle: Run, group: Group, *, slowest: bool = False) -> Trace:
    """The trace of the typical request of `group`, or of the slowest one.

    Raises BundleError where there is no packet record, or no request of the group that it covers.
    """
    return _System(bundle, group.series.system).trace(group, slowest)


def traces_of(bundle: Run, groups: Sequence[Group]) -> list[Trace]:
    """The typical requests of `groups`, of those that there is one of: a record may have ended."""
    made = []
    for system in dict.fromkeys(group.series.system for group in groups):
        with suppress(BundleError):
            traced = _System(bundle, system)
            for group in groups:
                if group.series.system == system:
                    with suppress(BundleError):
                        made.append(traced.trace(group))
    return made


def choose(groups: Iterable[Group], placement: str | None) -> Group | None:
    """The one of `groups` to draw: of that placement; remote where none is given, which crosses."""
    by_placement = {group.placement: group for group in groups}
    wanted = [REMOTE, LOCAL, *by_placement] if placement is None else [placement]
    return next((by_placement[one] for one in wanted if one in by_placement), None)


class _System:
    """A system's packets and requests. Raises BundleError where there is no packet record."""

    def __init__(self, bundle: Run, system: str) -> None:
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
        self.groups = grouped(bundle.measured)
        starts = bundle.samples.loc[bundle.samples["system"] == system, "start_ns"]
        self.starts_ns = sorted(int(start) for start in starts.dropna())

    def trace(self, group: Group, slowest: bool = False) -> Trace:
        """The trace of a group. Raises BundleError where it has no request to choose."""
        rows = self._candidates(group)
        paths = critical_paths(self.record, rows, self.background)
        links = paths.loc[paths["round_trips"].notna(), "links"]
        rows = rows.loc[links.index].sort_values("total_ns", kind="stable")
        if rows.empty:
            raise BundleError(
                f"The packet record ended before any request of {self._name(group)} was answered. "
                "Give it more room with --capture-limit."
            )
        hops = links[rows.index].map(len)
        times = Counter(hops.tolist())
        usual, _ = times.most_common(1)[0]
        if slowest:
            chosen, picked = rows.index[-1], f"the slowest of {count(len(rows), 'request')}"
        else:
            alike = rows.index[hops == usual]
            chosen = alike[(len(alike) - 1) // 2]
            picked = f"the median of {count(len(alike), 'request')} with {count(usual, 'WAN hop')}"
            picked += f", of {len(rows)} in all" if len(alike) < len(rows) else ""
        lengths = [f"{n} of {count(hop, 'WAN hop')}" for hop, n in sorted(times.items())]
        notes = [f"Critical paths of {len(rows)} requests: {', '.join(lengths)}."]
        document = self._document(group, rows.loc[chosen], links[chosen])
        return document | {"picked": picked, "notes": notes if len(times) > 1 else []}

    def _candidates(self, group: Group) -> pd.DataFrame:
        """The ok requests that may be drawn: those of the greatest RTT that is not too great."""
        if group not in self.groups:
            there = ", ".join(dict.fromkeys(map(self._name, self.groups)))
            raise BundleError(
                f"{self.bundle.directory} has no requests of {self._name(group)}; there are "
                f"{there}."
            )
        rows = self.groups[group]
        ok = timed(rows)
        ok = ok[ok["start_ns"].notna()]
        passed = [step for step in self.steps if step.verdict == "pass"]
        if passed and "rtt_step" in ok.columns:
            rtts_ms = sorted({step.requested_rtt_ms for step in passed})
            chosen_ms = max([rtt_ms for rtt_ms in rtts_ms if rtt_ms <= MOST_RTT_MS] or rtts_ms[:1])
            numbers = [step.rtt_step for step in passed if step.requested_rtt_ms == chosen_ms]
            ok = ok[ok["rtt_step"].isin(numbers)]
        if ok.empty:
            name = self._name(group)
            raise BundleError(f"No request of {name} succeeded, so there is none to draw.")
        return ok

    def _rtt_ms(self, sample: pd.Series[Any]) -> tuple[float | None, list[float] | None]:
        """The RTT between sites as measured when the request was made, and its extremes over pairs;
        no RTT where links differ too much."""
        number, measured = sample.get("rtt_step"), self.bundle.measured_rtt
        known = self.steps if number is not None and pd.notna(number) else []
        step = next((one for one in known if one.rtt_step == number), None)
        if step is not None and step.measured_rtt_ms is not None:
            median_ms = step.measured_rtt_ms
            pairs = [p.measured_rtt_ms for p in step.pairs if p.measured_rtt_ms is not None]
            low, high = min(pairs, default=median_ms), max(pairs, default=median_ms)
        elif measured is not None:
            median_ms, low, high = measured.median_ms, measured.low_pair_ms, measured.high_pair_ms
        else:
            return None, None
        slack_ms = max(EQUAL_WITHIN * median_ms, _EQUAL_WITHIN_MS)
        is_equal = max(high - median_ms, median_ms - low) <= slack_ms
        return (round(median_ms, 6) if is_equal else None), [low, high]

    def _document(self, group: Group, sample: pd.Series[Any], links: Sequence[int]) -> Trace:
        record, ((system, version), endpoint, placement) = self.record, group
        client, target = str(sample["client"]), sample.get("target")
        target_node = (
            record.target_node or client if target is None or pd.isna(target) else str(target)
        )
        start, latency_ns = int(sample["start_ns"]), int(sample["total_ns"])
        rtt_ms, range_ms = self._rtt_ms(sample)
        requested_ms = 0.0 if pd.isna(sample["rtt_ms"]) else float(sample["rtt_ms"])
        after_ms = max(_AFTER_RTTS * (rtt_ms or requested_ms), _LEAST_AFTER_MS)
        # From the request's start to where its trace ends: what it leaves behind is part of it.
        until = start + latency_ns + round(after_ms * 1e6)
        later = self.starts_ns[bisect_right(self.starts_ns, start) :]
        if later:
            until = max(start + latency_ns, min(until, later[0] - 1))
        is_next_shown = bool(later) and later[0] <= until + 1_000_000
        capture = self.bundle.directory / "capture" / f"{record.system}.pcapng"
        ends, span = (client, target_node), (start, start + latency_ns, until)
        messages = self.bundle.messages_of(record.system)
        messages, bare_acks = messages_within(
            record, self.background, capture, span, links, ends, messages
        )
        chain, ready_ms = [], 0.0
        for hop in sorted((m for m in messages if m["on_chain"]), key=lambda m: int(m["on_chain"])):
            waited_ms = round(hop["entry_ms"] - ready_ms, 6)
            same = ("from", "to", "entry_ms", "departure_ms", "bytes", "label")
            step = {"hop": hop["on_chain"], "waited_ms": waited_ms}
            chain.append(step | {name: hop[name] for name in same})
            ready_ms = hop["departure_ms"] or hop["last_entry_ms"]
        sites = zip(record.nodes, record.node_site.tolist(), strict=True)
        return {
            "system": system,
            "title": self.bundle.titles[system],
            "version": version,
            "topology": self.bundle.topology,
            "endpoint": endpoint,
            "placement": placement,
            "client": client,
            "target": target_node,
            "start_ns": start,
            "latency_ms": latency_ns / 1e6,
            "until_ms": (until - start) / 1e6,
            "next_request_ms": (later[0] - start) / 1e6 if is_next_shown else None,
            "measured_rtt_ms": rtt_ms,
            "rtt_range_ms": range_ms,
            "chain_round_trips": len(chain) / 2,
            "chain": chain,
            "after_chain_ms": round(latency_ns / 1e6 - ready_ms, 6),
            "nodes": [{"node": node, "site": record.sites[site]} for node, site in sites],
            "messages": messages,
            "bare_acknowledgements": bare_acks,
            "knows_background": len(self.background.idle) > 0,
        }

    def _name(self, group: Group) -> str:
        series, endpoint, placement = group
        return with_placement(f"{self.bundle.titles[series.system]} {endpoint}", placement)
