"""What an impairment is in sch_netem's own numbers, and what of it sch_netem cannot do.

Source of every remark on netem: net/sched/sch_netem.c and include/uapi/linux/pkt_sched.h of
Linux 6.1 to 6.18; functions are named where they matter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache, lru_cache

from wanlat.emulator.backends.netem_options import Bursts, NetemOptions
from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment

_MTU_BYTES = 1514
_UNLIMITED_BPS = 10_000_000_000  # the rate for which an unlimited link's queue is sized
_SLACK_PACKETS = 1000
_LARGEST_LIMIT = 0x7FFFFFFF

# With a rate, netem places each packet behind the last one queued (netem_enqueue()); without,
# a smaller draw or a change to a shorter delay lets packets overtake. The rate that keeps the
# order where none is asked for is so high that 64 KiB take less than a nanosecond: equal due
# times stay in the order of arrival (tfifo_enqueue()).
ORDERING_RATE_BYTES = 10**15

# A table holds draws as int16 in 1/8192 of the jitter: within ±4 of it (NETEM_DIST_SCALE).
_SCALE = 8192
_LARGEST_ENTRY = 0x7FFF
# tabledist() takes the jitter as s32; netem_change() cuts a larger one off without a word.
_LARGEST_JITTER_NS = 0x7FFFFFFF
_CERTAIN = 0xFFFFFFFF


def options(impairment: Impairment, *, limit: int | None = None) -> NetemOptions:
    """Return the parameters that make netem do what ``impairment`` asks for.

    It must be one that netem can do: `unsupported` is None for it. ``limit`` of the queue is what
    `queue_limit` says, unless given.
    """
    jitter_ns, table = _draws(impairment)
    loss, duplicate = _loss_and_duplicate(impairment)
    bursts = impairment.bursts
    return NetemOptions(
        latency_ns=impairment.delay_ns,
        jitter_ns=jitter_ns,
        table=table,
        limit=queue_limit(impairment) if limit is None else limit,
        loss=_part(loss),
        bursts=None if bursts is None else _chain(bursts),
        gap=1 if impairment.overtake else 0,
        reorder=_part(impairment.overtake),
        duplicate=_part(duplicate),
        corrupt=_part(impairment.corrupt),
        rate_bytes=_rate_bytes(impairment),
    )


def unsupported(impairment: Impairment) -> str | None:
    """Say what of an impairment netem does not do; None when it does all of it."""
    return next(_lacks(impairment), None)


def _lacks(impairment: Impairment) -> Iterator[str]:
    jitter_ns = impairment.jitter_ns
    if jitter_ns and impairment.correlation:
        yield (
            "correlated jitter (its own has no effect: tabledist() takes the remainder of the "
            "correlated number, which is as random as ever)"
        )
    if jitter_ns and impairment.reorder and impairment.rate_bps is not None:
        yield "jitter that reorders on a link with a rate (its rate keeps the order)"
    if jitter_ns * _reach(impairment) > _LARGEST_REACH_NS:
        yield f"jitter that reaches further than {_LARGEST_REACH_NS / 1e9:.1f} s from the mean"
    if impairment.duplicate and impairment.bursts is not None:
        yield "duplication with loss in bursts (a copy takes a step of the bursts' chain)"
    elif _compensated(impairment.loss, impairment.duplicate) is None:
        yield "so much duplication with so much loss (it tries each copy for loss again)"


def queue_limit(impairment: Impairment, *, held_ns: int = 0) -> int:
    """Return how many packets netem must be able to hold.

    netem's queue holds every delayed packet, so its limit has to cover rate × delay; its default
    of 1000 packets silently drops from 120 Mbit/s on at 100 ms. The delay is the longest that
    can be drawn, since those behind such a packet wait for it. With a rate, the waiting room of
    ``queue_bytes`` comes on top, counted in full packets: netem knows no bytes. ``held_ns`` is
    how long a packet may be held by what waits before it, if that is longer.
    """
    rate_bps = impairment.rate_bps or _UNLIMITED_BPS
    held_ns = max(held_ns, impairment.range_ns[1])
    in_flight = rate_bps * held_ns // (8 * _MTU_BYTES * 1_000_000_000) + 1
    if impairment.rate_bps is None:
        wanted = round(in_flight * (1 + impairment.duplicate)) + _SLACK_PACKETS
    elif impairment.queue_bytes is None:
        wanted = in_flight + _SLACK_PACKETS
    else:
        wanted = in_flight + max(1, impairment.queue_bytes // _MTU_BYTES)
    return min(wanted, _LARGEST_LIMIT)


# -- jitter -----------------------------------------------------------------------------------

_LARGEST_REACH_NS = _LARGEST_JITTER_NS * _LARGEST_ENTRY // _SCALE


def _draws(impairment: Impairment) -> tuple[int, bytes]:
    """Return the jitter to send and its table.

    A draw may lie further from the mean than a table's ±4 jitters, so the jitter is sent k times
    as large and the table divided by k.
    """
    if impairment.jitter_ns == 0:
        return 0, b""
    least = _reach(impairment) * _SCALE / _LARGEST_ENTRY
    factor = max(1.0, least)
    if impairment.jitter_ns * factor > _LARGEST_JITTER_NS:
        factor = least
    return round(impairment.jitter_ns * factor), _table(
        impairment.distribution, impairment.table, factor
    )


def _reach(impairment: Impairment) -> float:
    """Return how far a draw may lie from the mean, in units of the jitter."""
    low, high = shapes.extent(impairment.distribution, impairment.table)
    return max(abs(low), abs(high))


@lru_cache(maxsize=64)
def _table(distribution: str, table: tuple[float, ...], factor: float) -> bytes:
    quantiles = shapes.shape(distribution, table)
    draws = _EVEN if quantiles is None else quantiles
    entries = [
        max(-_LARGEST_ENTRY, min(_LARGEST_ENTRY, round(draw / factor * _SCALE))) for draw in draws
    ]
    return struct.pack(f"={len(entries)}h", *entries)


# netem's own even distribution is the remainder of a 32-bit number by 2 × jitter (tabledist()),
# which makes some delays likelier than others: by a quarter at 500 ms. A table of equal steps has
# no such flaw, and 8192 of them are exact in units of 1/8192.
_EVEN = tuple((2 * step + 1) / _SCALE - 1 for step in range(_SCALE))
EVEN_TABLE = _table("uniform", (), 1.0)


# -- loss, duplication, rate ------------------------------------------------------------------


def _part(probability: float) -> int:
    return round(probability * _CERTAIN)


def _chain(bursts: GilbertElliott) -> Bursts:
    return _part(bursts.p), _part(bursts.r), _part(bursts.h), _part(1 - bursts.k)


def waiting_ns(impairment: Impairment, packets: int) -> int:
    """Return how long it may take at most until so many packets in the queue have left."""
    if impairment.rate_bps is None:
        return impairment.range_ns[1]
    return impairment.range_ns[1] + packets * 8 * _MTU_BYTES * 1_000_000_000 // impairment.rate_bps


def _loss_and_duplicate(impairment: Impairment) -> tuple[float, float]:
    if impairment.bursts is not None:
        return 0.0, 0.0
    found = _compensated(impairment.loss, impairment.duplicate)
    return (impairment.loss, impairment.duplicate) if found is None else found


@cache
def _compensated(loss: float, duplicate: float) -> tuple[float, float] | None:
    """Return the probabilities to send so that those asked for come out; None: there are none.

    netem_enqueue() first chooses whether to duplicate, then whether to drop; a packet chosen for
    both passes once. The copy enters anew and may be lost. With L and D sent, no copy arrives of
    L (1-D), two of D (1-L)². Asked for: loss, and duplicate of those that are not lost.
    """
    if not (loss and duplicate):
        return loss, duplicate
    if loss == 1:
        return 1.0, 0.0
    sent_loss, sent_duplicate = loss, duplicate
    for _ in range(200):
        if sent_duplicate >= 1 or sent_loss >= 1:
            return None
        following = loss / (1 - sent_duplicate), duplicate * (1 - loss) / (1 - sent_loss) ** 2
        if max(abs(following[0] - sent_loss), abs(following[1] - sent_duplicate)) < 1e-12:
            return following
        sent_loss, sent_duplicate = following
    return None


def _rate_bytes(impairment: Impairment) -> int:
    if impairment.rate_bps is not None:
        return max(1, impairment.rate_bps // 8)
    return 0 if impairment.reorder and impairment.jitter_ns else ORDERING_RATE_BYTES
