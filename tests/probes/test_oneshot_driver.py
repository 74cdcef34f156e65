"""The driver streams samples as they come, and never outlives or outwaits its process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import write_program
from tests.probes.plans import plan_of
from tests.probes.test_plans import S3
from wanlat.probes import oneshot
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.oneshot import prepare, run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import Process
from wanlat.probes.protocols.s3 import S3Header
from wanlat.probes.records import Sample
from wanlat.topologies.errors import RunFailed

NOWHERE = S3Header("127.0.0.1", 1, "r", "a", "s", deadline_ms=1000)

StartServer = Callable[..., Any]


class Spawned:
    """``spawn_here``, and what it started."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.pids: list[int] = []

    def __call__(self, argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr)
        self.pids.append(process.pid)
        self.processes.append(_Waiting(process))
        return self.processes[-1]

    def all_gone(self) -> bool:
        return all(process.poll() is not None for process in self.processes)


class _Waiting:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.poll, self.kill = process.poll, process.kill
        self._process = process

    def wait(self, timeout_s: float | None = None) -> int:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None


@pytest.fixture
def spawn() -> Iterator[Spawned]:
    """Leave no process and no open descriptor behind, whatever the test was about."""
    spawned = Spawned()
    yield spawned
    assert spawned.all_gone()
    assert not any("oneshot-stderr" in name for name in open_files())


def open_files() -> list[str]:
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists the directory
            names.append(str(descriptor.readlink()))
    return sorted(names)


def ignore(_: Request, _sample: Sample) -> None:
    """Take a sample and forget it."""


def into(samples: list[Sample]) -> oneshot.OnSample:
    """Collect the samples."""
    return lambda _, sample: samples.append(sample)


def lists(count: int) -> list[Request]:
    return [Request(seq, "measure", "ListBuckets") for seq in range(count)]


def test_a_whole_plan_succeeds_in_order(null_server: StartServer, spawn: Spawned) -> None:
    server = null_server("--memory")
    size = {"samples": 10, "warmup": 2, "object_bytes": 3000}
    plan = plan_of("s3", S3, seed=1, **size)
    samples: list[Sample] = []
    prepare(spawn, server.header, plan.prepare, into(samples))
    run_requests(spawn, server.header, (*plan.warmup, *plan.measure), into(samples))
    assert [sample.error for sample in samples if sample.outcome != "ok"] == []
    measured = [sample for sample in samples if sample.phase != "prepare"]
    assert [s.seq for s in measured] == [r.seq for r in (*plan.warmup, *plan.measure)]
    assert sorted(s.seq for s in samples) == list(range(len(samples)))
    starts = [sample.start_ns for sample in measured]
    assert starts == sorted(starts)


def test_a_sample_arrives_while_the_plan_still_runs(
    null_server: StartServer, spawn: Spawned
) -> None:
    """A request is not even made before the sample of the one before it was taken."""
    server = null_server()
    made = 0
    seen: list[int] = []

    def requests() -> Iterator[Request]:
        nonlocal made
        for request in lists(20):
            made += 1
            yield request

    run_requests(spawn, server.header, requests(), lambda _, sample: seen.append(made - sample.seq))
    assert len(seen) == 20
    assert set(seen) == {1}


def test_an_interrupt_ends_the_process_at_once(null_server: StartServer, spawn: Spawned) -> None:
    server = null_server("--answer", "ok", "--answer", "never")

    def interrupt(request: Request, sample: Sample) -> None:
        raise KeyboardInterrupt

    header = replace(server.header, deadline_ms=120_000)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_requests(spawn, header, lists(10), interrupt)
    assert spawn.all_gone()
    assert time.monotonic() - started < 60, "it waited for the request in flight"


def test_a_killed_process_fails_the_run_and_says_by_what(
    null_server: StartServer, spawn: Spawned
) -> None:
    server = null_server()

    def kill(request: Request, sample: Sample) -> None:
        os.kill(spawn.pids[-1], signal.SIGKILL)

    with pytest.raises(ProbeFailed, match="was ended by signal 9"):
        run_requests(spawn, server.header, lists(10), kill)


def test_the_last_words_of_a_process_are_passed_on(spawn: Spawned) -> None:
    wrong = Request(0, "measure", "GetObject", "b")
    with pytest.raises(ProbeFailed) as caught:
        run_requests(spawn, NOWHERE, [wrong], ignore)
    assert "exit code 2" in str(caught.value)
    assert "plan line 2: GetObject needs `key`" in str(caught.value)
    assert isinstance(caught.value, RunFailed)


def test_a_silent_process_is_not_waited_for_forever(
    spawn: Spawned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oneshot, "_GRACE_S", 0.2)
    hung = write_program(tmp_path / "stand-in", "exec sleep 600")
    monkeypatch.setattr(oneshot, "binary", lambda _: hung)
    header = S3Header("127.0.0.1", 1, "r", "a", "s", deadline_ms=100)
    started = time.monotonic()
    with pytest.raises(ProbeFailed, match="was silent"):
        run_requests(spawn, header, lists(1), ignore)
    assert time.monotonic() - started < 300


@pytest.mark.parametrize("plan", [lists(3), [Request(0, "measure", "GetObject")]])
def test_all_descriptors_are_closed_when_a_plan_ends_well_or_badly(
    plan: list[Request], spawn: Spawned
) -> None:
    before = open_files()
    with contextlib.suppress(ProbeFailed):
        run_requests(spawn, NOWHERE, plan, ignore)
    assert open_files() == before


def test_preparing_tries_again_what_a_store_refuses_at_first(
    null_server: StartServer, spawn: Spawned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oneshot, "_PAUSE_S", 0.01)
    refusal = ["--answer", "status:503:XMinioServerNotInitialized"]
    server = null_server(*refusal, *refusal, "--answer", "ok")
    samples: list[Sample] = []
    bucket = [Request(0, "prepare", "CreateBucket", "b")]
    prepare(spawn, server.header, bucket, into(samples))
    assert [sample.outcome for sample in samples] == ["ok"], "delivered once"
    assert len(server.journal()) == 3
