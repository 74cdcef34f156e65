"""After the heal every key is read from every node, and nothing is passed that was not seen."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.drill.drills import writes_of
from tests.experiments.drill.loads import LoopbackStore, load_on, quorum
from wanlat.bundle.write import Lines
from wanlat.experiments.drill import clients
from wanlat.experiments.drill.clients import fill
from wanlat.experiments.drill.ledger import Object
from wanlat.experiments.drill.requests import Sender, spawn_on
from wanlat.experiments.drill.roles import Place
from wanlat.experiments.drill.verification import Verified, verify
from wanlat.experiments.open_loop import Row
from wanlat.probes.errors import ProbeFailed
from wanlat.systems.base import Cluster

KEYS = 30
NODES = ("n1", "n2", "n3")
PLACE = Place("here", "n1", "n1")
Line = dict[str, Any]


@pytest.fixture(scope="module", params=["s3", "bob"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with quorum(tmp_path_factory.mktemp("logs"), api=request.param) as made:
        yield made


class Drill:
    """A filled cluster and its ledger, and ways to go behind the ledger's back."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.rows: list[Row] = []
        # Keys of its own, in a cluster that several tests fill.
        self.load = load_on(cluster, directory, self.rows, seed=hash(directory) % 2**32)
        fill(self.load, PLACE, KEYS, 5000, stop=threading.Event(), on_progress=lambda *_: None)
        self.objects = self.load.ledger.objects()

    def remove(self, what: Object) -> None:
        self.tell(self.load.api.remove(0, what))

    def put(self, what: Object) -> None:
        self.tell(self.load.api.put(0, what))

    def tell(self, request: Any) -> None:
        header = self.load.api.header(self.cluster, "n1", 5000, 1024)
        with Sender(spawn_on(self.load.lab, "n1"), header, threading.Event()) as sender:
            assert sender.ask(request).outcome == "ok"

    def verify(self, budget_s: float = 60.0, **options: Any) -> tuple[Verified, list[Line]]:
        options = {"on_progress": lambda *_: None, "deadline_ms": 20_000, **options}
        path = self.directory / "verification.jsonl"
        with Lines(path) as lines:
            told = verify(
                *(self.load.lab, self.cluster, self.load.ledger, "healed", budget_s),
                write=lines.append,
                **options,
            )
        header, *rest = map(json.loads, path.read_text().splitlines())
        assert header["round"] == "healed"
        assert header["keys"] == len(self.load.ledger.objects())
        assert header["nodes"] == list(NODES)
        return told, rest


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wanlat.experiments.drill.verification._PAUSE_S", 0.1)
    monkeypatch.setattr(clients, "_FILL_PAUSE_S", 0.01)


@pytest.fixture
def drill(cluster: Cluster, tmp_path: Path) -> Drill:
    return Drill(cluster, tmp_path)


def answers(lines: list[Line], what: Object) -> list[str]:
    return [line["found"] for line in lines if line["key"] == what.key]


def test_a_sound_cluster_has_every_object_that_was_filled_on_every_node(drill: Drill) -> None:
    writes = writes_of(drill.directory)
    assert [(write["state"], write["target"]) for write in writes] == [("ok", "n1")] * KEYS
    assert {(row["phase"], row["due_ns"]) for row in drill.rows} == {("prepare", None)}
    assert {row["key"] for row in drill.rows} == {write["key"] for write in writes}
    progress: list[tuple[int, int]] = []
    told, lines = drill.verify(on_progress=lambda *at: progress.append(at))
    asked = Counter((line["node"], line["key"]) for line in lines)
    assert asked == {(node, each.key): 1 for node in NODES for each in drill.objects}
    sha256 = {each.key: each.sha256 for each in drill.objects}
    assert all(line["found"] == "yes" and line["sha256"] == sha256[line["key"]] for line in lines)
    assert told == Verified(KEYS * 3, {"yes": KEYS * 3}, out_of_time=False)
    assert progress == [(done, KEYS * 3) for done in range(1, KEYS * 3 + 1)]
    stop = threading.Event()
    stop.set()
    (drill.directory / "verification.jsonl").unlink()
    told, lines = drill.verify(stop=stop)
    assert (lines, told.found) == ([], {}), "it claims nothing of what was not read"


