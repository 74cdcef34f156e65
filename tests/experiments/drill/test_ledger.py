"""What was sent is in the ledger, however its writer ended; and what it says of the objects."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from wanlat.analysis.figures.drill.verdicts import NEVER, Key
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


def test_what_was_not_sent_was_not_executed(ledger: Ledger) -> None:
    put(ledger, "a", owner="me")
    number, what = remove(ledger, "me") or (-1, None)
    ledger.complete(number, "not_sent")
    assert what is not None and ledger.is_expected("a") and not ledger.is_removed("a")
    assert Key("c", put=["not_sent", "fail"]).expected == NEVER


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
