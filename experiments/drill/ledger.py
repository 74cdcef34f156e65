"""The ledger: every write of a drill, on disk before it is sent, and what came of it.

Each write has two lines. The first is with the kernel before the request is handed to anybody who
could send it, so whatever becomes of the drill, every request that a store can have seen is in it:

    {"state":"invoked","id":0,"op":"put","key":"…","bytes":1024,"body_seed":7,"sha256":"…",
     "client":"survivor","target":"n2","t_ns":…}
    {"id":0,"state":"ok","error":null,"t_ns":…}

``op`` is ``put`` or ``remove``; ``bytes``, ``body_seed`` and ``sha256`` are null of a remove. A
write without a second line is one of which nobody knows, as is one whose ``state`` is
``unknown``. A put that is tried again is another write of the same key with the same body.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from wanlat.bundle.write import Lines
from wanlat.experiments.drill.objects import Object, Objects, Operation
from wanlat.probes.body import body
from wanlat.probes.plan import body_seed
from wanlat.probes.process import Closing
from wanlat.probes.records import Outcome
from wanlat.topologies.errors import UserError


class Ledger(Closing):
    """The ledger that a running drill writes, and what it knows of the objects. Thread-safe."""

    def __init__(self, path: Path, seed: int) -> None:
        """Open ``path``; ``seed`` is the drill's, which every body is made from. MachineError."""
        self._lines = Lines(path)
        self._seed = seed
        self._lock = threading.Lock()
        self._objects = Objects()
        self._open: dict[int, tuple[Operation, str, int]] = {}
        self._next_id = 0

    @property
    def acknowledged(self) -> int:
        """How many puts were acknowledged."""
        return self._objects.acknowledged

    @property
    def invoked(self) -> int:
        """How many writes were begun."""
        return self._next_id

    def objects(self) -> list[Object]:
        """Return everything that anybody began to put: removed, unknown, and failed ones too."""
        with self._lock:
            return self._objects.all()

    def is_expected(self, key: str) -> bool:
        """Must it be there? It was acknowledged, and no remove of it can have been executed."""
        with self._lock:
            return self._objects.is_expected(key)

    def describe(self, key: str, object_bytes: int) -> Object:
        """Return what is to be put at a key: the same for a key every time.

        The hash of a large object takes a while, so ask beforehand.
        """
        seed = body_seed(self._seed, key)
        sha256 = hashlib.sha256(body(seed, object_bytes)).hexdigest()
        return Object(key, object_bytes, seed, sha256)

    def put(self, put: Object, *, client: str, target: str, owner: str | None = None) -> int:
        """Write down that it is about to be put, and return the number of this write.

        ``owner`` may remove it later. Raises MachineError when it cannot be written: then the
        object must not be sent.
        """
        with self._lock:
            self._objects.putting(put, owner)
            return self._invoke("put", put, 0, client, target)

    def remove_one(
        self, owner: str, chance: random.Random, *, client: str, target: str
    ) -> tuple[int, Object] | None:
        """Choose an object of the owner's that is there and not being read, and write down that it
        is about to be removed: the number of this write, and the object. None: there is no such.
        """
        with self._lock:
            chosen = self._objects.choose_to_remove(owner, chance)
            if chosen is None:
                return None
            remove = self._objects.removing(chosen.key)
            return self._invoke("remove", chosen, remove, client, target), chosen

    def complete(self, number: int, outcome: Outcome, error: str | None = None) -> None:
        """Write down what came of a write."""
        line = {"id": number, "state": outcome, "error": error, "t_ns": time.monotonic_ns()}
        with self._lock:
            operation, key, remove = self._open.pop(number)
            self._lines.append(line)
            if operation == "put":
                self._objects.was_put(key, outcome)
            else:
                self._objects.was_removed(key, remove, outcome)

    def take_to_read(self, chance: random.Random) -> Object | None:
        """Choose an object whose put was acknowledged and that nobody began to remove; nobody
        will, until ``done_reading``.
        """
        with self._lock:
            return self._objects.take_to_read(chance)

    def done_reading(self, key: str) -> None:
        """Say that it is not being read any more."""
        with self._lock:
            self._objects.done_reading(key)

    def close(self) -> None:
        """Let go of the file. May be called again."""
        self._lines.close()

    def _invoke(
        self, operation: Operation, what: Object, remove: int, client: str, target: str
    ) -> int:
        number, self._next_id = self._next_id, self._next_id + 1
        puts = operation == "put"
        self._lines.append(
            {
                "state": "invoked",
                "id": number,
                "op": operation,
                "key": what.key,
                "bytes": what.object_bytes if puts else None,
                "body_seed": what.body_seed if puts else None,
                "sha256": what.sha256 if puts else None,
                "client": client,
                "target": target,
                "t_ns": time.monotonic_ns(),
            }
        )
        self._open[number] = operation, what.key, remove
        return number


@dataclass(slots=True)
class Write:
    """One write of a ledger."""

    id: int
    op: Operation
    key: str
    bytes: int | None
    body_seed: int | None
    sha256: str | None
    client: str
    target: str
    invoked_ns: int
    state: Outcome | None = None
    """None: the ledger does not say, so nobody knows."""
    error: str | None = None
    completed_ns: int | None = None


@dataclass(frozen=True)
class LedgerReader:
    """A ledger that was written, however its drill ended."""

    writes: tuple[Write, ...]
    """In the order in which they were invoked."""
    cut: bool
    """The last line is not whole: the drill ended while it was written, so nothing of it was
    sent, or nobody was told of it."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read it. Raises UserError when it is none."""
        try:
            *lines, last = path.read_bytes().split(b"\n")
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}.") from error
        writes: dict[int, Write] = {}
        for number, line in enumerate(lines, 1):
            try:
                _add(writes, json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                where = f"{path}, line {number}"
                raise UserError(f"{where}, is no line of a ledger: {error!r}.") from error
        return cls(tuple(writes.values()), cut=bool(last))


def _add(writes: dict[int, Write], line: dict[str, Any]) -> None:
    if line["state"] != "invoked":
        write = writes[line["id"]]
        write.state, write.error, write.completed_ns = line["state"], line["error"], line["t_ns"]
        return
    fields = ("id", "op", "key", "bytes", "body_seed", "sha256", "client", "target")
    made = Write(**{name: line[name] for name in fields}, invoked_ns=line["t_ns"])
    writes[made.id] = made
