"""All evidence of a bundle's packet record on one system's requests, and what of it is kept.

A packet record takes megabytes, and what a report needs of it is one number a request and a few an
endpoint. `wanlat report` writes them beside the record, into chains.json, and reads them where the
record is gone. Besides critical paths that is the cost: WAN bytes and packets of one request with
all that follows it.

Slower replicas and delayed acknowledgements cross while the next request is under way. So the
record is cut into blocks, each ending where a request started after one that lasted nearly a round
trip, and the totals of blocks are compared with which requests they have:

    total of a block = what its requests cost
                     - what the last of them leaves to the next block, and to the one after
                     + what the last of the two blocks before left to this one

Background (`analysis.packets.background`) is taken out, message by message; of the rest of what
crosses in idle windows, the rate. Requests come in shuffled order, so every endpoint follows every
other, and least squares separate them. (What all endpoints leave alike is not identified, and does
not matter: as much comes in as goes out.) Intervals are bootstrapped over blocks and idle windows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import TypeAdapter

from wanlat.analysis.groups import Group, grouped
from wanlat.analysis.packets.background import Background, read_background
from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.record import (
    FILE,
    Bools,
    Ints,
    Record,
    read_record,
    steps_of,
    why_no_record,
)
from wanlat.bundle import beneath
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_json
from wanlat.bundle.run import MEASURED_PHASE, Run, Series

NAME = "chains.json"


class Share(NamedTuple):
    """The part of a group's requests with a critical path of so many round trips."""

    round_trips: float
    share: float


@dataclass(frozen=True)
class GroupEvidence:
    """Of one group of requests: `n` of them have a critical path at an RTT that counts.

    `chains` has the most frequent first; that is `chain_round_trips`, None without any (`why`).
    """

    chain_round_trips: float | None
    chains: tuple[Share, ...]
    n: int
    cost: Cost | None
    why: str | None


@dataclass(frozen=True)
class PacketEvidence:
    """Of one system. `trips` has, by the index of the bundle's samples, the round trips of each
    measured request's critical path; NaN where it is not known or its RTT does not count.

    `why` is why there is nothing at all, in a sentence.
    """

    why: str | None
    trips: pd.Series[float] | None
    groups: Mapping[Group, GroupEvidence]


_KEPT = TypeAdapter(GroupEvidence)


def evidence_of(bundle: Run, system: str) -> PacketEvidence:
    """Read what the packet record has of a system. Raises BundleError where it is damaged.

    Where the record was thrown away, it is what an earlier report found in it.
    """
    kept: dict[str, PacketEvidence] = bundle.derived.setdefault("packets", {})
    if system not in kept:
        earlier = (
            _read_kept(bundle, system) if not beneath.is_file(bundle.directory / FILE) else None
        )
        kept[system] = earlier or _from_record(bundle, system)
    return kept[system]


def to_keep(directory: Path, derived: Mapping[str, Any]) -> str | None:
    """The text of chains.json of the bundle in `directory`, from what was `derived` of it.

    None where there is no evidence of packets, or it came from there.
    """
    evidence: Mapping[str, PacketEvidence] = derived.get("packets", {})
    systems = {
        system: {
            "rows": [int(row) for row in packets.trips.index],
            "round_trips": [None if pd.isna(trips) else trips for trips in packets.trips.tolist()],
            "groups": [
                {"version": series.version, "endpoint": endpoint, "placement": placement}
                | _KEPT.dump_python(of_group, mode="json")
                for (series, endpoint, placement), of_group in packets.groups.items()
            ],
        }
        for system, packets in evidence.items()
        if packets.trips is not None
    }
    if not systems or not beneath.is_file(directory / FILE):
        return None
    return json.dumps({"systems": systems}, separators=(",", ":"), allow_nan=False) + "\n"


def _read_kept(bundle: Run, system: str) -> PacketEvidence | None:
    """What an earlier report found of a system; None where it found nothing, or is of other
    samples. Raises BundleError where the file is damaged.
    """
    path = bundle.directory / NAME
    if not beneath.is_file(path):
        return None
    try:
        kept = read_json(path)["systems"].get(system)
        if kept is None:
            return None
        trips = pd.Series(kept["round_trips"], index=list(map(int, kept["rows"])), dtype="float64")
        groups = {}
        for one in kept["groups"]:
            series = Series(system, one["version"])
            groups[Group(series, one["endpoint"], one["placement"])] = _KEPT.validate_python(one)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{path} is damaged ({error!r}). Remove it: the slopes can be reported without."
        ) from error
    is_same = trips.index.isin(bundle.samples.index).all()
    return PacketEvidence(None, trips, groups) if is_same else None


