"""HTTP/2, and gRPC on it: the path of a request, the status of an answer (RFC 9113, RFC 7541).

A record begins in the middle of connections, so the dynamic table of header compression is not
known. A path that its sender indexed there cannot be told; common libraries send it in full each
time, because paths hardly ever come twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpack import HPACKDecodingError
from hpack.hpack import decode_integer
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME = 9
_DATA, _HEADERS, _PRIORITY_FRAME, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = (
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    8,
)
_NAMES = {
    _DATA: "DATA",
    _RESET: "RST_STREAM",
    _SETTINGS: "SETTINGS",
    _PING: "PING",
    _GOAWAY: "GOAWAY",
    _WINDOW: "WINDOW_UPDATE",
}
_KNOWN = 10
_LARGEST_FRAME = 1 << 20  # the default is 16 KiB; what claims more than this is something else
_ACK, _PADDED, _PRIORITY = 0x01, 0x08, 0x20
_FIXED_BYTES = {_RESET: 4, _PING: 8, _WINDOW: 4, _PRIORITY_FRAME: 5}
_OF_CONNECTION = {_SETTINGS, _PING, _GOAWAY}
_OF_STREAM = {_DATA, _HEADERS, _RESET, _PRIORITY_FRAME, 9}


def http2(payload: bytes) -> str | None:
    """ "bob_storage.BobApi/Put", "status 200", "PING" and the like; None for what is no HTTP/2."""
    names = []
    for kind, flags, body in _frames(payload.removeprefix(_PREFACE)) or ():
        if kind == _HEADERS:
            begin = (1 if flags & _PADDED else 0) + (5 if flags & _PRIORITY else 0)
            if told := _told(body[begin:]):
                return told
            names.append("HEADERS")
        elif kind in _NAMES:
            is_ack = kind in (_PING, _SETTINGS) and flags & _ACK
            names.append(_NAMES[kind] + (" ack" if is_ack else ""))
    return " + ".join(dict.fromkeys(names)) or None


def _frames(payload: bytes) -> list[tuple[int, int, bytes]] | None:
    """The frames that begin in `payload`; None if they do not look like any.

    The last one may be cut short, by the record or by the end of the segment.
    """
    frames, at = [], 0
    while at + _FRAME <= len(payload):
        length = int.from_bytes(payload[at : at + 3], "big")
        kind, flags = payload[at + 3], payload[at + 4]
        stream = int.from_bytes(payload[at + 5 : at + 9], "big")
        if kind >= _KNOWN or length > _LARGEST_FRAME or stream >> 31:
            return None
        if length != _FIXED_BYTES.get(kind, length) or (kind == _SETTINGS and length % 6):
            return None
        if (kind in _OF_CONNECTION and stream) or (kind in _OF_STREAM and not stream):
            return None
        frames.append((kind, flags, payload[at + _FRAME : at + _FRAME + length]))
        at += _FRAME + length
    return frames


def _told(block: bytes) -> str | None:
    """The path among the headers, or the status; None if neither can be read."""
    status = None
    for name, value in _fields(block):
        if name == ":path":
            return value.removeprefix("/")
        if name == ":status":
            status = status or f"status {value}"
    return status


def _fields(block: bytes) -> Iterator[tuple[str, str]]:
    """The headers that can be read without the dynamic table; "" for a name that is spelled out.

    hpack's own decoder wants the whole connection; its parts do not.
    """
    at = 0
    try:
        while at < len(block):
            first = block[at]
            prefix = 7 if first & 0x80 else 6 if first & 0x40 else 5 if first & 0x20 else 4
            index, used = decode_integer(block[at:], prefix)
            at += used
            name, value = _STATIC[index] if 0 < index < len(_STATIC) else ("", "")
            if prefix == 5:  # a change of the dynamic table's size
                continue
            if prefix != 7:
                if index == 0:
                    _, at = _string(block, at)
                value, at = _string(block, at)
            if value:
                yield name, value
    except (HPACKDecodingError, IndexError):  # cut short, or no text
        return


_STATIC = [("", ""), *((n.decode(), v.decode()) for n, v in HeaderTable.STATIC_TABLE)]


def _string(block: bytes, at: int) -> tuple[str, int]:
    """A string, and where what follows it begins. Raises IndexError where it is cut short."""
    length, used = decode_integer(block[at:], 7)
    end = at + used + length
    if end > len(block):
        raise IndexError
    raw = block[at + used : end]
    return (decode_huffman(raw) if block[at] & 0x80 else raw).decode("ascii", "replace"), end
