"""A trace holds the messages of one request, its critical path in order, and what is nobody's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from trace_bundles import MS, ONE_WAY_NS, PUT, Request, Traffic, bundle_of, rounds, traced

from wanlat.analysis import trace_messages
from wanlat.analysis.packets.record import Record
from wanlat.analysis.trace import trace_of, traces_of
from wanlat.analysis.trace_files import charts_of, told, write_trace
from wanlat.analysis.trace_model import Message, Trace
from wanlat.bundle.errors import BundleError


def of_kind(trace: Trace, kind: str) -> list[Message]:
    return [message for message in trace.messages if message.kind == kind]


def test_the_path_of_k_rounds_has_2k_hops_one_after_the_other(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(3)] * 5)
    assert trace.round_trips == 3
    assert [hop.number for hop in trace.path] == [1, 2, 3, 4, 5, 6]
    for before, after in pairwise(hop.message for hop in trace.path):
        assert before.departure_ms is not None
        assert after.entry_ms >= before.departure_ms
        assert before.target == after.source
    assert trace.path[0].message.source == trace.path[-1].message.target == "a1"
    crossed = sum((hop.message.departure_ms or 0) - hop.message.entry_ms for hop in trace.path)
    waited = sum(hop.wait_ms for hop in trace.path)
    assert crossed == pytest.approx(3 * 2 * ONE_WAY_NS / MS)
    assert crossed + waited + trace.rest_ms == pytest.approx(trace.latency_ms)
    mine = of_kind(trace, "request")
    assert len(mine) == 3 * 2 * 2  # there and back, of two others, three times: each once
    assert {message.bytes for message in mine} == {266, 267, 146}


def test_the_typical_request_is_the_median_of_those_with_the_usual_path(tmp_path: Path) -> None:
    thinking = [rounds(1, thinks_ns=n * MS) for n in (1, 5, 2, 4, 3)]
    bundle = bundle_of(tmp_path, [*thinking, rounds(2)])
    trace = trace_of(bundle, PUT)
    assert trace.round_trips == 1
    assert trace.latency_ms == pytest.approx(100 + 3 * 3, abs=0.1)
    assert "5 requests with 2 WAN hops, of 6 in all" in trace.picked
    assert "1 of 4 hops" in trace.notes[0]
    assert trace_of(bundle, PUT, slowest=True).round_trips == 2


# --- whose a packet is; each between two sites, or from a node, that the request does not need ---


def then(request: Request, after_ns: int, source: str, target: str, payload: int) -> Request:
    """A request, and so long after its start or, if negative, before its end one more message."""

    def run(traffic: Traffic, at_ns: int) -> int:
        end = request(traffic, at_ns)
        since = at_ns if after_ns >= 0 else end
        traffic.send(since + after_ns, source, target, payload)
        return end

    return run


def answered_others(after_ns: int) -> Request:
    """In a round's second half, what was sent before it is answered by a node that has waited."""

    def run(traffic: Traffic, at_ns: int) -> int:
        there = traffic.send(at_ns + 25 * MS, "c2", "b1", 555)
        traffic.send(there + after_ns, "b1", "c2", 555)
        return rounds(1)(traffic, at_ns)

    return run


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        # b1 replied long ago, and nobody asked it since: a timer's, as are a1's and a2's.
        (then(rounds(2), 90 * MS, "b1", "c1", 555), "other"),
        (then(rounds(2), 150 * MS, "a1", "c2", 555), "other"),
        (then(rounds(2), 60 * MS, "a2", "c2", 555), "other"),
        (then(rounds(2), 10 * MS, "b2", "c2", 555), "other"),
        (then(rounds(1), -MS, "b1", "a1", 555), "other"),  # on its way as the next one begins
        # 75 ms after the start b1 gets something of others, which it answers.
        (answered_others(int(2.5 * MS)), "other"),
        # After something of the request came to its node, or to its neighbour.
        (then(rounds(1), 53 * MS, "b1", "c2", 555), "request"),
        (then(rounds(1), 53 * MS, "b2", "c2", 555), "request"),
        (then(rounds(1), 103 * MS + MS // 2, "a1", "b1", 555), "request"),  # after the answer
    ],
)
def test_packets_of_others_are_others(tmp_path: Path, request_: Request, kind: str) -> None:
    trace = traced(tmp_path, [request_] * 3, pause_ns=10 * MS)
    found = [message for message in trace.messages if message.payload_bytes == 555]
    if kind == "request":  # of an earlier one it is left over
        found = [message for message in found if message.entry_ms > 0]
    assert found
    assert {message.kind for message in found} == {kind}
    assert not any(message.on_chain for message in found)


def test_a_reply_that_waits_for_a_disk_is_the_requests(tmp_path: Path) -> None:
    def waits(traffic: Traffic, at_ns: int) -> int:
        there = traffic.send(at_ns + MS, "a1", "b1", 555)
        traffic.send(there + 40 * MS, "b1", "a1", 555)
        return rounds(2)(traffic, at_ns)

    assert len(of_kind(traced(tmp_path, [waits] * 3), "other")) == 0


