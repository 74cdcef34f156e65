"""What comes back of a request: one sample."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Literal, get_args

from wanlat.probes.errors import ProbeFailed
from wanlat.probes.plan import Phase

Outcome = Literal["ok", "fail", "unknown", "not_sent"]
"""`bundle.outcomes` has what each means."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured request. Durations (``_ns``) count from ``start_ns``; None: not reached."""

    seq: int
    phase: Phase
    endpoint: str
    start_ns: int
    """CLOCK_MONOTONIC, just before connecting, or before writing on a kept connection."""
    connect_ns: int | None
    """The connection is established; 0 where it was kept."""
    sent_ns: int | None
    """The kernel has taken the last byte of the request."""
    first_byte_ns: int | None
    total_ns: int | None
    """The last byte of the response was read. None unless the response is complete."""
    elapsed_ns: int
    """The clock was stopped, whatever the outcome."""
    outcome: Outcome
    status: int | None
    """HTTP status, where a response began."""
    grpc_status: int | None
    """gRPC's status code, where the response has one; None of S3."""
    error: str | None
    """Why it is not ok, in a few words; None when it is."""
    object_bytes: int
    """Body bytes moved: those sent of an object being put, else those received."""
    sha256: str | None
    """Of the object put or got."""
    verify_ns: int | None
    """How long comparing the object that came, byte by byte, took; None: nothing was compared.
    Objects longer than 8 MiB are compared as they come, so that it is part of ``total_ns`` (all but
    what the last read brought); others when the clock has stopped."""
    make_ns: int | None
    """How long making the object took while the clock ran: 0 up to 8 MiB. None: none was sent."""
    listed: int | None
    """Items in a listing."""
    new_connection: bool
    retransmits: int
    """Segments the client's kernel sent again during the request (TCP_INFO)."""
    out_of_order: int
    """Segments that reached the client out of order: the server's losses, seen from here."""
    acks_sent: int
    """Acknowledgements without data that the client's kernel sent during the request."""
    rtt_us: int
    """The client's kernel's estimate of the connection's round-trip time, afterwards."""
    longest_gap_ns: int
    """Longest time between two reads of the response."""
    reads: int
    """How many reads the response took."""

    @classmethod
    def parse(cls, line: bytes | str) -> Sample:
        """Read one line of oneshot's output. Raises ProbeFailed when it is not a record.

        Keys that are not known here are left out: a newer oneshot may have more.
        """
        try:
            record = json.loads(line)
            sample = cls(**{name: record[name] for name in _NAMES})
        except (ValueError, TypeError, KeyError) as error:
            raise _not_a_record(line, repr(error)) from error
        if sample.outcome not in get_args(Outcome):
            raise _not_a_record(line, f"outcome is {sample.outcome!r}")
        return sample


_NAMES = tuple(field.name for field in fields(Sample))


def _not_a_record(line: bytes | str, why: str) -> ProbeFailed:
    return ProbeFailed(
        f"oneshot wrote a line that is no record of a request ({why}): {line[:200]!r}. "
        "It may be of another version than this checkout: build it again with `make build`."
    )