def test_what_is_lost_wrong_or_back_is_told_on_every_node(drill: Drill) -> None:
    lost, wrong, *sound = drill.objects
    drill.remove(lost)
    drill.remove(wrong)
    drill.put(Object(wrong.key, wrong.object_bytes, wrong.body_seed + 1, "another"))
    ledger = drill.load.ledger
    gone, back, never = (
        ledger.describe(drill.load.api.key(drill.load.seed, "me", number), 1024)
        for number in range(3)
    )
    for what in (gone, back):
        ledger.complete(ledger.put(what, client="here", target="n1", owner="me"), "ok")
        drill.put(what)
        taken = ledger.remove_one("me", random.Random(1), client="here", target="n1")
        assert taken is not None
        drill.remove(what)
        ledger.complete(taken[0], "ok")
    drill.put(back)
    ledger.complete(ledger.put(never, client="here", target="n1"), "unknown")  # nobody knows

    told, lines = drill.verify()
    assert answers(lines, lost) == ["no"] * 3
    assert answers(lines, wrong) == ["wrong"] * 3
    assert answers(lines, gone) == ["no"] * 3
    assert answers(lines, back) == ["yes"] * 3
    assert answers(lines, never) == ["no"] * 3
    assert all(answers(lines, each) == ["yes"] * 3 for each in sound)
    assert told.found == {"no": 9, "wrong": 3, "yes": 3 * (KEYS - 2 + 1)}
    passes = {line["key"]: line["passes"] for line in lines}
    assert passes[lost.key] == 3, "what must be there is asked for again"
    assert passes[gone.key] == passes[never.key] == 1, "what need not be is not"
    bad = next(line for line in lines if line["found"] == "wrong")
    assert bad["error"] == "checksum mismatch"
    assert bad["sha256"] not in (None, wrong.sha256)


def test_what_comes_late_is_there_and_is_told(drill: Drill) -> None:
    late = drill.objects[0]
    drill.remove(late)

    class PutInThePause(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            drill.put(late)
            return super().wait(timeout)

    told, lines = drill.verify(stop=PutInThePause())
    mine = [line for line in lines if line["key"] == late.key]
    assert [(line["found"], line["late"], line["passes"]) for line in mine] == [
        ("yes", True, 2)
    ] * 3
    assert told.found == {"yes": 3 * KEYS}
    assert sum(line.get("late", False) for line in lines) == 3


def test_a_node_that_does_not_answer_leaves_its_keys_unread_and_costs_its_budget(
    drill: Drill,
) -> None:
    store = drill.cluster.processes["n3"]
    store.send_signal(signal.SIGSTOP)
    try:
        told, lines = drill.verify(budget_s=2.5, deadline_ms=1000)
    finally:
        store.send_signal(signal.SIGCONT)
    assert told.out_of_time
    assert told.found["unread"] == KEYS
    found = Counter((line["node"], line["found"]) for line in lines)
    assert found["n3", "unread"] == KEYS
    reasons = {line["error"] for line in lines if line["found"] == "unread"}
    assert reasons == {
        "timeout (first byte)",
        "not asked: the time for the verification was over",
    }


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("wrong-body", "wrong"),
        ("status:404:NoSuchKey", "no"),
        ("status:403:AccessDenied", "unread"),
        ("status:500:InternalError", "unread"),
        ("truncate", "unread"),
        ("garbage", "unread"),
        ("never", "unread"),
    ],
)
def test_only_a_whole_answer_is_one(tmp_path: Path, answer: str, found: str) -> None:
    lines: list[Line] = []
    with LoopbackStore(answer) as store:
        load = load_on(store, tmp_path, [])
        what = load.ledger.describe("k", 1024)
        load.ledger.complete(load.ledger.put(what, client="here", target="n1"), "ok")
        verify(
            *(load.lab, load.cluster, load.ledger, "restarted", 2.0),
            write=lines.append,
            on_progress=lambda *_: None,
            deadline_ms=100,
            passes=1,
        )
    header, line = lines
    assert header["round"] == line["round"] == "restarted"
    assert line["found"] == found


def test_fill_tries_again_and_the_ledger_says_so(tmp_path: Path) -> None:
    rows: list[Row] = []
    with LoopbackStore("ok", "status:503:ServiceUnavailable", "ok") as store:  # first: the bucket
        load = load_on(store, tmp_path, rows)
        fill(load, PLACE, 2, 5000, stop=threading.Event(), on_progress=lambda *_: None)
    writes = writes_of(tmp_path)
    assert sorted(write["state"] for write in writes) == ["ok", "ok", "unknown"]
    assert len({write["key"] for write in writes}) == 2
    assert len(rows) == 3
    assert load.ledger.acknowledged == 2


def test_a_store_that_takes_nothing_is_not_filled(tmp_path: Path) -> None:
    with LoopbackStore("ok", "status:507:Full") as store:
        load = load_on(store, tmp_path, [])
        with pytest.raises(ProbeFailed, match="507 Full"):
            fill(load, PLACE, 20, 5000, stop=threading.Event(), on_progress=lambda *_: None)
