"""Single requests from a test: put, get and remove an object, from any node, one at a time."""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.experiments.config.endpoints import objects_of
from wanlat.experiments.config.workloads import BUCKET
from wanlat.experiments.drill.ledger import Object
from wanlat.experiments.requests import (
    is_not_found,
    on_object,
    row_of,
    spawn_on,
)
from wanlat.experiments.session import requested_rtt_ms
from wanlat.probes.body import body
from wanlat.probes.objects import HOW_OBJECTS
from wanlat.probes.oneshot import Oneshot, prepare
from wanlat.probes.plan import Request
from wanlat.probes.protocols import header_to
from wanlat.probes.records import Outcome, Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Size
from wanlat.topologies.wording import show

_DEADLINE_S = 30.0


@dataclass(frozen=True)
class Answer:
    """What came of one request to ``key``, as you named it, or as a fresh one was made."""

    key: str
    sample: Sample
    network_error_ms: float | None = None
    """The greatest lateness of the emulated network meanwhile: the machine was busy, and this part
    of the latency may not be the store's. None: it is not known."""

    @property
    def outcome(self) -> str:
        """``ok``, ``fail`` (certainly not executed) or ``unknown``."""
        return self.sample.outcome

    @property
    def error(self) -> str | None:
        """Why it is not ok."""
        return self.sample.error

    @property
    def ok(self) -> bool:
        """Whether it was acknowledged, or read and right."""
        return self.outcome == "ok"

    @property
    def latency_ms(self) -> float:
        """From its start to the last byte of the answer, or to when it was given up."""
        return self.sample.elapsed_ns / 1e6

    def __repr__(self) -> str:
        """Return what a failed assertion needs."""
        why = f", {self.error}" if self.error else ""
        took = f"{self.outcome} in {self.latency_ms:.1f} ms"
        if self.network_error_ms:
            took += f" (the machine made the network {self.network_error_ms:.1f} ms late meanwhile)"
        return f"<{self.sample.endpoint} {self.key}: {took}{why}>"


@dataclass(eq=False, slots=True)
class _Write:
    """One write of a key: of these bytes, or a removal (None). Unknown until more is known."""

    object: Object | None
    outcome: Outcome = "unknown"


