"""What a client makes of a store that stands still, dies, lies, or takes too long."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

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
from wanlat.experiments.config.load import BUCKET
from wanlat.experiments.drill.clients import fill
from wanlat.experiments.drill.requests import Sender
from wanlat.experiments.drill.roles import Place
from wanlat.experiments.open_loop import NOT_SENT, Row, Schedule
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster

SECOND = 1000 * MS
PATIENT_MS = 60_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with quorum(tmp_path_factory.mktemp("logs")) as made:
        assert made.ask_s3("n1", f"/{BUCKET}", method="PUT").ok
        yield made


def test_a_request_is_due_so_often_and_clients_do_not_beat_together() -> None:
    assert list(Schedule(5, 3, 100).instants(-10, 20)) == [-7, -2, 3, 8, 13, 18]

    def offset(client: str, seed: int = 7) -> int:
        return Schedule.of(SECOND, SECOND, seed=seed, client=client).offset_ns

    names = ["a read", "a write", "b read", "b write"]
    assert len({offset(name) for name in names}) == 4
    assert offset("a read") == offset("a read") != offset("a read", seed=8)
    assert all(0 <= offset(name) < SECOND for name in names)


def test_a_stall_spoils_every_request_that_was_due_in_it(cluster: Cluster, tmp_path: Path) -> None:
    rows: list[Row] = []
    load = load_on(cluster, tmp_path, rows)
    place = Place("here", "n2", "n2")
    fill(load, place, 20, PATIENT_MS, stop=threading.Event(), on_progress=lambda *_: None)
    rows.clear()
    clients = [client(load, way, "n2", interval_ms=50) for way in ("read", "write")]
    store = cluster.processes["n2"]
    with running(clients, 2) as until:
        until(0.7)
        stopped_ns = store.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        still_ns = time.monotonic_ns()  # it may serve before we hear that the signal was sent
        store.send_signal(signal.SIGCONT)

    assert {row["outcome"] for row in rows} == {"ok"}
    late_ns = [row["start_ns"] - row["due_ns"] for row in rows]
    assert min(late_ns) >= 0
    # The quickest of many: whoever looks at the clock now and then is late every time.
    assert min(late_ns) < 10 * MS
    for operation in ("read", "write"):
        mine = sorted((row for row in rows if row["operation"] == operation), key=by_due)
        assert len(mine) == 40
        # Each waits from the instant it was due to the end of the stall: a ramp down.
        spoilt = [row for row in mine if stopped_ns < row["due_ns"] < still_ns]
        assert spoilt, "the stall was in its time"
        for row in spoilt:
            assert from_due_ms(row) >= (still_ns - row["due_ns"]) / MS
        # But one request waited for its answer; the others had not been sent.
        waiting = [row for row in mine if row["start_ns"] < still_ns < ended_ns(row)]
        assert len(waiting) == 1


def by_due(row: Row) -> int:
    return int(row["due_ns"])


def test_after_a_long_outage_at_most_one_deadlines_worth_is_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interval_ms, deadline_ms = 20, 400
    left_ms: dict[int, int] = {}
    ask = Sender.ask

    def noting(sender: Sender, request: Request) -> Sample:
        assert request.deadline_ms is not None
        left_ms[request.seq] = request.deadline_ms
        return ask(sender, request)

    monkeypatch.setattr(Sender, "ask", noting)
    rows: list[Row] = []
    with LoopbackStore() as store:
        load = load_on(store, tmp_path, rows)
        late = client(load, "write", interval_ms=interval_ms, deadline_ms=deadline_ms)
        with running([late], 3.5) as until:
            until(0.5)
            store.server.send_signal(signal.SIGSTOP)
            os.waitpid(store.server.pid, os.WUNTRACED)
            stopped_ns = time.monotonic_ns()
            time.sleep(1.3)
            still_ns = time.monotonic_ns()
            store.server.send_signal(signal.SIGCONT)
    rows.sort(key=by_due)
    assert [row["seq"] for row in rows] == list(range(175)), "each request that was due has a row"
    due_ns = [row["due_ns"] for row in rows]
    assert {after - before for before, after in pairwise(due_ns)} == {interval_ms * MS}
    unsent = [row for row in rows if row["start_ns"] is None]
    assert {(row["outcome"], row["error"], row["elapsed_ns"]) for row in unsent} == {
        ("fail", NOT_SENT, None)
    }
    sent = [row for row in rows if row["start_ns"] is not None]
    timed_out = [row for row in sent if row["outcome"] == "unknown"]
    assert all(from_due_ms(row) >= deadline_ms - 2 for row in timed_out)
    # While it stood still it answered none: each has the outage on record, or was given up.
    asked = [row for row in sent if stopped_ns < row["start_ns"] < still_ns]
    assert asked
    assert all(row["outcome"] == "unknown" or ended_ns(row) > still_ns for row in asked)
    # Nor could those be answered whose time was over by then. Each that was sent took at least half
    # of its deadline, in which ten were due, so that most of them were not sent.
    hopeless = [row for row in rows if stopped_ns < row["due_ns"] < still_ns - deadline_ms * MS]
    assert len(hopeless) >= (1300 - deadline_ms) / interval_ms - 1
    assert sum(row["start_ns"] is None for row in hopeless) > len(hopeless) / 2
    # None is sent with less than half of its deadline, and none has more than what is left of it
    # when the one before is done, however long the machine held us up.
    done_ns = 0
    for row in sent:
        rest_ns = row["due_ns"] + deadline_ms * MS - max(done_ns, row["due_ns"])
        assert deadline_ms // 2 <= left_ms[row["seq"]] <= rest_ns / MS
        done_ns = ended_ns(row)
    afterwards = [row for row in sent if row["start_ns"] > still_ns]
    answered = [row for row in afterwards if row["outcome"] == "ok"]
    assert len(answered) > len(afterwards) / 2, "a stall of the machine may end one now and then"
    assert min(map(from_due_ms, answered)) < 100, "and then it is in time again"
    assert len(writes_of(tmp_path)) == len(sent), "what was not sent is not in the ledger"


def test_a_store_that_is_slow_but_answers_is_not_made_unavailable_by_its_clients(
    tmp_path: Path,
) -> None:
    # It takes 70 % of the deadline, in which many more are due: whoever sent requests with less
    # time left would get no answer ever again.
    rows: list[Row] = []
    with LoopbackStore("wait:280") as store:
        load = load_on(store, tmp_path, rows)
        with running([client(load, "write", interval_ms=20, deadline_ms=400)], 1.5):
            pass
    outcomes = Counter(row["outcome"] for row in rows if row["start_ns"] is not None)
    assert len(rows) == 75
    # A stall of the machine may end the one request that is on its way.
    assert outcomes["ok"] > outcomes.total() / 2
    assert outcomes["ok"] >= 2


def test_a_dead_store_is_asked_when_a_request_is_due_and_not_more_often(tmp_path: Path) -> None:
    rows: list[Row] = []
    with LoopbackStore() as store:
        load = load_on(store, tmp_path, rows)
        spent_s = time.process_time()
        with running([client(load, "write", interval_ms=50)], 1) as until:
            until(0.42)
            killing_ns = time.monotonic_ns()
            store.server.kill()
            store.server.wait()
            killed_ns = time.monotonic_ns()
        spent_s = time.process_time() - spent_s
    assert len(rows) == 20
    assert {row["outcome"] for row in rows if ended_ns(row) < killing_ns} <= {"ok"}
    refused = [row for row in rows if row["start_ns"] > killed_ns and row["error"] == "refused"]
    # The first may find the connection that it had closed.
    assert len(refused) >= sum(row["start_ns"] > killed_ns for row in rows) - 1
    assert refused
    assert {row["outcome"] for row in refused} == {"fail"}
    assert all(row["start_ns"] >= row["due_ns"] for row in rows)
    assert spent_s < 1.0, "waiting costs no processor time"


def second_is_on_its_way(directory: Path) -> None:
    """Wait until the second request is in the ledger, and a moment in which it is sent."""
    await_that(lambda: len(writes_of(directory)) == 2)
    time.sleep(0.2)


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


def test_a_stop_abandons_the_request_that_waits_and_leaves_nothing(tmp_path: Path) -> None:
    rows: list[Row] = []
    stop = threading.Event()
    before = set(Path("/proc/self/fd").iterdir())
    with LoopbackStore("ok", "never") as store:
        load = load_on(store, tmp_path, rows)
        with running([client(load, "write", interval_ms=100)], 60, stop):
            second_is_on_its_way(tmp_path)
            stop.set()
            stopped_s = time.monotonic()
        assert time.monotonic() - stopped_s < PATIENT_MS / 1e3 / 2, "it does not wait for it"
        assert all(oneshot.poll() is not None for oneshot in store.oneshots)
    load.ledger.close()
    assert [row["outcome"] for row in rows] == ["ok", "unknown"]
    assert rows[1]["error"] == "abandoned: the run was stopped"
    assert writes_of(tmp_path)[1]["state"] == "unknown"
    # Listing them takes one, of any number.
    assert len(set(Path("/proc/self/fd").iterdir()) - before) <= 1


def test_a_reader_tells_wrong_bytes_from_none(tmp_path: Path) -> None:
    rows: list[Row] = []
    with LoopbackStore("ok", "wrong-body", "status:404:NoSuchKey", "status:503:SlowDown") as store:
        load = load_on(store, tmp_path, rows)
        put = load.ledger.describe("key", 1024)
        load.ledger.complete(load.ledger.put(put, client="here", target="n1"), "ok")
        with running([client(load, "read", interval_ms=50)], 0.2):
            pass
    assert {row["key"] for row in rows} == {"key"}
    assert [row["outcome"] for row in rows] == ["fail", "fail", "fail", "fail"]
    # The canned object has other bytes than what was put at this key, and says so by its hash.
    assert [row["error"] for row in rows[:2]] == ["checksum mismatch"] * 2
    assert rows[0]["sha256"] not in (None, put.sha256)
    assert rows[2]["error"] == "http 404 NoSuchKey"


def test_a_writer_removes_its_share_of_its_own_and_readers_never_ask_for_these(
    cluster: Cluster, tmp_path: Path
) -> None:
    rows: list[Row] = []
    load = load_on(cluster, tmp_path, rows, delete_ratio=0.4)
    clients = [
        client(load, way, node, interval_ms=5, name=node)
        for node in ("n1", "n2")
        for way in ("read", "write")
    ]
    with running(clients, 1):
        pass
    asked = Counter(row["endpoint"] for row in rows)
    writes = asked["PutObject"] + asked["RemoveObject"]
    assert writes == 400
    assert asked["RemoveObject"] == pytest.approx(0.4 * writes, rel=0.2)
    assert {row["outcome"] for row in rows} == {"ok"}, "no read found its object gone"
    owner = {write["key"]: write["client"] for write in writes_of(tmp_path) if write["op"] == "put"}
    removed = [write for write in writes_of(tmp_path) if write["op"] == "remove"]
    assert all(owner[write["key"]] == write["client"] for write in removed)
    assert len({write["key"] for write in removed}) == len(removed)
    recent = [row for row in rows if row["operation"] == "read"]
    assert len({row["key"] for row in recent}) > 30, "they read what was only just written"


def test_over_bobs_api_a_row_says_where_its_key_lies(tmp_path: Path) -> None:
    rows: list[Row] = []
    with quorum(tmp_path / "logs", api="bob") as cluster:
        load = load_on(cluster, tmp_path, rows, delete_ratio=0.2)
        with running([client(load, way, interval_ms=10) for way in ("read", "write")], 0.5):
            pass
        for row in rows:
            holders = cluster.replicas(bytes.fromhex(row["key"]))
            assert holders is not None
            assert row["placement"] == ("local" if "n1" in holders else "remote")
    assert {row["outcome"] for row in rows} == {"ok"}
    assert set(Counter(row["endpoint"] for row in rows)) == {"Put", "Get", "Delete"}
