"""The objects of a drill as its clients know them: which may be read, and which removed."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from wanlat.probes.records import Outcome

Operation = Literal["put", "remove"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Object:
    """What is put at a key: ``wanlat.probes.body.body(body_seed, object_bytes)``."""

    key: str
    object_bytes: int
    body_seed: int
    sha256: str


@dataclass(slots=True)
class _State:
    object: Object
    owner: str | None
    acknowledged: bool = False
    removes: list[Outcome | None] = field(default_factory=list)
    """What came of each; None: not known yet."""
    readers: int = 0


class Objects:
    """Every object that anybody began to put. Not thread-safe: the ledger has the lock."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self._readable = _Bag[str]()
        self._owned: defaultdict[str, _Bag[str]] = defaultdict(_Bag)
        self.acknowledged = 0
        """How many puts were acknowledged, those of objects that were removed later too."""

    def all(self) -> list[Object]:
        """Return them in the order in which they were first put."""
        return [state.object for state in self._states.values()]

    def is_expected(self, key: str) -> bool:
        """Must it be there? It was acknowledged, and no remove of it can have been executed."""
        state = self._states[key]
        return state.acknowledged and all(outcome == "fail" for outcome in state.removes)

    def putting(self, put: Object, owner: str | None) -> None:
        """Note that it is about to be put, for the first time or again."""
        known = self._states.setdefault(put.key, _State(put, owner))
        if known.object != put:
            raise ValueError(f"key {put.key} is taken, by another object")

    def was_put(self, key: str, outcome: Outcome) -> None:
        """Note what came of it."""
        state = self._states[key]
        if outcome != "ok" or state.acknowledged:
            return
        state.acknowledged = True
        self.acknowledged += 1
        if not state.removes:
            self._readable.add(key)
            if state.owner is not None:
                self._owned[state.owner].add(key)

    def take_to_read(self, chance: random.Random) -> Object | None:
        """Choose one that is there; nobody removes it until ``done_reading``."""
        if not self._readable:
            return None
        state = self._states[self._readable.choose(chance)]
        state.readers += 1
        return state.object

    def done_reading(self, key: str) -> None:
        """Say that it is not being read any more."""
        self._states[key].readers -= 1

    def choose_to_remove(self, owner: str, chance: random.Random) -> Object | None:
        """Choose one of the owner's that nobody reads just now; None where there is none."""
        owned = self._owned[owner]
        for _ in range(min(len(owned), 8)):  # a few are being read, at most
            state = self._states[owned.choose(chance)]
            if not state.readers:
                return state.object
        return None

    def removing(self, key: str) -> int:
        """Note that it is about to be removed, so that nobody reads it any more; return which
        remove of this key it is.
        """
        state = self._states[key]
        self._readable.discard(key)
        if state.owner is not None:
            self._owned[state.owner].discard(key)
        state.removes.append(None)
        return len(state.removes) - 1

    def was_removed(self, key: str, remove: int, outcome: Outcome) -> None:
        """Note what came of it. It is read no more, whatever that is."""
        self._states[key].removes[remove] = outcome


class _Bag(Generic[T]):
    """A set that an element can be drawn from in constant time."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._places: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def choose(self, chance: random.Random) -> T:
        return self._items[chance.randrange(len(self._items))]

    def add(self, item: T) -> None:
        if item not in self._places:
            self._places[item] = len(self._items)
            self._items.append(item)

    def discard(self, item: T) -> None:
        place = self._places.pop(item, None)
        if place is None:
            return
        last = self._items.pop()
        if place < len(self._items):
            self._items[place] = last
            self._places[last] = place
