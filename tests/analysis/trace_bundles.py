"""Bundles with a packet record, made up: one request after another between three sites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "packets"))

from packet_traffic import MS, Traffic, samples

from tests.bundles import manifest_of, write
from wanlat.analysis.groups import Group
from wanlat.analysis.trace import Trace, trace_of
from wanlat.bundle import documents
from wanlat.bundle.run import Run, Series, read_run

ONE_WAY_NS = 50 * MS
SITES = ("a", "b", "c")
PUT = Group(Series("made-up", "1"), "Put", "unknown")
Request = Callable[[Traffic, int], int]

__all__ = ["MS", "PUT", "Request", "Traffic", "bundle_of", "heartbeats", "rounds", "traced"]


def rounds(count: int, thinks_ns: int = MS) -> Request:
    """A request of so many rounds to the other two sites, each over when both have replied."""

    def run(traffic: Traffic, at_ns: int) -> int:
        for _ in range(count):
            replies = []
            for place, other in enumerate(("b1", "c1")):
                there = traffic.send(at_ns + thinks_ns + place * 1000, "a1", other, 200 + place)
                replies.append(traffic.send(there + thinks_ns, other, "a1", 80))
            at_ns = max(replies)
        return at_ns + thinks_ns

    return run


def heartbeats(traffic: Traffic, at_ns: int) -> None:
    """Sent without a request, again and again."""
    for number in range(60):
        traffic.send(at_ns + number * 73 * MS, "b1", "c1", 40)


def bundle_of(
    directory: Path,
    requests: Sequence[Request],
    *,
    pause_ns: int = 200 * MS,
    between: Callable[[Traffic, int], object] | None = None,
    **manifest: Any,
) -> Run:
    """What a run of these requests leaves; `between` sends what is nobody's, from an instant on.

    The run begins with an idle window of two seconds, in which `between` sends too.
    """
    traffic = Traffic(one_way_ns=ONE_WAY_NS, sites=SITES, nodes=2)
    idle, now, made = (1000 * MS, 3000 * MS), 3000 * MS, []
    for request in requests:
        end = request(traffic, now)
        made.append(("Put", now, end))
        now = end + pause_ns
    if between is not None:
        between(traffic, idle[0])
    step = documents.RttStep(
        system="made-up",
        rtt_step=0,
        requested_rtt_ms=100.0,
        measured_rtt_ms=100.0,
        idle_ns=idle,
    )
    document = manifest_of(
        [("made-up", "1")],
        {"name": "made-up", "endpoints": ["Put"]},
        topology="made-up",
        sites={site: [f"{site}1", f"{site}2"] for site in SITES},
        capture={"files": [{"system": "made-up", "packets": 100}]},
    )
    rows = {"samples": samples(made, rtt_ms=100.0)}
    write(directory, document | manifest, rows, documents.RttSteps(rtt_steps=[step]))
    traffic.frame().to_parquet(directory / "packets.parquet")
    return read_run(directory)


def traced(directory: Path, requests: Sequence[Request], **settings: Any) -> Trace:
    """The trace of the typical one of made-up requests."""
    return trace_of(bundle_of(directory, requests, **settings), PUT)
