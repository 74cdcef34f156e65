"""An impairment as the arguments of `tc qdisc … netem`.

Source: tc-netem(8) of iproute2 6.1, tc/q_netem.c, and net/sched/sch_netem.c of Linux.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment
from wanlat.topologies.units import Duration

# netem keeps a distribution as 16-bit numbers, of which 8192 is one standard deviation.
_TABLE_UNIT = 8192
_TABLE_LARGEST = 32767 / _TABLE_UNIT

# A netem with a rate puts each packet behind the one before it; without one, jitter reorders.
ORDERING_RATE_BPS = 32_000_000_000

_PACKET_BYTES = 1514
_UNLIMITED_BPS = 10_000_000_000  # the rate for which an unlimited link's queue is sized
_SLACK_PACKETS = 1000

CORRELATION = (
    "`correlation` is left out: what netem calls so is not the correlation between the delays of"
    " packets that follow each other"
)


@dataclass(frozen=True, slots=True)
class Netem:
    """netem's arguments, in order, and the distribution table that they name.

    `table` has the numbers of the file `TABLE.dist` that tc looks for in `TC_LIB_DIR`; it is
    empty when the arguments name none.
    """

    words: tuple[str, ...]
    table: tuple[int, ...] = ()


def netem(impairment: Impairment, table_name: str = "wanlat") -> Netem:
    """Return the arguments that do what `impairment` says, its correlation excepted."""
    words: list[str] = []
    numbers: tuple[int, ...] = ()
    if impairment.delay_ns or impairment.jitter_ns:
        jitter_ns = impairment.jitter_ns
        shape = shapes.shape(impairment.distribution, impairment.table)
        if jitter_ns and shape is not None:
            scale, numbers = _table(shape)
            jitter_ns = round(jitter_ns * scale)
        words += ["delay", _time(impairment.delay_ns)]
        words += [_time(jitter_ns)] if jitter_ns else []
        words += ["distribution", table_name] if numbers else []
    if impairment.bursts is not None:
        words += ["loss", "gemodel", *_chain(impairment.bursts)]
    elif impairment.loss:
        words += ["loss", _percent(impairment.loss)]
    if impairment.duplicate:
        words += ["duplicate", _percent(impairment.duplicate)]
    if impairment.corrupt:
        words += ["corrupt", _percent(impairment.corrupt)]
    if impairment.overtake and impairment.delay_ns:
        words += ["reorder", _percent(impairment.overtake), "gap", "1"]
    rate_bps = rate(impairment)
    if rate_bps is not None:
        words += ["rate", f"{rate_bps}bit"]
    if words:
        words += ["limit", str(queue_limit(impairment))]
    return Netem(tuple(words), numbers)


def rate(impairment: Impairment) -> int | None:
    """Return the rate to give netem, in bits a second: the link's, or one that keeps the order."""
    if impairment.rate_bps is None and impairment.jitter_ns and not impairment.reorder:
        return ORDERING_RATE_BPS
    return impairment.rate_bps


def queue_limit(impairment: Impairment) -> int:
    """Return how many packets netem must be able to hold: all that are on their way, and more."""
    bps = impairment.rate_bps or _UNLIMITED_BPS
    in_flight = bps * impairment.range_ns[1] // (8 * _PACKET_BYTES * 10**9) + 1
    if impairment.rate_bps is None or impairment.queue_bytes is None:
        return in_flight + _SLACK_PACKETS
    return in_flight + max(1, impairment.queue_bytes // _PACKET_BYTES)


def counts_packets(impairment: Impairment) -> bool:
    """Tell whether large segments have to be cut into packets before they meet `impairment`."""
    return bool(
        impairment.loss_probability
        or impairment.duplicate
        or impairment.corrupt
        or impairment.overtake
        or impairment.rate_bps
    )


def uniform_jitter_ns(steps: Iterable[Impairment]) -> int:
    """Return the half-width of an even spread with the standard deviation of a whole path.

    For tools whose netem has no other distribution. Never more than the path's delay.
    """
    path = list(steps)
    jittered = [step for step in path if step.jitter_ns]
    if len(jittered) == 1 and jittered[0].distribution == "uniform":
        return jittered[0].jitter_ns
    deviation = math.sqrt(sum(step.deviation_ns**2 for step in jittered))
    return min(round(deviation * math.sqrt(3)), sum(step.delay_ns for step in path))


def _time(ns: int) -> str:
    return str(Duration(ns))


def _percent(part: float) -> str:
    return f"{part * 100:.10g}%"


def _chain(bursts: GilbertElliott) -> list[str]:
    return [_percent(part) for part in (bursts.p, bursts.r, 1 - bursts.h, 1 - bursts.k)]


def _table(shape: tuple[float, ...]) -> tuple[float, tuple[int, ...]]:
    """Return by what the jitter grows and the table shrinks, so that the table fits 16 bits."""
    scale = max(1.0, max(-shape[0], shape[-1]) / _TABLE_LARGEST)
    return scale, tuple(round(value / scale * _TABLE_UNIT) for value in shape)
