"""A few words on each packet of some spans of time, by which it is found in the packet table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from wanlat.analysis.first_bytes.grid import Calls
from wanlat.analysis.first_bytes.http1 import http1
from wanlat.analysis.first_bytes.http2 import http2
from wanlat.analysis.first_bytes.pcapng import Captured, Span, read_within
from wanlat.analysis.first_bytes.reference import reference

Key = tuple[int, str, int]
"""Entry (CLOCK_MONOTONIC, ns), direction ("dc1->dc2") and IP identification of a packet."""

_REFERENCE_STORE = "quorum"


def labels_within(path: Path, system: str, spans: Sequence[Span]) -> dict[Key, str]:
    """What the packets are that entered within `spans`, as far as that can be told.

    `path` is the record of the lab of `system`; where it is missing nothing is told.
    """
    return labels_of(read_within(path, spans), system)


def labels_of(packets: Iterable[Captured], system: str) -> dict[Key, str]:
    """The same of `packets`, which come in the order of their entries."""
    calls = Calls()
    told = {}
    for packet in packets:
        if not packet.payload:
            continue
        if text := _label(packet, system, calls):
            told[packet.entry_ns, packet.direction, packet.ip_id] = text
    return told


def _label(packet: Captured, system: str, calls: Calls) -> str | None:
    payload = packet.payload
    if text := http1(payload):
        return text
    # Who asks has a port from the range of passing ones, which lies above those of servers.
    is_request = packet.target_port < packet.source_port
    if system == _REFERENCE_STORE and (text := reference(payload, is_request=is_request)):
        return text
    return calls.told(payload, packet.connection) or http2(payload)
