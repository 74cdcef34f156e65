"""The generator of load, against servers that cost nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.probes.conftest import NullServer
from tests.probes.null_store import null_store
from wanlat.bundle.load_records import ENDPOINTS, OUTCOMES, RAMP, Records, records_table
from wanlat.emulator.binaries import binary
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.load import End, Generator, LoadJob, Progress, read_records, run_job
from wanlat.probes.plan import Header, PlanHeader
from wanlat.probes.process import Here, Process, spawn_here

SEED = 7


@pytest.fixture
def null() -> Iterator[PlanHeader]:
    """Return the way to a store that costs nothing."""
    with null_store(SEED) as store:
        yield store.s3


def mix(records: Path, **changes: object) -> LoadJob:
    given: dict[str, object] = {
        **{"job": "mix", "records": records, "buckets": ["b0"], "objects": 1},
        **{"object_bytes": 1024, "seed": SEED, "workers": 4, "duration_ms": 400},
        **{"mix": {"GetObject": 0.5, "PutObject": 0.5}},
    }
    return LoadJob(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("api", ["s3", "bob"])
def test_a_mix_keeps_every_worker_busy_and_writes_down_every_request(
    tmp_path: Path, api: str
) -> None:
    program = "null-server" if api == "s3" else "null-grpc"
    names = ("GetObject", "PutObject") if api == "s3" else ("Get", "Put")
    job = mix(tmp_path / "r", ramp_ms=100, duration_ms=3000, mix={names[0]: 0.7, names[1]: 0.3})
    with null_store(SEED, program=program) as store:
        header: Header = store.s3 if api == "s3" else store.bob
        end = run_job(spawn_here, header, job)
    # The other side of the wire counts the same.
    assert store.said.get("requests", end.done) == end.done
    rows = read_records(job.records).rows
    assert (end.end, end.failed, end.errors) == ("complete", 0, {})
    assert len(rows) == end.done == end.ok > 50
    assert set(rows["outcome"]) == {OUTCOMES.index("ok")}
    assert end.bytes_read + end.bytes_written == 1024 * end.done == rows["object_bytes"].sum()
    # The shares, within five standard deviations of a binomial.
    reads = (rows["endpoint"] == ENDPOINTS.index(names[0])).mean()
    assert abs(reads - 0.7) < 5 * (0.7 * 0.3 / len(rows)) ** 0.5
    # One request in flight each, never two; and one after the other all along.
    assert set(rows["worker"]) == {0, 1, 2, 3}
    for worker in range(4):
        mine = np.sort(rows[rows["worker"] == worker], order="start_ns")
        ends = mine["start_ns"] + mine["elapsed_ns"]
        assert (mine["start_ns"][1:] >= ends[:-1]).all()
    in_ramp = rows["start_ns"] < end.began_ns + 100_000_000
    assert ((rows["flags"] & RAMP != 0) == in_ramp).all()
    # Whether time is left is asked before a request is made, and a thread may lose its core, once.
    assert (rows["start_ns"] >= end.began_ns + 3_000_000_000).sum() <= 4


def test_its_cpu_time_is_told_and_adds_up(null: PlanHeader, tmp_path: Path) -> None:
    end = run_job(spawn_here, null, mix(tmp_path / "r"))
    assert end.cpu_ns == end.user_ns + end.system_ns > 0
    assert len(end.thread_cpu_ns) == 4 == end.threads - 1
    # getrusage counts by the scheduler's clock too, so the workers' own clocks are most of it.
    assert 0.5 < sum(end.thread_cpu_ns) / end.cpu_ns < 1.05
    assert 0 < end.verify_ns < sum(end.thread_cpu_ns)
    assert end.in_flight_ns == read_records(tmp_path / "r").rows["elapsed_ns"].sum()


@pytest.mark.parametrize(("api", "object_bytes"), [("s3", 1024), ("bob", 1024), ("bob", 9_000_000)])
def test_a_body_that_is_another_objects_is_no_success(
    tmp_path: Path, api: str, object_bytes: int
) -> None:
    program = "null-server" if api == "s3" else "null-grpc"
    job = mix(
        tmp_path / "r",
        **{"object_bytes": object_bytes, "workers": 1, "duration_ms": 400},
        mix={"GetObject" if api == "s3" else "Get": 1.0},
    )
    with null_store(SEED, program=program, object_bytes=object_bytes, index=1) as store:
        header: Header = store.s3 if api == "s3" else store.bob
        end = run_job(spawn_here, header, job)
    assert end.done > 0
    assert (end.ok, end.errors) == (0, {"checksum mismatch": end.done})
    table = records_table(read_records(job.records))
    assert set(table["error"].to_pylist()) == {"checksum mismatch"}
    assert set(table["outcome"].to_pylist()) == {"fail"}


@pytest.mark.parametrize(("program", "name"), [("null-server", "PutObject"), ("null-grpc", "Get")])
def test_large_objects_of_many_workers_take_the_memory_of_small_ones(
    tmp_path: Path, program: str, name: str
) -> None:
    started, peak_kib = Started(), 0
    job = mix(tmp_path / "r", object_bytes=30_000_000, workers=16, duration_ms=1200, mix={name: 1})
    with null_store(SEED, program=program, object_bytes=30_000_000) as store:
        header: Header = store.s3 if program == "null-server" else store.bob
        with Generator(started, header, job) as generator:
            while not isinstance(said := generator.next(), End):
                status = Path(f"/proc/{started.process.pid}/status").read_text()
                peak_kib = int(status.partition("VmHWM:")[2].split()[0])
    assert said.ok == said.done > 0
    assert 0 < peak_kib < 30_000  # one of the sixteen objects would not fit


def test_with_a_rate_requests_are_due_at_their_instants(null: PlanHeader, tmp_path: Path) -> None:
    job = mix(tmp_path / "r", rate=200.0, duration_ms=500)
    end = run_job(spawn_here, null, job)
    rows = np.sort(read_records(job.records).rows, order="due_ns")
    assert len(rows) + end.left_out == 100
    steps = np.diff(rows["due_ns"])
    # What found no worker is left out; the others keep their instants.
    assert (rows["due_ns"] >= end.began_ns).all()
    assert abs(steps - np.round(steps / 5_000_000) * 5_000_000).max() <= 100
    assert steps.min() > 4_000_000
    assert (rows["start_ns"] >= rows["due_ns"]).all()


def test_requests_that_found_no_worker_are_counted(
    null_server: Callable[..., NullServer], tmp_path: Path
) -> None:
    # One worker, 100 ms a request: of 50 that are due in half a second it can send 6 at most.
    header = null_server("--answer", "wait:100").header
    job = mix(tmp_path / "r", rate=100.0, duration_ms=500, workers=1, mix={"PutObject": 1.0})
    end = run_job(spawn_here, header, job)
    assert end.ok <= 6
    assert end.done + end.left_out == 50
    # What waited for the worker is late, and says so.
    rows = read_records(job.records).rows
    assert (rows["start_ns"] - rows["due_ns"]).max() > 300_000_000


def acknowledged(records: Records) -> list[tuple[int, int]]:
    """The objects of which the store said ok: bucket and index."""
    ok = records.rows[records.rows["outcome"] == OUTCOMES.index("ok")]
    return sorted((int(row["bucket"]), int(row["index"])) for row in ok)


def test_a_fill_puts_each_object_once_and_tries_again_what_is_refused(
    null_server: Callable[..., NullServer], tmp_path: Path
) -> None:
    answers = ["ok", "status:503:SlowDown", "reset", "status:500", "ok"]
    server = null_server(*(part for answer in answers for part in ("--answer", answer)))
    job = LoadJob("fill", tmp_path / "r", ["b0", "b1"], 10, 64, SEED, workers=2, done=[(4, 8)])
    end = run_job(spawn_here, server.header, job)
    records = read_records(job.records)
    assert (end.end, end.ok, end.failed) == ("complete", 16, 3)
    assert len(records.errors) == 3
    assert {"http 503 SlowDown", "http 500"} < set(records.errors)
    turns = [*range(4), *range(8, 20)]  # in each bucket in turn
    assert acknowledged(records) == sorted((turn % 2, turn // 2) for turn in turns)
    put = [line["target"] for line in server.journal() if line["method"] == "PUT"]
    assert len(set(put)) == 16
    assert len(put) == 19


@pytest.mark.parametrize(
    ("answer", "give_up_ms", "reason"),
    [("status:403:AccessDenied", 60_000, "403 AccessDenied"), ("status:503:SlowDown", 300, "503")],
)
def test_a_fill_gives_up_and_says_why(
    null_server: Callable[..., NullServer],
    tmp_path: Path,
    answer: str,
    give_up_ms: int,
    reason: str,
) -> None:
    job = LoadJob("fill", tmp_path / "r", ["b0"], 9, 64, SEED, workers=2, give_up_ms=give_up_ms)
    end = run_job(spawn_here, null_server("--answer", answer).header, job)
    assert (end.end, end.ok) == ("gave up", 0)
    assert end.reason is not None
    assert reason in end.reason
    assert acknowledged(read_records(job.records)) == []


def test_to_remove_what_is_not_there_is_done(
    null_server: Callable[..., NullServer], tmp_path: Path
) -> None:
    server = null_server("--answer", "status:404:NoSuchKey", "--answer", "ok")
    job = LoadJob("remove", tmp_path / "r", ["b0"], 5, 64, SEED, workers=1)
    end = run_job(spawn_here, server.header, job)
    assert (end.end, end.ok, end.failed) == ("complete", 4, 1)
    rows = read_records(job.records).rows
    assert sorted(rows["index"]) == list(range(5))
    assert sorted(rows["status"]) == [204] * 4 + [404]


def test_a_mix_ends_when_nothing_is_ok_any_more(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        job = mix(tmp_path / "r", give_up_ms=300, duration_ms=60_000, workers=2)
        end = run_job(
            spawn_here, PlanHeader(*nobody.getsockname(), "garage", "ACCESS", "SECRET"), job
        )
    assert end.end == "gave up"
    assert end.reason is not None
    assert "refused" in end.reason
    # Workers pause: a dead server is not asked all the time.
    assert end.done < 40


class Started:
    """Starts a process here, and knows it."""

    process: subprocess.Popen[bytes]

    def __call__(self, argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        """As ``spawn_here``."""
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr)
        return Here(self.process)


def test_what_it_says_just_before_its_end_is_heard(null: PlanHeader, tmp_path: Path) -> None:
    lists = ("thread_cpu_ns", "thread_waited_ns")
    said = json.dumps({each.name: [] if each.name in lists else 0 for each in fields(End)})
    program, go = tmp_path / "stand-in", tmp_path / "go"
    program.write_text(f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.01; done; echo '{said}'\n")
    program.chmod(0o755)

    class EndsWhenLookedAt(Here):
        def __init__(self, process: subprocess.Popen[bytes]) -> None:
            super().__init__(process)
            self.poll = lambda: go.touch() or process.wait(60)  # type: ignore[func-returns-value]

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return EndsWhenLookedAt(subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr))

    with Generator(spawn, null, mix(tmp_path / "r"), executable=program) as generator:
        heard: list[Progress | End] = []
        while not heard:
            heard = generator.news()
    assert isinstance(heard[-1], End)


@pytest.mark.parametrize("how", ["closed", signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_has_last_words(null: PlanHeader, tmp_path: Path, how: object) -> None:
    started = Started()
    job = mix(tmp_path / "r", duration_ms=60_000)
    with Generator(started, null, job) as generator:
        _until_there_are(job.records, 50)
        if isinstance(how, signal.Signals):
            started.process.send_signal(how)
        else:
            generator.stop()
        while not isinstance(said := generator.next(), End):
            pass
    assert said.end == "stopped"
    assert said.done == len(read_records(job.records).rows) >= 50


def test_the_records_of_one_that_is_killed_can_be_read(null: PlanHeader, tmp_path: Path) -> None:
    started = Started()
    job = mix(tmp_path / "r", duration_ms=60_000)
    with Generator(started, null, job) as generator:
        _until_there_are(job.records, 50)
        started.process.kill()
        with pytest.raises(ProbeFailed, match="ended by signal 9"):
            while True:
                generator.next()
    records = read_records(job.records)
    assert len(records.rows) >= 50
    # A torn record at the end is none.
    os.truncate(job.records, job.records.stat().st_size - 5)
    torn = read_records(job.records)
    assert torn.is_cut
    assert (torn.rows == records.rows[:-1]).all()


def test_it_ends_with_whoever_started_it(null: PlanHeader, tmp_path: Path) -> None:
    job = mix(tmp_path / "r", duration_ms=60_000)
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.argv[1], 'load'], stdin=subprocess.PIPE)\n"
        "p.stdin.write(sys.argv[2].encode()); p.stdin.flush()\n"
        "print(p.pid, flush=True); time.sleep(60)\n"
    )
    lines = (null.line() + job.line()).decode()
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(binary("oneshot")), lines], stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        _until_there_are(job.records, 50)
        parent.kill()
    deadline = time.monotonic() + 60
    while _is_running(pid):
        assert time.monotonic() < deadline, "it outlives its parent"
        time.sleep(0.02)


def test_what_makes_no_sense_is_told_with_its_line(tmp_path: Path) -> None:
    job = mix(tmp_path / "r", mix={"GetObject": 0.5})
    with pytest.raises(ProbeFailed, match=r"line 2: shares of `mix` must add up to 1, not to 0\.5"):
        run_job(spawn_here, PlanHeader("127.0.0.1", 1, "garage", "ACCESS", "SECRET"), job)


def _until_there_are(records: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while not records.exists() or len(read_records(records).rows) < count:
        assert time.monotonic() < deadline, "no records"
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
