"""What was sent is in the ledger, however its writer ended; and what it says of the objects."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.experiments.drill.drills import await_that, writes_of
from wanlat.emulator.binaries import SEARCH_PATH, binary
from wanlat.experiments.drill.ledger import Ledger, Object


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path, seed=7)


def put(ledger: Ledger, key: str, outcome: str | None = "ok", owner: str | None = None) -> Object:
    what = ledger.describe(key, 1024)
    number = ledger.put(what, client="here", target="n1", owner=owner)
    if outcome is not None:
        ledger.complete(number, outcome)  # type: ignore[arg-type]
    return what


def remove(ledger: Ledger, owner: str) -> tuple[int, Object] | None:
    return ledger.remove_one(owner, random.Random(1), client="here", target="n1")


def test_a_write_is_on_disk_before_it_is_sent_and_its_outcome_after(
    ledger: Ledger, path: Path
) -> None:
    what = ledger.describe("k", 1024)
    number = ledger.put(what, client="here", target="n2")
    (line,) = map(json.loads, path.read_text().splitlines())
    assert 0 < line.pop("t_ns") <= time.monotonic_ns()
    assert line == {
        "state": "invoked",
        "id": number,
        "op": "put",
        "key": "k",
        "bytes": 1024,
        "body_seed": what.body_seed,
        "sha256": what.sha256,
        "client": "here",
        "target": "n2",
    }
    ledger.complete(number, "unknown", "timeout (first byte)")
    line = json.loads(path.read_text().splitlines()[1])
    assert line.pop("t_ns") > 0
    assert line == {"id": number, "state": "unknown", "error": "timeout (first byte)"}


def test_the_hash_is_of_the_bytes_that_oneshot_sends(ledger: Ledger) -> None:
    what = ledger.describe("some key", 100_003)
    arguments = ["--seed", str(what.body_seed), "--bytes", "100003"]
    sent = subprocess.run([binary("oneshot"), "body", *arguments], capture_output=True, check=True)
    assert hashlib.sha256(sent.stdout).hexdigest() == what.sha256
    assert ledger.describe("another key", 100_003).sha256 != what.sha256


def test_only_what_was_acknowledged_is_read_and_only_what_nobody_reads_is_removed(
    ledger: Ledger,
) -> None:
    chance = random.Random(1)
    for key, outcome in (("failed", "fail"), ("unknown", "unknown"), ("on its way", None)):
        put(ledger, key, outcome)
    assert ledger.take_to_read(chance) is None
    put(ledger, "a", owner="me")
    put(ledger, "b")
    assert {taken.key for _ in range(50) if (taken := ledger.take_to_read(chance))} == {"a", "b"}
    assert ledger.acknowledged == 2
    assert len(ledger.objects()) == 5, "but all are verified"
    assert remove(ledger, "me") is None, "it is being read"
    for state in ledger._states.values():
        state.readers = 0
    assert remove(ledger, "somebody else") is None
    number, what = remove(ledger, "me") or (-1, None)
    assert what == ledger.describe("a", 1024)
    assert remove(ledger, "me") is None, "and not removed twice"
    ledger.complete(number, "unknown")
    assert {taken.key for _ in range(50) if (taken := ledger.take_to_read(chance))} == {"b"}


@pytest.mark.parametrize(
    ("put_outcome", "remove_outcome", "expected"),
    [
        ("ok", None, True),
        ("ok", "fail", True),
        ("ok", "ok", False),
        ("ok", "unknown", False),
        ("unknown", None, False),
        ("fail", None, False),
    ],
)
def test_what_must_be_there(
    ledger: Ledger, put_outcome: str, remove_outcome: str | None, expected: bool
) -> None:
    put(ledger, "a", put_outcome, owner="me")
    if remove_outcome is not None:
        number, _ = remove(ledger, "me") or (-1, None)
        assert not ledger.is_expected("a"), "while it is being removed nobody knows"
        ledger.complete(number, remove_outcome)  # type: ignore[arg-type]
    assert ledger.is_expected("a") is expected


def test_a_put_that_is_tried_again_is_another_write_of_the_same_object(
    ledger: Ledger, path: Path
) -> None:
    put(ledger, "a", "unknown")
    put(ledger, "a", "ok")
    writes = writes_of(path.parent)
    assert [(write["key"], write["state"]) for write in writes] == [("a", "unknown"), ("a", "ok")]
    assert ledger.acknowledged == len(ledger.objects()) == 1
    with pytest.raises(ValueError, match="taken"):
        ledger.put(ledger.describe("a", 1000), client="here", target="n1")


def test_threads_write_whole_lines_under_numbers_of_their_own(ledger: Ledger, path: Path) -> None:
    def work(name: str) -> None:
        for number in range(200):
            put(ledger, f"{name}/{number}")

    threads = [threading.Thread(target=work, args=(str(name),)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writes = writes_of(path.parent)
    assert (
        sorted(write["id"] for write in writes) == list(range(ledger.invoked)) == list(range(1600))
    )
    assert {write["state"] for write in writes} == {"ok"}


_KILLED = """
import sys
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import Lab
from wanlat.systems.base import S3Target
from tests.experiments.drill.loads import client, load_on, start
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve

journal = open(sys.argv[1], "wb")
with Lab(resolve(load("one-site"))) as lab:
    at = lab.node("n1").address
    lab.spawn("n1", [binary("null-server"), "--listen", f"{at}:9000", "--journal",
               "--answer", "wait:5"],
              stdin=sys.stdin, stdout=journal)
    store = SimpleNamespace(lab=lab, api="s3", s3=lambda _: S3Target(at, 9000, "r", "a", "s"))
    rows = []
    load = load_on(store, Path(sys.argv[2]), rows, delete_ratio=0.3)
    clients = [client(load, "write", node, interval_ms=2, name=node) for node in ("n1", "n2", "n3")]
    start(clients, 60, Event())[0].join()
"""


def test_kill_9_loses_nothing_that_was_sent(tmp_path: Path) -> None:
    # The store takes 5 ms, so that there is a request of each client on its way almost always.
    journal, ledger = tmp_path / "journal.jsonl", tmp_path / "ledger.jsonl"
    argv = [sys.executable, "-c", _KILLED, journal, tmp_path]
    drill = subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=SEARCH_PATH)
    await_that(lambda: ledger.is_file() and ledger.stat().st_size > 0, drill)
    await_that(lambda: journal.read_bytes().count(b"\n") > 60, drill)
    time.sleep(0.2)
    drill.kill()
    drill.communicate()
    # What the store has seen, and it is gone with its lab, so it will see no more.
    lines = journal.read_text().splitlines()[1:]
    seen = [json.loads(line) for line in lines if line.endswith("}")]
    assert len(seen) > 50
    writes = writes_of(tmp_path)
    methods = {"put": "PUT", "remove": "DELETE"}
    written = {(methods[write["op"]], f"/wanlat/{write['key']}"): write for write in writes}
    for request in seen:
        write = written[request["method"], request["target"]]
        assert write["sha256"] in (None, request["body_sha256"])
    # And of what was answered before the end, the answers.
    assert sum(write["state"] == "ok" for write in writes) >= len(seen) - 2 * 3
