"""How a cluster became ready is in the report: each step, of the first node and of the last."""

from __future__ import annotations

from typing import Any

from wanlat.analysis.figures.drill.requests import Event
from wanlat.analysis.figures.starts import starts_of


def event(ms: int, kind: str, subject: str, **facts: Any) -> Event:
    return Event(10**9 + ms * 10**6, kind, subject, "", facts)


def test_each_step_has_the_time_of_the_first_node_and_of_the_last() -> None:
    events = [
        event(0, "process started", "n1", system="nats"),
        event(100, "process started", "n2", system="nats"),
        event(300, "listening", "n1", system="nats", port=8222),
        event(500, "readiness step", "n1", system="nats", step="health"),
        event(1500, "readiness step", "n2", system="nats", step="health"),
        event(1600, "ready", "nats"),
        event(1700, "process started", "n1", system="etcd"),
        event(9000, "readiness step", "n1", system="nats", step="health"),
    ]
    steps = starts_of(events)
    assert [str(met) for met in steps if met.system == "nats"] == [
        *("processes started 0.0–0.1 s", "listening 0.3 s", "health 0.5–1.5 s", "ready 1.6 s"),
    ]
    assert [str(met) for met in steps if met.system == "etcd"] == ["processes started 0.0 s"]


def test_a_bundle_without_such_events_has_no_start() -> None:
    assert starts_of([event(0, "ready", "nats"), event(1, "lab up", "nats")]) == []
