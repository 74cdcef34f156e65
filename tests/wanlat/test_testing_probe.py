"""The probe of users' tests: every write has bytes of its own, and a read is held to the last one.

Against a store in this process that can be told to forget, to refuse, and to hang up.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments.requests import unanswered
from wanlat.probes.body import body
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems import registry
from wanlat.systems.base import S3Target
from wanlat.testing import Probe
from wanlat.testing import probe as module
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve


class Store:
    """A store, and the process that asks it, which holds what comes to what it was told to await.

    ``does``, of writes: `refuse` (not executed), `hang-up` (no answer), `forget` (not executed).
    """

    def __init__(self) -> None:
        self.puts: list[str] = []
        """Hashes of all that was ever put, refused or not."""
        self.now: dict[str | None, str] = {}
        self.does: set[str] = set()
        self.is_dead = False

    def __call__(self, _spawn: Any, _header: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        """It ends."""

    def is_lost(self) -> bool:
        return False

    def send(self, request: Request) -> None:
        self.asked = request

    def receive(self) -> Sample:
        asked = self.asked
        unknown = unanswered(asked.seq, asked.endpoint, 0, "connection closed")
        awaited = None
        if asked.body_seed is not None:
            awaited = hashlib.sha256(body(asked.body_seed, asked.object_bytes or 0)).hexdigest()
        if asked.endpoint == "GetObject":
            came = self.now.get(asked.key)
            if came is None:
                return replace(unknown, outcome="fail", status=404, error="HTTP 404")
            error = None if came == awaited else "checksum mismatch"
            outcome: Any = "ok" if came == awaited else "fail"
            return replace(unknown, outcome=outcome, status=200, error=error, sha256=came)
        if awaited is not None:
            self.puts.append(awaited)
        if not {"refuse", "forget"} & self.does:
            self.now.pop(asked.key, None)
            if awaited is not None:
                self.now[asked.key] = awaited
        if self.is_dead:
            raise ProbeFailed("it is gone")
        if "hang-up" in self.does:
            return unknown
        if "refuse" in self.does:
            return replace(unknown, outcome="fail", status=403, error="HTTP 403")
        return replace(unknown, outcome="ok", status=200, error=None)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    monkeypatch.setattr(module, "Oneshot", made)
    monkeypatch.setattr(module, "prepare", lambda *_: None)
    return made


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def probe(store: Store, rows: list[dict[str, Any]]) -> Probe:
    plan = resolve(load("one-site"))
    lateness = SimpleNamespace(during=lambda *_: 3_000_000)
    lab: Any = SimpleNamespace(plan=plan, nodes=plan.nodes, lateness=lateness)
    target = S3Target("127.0.0.1", 1, "garage", "ACCESS", "SECRET")
    quorum = registry.get("quorum")
    known = {"defined": quorum, "scene": {"given": quorum.parse_options()}, "version": "1"}
    does = {"target": lambda _: target, "create_bucket": lambda _: None, "replicas": None}
    cluster: Any = SimpleNamespace(system="fake", **known, **does)
    return Probe(lab, cluster, rows.append)


def play(probe: Probe, store: Store, script: str) -> None:
    """Do what a script says, step by step.

    `put OUTCOME [BYTES]`, `remove OUTCOME`, `get OUTCOME [WORD OF THE ERROR]`, all of one key;
    `store` and what it does from now on; `serve N`: it has the bytes of put number N.
    """
    for step in script.split(", "):
        verb, *words = step.split()
        if verb == "store":
            store.does = set(words)
        elif verb == "serve":
            came = "another's" if words == ["rubbish"] else store.puts[int(words[0]) - 1]
            store.now = dict.fromkeys(store.now, came)
        elif verb == "put":
            size = int(words[1]) if words[1:] else 1024
            assert probe.put("k", object_bytes=size).outcome == words[0], step
        elif verb == "remove":
            assert probe.remove("k").outcome == words[0], step
        else:
            answer = probe.get("k")
            assert (answer.outcome, answer.ok) == (words[0], words[0] == "ok"), step
            assert all(word in f"{answer.error} {answer.sample.status}" for word in words[1:]), step
            assert answer.error is None or words[0] != "ok", step


@pytest.mark.parametrize(
    "script",
    [
        "put ok, put ok, put ok, get ok",
        # What an acknowledged write replaced, or removed, is stale.
        "put ok, store forget, put ok, get fail stale",
        "put ok, store forget, remove ok, get fail removed, store, remove ok, get fail 404",
        # After a write of unknown outcome either is right, and late too: when another one has been
        # acknowledged. What came before that one is not.
        *(
            f"put ok, store hang-up {executed}, put unknown {size}, store, get ok, put ok, "
            "serve 3, get ok, serve 2, get ok, serve 1, get fail"
            for executed in ("", "forget")
            for size in (1024, 3000)
        ),
        "put ok, store hang-up forget, remove unknown, get ok",
        # A write that failed is nothing that a read may bring, be there another or not.
        "put ok, store refuse, put fail, get ok, serve 2, get fail failed",
        "put ok, serve rubbish, get fail checksum mismatch",
    ],
)
def test_a_read_is_held_to_the_writes_before_it(
    probe: Probe, store: Store, rows: list[dict[str, Any]], script: str
) -> None:
    play(probe, store, script)
    told = [step.split()[1] for step in script.split(", ") if step[:3] in ("put", "rem", "get")]
    assert [row["outcome"] for row in rows] == told, "what was found out is in the bundle"
    assert len({*store.puts}) == len(store.puts), "every write has bytes of its own"


def test_a_write_whose_answer_nobody_took_may_have_been_executed(
    probe: Probe, store: Store
) -> None:
    assert probe.put("k").ok
    store.is_dead = True
    with pytest.raises(ProbeFailed):
        probe.put("k")
    store.is_dead = False
    assert probe.get("k").ok
