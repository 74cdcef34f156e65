"""The longest chain is what the protocol makes necessary, whatever else crosses the links."""

from __future__ import annotations

import itertools
import time
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
    ring,
    samples,
)

from wanlat.analysis.packets import chains as chains_module
from wanlat.analysis.packets.background import Background, background_of
from wanlat.analysis.packets.chains import Chains, chains
from wanlat.analysis.packets.messages import FULL_SEGMENT_BYTES
from wanlat.analysis.packets.record import Record


def play(protocol: Protocol, times: int = 3, **lab: int) -> tuple[Record, pd.DataFrame]:
    traffic = Traffic(**lab)
    rows = samples(one_after_another(traffic, [("Do", protocol)] * times))
    return traffic.record(), rows


@pytest.mark.parametrize(
    ("protocol", "round_trips"),
    [
        (alone, 0.0),
        *((majority_rounds(k), float(k)) for k in range(1, 6)),
        (by_leader, 2.0),
        (ring, 1.5),
    ],
    ids=["alone", "1", "2", "3", "4", "5", "leader", "ring"],
)
def test_a_protocol_has_its_round_trips(protocol: Protocol, round_trips: float) -> None:
    record, rows = play(protocol)
    found = chains(record, rows)
    assert found.round_trips.tolist() == [round_trips] * 3
    assert not found.loose.any()
    assert np.all(found.spare_ns < 10 * MS)


def test_a_chain_is_in_order_and_comes_back() -> None:
    record, rows = play(majority_rounds(3))
    for links, start, total in zip(
        chains(record, rows).links, rows["start_ns"], rows["total_ns"], strict=True
    ):
        assert record.nodes[record.source[links[0]]] == "a1"
        assert record.entry_ns[links[0]] >= start
        for one, next_one in itertools.pairwise(links):
            assert record.target_site[one] == record.source_site[next_one]
            assert record.departure_ns[one] <= record.entry_ns[next_one]
        assert record.nodes[record.target[links[-1]]] == "a1"
        assert record.departure_ns[links[-1]] <= start + total


# --- against every chain there is ---


def every_chain(record: Record, begin_ns: int, end_ns: int) -> int:
    """The length of the longest, by trying all of them."""
    home = record.sites.index("a")

    def longest(site: int, since_ns: int) -> int:
        best = 0 if site == home else -1000
        for place in range(len(record)):
            leaves, arrives = record.entry_ns[place], record.departure_ns[place]
            if record.source_site[place] == site and leaves >= since_ns and 0 <= arrives <= end_ns:
                best = max(best, 1 + longest(int(record.target_site[place]), int(arrives)))
        return best

    return longest(home, begin_ns)


@pytest.mark.parametrize("seed", range(60))
def test_no_chain_is_longer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The rule that leaves out what has another cause is not part of the definition.
    monkeypatch.setattr(chains_module, "AT_ONCE_NS", -1)
    rng = np.random.default_rng(seed)
    traffic = Traffic(sites=("a", "b", "c"), nodes=2)
    nodes = [f"{site}{number}" for site in "abc" for number in (1, 2)]
    for _ in range(int(rng.integers(1, 14))):
        source = nodes[rng.integers(6)]
        target = str(rng.choice([node for node in nodes if node[0] != source[0]]))
        lost = {"fate": "lost"} if rng.random() < 0.1 else {}
        at_ns, takes_ns = 10**9 + int(rng.integers(100 * MS)), int(rng.integers(1, 30 * MS))
        traffic.datagram(at_ns, source, target, 100, takes_ns=takes_ns, **lost)
    record = traffic.record()
    begin, end = 10**9 + 10 * MS, 10**9 + 110 * MS
    found = chains(record, samples([("Do", begin, end)]))
    assert len(found.links[0]) == every_chain(record, begin, end)


# --- what is sent twice, in pieces, or never ---


