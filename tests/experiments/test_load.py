"""Load without a lab: the client's account of itself, its table, and the probe client beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments.workloads.load import ProbeClient, load_result
from wanlat.probes.load import End, LoadJob
from wanlat.probes.objects import ObjectApi
from wanlat.probes.plan import Plan, Request
from wanlat.probes.process import spawn_here
from wanlat.probes.protocols.s3 import S3Header
from wanlat.probes.records import Sample
from wanlat.topologies.units import Duration

MS, S = 10**6, 10**9


class Taken(list[tuple[Request, Sample | None, int]]):
    """What came of each instant, in order: the request, its sample (None: not sent), when due."""

    def __call__(self, *row: Any) -> None:
        self.append(row)

    def gaps_ms(self) -> set[float]:
        """How far instants are apart."""
        return {(after[2] - before[2]) / MS for before, after in pairwise(self)}


@contextmanager
def probing(
    answers: Callable[[], object], every_ms: int, deadline_ms: int = 30_000
) -> Iterator[ProbeClient]:
    """A probe client whose store calls ``answers`` before each of its answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answers()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = S3Header("127.0.0.1", server.server_port, "garage", "ACCESS", "SECRET")
    planned: Any = SimpleNamespace(
        study=SimpleNamespace(key_mode="fresh"),
        header=lambda _: replace(there, deadline_ms=deadline_ms),
    )
    requests = tuple(
        Request(seq, "measure", "GetObject", "b", f"k{seq}", object_bytes=0) for seq in range(5000)
    )
    plan = Plan(prepare=(), warmup=(), measure=requests, seed=1)
    cluster: Any = None
    try:
        with ProbeClient(spawn_here, planned, cluster, plan, Duration(every_ms * MS)) as probe:
            yield probe
    finally:
        server.shutdown()
        server.server_close()


def test_what_was_due_while_the_store_stood_still_waits_and_is_cut_with_its_part() -> None:
    held, taken = threading.Event(), Taken()
    with probing(lambda: held.wait(60), every_ms=20) as probe:
        probe.begin(taken)
        time.sleep(0.3)
        assert not taken
        still_ns = time.monotonic_ns()
        held.set()
        probe.end()
        assert taken.gaps_ms() == {20}
        waited = [row for row in taken if row[2] < still_ns]
        assert len(waited) >= 300 // 20
        for _, sample, due_ns in waited:
            assert sample is not None
            assert sample.start_ns + sample.elapsed_ns >= still_ns > due_ns
        assert probe.late >= len(waited) - 1
        assert probe.left_out == 0
        assert [request.seq for request, _, _ in taken] == list(range(len(taken)))
        # The next part has instants of its own; what is in line when it is cut is left out.
        ended_ns, first = time.monotonic_ns(), len(taken)
        held.clear()
        probe.begin(taken)
        time.sleep(0.3)
        probe.close()
        held.set()
        assert probe.left_out >= 300 // 20 - 1
        ((_, cut, due_ns),) = taken[first:]
        assert cut is not None
        assert (cut.outcome, due_ns >= ended_ns) == ("unknown", True)


S3 = ObjectApi.over("s3")
assert S3 is not None
JOB = LoadJob("mix", Path("records"), S3, ["b"], 10, 1024, 1, workers=4, duration_ms=10_000)
CALM = End(
    end="complete",
    reason=None,
    began_ns=0,
    ended_ns=10 * S,
    **{"done": 1000, "ok": 1000, "failed": 0, "left_out": 0, "unanswered": 0},
    **{"not_sent": 0, "not_sent_error": None},
    bytes_read=0,
    bytes_written=0,
    threads=4,
    cores=2,
    **{"user_ns": S, "system_ns": S, "cpu_ns": 2 * S, "verify_ns": 0},
    thread_cpu_ns=(S // 2,) * 4,
    thread_waited_ns=(S // 10,) * 4,
    in_flight_ns=38 * S,
    errors={},
    examples={},
)


@pytest.mark.parametrize(
    ("change", "rate", "blamed"),
    [
        ({}, None, None),
        ({"cpu_ns": 17 * S}, None, "used 85 % of its 2 cores"),
        ({"thread_cpu_ns": (9 * S, S, S, S)}, None, "a worker of the generator computed 90 %"),
        ({"thread_waited_ns": (6 * S,) * 4}, None, "waiting for a core, 65 % of the time"),
        ({"in_flight_ns": 28 * S}, None, "no request in flight in 30 % of the time"),
        # Idle on purpose: at a rate, or after a failure.
        ({"in_flight_ns": 28 * S}, 100.0, None),
        ({"in_flight_ns": 28 * S, "failed": 1}, None, None),
    ],
)
def test_a_generator_that_could_do_no_more_is_named_and_one_that_waits_for_the_store_is_not(
    change: dict[str, Any], rate: float | None, blamed: str | None
) -> None:
    result, warnings = load_result(replace(JOB, rate=rate), replace(CALM, **change))
    assert result["achieved_per_s"] == 100
    if blamed is None:
        assert (result["bottleneck"], warnings) == (None, [])
    else:
        assert blamed in result["bottleneck"]
        assert "The store could have done more" in warnings[0]


def test_what_was_due_at_a_rate_and_never_sent_is_a_warning() -> None:
    _, warnings = load_result(replace(JOB, rate=200.0), replace(CALM, left_out=1000))
    assert len(warnings) == 1
    assert warnings[0].startswith("1,000 of 2,000 requests")


def test_what_this_machine_could_not_send_is_a_warning() -> None:
    ours = replace(CALM, ok=995, not_sent=5, not_sent_error="too many open files (socket)")
    result, warnings = load_result(JOB, ours)
    assert (result["failed"], result["not_sent"]) == (0, 5)
    assert len(warnings) == 1 and "too many open files" in warnings[0]
