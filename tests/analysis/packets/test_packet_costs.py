"""What a request costs is found whatever crosses the links beside it, and whoever is next."""

from __future__ import annotations

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

from wanlat.analysis.packets import evidence
from wanlat.analysis.packets.background import background_of
from wanlat.analysis.packets.evidence import Cost, costs

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


def shuffled(traffic: Traffic) -> pd.DataFrame:
    names = [name for name in PROTOCOLS for _ in range(30)]
    np.random.default_rng(1).shuffle(names)
    return samples(one_after_another(traffic, [(n, PROTOCOLS[n]) for n in names], BEGIN_NS))


def prices(traffic: Traffic, rows: pd.DataFrame) -> dict[str, Cost]:
    record = traffic.record()
    busy = zip(rows["start_ns"], rows["start_ns"] + rows["total_ns"], strict=True)
    background = background_of(record, IDLE_NS, {"all": list(busy)})
    return {group.endpoint: one for group, one in costs(record, rows, background).items()}


@pytest.mark.parametrize(("beside", "part"), [(False, 0.0), (True, 0.03)])
def test_each_request_is_given_its_own_bytes_and_packets(beside: bool, part: float) -> None:
    traffic = Traffic(acknowledges=False)
    rows = shuffled(traffic)
    if beside:
        heartbeats(traffic, 10**9, int((rows["start_ns"] + rows["total_ns"]).max()), 2 * 10**9)
    found = prices(traffic, rows)
    for name, (true_bytes, true_packets) in TRUTH.items():
        assert abs(found[name].wan_bytes - true_bytes) < part * true_bytes + 10, name
        assert abs(found[name].wan_packets - true_packets) < part * true_packets + 0.1, name


def test_the_interval_holds_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of two kinds, one in three with a second round: 95 of 100, roughly."""
    monkeypatch.setattr(evidence, "RESAMPLES", 199)
    within = 0
    for seed in range(12):
        traffic = Traffic(acknowledges=False)
        again = np.random.default_rng(seed).random(60) < 0.3
        requests = [("Do", majority_rounds(2 if twice else 1)) for twice in again]
        found = prices(traffic, samples(one_after_another(traffic, requests, BEGIN_NS)))
        low, high = found["Do"].wan_packets_ci95
        within += low <= 0.7 * 8 + 0.3 * 16 <= high
    assert within >= 9


def test_requests_at_small_rtts_and_few_requests_give_no_cost() -> None:
    traffic = Traffic()
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(1))] * 20), rtt_ms=10.0)
    assert costs(traffic.record(), rows) == {}
    assert costs(traffic.record(), rows.iloc[:4].assign(rtt_ms=200.0)) == {}
