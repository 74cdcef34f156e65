"""WAN bytes and packets that one request costs, with all that follows it.

A response is not the end of what a request sends: slower replicas are still written to, what came
last is confirmed up to 40 ms later, and all of that crosses while the next request is under way. So
the record is cut where requests start, and the totals are compared with which requests there were:

    total of a block = what its requests cost
                     - what the last of them leaves to the next block, and to the one after
                     + what the last of the two blocks before left to this one
                     + background that cannot be told from it, at the rate of the idle windows

Before, what can be told to be background (`analysis.packets.background`) is taken out, message by
message, with its acknowledgements: it comes in bursts, so that subtracting a rate would leave most
of its noise. Of the rest of what crosses in idle windows, at the same RTTs, the rate is subtracted.

A bare acknowledgement counts from the instant at which what it confirms was sent.

A block ends where a request started after one that lasted at least a round trip, by which time
what the ones before it left behind has crossed. What each endpoint costs, and what it leaves to
the next blocks, is found by least squares: requests come in shuffled order, so every endpoint
follows every other. (What all endpoints leave alike cannot be told, and does not matter: as much
comes in as goes out.) A block that is far off, because of something that is not in the idle
windows, is given less weight; nothing is dropped. The 95 % intervals are bootstrapped over blocks
and idle windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.bundle import MEASURED_PHASE, Series
from wanlat.analysis.groups import Group
from wanlat.analysis.packets.background import Background, seconds, totals
from wanlat.analysis.packets.messages import confirmations
from wanlat.analysis.packets.record import Record
from wanlat.analysis.packets.streams import Bools, Ints

Values = NDArray[np.float64]

LEAST_RTT_MS = 20.0
"""Below it no request counts: a link takes less than 10 ms, which is what a message that is tied to
the one before may take to leave (`wanlat.analysis.packets.critical_path.LOOSE_NS`)."""
LEAST_REQUESTS = 5
"""Of a group: with fewer, no cost is given."""
LEAST_WINDOWS = 5
"""Idle windows at RTTs that count: with fewer, those at other RTTs are taken too."""
RESAMPLES = 999
_LONG = 0.9
"""Of an RTT: a request that lasted so long outlasts what the ones before it left behind."""
_LONGEST_BLOCK = 20
"""RTTs after which a block ends even without a long request."""
_FAR_OFF = 5.0
"""Times the error that nine of ten blocks stay below."""
_RIDGE = 1e-6
_KEYS = ["system", "version", "endpoint", "placement"]


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
    samples = samples[samples["start_ns"].notna().to_numpy()]
    samples = samples.sort_values("start_ns", kind="stable")
    counts = counting(samples)
    if not counts.any():
        return {}
    spans, design, names = _blocks(record, samples[counts])
    if not len(spans):
        return {}
    kept = np.ones(len(record), dtype=bool) if background is None else ~background.packets
    idle = np.zeros((0, 2), np.int64) if background is None else background.idle
    idle = idle[_before_what_counts(idle, samples, counts)]
    when = _since_ns(record)
    order = np.argsort(when, kind="stable")
    rng = np.random.default_rng(seed)
    found = []
    for each in (record.wire_bytes, record.segments):
        values = (each * kept)[order]
        crossed, in_idle = (totals(when[order], values, some) for some in (spans, idle))
        found.append(_fit(design, crossed, seconds(spans), in_idle, seconds(idle), len(names), rng))
    n = design[:, : len(names)].sum(axis=0)
    return {
        name: Cost(int(n[place]), *_figure(found[0], place), *_figure(found[1], place))
        for place, name in enumerate(names)
        if name is not None and n[place] >= LEAST_REQUESTS
    }


def _since_ns(record: Record) -> Ints:
    """When each packet entered a link; of a bare acknowledgement, when what it confirms did."""
    result = record.entry_ns.copy()
    for data, acks, before, upto in confirmations(record):
        new = record.is_bare_ack[acks] & (upto > before)
        result[acks[new]] = record.entry_ns[data][upto[new] - 1]
    return result


def _before_what_counts(idle: Ints, samples: pd.DataFrame, counts: Bools) -> Bools:
    """Which idle windows come before samples whose RTT counts: peers may speak at its pace."""
    following = np.searchsorted(samples["start_ns"].to_numpy(dtype=np.int64), idle[:, 1])
    chosen = np.r_[counts, False][following]
    return chosen if np.count_nonzero(chosen) >= LEAST_WINDOWS else np.ones(len(idle), dtype=bool)


def _figure(fitted: tuple[Values, Values], place: int) -> tuple[float, tuple[float, float]]:
    value, draws = fitted
    low, high = np.percentile(draws[:, place], [2.5, 97.5])
    return float(value[place]), (float(low), float(high))


def _blocks(record: Record, rows: pd.DataFrame) -> tuple[Ints, Values, list[Group | None]]:
    """The blocks that count as spans, their regressors, (blocks, 3 × groups), and the groups.

    First how many requests of each group a block has; then, for what is left to the next block and
    to the one after, 1 for the group that left it here and -1 for the one that leaves it to others.
    Requests that were not ok are a group of their own, None.
    """
    found: list[Group | None] = [
        Group(Series(system, version), endpoint, placement) if ok else None
        for system, version, endpoint, placement, ok in zip(
            *(rows[key].astype(str) for key in _KEYS), rows["outcome"] == "ok", strict=True
        )
    ]
    names = list(dict.fromkeys(found))
    group = np.array([names.index(one) for one in found])
    start_ns = rows["start_ns"].to_numpy(dtype=np.int64)
    step = np.zeros(len(rows), np.int64)
    if "rtt_step" in rows.columns:
        step = np.asarray(rows["rtt_step"].fillna(-1), dtype=np.int64)
    begin = np.flatnonzero(_begins_block(rows, start_ns, step))
    last = np.r_[begin[1:], len(rows)] - 1
    block = np.repeat(np.arange(len(begin)), last + 1 - begin)
    has = np.zeros((len(begin), len(names)))
    np.add.at(has, (block, group), 1)
    leaves = np.eye(len(names))[group[last]]
    design = [has]
    for lag in (1, 2):
        left = np.zeros_like(leaves)
        left[lag:] = leaves[:-lag] * (step[begin[lag:]] == step[begin[:-lag]])[:, None]
        design.append(left - leaves)
    # The last block of an RTT step has no end, since its last request has none.
    spans = np.stack([start_ns[begin[:-1]], start_ns[begin[1:]]], axis=1)
    counts = step[begin[:-1]] == step[begin[1:]]
    counts &= np.logical_and.reduceat((rows["phase"] == MEASURED_PHASE).to_numpy(), begin)[:-1]
    if record.ended_ns is not None:
        counts &= spans[:, 1] <= record.ended_ns
    return spans[counts], np.hstack(design)[:-1][counts], names


def _begins_block(rows: pd.DataFrame, start_ns: Ints, step: Ints) -> Bools:
    """Which requests begin a block; shape (rows,)."""
    rtt_ns = rows["rtt_ms"].astype("Float64").fillna(0.0).to_numpy(dtype=np.float64) * 1e6
    lasted = rows["elapsed_ns"].fillna(rows["total_ns"]).fillna(0).to_numpy(dtype=np.int64)
    begins = np.r_[True, (lasted >= _LONG * rtt_ns)[:-1] | (step[1:] != step[:-1])]
    since_ns = start_ns[0]
    for place in range(1, len(rows)):
        begins[place] |= start_ns[place] - since_ns >= _LONGEST_BLOCK * rtt_ns[place - 1]
        since_ns = start_ns[place] if begins[place] else since_ns
    return np.asarray(begins, dtype=bool)


def _fit(
    design: Values,
    crossed: Values,
    lengths_s: Values,
    in_idle: Values,
    idle_s: Values,
    groups: int,
    rng: np.random.Generator,
) -> tuple[Values, Values]:
    """What each group costs, shape (groups,), and bootstrap draws of it, (RESAMPLES, groups)."""
    rate = float(in_idle.sum() / idle_s.sum()) if len(in_idle) else 0.0
    total = crossed - rate * lengths_s
    weights = _weights(design, total, groups)
    value = _solved(design, total[None, :], weights[None, :])[0, :groups]

    picked = rng.integers(0, len(total), (RESAMPLES, len(total)))
    times = np.stack([np.bincount(one, minlength=len(total)) for one in picked])
    rates = np.zeros(RESAMPLES)
    if len(in_idle):
        windows = rng.integers(0, len(in_idle), (RESAMPLES, len(in_idle)))
        rates = in_idle[windows].sum(axis=1) / idle_s[windows].sum(axis=1)
    totals_drawn = crossed[None, :] - rates[:, None] * lengths_s[None, :]
    return value, _solved(design, totals_drawn, weights * times)[:, :groups]


def _solved(design: Values, total: Values, weights: Values) -> Values:
    """Weighted least squares, one solution a row of `total` and `weights`, (draws, columns).

    What cannot be told, such as what all leave to the next block alike, is drawn to 0.
    """
    columns = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    normal = (weights @ products).reshape(-1, columns, columns)
    normal += _RIDGE * np.eye(columns)
    right = (weights * total) @ design
    return np.asarray(np.linalg.solve(normal, right[:, :, None])[:, :, 0])


def _weights(design: Values, total: Values, groups: int) -> Values:
    """Weights after Huber (1964), with a scale of each group's own: one may vary and another not.

    A group that comes in two kinds keeps both: only what is far beyond nine tenths of the errors
    that its blocks have counts for less.
    """
    has = design[:, :groups] > 0
    least = max(1.0, 0.01 * float(np.median(np.abs(total))))

    def errors(weights: Values) -> Values:
        fitted = design @ _solved(design, total[None, :], weights[None, :])[0]
        return np.asarray(np.abs(total - fitted))

    weights = np.ones(len(total))
    for _ in range(20):  # least absolute errors first: one block far off would bend squares
        weights = least / np.maximum(errors(weights), least)
    for _ in range(3):
        off = errors(weights)
        usual = [np.percentile(off[of], 90) if of.any() else 0.0 for of in has.T]
        scale = np.maximum(least, (has * usual).max(axis=1))
        weights = np.minimum(1.0, _FAR_OFF * scale / np.maximum(off, least))
    return weights
