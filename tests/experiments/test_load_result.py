"""What is said of a load's client, and the table of what it did."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.probes.null_store import null_store
from tests.probes.test_load_records import header, rows_of
from wanlat.experiments.workloads.load_result import add_rows, load_result, raw_path
from wanlat.probes.load import End, LoadJob, run_job
from wanlat.probes.process import Process, spawn_here

JOB = LoadJob("mix", Path("r"), ["b"], 1, 1, 1, workers=4, duration_ms=10_000, ramp_ms=2_000)
S = 10**9
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


@pytest.mark.parametrize(
    ("changes", "rate", "why", "warned"),
    [
        ({"cpu_ns": 17 * S}, None, "85 % of its 2 cores", "the client was the bottleneck"),
        ({"thread_cpu_ns": (9 * S, S, S, S)}, None, "computing 90 %", "was the bottleneck"),
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
    assert warned is None or any(warned in each for each in warnings)
    assert len(warnings) == 1 or warned is None or rate is not None


def test_a_load_without_last_words_claims_nothing() -> None:
    account, warnings = load_result(JOB, None)
    assert account["offered"] == {"workers": 4, "rate": None}
    assert account["achieved_per_s"] is account["client"] is account["bottleneck"] is None
    assert warnings == []


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


def test_the_table_has_the_rows_of_each_system_once(tmp_path: Path) -> None:
    def record(system: str, count: int) -> None:
        raw_path(tmp_path, system).write_bytes(header() + rows_of(count).tobytes())
        add_rows(tmp_path, system, "1")

    def counted() -> dict[str, int]:
        systems = pq.read_table(tmp_path / "load.parquet")["system"].to_pylist()
        return {name: systems.count(name) for name in systems}

    record("minio", 5)
    record("minio-nginx", 7)
    assert counted() == {"minio": 5, "minio-nginx": 7}
    assert not list(tmp_path.glob("*.raw"))


def test_where_there_is_no_room_the_records_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    raw = raw_path(tmp_path, "minio")
    raw.write_bytes(header() + rows_of(2).tobytes())
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    add_rows(tmp_path, "minio", "1")
    assert raw.exists()
    assert [path.name for path in tmp_path.iterdir()] == [raw.name]
