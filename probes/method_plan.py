"""The plan of requests that a user defines, as data: methods of gRPC, HTTP, a program's operations.

Every request has a fresh random key. Where one needs something to be there (a read, a removal),
its ``prepare`` makes it, and is sent once for each key first; or the objects are put on disk
before anything starts, fewer than there are requests.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, cycle, islice
from typing import Any

from wanlat.probes.plan import (
    KEY_BYTES,
    Phase,
    Request,
    Step,
    StepsPlan,
    Wanted,
    body_seed,
    check_key,
    read_objects,
    shuffled,
)
from wanlat.systems.engine.protocols import Operation
from wanlat.systems.engine.protocols.grpc import BOB_SERVICE


@dataclass(frozen=True)
class Call:
    """A request as it is sent, whatever the protocol.

    ``request``: of gRPC the message as proto3 JSON; over HTTP method, path, headers and body; what
    a program gets. In its texts stand `wanlat.systems.engine.protocols.requests.PLACEHOLDERS`.
    """

    endpoint: str
    """``package.Service/Method``, ``GET /path``, or an operation."""
    request: Mapping[str, Any] = field(default_factory=dict)
    response_object: str | None = None
    """What of the answer must hold the key's object."""
    name: str | None = None
    """What samples call it, where that is not the endpoint."""
    operation: Operation | None = None
    """What it does to the key's object, as far as that is known."""

    @property
    def has_key(self) -> bool:
        """Is the key sent?"""
        return _holds(self.request, "{key}")

    @property
    def has_object(self) -> bool:
        """Is an object sent, or must one come back?"""
        return self.response_object is not None or _holds(self.request, "{body}")

    def request_of(
        self, seq: int, phase: Phase, key: str, object_bytes: int = 0, seed: int = 0
    ) -> Request:
        """Return the request of a key; ``seed`` is that of the object's bytes."""
        if key and self.has_key and self.endpoint.startswith(BOB_SERVICE):
            check_key(self.endpoint, key)
        return Request(
            seq,
            phase,
            self.endpoint,
            key=key if self.has_key else None,
            object_bytes=object_bytes if self.has_object else None,
            body_seed=seed if self.has_object else None,
            request=self.request,
            response_object=self.response_object,
            name=self.name,
            operation=self.operation or ("read" if self.response_object else None),
        )


@dataclass(frozen=True)
class Measured(Call):
    """A request that is to be measured."""

    prepare: Call | None = None
    """What is requested for each key beforehand."""
    placed: bool = False
    """Whether the key's object is put on disk before the start instead."""
    key_bytes: int = KEY_BYTES

    def request_of(
        self, seq: int, phase: Phase, key: str, object_bytes: int = 0, seed: int = 0
    ) -> Request:
        """As `Call.request_of`; of an object that lies on disk its bytes are known, too."""
        made = super().request_of(seq, phase, key, object_bytes, seed)
        if not self.placed:
            return made
        return replace(made, object_bytes=object_bytes, body_seed=seed, placed=True)


def method_steps(wanted: Wanted) -> StepsPlan:
    """Return ``samples`` requests to each method after ``warmup`` unmeasured ones, a step.

    Every request of every step has a key of its own; but what answers with an object is sent for
    ``prefilled`` ones, where there are any. Raises ValueError for a key that Bob does not take.
    """
    methods: Sequence[Measured] = wanted.endpoints
    prefilled, repeats = wanted.prefilled, wanted.samples + wanted.warmup
    there = dict[str, int]()
    if prefilled is not None and prefilled.is_read:
        drawn_of = islice(prefilled.drawn(), wanted.steps * repeats)
        there = {prefilled.key(index): prefilled.body_seed(index) for index in drawn_of}
    files = read_objects(repeats, wanted.object_bytes, wanted.steps)
    keys = list[Iterator[str]]()
    for number, method in enumerate(methods):
        own = _keys(wanted.seed, number, method.key_bytes)
        if there and method.response_object and method.prepare is not None:
            keys.append(cycle(there))
        elif method.placed:
            keys.append(cycle(islice(own, files)))
        else:
            keys.append(own)
    drawn = [
        (step, phase, number, next(keys[number]))
        for step in range(wanted.steps)
        for phase, number in shuffled(range(len(methods)), wanted, step)
    ]
    seq = count()

    def request(phase: Phase, call: Call, key: str) -> Request:
        bytes_of = there[key] if key in there else body_seed(wanted.seed, key)
        return call.request_of(next(seq), phase, key, wanted.object_bytes, bytes_of)

    prepare = [
        request("prepare", made_by, key)
        for _, _, number, key in drawn
        if (made_by := methods[number].prepare) is not None and key not in there
    ]
    made: list[dict[Phase, list[Request]]] = [
        {"warmup": [], "measure": []} for _ in range(wanted.steps)
    ]
    for step, phase, number, key in drawn:
        made[step][phase].append(request(phase, methods[number], key))
    steps = tuple(Step(tuple(phases["warmup"]), tuple(phases["measure"])) for phases in made)
    return StepsPlan(tuple(prepare), steps, wanted.seed)


def _holds(value: Any, placeholder: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(inner, placeholder) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(inner, placeholder) for inner in value)
    return isinstance(value, str) and placeholder in value


def _keys(seed: int, number: int, length: int) -> Iterator[str]:
    """Yield random keys, no two alike."""
    drawn = random.Random(f"{seed}/keys/{number}")
    used: set[bytes] = set()
    while True:
        key = drawn.randbytes(length)
        if key not in used:
            used.add(key)
            yield key.hex()
