"""What a message is, told from its first bytes: HTTP, gRPC, MinIO's grid, the reference store."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "packets"))

from packet_traffic import Traffic

from wanlat.analysis.first_bytes.grid import Calls
from wanlat.analysis.first_bytes.http2 import http2
from wanlat.analysis.first_bytes.labels import http1, labels_of, reference
from wanlat.analysis.packets.record import record_of

CONNECTION = 1


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        (
            b"PUT /minio/storage/d/v63/crfile?disk-id=1 HTTP/1.1\r\nHost: x",
            "PUT /minio/storage/d/v63/crfile",
        ),
        (b"GET /a/path/that/the/record/cut", "GET /a/path/that/the/record/cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "200 OK"),
        (b"HTTP/1.1 404 Not Found\r\n", "404 Not Found"),
        (b"HTTP/1.0 204\r\n", "204"),
        (b"\x82\x1a\x97anything", None),
        (b"GETTING on", None),
        (b"", None),
    ],
)
def test_http1_is_told_by_its_first_line(payload: bytes, label: str | None) -> None:
    assert http1(payload) == label


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def literal(index: int, value: bytes, *, indexed: bool = False) -> bytes:
    return bytes([(0x40 if indexed else 0) | index, len(value)]) + value


PATH = literal(4, b"/bob_storage.BobApi/Put")


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        (frame(1, 4, 3, b"\x83\x86" + PATH), "bob_storage.BobApi/Put"),
        (frame(1, 0x24, 3, b"\0\0\0\0\x10" + b"\x83" + PATH), "bob_storage.BobApi/Put"),
        (frame(1, 4, 3, b"\x83\xbf\xc0" + literal(4, b"/a.B/C", indexed=True)), "a.B/C"),
        (frame(8, 0, 0, b"\0\0\1\0") + frame(1, 4, 5, PATH), "bob_storage.BobApi/Put"),
        (frame(1, 4, 3, b"\x88"), "status 200"),
        (frame(1, 4, 3, b"\x83\xbf"), "HEADERS"),  # a path that is in the dynamic table
        (frame(0, 0, 3, b"x" * 40), "DATA"),
        (frame(6, 0, 0, b"12345678"), "PING"),
        (frame(6, 1, 0, b"12345678"), "PING ack"),
        (frame(4, 0, 0, b""), "SETTINGS"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""), "SETTINGS"),
        (frame(0, 0, 3, b"x" * 40)[:20], "DATA"),  # as far as the record goes
        (frame(6, 0, 1, b"12345678"), None),  # a PING is of no stream
        (frame(77, 0, 1, b"1"), None),
        (b"\x8f\x11secretstream bytes that mean nothing here", None),
    ],
)
def test_http2_is_told_by_its_frames(payload: bytes, label: str | None) -> None:
    assert http2(payload) == label


def test_a_huffman_coded_path_is_read() -> None:
    # "www.example.com" as RFC 7541, C.4.1, codes it.
    coded = bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")
    block = bytes([4, 0x80 | len(coded)]) + coded
    assert http2(frame(1, 4, 3, b"\x83" + block)) == "www.example.com"


REQUEST = bytes.fromhex("827e0028" + "97ccc200cd752f010e03c4" + "20") + b"p" * 32
REPLY = bytes.fromhex("821a" + "97ccc20000000f03c40c82a4436f646500a3457272a04fac09e7")


def masked(message: bytes) -> bytes:
    """A client's frame."""
    key = b"\x12\x34\x56\x78"
    body = bytes(octet ^ key[place % 4] for place, octet in enumerate(message))
    return bytes([0x82, 0x80 | len(message)]) + key + body


def test_a_call_of_the_grid_is_told_and_so_is_its_reply() -> None:
    calls = Calls()
    assert calls.told(REQUEST, CONNECTION) == "LockLock"
    assert calls.told(REPLY, 2) == "reply", "of another connection"
    assert calls.told(REPLY, CONNECTION) == "reply to LockLock"
    assert calls.told(REPLY, CONNECTION) == "reply", "it was replied to already"


INNER = bytes.fromhex("97050000020e00c400"), bytes.fromhex("97060000140e00c400")
TOGETHER = b"".join(b"\xc4" + bytes([len(one)]) + one for one in INNER)


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        (masked(INNER[0]), "LockRLock"),
        (masked(bytes.fromhex("97050000000300c400")), "ping"),
        (masked(bytes.fromhex("97050000020ec0c0")), None),
        (masked(bytes.fromhex("97000200001100c400") + TOGETHER), "LockRLock + ReadAll"),
        (b"\x82\x05hello", None),  # other websockets
        (b"\x81\x05hello", None),
        (b"\x82", None),
    ],
)
def test_the_grid_is_read_through_the_mask_of_a_client(payload: bytes, label: str | None) -> None:
    assert Calls().told(payload, CONNECTION) == label


def reference_frame(head: bytes) -> bytes:
    length = 12 + len(head)
    return struct.pack("<IQBIQ", length, 75, 1, len(head), 0) + head


@pytest.mark.parametrize(
    ("payload", "is_request", "label"),
    [
        (reference_frame(b"\x00\x07x"), True, "Write"),
        (reference_frame(b"\x05x"), False, "written"),
        (reference_frame(b"\x00x"), False, "reply"),
        (reference_frame(b"\x01\x06x"), True, "forwarded"),
        (b"x" * 40, True, None),
    ],
)
def test_the_reference_store_is_told_by_its_enums(
    payload: bytes, is_request: bool, label: str | None
) -> None:
    assert reference(payload, is_request=is_request) == label


def block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def packet(payload: bytes) -> bytes:
    tcp = struct.pack(">HHIIBBHHH", 40_000, 9000, 1, 1, 0x50, 24, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, b"aaaa", b"bbbb")
    data = b"\0" * 12 + b"\x08\x00" + ip + tcp
    head = struct.pack("<IIIII", 0, 0, 0, len(data), len(data))
    return block(6, head + data + b"\0" * (-len(data) % 4) + option(1, b"departed 1.0 ms later"))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A record as ours are: one section, one interface, three packets."""
    section = block(0x0A0D0D0A, b"\x4d\x3c\x2b\x1a" + struct.pack("<HHq", 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 256) + option(2, b"dc1->dc2"))
    texts = (b"GET /one HTTP/1.1", b"", b"GET /two HTTP/1.1")
    path = tmp_path / "made-up.pcapng"
    path.write_bytes(section + interface + b"".join(map(packet, texts)))
    return path


def test_packets_are_found_by_their_row_whatever_a_record_leaves_out(capture: Path) -> None:
    traffic = Traffic(acknowledges=False)
    for at_ns in (3, 1, 2):  # in the file a packet stands where it left; a record goes by entry
        traffic.send(at_ns * 10**9, "a1", "b1")
    frame = traffic.frame()
    record = record_of(frame.iloc[[2, 0]], "made-up", {})
    assert labels_of(record, range(2), capture) == {0: "GET /one", 1: "GET /two"}
    assert labels_of(record, [1], capture) == {1: "GET /two"}
    whole = capture.read_bytes()
    for length in range(0, len(whole), 7):
        capture.write_bytes(whole[:length])
        assert set(labels_of(record, range(2), capture)) <= {0, 1}
    assert labels_of(record, range(2), capture.with_name("nowhere")) == {}
