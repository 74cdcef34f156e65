"""A few words on packets of a record, told from their first bytes in its pcapng file."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable
from pathlib import Path

from wanlat.analysis.first_bytes.grid import Calls
from wanlat.analysis.first_bytes.http2 import http2
from wanlat.analysis.packets.record import Record

HEARTBEATS = frozenset({"ping", "pong", "PING", "PING ack"})
"""Labels of what connections are kept alive with: no request is behind it."""

_PACKET_BLOCK = 6
_ETHERNET = 14

_METHODS = b"GET|PUT|POST|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
_REQUEST = re.compile(rb"(" + _METHODS + rb") ([^ \r\n]{1,2000})")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]{0,40}))?")

_REFERENCE_STORE = "quorum"
_HEADER = 13  # length: u32, message: u64, first: u8
_START = 12  # length of the head: u32, of the body: u64
_LONGEST_FRAME = 64 << 20
# In the order of the enums in systems/quorum/src/replica.rs.
_COMMANDS = ("Nothing", "Buckets", "Bucket", "CreateBucket", "MergeBucket", "List", "Get", "Write")
_ANSWERS = ("reply", "buckets", "bucket", "page", "object", "written", "refused", "failed")
_GREETING = b"quorum 1"


def labels_of(record: Record, places: Iterable[int], capture: Path) -> dict[int, str]:
    """What packets are, by their places in the record, as far as that can be told.

    `capture` is the pcapng file that the record was made from; where it is missing nothing is told.
    First bytes are an aside, and a trace is drawn without them too.
    """
    wanted = {int(record.row[place]): place for place in sorted(set(places))}
    frames = _frames(capture, wanted)
    calls = Calls()
    labels = {}
    for row, place in wanted.items():
        payload = _payload(frames.get(row, b""), bool(record.is_tcp[place]))
        # Whoever asks has a port from the range of passing ones, which lies above those of servers.
        is_request = bool(record.target_port[place] < record.source_port[place])
        text = http1(payload)
        if text is None and record.system == _REFERENCE_STORE:
            text = reference(payload, is_request=is_request)
        text = text or calls.told(payload, int(record.stream[place]) // 2) or http2(payload)
        if text:
            labels[place] = text
    return labels


def http1(payload: bytes) -> str | None:
    """ "PUT /minio/storage/x" (without a query) or "200 OK"; None for what is neither.

    A line that the record cut short is given as far as it goes.
    """
    if request := _REQUEST.match(payload):
        path = request[2].split(b"?", 1)[0]
        return f"{request[1].decode()} {path.decode('ascii', 'replace')}"
    if status := _STATUS.match(payload):
        return b" ".join(part for part in status.groups() if part).decode("ascii", "replace")
    return None


def reference(payload: bytes, *, is_request: bool) -> str | None:
    """ "Write", "written", "forwarded", "reply" of the reference store's nodes; None for what is no
    first frame of a message (systems/quorum/src/peers/frame.rs)."""
    if _GREETING in payload[: _HEADER + _START + 16]:
        return "greeting"
    if len(payload) < _HEADER + _START + 1 or payload[12] != 1:
        return None
    length = int.from_bytes(payload[:4], "little")
    head_bytes = int.from_bytes(payload[13:17], "little")
    if not _START <= length <= _LONGEST_FRAME or head_bytes > length - _START:
        return None
    head = payload[_HEADER + _START : _HEADER + _START + 2]
    if not is_request:
        # 0 begins an answer without content, and the answer to what was forwarded, too.
        return _ANSWERS[head[0]] if 0 < head[0] < len(_ANSWERS) else "reply"
    if head[0] != 0:
        return "forwarded"
    return _COMMANDS[head[1]] if len(head) > 1 and head[1] < len(_COMMANDS) else None


def _frames(path: Path, rows: Iterable[int]) -> dict[int, bytes]:
    """What a pcapng file kept of frames, by their number in it, which is their row in the table.

    https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html; little-endian, as ours are. Of
    a file that is cut short what can be read.
    """
    wanted, frames = set(rows), {}
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = number = 0
            while at + 12 <= len(data):
                kind, length = struct.unpack_from("<II", data, at)
                if length < 12 or at + length > len(data):
                    break
                if kind == _PACKET_BLOCK:
                    if number in wanted:
                        (kept,) = struct.unpack_from("<I", data, at + 20)
                        frames[number] = data[at + 28 : at + 28 + kept]
                    number += 1
                at += length
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        pass
    return frames


def _payload(frame: bytes, is_tcp: bool) -> bytes:
    """What an Ethernet frame with an IPv4 packet has of the transport's payload."""
    if len(frame) < _ETHERNET + 20:
        return b""
    transport = _ETHERNET + (frame[_ETHERNET] & 15) * 4
    (total,) = struct.unpack_from(">H", frame, _ETHERNET + 2)
    # An offloaded frame of more than 64 KiB has a total length of 0; padding is no payload.
    frame = frame[: _ETHERNET + total] if total else frame
    if len(frame) <= transport + 12:
        return b""
    return frame[transport + ((frame[transport + 12] >> 4) * 4 if is_tcp else 8) :]
