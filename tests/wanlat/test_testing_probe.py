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


class Store:
    """Objects, with all that was ever put at a key, and what is to go wrong."""

    def __init__(self) -> None:
        self.puts: dict[str, list[bytes]] = {}
        self.now: dict[str, bytes] = {}
        self.refuses = False
        """Writes: answered with 403, and not executed."""
        self.hangs_up = False
        """On writes: the connection is closed in place of an answer."""
        self.forgets = False
        """Writes: acknowledged, where they are, and not executed."""

    def write(self, path: str, body: bytes | None) -> int | None:
        """Return the status; None to hang up."""
        if body is not None:
            self.puts.setdefault(path, []).append(body)
        if self.refuses:
            return 403
        if not self.forgets:
            if body is None:
                self.now.pop(path, None)
            else:
                self.now[path] = body
        return None if self.hangs_up else 200


class Handler(BaseHTTPRequestHandler):
    """S3, as far as the probe speaks it."""

    protocol_version = "HTTP/1.1"
    store: Store

    def do_PUT(self) -> None:
        self._write(self.rfile.read(int(self.headers["Content-Length"])))

    def do_DELETE(self) -> None:
        self._write(None)

    def do_GET(self) -> None:
        body = self.store.now.get(self.path)
        self._answer(404 if body is None else 200, body or b"")

    def _write(self, body: bytes | None) -> None:
        is_bucket = self.path.count("/") == 1
        status = 200 if is_bucket else self.store.write(self.path, body)
        if status is None:
            self.close_connection = True
        else:
            self._answer(status, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def probe(store: Store, rows: list[dict[str, Any]]) -> Iterator[Probe]:
    handler = type("OfThisTest", (Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
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


def test_every_write_has_bytes_of_its_own(probe: Probe, store: Store) -> None:
    for _ in range(3):
        assert probe.put("k").ok
    (written,) = store.puts.values()
    assert len(set(written)) == 3
    assert probe.get("k").ok


def test_what_an_acknowledged_write_replaced_is_stale(
    probe: Probe, store: Store, rows: list[dict[str, Any]]
) -> None:
    assert probe.put("k").ok
    store.forgets = True
    assert probe.put("k").ok
    answer = probe.get("k")
    assert answer.outcome == "fail"
    assert answer.error is not None and "stale" in answer.error
    assert (rows[-1]["outcome"], rows[-1]["error"]) == ("fail", answer.error)


def test_what_was_removed_and_comes_all_the_same_is_stale(probe: Probe, store: Store) -> None:
    assert probe.put("k").ok
    store.forgets = True
    assert probe.remove("k").ok
    answer = probe.get("k")
    assert answer.outcome == "fail"
    assert answer.error is not None and "removed" in answer.error
    store.forgets = False
    assert probe.remove("k").ok
    assert probe.get("k").sample.status == 404


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("object_bytes", [1024, 3000])
def test_after_a_write_of_unknown_outcome_either_is_right(
    probe: Probe, store: Store, executed: bool, object_bytes: int
) -> None:
    assert probe.put("k").ok
    store.hangs_up, store.forgets = True, not executed
    assert probe.put("k", object_bytes=object_bytes).outcome == "unknown"
    store.hangs_up = store.forgets = False
    answer = probe.get("k")
    assert answer.ok and answer.error is None, answer
    # It may be executed later too, when another one has been acknowledged; the first may not.
    assert probe.put("k").ok
    first, late, last = next(iter(store.puts.values()))
    for body, is_right in ((last, True), (late, True), (first, False)):
        store.now = dict.fromkeys(store.now, body)
        assert probe.get("k").ok is is_right


def test_a_removal_of_unknown_outcome_leaves_both_possible(probe: Probe, store: Store) -> None:
    assert probe.put("k").ok
    store.hangs_up = store.forgets = True
    assert probe.remove("k").outcome == "unknown"
    assert probe.get("k").ok


def test_a_write_that_failed_is_nothing_that_a_read_may_bring(probe: Probe, store: Store) -> None:
    assert probe.put("k").ok
    store.refuses = True
    assert probe.put("k").outcome == "fail"
    assert probe.get("k").ok
    first, refused = next(iter(store.puts.values()))
    assert first != refused
    store.now = dict.fromkeys(store.now, refused)
    answer = probe.get("k")
    assert answer.outcome == "fail"
    assert answer.error is not None and "failed" in answer.error


def test_a_key_whose_only_write_failed_holds_nothing(probe: Probe, store: Store) -> None:
    store.refuses = True
    key = probe.put().key
    assert probe.get(key).sample.status == 404
    ((path, (refused,)),) = store.puts.items()
    store.now[path] = refused
    assert probe.get(key).outcome == "fail"


def test_a_write_whose_answer_nobody_took_may_have_been_executed(
    probe: Probe, store: Store, monkeypatch: pytest.MonkeyPatch
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


def test_bytes_that_nobody_wrote_are_wrong(probe: Probe, store: Store) -> None:
    assert probe.put("k").ok
    store.now = dict.fromkeys(store.now, bytes(1024))
    answer = probe.get("k")
    assert (answer.outcome, answer.error) == ("fail", "checksum mismatch")


def test_a_key_that_nobody_put_is_the_callers_mistake(probe: Probe) -> None:
    for ask in (probe.get, probe.remove):
        with pytest.raises(UserError, match="Put it first"):
            ask("nothing")
