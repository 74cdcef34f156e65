"""The probe of users' tests: every write has bytes of its own, and a read is held to the last one.

Against a store in this process that can be told to forget, to refuse, and to hang up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.probes.errors import ProbeFailed
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.process import spawn_here
from wanlat.probes.records import Sample
from wanlat.systems.base import S3Target
from wanlat.testing import Probe
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve


class Store(BaseHTTPRequestHandler):
    """S3, as far as the probe speaks it; each test has a class of its own."""

    protocol_version = "HTTP/1.1"
    puts: list[bytes]
    """All that was ever put, refused or not."""
    last: str
    now: dict[str, bytes]
    does: set[str]
    """On writes: `refuse` (403, not executed), `hang-up` (no answer), `forget` (not executed)."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.count("/") == 1:  # a bucket
            self._answer(200)
            return
        self.puts.append(body)
        type(self).last = self.path
        self._write(body)

    def do_DELETE(self) -> None:
        self._write(None)

    def do_GET(self) -> None:
        body = self.now.get(self.path)
        self._answer(404 if body is None else 200, body or b"")

    def _write(self, body: bytes | None) -> None:
        if not {"refuse", "forget"} & self.does:
            self.now.pop(self.path, None)
            if body is not None:
                self.now[self.path] = body
        if "hang-up" in self.does:
            self.close_connection = True
        else:
            self._answer(403 if "refuse" in self.does else 200)

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def store() -> Any:
    return type("OfThisTest", (Store,), {"puts": [], "now": {}, "does": set()})


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def probe(store: Any, rows: list[dict[str, Any]]) -> Iterator[Probe]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), store)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = S3Target("127.0.0.1", server.server_port, "garage", "ACCESS", "SECRET")
    plan = resolve(load("one-site"))
    nodes = {node.name: node for node in plan.nodes}
    lab: Any = SimpleNamespace(
        plan=plan,
        nodes=plan.nodes,
        node=nodes.__getitem__,
        spawn=lambda _, argv, **pipes: spawn_here(argv, *pipes.values()),
    )
    cluster: Any = SimpleNamespace(
        api="s3",
        system="fake",
        version="1",
        s3=lambda _: target,
        create_bucket=lambda _: None,
    )
    try:
        with Probe(lab, cluster, rows.append) as made:
            yield made
    finally:
        server.shutdown()
        server.server_close()


def play(probe: Probe, store: Any, script: str) -> None:
    """Do what a script says, step by step.

    `put OUTCOME [BYTES]`, `remove OUTCOME`, `get OUTCOME [WORD OF THE ERROR]`, all of one key;
    `store` and what it does from now on; `serve N`: it has the bytes of put number N.
    """
    for step in script.split(", "):
        verb, *words = step.split()
        if verb == "store":
            store.does = set(words)
        elif verb == "serve":
            body = bytes(1024) if words == ["zeros"] else store.puts[int(words[0]) - 1]
            store.now = dict.fromkeys(store.now, body)
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
        # A write that failed is nothing that a read may bring.
        "put ok, store refuse, put fail, get ok, serve 2, get fail failed",
        "put ok, serve zeros, get fail checksum mismatch",
    ],
)
def test_a_read_is_held_to_the_writes_before_it(
    probe: Probe, store: Any, rows: list[dict[str, Any]], script: str
) -> None:
    play(probe, store, script)
    told = [step.split()[1] for step in script.split(", ") if step[:3] in ("put", "rem", "get")]
    assert [row["outcome"] for row in rows] == told, "what was found out is in the bundle"
    assert len({*store.puts}) == len(store.puts), "every write has bytes of its own"


def test_a_key_whose_only_write_failed_holds_nothing(probe: Probe, store: Any) -> None:
    store.does = {"refuse"}
    key = probe.put().key
    assert probe.get(key).sample.status == 404
    store.now = {store.last: store.puts[0]}
    answer = probe.get(key)
    assert (answer.outcome, answer.sample.status) == ("fail", 200)


def test_a_write_whose_answer_nobody_took_may_have_been_executed(
    probe: Probe, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe.put("k").ok
    with monkeypatch.context() as broken:
        receive = Oneshot.receive

        def lost(self: Oneshot) -> Sample:
            receive(self)
            raise ProbeFailed("it is gone")

        broken.setattr(Oneshot, "receive", lost)
        with pytest.raises(ProbeFailed):
            probe.put("k")
    assert probe.get("k").ok


def test_a_key_that_nobody_put_is_the_callers_mistake(probe: Probe) -> None:
    for ask in (probe.get, probe.remove):
        with pytest.raises(UserError, match="Put it first"):
            ask("nothing")
