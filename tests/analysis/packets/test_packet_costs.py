"""What a request costs is found whatever crosses the links beside it, and whoever is next."""

from __future__ import annotations

import numpy as np
import pandas as pd
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
    return {group.endpoint: cost for group, cost in costs(record, rows, background).items()}


def test_each_request_is_given_its_own_bytes_and_packets() -> None:
    traffic = Traffic(acknowledges=False)
    found = prices(traffic, shuffled(traffic), watched=False)
    for name, (wire_bytes, packets) in TRUTH.items():
        assert abs(found[name].wan_bytes - wire_bytes) < 10, name
        assert abs(found[name].wan_packets - packets) < 0.1, name


def test_bursts_of_background_are_taken_out() -> None:
    traffic = Traffic(acknowledges=False)
    rows = shuffled(traffic)
    end = int((rows["start_ns"] + rows["total_ns"]).max())
    heartbeats(traffic, 10**9, end, 2 * 10**9)
    found = prices(traffic, rows)
    for name, (wire_bytes, packets) in TRUTH.items():
        assert abs(found[name].wan_bytes - wire_bytes) < 0.03 * wire_bytes + 10, name
        assert abs(found[name].wan_packets - packets) < 0.03 * packets + 0.1, name


def test_acknowledgements_are_paid_for_and_nothing_is_paid_twice() -> None:
    traffic = Traffic()
    rows = shuffled(traffic)
    found = prices(traffic, rows, watched=False)
    paid = sum(cost.n * cost.wan_bytes for cost in found.values())
    record = traffic.record()
    crossed = record.wire_bytes.sum() * sum(cost.n for cost in found.values()) / len(rows)
    assert abs(paid - crossed) < 0.02 * crossed
    assert found["Get"].wan_packets >= 8


def test_a_burst_that_nobody_knows_of_moves_nothing_far() -> None:
    traffic = Traffic(acknowledges=False)
    rows = shuffled(traffic)
    healing = int(rows["start_ns"].iloc[40])
    for number in range(200):
        traffic.send(healing + number * 100_000, "d1", "e1", 1448)
    found = prices(traffic, rows)
    for name, (wire_bytes, _) in TRUTH.items():
        assert abs(found[name].wan_bytes - wire_bytes) < 0.05 * wire_bytes + 150, name


def test_an_endpoint_of_two_kinds_costs_their_mean() -> None:
    traffic = Traffic(acknowledges=False)
    kinds = [majority_rounds(1)] * 42 + [majority_rounds(3)] * 18
    order = np.random.default_rng(4).permutation(60)
    requests = [("Mixed", kinds[place]) for place in order]
    requests = [
        one for pair in zip(requests, [("Get", kinds[0])] * 60, strict=True) for one in pair
    ]
    found = prices(traffic, samples(one_after_another(traffic, requests, BEGIN_NS)), watched=False)
    assert abs(found["Mixed"].wan_packets - (0.7 * 8 + 0.3 * 24)) < 0.7
    low, high = found["Mixed"].wan_packets_ci95
    assert low < 12.8 < high < 18


def test_the_interval_holds_the_truth() -> None:
    """Requests that now and then need a second round, under heartbeats: 95 of 100, roughly."""
    within = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        traffic = Traffic(acknowledges=False)
        again = rng.random(60) < 0.5
        requests = [("Do", majority_rounds(2 if twice else 1)) for twice in again]
        found = prices(
            traffic, samples(one_after_another(traffic, requests, BEGIN_NS)), watched=False
        )
        low, high = found["Do"].wan_packets_ci95
        within += low <= 12 <= high
    assert within >= 16


def test_requests_at_small_rtts_and_few_requests_give_no_cost() -> None:
    traffic = Traffic()
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(1))] * 20), rtt_ms=10.0)
    assert costs(traffic.record(), rows) == {}
    assert costs(traffic.record(), rows.iloc[:4].assign(rtt_ms=200.0)) == {}
