"""The ledger: every write of a drill, on disk before it is sent, and what came of it.

Each write has two lines. The first is with the kernel before the request is handed to anybody who
could send it, so whatever becomes of the drill, every request that a store can have seen is in it:

    {"state":"invoked","id":0,"op":"put","key":"…","bytes":1024,"body_seed":7,"sha256":"…",
     "client":"survivor","target":"n2","t_ns":…}
    {"id":0,"state":"ok","error":null,"t_ns":…}

``op`` is ``put`` or ``remove``; ``bytes``, ``body_seed`` and ``sha256`` are null of a remove. A
write without a second line is an unknown one, as is one with the ``state``
``unknown``. A put that is tried again is another write of the same key with the same body.
(`wanlat.analysis.figures.drill.verdicts` reads it.)
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from wanlat.bundle.write import Lines
from wanlat.emulator.closing import Closing
from wanlat.probes.body import body
from wanlat.probes.plan import body_seed
from wanlat.probes.records import Outcome

Operation = Literal["put", "remove"]
_NOT_EXECUTED = frozenset({"fail", "not_sent"})


@dataclass(frozen=True, slots=True)
class Object:
    """What is put at a key: ``wanlat.probes.body.body(body_seed, object_bytes)``."""

    key: str
    object_bytes: int
    body_seed: int
    sha256: str


@dataclass(slots=True)
class _State:
    """What is known of an object."""

    object: Object
    owner: str | None
    acknowledged: bool = False
    removes: dict[int, Outcome | None] = field(default_factory=dict)
    """What came of each, by the number of the write; None: not known yet."""
    readers: int = 0


class Ledger(Closing):
    """The ledger that a running drill writes, and what it knows of the objects: which may be read,
    and which removed. Thread-safe.
    """

    def __init__(self, path: Path, seed: int) -> None:
        """Open ``path``; ``seed`` is the drill's, which every body is made from. MachineError."""
        self._lines = Lines(path)
        self._seed = seed
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}
        self._readable: list[str] = []
        self._owned: defaultdict[str, list[str]] = defaultdict(list)
        self._open: dict[int, tuple[Operation, str]] = {}
        self.invoked = 0
        """How many writes were started."""
        self.acknowledged = 0
        """How many objects were put, those that were removed later too."""

    def objects(self, since: int = 0) -> list[Object]:
        """Return everything that anybody began to put: removed, unknown, and failed ones too.

        Without the first ``since`` objects.
        """
        with self._lock:
            return [state.object for state in islice(self._states.values(), since, None)]

    def is_expected(self, key: str) -> bool:
        """Must it be there? It was acknowledged, and no remove of it can have been executed."""
        with self._lock:
            state = self._states[key]
            return state.acknowledged and _NOT_EXECUTED.issuperset(state.removes.values())

    def is_removed(self, key: str) -> bool:
        """Must it be gone? A remove was acknowledged."""
        with self._lock:
            return "ok" in self._states[key].removes.values()

    def describe(self, key: str, object_bytes: int) -> Object:
        """Return what is to be put at a key: the same for a key every time.

        The hash of a large object takes a while, so this is called beforehand.
        """
        seed = body_seed(self._seed, key)
        sha256 = hashlib.sha256(body(seed, object_bytes)).hexdigest()
        return Object(key, object_bytes, seed, sha256)

    def put(self, what: Object, *, client: str, target: str, owner: str | None = None) -> int:
        """Write down that it is about to be put, and return the number of this write.

        ``owner`` may remove it later. Raises MachineError when it cannot be written: then the
        object must not be sent.
        """
        with self._lock:
            if self._states.setdefault(what.key, _State(what, owner)).object != what:
                raise ValueError(f"key {what.key} is taken, by another object")
            return self._invoke("put", what, client, target)

    def remove_one(
        self, owner: str, chance: random.Random, *, client: str, target: str
    ) -> tuple[int, Object] | None:
        """Choose an object of the owner's that is there and not being read, and write down that it
        is about to be removed: the number of this write, and the object. None: there is no such.

        It is read no more, whatever comes of it.
        """
        with self._lock:
            for _ in range(8):  # a few are being read, at most
                state = self._choose(self._owned[owner], chance)
                if state is not None and not state.readers:
                    number = self._invoke("remove", state.object, client, target)
                    state.removes[number] = None
                    return number, state.object
        return None

    def complete(self, number: int, outcome: Outcome, error: str | None = None) -> None:
        """Write down what came of a write."""
        line = {"id": number, "state": outcome, "error": error, "t_ns": time.monotonic_ns()}
        with self._lock:
            operation, key = self._open.pop(number)
            self._lines.append(line)
            state = self._states[key]
            if operation == "remove":
                state.removes[number] = outcome
            elif outcome == "ok" and not state.acknowledged:
                state.acknowledged = True
                self.acknowledged += 1
                self._readable.append(key)
                if state.owner is not None:
                    self._owned[state.owner].append(key)

    def take_to_read(self, chance: random.Random) -> Object | None:
        """Choose an object with an acknowledged put and no remove that was started; none
        will be, until ``done_reading``.
        """
        with self._lock:
            state = self._choose(self._readable, chance)
            if state is None:
                return None
            state.readers += 1
            return state.object

    def done_reading(self, key: str) -> None:
        """Note that it is not being read any more."""
        with self._lock:
            self._states[key].readers -= 1

    def close(self) -> None:
        """Let go of the file. May be called again."""
        self._lines.close()

    def _choose(self, keys: list[str], chance: random.Random) -> _State | None:
        """Draw one of the keys; those that somebody began to remove are dropped on the way."""
        while keys:
            place = chance.randrange(len(keys))
            state = self._states[keys[place]]
            if not state.removes:
                return state
            keys[place] = keys[-1]
            keys.pop()
        return None

    def _invoke(self, operation: Operation, what: Object, client: str, target: str) -> int:
        number, self.invoked = self.invoked, self.invoked + 1
        body = (
            (what.object_bytes, what.body_seed, what.sha256) if operation == "put" else (None,) * 3
        )
        self._lines.append(
            {
                **{"state": "invoked", "id": number, "op": operation, "key": what.key},
                **dict(zip(("bytes", "body_seed", "sha256"), body, strict=True)),
                **{"client": client, "target": target, "t_ns": time.monotonic_ns()},
            }
        )
        self._open[number] = operation, what.key
        return number
