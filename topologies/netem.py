"""An impairment as sch_netem does it: one translation, for the backend and for exports.

Source of every remark on netem: net/sched/sch_netem.c and include/uapi/linux/pkt_sched.h of
Linux 6.1 to 6.18, where functions are named; tc-netem(8) of iproute2 6.1.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from wanlat.topologies import shapes
from wanlat.topologies.resolve import GilbertElliott, Impairment
from wanlat.topologies.units import Duration

PACKET_BYTES = 1514
_UNLIMITED_BPS = 10_000_000_000  # the rate for which an unlimited link's queue is sized
_SLACK_PACKETS = 1000
_LARGEST_LIMIT = 0x7FFFFFFF

# With a rate, netem places each packet behind the last one queued (netem_enqueue()); without,
# a smaller draw or a change to a shorter delay lets packets overtake. The rate that keeps the
# order where none is asked for is so high that 64 KiB take less than a nanosecond: equal due
# times stay in the order of arrival (tfifo_enqueue()).
ORDERING_RATE_BPS = 8 * 10**15
# Of programs that know netem's rate as 32 bits of bytes a second.
ORDERING_RATE_32_BPS = 32 * 10**9

# A table holds draws as int16 in 1/8192 of the jitter: within ±4 of it (NETEM_DIST_SCALE).
_SCALE = 8192
_LARGEST_ENTRY = 0x7FFF
# tabledist() takes the jitter as s32; netem_change() cuts a larger one off without a word.
_LARGEST_JITTER_NS = 0x7FFFFFFF
_LARGEST_REACH_NS = _LARGEST_JITTER_NS * _LARGEST_ENTRY // _SCALE


@dataclass(frozen=True, slots=True)
class Netem:
    """netem's parameters. Probabilities are from 0 to 1; ``rate_bps`` 0 is none.

    Draws are from ``table``: int16 in 1/8192 of the jitter, in the machine's byte order.
    ``overtake`` is netem's reorder with gap 1; ``limit`` is in packets.
    """

    delay_ns: int = 0
    jitter_ns: int = 0
    table: bytes = b""
    limit: int = 1000
    loss: float = 0.0
    bursts: GilbertElliott | None = None
    overtake: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    rate_bps: int = 0

    @property
    def entries(self) -> tuple[int, ...]:
        """The table's numbers."""
        return tuple(memoryview(self.table).cast("h"))


def netem(impairment: Impairment) -> Netem:
    """Return the parameters that make netem do what ``impairment`` describes.

    Of one that netem cannot do (`unsupported`), they are as near as it gets.
    """
    jitter_ns, table = _draws(impairment)
    loss, duplicate = impairment.loss, impairment.duplicate
    if impairment.bursts is None:
        loss, duplicate = _compensated(loss, duplicate) or (loss, duplicate)
    rate_bps = impairment.rate_bps or 0
    if not rate_bps and not (impairment.reorder and impairment.jitter_ns):
        rate_bps = ORDERING_RATE_BPS
    return Netem(
        delay_ns=impairment.delay_ns,
        jitter_ns=jitter_ns,
        table=table,
        limit=queue_limit(impairment),
        loss=loss if impairment.bursts is None else 0.0,
        bursts=impairment.bursts,
        overtake=impairment.overtake,
        duplicate=duplicate,
        corrupt=impairment.corrupt,
        rate_bps=rate_bps,
    )


def unsupported(impairment: Impairment) -> str | None:
    """What of an impairment netem does not do; None when it does all of it."""
    return next(_lacks(impairment), None)


