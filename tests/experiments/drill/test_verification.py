"""After the heal every key is read from every node, and nothing is passed that was not seen."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.experiments.drill.loads import LoopbackStore, load_on, quorum
from wanlat.bundle.write import Lines
from wanlat.experiments.drill import clients
from wanlat.experiments.drill.clients import Verified, fill, verify
from wanlat.experiments.drill.ledger import Object
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.requests import Schedule, Sender, on_object, spawn_on
from wanlat.probes.protocols import header_to
from wanlat.systems.base import Cluster

KEYS = 30
NODES = ("n1", "n2", "n3")
Line = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with quorum(tmp_path_factory.mktemp("logs")) as made:
        yield made


SAMPLES = {
    "yes": {"outcome": "ok", "sha256": "right", "error": None},
    "no": {"outcome": "fail", "status": 404, "error": "http 404 NoSuchKey"},
    "wrong": {"outcome": "fail", "sha256": "other", "error": "checksum mismatch"},
    "unread": {"outcome": "unknown", "error": "timeout (first byte)"},
}


@pytest.mark.parametrize(
    ("must_be", "answers", "found", "is_late"),
    [
        ("there", "yes", "yes", False),
        ("there", "no yes", "yes", True),
        ("there", "no no no", "no", None),
        ("there", "no unread unread", "no", None),  # a "no" stands, until it says otherwise
        ("there", "unread yes", "yes", False),
        ("there", "no wrong", "wrong", False),
        ("gone", "no", "no", False),
        ("gone", "yes no", "no", True),  # it had not heard of the removal yet
        ("gone", "yes yes yes", "yes", None),
        ("gone", "yes unread no", "no", True),
        ("either", "yes", "yes", False),
        ("either", "no", "no", False),
        ("either", "unread unread unread", "unread", None),
    ],
)
def test_what_may_still_change_is_read_again(
    must_be: str, answers: str, found: str, is_late: bool | None
) -> None:
    """None: it may change still, and is read again for as long as there is time."""
    question = clients._Question(
        "n1", Object("k", 4, 0, "right"), must_be == "there", must_be == "gone"
    )
    *before, last = answers.split()
    for each in before:
        question.judge(sample_of(each))
        assert not question.is_settled, each
    question.judge(sample_of(last))
    assert question.is_settled == (is_late is not None)
    line = question.line("healed")
    assert (line["found"], line.get("late", False)) == (found, bool(is_late))
    assert line["error"] == SAMPLES[found]["error"] and line["sha256"] == SAMPLES[found].get(
        "sha256"
    )


def sample_of(answer: str) -> Any:
    fields = {"status": None, "grpc_status": None, "sha256": None, **SAMPLES[answer]}
    return SimpleNamespace(**fields)


class Drill:
    """A filled cluster and its ledger, and ways to go behind the ledger's back."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        # Keys of its own, in a cluster that several tests fill.
        self.load = load_on(cluster, directory, [], seed=hash(directory) % 2**32)
        fill(self.load, Place("here", "n1", "n1"), KEYS, 5000, lambda *_: None)
        self.objects = self.load.ledger.objects()

    def remove(self, what: Object) -> None:
        self._tell(on_object(self.load.api, "delete", 0, what))

    def put(self, what: Object) -> None:
        self._tell(on_object(self.load.api, "write", 0, what))

    def _tell(self, request: Any) -> None:
        header = header_to(self.cluster.target("n1"), deadline_ms=5000)
        with Sender(spawn_on(self.load.lab, "n1"), header, threading.Event()) as sender:
            assert sender.exchange(request).outcome == "ok"

    def verify(self, budget_s: float = 60.0, **options: Any) -> tuple[Verified, list[Line]]:
        options = {"on_progress": lambda *_: None, "deadline_ms": 20_000, **options}
        path = self.directory / "verification.jsonl"
        with Lines(path) as lines:
            told = verify(
                *(self.load.lab, self.cluster, self.load.api, self.load.ledger, "healed", budget_s),
                write=lines.append,
                **options,
            )
        header, *rest = map(json.loads, path.read_text().splitlines())
        assert (header["round"], header["keys"]) == ("healed", len(self.load.ledger.objects()))
        assert header["nodes"] == list(NODES)
        return told, rest


@pytest.fixture
def drill(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drill:
    monkeypatch.setattr(clients, "_PAUSE_S", 0.1)
    return Drill(cluster, tmp_path)


def test_what_is_sound_lost_or_wrong_is_told_on_every_node(drill: Drill) -> None:
    lost, wrong, *sound = drill.objects
    drill.remove(lost)
    drill.put(Object(wrong.key, wrong.object_bytes, wrong.body_seed + 1, "another"))
    told, lines = drill.verify()
    found = {(line["node"], line["key"]): line for line in lines}
    assert len(found) == len(lines) == 3 * KEYS
    for node in NODES:
        assert (found[node, lost.key]["found"], found[node, lost.key]["passes"]) == ("no", 3)
        bad = found[node, wrong.key]
        assert (bad["found"], bad["error"]) == ("wrong", "checksum mismatch")
        assert bad["sha256"] not in (None, wrong.sha256)
        for each in sound:
            line = found[node, each.key]
            assert (line["found"], line["sha256"]) == ("yes", each.sha256)
    counted = {"yes": 3 * (KEYS - 2), "no": 3, "wrong": 3}
    assert told == Verified(KEYS * 3, counted, out_of_time=False)


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
    assert told.counts == {"yes": 3 * KEYS}
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
    found = Counter((line["node"], line["found"]) for line in lines)
    assert found["n3", "unread"] == KEYS
    assert {line["error"] for line in lines if line["node"] == "n3"} == {
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
            *(load.lab, load.cluster, load.api, load.ledger, "restarted", 60.0),
            write=lines.append,
            on_progress=lambda *_: None,
            deadline_ms=100 if answer == "never" else 20_000,
            passes=1,
        )
    header, line = lines
    assert header["round"] == line["round"] == "restarted"
    assert line["found"] == found


@pytest.mark.parametrize(
    ("took_ms", "left_ms"), [(0, 500), (499, 500), (500, 980), (1000, 980), (9000, 980)]
)
def test_after_one_that_took_long_the_next_needs_nearly_all_of_its_deadline(
    took_ms: int, left_ms: int
) -> None:
    """Else a client that lags by almost a deadline would lag so for ever."""
    often, rare = (Schedule(each, 0, 1000) for each in (20, 800))
    assert often.least_left_ns(took_ms) == left_ms
    assert rare.least_left_ns(took_ms) == 500