def _from_record(bundle: Run, system: str) -> PacketEvidence:
    why = why_no_record(bundle, system)
    record = read_record(bundle, system) if why is None else None
    if record is None:
        return PacketEvidence(why or f"The packet record has nothing of {system}.", None, {})
    background = read_background(bundle, record)
    samples = bundle.samples[bundle.samples["system"] == system]
    if "rtt_step" in samples.columns:
        failed = [one.rtt_step for one in steps_of(bundle, system) if one.verdict != "pass"]
        samples = samples[~samples["rtt_step"].isin(failed)]
    rows = samples[samples["phase"] == MEASURED_PHASE]
    trips = critical_paths(record, rows, background)["round_trips"].where(counting(rows))
    prices = costs(record, samples, background, [abs(bundle.seed), 6])
    groups = {
        group: _of_group(trips[part.index].dropna(), prices.get(group), system)
        for group, part in grouped(rows).items()
    }
    return PacketEvidence(None, trips, groups)


def _of_group(trips: pd.Series[float], cost: Cost | None, system: str) -> GroupEvidence:
    if trips.empty:
        why = (
            f"No request that was acknowledged, at an RTT of {LEAST_RTT_MS:g} ms or more, lies "
            f"within the packet record of {system}."
        )
        return GroupEvidence(None, (), 0, cost, why)
    # Of equally frequent ones the shorter: it is the safer.
    shares = [Share(value, n / len(trips)) for value, n in Counter(trips.tolist()).items()]
    chains = tuple(sorted(shares, key=lambda one: (-one.share, one.round_trips)))
    return GroupEvidence(chains[0].round_trips, chains, len(trips), cost, None)


Values = NDArray[np.float64]

LEAST_RTT_MS = 20.0
"""Below it no request counts: a link takes less than 10 ms, which is what a message that is tied to
the one before may take to leave (`wanlat.analysis.packets.critical_path.LOOSE_NS`)."""
LEAST_REQUESTS = 5
"""Of a group: with fewer, no cost is given."""
RESAMPLES = 999
_LONG = 0.9
"""RTTs: a request that lasted so long outlasts what the ones before it left behind."""
_RIDGE = 1e-6


class Cost(NamedTuple):
    """Mean of one request, over `n` of them, on all WAN links together, with 95 % intervals.

    Bytes are those on the wire with Ethernet headers; packets are counted as they cross, not as
    they are offloaded. Retransmissions and acknowledgements are among them, background is not.
    """

    n: int
    wan_bytes: float
    wan_bytes_ci95: tuple[float, float]
    wan_packets: float
    wan_packets_ci95: tuple[float, float]


def counting(samples: pd.DataFrame) -> Bools:
    """Which of `samples`, all of one system, were taken at an RTT that counts; shape (samples,).

    Two messages follow each other by chance as easily as by cause where a link takes less time
    than a store takes to think. So the samples at the greatest requested RTT count, and those at
    half of it and more. Where the RTT was not recorded nothing is known against them.
    """
    rtt_ms = samples.get("rtt_ms", pd.Series(np.nan, index=samples.index)).astype("Float64")
    if rtt_ms.isna().all():
        return np.ones(len(samples), dtype=bool)
    least_ms = max(LEAST_RTT_MS, float(rtt_ms.max()) / 2)
    return (rtt_ms >= least_ms).fillna(False).to_numpy(dtype=bool)


