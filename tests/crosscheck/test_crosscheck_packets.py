"""From bytes to events: frames, TCP's streams, HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.crosscheck.wire import HOST, MS, PORT, Wire, events_of, frame, http2_frame, kinds
from wanlat.experiments.crosscheck.connections import Connections
from wanlat.experiments.crosscheck.events import Event
from wanlat.experiments.crosscheck.operations import operation
from wanlat.experiments.crosscheck.packets import SYN, Packet, parse

GET = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
PUT = b"PUT /b/k HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"


def test_a_frame_is_read_from_both_sides():
    sent = parse(frame(b"ask", out=True, seq=7), 1, HOST, PORT)
    assert sent == Packet(1, True, 40_000, 7, 0x10, b"ask")
    answered = parse(frame(b"answer", out=False, flags=SYN), 2, HOST, PORT)
    assert answered == Packet(2, False, 40_000, 1, SYN, b"answer")


def test_padding_after_a_short_packet_is_no_payload():
    packet = parse(frame(b"", out=False) + b"\0" * 6, 1, HOST, PORT)
    assert packet is not None
    assert packet.payload == b""


@pytest.mark.parametrize(
    "bytes_",
    [
        b"",
        b"\0" * 40,
        frame(b"x", out=True)[:30],
        frame(b"x", out=True).replace(b"\x0a\x01", b"\x0a\x09"),
    ],
)
def test_what_is_no_segment_of_this_server_is_left_out(bytes_):
    assert parse(bytes_, 1, HOST, PORT) is None


def test_an_exchange_on_a_new_connection():
    wire = Wire()
    wire.connect(0)
    wire.out(100, GET)
    wire.came(200, OK)
    events = wire.events()
    assert kinds(events) == ["syn", "syn-ack", "head", "answer", "answer"]
    assert events[2] == Event(100_000_000, True, "head", "GET /b/k")


def test_permission_to_go_on_is_seen():
    wire = Wire()
    wire.connect(0)
    wire.out(100, PUT)
    wire.came(200, b"HTTP/1.1 100 Continue\r\n\r\n")
    wire.out(200, b"body")
    wire.came(300, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    events = wire.events()
    assert kinds(events)[2:] == ["head", "continue", "body", "answer"]
    assert events[2].expects_continue


def test_chunked_answers_and_answers_without_a_body_end_where_they_end():
    wire = Wire()
    wire.connect(0)
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    for request, answer in (
        (GET, chunked),
        (GET.replace(b"GET", b"HEAD"), b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
        (GET.replace(b"GET", b"DELETE"), b"HTTP/1.1 204 No Content\r\n\r\n"),
        (GET, OK),
    ):
        wire.out(100, request)
        wire.came(200, answer)
    heads = [event.text for event in wire.events() if event.kind == "head"]
    assert heads == ["GET /b/k", "HEAD /b/k", "DELETE /b/k", "GET /b/k"]
    statuses = [event.text for event in wire.events() if event.kind == "answer" and event.text]
    assert statuses == ["200", "200", "204", "200"]


def test_any_cutting_order_and_repetition_of_segments_reads_the_same():
    whole = Wire()
    whole.connect(0)
    whole.out(100, PUT + b"body" + GET)
    heads = [event.text for event in whole.events() if event.kind == "head"]
    stream = whole.packets[-1].payload
    draw = random.Random(1)
    for _ in range(100):
        cuts = sorted({0, len(stream), *(draw.randrange(len(stream)) for _ in range(6))})
        pieces = [
            Packet(100_000_000, True, 40_000, 1001 + a, 0x10, stream[a:b])
            for a, b in pairwise(cuts)
        ]
        pieces += draw.choices(pieces, k=2)
        draw.shuffle(pieces)
        events = events_of([*whole.packets[:2], *pieces])
        assert [event.text for event in events if event.kind == "head"] == heads


def test_sequence_numbers_may_wrap():
    syn = Packet(0, True, 1, 2**32 - 3, SYN, b"")
    first = Packet(1, True, 1, 2**32 - 2, 0x10, GET[:10])
    second = Packet(2, True, 1, 8, 0x10, GET[10:])
    assert [event.text for event in events_of([syn, first, second]) if event.text] == ["GET /b/k"]


def test_a_connection_older_than_the_record_is_not_a_clients():
    assert events_of([Packet(1, True, 1, 1, 0x10, GET)]) == []


def test_what_minios_nodes_ask_each_other_is_not_a_clients():
    wire = Wire()
    wire.connect(0, port=1)
    wire.out(100, b"GET /minio/grid/v1 HTTP/1.1\r\n\r\n", port=1)
    wire.connect(0, port=2)
    wire.out(100, GET, port=2)
    assert [event.text for event in wire.events() if event.kind == "head"] == ["GET /b/k"]


def test_a_syn_sent_again_is_the_same_connection_and_a_port_used_again_another():
    wire = Wire()
    wire.syn(0)
    wire.syn(1000)
    wire.syn_ack(1100)
    wire.out(1100, GET)
    wire.connect(2000)
    wire.out(2100, GET)
    assert kinds(wire.events()) == ["syn", "syn-ack", "head", "syn", "syn-ack", "head"]


def test_what_is_not_understood_is_bytes_that_come_and_go():
    wire = Wire()
    wire.connect(0)
    wire.out(100, b"\x16\x03\x01 nothing we know\r\n\r\n")
    wire.came(200, b"\x16\x03\x03")
    wire.out(200, b"more")
    assert kinds(wire.events())[2:] == ["body", "answer", "body"]


def call(encoder, stream: int, path: str) -> bytes:
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), ("te", "trailers")]
    return http2_frame(1, 0x4, stream, encoder.encode(headers)) + http2_frame(0, 0x1, stream, b"x")


def test_http2_tells_settings_from_answers_and_paths_that_were_sent_before_as_numbers():
    hpack = pytest.importorskip("hpack")
    encoder = hpack.Encoder()
    wire = Wire()
    wire.connect(0)
    wire.out(100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0))
    wire.came(200, http2_frame(4, 0, 0) + http2_frame(4, 1, 0))
    first = call(encoder, 1, "/bob_storage.BobApi/Put")
    wire.out(200, http2_frame(4, 1, 0) + first)
    wire.came(300, http2_frame(6, 0, 0, b"\0" * 8) + http2_frame(1, 0x4, 1, b"\x88"))
    again = call(encoder, 3, "/bob_storage.BobApi/Put")
    assert len(again) < len(first)
    wire.out(400, again)
    events = wire.events()
    assert kinds(events) == [
        *("syn", "syn-ack", "preface", "control", "settings", "control", "control", "head", "body"),
        *("control", "answer", "head", "body"),
    ]
    heads = [event.text for event in events if event.kind == "head"]
    assert heads == ["POST /bob_storage.BobApi/Put"] * 2


def test_http2_headers_may_be_padded_prioritised_and_continued():
    hpack = pytest.importorskip("hpack")
    block = hpack.Encoder().encode([(":method", "POST"), (":path", "/p.S/M")])
    padded = b"\x03" + b"\0" * 5 + block[:4] + b"\0" * 3
    wire = Wire()
    wire.connect(0)
    wire.out(100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    wire.out(100, http2_frame(1, 0x8 | 0x20, 1, padded))
    wire.out(100, http2_frame(9, 0x4, 1, block[4:]))
    assert [event.text for event in wire.events() if event.kind == "head"] == ["POST /p.S/M"]


def test_a_server_that_speaks_first_is_heard():
    pytest.importorskip("hpack")
    wire = Wire()
    wire.connect(0)
    wire.came(150, http2_frame(4, 0, 0))
    wire.out(200, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert "settings" in kinds(wire.events())


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("GET /", "ListBuckets"),
        ("GET /bucket?location=", "GetBucketLocation"),
        ("GET /bucket?list-type=2&prefix=a", "ListObjects"),
        ("HEAD /bucket", "HeadBucket"),
        ("PUT /bucket/a/b", "PutObject"),
        ("PUT /bucket/a?partNumber=1&uploadId=x", "UploadPart"),
        ("DELETE /bucket/a", "RemoveObject"),
        ("POST /bob_storage.BobApi/Get", "Get"),
        (
            "POST /grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        ),
        ("BREW /pot", "BREW /pot"),
    ],
)
def test_requests_are_called_by_their_names(request_, name):
    assert operation(request_) == name


def test_each_time_is_taken_once_and_what_comes_later_stays():
    wire = Wire()
    wire.connect(0)
    wire.out(100, GET)
    wire.came(200, OK)
    wire.out(300, GET)
    connections = Connections()
    connections.add(wire.packets)
    assert kinds(connections.take(0, 150 * MS)) == ["syn", "syn-ack", "head"]
    assert kinds(connections.take(0, 150 * MS)) == []
    assert kinds(connections.take(150 * MS, 400 * MS)) == ["answer", "answer", "head"]


def test_an_answer_to_a_client_that_has_closed_its_side_is_still_seen():
    wire = Wire()
    wire.connect(0)
    wire.out(100, GET)
    wire.end(100)
    asked = len(wire.packets)
    wire.came(200, OK)
    connections = Connections()
    connections.add(wire.packets[:asked])
    connections.take(0, 150 * MS)
    connections.add(wire.packets[asked:])
    assert "answer" in kinds(connections.take(150 * MS, 300 * MS))