def test_data_that_is_lost_and_sent_again_is_one_message() -> None:
    traffic = Traffic()
    traffic.send(10**9, "a1", "b1", fate="lost")
    there = traffic.again(10**9 + 300 * MS, traffic.rows[-1])
    end = traffic.send(there + THINKS_NS, "b1", "a1") + THINKS_NS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [1.0]
    assert found.loose.tolist() == [0]  # it was on its way all the time


def test_data_that_is_sent_again_for_nothing_is_no_message() -> None:
    traffic = Traffic()
    there = traffic.send(10**9, "a1", "b1")
    asked = traffic.rows[-1]
    back = traffic.send(there + THINKS_NS, "b1", "a1")
    # The copy arrives while the asked node works; a reply to it would make a second round trip.
    copy = traffic.again(back + MS, asked)
    answer = traffic.rows[1]
    end = traffic.again(copy + MS, answer) + MS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [1.0]


def test_a_message_arrives_with_the_last_of_its_pieces() -> None:
    traffic = Traffic()
    traffic.send(10**9, "a1", "b1", 1448, fate="lost")
    lost = traffic.rows[-1]
    traffic.send(10**9 + 10_000, "a1", "b1", 500)
    # A program that could have read the second piece alone would answer now. It cannot.
    traffic.send(10**9 + 101 * MS, "b1", "a1", 20)
    there = traffic.again(10**9 + 250 * MS, lost)
    assert there == 10**9 + 350 * MS
    early = chains(traffic.record(), samples([("Do", 10**9 - 1, 10**9 + 340 * MS)]))
    assert early.round_trips.tolist() == [0.0]
    back = traffic.send(there + THINKS_NS, "b1", "a1", 20)
    late = chains(traffic.record(), samples([("Do", 10**9 - 1, back + MS)]))
    assert late.round_trips.tolist() == [1.0]


def test_the_copies_that_a_link_makes_are_no_messages() -> None:
    traffic = Traffic()
    there = traffic.send(10**9, "a1", "b1")
    back = traffic.send(there + THINKS_NS, "b1", "a1")
    traffic.again(back + MS, traffic.rows[0], duplicate=True)
    assert len(traffic.record()) == 2 + 1  # and an acknowledgement


def test_a_connection_that_is_opened_is_paid_for() -> None:
    traffic = Traffic()
    ready = traffic.opening(10**9, "a1", "b1")
    there = traffic.send(ready, "a1", "b1")
    end = traffic.send(there + THINKS_NS, "b1", "a1") + MS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [2.0]


# --- acknowledgements ---


def nagle(traffic: Traffic, at_ns: int) -> int:
    """A head and a body, the body held back until the delayed acknowledgement of the head."""
    head = traffic.send(at_ns + THINKS_NS, "a1", "b1", 30)
    confirmed = traffic.ack(head + 40 * MS, "b1", "a1")
    body = traffic.send(confirmed + 200_000, "a1", "b1", 400)
    return traffic.send(body + THINKS_NS, "b1", "a1", 60) + THINKS_NS


def test_data_that_nagle_holds_back_waits_for_an_acknowledgement() -> None:
    record, rows = play(nagle)
    found = chains(record, rows)
    assert found.round_trips.tolist() == [2.0] * 3
    assert found.acknowledgements.tolist() == [1] * 3
    assert found.loose.tolist() == [0] * 3  # 40 ms late, but there is no doubt what it confirms


def test_data_that_comes_later_did_not_wait_for_the_acknowledgement() -> None:
    traffic = Traffic()
    head = traffic.send(10**9, "a1", "b1", 30)
    confirmed = traffic.ack(head + MS, "b1", "a1")
    body = traffic.send(confirmed + 30 * MS, "a1", "b1", 400)
    end = traffic.send(body + THINKS_NS, "b1", "a1", 60) + THINKS_NS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [1.0]


def test_a_full_segment_is_not_held_back() -> None:
    traffic = Traffic()
    head = traffic.send(10**9, "a1", "b1", 30)
    confirmed = traffic.ack(head + MS, "b1", "a1")
    body = traffic.send(confirmed + 200_000, "a1", "b1", FULL_SEGMENT_BYTES)
    end = traffic.send(body + THINKS_NS, "b1", "a1", 60) + THINKS_NS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [1.0]


