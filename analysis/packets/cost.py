"""WAN bytes and packets that one request costs, with all that follows it.

A response is not the end of what a request sends: slower replicas are still written to, what came
last is confirmed up to 40 ms later, and all of that crosses while the next request is under way. So
the record is cut where requests start, and the totals are held against who asked:

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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.bundle import MEASURED_PHASE, Series
from wanlat.analysis.packets.acknowledged import since_ns
from wanlat.analysis.packets.background import totals
from wanlat.analysis.packets.rtts import counting
from wanlat.analysis.summary import Group

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from wanlat.analysis.packets.background import Background
    from wanlat.analysis.packets.record import Record

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Values = NDArray[np.float64]

Interval = tuple[float, float]

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
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Cost:
    """Mean of one request, over `n` of them, on all WAN links together.

    Bytes are those on the wire with Ethernet headers; packets are counted as they cross, not as
    they are offloaded. Retransmissions and acknowledgements are among them, background is not.
    """

    n: int
    wan_bytes: float
    wan_bytes_ci95: Interval
    wan_packets: float
    wan_packets_ci95: Interval


@dataclass(frozen=True)
class _Block:
    """Requests one after another, by the places of their groups; the last is the long one."""

    begin_ns: int
    end_ns: int
    groups: tuple[int, ...]
    counts: bool


def costs(
    record: Record,
    samples: pd.DataFrame,
    background: Background | None = None,
    seed: int | Sequence[int] = 0,
) -> dict[Group, Cost]:
    """What a request of each group costs, at the RTTs that count (`wanlat.analysis.packets.rtts`).

    `samples` are all of the record's system, of every phase: the order of requests matters.
    Groups of which too few were asked are left out.
    """
    import numpy as np

    rows = samples[samples["start_ns"].notna().to_numpy() & counting(samples)]
    rows = rows.sort_values("start_ns", kind="stable")
    if rows.empty:
        return {}
    names, group = _groups(rows)
    sequences = _sequences(record, rows, group)
    design, spans = _design(sequences, len(names))
    lengths_s = _seconds(spans)
    if not len(design):
        return {}
    kept = np.ones(len(record), dtype=bool) if background is None else ~background.packets
    idle = np.zeros((0, 2), np.int64) if background is None else background.idle
    idle = idle[_before_what_counts(idle, samples)]
    when = since_ns(record)
    order = np.argsort(when, kind="stable")
    rng = np.random.default_rng(seed)
    figures = {}
    for what, of_packet in (("bytes", record.wire_bytes), ("packets", record.segments)):
        values = (of_packet * kept)[order]
        crossed, in_idle = (totals(when[order], values, some) for some in (spans, idle))
        figures[what] = _fit(design, crossed, lengths_s, in_idle, _seconds(idle), len(names), rng)
    n = design[:, : len(names)].sum(axis=0)
    return {
        name: Cost(
            int(n[place]),
            *(_figure(figures["bytes"], place)),
            *(_figure(figures["packets"], place)),
        )
        for place, name in enumerate(names)
        if name is not None and n[place] >= LEAST_REQUESTS
    }


def _before_what_counts(idle: Ints, samples: pd.DataFrame) -> Bools:
    """Which idle windows come before samples whose RTT counts: peers may speak at its pace."""
    import numpy as np

    known = samples["start_ns"].notna().to_numpy()
    start_ns = samples["start_ns"][known].to_numpy(dtype=np.int64)
    order = np.argsort(start_ns, kind="stable")
    following = np.searchsorted(start_ns[order], idle[:, 1])
    counts = np.r_[counting(samples)[known][order], False]
    chosen = np.asarray(counts[following], dtype=bool)
    return chosen if np.count_nonzero(chosen) >= LEAST_WINDOWS else np.ones(len(idle), dtype=bool)


def _figure(fitted: tuple[Values, Values], place: int) -> tuple[float, Interval]:
    import numpy as np

    value, draws = fitted
    low, high = np.percentile(draws[:, place], [2.5, 97.5])
    return float(value[place]), (float(low), float(high))


def _groups(rows: pd.DataFrame) -> tuple[list[Group | None], Ints]:
    """The groups of the rows, and the place of each row's; those that were not ok are None's."""
    import numpy as np

    names: list[Group | None] = [
        Group(Series(str(system), str(version)), str(endpoint), str(placement))
        if outcome == "ok"
        else None
        for system, version, endpoint, placement, outcome in zip(
            *(rows[name] for name in ("system", "version", "endpoint", "placement", "outcome")),
            strict=True,
        )
    ]
    known = list(dict.fromkeys(names))
    place = {name: number for number, name in enumerate(known)}
    return known, np.array([place[name] for name in names], dtype=np.int64)


def _sequences(record: Record, rows: pd.DataFrame, group: Ints) -> list[list[_Block]]:
    """The blocks of each visit, in order."""
    import numpy as np

    start_ns = rows["start_ns"].to_numpy(dtype=np.int64)
    lasted = rows["elapsed_ns"].fillna(rows["total_ns"]).fillna(0).to_numpy(dtype=np.int64)
    visit = (
        rows["rtt_step"].fillna(-1).to_numpy(dtype=np.int64)
        if "rtt_step" in rows.columns
        else np.zeros(len(rows), dtype=np.int64)
    )
    rtt_ns = rows["rtt_ms"].astype("Float64").fillna(0.0).to_numpy(dtype=np.float64) * _NS_PER_MS
    measured = (rows["phase"] == MEASURED_PHASE).to_numpy(dtype=bool)
    sequences: list[list[_Block]] = []
    for one in dict.fromkeys(visit.tolist()):
        places = np.flatnonzero(visit == one)
        blocks: list[_Block] = []
        begin = 0
        # The last request's window has no end, so it ends no block.
        for number in range(len(places) - 1):
            place = places[number]
            end_ns = int(start_ns[places[number + 1]])
            begin_ns = int(start_ns[places[begin]])
            is_long = lasted[place] >= _LONG * rtt_ns[place]
            if not is_long and end_ns - begin_ns < _LONGEST_BLOCK * rtt_ns[place]:
                continue
            members = places[begin : number + 1]
            in_record = record.ended_ns is None or end_ns <= record.ended_ns
            blocks.append(
                _Block(
                    begin_ns,
                    end_ns,
                    tuple(group[members].tolist()),
                    bool(measured[members].all()) and in_record,
                )
            )
            begin = number + 1
        sequences.append(blocks)
    return sequences


def _seconds(spans: Ints) -> Values:
    import numpy as np

    return np.asarray((spans[:, 1] - spans[:, 0]) / 1e9)


def _design(sequences: list[list[_Block]], groups: int) -> tuple[Values, Ints]:
    """The regressors of each block that counts, shape (blocks, 3 × groups), and its span.

    First how many requests of each group it has; then, for what is left to the next block and to
    the one after, 1 for the group that left it here and -1 for the one that leaves it to others.
    """
    import numpy as np

    rows, spans = [], []
    for blocks in sequences:
        for number, block in enumerate(blocks):
            if not block.counts:
                continue
            row = np.zeros(3 * groups)
            for member in block.groups:
                row[member] += 1
            for lag in (1, 2):
                row[lag * groups + block.groups[-1]] -= 1
                if number >= lag:
                    row[lag * groups + blocks[number - lag].groups[-1]] += 1
            rows.append(row)
            spans.append((block.begin_ns, block.end_ns))
    return (
        np.array(rows).reshape(-1, 3 * groups),
        np.array(spans, dtype=np.int64).reshape(-1, 2),
    )


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
    import numpy as np

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
    import numpy as np

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
    import numpy as np

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
        scale = np.full(len(total), least)
        for group in range(groups):
            if has[:, group].any():
                usual = float(np.percentile(off[has[:, group]], 90))
                scale = np.where(has[:, group], np.maximum(scale, usual), scale)
        weights = np.minimum(1.0, _FAR_OFF * scale / np.maximum(off, least))
    return weights
