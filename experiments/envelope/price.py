"""The price of a timeout: who leads is killed, and it is measured how long nothing is answered.

The sites are near each other. Users at another node send all the while; the node is started again
before the next one is killed, which is whoever leads by then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from wanlat.bundle.documents import Price, Takeover
from wanlat.emulator.interface_counters import InterfaceCounters
from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.clients import Load
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.envelope.trial import Sending, Users
from wanlat.experiments.kinds.envelope import PromiseSpec
from wanlat.experiments.workloads.requests import wait_until
from wanlat.systems.base import Cluster
from wanlat.systems.engine.wait import Wait
from wanlat.topologies.units import Duration

BEFORE, WITHOUT = "before", "without"
"""Phases: all nodes run; the node that led is dead."""
_DEADLINE, _RATE = Duration(500 * 10**6), 20.0
"""Of the users' requests: a write is sent each tenth of a second."""
_BEFORE_S, _LEAST_PATIENCE_S, _TIMES = 0.5, 15.0, 4
"""How long a takeover is waited for: so many times the longest timeout, but so many seconds."""
_POLL_S = 0.02
_IDLE_S = 2.0


def patience_s(longest_timeout_s: float) -> float:
    """Return how long a takeover is waited for."""
    return max(_LEAST_PATIENCE_S, _TIMES * longest_timeout_s)


def measure_idle(lab: Lab, price: Price) -> None:
    """Count what crosses WAN links in some seconds without any request."""
    with closing(InterfaceCounters(lab)) as counters:
        before, began_s = counters.links().values(), time.monotonic()
        wait_until(lab, began_s + _IDLE_S)
        pairs = [*zip(before, counters.links().values(), strict=True)]
        price.idle_s = time.monotonic() - began_s
    price.idle_bytes = sum(now.tx_bytes - then.tx_bytes for then, now in pairs)
    price.idle_packets = sum(now.tx_packets - then.tx_packets for then, now in pairs)


def kill_leader(
    load: Load,
    constant: Mapping[str, Any],
    name: str,
    waits_s: float,
    ready: Callable[[], Wait],
) -> Takeover | None:
    """Kill the node that leads, see how long it takes until another one does, and start it again.

    None where no other node could. ``name``: users' names begin so. ``ready`` begins the time in
    which the node has to serve again; raises SystemFailed where it does not.
    """
    cluster, lab = load.cluster, load.lab
    killed = cluster.await_leader(ready())
    others = [name for name in cluster.nodes if name != killed]
    if not others:
        return None
    promise = PromiseSpec(deadline=_DEADLINE, rate=_RATE)
    place, node = Place(name, others[0], others[0]), cluster.nodes[killed]
    with Users(replace(load, constant={**load.constant, **constant}), place, promise) as users:
        phases = [(BEFORE, _BEFORE_S), (WITHOUT, waits_s)]
        with users.sending(phases, {}) as sending:
            sending.wait_until(_BEFORE_S)
            killed_ns = time.monotonic_ns()
            node.stop()
            takeover = _watched(sending, cluster, killed, killed_ns, waits_s)
    node.start(lab)
    cluster.await_serving(ready())
    node.on_exit(lab.abort)
    return takeover


def _watched(
    sending: Sending, cluster: Cluster, killed: str, killed_ns: int, waits_s: float
) -> Takeover:
    led: str | None = None
    led_ns: int | None = None
    answered_s: float | None = None
    until_ns = killed_ns + round(waits_s * 1e9)
    while (led is None or answered_s is None) and time.monotonic_ns() < until_ns:
        sending.wait_until((time.monotonic_ns() - sending.origin_ns) / 1e9 + _POLL_S)
        if led is None and (now := cluster.leader()) not in (None, killed):
            led, led_ns = now, time.monotonic_ns()
        answered_s = _answered_s(sending, killed_ns)
    return Takeover(
        killed=killed,
        killed_ns=killed_ns,
        waited_s=waits_s,
        led=led,
        led_s=None if led_ns is None else (led_ns - killed_ns) / 1e9,
        answered_s=answered_s,
    )


def _answered_s(sending: Sending, killed_ns: int) -> float | None:
    """Return when a write that was sent after the kill was acknowledged first, seconds after it."""
    ends_ns = [
        row["start_ns"] + row["total_ns"]
        for row in [*sending.rows]
        if row["operation"] == "write"
        and row["outcome"] == "ok"
        and row["start_ns"] is not None
        and row["start_ns"] >= killed_ns
    ]
    first_ns = min(ends_ns, default=math.inf)
    return None if first_ns == math.inf else (first_ns - killed_ns) / 1e9
