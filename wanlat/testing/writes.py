"""What a test has written to each key, and so what a read of it may bring."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace

from wanlat.experiments.drill.ledger import Object
from wanlat.probes.body import body
from wanlat.probes.records import Outcome, Sample


@dataclass(eq=False, slots=True)
class Write:
    """One write of a key: of these bytes, or a removal."""

    number: int
    """Of those to its key, from 1."""
    object: Object | None
    """None: a removal."""
    outcome: Outcome = "unknown"
    """Until more is known."""


class Key:
    """The writes of one key, in the order in which they were sent, one after another."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        """As the store has it."""
        self._seed = seed
        self._writes: list[Write] = []

    def put(self, object_bytes: int) -> tuple[Write, Object]:
        """Note that so many bytes are about to be put: of this write, and of no other."""
        number = len(self._writes) + 1
        seed = random.Random(f"{self._seed}/{self.name}/{number}").getrandbits(53)
        digest = hashlib.sha256(body(seed, object_bytes)).hexdigest()
        what = Object(self.name, object_bytes, seed, digest)
        return self._begin(what), what

    def remove(self) -> Write:
        """Note that it is about to be removed."""
        return self._begin(None)

    def awaited(self) -> Object:
        """Return the object that a read must bring, or, where that is none, may have brought."""
        last = self._last()
        if last is not None and last.object is not None:
            return last.object
        maybe = [each.object for each in self._writes if each.outcome == "unknown" and each.object]
        return (maybe or [each.object for each in self._writes if each.object])[-1]

    def judge(self, read: Sample) -> Sample:
        """Return what came of a read, held to the last write that was acknowledged.

        A write of unknown outcome may be executed at any time, so what it put is right as well.
        """
        if read.outcome == "unknown" or read.sha256 is None:
            return read  # nothing came
        came = [each for each in self._writes if each.object and each.object.sha256 == read.sha256]
        last = self._last()
        if any(each is last or each.outcome == "unknown" for each in came):
            return replace(read, outcome="ok", error=None)
        if not came:
            return read  # oneshot has found out
        return replace(read, outcome="fail", error=self._why(came[-1], last))

    def _begin(self, what: Object | None) -> Write:
        self._writes.append(Write(len(self._writes) + 1, what))
        return self._writes[-1]

    def _last(self) -> Write | None:
        """Return the last one that was acknowledged."""
        return next((each for each in reversed(self._writes) if each.outcome == "ok"), None)

    def _why(self, came: Write, last: Write | None) -> str:
        if came.outcome == "fail":
            return f"bytes of a write that had failed (number {came.number} to this key)"
        assert last is not None  # `came` was acknowledged
        since = "it was removed since" if last.object is None else f"number {last.number} is there"
        return f"stale: bytes of write number {came.number} to this key, and {since}"