def test_a_body_beyond_the_window_waits_for_acknowledgements() -> None:
    def slow_start(traffic: Traffic, at_ns: int) -> int:
        for segments in (10, 20):
            arrival = traffic.send(
                at_ns, "a1", "b1", segments * FULL_SEGMENT_BYTES, segments=segments
            )
            at_ns = traffic.ack(arrival + 50_000, "b1", "a1") + 100_000
        arrival = traffic.send(at_ns, "a1", "b1", 700)
        return traffic.send(arrival + THINKS_NS, "b1", "a1", 60) + THINKS_NS

    record, rows = play(slow_start)
    assert chains(record, rows).round_trips.tolist() == [3.0] * 3


def test_a_stream_that_does_not_pause_waits_for_no_acknowledgement() -> None:
    traffic = Traffic()
    arrivals = [
        traffic.send(10**9 + number * 5 * MS, "a1", "b1", 5 * FULL_SEGMENT_BYTES, segments=5)
        for number in range(100)
    ]
    for arrival in arrivals:
        traffic.ack(arrival + 50_000, "b1", "a1")
    end = traffic.send(arrivals[-1] + THINKS_NS, "b1", "a1", 60) + THINKS_NS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [1.0]


# --- what is not the request's ---


def told(traffic: Traffic, rows: pd.DataFrame, idle: tuple[int, int]) -> tuple[Chains, Background]:
    record = traffic.record()
    busy = list(zip(rows["start_ns"], rows["start_ns"] + rows["total_ns"], strict=True))
    background = background_of(record, [idle], {"Do": busy})
    return chains(record, rows, background), background


@pytest.mark.parametrize(
    ("payload", "waits_ns"),
    [(25, 0), (25, 250 * MS), (40, 0)],
    ids=["tight", "waiting", "as-long-as-a-reply"],
)
def test_a_heartbeat_every_100_ms_does_not_move_the_answer(payload: int, waits_ns: int) -> None:
    traffic = Traffic()
    protocol = majority_rounds(2, waits_ns=waits_ns)
    done = one_after_another(traffic, [("Do", protocol)] * 20, begin_ns=6 * 10**9)
    heartbeats(traffic, 10**9, done[-1][2], 100 * MS, payload)
    found, _ = told(traffic, samples(done), (10**9, 6 * 10**9))
    values, counts = np.unique(found.round_trips, return_counts=True)
    assert values[counts.argmax()] == 2.0
    assert counts.max() >= 15


@pytest.mark.parametrize(("payload", "is_marked"), [(25, True), (40, False)])
def test_a_length_that_requests_send_too_is_not_taken_for_background(
    payload: int, is_marked: bool
) -> None:
    traffic = Traffic(one_way_ns=5 * MS)
    done = one_after_another(traffic, [("Do", majority_rounds(1))] * 100, 6 * 10**9)
    heartbeats(traffic, 10**9, done[-1][2], 100 * MS, payload)
    _, background = told(traffic, samples(done), (10**9, 6 * 10**9))
    assert background.messages.any() == is_marked
    assert background.packets_per_s == pytest.approx(10 * 10 * 2 * (1 + 0.5), rel=0.35)


def test_without_idle_windows_a_heartbeat_fits_into_a_request_that_waits() -> None:
    traffic = Traffic()
    done = one_after_another(
        traffic, [("Do", majority_rounds(2, waits_ns=250 * MS))] * 20, 6 * 10**9
    )
    heartbeats(traffic, 10**9, done[-1][2], 100 * MS)
    found = chains(traffic.record(), samples(done))
    assert (found.round_trips > 2).any()
    assert np.all(found.spare_ns[found.round_trips > 2] > 0)


