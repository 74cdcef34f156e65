"""netem's parameters as netlink attributes.

pyroute2 speaks netem's 32-bit parameters only: ticks of 64 ns, rates below 34 Gbit/s, no seed.
This is a class of ours with the same fields and the attributes that came later.
Source: include/uapi/linux/pkt_sched.h and net/sched/sch_netem.c of Linux.
"""

from __future__ import annotations

import sys
from typing import Any

from pyroute2.netlink import nla
from pyroute2.netlink.rtnl import TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import plugins

from topologies.resolve import Impairment

parent = TC_H_ROOT  # read by pyroute2, as in its own modules

_MTU_BYTES = 1514
_UNLIMITED_BPS = 10_000_000_000  # the rate for which an unlimited link's queue is sized
_SLACK_PACKETS = 1000

# With a rate, netem places each packet behind the one queued before it, and so never reorders
# (netem_enqueue(), sch_netem.c); without one, jitter reorders. The rate that keeps order by
# default is one that costs 0.4 us a full packet.
_ORDERING_RATE_BYTES = 4_000_000_000


class netem_options(nla):  # noqa: N801 - pyroute2 derives names from it
    """struct tc_netem_qopt and its attributes."""

    nla_map = (
        ("TCA_NETEM_UNSPEC", "none"),
        ("TCA_NETEM_CORR", "hex"),
        ("TCA_NETEM_DELAY_DIST", "hex"),
        ("TCA_NETEM_REORDER", "hex"),
        ("TCA_NETEM_CORRUPT", "hex"),
        ("TCA_NETEM_LOSS", "hex"),
        ("TCA_NETEM_RATE", "rate"),
        ("TCA_NETEM_ECN", "uint32"),
        ("TCA_NETEM_RATE64", "uint64"),
        ("TCA_NETEM_PAD", "hex"),
        ("TCA_NETEM_LATENCY64", "int64"),
        ("TCA_NETEM_JITTER64", "int64"),
        ("TCA_NETEM_SLOT", "hex"),
        ("TCA_NETEM_SLOT_DIST", "hex"),
        ("TCA_NETEM_PRNG_SEED", "uint64"),
    )
    fields = (
        ("latency", "I"),
        ("limit", "I"),
        ("loss", "I"),
        ("gap", "I"),
        ("duplicate", "I"),
        ("jitter", "I"),
    )

    class rate(nla):  # noqa: N801
        """struct tc_netem_rate; the rate is in bytes a second."""

        fields = (
            ("rate", "I"),
            ("packet_overhead", "i"),
            ("cell_size", "I"),
            ("cell_overhead", "i"),
        )


options = netem_options  # the name pyroute2 looks for


def queue_limit(impairment: Impairment) -> int:
    """Return how many packets netem must be able to hold.

    netem's queue holds every delayed packet, so its limit has to cover rate × delay; its default
    of 1000 packets silently drops from 120 Mbit/s on at 100 ms.
    """
    rate_bps = impairment.rate_bps or _UNLIMITED_BPS
    held_ns = impairment.delay_ns + impairment.jitter_ns
    in_flight = rate_bps * held_ns // (8 * _MTU_BYTES * 1_000_000_000) + 1
    if impairment.rate_bps is None:
        return in_flight + _SLACK_PACKETS
    queue_bytes = impairment.queue_bytes
    waiting = _SLACK_PACKETS if queue_bytes is None else max(1, queue_bytes // _MTU_BYTES)
    return in_flight + waiting


def parameters(impairment: Impairment) -> dict[str, Any]:
    """Return the fields and attributes that express ``impairment``."""
    attributes: list[tuple[str, Any]] = [
        ("TCA_NETEM_LATENCY64", impairment.delay_ns),
        ("TCA_NETEM_JITTER64", impairment.jitter_ns),
    ]
    rate_bytes = 0
    if impairment.rate_bps is not None:
        rate_bytes = impairment.rate_bps // 8
    elif not impairment.reorder and impairment.jitter_ns > 0:
        rate_bytes = _ORDERING_RATE_BYTES
    if rate_bytes > 0xFFFFFFFF:
        attributes.append(("TCA_NETEM_RATE64", rate_bytes))
    attributes.append(
        (
            "TCA_NETEM_RATE",
            {
                "rate": min(rate_bytes, 0xFFFFFFFF),
                "packet_overhead": 0,
                "cell_size": 0,
                "cell_overhead": 0,
            },
        )
    )
    return {
        "latency": 0,
        "limit": queue_limit(impairment),
        "loss": round(impairment.loss * 0xFFFFFFFF),
        "gap": 0,
        "duplicate": 0,
        "jitter": 0,
        "attrs": attributes,
    }


def get_parameters(request: dict[str, Any]) -> dict[str, Any]:
    """Return what pyroute2 puts on the wire for ``tc(…, kind="netem", impairment=…)``."""
    return parameters(request["impairment"])


def register() -> None:
    """Have pyroute2 use this module for every netem request of this process."""
    plugins["netem"] = sys.modules[__name__]
