"""What a message is, told from its first bytes: HTTP/1, HTTP/2, gRPC; nothing where it is not."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "packets"))

from packet_traffic import Traffic

from wanlat.analysis.packets.labels import http1, http2, labels_of
from wanlat.analysis.packets.record import record_of


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def literal(index: int, value: bytes, *, indexed: bool = False) -> bytes:
    return bytes([(0x40 if indexed else 0) | index, len(value)]) + value


PATH = literal(4, b"/store.Api/Put")
# "www.example.com" as RFC 7541, C.4.1, codes it.
HUFFMAN = bytes([4, 0x8C]) + bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        (b"PUT /d/v63/crfile?disk-id=1 HTTP/1.1\r\nHost: x", "PUT /d/v63/crfile"),
        (b"GET /a/path/that/the/record/cut", "GET /a/path/that/the/record/cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "200 OK"),
        (b"HTTP/1.0 204\r\n", "204"),
        (b"GETTING on", None),
        (b"", None),
        (frame(1, 4, 3, b"\x83\x86" + PATH), "store.Api/Put"),
        (frame(1, 0x24, 3, b"\0\0\0\0\x10" + b"\x83" + PATH), "store.Api/Put"),
        (frame(1, 4, 3, b"\x83\xbf\xc0" + literal(4, b"/a.B/C", indexed=True)), "a.B/C"),
        (frame(8, 0, 0, b"\0\0\1\0") + frame(1, 4, 5, PATH), "store.Api/Put"),
        (frame(1, 4, 3, PATH + literal(15, b"long" * 9))[:40], "store.Api/Put"),  # cut short
        (frame(1, 4, 3, b"\x83" + HUFFMAN), "www.example.com"),
        (frame(1, 4, 3, b"\x88"), "status 200"),
        (frame(1, 4, 3, b"\x83\xbf"), None),  # a path that is in the dynamic table
        (frame(0, 0, 3, b"x" * 40)[:20], "DATA"),
        (frame(6, 1, 0, b"12345678"), "PING ack"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(6, 0, 0, b"12345678"), "PING"),
        (frame(6, 0, 1, b"12345678"), None),  # a PING is of no stream
        (frame(77, 0, 1, b"1"), None),
        (b"\x8f\x11secretstream bytes that mean nothing here", None),
    ],
)
def test_a_message_is_told_by_its_first_line_or_frames(payload: bytes, label: str | None) -> None:
    assert (http1(payload) or http2(payload)) == label


def block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def packet(payload: bytes) -> bytes:
    tcp = struct.pack(">HHIIBBHHH", 40_000, 9000, 1, 1, 0x50, 24, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, b"aaaa", b"bbbb")
    data = b"\0" * 12 + b"\x08\x00" + ip + tcp
    comment = struct.pack("<HH", 1, 8) + b"departed"
    head = struct.pack("<IIIII", 0, 0, 0, len(data), len(data))
    return block(6, head + data + b"\0" * (-len(data) % 4) + comment)


def test_packets_are_found_by_their_row_whatever_a_record_leaves_out(tmp_path: Path) -> None:
    section = block(0x0A0D0D0A, b"\x4d\x3c\x2b\x1a" + struct.pack("<HHq", 1, 0, -1))
    texts = (b"GET /one HTTP/1.1", b"", b"GET /two HTTP/1.1")
    whole = section + block(1, struct.pack("<HHI", 1, 0, 256)) + b"".join(map(packet, texts))
    capture = tmp_path / "made-up.pcapng"
    capture.write_bytes(whole)
    traffic = Traffic(acknowledges=False)
    for at_ns in (3, 1, 2):  # in the file a packet stands where it left; a record goes by entry
        traffic.send(at_ns * 10**9, "a1", "b1")
    record = record_of(traffic.frame().iloc[[2, 0]], "made-up", {})
    assert labels_of(record, range(2), capture) == {0: "GET /one", 1: "GET /two"}
    assert labels_of(record, [1], capture) == {1: "GET /two"}
    for length in range(0, len(whole), 7):
        capture.write_bytes(whole[:length])
        assert set(labels_of(record, range(2), capture)) <= {0, 1}
    assert labels_of(record, range(2), capture.with_name("nowhere")) == {}
