"""Bundles with a packet record, made up: one request after another between three sites."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).parent / "packets"))

from packet_traffic import MS, Traffic, samples, topology

from wanlat.analysis.bundle import Bundle, Series, read_bundle
from wanlat.analysis.summary import Group
from wanlat.analysis.trace import trace_of
from wanlat.analysis.trace_model import Trace

SERIES = Series("made-up", "1")
ONE_WAY_NS = 50 * MS
SITES = ("a", "b", "c")
Request = Callable[[Traffic, int], int]

__all__ = ["MS", "ONE_WAY_NS", "Request", "Traffic", "bundle_of", "group", "rounds", "traced"]


def rounds(count: int, thinks_ns: int = MS) -> Request:
    """A request of so many rounds to the other two sites, each over when both have replied."""

    def run(traffic: Traffic, at_ns: int) -> int:
        now = at_ns
        for _ in range(count):
            now += thinks_ns
            replies = []
            for place, other in enumerate(("b1", "c1")):
                there = traffic.send(now + place * 1000, "a1", other, 200 + place)
                replies.append(traffic.send(there + thinks_ns, other, "a1", 80))
            now = max(replies)
        return now + thinks_ns

    return run


def bundle_of(
    directory: Path,
    requests: Sequence[Request],
    *,
    endpoint: str = "Put",
    pause_ns: int = 200 * MS,
    between: Callable[[Traffic, int], object] | None = None,
    idle_ns: int = 2000 * MS,
    rtt_ms: float = 100.0,
    manifest: dict[str, Any] | None = None,
    nodes: int = 1,
) -> Bundle:
    """What a run of these requests leaves; `between` sends what is nobody's, from an instant on.

    The run begins with an idle window, in which `between` sends too.
    """
    traffic = Traffic(one_way_ns=ONE_WAY_NS, sites=SITES, nodes=nodes)
    now = 1000 * MS
    idle = (now, now + idle_ns)
    now += idle_ns
    made = []
    for request in requests:
        end = request(traffic, now)
        made.append((endpoint, now, end))
        now = end + pause_ns
    if between is not None:
        between(traffic, idle[0])
    frame = samples(made, rtt_ms=rtt_ms)
    visit = {
        "system": "made-up",
        "rtt_step": 0,
        "requested_rtt_ms": rtt_ms,
        "requested_jitter_ms": 0.0,
        "idle_ns": list(idle),
        "measured_rtt_ms": rtt_ms,
        "pairs": [],
        "verdict": "pass",
    }
    directory.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(directory / "samples.parquet")
    table = traffic.frame()
    table.insert(0, "ip_id", range(len(table)))
    table.to_parquet(directory / "packets.parquet")
    (directory / "rtt_steps.json").write_text(json.dumps({"rtt_steps": [visit]}))
    (directory / "manifest.json").write_text(
        json.dumps(
            {
                "schema_version": 2,
                "kind": "study",
                "status": "complete",
                "seed": 1,
                "study": {"name": "made-up", "endpoints": [endpoint]},
                "topology": topology(SITES, nodes),
                "client": {"node": "a1", "site": "a"},
                "target": {"node": "a1", "site": "a"},
                "systems": [{"name": "made-up", "version": "1"}],
                "capture": {"files": [{"system": "made-up", "packets": len(table)}]},
                **(manifest or {}),
            }
        )
    )
    return read_bundle(directory)


def group(endpoint: str = "Put", placement: str = "unknown") -> Group:
    """The group of requests of a made-up bundle."""
    return Group(SERIES, endpoint, placement)


def traced(directory: Path, requests: Sequence[Request], **settings: Any) -> Trace:
    """The trace of the typical one of made-up requests."""
    return trace_of(bundle_of(directory, requests, **settings), group())


def frame_of(bundle: Bundle) -> pd.DataFrame:
    """Its packets."""
    return pd.read_parquet(bundle.directory / "packets.parquet")
