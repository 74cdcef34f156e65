"""Load without a lab: the client's account of itself, its table, and the probe client beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.probes.null_store import null_store
from tests.probes.test_load_records import header, rows_of
from wanlat.bundle.lateness import with_network_error
from wanlat.experiments.config.load import PrefillSpec
from wanlat.experiments.workloads import prefill
from wanlat.experiments.workloads.load_result import add_rows, load_result, raw_path
from wanlat.experiments.workloads.probe_client import ProbeClient
from wanlat.probes.load import End, LoadJob, run_job
from wanlat.probes.plan import Plan, PlanHeader, Request
from wanlat.probes.process import Process, spawn_here
from wanlat.probes.records import Sample
from wanlat.topologies.units import Duration

MS, S = 10**6, 10**9
JOB = LoadJob("mix", Path("r"), ["b"], 1, 1, 1, workers=4, duration_ms=10_000, ramp_ms=2_000)
# Ten seconds of four workers that wait for their store, after a ramp of two.
END = End(
    **{"end": "complete", "reason": None, "began_ns": 0, "ended_ns": 10 * S, "done": 4000},
    **{"ok": 4000, "failed": 0, "bytes_read": 1, "bytes_written": 1, "left_out": 0},
    **{"unanswered": 0, "threads": 5, "cores": 2, "user_ns": S // 2, "system_ns": S // 2},
    **{"cpu_ns": S, "thread_cpu_ns": (S // 4,) * 4, "thread_waited_ns": (S // 10,) * 4},
    **{"in_flight_ns": 36 * S, "verify_ns": S // 100, "errors": {}, "examples": {}},
)


def test_shares_are_of_the_time_that_they_say() -> None:
    account, warnings = load_result(JOB, END)
    client = account["client"]
    assert client["cpu_share"] == 0.05  # 1 s of 2 x 10 s
    assert client["busiest_thread_share"] == client["computed_share"] == 0.025
    assert client["waited_share"] == 0.01
    # The workers began 0, 0.5, 1 and 1.5 s late: 37 s there were, 36 s of them in flight.
    assert client["between_share"] == round(1 - 36 / 37, 4)
    assert account["achieved_per_s"] == 400
    assert (account["bottleneck"], warnings) == (None, [])
    lost, warnings = load_result(JOB, None)
    assert lost["offered"] == {"workers": 4, "rate": None}
    assert lost["achieved_per_s"] is lost["client"] is lost["bottleneck"] is None
    assert warnings == []


@pytest.mark.parametrize(
    ("changes", "rate", "why", "warned"),
    [
        ({"cpu_ns": 17 * S}, None, "85 % of its 2 cores", "the client was the bottleneck"),
        ({"thread_cpu_ns": (9 * S, S, S, S)}, None, "computed 90 %", "was the bottleneck"),
        ({"thread_waited_ns": (6 * S,) * 4}, None, "waiting for a core, 62 %", "was the bottlen"),
        ({"in_flight_ns": 20 * S}, None, "no request in flight in 46 %", "was the bottleneck"),
        # Idle on purpose: for the rate, or because the store had refused them.
        ({"in_flight_ns": S}, 5.0, None, None),
        ({"in_flight_ns": S, "failed": 10}, None, None, None),
        ({"thread_waited_ns": (3 * S,) * 4}, None, None, "store and client share"),
        ({"left_out": 6000}, 1000.0, None, "6,000 of 10,000"),
    ],
)
def test_a_client_that_was_the_bottleneck_or_late_is_named_and_warned_of(
    changes: dict[str, Any], rate: float | None, why: str | None, warned: str | None
) -> None:
    account, warnings = load_result(replace(JOB, rate=rate), replace(END, **changes))
    assert (account["bottleneck"] is None) == (why is None)
    assert why is None or why in account["bottleneck"]
    assert len(warnings) == (warned is not None)
    assert all(str(warned) in each for each in warnings)


def test_a_client_that_gets_no_core_is_found_out(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    core = min(allowed)

    def starved(argv: list[str], *fds: int) -> Process:
        return spawn_here(["nice", "-n", "19", "taskset", "-c", str(core), *argv], *fds)

    job = LoadJob(
        **{"job": "mix", "records": tmp_path / "r", "buckets": ["b0"], "objects": 1, "seed": 1},
        **{"object_bytes": 1_000_000, "workers": 4, "duration_ms": 800, "mix": {"GetObject": 1.0}},
    )
    # Of its one core it gets what somebody less polite leaves it, a twentieth, and the store has
    # all others. So the store waits for its client, whatever else the machine does.
    greedy = ["taskset", "-c", str(core), sys.executable, "-S", "-c", "while True: pass"]
    with ExitStack() as stack:
        os.sched_setaffinity(0, allowed - {core} or allowed)
        try:
            store = stack.enter_context(null_store(1, object_bytes=1_000_000))
        finally:
            os.sched_setaffinity(0, allowed)
        other = stack.enter_context(subprocess.Popen(greedy))
        stack.callback(other.kill)
        account, warnings = load_result(job, run_job(starved, store.s3, job))
    assert account["client"]["cores"] == 1
    assert account["bottleneck"] is not None, account
    assert "the client was the bottleneck" in warnings[0]


def test_the_table_has_the_rows_of_each_system_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(system: str, count: int) -> None:
        raw_path(tmp_path, system).write_bytes(header() + rows_of(count).tobytes())
        unmarked = partial(with_network_error, bins=None, allowed_ns=0)
        writer: Any = SimpleNamespace(directory=tmp_path, with_network_error=unmarked)
        add_rows(writer, system, "1")

    record("minio", 5)
    record("minio-nginx", 7)
    systems = pq.read_table(tmp_path / "load.parquet")["system"].to_pylist()
    assert systems == ["minio"] * 5 + ["minio-nginx"] * 7
    assert not list(tmp_path.glob("*.raw"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    record("garage", 2)  # where there is no room for it, all stays as it is
    assert {path.name for path in tmp_path.iterdir()} == {"load.parquet", "load-garage.raw"}


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
    there = PlanHeader("127.0.0.1", server.server_port, "garage", "ACCESS", "SECRET")
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


def test_what_could_not_be_sent_in_time_is_counted_and_has_a_row() -> None:
    never, taken = threading.Event(), Taken()
    with probing(lambda: never.wait(60), every_ms=50, deadline_ms=500) as probe:
        probe.begin(taken)
        while not probe.left_out:
            time.sleep(0.05)
        probe.end()
        assert taken.gaps_ms() == {50}
        assert sum(sample is None for _, sample, _ in taken) == probe.left_out >= 1
        sent = [(sample, due_ns) for _, sample, due_ns in taken if sample is not None]
        assert {sample.outcome for sample, _ in sent} == {"unknown"}
        assert all(sample.start_ns >= due_ns for sample, due_ns in sent)
    never.set()


def test_what_a_part_fails_with_is_raised() -> None:
    def broken(*_: object) -> None:
        raise ValueError("a node is gone")

    with probing(lambda: None, every_ms=20) as probe:
        probe.begin(broken)
        with pytest.raises(ValueError, match="a node is gone"):
            probe.end()


@pytest.mark.parametrize("total", [0, 1, 2, 3, 100, 101, 100_000])
def test_the_first_and_the_last_object_are_read_back_and_others_between(total: int) -> None:
    read = prefill.sampled(PrefillSpec.model_validate({"objects": total}), 1024, seed=1)
    assert len(read) == len(set(read)) == min(total, 100)
    assert not total or {("wanlat", 0), ("wanlat", total - 1)} <= set(read)
    spec = PrefillSpec.model_validate({"objects": 1000, "buckets": 3})
    found = {bucket for bucket, _ in prefill.sampled(spec, 1024, 1)}
    assert found == {"wanlat", "wanlat-2", "wanlat-3"}
    assert len(prefill.sampled(spec, 100 << 20, 1)) == 2, "fewer where they are large"


@pytest.mark.parametrize(
    ("cores", "limit_s", "waited_s", "is_idle"),
    [
        pytest.param(lambda _: 0.02, 60, 2.0, True, id="idle for a while"),
        pytest.param(lambda t: 1.5 if 0 < t < 10 else 0.02, 60, 12.0, True, id="over a window"),
        pytest.param(lambda t: 1.0 if t < 0 else 1.9 if t < 5 else 1.2, 60, 7.0, True, id="before"),
        pytest.param(lambda t: 0.5 if t > 0 else 0.1, 8, 8.0, False, id="nobody waits for ever"),
    ],
)
def test_nodes_are_settled_once_they_are_idle_or_as_before(
    cores: Callable[[float], float],
    limit_s: float,
    waited_s: float,
    is_idle: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, used_s = -1.0, 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s, used_s
        used_s += seconds * cores(now_s)
        now_s += seconds

    clock = SimpleNamespace(monotonic=lambda: now_s, sleep=sleep)
    usage = SimpleNamespace(usage=lambda: {"n1": SimpleNamespace(cpu_ns=used_s * S)})
    monkeypatch.setattr(prefill, "time", clock)
    monkeypatch.setattr(prefill, "ClusterProcesses", lambda *_: usage)
    lab: Any = SimpleNamespace(check=lambda: None)
    found = prefill.IdleWatch(lab, lab).wait(limit_s, lambda *_: None)
    assert (found.seconds, found.is_idle) == (waited_s, is_idle)
    assert found.cores_before == cores(-1.0)