def test_a_request_that_an_earlier_ones_message_held_up_keeps_its_chain() -> None:
    # The earlier write's answer lets go of the data that Nagle held back; then all is at once.
    traffic = Traffic()
    begin = 10**9
    write = traffic.send(begin - 2 * MS, "a1", "b1", 390)
    answer = traffic.send(write + THINKS_NS, "b1", "a1", 51)
    there = traffic.send(answer + THINKS_NS, "a1", "b1", 129)
    end = traffic.send(there + THINKS_NS, "b1", "a1", 445) + THINKS_NS
    record = traffic.record()
    found = chains(record, samples([("Do", begin, end)]))
    assert found.round_trips.tolist() == [1.0]
    assert found.held_up.tolist() == [1]
    assert chains(record, samples([("Do", begin, end + 30 * MS)])).round_trips.tolist() == [0.0]


def test_what_an_earlier_request_left_behind_is_not_the_next_ones() -> None:
    traffic = Traffic()
    # A write goes on behind its answer; a read then waits 450 ms for the disk of the asked node.
    begin, end = 10**9, 10**9 + 2 * MS
    at_ns = traffic.send(begin + MS, "a1", "b1", 300)
    for _ in range(3):
        at_ns = traffic.send(at_ns + THINKS_NS, "b1", "a1", 30)
        at_ns = traffic.send(at_ns + THINKS_NS, "a1", "b1", 30)
    rows = samples([("Write", begin, end), ("Read", end + 300_000, end + 450 * MS)])
    record = traffic.record()
    assert chains(record, rows).round_trips.tolist() == [0.0, 0.0]


def test_what_was_held_up_may_still_wait_for_a_delayed_acknowledgement() -> None:
    # As Garage does: held up at first, then an answer in two writes, the second held back.
    traffic = Traffic()
    begin = 10**9
    write = traffic.send(begin - 2 * MS, "a1", "b1", 645)
    answer = traffic.send(write + THINKS_NS, "b1", "a1", 51)
    there = traffic.send(answer + THINKS_NS, "a1", "b1", 136)
    head = traffic.send(there + THINKS_NS, "b1", "a1", 51)
    confirmed = traffic.ack(head + 35 * MS, "a1", "b1")
    end = traffic.send(confirmed + 200_000, "b1", "a1", 1408) + THINKS_NS
    found = chains(traffic.record(), samples([("Do", begin, end)]))
    assert found.round_trips.tolist() == [2.0]
    assert found.held_up.tolist() == [1]
    assert found.acknowledgements.tolist() == [1]


def test_another_node_of_the_site_may_go_on_over_the_lan() -> None:
    traffic = Traffic(nodes=2)
    there = traffic.send(10**9, "a1", "b1")
    end = traffic.send(there + MS, "b2", "a2") + MS
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end)]))
    assert found.round_trips.tolist() == [1.0]
    assert found.within_sites.tolist() == [1]


def test_a_client_elsewhere_pays_for_its_own_way() -> None:
    traffic = Traffic()
    there = traffic.send(10**9, "e1", "a1", 300)
    done = majority_rounds(1)(traffic, there)
    end = traffic.send(done + THINKS_NS, "a1", "e1", 90)
    found = chains(traffic.record(), samples([("Do", 10**9 - 1, end + MS)], client="e1"))
    assert found.round_trips.tolist() == [2.0]


def test_a_request_that_failed_or_outlived_the_record_has_no_chain() -> None:
    record, rows = play(majority_rounds(1))
    rows["outcome"] = ["ok", "unknown", "ok"]
    ended = replace(record, ended_ns=int(rows["start_ns"].iloc[2]))
    assert np.isnan(chains(ended, rows).round_trips).tolist() == [False, True, True]


def test_5000_requests_take_seconds() -> None:
    traffic = Traffic(acknowledges=False)
    rows = samples(one_after_another(traffic, [("Do", majority_rounds(2))] * 1000))
    record = traffic.record()
    begun = time.process_time()
    assert np.all(chains(record, rows).round_trips == 2.0)
    assert time.process_time() - begun < 4