def _lacks(impairment: Impairment) -> Iterator[str]:
    jitter_ns = impairment.jitter_ns
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
    can be drawn, since those behind such a packet wait for it. With a rate, the room for what
    waits comes on top, counted in full packets: netem knows no bytes. ``held_ns`` is how long a
    packet may be held by what waits before it, if that is longer.
    """
    rate_bps = impairment.rate_bps or _UNLIMITED_BPS
    held_ns = max(held_ns, impairment.range_ns[1])
    in_flight = rate_bps * held_ns // (8 * PACKET_BYTES * 10**9) + 1
    room_bytes = impairment.room_bytes
    if room_bytes is None:
        wanted = round(in_flight * (1 + impairment.duplicate)) + _SLACK_PACKETS
    else:
        wanted = in_flight + max(1, room_bytes // PACKET_BYTES)
    return min(wanted, _LARGEST_LIMIT)


# -- for other tools --------------------------------------------------------------------------


def tc_words(impairment: Impairment, table_name: str = "wanlat") -> tuple[str, ...]:
    """Return the arguments of `tc qdisc … netem`; none for no impairment.

    ``table_name`` is the file `TABLE.dist` that tc looks for in `TC_LIB_DIR`, with the numbers of
    `netem(impairment).entries`; uniform jitter is netem's own and names none.
    """
    if impairment.is_noop:
        return ()
    made = netem(impairment)
    is_even = impairment.distribution == "uniform"
    jitter_ns = impairment.jitter_ns if is_even else made.jitter_ns
    result: list[str] = []
    if made.delay_ns or jitter_ns:
        result += ["delay", _time(made.delay_ns)]
        result += [_time(jitter_ns)] if jitter_ns else []
        result += ["distribution", table_name] if jitter_ns and not is_even else []
    if made.bursts is not None:
        chain = made.bursts
        result += ["loss", "gemodel"]
        result += [_percent(part) for part in (chain.p, chain.r, 1 - chain.h, 1 - chain.k)]
    for name, part in (
        ("loss", made.loss),
        ("duplicate", made.duplicate),
        ("corrupt", made.corrupt),
    ):
        result += [name, _percent(part)] if part else []
    if made.overtake and made.delay_ns:
        result += ["reorder", _percent(made.overtake), "gap", "1"]
    if made.rate_bps and (impairment.rate_bps is not None or impairment.jitter_ns):
        result += ["rate", f"{made.rate_bps}bit"]
    return (*result, "limit", str(made.limit))


def rate_32(impairment: Impairment) -> int | None:
    """Return the rate to give a tool that knows 32 bits of it; one keeps jitter in order."""
    if impairment.rate_bps is None and impairment.jitter_ns and not impairment.reorder:
        return ORDERING_RATE_32_BPS
    return impairment.rate_bps


def uniform_jitter_ns(steps: Iterable[Impairment]) -> int:
    """Return the half-width of an even spread with the standard deviation of a whole path.

    For tools with a netem that has no other distribution. Never more than the path's delay.
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


# -- draws, loss and duplication --------------------------------------------------------------


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
    jitter_ns = round(impairment.jitter_ns * factor)
    return jitter_ns, _table(impairment.distribution, impairment.table, factor)


def _reach(impairment: Impairment) -> float:
    """Return how far a draw may lie from the mean, in units of the jitter."""
    low, high = shapes.extent(impairment.distribution, impairment.table)
    return max(abs(low), abs(high))


# netem's own even distribution is the remainder of a 32-bit number by 2 × jitter (tabledist()),
# which makes some delays likelier than others: by a quarter at 500 ms. A table of equal steps has
# no such flaw, and 8192 of them are exact in units of 1/8192.
_EVEN = tuple((2 * step + 1) / _SCALE - 1 for step in range(_SCALE))


@lru_cache(maxsize=64)
def _table(distribution: str, table: tuple[float, ...], factor: float) -> bytes:
    draws = shapes.shape(distribution, table) or _EVEN
    entries = (round(draw / factor * _SCALE) for draw in draws)
    fitting = [max(-_LARGEST_ENTRY, min(_LARGEST_ENTRY, entry)) for entry in entries]
    return struct.pack(f"={len(fitting)}h", *fitting)


@cache
def _compensated(loss: float, duplicate: float) -> tuple[float, float] | None:
    """Return the probabilities to send so that those requested come out; None: there are none.

    netem_enqueue() first chooses whether to duplicate, then whether to drop; a packet chosen for
    both passes once. The copy enters anew and may be lost. With L and D sent, no copy arrives of
    L (1-D), two of D (1-L)². Requested: loss, and duplicate of those that are not lost.
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
