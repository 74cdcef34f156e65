"""What a message is, told from its first bytes: HTTP, gRPC, MinIO's grid, the reference store."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from wanlat.analysis.first_bytes.grid import Calls
from wanlat.analysis.first_bytes.http1 import http1
from wanlat.analysis.first_bytes.http2 import http2
from wanlat.analysis.first_bytes.huffman import decode
from wanlat.analysis.first_bytes.labels import labels_within
from wanlat.analysis.first_bytes.pcapng import read_within
from wanlat.analysis.first_bytes.reference import reference

CONNECTION = frozenset({"one"})
# RFC 7541, C.4.1 and C.6.1: the same strings, as the RFC codes them.
RFC_STRINGS = {
    "f1e3c2e5f23a6ba0ab90f4ff": "www.example.com",
    "a8eb10649cbf": "no-cache",
    "25a849e95ba97d7f": "custom-key",
    "25a849e95bb8e8b4bf": "custom-value",
    "d07abe941054d444a8200595040b8166e082a62d1bff": "Mon, 21 Oct 2013 20:13:21 GMT",
    "9d29ad171863c78f0b97c8e9ae82ae43d3": "https://www.example.com",
}


@pytest.mark.parametrize(("coded", "text"), RFC_STRINGS.items())
def test_huffman_code_is_that_of_the_rfc(coded: str, text: str) -> None:
    assert decode(bytes.fromhex(coded)) == text


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
    # "/" is 011000, and "a", "b", "/", "c" are 00011, 100011, 011000, 00100; ones fill up.
    bits = "011000" + "00011" + "100011" + "011000" + "00100"
    bits += "1" * (-len(bits) % 8)
    coded = int(bits, 2).to_bytes(len(bits) // 8, "big")
    block = bytes([4, 0x80 | len(coded)]) + coded
    assert http2(frame(1, 4, 3, b"\x83" + block)) == "ab/c"


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
    assert calls.told(REPLY, frozenset({"another"})) == "reply"
    assert calls.told(REPLY, CONNECTION) == "reply to LockLock"
    assert calls.told(REPLY, CONNECTION) == "reply", "it was replied to already"


def test_the_grid_is_read_through_the_mask_of_a_client() -> None:
    assert Calls().told(masked(bytes.fromhex("9705000002" + "0ec0c0")), CONNECTION) is None
    assert Calls().told(masked(bytes.fromhex("97050000020e00c400")), CONNECTION) == "LockRLock"
    assert Calls().told(masked(bytes.fromhex("97050000000300c400")), CONNECTION) == "ping"


def test_messages_that_were_put_together_are_told_one_by_one() -> None:
    inner = bytes.fromhex("97050000020e00c400"), bytes.fromhex("97060000140e00c400")
    together = bytes.fromhex("97000200001100c400") + b"".join(
        b"\xc4" + bytes([len(one)]) + one for one in inner
    )
    assert Calls().told(masked(together), CONNECTION) == "LockRLock + ReadAll"


def test_other_websockets_are_not_the_grid() -> None:
    assert Calls().told(b"\x82\x05hello", CONNECTION) is None
    assert Calls().told(b"\x81\x05hello", CONNECTION) is None
    assert Calls().told(b"\x82", CONNECTION) is None


def reference_frame(head: bytes) -> bytes:
    length = 12 + len(head)
    return struct.pack("<IQBIQ", length, 75, 1, len(head), 0) + head


def test_the_reference_store_is_told_by_its_enums() -> None:
    assert reference(reference_frame(b"\x00\x07x"), is_request=True) == "Write"
    assert reference(reference_frame(b"\x05x"), is_request=False) == "written"
    assert reference(reference_frame(b"\x00x"), is_request=False) == "reply"
    assert reference(reference_frame(b"\x01\x06x"), is_request=True) == "forwarded"
    assert reference(b"x" * 40, is_request=True) is None


def block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def packet(stamp_ns: int, payload: bytes, ip_id: int, ports: tuple[int, int]) -> bytes:
    tcp = struct.pack(">HHIIBBHHH", *ports, 1, 1, 0x50, 24, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), ip_id, 0, 64, 6, 0, b"aaaa", b"bbbb")
    data = b"\0" * 12 + b"\x08\x00" + ip + tcp
    head = struct.pack("<IIIII", 0, stamp_ns >> 32, stamp_ns & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data + b"\0" * (-len(data) % 4) + option(1, b"departed 1.0 ms later"))


BEHIND_NS = 1_795_282_688_211_391_662


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A record as ours are: one section, one interface, three packets a second apart."""
    clock = (
        f"Timestamps are the entry into the link. CLOCK_MONOTONIC (the clock of samples.parquet) "
        f"is {BEHIND_NS} ns behind the timestamps."
    ).encode()
    section = block(
        0x0A0D0D0A, b"\x4d\x3c\x2b\x1a" + struct.pack("<HHq", 1, 0, -1) + option(1, clock)
    )
    interface = block(1, struct.pack("<HHI", 1, 0, 256) + option(2, b"dc1->dc2"))
    packets = [
        packet(BEHIND_NS + second * 10**9, text, second, (40_000, 9000))
        for second, text in ((1, b"GET /one HTTP/1.1"), (2, b"GET /two HTTP/1.1"), (3, b""))
    ]
    path = tmp_path / "made-up.pcapng"
    path.write_bytes(section + interface + b"".join(packets))
    return path


def test_packets_are_found_by_their_instant_on_the_samples_clock(capture: Path) -> None:
    (found,) = read_within(capture, [(2 * 10**9, 2 * 10**9)])
    assert (found.entry_ns, found.direction, found.ip_id) == (2 * 10**9, "dc1->dc2", 2)
    assert found.payload == b"GET /two HTTP/1.1"
    assert len(list(read_within(capture, [(0, 10**10), (10**9, 2 * 10**9)]))) == 3


def test_labels_are_found_by_what_the_table_has(capture: Path) -> None:
    told = labels_within(capture, "made-up", [(0, 10**10)])
    assert told == {(10**9, "dc1->dc2", 1): "GET /one", (2 * 10**9, "dc1->dc2", 2): "GET /two"}


def test_a_record_that_is_cut_short_or_missing_tells_what_it_can(capture: Path) -> None:
    whole = capture.read_bytes()
    for length in range(0, len(whole), 7):
        capture.write_bytes(whole[:length])
        assert len(list(read_within(capture, [(0, 10**10)]))) <= 3
    assert list(read_within(capture.with_name("nowhere"), [(0, 10**10)])) == []
