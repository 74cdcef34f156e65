"""A trace holds the messages of one request, its critical path in order, and what is nobody's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from trace_bundles import MS, PUT, Request, Traffic, bundle_of, heartbeats, rounds, traced

from wanlat.analysis import trace_messages
from wanlat.analysis.charts.sequence import charts_of, write_trace
from wanlat.analysis.packets.record import Record
from wanlat.analysis.trace import Trace, trace_of, traces_of
from wanlat.analysis.trace_messages import Row
from wanlat.analysis.trace_words import description
from wanlat.bundle.errors import BundleError


def of_kind(trace: Trace, kind: str) -> list[Row]:
    return [message for message in trace["messages"] if message["kind"] == kind]


def test_the_path_of_k_rounds_has_2k_hops_one_after_the_other(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(3)] * 5)
    path = trace["chain"]
    assert (trace["chain_round_trips"], [hop["hop"] for hop in path]) == (3, [*range(1, 7)])
    for before, after in pairwise(path):
        assert before["departure_ms"] <= after["entry_ms"]
        assert before["to"] == after["from"]
    assert path[0]["from"] == path[-1]["to"] == "a1"
    crossed = sum(hop["departure_ms"] - hop["entry_ms"] for hop in path)
    waited = sum(hop["waited_ms"] for hop in path)
    assert crossed == pytest.approx(3 * 2 * 50)
    assert crossed + waited + trace["after_chain_ms"] == pytest.approx(trace["latency_ms"])
    mine = of_kind(trace, "request")
    assert len(mine) == 3 * 2 * 2  # there and back, of two others, three times: each once
    assert {message["bytes"] for message in mine} == {266, 267, 146}


def test_the_typical_request_is_the_median_of_those_with_the_usual_path(tmp_path: Path) -> None:
    thinking = [rounds(1, thinks_ns=n * MS) for n in (1, 5, 2, 4, 3)]
    bundle = bundle_of(tmp_path, [*thinking, rounds(2)])
    trace = trace_of(bundle, PUT)
    assert trace["chain_round_trips"] == 1
    assert trace["latency_ms"] == pytest.approx(100 + 3 * 3, abs=0.1)
    assert "5 requests with 2 WAN hops, of 6 in all" in trace["picked"]
    assert "1 of 4 WAN hops" in trace["notes"][0]
    assert trace_of(bundle, PUT, slowest=True)["chain_round_trips"] == 2


def and_sent(request: Request, *messages: tuple[int, str, str]) -> Request:
    """A request, and so long after its start, or if negative before its end, messages of 555 B."""

    def run(traffic: Traffic, at_ns: int) -> int:
        end = request(traffic, at_ns)
        for after_ns, source, target in messages:
            traffic.send((at_ns if after_ns >= 0 else end) + after_ns, source, target, 555)
        return end

    return run


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        # b1 replied long ago, and nobody asked it since: a timer's, as are a1's and a2's.
        (and_sent(rounds(2), (90 * MS, "b1", "c1")), "other"),
        (and_sent(rounds(2), (150 * MS, "a1", "c2")), "other"),
        (and_sent(rounds(2), (60 * MS, "a2", "c2")), "other"),
        (and_sent(rounds(2), (10 * MS, "b2", "c2")), "other"),
        (and_sent(rounds(1), (-MS, "b1", "a1")), "other"),  # on its way as the next one begins
        # 75 ms after the start b1 gets something of others, which it answers.
        (and_sent(rounds(1), (25 * MS, "c2", "b1"), (77 * MS, "b1", "c2")), "other"),
        # After something of the request came to its node, or to its neighbour.
        (and_sent(rounds(1), (53 * MS, "b1", "c2")), "request"),
        (and_sent(rounds(1), (53 * MS, "b2", "c2")), "request"),
        (and_sent(rounds(1), (103 * MS + MS // 2, "a1", "b1")), "request"),  # after the answer
        # A reply that waits for a disk.
        (and_sent(rounds(2), (MS, "a1", "b1"), (91 * MS, "b1", "a1")), "request"),
    ],
)
def test_packets_of_others_are_others(tmp_path: Path, request_: Request, kind: str) -> None:
    trace = traced(tmp_path, [request_] * 3, pause_ns=10 * MS)
    found = [message for message in trace["messages"] if message["payload_bytes"] == 555]
    if kind == "request":  # of an earlier one it is left over
        found = [message for message in found if message["entry_ms"] > 0]
    assert {message["kind"] for message in found} == {kind}
    assert not any(message["on_chain"] for message in found)


def test_idle_windows_and_labels_tell_what_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def labels_of(record: Record, places: Iterable[int], *_: object) -> dict[int, str]:
        sizes = record.packets.payload_bytes[list(places)]
        return {int(str(place)): "PING" for place, size in sizes.items() if size == 555}

    monkeypatch.setattr(trace_messages, "labels_of", labels_of)
    pinged = and_sent(rounds(2), (53 * MS, "b1", "c2"))
    trace = traced(tmp_path, [pinged] * 4, between=heartbeats)
    assert {one["payload_bytes"] for one in of_kind(trace, "background")} == {40, 555}
    assert trace["knows_background"]


def segments(traffic: Traffic, at_ns: int) -> int:
    for piece in range(4):
        there = traffic.send(at_ns + MS + piece * 20_000, "a1", "b1", 1448)
    # Longer than an acknowledgement is held back for something to ride on.
    return traffic.send(there + 60 * MS, "b1", "a1", 80) + MS


def test_segments_are_one_arrow_and_bare_acknowledgements_are_left_out(tmp_path: Path) -> None:
    trace = traced(tmp_path, [segments] * 3)
    first, reply = trace["messages"]
    assert (first["packets"], first["payload_bytes"], reply["packets"]) == (4, 4 * 1448, 1)
    assert first["last_entry_ms"] == pytest.approx(first["entry_ms"] + 0.06)
    assert trace["bare_acknowledgements"] > 0


def test_what_was_lost_and_sent_again_is_told(tmp_path: Path) -> None:
    def loses(traffic: Traffic, at_ns: int) -> int:
        traffic.send(at_ns + MS, "a1", "b1", 100, fate="lost")
        there = traffic.again(at_ns + 250 * MS, traffic.rows[-1])
        return traffic.send(there + MS, "b1", "a1", 80) + MS

    lost, again, _ = traced(tmp_path, [loses] * 3)["messages"]
    assert (lost["fate"], lost["on_chain"]) == ("lost", 1)
    assert (again["resent"], again["kind"]) == (True, "request")
    assert lost["departure_ms"] == pytest.approx(again["departure_ms"])


def test_files_hold_every_message_and_the_path(tmp_path: Path) -> None:
    trace = traced(tmp_path, [rounds(2)] * 3)
    files = write_trace(trace, tmp_path / "out" / "trace")
    assert [file.suffix for file in files] == [".svg", ".png", ".json"]
    assert json.loads(files[-1].read_text()) == trace
    lines = description(trace)
    assert sum(" of 4 hops: " in line for line in lines) == 4
    assert lines[-1].startswith("answered after ")


def test_of_a_request_that_crosses_nothing_there_is_no_picture(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, [rounds(0), rounds(0), rounds(1), rounds(0)])
    (trace,) = traces_of(bundle, [PUT])
    assert (trace["chain"], trace["after_chain_ms"]) == ([], trace["latency_ms"])
    assert [file.suffix for file in write_trace(trace, tmp_path / "trace")] == [".json"]
    assert charts_of(bundle, [PUT]) == {}


def test_what_cannot_be_traced_is_refused_with_what_to_do(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path / "one", [rounds(1)])
    get = PUT._replace(endpoint="Get")
    with pytest.raises(BundleError, match="made-up Put"):
        trace_of(bundle, get)
    assert traces_of(bundle, [get]) == []
    with pytest.raises(BundleError, match="--capture"):
        trace_of(bundle_of(tmp_path / "two", [rounds(1)], capture=None), PUT)
