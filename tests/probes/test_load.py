"""The generator of load, against servers that cost nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.probes.conftest import NullServer
from tests.probes.null_store import null_store
from tests.processes import alive
from wanlat.bundle.load_records import (
    OPERATIONS,
    OUTCOMES,
    RAMP,
    Records,
    read_records,
    records_table,
)
from wanlat.emulator.binaries import binary
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.header import Header
from wanlat.probes.load import End, Generator, LoadJob, run_job
from wanlat.probes.objects import ObjectApi
from wanlat.probes.process import Here, Process, spawn_here
from wanlat.probes.protocols.s3 import S3Header
from wanlat.systems.base import Api

SEED = 7


@pytest.fixture
def null() -> Iterator[S3Header]:
    """Return the way to a store that costs nothing."""
    with null_store(SEED) as store:
        yield store.s3


def mix(records: Path, **changes: object) -> LoadJob:
    given: dict[str, object] = {
        **{"job": "mix", "records": records, "buckets": ["b0"], "objects": 1},
        "api": ObjectApi.over("s3"),
        **{"object_bytes": 1024, "seed": SEED, "workers": 4, "duration_ms": 400},
        **{"mix": {"read": 0.5, "write": 0.5}},
    }
    return LoadJob(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("api", ["s3", "bob"])
def test_a_mix_keeps_every_worker_busy_and_writes_down_every_request(
    tmp_path: Path, api: Api
) -> None:
    program = "null-server" if api == "s3" else "null-grpc"
    shares = {"mix": {"read": 0.7, "write": 0.3}, "api": ObjectApi.over(api)}
    job = mix(tmp_path / "r", ramp_ms=100, duration_ms=3000, **shares)
    with null_store(SEED, program=program) as store:
        header: Header = store.s3 if api == "s3" else store.bob
        end = run_job(spawn_here, header, job)
    # The other side of the wire counts the same.
    assert store.said.get("requests", end.done) == end.done
    records = read_records(job.records)
    assert list(records.endpoints) == [job.api.name(does) for does in OPERATIONS]
    rows = records.rows
    assert (end.end, end.failed, end.errors) == ("complete", 0, {})
    assert len(rows) == end.done == end.ok > 50
    assert set(rows["outcome"]) == {OUTCOMES.index("ok")}
    assert end.bytes_read + end.bytes_written == 1024 * end.done == rows["object_bytes"].sum()
    # The shares, within five standard deviations of a binomial.
    reads = (rows["endpoint"] == OPERATIONS.index("read")).mean()
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


@pytest.mark.parametrize(("api", "object_bytes"), [("s3", 1024), ("bob", 1024), ("bob", 9_000_000)])
def test_a_body_that_is_another_objects_is_no_success(
    tmp_path: Path, api: Api, object_bytes: int
) -> None:
    program = "null-server" if api == "s3" else "null-grpc"
    job = mix(
        tmp_path / "r",
        **{"object_bytes": object_bytes, "workers": 1, "duration_ms": 400},
        **{"mix": {"read": 1.0}, "api": ObjectApi.over(api)},
    )
    with null_store(SEED, program=program, object_bytes=object_bytes, index=1) as store:
        header: Header = store.s3 if api == "s3" else store.bob
        end = run_job(spawn_here, header, job)
    assert end.done > 0
    assert (end.ok, end.errors) == (0, {"checksum mismatch": end.done})
    table = records_table(read_records(job.records))
    assert set(table["error"].to_pylist()) == {"checksum mismatch"}
    assert set(table["outcome"].to_pylist()) == {"fail"}


def test_with_a_rate_requests_are_due_at_their_instants(null: S3Header, tmp_path: Path) -> None:
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


def acknowledged(records: Records) -> list[tuple[int, int]]:
    """The objects of which the store said ok: bucket and index."""
    ok = records.rows[records.rows["outcome"] == OUTCOMES.index("ok")]
    return sorted((int(row["bucket"]), int(row["index"])) for row in ok)


def test_a_fill_puts_each_object_once_and_tries_again_what_is_refused(
    null_server: Callable[..., NullServer], tmp_path: Path
) -> None:
    answers = ["ok", "status:503:SlowDown", "reset", "status:500", "ok"]
    server = null_server(*(part for answer in answers for part in ("--answer", answer)))
    s3 = ObjectApi.over("s3")
    assert s3 is not None
    job = LoadJob("fill", tmp_path / "r", s3, ["b0", "b1"], 10, 64, SEED, workers=2, done=[(4, 8)])
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


def test_a_mix_ends_when_nothing_is_ok_any_more(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        job = mix(tmp_path / "r", give_up_ms=300, duration_ms=60_000, workers=2)
        end = run_job(
            spawn_here, S3Header(*nobody.getsockname(), "garage", "ACCESS", "SECRET"), job
        )
    assert end.end == "gave up"
    assert end.reason is not None
    assert "refused" in end.reason
    # Workers pause: a dead server is not asked all the time.
    assert end.done < 40


def test_what_this_machine_has_no_descriptor_for_is_no_failure_of_the_store(
    null: S3Header, tmp_path: Path
) -> None:
    job = mix(tmp_path / "r", workers=60, duration_ms=1500)

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        few = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *argv]
        return spawn_here(few, stdin, stdout, stderr)

    end = run_job(spawn, null, job)
    assert end.not_sent > 0 and end.ok > 0 and end.failed == 0
    assert end.done == end.ok + end.not_sent
    assert "too many open files" in (end.not_sent_error or "")
    rows = records_table(read_records(job.records)).to_pylist()
    assert sum(each["outcome"] == "not_sent" for each in rows) == end.not_sent


class Started:
    """Starts a process here, and knows it."""

    process: subprocess.Popen[bytes]

    def __call__(self, argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        """As ``spawn_here``."""
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr)
        return Here(self.process)


@pytest.mark.parametrize("how", ["closed", signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_has_last_words(null: S3Header, tmp_path: Path, how: object) -> None:
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


def test_the_records_of_one_that_is_killed_can_be_read(null: S3Header, tmp_path: Path) -> None:
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


def test_it_ends_with_whoever_started_it(null: S3Header, tmp_path: Path) -> None:
    job = mix(tmp_path / "r", duration_ms=60_000)
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.argv[1], 'load', 's3'], stdin=subprocess.PIPE)\n"
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
    while alive([pid]):
        assert time.monotonic() < deadline, "it outlives its parent"
        time.sleep(0.02)


def _until_there_are(records: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while not records.exists() or len(read_records(records).rows) < count:
        assert time.monotonic() < deadline, "no records"
        time.sleep(0.02)
