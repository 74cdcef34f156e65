"""The packets of a span of time, read from a packet record's pcapng file.

https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html; only what our own files have:
one section, Ethernet, IPv4, nanoseconds. docs/capture.md says what the comments mean.
"""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_LITTLE_ENDIAN = b"\x4d\x3c\x2b\x1a"
_NAME_OPTION = 2
_CLOCK = re.compile(rb"CLOCK_MONOTONIC \(the clock of samples\.parquet\) is (\d+) ns behind")
_ETHERNET, _IPV4, _TCP, _UDP = 14, 0x0800, 6, 17


Span = tuple[int, int]
"""Begin and end, CLOCK_MONOTONIC, nanoseconds, both included."""


@dataclass(frozen=True)
class Captured:
    """One packet of a pcapng file: when it entered the link, which one it is, how it begins.

    `entry_ns` is CLOCK_MONOTONIC; `direction` is "dc1->dc2"; `payload` is what the record kept of
    the transport's payload.
    """

    entry_ns: int
    direction: str
    ip_id: int
    source: bytes
    target: bytes
    source_port: int
    target_port: int
    payload: bytes

    @property
    def connection(self) -> frozenset[object]:
        """The same for both directions of a connection, and for no other one."""
        return frozenset({(self.source, self.source_port), (self.target, self.target_port)})


def read_within(path: Path, spans: Sequence[Span]) -> Iterator[Captured]:
    """The TCP and UDP packets that entered within one of `spans`, in the order of the file.

    A file that is not there, is not ours, or was cut short yields what can be read of it: first
    bytes are an aside, and a trace is drawn without them too.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from _packets(data, _joined(spans))
    except (OSError, ValueError, struct.error):  # ValueError: an empty file cannot be mapped
        return


def _joined(spans: Sequence[Span]) -> list[Span]:
    """The same instants as spans that do not overlap, in order."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _packets(data: mmap.mmap, spans: Sequence[Span]) -> Iterator[Captured]:
    begins = [begin for begin, _ in spans]
    behind_ns: int | None = None
    names: list[str] = []
    at, size = 0, len(data)
    while at + 12 <= size:
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12 or length % 4 or at + length > size:
            return
        if kind == _PACKET and behind_ns is not None:
            interface, high, low, kept = struct.unpack_from("<IIII", data, at + 8)
            entry_ns = (high << 32 | low) - behind_ns
            place = bisect_right(begins, entry_ns) - 1
            if place >= 0 and entry_ns <= spans[place][1] and interface < len(names):
                frame = data[at + 28 : at + 28 + kept]
                if packet := _parsed(frame, entry_ns, names[interface]):
                    yield packet
        elif kind == _SECTION:
            if data[at + 8 : at + 12] != _LITTLE_ENDIAN:
                return
            clock = _CLOCK.search(data[at : at + length])
            behind_ns = int(clock[1]) if clock else None
            names = []
        elif kind == _INTERFACE:
            names.append(_option(data[at + 16 : at + length - 4], _NAME_OPTION))
        at += length


def _option(options: bytes, wanted: int) -> str:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == wanted:
            return options[at + 4 : at + 4 + length].decode("utf-8", "replace")
        at += 4 + (length + 3) // 4 * 4
    return ""


def _parsed(frame: bytes, entry_ns: int, direction: str) -> Captured | None:
    """What the headers of a frame say; None for what is neither TCP nor UDP or carries nothing."""
    if len(frame) < _ETHERNET + 20 or int.from_bytes(frame[12:14], "big") != _IPV4:
        return None
    header = (frame[_ETHERNET] & 15) * 4
    total, ip_id = struct.unpack_from(">HH", frame, _ETHERNET + 2)
    protocol, transport = frame[_ETHERNET + 9], _ETHERNET + header
    if protocol not in (_TCP, _UDP) or len(frame) < transport + (20 if protocol == _TCP else 8):
        return None
    source_port, target_port = struct.unpack_from(">HH", frame, transport)
    begin = transport + ((frame[transport + 12] >> 4) * 4 if protocol == _TCP else 8)
    # An offloaded frame of more than 64 KiB has a total length of 0; padding is no payload.
    payload = frame[begin : _ETHERNET + total if total else None]
    source, target = frame[_ETHERNET + 12 : _ETHERNET + 16], frame[_ETHERNET + 16 : _ETHERNET + 20]
    return Captured(entry_ns, direction, ip_id, source, target, source_port, target_port, payload)