def costs(
    record: Record,
    samples: pd.DataFrame,
    background: Background | None = None,
    seed: int | Sequence[int] = 0,
) -> dict[Group, Cost]:
    """What a request of each group costs, at the RTTs that count (`counting`).

    `samples` are all of the record's system, of every phase: the order of requests matters.
    Groups of which too few were sent are left out.
    """
    samples = samples[samples["start_ns"].notna() & counting(samples)].sort_values("start_ns")
    groups = grouped(samples[samples["outcome"] == "ok"])
    spans, design = _blocks(record, samples, [rows.index for rows in groups.values()])
    if not len(spans):
        return {}
    kept = np.ones(len(record), bool) if background is None else ~background.packets
    idle = np.zeros((0, 2), np.int64) if background is None else background.idle
    values = np.stack([record.ints(name) * kept for name in ("wire_bytes", "segments")], axis=1)
    upto = np.r_[np.zeros((1, 2), np.int64), np.cumsum(values, axis=0)]
    crossed, in_idle = (
        np.diff(upto[np.searchsorted(record.ints("entry_ns"), windows)], axis=1)[:, 0]
        for windows in (spans, idle)
    )
    rng = np.random.default_rng(seed)
    fitted = _fit(design, crossed, np.diff(spans), in_idle, np.diff(idle), rng)
    known = {}
    for group, n, (value, low, high) in zip(groups, design.sum(axis=0), fitted, strict=False):
        if n >= LEAST_REQUESTS:
            wire, packets = zip(low.tolist(), high.tolist(), strict=True)
            known[group] = Cost(int(n), float(value[0]), wire, float(value[1]), packets)
    return known


def _blocks(
    record: Record, rows: pd.DataFrame, groups: Sequence[pd.Index[Any]]
) -> tuple[Ints, Values]:
    """The blocks that count as spans (blocks, 2), and their regressors (blocks, regressors).

    First how many requests of each group a block has, those that were not ok as a last group; then,
    for what is left to the next block and to the one after, 1 for the group that left it here, and
    -1 for the one that leaves it to others.
    """
    number = pd.Series(len(groups), rows.index)
    for place, index in enumerate(groups):
        number[index] = place
    rows = rows.reset_index(drop=True)
    one_hot = pd.DataFrame(np.eye(len(groups) + 1)[number.to_numpy()])
    start_ns = rows["start_ns"].astype(np.int64)
    step = rows["rtt_step"].fillna(-1) if "rtt_step" in rows.columns else start_ns * 0
    rtt_ns = rows["rtt_ms"].astype("Float64").fillna(0.0).astype(float) * 1e6
    lasted_ns = rows["elapsed_ns"].fillna(rows["total_ns"]).fillna(0)
    is_over = (lasted_ns >= _LONG * rtt_ns).astype(bool).shift(fill_value=True)
    block = (is_over | (step != step.shift())).cumsum()
    has, leaves = one_hot.groupby(block).sum(), one_hot.groupby(block).last()
    in_step, begin_ns = step.groupby(block).first(), start_ns.groupby(block).first()
    lags = [leaves.groupby(in_step).shift(lag).fillna(0.0) - leaves for lag in (1, 2)]
    # The last block of an RTT step has no end, since its last request has none.
    end_ns = begin_ns.groupby(in_step).shift(-1)
    counts = end_ns.notna() & (rows["phase"] == MEASURED_PHASE).groupby(block).all()
    if record.ended_ns is not None:
        counts &= end_ns <= record.ended_ns
    spans = np.stack([begin_ns[counts], end_ns[counts].astype(np.int64)], axis=1)
    return spans, np.hstack([has, *lags])[counts]


def _fit(
    design: Values, crossed: Ints, lasted: Ints, in_idle: Ints, idle: Ints, rng: np.random.Generator
) -> Values:
    """Solve for bytes and packets at once: value, low and high end, (regressors, 3, 2)."""

    def solved(times: Ints, windows: Ints) -> Values:
        rate = in_idle[windows].sum(axis=0) / max(idle[windows].sum(), 1)
        weighted = design * times[:, None]
        # What cannot be told, such as what all leave to the next block alike, is drawn to 0.
        normal = weighted.T @ design + _RIDGE * np.eye(design.shape[1])
        return np.asarray(np.linalg.solve(normal, weighted.T @ (crossed - rate * lasted)))

    blocks, windows = len(design), len(idle)
    value = solved(np.ones(blocks, np.int64), np.arange(windows))
    draws = []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(0, blocks, blocks), minlength=blocks)
        draws.append(solved(times, rng.integers(0, max(windows, 1), windows)))
    return np.stack([value, *np.percentile(draws, [2.5, 97.5], axis=0)], axis=1)