class _Key:
    """The writes of one key, by its name in the store, in the order in which they were sent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.writes: list[_Write] = []

    def begin(self, what: Object | None) -> _Write:
        """Note that a write is about to be sent."""
        self.writes.append(_Write(what))
        return self.writes[-1]

    @property
    def _last(self) -> _Write | None:
        """Return the last one that was acknowledged."""
        return next((write for write in reversed(self.writes) if write.outcome == "ok"), None)

    def awaited(self) -> Object:
        """Return the object that a read must bring, or, where that is none, may have brought."""
        if self._last is not None and self._last.object is not None:
            return self._last.object
        puts = [(write.object, write.outcome) for write in self.writes if write.object]
        maybe = [what for what, outcome in puts if outcome == "unknown"]
        return (maybe or [what for what, _ in puts])[-1]

    def judge(self, read: Sample) -> Sample:
        """Return what came of a read, compared with the last write that was acknowledged.

        A write of unknown outcome may be executed at any time, so what it put is right as well.
        """
        matches = [
            write for write in self.writes if write.object and write.object.sha256 == read.sha256
        ]
        if read.outcome in ("unknown", "not_sent") or not matches:
            return read  # nothing came, or, as oneshot has found out, nobody's bytes
        last = self._last
        if any(write is last or write.outcome == "unknown" for write in matches):
            return replace(read, outcome="ok", error=None)
        number = self.writes.index(matches[-1]) + 1
        if matches[-1].outcome in ("fail", "not_sent"):
            why = f"bytes of a write that had failed (number {number} to this key)"
        else:
            since = "replaced" if last is not None and last.object else "removed"
            why = f"stale: bytes of write number {number} to this key, which was {since} since"
        return replace(read, outcome="fail", error=why)


class Probe:
    """Sends requests to a cluster, one in flight.

    key = wanlat_probe.put().key
    sample = wanlat_probe.at("n3").get(key)
    assert sample.outcome == "ok" and sample.latency_ms < 250

    It stands on the topology's first node, and the store there is its target; `at` makes another
    with another node and target. Every put has bytes of its own, and what is read must be those of
    the last one that was acknowledged, whichever probe put them, or of one of unknown outcome.
    Every request is a row of the test's bundle, which ``record`` takes.
    """

    def __init__(
        self, lab: Lab, cluster: Cluster, record: Callable[[dict[str, Any]], None], *, seed: int = 1
    ) -> None:
        self.node = self.target = lab.nodes[0].name
        self._deadline_s = _DEADLINE_S
        self._lab = lab
        self._cluster = cluster
        self._record = record
        api = objects_of(cluster.defined, cluster.scene["given"])
        if api is None:
            raise UserError(
                f"wanlat_probe puts, gets and removes objects, and the definition of system "
                f"{cluster.system} does not say how: {HOW_OBJECTS}"
            )
        self._api = api
        self._seed = seed
        # Shared with those that `at` makes.
        self._numbers = count(1)
        self._keys: dict[str, _Key] = {}
        self._oneshots: dict[tuple[str, str, float], Oneshot] = {}
        self._stack = ExitStack()

    def at(self, node: str, *, target: str | None = None, deadline_s: float | None = None) -> Probe:
        """Return a probe that stands on a node; its target is the store there, or on ``target``.

        ``deadline_s``: how long a request may take before it is `unknown`.
        """
        other = copy.copy(self)
        other.node = self._lab.node(node).name
        other.target = self._lab.node(target or node).name
        other._deadline_s = deadline_s or self._deadline_s
        return other

    def put(self, key: str | None = None, *, object_bytes: int = 1024) -> Answer:
        """Put an object at a key of yours, or at a fresh one."""
        native = self._native(key)
        at = self._keys.setdefault(native, _Key(native))
        self._keys.setdefault(key or native, at)
        # Bytes of this write, and of no other.
        text = f"{self._seed}/{native}/{len(at.writes) + 1}"
        seed = random.Random(text).getrandbits(53)
        digest = hashlib.sha256(body(seed, object_bytes)).hexdigest()
        what = Object(native, object_bytes, seed, digest)
        self._api.check_size(self._cluster.system, Size(object_bytes))
        oneshot, write = self._oneshot(), at.begin(what)
        request = on_object(self._api, "write", next(self._numbers), what)
        sample = _send(oneshot, request)
        write.outcome = sample.outcome
        return self._answer(at, key, sample, request)

    def get(self, key: str) -> Answer:
        """Get an object that a probe of this test has put; its body must be the one put last.

        What an acknowledged write replaced or removed is not ok any more, and what failed never
        is; after a write of unknown outcome its bytes are right, and those before it. Raises
        UserError for a key that no probe ever put.
        """
        at = self._known(key)
        request = on_object(self._api, "read", next(self._numbers), at.awaited())
        return self._answer(at, key, at.judge(_send(self._oneshot(), request)), request)

    def remove(self, key: str) -> Answer:
        """Remove an object that a probe of this test has put."""
        at = self._known(key)
        request = on_object(self._api, "delete", next(self._numbers), at.awaited())
        oneshot, write = self._oneshot(), at.begin(None)
        sample = _send(oneshot, request)
        # A store that does not find what it has acknowledged may have removed a part of it.
        write.outcome = "unknown" if is_not_found(sample) else sample.outcome
        return self._answer(at, key, sample, request)

    def _native(self, key: str | None) -> str:
        """Return a key as the API has it: where it has eight bytes, a text becomes a hash of it."""
        if key is None:
            return self._api.key(self._seed, "test", next(self._numbers))
        return self._api.native(key)

    def _known(self, key: str) -> _Key:
        if key not in self._keys:
            raise UserError(
                f"No probe of this test has put {show(key)}, so nobody knows what it should be. "
                "Put it first."
            )
        return self._keys[key]

    def _oneshot(self) -> Oneshot:
        """Return the process that sends requests. Nothing is sent yet."""
        place = (self.node, self.target, self._deadline_s)
        known = self._oneshots.get(place)
        if known is not None and not known.is_lost():
            return known
        deadline_ms = round(self._deadline_s * 1000)
        header = header_to(self._cluster.target(self.target), deadline_ms=deadline_ms)
        spawn = spawn_on(self._lab, self.node)
        if not self._oneshots:
            self._cluster.create_bucket(BUCKET)
            prepare(spawn, header, self._api.buckets([BUCKET]), lambda *_: None)
        self._oneshots[place] = self._stack.enter_context(Oneshot(spawn, header))
        return self._oneshots[place]

    def _answer(self, at: _Key, key: str | None, sample: Sample, request: Request) -> Answer:
        cluster, plan = self._cluster, self._lab.plan
        self._record(
            {
                **row_of(sample, request),
                "system": cluster.system,
                "version": cluster.version,
                "topology": plan.name,
                "client": self.node,
                "target": self.target,
                "key": at.name,
                "rtt_ms": requested_rtt_ms(plan, self.target),
                "placement": self._api.placement(cluster.replicas, self.target, at.name),
            }
        )
        error_ns = self._lab.lateness.during(sample.start_ns, sample.start_ns + sample.elapsed_ns)
        error_ms = None if error_ns is None else error_ns / 1e6
        return Answer(at.name if key is None else key, sample, error_ms)

    def close(self) -> None:
        """End the processes of this probe and of all that it made. May be called again."""
        self._oneshots.clear()
        self._stack.close()


def _send(oneshot: Oneshot, request: Request) -> Sample:
    oneshot.send(request)
    return oneshot.receive()
