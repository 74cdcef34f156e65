"""What a request costs is found whatever crosses the links beside it, and whoever is next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from packet_traffic import (
    HEADERS,
    MS,
    Traffic,
    alone,
    heartbeats,
    majority_rounds,
    one_after_another,
    samples,
)

from wanlat.analysis.packets import cost
from wanlat.analysis.packets.background import Background, background_of
from wanlat.analysis.packets.cost import Cost, costs

IDLE_NS = [(10**9 + number * 10**9, 2 * 10**9 + number * 10**9) for number in range(15)]
BEGIN_NS = 17 * 10**9


def put(traffic: Traffic, at_ns: int) -> int:
    """Answered after one round trip; 50 ms later the replicas are told that it holds."""
    end = majority_rounds(1)(traffic, at_ns)
    for peer in ("b1", "c1", "d1", "e1"):
        there = traffic.send(end + 50 * MS, "a1", peer, 500)
        traffic.send(there + MS, peer, "a1", 20)
    return end


ROUND = 4 * (200 + 40 + 2 * HEADERS)
TRUTH = {
    "Put": (ROUND + 4 * (500 + 20 + 2 * HEADERS), 16),
    "Get": (ROUND, 8),
    "Twice": (2 * ROUND + 4 * 2, 16),
    "Local": (0, 0),
}
PROTOCOLS = {"Put": put, "Get": majority_rounds(1), "Twice": majority_rounds(2), "Local": alone}


def shuffled(traffic: Traffic, times: int = 30, seed: int = 1) -> pd.DataFrame:
    names = [name for name in PROTOCOLS for _ in range(times)]
    np.random.default_rng(seed).shuffle(names)
    return samples(one_after_another(traffic, [(n, PROTOCOLS[n]) for n in names], BEGIN_NS))


def prices(traffic: Traffic, rows: pd.DataFrame, *, watched: bool = True) -> dict[str, Cost]:
    record = traffic.record()
    background: Background | None = None
    if watched:
        busy = zip(rows["start_ns"], rows["start_ns"] + rows["total_ns"], strict=True)
        background = background_of(record, IDLE_NS, {"all": list(busy)})
    return {group.endpoint: one for group, one in costs(record, rows, background).items()}


def nothing_else(_traffic: Traffic, _rows: pd.DataFrame) -> None:
    """Only the requests."""


def bursts(traffic: Traffic, rows: pd.DataFrame) -> None:
    """Heartbeats, in the idle windows too."""
    heartbeats(traffic, 10**9, int((rows["start_ns"] + rows["total_ns"]).max()), 2 * 10**9)


def healing(traffic: Traffic, rows: pd.DataFrame) -> None:
    """A burst that nobody knows of."""
    for number in range(200):
        at_ns = int(rows["start_ns"].iloc[40]) + number * 100_000
        traffic.send(at_ns, "d1", "e1", 1448)


@pytest.mark.parametrize(
    ("beside", "watched", "part", "wire_bytes", "packets"),
    [
        (nothing_else, False, 0.0, 10, 0.1),
        (bursts, True, 0.03, 10, 0.1),
        (healing, True, 0.05, 150, 2.0),
    ],
    ids=["nothing", "bursts", "healing"],
)
def test_each_request_is_given_its_own_bytes_and_packets(
    beside: Callable[[Traffic, pd.DataFrame], None],
    watched: bool,
    part: float,
    wire_bytes: float,
    packets: float,
) -> None:
    traffic = Traffic(acknowledges=False)
    rows = shuffled(traffic)
    beside(traffic, rows)
    found = prices(traffic, rows, watched=watched)
    for name, (true_bytes, true_packets) in TRUTH.items():
        assert abs(found[name].wan_bytes - true_bytes) < part * true_bytes + wire_bytes, name
        assert abs(found[name].wan_packets - true_packets) < part * true_packets + packets, name


def test_acknowledgements_are_paid_for_and_nothing_is_paid_twice() -> None:
    traffic = Traffic()
    rows = shuffled(traffic)
    found = prices(traffic, rows, watched=False)
    paid = sum(cost.n * cost.wan_bytes for cost in found.values())
    record = traffic.record()
    crossed = record.wire_bytes.sum() * sum(cost.n for cost in found.values()) / len(rows)
    assert abs(paid - crossed) < 0.02 * crossed
    assert found["Get"].wan_packets >= 8


def test_the_interval_holds_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of two kinds, one in three with a second round: 95 of 100, roughly."""
    monkeypatch.setattr(cost, "RESAMPLES", 199)
    within = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        traffic = Traffic(acknowledges=False)
        again = rng.random(60) < 0.3
        requests = [("Do", majority_rounds(2 if twice else 1)) for twice in again]
        found = prices(
            traffic, samples(one_after_another(traffic, requests, BEGIN_NS)), watched=False
        )
        low, high = found["Do"].wan_packets_ci95
        within += low <= 0.7 * 8 + 0.3 * 16 <= high
    assert within >= 16


def test_requests_at_small_rtts_and_few_requests_give_no_cost() -> None:
    traffic = Traffic()
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(1))] * 20), rtt_ms=10.0)
    assert costs(traffic.record(), rows) == {}
    assert costs(traffic.record(), rows.iloc[:4].assign(rtt_ms=200.0)) == {}
