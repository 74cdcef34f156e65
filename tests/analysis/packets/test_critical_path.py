"""The critical path is what the protocol makes necessary, whatever else crosses the links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from packet_traffic import (
    MS,
    THINKS_NS,
    Protocol,
    Traffic,
    alone,
    by_leader,
    heartbeats,
    majority_rounds,
    one_after_another,
    relay,
    samples,
)

from wanlat.analysis.packets import critical_path
from wanlat.analysis.packets.background import Background, background_of
from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.record import FULL_SEGMENT_BYTES, Record

BEGIN = 10**9


def play(protocol: Protocol, times: int = 3) -> tuple[Record, pd.DataFrame]:
    traffic = Traffic()
    rows = samples(one_after_another(traffic, [("Do", protocol)] * times))
    return traffic.record(), rows


@pytest.mark.parametrize(
    ("protocol", "round_trips"),
    [
        (alone, 0.0),
        *((majority_rounds(k), float(k)) for k in range(1, 6)),
        (by_leader, 2.0),
        (lambda traffic, at: relay(traffic, at, "a1 b1 c1 a1"), 1.5),
    ],
    ids=["alone", "1", "2", "3", "4", "5", "leader", "ring"],
)
def test_a_protocol_has_its_round_trips(protocol: Protocol, round_trips: float) -> None:
    record, rows = play(protocol)
    found = critical_paths(record, rows)
    assert found.round_trips.tolist() == [round_trips] * 3
    for links, start, total in zip(found.links, rows.start_ns, rows.total_ns, strict=True):
        path = record.packets.loc[list(links)]
        sites = record.node_site[path.source], record.node_site[path.target]
        assert (sites[0][1:] == sites[1][:-1]).all()
        assert (path.departure_ns[:-1].to_numpy() <= path.entry_ns[1:]).all()
        if links:
            assert sites[0][0] == sites[1][-1] == record.sites.index("a")
            assert start <= path.entry_ns.iloc[0]
            assert path.departure_ns.iloc[-1] <= start + total


def every_path(record: Record, begin_ns: int, end_ns: int) -> int:
    """The length of the longest, by trying all of them."""
    sites = (record.node_site[record.ints(end)].tolist() for end in ("source", "target"))
    times = (record.ints(name).tolist() for name in ("entry_ns", "departure_ns"))
    packets = list(zip(*sites, *times, strict=True))

    def longest(at: int, since_ns: int) -> int:
        further = [
            1 + longest(to, arrives)
            for source, to, leaves, arrives in packets
            if source == at and leaves >= since_ns and 0 <= arrives <= end_ns
        ]
        return max([0 if at == record.sites.index("a") else -1000, *further])

    return longest(record.sites.index("a"), begin_ns)


@pytest.mark.parametrize("seed", range(25))
def test_no_path_is_longer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The rule that leaves out what has another cause is not part of the definition.
    monkeypatch.setattr(critical_path, "AT_ONCE_NS", -1)
    rng = np.random.default_rng(seed)
    traffic = Traffic(sites=("a", "b", "c"), nodes=2)
    nodes = [f"{site}{number}" for site in "abc" for number in (1, 2)]
    for _ in range(int(rng.integers(1, 14))):
        source = nodes[rng.integers(6)]
        target = str(rng.choice([node for node in nodes if node[0] != source[0]]))
        lost = {"fate": "lost"} if rng.random() < 0.1 else {}
        at_ns, takes_ns = BEGIN + int(rng.integers(100 * MS)), int(rng.integers(1, 30 * MS))
        traffic.send(at_ns, source, target, protocol=17, takes_ns=takes_ns, **lost)
    record = traffic.record()
    begin, end = BEGIN + 10 * MS, BEGIN + 110 * MS
    found = critical_paths(record, samples([("Do", begin, end)]))
    assert len(found.links.iloc[0]) == every_path(record, begin, end)


# --- single requests: what crossed from just before BEGIN on, and what that makes ---


def lost_and_sent_again(traffic: Traffic) -> int:
    traffic.send(BEGIN, "a1", "b1", fate="lost")
    there = traffic.again(BEGIN + 300 * MS, traffic.rows[-1])
    return traffic.send(there + THINKS_NS, "b1", "a1")


def sent_again_for_nothing(traffic: Traffic) -> int:
    back = relay(traffic, BEGIN, "a1 b1 a1")
    question, answer = traffic.rows
    # The copy arrives while the target works; a reply to it would make a second round trip.
    copy = traffic.again(back + MS, question)
    return traffic.again(copy + MS, answer)


def first_piece_lost(traffic: Traffic, answers: int = 0) -> int:
    traffic.send(BEGIN, "a1", "b1", 1448, fate="lost")
    lost = traffic.rows[-1]
    traffic.send(BEGIN + 10_000, "a1", "b1", 500)
    # A program that could have read the second piece alone would answer now. It cannot.
    traffic.send(BEGIN + 101 * MS, "b1", "a1", 20)
    whole = traffic.again(BEGIN + 250 * MS, lost)
    return traffic.send(whole + THINKS_NS, "b1", "a1", 20) if answers else whole


def head_and_body(confirmed_after: int, body_after: int, body: int) -> Callable[[Traffic], int]:
    """A body that follows the acknowledgement of its head; Nagle holds back what is not full."""

    def run(traffic: Traffic) -> int:
        head = traffic.send(BEGIN, "a1", "b1", 30)
        confirmed = traffic.ack(head + confirmed_after, "b1", "a1")
        return relay(traffic, confirmed + body_after - THINKS_NS, "a1 b1 a1", body)

    return run


def slow_start(traffic: Traffic) -> int:
    at_ns = BEGIN
    for segments in (10, 20):
        size = segments * FULL_SEGMENT_BYTES
        arrival = traffic.send(at_ns, "a1", "b1", size, segments=segments)
        at_ns = traffic.ack(arrival + 50_000, "b1", "a1") + 100_000
    return relay(traffic, at_ns, "a1 b1 a1", 700)


def a_stream_without_pause(traffic: Traffic) -> int:
    for number in range(100):
        at_ns, size = BEGIN + number * 5 * MS, 5 * FULL_SEGMENT_BYTES
        arrival = traffic.send(at_ns, "a1", "b1", size, segments=5)
        traffic.ack(arrival + 50_000, "b1", "a1")
    return traffic.send(arrival + THINKS_NS, "b1", "a1", 60)


def held_up(*, answered_after: int) -> Callable[[Traffic], int]:
    """The earlier write's answer lets go of the data that Nagle held back; then all is at once."""

    def run(traffic: Traffic) -> int:
        answer = relay(traffic, BEGIN - 2 * MS, "a1 b1 a1", 390, 51)
        return relay(traffic, answer, "a1 b1 a1", 129, 445) + answered_after

    return run