def test_labels_tell_pings_and_what_a_reply_is_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {600: "LockUnlock", 95: "reply to LockUnlock", 97: "ping"}

    def labels_of(record: Record, places: Iterable[int], _: Path) -> dict[int, str]:
        sizes = {place: int(record.payload_bytes[place]) for place in places}
        return {place: names[size] for place, size in sizes.items() if size in names}

    def locked_before(traffic: Traffic, at_ns: int) -> int:
        traffic.send(at_ns - MS, "a1", "b1", 600)
        traffic.send(at_ns + 51 * MS + MS // 2, "b1", "a1", 95)  # after the request came to b1
        traffic.send(at_ns + 53 * MS, "b1", "c1", 97)
        return rounds(2)(traffic, at_ns)

    monkeypatch.setattr(trace_messages, "labels_of", labels_of)
    trace = traced(tmp_path, [locked_before] * 3)
    kinds = {one.payload_bytes: one.kind for one in trace.messages}
    assert (kinds[600], kinds[95], kinds[97]) == ("other", "other", "background")


def test_heartbeats_of_the_idle_window_are_background(tmp_path: Path) -> None:
    def heartbeats(traffic: Traffic, at_ns: int) -> None:
        for number in range(60):
            traffic.send(at_ns + number * 73 * MS, "b1", "c1", 40)

    trace = traced(tmp_path, [rounds(2)] * 4, between=heartbeats)
    background = of_kind(trace, "background")
    assert {(one.source, one.target) for one in background} == {("b1", "c1")}
    assert trace.knows_background


def test_segments_of_one_message_are_one_arrow(tmp_path: Path) -> None:
    def large(traffic: Traffic, at_ns: int) -> int:
        for piece in range(4):
            there = traffic.send(at_ns + MS + piece * 20_000, "a1", "b1", 1448)
        return traffic.send(there + MS, "b1", "a1", 80) + MS

    first, reply = (hop.message for hop in traced(tmp_path, [large] * 3).path)
    assert (first.packets, first.payload_bytes) == (4, 4 * 1448)
    assert first.last_entry_ms == pytest.approx(first.entry_ms + 0.06)
    assert reply.packets == 1


def test_bare_acknowledgements_are_counted_and_left_out(tmp_path: Path) -> None:
    def slow(traffic: Traffic, at_ns: int) -> int:
        there = traffic.send(at_ns + MS, "a1", "b1", 100)
        # Longer than an acknowledgement is held back for something to ride on.
        return traffic.send(there + 60 * MS, "b1", "a1", 80) + MS

    trace = traced(tmp_path, [slow] * 3)
    assert trace.bare_acks == 1
    assert not any(message.acknowledgement for message in trace.messages)


def test_what_was_lost_and_sent_again_is_told(tmp_path: Path) -> None:
    def loses(traffic: Traffic, at_ns: int) -> int:
        traffic.send(at_ns + MS, "a1", "b1", 100, fate="lost")
        there = traffic.again(at_ns + 250 * MS, traffic.rows[-1])
        return traffic.send(there + MS, "b1", "a1", 80) + MS

    trace = traced(tmp_path, [loses] * 3)
    (lost,) = (message for message in trace.messages if message.fate == "lost")
    (again,) = (message for message in trace.messages if message.resent)
    assert (lost.on_chain, again.kind) == (1, "request")
    assert lost.departure_ms == pytest.approx(again.departure_ms)


def test_files_hold_every_message_and_the_path(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(2)] * 3)
    files = write_trace(trace, tmp_path / "out" / "trace")
    assert [file.suffix for file in files] == [".svg", ".png", ".json"]
    document = json.loads(files[-1].read_text())
    assert len(document["messages"]) == len(trace.messages)
    for key in ("from", "to", "entry_ms", "departure_ms", "bytes", "label", "on_chain"):
        assert key in document["messages"][0]
    assert [one["crossing"] for one in document["chain"]] == [1, 2, 3, 4]
    assert document["chain_round_trips"] == 2
    lines = told(trace)
    assert sum(" of 4  " in line for line in lines) == 4
    assert lines[-1].startswith("answered after ")


def test_of_a_request_that_crosses_nothing_there_is_no_picture(tmp_path: Path) -> None:
    def local(_: Traffic, at_ns: int) -> int:
        return at_ns + MS

    bundle = bundle_of(tmp_path, [local, local, rounds(1), local])
    (trace,) = traces_of(bundle, [PUT])
    assert (trace.path, trace.round_trips, trace.rest_ms) == ((), 0, trace.latency_ms)
    assert [file.suffix for file in write_trace(trace, tmp_path / "trace")] == [".json"]
    assert charts_of(bundle, [PUT]) == {}


def test_what_cannot_be_traced_is_refused_with_what_to_do(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path / "one", [rounds(1)])
    get = PUT._replace(endpoint="Get")
    with pytest.raises(BundleError, match="made-up Put"):
        trace_of(bundle, get)
    assert traces_of(bundle, [get]) == []
    bundle = bundle_of(tmp_path / "two", [rounds(1)], manifest={"capture": None})
    with pytest.raises(BundleError, match="--capture"):
        trace_of(bundle, PUT)
