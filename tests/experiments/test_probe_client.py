"""The quiet user beside a load: whatever the store does, no instant of his is without a row.

Against a store in this process that stands still, or never answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from wanlat.experiments.workloads.probe_client import ProbeClient
from wanlat.probes.plan import Plan, PlanHeader, Request
from wanlat.probes.process import spawn_here
from wanlat.probes.records import Sample
from wanlat.topologies.units import Duration

MS = 1_000_000


@dataclass
class Taken:
    """What came of each instant, in order: the request, its sample (None: not sent), when due."""

    rows: list[tuple[Request, Sample | None, int]] = field(default_factory=list)

    def __call__(self, request: Request, sample: Sample | None, due_ns: int) -> None:
        self.rows.append((request, sample, due_ns))

    @property
    def due_ns(self) -> list[int]:
        """Every instant."""
        return [due_ns for _, _, due_ns in self.rows]


@contextmanager
def asking(
    answers: Callable[[], object], every_ms: int, deadline_ms: int = 30_000
) -> Iterator[ProbeClient]:
    """A quiet user whose store calls ``answers`` before each of its answers."""

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
    header = PlanHeader("127.0.0.1", server.server_port, "garage", "ACCESS", "SECRET")
    asked: Any = SimpleNamespace(
        study=SimpleNamespace(key_mode="fresh"),
        header=lambda _: replace(header, deadline_ms=deadline_ms),
    )
    requests = tuple(
        Request(seq, "measure", "GetObject", "b", f"k{seq}", object_bytes=0) for seq in range(5000)
    )
    plan = Plan(prepare=(), warmup=(), measure=requests, seed=1)
    cluster: Any = None
    try:
        with ProbeClient(spawn_here, asked, cluster, plan, Duration(every_ms * MS)) as quiet:
            yield quiet
    finally:
        server.shutdown()
        server.server_close()


def test_who_came_while_the_store_stood_still_waited_until_it_went_on() -> None:
    went_on_ns: list[int] = []

    def answers() -> None:
        if not went_on_ns:
            time.sleep(0.5)
            went_on_ns.append(time.monotonic_ns())

    taken = Taken()
    with asking(answers, every_ms=20) as quiet:
        quiet.begin()
        while not went_on_ns:
            quiet.go_on(time.monotonic_ns() + 100 * MS, taken)
        quiet.finish(taken)
        (still_ns,) = went_on_ns
        assert {after - before for before, after in pairwise(taken.due_ns)} == {20 * MS}
        before = [row for row in taken.rows if row[2] < still_ns]
        assert len(before) >= 500 // 20
        for _, sample, due_ns in before:
            assert sample is not None
            assert sample.start_ns + sample.elapsed_ns >= still_ns > due_ns
        assert quiet.late >= len(before) - 1
        assert quiet.left_out == 0
    assert [request.seq for request, _, _ in taken.rows] == list(range(len(taken.rows)))


def test_what_could_not_be_sent_in_time_is_counted_and_has_a_row() -> None:
    never = threading.Event()
    taken = Taken()
    with asking(lambda: never.wait(60), every_ms=50, deadline_ms=1000) as quiet:
        quiet.begin()
        while not quiet.left_out:
            quiet.go_on(time.monotonic_ns() + 100 * MS, taken)
        quiet.finish(taken)
        assert {after - before for before, after in pairwise(taken.due_ns)} == {50 * MS}
        unsent = [row for row in taken.rows if row[1] is None]
        assert len(unsent) == quiet.left_out >= 1
        sent = [(sample, due_ns) for _, sample, due_ns in taken.rows if sample is not None]
        assert {sample.outcome for sample, _ in sent} == {"unknown"}
        for sample, due_ns in sent:  # the deadline counts from when it was due
            assert sample.start_ns >= due_ns
    never.set()


def test_the_line_is_worked_off_before_the_next_part_and_left_out_when_it_is_cut() -> None:
    held = threading.Event()
    taken = Taken()
    with asking(lambda: held.wait(60), every_ms=20) as quiet:
        quiet.begin()
        began_ns = time.monotonic_ns()
        quiet.go_on(began_ns + 300 * MS, taken)
        assert not taken.rows
        held.set()
        quiet.settle(taken)
        assert len(taken.rows) >= 300 // 20
        assert all(sample is not None for _, sample, _ in taken.rows)
        # The next part has instants of its own.
        settled_ns, first = time.monotonic_ns(), len(taken.rows)
        held.clear()
        quiet.begin()
        quiet.go_on(time.monotonic_ns() + 300 * MS, taken)
        quiet.cut()
        assert len(taken.rows) == first
        assert quiet.left_out >= 300 // 20 - 1
        held.set()
        quiet.settle(taken)
        assert taken.rows[first][2] >= settled_ns