def held_up_twice(traffic: Traffic) -> int:
    """As Garage does: held up at first, then an answer in two writes, the second held back."""
    answer = relay(traffic, BEGIN - 2 * MS, "a1 b1 a1", 645, 51)
    head = relay(traffic, answer, "a1 b1 a1", 136, 51)
    confirmed = traffic.ack(head + 35 * MS, "a1", "b1")
    return traffic.send(confirmed + 200_000, "b1", "a1", 1408)


def left_behind(traffic: Traffic) -> int:
    """An earlier write goes on behind its answer, while a read waits for a disk."""
    relay(traffic, BEGIN - 2 * MS, "a1 b1 a1 b1 a1 b1 a1 b1", 300, 30)
    return BEGIN + 450 * MS


REQUESTS: dict[str, tuple[Callable[[Traffic], int], float]] = {
    "lost": (lost_and_sent_again, 1),
    "resent": (sent_again_for_nothing, 1),
    "piece": (first_piece_lost, 0),
    "pieces": (lambda traffic: first_piece_lost(traffic, answers=1), 1),
    "opening": (lambda traffic: relay(traffic, traffic.opening(BEGIN, "a1", "b1"), "a1 b1 a1"), 2),
    "nagle": (head_and_body(40 * MS, 200_000, 400), 2),  # no doubt what is confirmed
    "later": (head_and_body(MS, 30 * MS, 400), 1),
    "full": (head_and_body(MS, 200_000, FULL_SEGMENT_BYTES), 1),
    "window": (slow_start, 3),
    "stream": (a_stream_without_pause, 1),
    "held-up": (held_up(answered_after=0), 1),
    "coincidence": (held_up(answered_after=30 * MS), 0),
    "held-up-twice": (held_up_twice, 2),
    "left-behind": (left_behind, 0),
    "lan": (lambda t: t.send(t.send(BEGIN, "a1", "b1") + MS, "b2", "a2"), 1),
}


@pytest.mark.parametrize(("run", "round_trips"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_waits_for_what_tcp_makes_it_wait_for(
    run: Callable[[Traffic], int], round_trips: float
) -> None:
    traffic = Traffic(nodes=2)
    end = run(traffic) + THINKS_NS
    found = critical_paths(traffic.record(), samples([("Do", BEGIN - 1, end)]))
    assert found.round_trips.tolist() == [round_trips]


def test_a_client_elsewhere_pays_for_its_own_way() -> None:
    traffic = Traffic()
    rows = samples([("Do", BEGIN, by_leader(traffic, BEGIN, "e1", "a1"))], client="e1")
    assert critical_paths(traffic.record(), rows).round_trips.tolist() == [2.0]


def test_a_request_that_failed_or_outlived_the_record_has_no_path() -> None:
    record, rows = play(majority_rounds(1))
    rows["outcome"] = ["ok", "unknown", "ok"]
    ended = replace(record, ended_ns=int(rows["start_ns"].iloc[2]))
    assert critical_paths(ended, rows).round_trips.isna().tolist() == [False, True, True]


# --- what is nobody's ---


def found_in(traffic: Traffic, rows: pd.DataFrame) -> tuple[pd.DataFrame, Background]:
    record = traffic.record()
    busy = list(zip(rows["start_ns"], rows["start_ns"] + rows["total_ns"], strict=True))
    background = background_of(record, [(BEGIN, 6 * BEGIN)], {"Do": busy})
    return critical_paths(record, rows, background), background


@pytest.mark.parametrize(
    ("payload", "waits_ns"),
    [(25, 0), (25, 250 * MS), (40, 0)],
    ids=["tight", "waiting", "as-long-as-a-reply"],
)
def test_a_heartbeat_every_100_ms_does_not_move_the_answer(payload: int, waits_ns: int) -> None:
    traffic = Traffic()
    protocol = majority_rounds(2, waits_ns=waits_ns)
    done = one_after_another(traffic, [("Do", protocol)] * 20, begin_ns=6 * BEGIN)
    heartbeats(traffic, BEGIN, done[-1][2], 100 * MS, payload)
    found, _ = found_in(traffic, samples(done))
    assert (found.round_trips == 2.0).sum() >= 15


@pytest.mark.parametrize(("payload", "is_marked"), [(25, True), (40, False)])
def test_a_length_that_requests_send_too_is_not_taken_for_background(
    payload: int, is_marked: bool
) -> None:
    traffic = Traffic(one_way_ns=5 * MS)
    done = one_after_another(traffic, [("Do", majority_rounds(1))] * 100, 6 * BEGIN)
    heartbeats(traffic, BEGIN, done[-1][2], 100 * MS, payload)
    _, background = found_in(traffic, samples(done))
    assert background.packets.any() == is_marked
