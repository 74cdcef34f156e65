"""netem's parameters as netlink attributes.

pyroute2 knows netem's 32-bit parameters only: ticks of 64 ns, rates below 34 Gbit/s, no table of
draws, no loss in bursts, no seed. This has all of them, and takes microseconds where pyroute2's
classes take half a millisecond.
Source: include/uapi/linux/pkt_sched.h; netem_change() in net/sched/sch_netem.c.
"""

from __future__ import annotations

import struct

from wanlat.emulator.rtnetlink import attribute
from wanlat.topologies.netem import Netem

# enum in linux/pkt_sched.h
_CORR, _DELAY_DIST, _REORDER, _CORRUPT, _LOSS, _RATE, _ECN, _RATE64 = range(1, 9)
_LATENCY64, _JITTER64, _PRNG_SEED = 10, 11, 14
_LOSS_GE = 2
_QOPT = struct.Struct("=6I")  # struct tc_netem_qopt
_RATE_STRUCT = struct.Struct("=IiIi")  # struct tc_netem_rate
_MANY = 0xFFFFFFFF


def encode(parameters: Netem, seed: int | None = None, *, with_table: bool = True) -> bytes:
    """Return the payload of TCA_OPTIONS.

    What the kernel would else keep from an earlier change is always sent, zeros too, except the
    table, which has a hundred times the size of everything else. ``seed`` is of the random
    numbers, from Linux 6.6 on; older kernels ignore it.
    """
    rate_bytes = max(1, parameters.rate_bps // 8) if parameters.rate_bps else 0
    gap = 1 if parameters.overtake else 0
    pieces = [
        _QOPT.pack(
            0, parameters.limit, _part(parameters.loss), gap, _part(parameters.duplicate), 0
        ),
        attribute(_LATENCY64, struct.pack("=q", parameters.delay_ns)),
        attribute(_JITTER64, struct.pack("=q", parameters.jitter_ns)),
        attribute(_CORR, bytes(12)),  # its correlations are none
        attribute(_REORDER, struct.pack("=2I", _part(parameters.overtake), 0)),
        attribute(_CORRUPT, struct.pack("=2I", _part(parameters.corrupt), 0)),
        attribute(_RATE, _RATE_STRUCT.pack(min(rate_bytes, _MANY), 0, 0, 0)),
    ]
    if rate_bytes > _MANY:
        pieces.append(attribute(_RATE64, struct.pack("=Q", rate_bytes)))
    if parameters.bursts is not None:
        chain = parameters.bursts
        parts = map(_part, (chain.p, chain.r, chain.h, 1 - chain.k))
        pieces.append(attribute(_LOSS, attribute(_LOSS_GE, struct.pack("=4I", *parts))))
    if parameters.table and with_table:
        pieces.append(attribute(_DELAY_DIST, parameters.table))
    if seed is not None:
        pieces.append(attribute(_PRNG_SEED, struct.pack("=Q", seed)))
    return b"".join(pieces)


def _part(probability: float) -> int:
    return round(probability * _MANY)
