"""A trace holds the messages of one request, its chain in order, and tells what is nobody's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_bundles import MS, ONE_WAY_NS, Traffic, bundle_of, group, rounds, traced

from wanlat.analysis.trace import trace_of
from wanlat.analysis.trace_files import told, write_trace
from wanlat.bundle.errors import BundleError


def test_the_chain_of_k_rounds_has_2k_crossings_one_after_the_other(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(3)] * 5)
    assert trace.round_trips == 3
    assert [crossing.number for crossing in trace.chain] == [1, 2, 3, 4, 5, 6]
    for before, after in zip(trace.chain, trace.chain[1:], strict=False):
        assert before.message.departure_ms is not None
        assert after.message.entry_ms >= before.message.departure_ms
        assert before.message.target == after.message.source
    assert trace.chain[0].message.source == trace.chain[-1].message.target == "a1"


def test_waits_and_crossings_add_up_to_the_latency(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(2)] * 3)
    crossed = sum((one.message.departure_ms or 0) - one.message.entry_ms for one in trace.chain)
    waited = sum(one.wait_ms for one in trace.chain)
    assert crossed + waited + trace.rest_ms == pytest.approx(trace.latency_ms)
    assert crossed == pytest.approx(2 * 2 * ONE_WAY_NS / MS)


def test_every_message_of_the_request_is_there_once(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(2)] * 3)
    mine = [message for message in trace.messages if message.kind == "request"]
    assert len(mine) == 2 * 2 * 2  # there and back, of two others, twice
    assert {message.bytes for message in mine} == {266, 267, 146}


def test_the_typical_request_is_the_median_of_those_with_the_usual_chain(tmp_path: Path) -> None:
    thinking = [rounds(1, thinks_ns=n * MS) for n in (1, 5, 2, 4, 3)]
    trace = traced(tmp_path, [*thinking, rounds(2)])
    assert trace.round_trips == 1
    assert trace.latency_ms == pytest.approx(100 + 3 * 3, abs=0.1)
    assert "5 requests with 2 crossings, of 6 in all" in trace.picked
    assert "1 of 4 crossings" in trace.notes[0]


def test_the_slowest_is_drawn_on_request(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, [rounds(1), rounds(3), rounds(1)])
    assert trace_of(bundle, group(), slowest=True).round_trips == 3
    assert trace_of(bundle, group()).round_trips == 1


def test_heartbeats_of_the_idle_window_are_background(tmp_path: Path) -> None:
    def heartbeats(traffic: Traffic, at_ns: int) -> None:
        for number in range(60):
            traffic.send(at_ns + number * 73 * MS, "b1", "c1", 40)

    trace = traced(tmp_path, [rounds(2)] * 4, between=heartbeats)
    background = [message for message in trace.messages if message.kind == "background"]
    assert background
    assert {(one.source, one.target) for one in background} == {("b1", "c1")}
    assert all(message.on_chain is None for message in background)
    assert trace.knows_background


def test_what_was_under_way_before_the_request_is_left_over(tmp_path: Path) -> None:
    def late(traffic: Traffic, at_ns: int) -> int:
        end = rounds(1)(traffic, at_ns)
        traffic.send(end - MS, "b1", "a1", 500)  # arrives after the answer
        return end

    trace = traced(tmp_path, [late, late, late], pause_ns=10 * MS)
    over = [message for message in trace.messages if message.kind == "other"]
    assert [message.payload_bytes for message in over] == [500]
    assert over[0].entry_ms < 0 < (over[0].departure_ms or 0)


def test_what_goes_on_after_the_answer_is_told_apart(tmp_path: Path) -> None:
    def cleans_up(traffic: Traffic, at_ns: int) -> int:
        end = rounds(1)(traffic, at_ns)
        traffic.send(end + MS // 2, "a1", "b1", 333)
        return end

    trace = traced(tmp_path, [cleans_up] * 3)
    assert [message.payload_bytes for message in trace.after_answer] == [333]
    assert trace.after_answer[0].entry_ms > trace.latency_ms


def test_segments_of_one_message_are_one_arrow(tmp_path: Path) -> None:
    def large(traffic: Traffic, at_ns: int) -> int:
        for piece in range(4):
            there = traffic.send(at_ns + MS + piece * 20_000, "a1", "b1", 1448)
        return traffic.send(there + MS, "b1", "a1", 80) + MS

    trace = traced(tmp_path, [large] * 3)
    first, reply = (one.message for one in trace.chain)
    assert first.packets == 4
    assert first.payload_bytes == 4 * 1448
    assert first.last_entry_ms == pytest.approx(first.entry_ms + 0.06)
    assert reply.packets == 1


def test_bare_acknowledgements_are_counted_and_left_out(tmp_path: Path) -> None:
    def slow(traffic: Traffic, at_ns: int) -> int:
        there = traffic.send(at_ns + MS, "a1", "b1", 100)
        # Longer than an acknowledgement is held back for something to ride on.
        return traffic.send(there + 60 * MS, "b1", "a1", 80) + MS

    trace = traced(tmp_path, [slow] * 3)
    assert trace.bare_acks == 1
    assert not any(message.is_acknowledgement for message in trace.messages)


def test_what_was_lost_and_sent_again_is_told(tmp_path: Path) -> None:
    def loses(traffic: Traffic, at_ns: int) -> int:
        traffic.send(at_ns + MS, "a1", "b1", 100, fate="lost")
        there = traffic.again(at_ns + 250 * MS, traffic.rows[-1])
        return traffic.send(there + MS, "b1", "a1", 80) + MS

    trace = traced(tmp_path, [loses] * 3)
    lost = [message for message in trace.messages if message.fate == "lost"]
    again = [message for message in trace.messages if message.is_resent]
    assert len(lost) == len(again) == 1
    assert lost[0].on_chain == 1
    assert lost[0].departure_ms == pytest.approx(again[0].departure_ms)


def test_a_request_that_crosses_nothing_has_no_chain(tmp_path: Path) -> None:
    def local(_: Traffic, at_ns: int) -> int:
        return at_ns + MS

    trace = traced(tmp_path, [local, local, rounds(1), local])
    assert trace.chain == ()
    assert trace.round_trips == 0
    assert trace.rest_ms == trace.latency_ms


def test_files_hold_every_message_and_the_chain(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(2)] * 3)
    files = write_trace(trace, tmp_path / "out" / "trace")
    assert [file.suffix for file in files] == [".svg", ".png", ".json"]
    document = json.loads(files[-1].read_text())
    assert len(document["messages"]) == len(trace.messages)
    for key in ("from", "to", "entry_ms", "departure_ms", "bytes", "label", "on_chain"):
        assert key in document["messages"][0]
    assert [one["crossing"] for one in document["chain"]] == [1, 2, 3, 4]
    assert document["chain_round_trips"] == 2


def test_the_text_tells_the_chain_crossing_by_crossing(tmp_path: Path) -> None:
    lines = told(traced(tmp_path, [rounds(2)] * 3))
    assert sum(" of 4  " in line for line in lines) == 4
    assert lines[-1].startswith("answered after ")


def test_a_bundle_without_a_packet_record_says_what_to_do(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, [rounds(1)], manifest={"capture": None})
    with pytest.raises(BundleError, match="--capture"):
        trace_of(bundle, group())


def test_an_endpoint_that_was_not_asked_is_refused_with_what_there_is(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, [rounds(1)])
    with pytest.raises(BundleError, match="made-up Put"):
        trace_of(bundle, group("Get"))
