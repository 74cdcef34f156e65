"""A record is read whole, and what is none is said to be none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wanlat.probes.errors import ProbeFailed
from wanlat.probes.records import Sample

RECORD: dict[str, Any] = {
    "seq": 3,
    "phase": "measure",
    "endpoint": "GetObject",
    "start_ns": 10**15,
    "connect_ns": 0,
    "sent_ns": 9_000,
    "first_byte_ns": None,
    "total_ns": None,
    "elapsed_ns": 30_000_000_000,
    "outcome": "unknown",
    "status": None,
    "grpc_status": None,
    "error": "timeout (first byte)",
    "object_bytes": 0,
    "sha256": None,
    "verify_ns": None,
    "make_ns": None,
    "listed": None,
    "new_connection": False,
    "retransmits": 2,
    "out_of_order": 0,
    "acks_sent": 1,
    "rtt_us": 100_123,
    "longest_gap_ns": 0,
    "reads": 0,
}


def test_a_record_becomes_a_sample() -> None:
    sample = Sample.parse(json.dumps(RECORD))
    assert (sample.seq, sample.outcome, sample.error) == (3, "unknown", "timeout (first byte)")
    assert sample.total_ns is None
    assert sample.retransmits == 2


def test_what_a_newer_oneshot_adds_is_left_out() -> None:
    assert Sample.parse(json.dumps(RECORD | {"colour": 1})) == Sample.parse(json.dumps(RECORD))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"thread 'main' panicked",
        b"[]",
        json.dumps({**RECORD, "outcome": "perhaps"}),
        json.dumps({name: value for name, value in RECORD.items() if name != "elapsed_ns"}),
    ],
)
def test_anything_else_is_refused_with_the_way_out(line: bytes | str) -> None:
    with pytest.raises(ProbeFailed, match=r"no record of a request.*make build"):
        Sample.parse(line)
