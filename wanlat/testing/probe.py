"""Single requests from a test: put, get and remove an object, from any node, one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Self

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.api import StoreApi, api_of
from wanlat.experiments.session import requested_rtt_ms
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import KEY_BYTES, Header, Request
from wanlat.probes.process import Process, Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.testing.writes import Key
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import show

_SECONDS_TO_MS = 1000

Record = Callable[[dict[str, Any]], None]
"""Takes a row of samples.parquet."""


class Probe:
    """Asks a cluster, one request in flight.

    key = wanlat_probe.put().key
    sample = wanlat_probe.at("n3").get(key)
    assert sample.outcome == "ok" and sample.latency_ms < 250

    It stands on the topology's first node and asks the store there; `at` makes another that
    stands on, and asks, another one. Every put has bytes of its own, and what is read must be those
    of the last one that was acknowledged, whichever probe put them, or of one whose outcome is
    unknown. Every request is a row of the test's bundle.
    """

    def __init__(
        self,
        lab: Lab,
        cluster: Cluster,
        record: Record,
        *,
        seed: int = 1,
        node: str | None = None,
        ask: str | None = None,
        deadline_s: float = 30.0,
        shared: _Shared | None = None,
    ) -> None:
        self.node = lab.node(node).name if node is not None else lab.nodes[0].name
        self.asks = lab.node(ask).name if ask is not None else self.node
        self._deadline_s = deadline_s
        self._shared = shared or _Shared(lab, cluster, record, seed)

    def at(self, node: str, *, ask: str | None = None, deadline_s: float | None = None) -> Probe:
        """Return a probe that stands on a node and asks the store there, or on ``ask``.

        ``deadline_s``: how long a request may take before it is `unknown`.
        """
        shared = self._shared
        return Probe(
            shared.lab,
            shared.cluster,
            shared.record,
            node=node,
            ask=ask,
            deadline_s=deadline_s or self._deadline_s,
            shared=shared,
        )

    def put(self, key: str | None = None, *, object_bytes: int = 1024) -> Answer:
        """Put an object at a key of yours, or at a fresh one."""
        shared = self._shared
        oneshot = self._oneshot(object_bytes)
        at = shared.to_write(key)
        write, what = at.put(object_bytes)
        sample = _ask(oneshot, shared.api.put(shared.next(), what, "measure"))
        write.outcome = sample.outcome
        return self._answer(at, key, sample)

    def get(self, key: str) -> Answer:
        """Get an object that a probe of this test has put; its body must be the one put last.

        What an acknowledged write replaced or removed is not ok any more, and what failed never
        is; after a write of unknown outcome its bytes are right, and those before it. Raises
        UserError for a key that no probe ever put.
        """
        shared = self._shared
        at = shared.known(key)
        what = at.awaited()
        oneshot = self._oneshot(what.object_bytes)
        sample = _ask(oneshot, shared.api.get(shared.next(), what, "measure"))
        return self._answer(at, key, at.judge(sample))

    def remove(self, key: str) -> Answer:
        """Remove an object that a probe of this test has put."""
        shared = self._shared
        at = shared.known(key)
        oneshot = self._oneshot()
        request = shared.api.remove(shared.next(), at.awaited(), "measure")
        write = at.remove()
        sample = _ask(oneshot, request)
        # A store that does not find what it has acknowledged may have removed a part of it.
        write.outcome = "unknown" if shared.api.is_not_found(sample) else sample.outcome
        return self._answer(at, key, sample)

    def _oneshot(self, object_bytes: int = 0) -> Oneshot:
        """Return what asks, for objects up to so many bytes. Nothing is sent yet."""
        shared, deadline_ms = self._shared, round(self._deadline_s * _SECONDS_TO_MS)
        header = shared.api.header(shared.cluster, self.asks, deadline_ms, object_bytes)
        return shared.oneshot(self.node, self.asks, header)

    def _answer(self, at: Key, key: str | None, sample: Sample) -> Answer:
        shared = self._shared
        shared.record(
            {
                **asdict(sample),
                "system": shared.cluster.system,
                "version": shared.cluster.version,
                "topology": shared.lab.plan.name,
                "client": self.node,
                "target": self.asks,
                "key": at.name,
                "rtt_ms": requested_rtt_ms(shared.lab.plan, self.asks),
                "placement": shared.api.placement(shared.cluster, self.asks, at.name),
            }
        )
        return Answer(key if key is not None else at.name, sample)

    def close(self) -> None:
        """End the processes of this probe and of all that it made. May be called again."""
        self._shared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ask(oneshot: Oneshot, request: Request) -> Sample:
    oneshot.send(request)
    return oneshot.receive()


class Answer:
    """What came of one request. Everything else that was measured is in ``sample``."""

    def __init__(self, key: str, sample: Sample) -> None:
        self.key = key
        """As you named it; of a fresh one, as it was made."""
        self.sample = sample
        self.outcome = sample.outcome
        """``ok``, ``fail`` (certainly not executed) or ``unknown``."""
        self.error = sample.error

    @property
    def ok(self) -> bool:
        """Whether it was acknowledged, or read and right."""
        return self.outcome == "ok"

    @property
    def latency_ms(self) -> float:
        """From its start to the last byte of the answer, or to when it was given up."""
        return self.sample.elapsed_ns / 1e6

    def __repr__(self) -> str:
        """Say what a failed assertion needs."""
        why = f", {self.error}" if self.error else ""
        return (
            f"<{self.sample.endpoint} {self.key}: {self.outcome} in {self.latency_ms:.1f} ms{why}>"
        )


class _Shared:
    """What all probes of a test have in common: the objects, the processes."""

    def __init__(self, lab: Lab, cluster: Cluster, record: Record, seed: int) -> None:
        self.lab = lab
        self.cluster = cluster
        self.record = record
        self.api: StoreApi = api_of(cluster.api)
        self._seed = seed
        self._seq = 0
        self._keys: dict[str, Key] = {}
        self._oneshots: dict[tuple[str, str, int], Oneshot] = {}
        self._stack = ExitStack()
        self._is_ready = False

    def next(self) -> int:
        """Return the number of the next request."""
        self._seq += 1
        return self._seq

    def to_write(self, key: str | None) -> Key:
        """Return a key of the user's, or a fresh one, with what was written to it so far."""
        native = self._native(key)
        known = self._keys.setdefault(native, Key(native, self._seed))
        return known if key is None else self._keys.setdefault(key, known)

    def known(self, key: str) -> Key:
        """Return a key that was put before. Raises UserError."""
        try:
            return self._keys[key]
        except KeyError:
            raise UserError(
                f"No probe of this test has put {show(key)}, so nobody knows what it should be. "
                "Put it first."
            ) from None

    def oneshot(self, node: str, asks: str, header: Header) -> Oneshot:
        """Return the process on a node that asks another; started when first needed."""
        place = (node, asks, header.deadline_ms)
        known = self._oneshots.get(place)
        if known is not None and not known.is_lost():
            return known
        if not self._is_ready:
            self.api.make_ready(self.cluster, self._spawn(node), header)
            self._is_ready = True
        made = self._stack.enter_context(Oneshot(self._spawn(node), header))
        self._oneshots[place] = made
        return made

    def close(self) -> None:
        """End every process."""
        self._oneshots.clear()
        self._stack.close()

    def _native(self, key: str | None) -> str:
        """Return a key as the API has it: where it has eight bytes, a text becomes a hash of it."""
        if key is None:
            return self.api.key(self._seed, "test", self.next())
        if self.cluster.api == "bob":
            return hashlib.sha256(key.encode()).digest()[:KEY_BYTES].hex()
        return key

    def _spawn(self, node: str) -> Spawn:
        def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
            return self.lab.spawn(node, argv, stdin=stdin, stdout=stdout, stderr=stderr)

        return spawn
