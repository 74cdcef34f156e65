"""Rows of a drill's samples: a request, where it came from, and when it was due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from wanlat.probes.plan import Placement
from wanlat.probes.records import Outcome, Sample

Way = Literal["read", "write"]
Row = dict[str, Any]
"""As the bundle's samples have it (docs/bundle.md)."""
OnRow = Callable[[Row], object]

_NEVER: Row = {
    "start_ns": None,
    "connect_ns": None,
    "sent_ns": None,
    "first_byte_ns": None,
    "total_ns": None,
    "elapsed_ns": None,
    "status": None,
    "grpc_status": None,
    "sha256": None,
    "listed": None,
    "object_bytes": 0,
    "new_connection": False,
    "retransmits": 0,
    "out_of_order": 0,
    "acks_sent": 0,
    "rtt_us": 0,
    "longest_gap_ns": 0,
    "reads": 0,
}
"""What is known of a request that no sample came of."""

_COLUMNS = tuple(field.name for field in fields(Sample))


@dataclass(frozen=True)
class Place:
    """Where a client of the drill, its reader and its writer, runs and which node it targets."""

    name: str
    """Of the client."""
    node: str
    target: str
    site: str = ""
    """Of its own node."""

    def row(
        self,
        constant: Mapping[str, Any],
        what: Row,
        *,
        phase: str,
        way: Way,
        key: str | None,
        placement: Placement,
        due_ns: int | None,
    ) -> Row:
        """Return the row of a request: ``constant`` columns, and ``what`` came of it."""
        return {
            **what,
            **constant,
            "phase": phase,
            "client": self.node,
            "drill_client": self.name,
            "target": self.target,
            "operation": way,
            "key": key,
            "placement": placement,
            "due_ns": due_ns,
        }


def sampled(sample: Sample) -> Row:
    """Return what came of a request that has a sample."""
    return {name: getattr(sample, name) for name in _COLUMNS}  # `asdict` takes ten times as long


def never_sent(seq: int, endpoint: str, why: str) -> Row:
    """Return what came of a request that was due and not sent."""
    return _NEVER | {"seq": seq, "endpoint": endpoint, "outcome": "fail", "error": why}


def never_answered(seq: int, endpoint: str, why: str, handed_ns: int, now_ns: int) -> Row:
    """Return what came of a request whose sender was gone before it could tell.

    It may have left at any time since it was handed over.
    """
    outcome: Outcome = "unknown"
    return _NEVER | {
        "seq": seq,
        "endpoint": endpoint,
        "outcome": outcome,
        "error": why,
        "start_ns": handed_ns,
        "elapsed_ns": now_ns - handed_ns,
    }
