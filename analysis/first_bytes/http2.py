"""HTTP/2, and gRPC on it: the path of a request, the status of an answer (RFC 9113, RFC 7541).

A record begins in the middle of connections, so the dynamic table of header compression is not
known. A path that its sender indexed there cannot be told; common libraries send it in full each
time, because paths hardly ever come twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from wanlat.analysis.first_bytes import huffman

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME = 9
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
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
_FIXED_BYTES = {_RESET: 4, _PING: 8, _WINDOW: 4, 2: 5}
_OF_CONNECTION = {_SETTINGS, _PING, _GOAWAY}
_OF_STREAM = {_DATA, _HEADERS, _RESET, 2, 9}

_PATH_NAMES = (4, 5)
_STATUS = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
_STATIC_TABLE = 61


def http2(payload: bytes) -> str | None:
    """ "bob_storage.BobApi/Put", "status 200", "PING" and the like; None for what is no HTTP/2."""
    rest = payload.removeprefix(_PREFACE)
    names = []
    for kind, flags, body in _frames(rest) or ():
        if kind == _HEADERS:
            if told := _told(_header_block(body, flags)):
                return told
            names.append("HEADERS")
        else:
            names.append(_NAMES.get(kind, "") + (" ack" if _is_ack(kind, flags) else ""))
    told_names = dict.fromkeys(name for name in names if name)
    return " + ".join(told_names) or None


def _is_ack(kind: int, flags: int) -> bool:
    return kind in (_PING, _SETTINGS) and bool(flags & _ACK)


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


def _header_block(body: bytes, flags: int) -> bytes:
    begin = (1 if flags & _PADDED else 0) + (5 if flags & _PRIORITY else 0)
    return body[begin:]


def _told(block: bytes) -> str | None:
    """The path among the headers, or the status; None if neither can be read."""
    status = None
    for index, value in _fields(block):
        if index in _PATH_NAMES and value:
            return value.removeprefix("/")
        if index in _STATUS and status is None:
            status = f"status {value or _STATUS[index]}"
    return status


def _fields(block: bytes) -> Iterator[tuple[int, str | None]]:
    """Index of each header's name (0: spelled out) and its value; None: it is the table's."""
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 7)
                if index <= _STATIC_TABLE:
                    yield index, None
                continue
            if first & 0xE0 == 0x20:  # a change of the dynamic table's size
                _, at = _integer(block, at, 5)
                continue
            index, at = _integer(block, at, 6 if first & 0x40 else 4)
            if index == 0:
                _, at = _string(block, at)
            value, at = _string(block, at)
            yield index, value
    except IndexError:  # cut short
        return


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while shift < 28:
        octet = block[at]
        at += 1
        value += (octet & 0x7F) << shift
        shift += 7
        if not octet & 0x80:
            break
    return value, at


def _string(block: bytes, at: int) -> tuple[str | None, int]:
    is_coded = bool(block[at] & 0x80)
    length, at = _integer(block, at, 7)
    if at + length > len(block):
        raise IndexError
    raw = block[at : at + length]
    text = huffman.decode(raw) if is_coded else raw.decode("ascii", "replace")
    return text, at + length
