"""The plan of requests that a user defines, as data: methods of gRPC, HTTP, a program's operations.

Every request has a fresh random key. Where one needs something to be there (a read, a removal),
its ``prepare`` says what makes it, which is asked once for each key first; or the objects are put
on disk before anything starts, fewer than there are requests.
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
    body_seed,
    check_key,
    read_objects,
    shuffled,
)
from wanlat.probes.prefilled import Prefilled
from wanlat.systems.engine.protocols import Operation
from wanlat.systems.engine.protocols.grpc import BOB_SERVICE


@dataclass(frozen=True)
class Call:
    """A request as it is sent, whatever the protocol.

    ``request``: of gRPC the message as proto3 JSON; over HTTP method, path, headers and body; what
    a program is told. In its texts stand `wanlat.systems.engine.protocols.requests.PLACEHOLDERS`.
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
        """Is the key told?"""
        return _holds(self.request, "{key}")

    @property
    def has_object(self) -> bool:
        """Is an object sent, or must one come back?"""
        return self.response_object is not None or _holds(self.request, "{body}")

    def asked(
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
    """What is asked for each key beforehand."""
    placed: bool = False
    """Whether the key's object is put on disk before the start instead."""
    key_bytes: int = KEY_BYTES

    def asked(
        self, seq: int, phase: Phase, key: str, object_bytes: int = 0, seed: int = 0
    ) -> Request:
        """As `Call.asked`; of an object that lies on disk its bytes are known, too."""
        made = super().asked(seq, phase, key, object_bytes, seed)
        if not self.placed:
            return made
        return replace(made, object_bytes=object_bytes, body_seed=seed, placed=True)


def method_steps(
    methods: Sequence[Measured],
    *,
    steps: int = 1,
    samples: int,
    warmup: int,
    object_bytes: int,
    seed: int,
    prefilled: Prefilled | None = None,
) -> StepsPlan:
    """Return a plan of ``samples`` requests to each method after ``warmup`` unmeasured ones, at
    each of ``steps``.

    The same arguments give the same plan. Every request of every step has a key of its own; but
    what answers with an object is asked for ``prefilled`` ones, where there are any. Raises
    ValueError for a key that Bob does not take.
    """
    there = dict[str, int]()
    if prefilled is not None and prefilled.is_read:
        drawn_of = islice(prefilled.drawn(), steps * (samples + warmup))
        there = {prefilled.key(each): prefilled.body_seed(each) for each in drawn_of}
    files = read_objects(samples + warmup, object_bytes, steps)
    keys = {
        number: cycle(there)
        if there and each.response_object and each.prepare is not None
        else cycle(islice(drawn, files))
        if each.placed
        else drawn
        for number, each in enumerate(methods)
        for drawn in (_keys(seed, number, each.key_bytes),)
    }
    drawn = [
        (step, phase, number, next(keys[number]))
        for step in range(steps)
        for phase, number in shuffled(
            range(len(methods)), warmup=warmup, samples=samples, seed=seed, step=step
        )
    ]
    seq = count()

    def request(phase: Phase, call: Call, key: str) -> Request:
        bytes_of = there[key] if key in there else body_seed(seed, key)
        return call.asked(next(seq), phase, key, object_bytes, bytes_of)

    prepare = [
        request("prepare", made_by, key)
        for _, _, number, key in drawn
        if (made_by := methods[number].prepare) is not None and key not in there
    ]
    phases: list[dict[Phase, list[Request]]] = [{"warmup": [], "measure": []} for _ in range(steps)]
    for step, phase, number, key in drawn:
        phases[step][phase].append(request(phase, methods[number], key))
    made = [Step(tuple(each["warmup"]), tuple(each["measure"])) for each in phases]
    return StepsPlan(tuple(prepare), tuple(made), seed)


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
