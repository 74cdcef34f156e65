"""A word or two on packets of a record, read from their first bytes in its pcapng file.

Only what is in clear can be read, and what is a standard: HTTP/1 (RFC 9112), HTTP/2 and gRPC on it
(RFC 9113, RFC 7541); and what the system under test logs of its own protocol.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpack import Decoder, HPACKError

from wanlat.analysis.packets.record import Record
from wanlat.bundle import beneath

HEARTBEATS = frozenset({"PING", "PING ack", "ping", "pong"})
"""Labels of what connections are kept alive with: no request is behind it."""

_PACKET_BLOCK = 6
_ETHERNET = 14

_METHODS = b"GET|PUT|POST|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
_REQUEST = re.compile(rb"(" + _METHODS + rb") ([^ \r\n?]{1,2000})")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}(?: [^\r\n]{1,40})?)")

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME = 9
_DATA, _HEADERS, _PING = 0, 1, 6
_KINDS = 10
_LARGEST_FRAME = 1 << 20  # the default is 16 KiB; what claims more than this is something else
_ACK, _PADDED, _PRIORITY = 0x01, 0x08, 0x20


def labels_of(
    record: Record, places: Iterable[int], capture: Path, messages: Any = None
) -> dict[int, str]:
    """What packets are, by their places in the record, as far as that can be read.

    `capture` is the pcapng file that the record was made from; where it is missing nothing is read.
    First bytes are an aside, and a trace is drawn without them too. `messages` marks those of the
    system's own protocol, see `Run`.
    """
    keys = ["row", "is_tcp", "stream", "source_port", "target_port"]
    rows = record.packets.loc[sorted(set(places)), keys]
    frames = _frames(capture, set(rows["row"].tolist()))
    labels = {}
    for place, row, is_tcp, stream, source, target in rows.itertuples(name=None):
        payload = _payload(frames.get(row, b""), is_tcp)
        text = http1(payload)
        if text is None and messages is not None:
            text = messages.label(payload, int(stream) // 2, is_request=bool(target < source))
        if text := text or http2(payload):
            labels[int(place)] = text
    return labels


def http1(payload: bytes) -> str | None:
    """ "PUT /storage/x" (without a query) or "200 OK"; None for what is neither.

    A line that the record cut short is given as far as it goes.
    """
    match = _REQUEST.match(payload) or _STATUS.match(payload)
    return b" ".join(match.groups()).decode("ascii", "replace") if match else None


def http2(payload: bytes) -> str | None:
    """ "package.Service/Method", "status 200", "PING", "PING ack" or "DATA"; None for all else.

    It is what the first frame in `payload` with something to read is; the last one may be cut
    short, by the record or by the end of the segment.
    """
    payload, at, is_data = payload.removeprefix(_PREFACE), 0, False
    while at + _FRAME <= len(payload):
        length, stream = int.from_bytes(payload[at : at + 3]), payload[at + 5 : at + 9]
        kind, flags, body = payload[at + 3], payload[at + 4], payload[at + 9 : at + 9 + length]
        if kind >= _KINDS or length > _LARGEST_FRAME or stream[0] >> 7:
            return None
        if kind == _PING and length == 8 and not any(stream):
            return "PING ack" if flags & _ACK else "PING"
        if kind == _HEADERS:
            headers = _headers(body[bool(flags & _PADDED) + 5 * bool(flags & _PRIORITY) :])
            if ":path" in headers:
                return headers[":path"].removeprefix("/")
            if ":status" in headers:
                return f"status {headers[':status']}"
        is_data |= kind == _DATA and any(stream)
        at += _FRAME + length
    return "DATA" if is_data else None


def _headers(block: bytes) -> dict[str, str]:
    """The headers that can be read, of a block that the record may have cut short.

    It begins in the middle of connections, so what is in the dynamic table of header compression is
    not known: nameless entries stand for it. Common libraries spell a path out each time.
    """
    for end in range(len(block), 0, -1):
        decoder = Decoder()
        for _ in range(decoder.header_table_size // 32):
            decoder.header_table.add(b"", b"")
        try:
            return {str(name): str(value) for name, value in decoder.decode(block[:end])}
        except (HPACKError, UnicodeDecodeError):
            continue
    return {}


def _frames(path: Path, wanted: set[int]) -> dict[int, bytes]:
    """What a pcapng file kept of frames, by their number in it, which is their row in the table.

    https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html; little-endian, as ours are. Of
    a file that is cut short what can be read.
    """
    frames: dict[int, bytes] = {}
    try:
        with (
            beneath.opened(path) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
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
    # An offloaded frame of more than 64 KiB has a total length of 0; padding is no payload.
    total = int.from_bytes(frame[_ETHERNET + 2 : _ETHERNET + 4])
    frame = frame[: _ETHERNET + total] if total else frame
    if len(frame) <= transport + 12:
        return b""
    return frame[transport + ((frame[transport + 12] >> 4) * 4 if is_tcp else 8) :]
