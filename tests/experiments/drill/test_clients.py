"""What a client makes of a store that stands still, dies, lies, or takes too long."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.experiments.drill.drills import await_that, writes_of
from tests.experiments.drill.loads import (
    MS,
    LoopbackStore,
    client,
    ended_ns,
    from_due_ms,
    load_on,
    quorum,
    running,
)
from wanlat.experiments.config.workloads import BUCKET
from wanlat.experiments.drill.clients import fill
from wanlat.experiments.drill.model import Way
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.requests import Row, Sender
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.objects import ObjectApi
from wanlat.probes.process import Here, Process
from wanlat.probes.protocols import header_to
from wanlat.systems.base import Cluster

PATIENT_MS = 60_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with quorum(tmp_path_factory.mktemp("logs")) as made:
        assert made.send_s3("n1", f"/{BUCKET}", method="PUT").ok
        yield made


def stalled(
    cluster: Cluster, directory: Path, ways: Sequence[Way], in_flight: int
) -> tuple[list[Row], int, int]:
    """Rows of clients whose store stands still in the middle, and from when to when it does, ns."""
    rows: list[Row] = []
    load = load_on(cluster, directory, rows, filled=20)
    fill(load, Place("here", "n2", "n2"), 20, PATIENT_MS, lambda *_: None)
    rows.clear()
    clients = [client(load, way, "n2", interval_ms=50, in_flight=in_flight) for way in ways]
    store = cluster.processes["n2"]
    with running(clients, 2) as until:
        until(0.7)
        stopped_ns = store.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        still_ns = time.monotonic_ns()  # it may serve before we hear that the signal was sent
        store.send_signal(signal.SIGCONT)
    assert {(row["operation"], row["outcome"]) for row in rows} == {(way, "ok") for way in ways}
    for way in ways:
        assert sum(row["operation"] == way for row in rows) == 40
    return rows, stopped_ns, still_ns


def test_a_stall_spoils_every_request_that_was_due_in_it(cluster: Cluster, tmp_path: Path) -> None:
    ways: tuple[Way, ...] = ("read", "write")
    rows, stopped_ns, still_ns = stalled(cluster, tmp_path, ways, in_flight=1)
    late_ns = [row["start_ns"] - row["due_ns"] for row in rows]
    # The quickest of many: whoever looks at the clock now and then is late every time.
    assert 0 <= min(late_ns) < 10 * MS
    for way in ways:
        mine = [row for row in rows if row["operation"] == way]
        # Each waits from the instant it was due to the end of the stall: a ramp down.
        spoilt = [row for row in mine if stopped_ns < row["due_ns"] < still_ns]
        assert spoilt, "the stall was in its time"
        for row in spoilt:
            assert from_due_ms(row) >= (still_ns - row["due_ns"]) / MS
        # But one request waited for its answer; the others had not been sent.
        waiting = [row for row in mine if row["start_ns"] < still_ns < ended_ns(row)]
        assert len(waiting) == 1


def test_what_is_due_in_a_stall_is_sent_though_others_wait(
    cluster: Cluster, tmp_path: Path
) -> None:
    ways: tuple[Way, ...] = ("read", "write", "list")
    rows, stopped_ns, still_ns = stalled(cluster, tmp_path, ways, in_flight=30)
    for way in ways:
        mine = [row for row in rows if row["operation"] == way]
        late_ns = sorted(row["start_ns"] - row["due_ns"] for row in mine)
        assert 0 <= late_ns[0] < 10 * MS
        assert late_ns[len(late_ns) // 2] < 50 * MS, "none waited for another"
        spoilt = [row for row in mine if stopped_ns < row["start_ns"] < still_ns]
        waiting = [row for row in spoilt if ended_ns(row) > still_ns]
        assert len(waiting) == len(spoilt) >= 10


def test_a_list_that_lacks_a_key_is_none(cluster: Cluster, tmp_path: Path) -> None:
    rows: list[Row] = []
    load = load_on(cluster, tmp_path, rows, filled=21)  # one more than there are
    fill(load, Place("here", "n2", "n2"), 20, PATIENT_MS, lambda *_: None)
    rows.clear()
    with running([client(load, "list", "n2", interval_ms=100)], 0.5):
        pass
    assert rows
    assert {row["endpoint"] for row in rows} == {"ListObjects"}
    assert {row["outcome"] for row in rows} == {"fail"}
    assert all("20" in row["error"] and "21" in row["error"] for row in rows)


def test_what_a_oneshot_had_not_read_when_it_died_was_not_sent() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        started.append(subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr))
        return Here(started[-1])

    with LoopbackStore("ok") as store:
        header = header_to(store.target("n1"), deadline_ms=PATIENT_MS)
        with Sender(spawn, header, threading.Event()) as sender:
            (request,) = cast(ObjectApi, ObjectApi.over("s3")).buckets(["b"])
            assert sender.exchange(request).outcome != "not_sent"
            started[0].send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, started[0].pid, os.WSTOPPED)
            sender.hand_over(request)
            started[0].kill()
            assert sender.take().outcome == "not_sent"


def test_a_oneshot_that_dies_leaves_an_unknown_and_one_that_always_does_ends_all_clients(
    tmp_path: Path,
) -> None:
    rows, stop = list[Row](), threading.Event()
    with LoopbackStore("ok", "wait:60000") as store:
        load = load_on(store, tmp_path, rows)
        slow = client(load, "write", interval_ms=100)
        with pytest.raises(ProbeFailed, match="signal 9"), running([slow], 60, stop):
            for number in (1, 2, 3):
                await_that(lambda started=number: len(store.oneshots) == started)  # type: ignore[misc]
                await_that(lambda asked=number: len(writes_of(tmp_path)) == asked + 1)  # type: ignore[misc]
                time.sleep(0.1)
                store.oneshots[-1].kill()
            assert stop.wait(60)
    assert [row["outcome"] for row in rows] == ["ok", "unknown", "unknown"]
    assert "signal 9" in rows[1]["error"]
    assert rows[1]["total_ns"] is None
    assert rows[1]["start_ns"] >= rows[1]["due_ns"]
    states = [write["state"] for write in writes_of(tmp_path)]
    assert states == ["ok", "unknown", "unknown", "invoked"]
