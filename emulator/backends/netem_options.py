"""netem's parameters as netlink attributes: what is sent to the kernel, and read back from it.

pyroute2 knows netem's 32-bit parameters only: ticks of 64 ns, rates below 34 Gbit/s, no table of
draws, no loss in bursts, no seed. This has all of them, and takes microseconds where pyroute2's
classes take half a millisecond.
Source: include/uapi/linux/pkt_sched.h; netem_change() and netem_dump() in net/sched/sch_netem.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

# enum in linux/pkt_sched.h
_CORR, _DELAY_DIST, _REORDER, _CORRUPT, _LOSS, _RATE, _ECN, _RATE64 = range(1, 9)
_LATENCY64, _JITTER64, _PRNG_SEED = 10, 11, 14
_LOSS_GE = 2
_QOPT = struct.Struct("=6I")  # struct tc_netem_qopt
_RATE_STRUCT = struct.Struct("=IiIi")  # struct tc_netem_rate
_MANY = 0xFFFFFFFF

Bursts = tuple[int, int, int, int]  # struct tc_netem_gemodel: p, r, h and 1-k


@dataclass(frozen=True, slots=True)
class NetemOptions:
    """One netem's parameters, in the kernel's units.

    Probabilities and correlations are parts of 2^32 - 1; rates are bytes a second. ``table`` is
    int16 in 1/8192 of the jitter, in the machine's byte order; where it is empty, the kernel
    keeps the one that it has. ``seed`` is of the random numbers, from Linux 6.6 on; older
    kernels ignore it. ``corr`` is of delay, loss and duplication.
    """

    latency_ns: int = 0
    jitter_ns: int = 0
    table: bytes = b""
    limit: int = 1000
    loss: int = 0
    bursts: Bursts | None = None
    gap: int = 0
    reorder: int = 0
    duplicate: int = 0
    corrupt: int = 0
    rate_bytes: int = 0
    corr: tuple[int, int, int] = (0, 0, 0)
    seed: int | None = None

    def encode(self) -> bytes:
        """Return the payload of TCA_OPTIONS.

        What the kernel would else keep from an earlier change is always sent, zeros too, except
        the table, which has a hundred times the size of everything else.
        """
        pieces = [
            _QOPT.pack(0, self.limit, self.loss, self.gap, self.duplicate, 0),
            attribute(_LATENCY64, struct.pack("=q", self.latency_ns)),
            attribute(_JITTER64, struct.pack("=q", self.jitter_ns)),
            attribute(_CORR, struct.pack("=3I", *self.corr)),
            attribute(_REORDER, struct.pack("=2I", self.reorder, 0)),
            attribute(_CORRUPT, struct.pack("=2I", self.corrupt, 0)),
            attribute(_RATE, _RATE_STRUCT.pack(min(self.rate_bytes, _MANY), 0, 0, 0)),
        ]
        if self.rate_bytes > _MANY:
            pieces.append(attribute(_RATE64, struct.pack("=Q", self.rate_bytes)))
        if self.bursts is not None:
            chain = attribute(_LOSS_GE, struct.pack("=4I", *self.bursts))
            pieces.append(attribute(_LOSS, chain))
        if self.table:
            pieces.append(attribute(_DELAY_DIST, self.table))
        if self.seed is not None:
            pieces.append(attribute(_PRNG_SEED, struct.pack("=Q", self.seed)))
        return b"".join(pieces)

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Return the parameters in a TCA_OPTIONS, the kernel's or one of `encode`.

        The kernel shows no table. A kernel without 64-bit times (before 4.15) shows none: they
        are 0 here.
        """
        _, limit, loss, gap, duplicate, _ = _QOPT.unpack_from(payload)
        found = dict(attributes(payload[_QOPT.size :]))

        def numbers(form: str, number: int) -> tuple[int, ...]:
            size = struct.calcsize(form)
            return struct.unpack(form, found.get(number, b"").ljust(size, b"\0")[:size])

        bursts: Bursts | None = None
        for number, value in attributes(found.get(_LOSS, b"")):
            if number == _LOSS_GE:
                p, r, h, k1 = struct.unpack_from("=4I", value)
                bursts = p, r, h, k1
        delay_corr, loss_corr, duplicate_corr = numbers("=3I", _CORR)
        (latency_ns,), (jitter_ns,) = numbers("=q", _LATENCY64), numbers("=q", _JITTER64)
        return cls(
            latency_ns=latency_ns,
            jitter_ns=jitter_ns,
            table=found.get(_DELAY_DIST, b""),
            limit=limit,
            loss=loss,
            bursts=bursts,
            gap=gap,
            reorder=numbers("=2I", _REORDER)[0],
            duplicate=duplicate,
            corrupt=numbers("=2I", _CORRUPT)[0],
            rate_bytes=numbers("=Q", _RATE64)[0] or numbers("=IiIi", _RATE)[0],
            corr=(delay_corr, loss_corr, duplicate_corr),
            seed=numbers("=Q", _PRNG_SEED)[0] if _PRNG_SEED in found else None,
        )


def attribute(number: int, value: bytes) -> bytes:
    """Return one netlink attribute, padded."""
    return struct.pack("=HH", 4 + len(value), number) + value + b"\0" * (-len(value) % 4)


def attributes(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of each attribute in a block of them."""
    while len(block) >= 4:
        length, number = struct.unpack_from("=HH", block)
        yield number & 0x3FFF, block[4:length]  # the upper bits say how it was made
        block = block[max(4, (length + 3) & ~3) :]
