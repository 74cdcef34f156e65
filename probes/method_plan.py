"""The plan of requests to gRPC services of the user's own: methods and messages as data.

Every request has a fresh random key. Where a method needs something to be there (a read, a
removal), its ``prepare`` names the method that makes it, which is called once for each key first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from typing import Any

from wanlat.probes.plan import (
    KEY_BYTES,
    Phase,
    Plan,
    Request,
    Step,
    StepsPlan,
    body_seed,
    check_key,
    shuffled,
)
from wanlat.probes.prefilled import Prefilled
from wanlat.systems.engine.protocols import Operation

METHOD = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*/[A-Za-z_]\w*", re.ASCII)
"""``package.Service/Method``."""

PLACEHOLDERS = ("{body}", "{key}", "{seq}", "{now}")
"""What a text in a message can stand for: the object, the key, the request's number, the time."""

BOB_SERVICE = "bob_storage.BobApi/"
"""What the methods begin with that take keys of ``KEY_BYTES`` only."""


@dataclass(frozen=True)
class Call:
    """A unary method, and the message it is sent.

    ``request`` is the message as proto3 JSON, in which a text may be one of ``PLACEHOLDERS``.
    """

    method: str
    request: Mapping[str, Any] = field(default_factory=dict)
    response_object: str | None = None
    """The path of the answer's bytes field that must hold the key's object."""
    name: str | None = None
    """What samples call it, where that is not the method."""
    operation: Operation | None = None
    """What it does to the key's object, as far as that is known."""

    def __post_init__(self) -> None:
        """Refuse what names no method."""
        if METHOD.fullmatch(self.method) is None:
            raise ValueError(f"{self.method!r} is no method, such as `package.Service/Method`")

    @property
    def has_key(self) -> bool:
        """Does the message have the key in it?"""
        return _holds(self.request, "{key}")

    @property
    def has_object(self) -> bool:
        """Is an object sent, or must one come back?"""
        return self.response_object is not None or _holds(self.request, "{body}")

    def asked(
        self, seq: int, phase: Phase, key: str, object_bytes: int = 0, seed: int = 0
    ) -> Request:
        """Return the request of a key; ``seed`` is that of the object's bytes."""
        if key and self.has_key and self.method.startswith(BOB_SERVICE):
            check_key(self.method, key)
        return Request(
            seq,
            phase,
            self.method,
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
    """A method that is to be measured."""

    prepare: Call | None = None
    """What is called for each key beforehand."""
    key_bytes: int = KEY_BYTES


def method_plan(
    methods: Sequence[Measured], *, samples: int, warmup: int, object_bytes: int, seed: int
) -> Plan:
    """Return a plan of ``samples`` requests to each method after ``warmup`` unmeasured ones.

    The same arguments give the same plan. Raises ValueError for a key that Bob does not take.
    """
    return method_steps(
        methods, steps=1, samples=samples, warmup=warmup, object_bytes=object_bytes, seed=seed
    ).as_one()


def method_steps(
    methods: Sequence[Measured],
    *,
    steps: int,
    samples: int,
    warmup: int,
    object_bytes: int,
    seed: int,
    prefilled: Prefilled | None = None,
) -> StepsPlan:
    """Return a plan that does at each of ``steps`` what ``method_plan`` does once.

    Every request of every step has a key of its own; but what answers with an object is asked for
    ``prefilled`` ones, where there are any.
    """
    there = dict[str, int]()
    if prefilled is not None and prefilled.is_read:
        drawn_of = islice(prefilled.drawn(), steps * (samples + warmup))
        there = {prefilled.key(each): prefilled.body_seed(each) for each in drawn_of}
    keys = {
        number: cycle(there)
        if there and each.response_object and each.prepare is not None
        else _keys(seed, number, each.key_bytes)
        for number, each in enumerate(methods)
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
    return bool(value == placeholder)


def _keys(seed: int, number: int, length: int) -> Iterator[str]:
    """Yield random keys, no two alike."""
    drawn = random.Random(f"{seed}/keys/{number}")
    used: set[bytes] = set()
    while True:
        key = drawn.randbytes(length)
        if key not in used:
            used.add(key)
            yield key.hex()
