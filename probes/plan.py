"""What all plans of requests share: the request, the phases, the order.

A plan has three phases. *prepare* makes what the others need and is not measured. *warmup* is
like *measure* but shorter: caches, connections and locks are in their working state after it.
*measure* is shuffled over all endpoints, so that drift cannot pass for a difference between them.

A plan of steps warms up and measures several times: once for each state that the network is put
into. All of them are prepared beforehand, and none requests what another one used up.

What a plan requests is in a module of its own for each protocol, in `wanlat.probes.protocols`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from wanlat.probes.header import as_line
from wanlat.probes.prefilled import Prefilled
from wanlat.systems.engine.protocols import Operation, does

Phase = Literal["prepare", "warmup", "measure"]
Placement = Literal["local", "remote", "unknown"]
"""Does the target node hold a replica of the key? ``unknown``: that is not known, or the
request has no key."""

READ_OBJECTS = 100
READ_BYTES = 256 * 1024 * 1024
KEY_BYTES = 8
"""Bob's keys have this length. A ``bobd`` that gets another aborts, so none is ever sent one."""
BOB_KEYED = ("Put", "Get", "Exist", "Delete")
"""Bob's endpoints that have a key."""

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One request. Fields that its endpoint has no use for are None."""

    seq: int
    phase: Phase
    endpoint: str
    """S3's or Bob's name, ``package.Service/Method``, ``GET /path``, or a program's operation."""
    bucket: str | None = None
    key: str | None = None
    """S3: text. Elsewhere the key's bytes, in order, as hex digits."""
    prefix: str | None = None
    object_bytes: int | None = None
    """Length of the object to send, or of the one that must come back."""
    body_seed: int | None = None
    """Its bytes are ``wanlat.probes.body.body(body_seed, object_bytes)``."""
    listed: int | None = None
    """ListObjects: how many keys must come back."""
    exists: bool | None = None
    """Exist: the answer that is right."""
    request: Mapping[str, Any] | None = None
    """What is sent, with ``{body}``, ``{key}``, ``{seq}`` and ``{now}`` where these are to be put.
    Of ``package.Service/Method`` the message as proto3 JSON; over HTTP method, path, headers, body;
    what a program gets."""
    response_object: str | None = None
    """What of the answer must hold the object: of a gRPC message the path of a field."""
    deadline_ms: int | None = None
    """The time that it has, where that is not the header's."""
    placement: Placement = "unknown"
    """For who reads the sample: oneshot does not get it."""
    name: str | None = None
    """What samples call it, where that is not the endpoint. oneshot does not get it."""
    operation: Operation | None = None
    """What a defined request does to the object at the key. oneshot does not get it."""
    placed: bool = False
    """Whether the key's object was put on disk before the start. oneshot does not get it."""

    def __post_init__(self) -> None:
        """Refuse a key that would end the server's process."""
        if self.endpoint in BOB_KEYED:
            check_key(self.endpoint, self.key)

    @property
    def called(self) -> str:
        """What samples call its endpoint."""
        return self.name or self.endpoint

    @property
    def does(self) -> Operation | None:
        """What it does to an object; None: nothing, or that is not known."""
        return self.operation or does(self.endpoint)

    def line(self) -> bytes:
        """Return the line that oneshot reads."""
        sent = ((name, getattr(self, name)) for name in _SENT)
        return as_line({name: value for name, value in sent if value is not None})


_OURS = ("placement", "name", "operation", "placed")
_SENT = tuple(field.name for field in fields(Request) if field.name not in _OURS)


Replicas = Callable[[bytes], Sequence[str] | None]
"""The nodes that hold a key; None where that is not known."""


@dataclass(frozen=True)
class Wanted:
    """What is to be measured of one system, whatever the protocol."""

    endpoints: Sequence[Any]
    """Names of the protocol's own endpoints; of others `wanlat.probes.method_plan.Measured`."""
    samples: int
    warmup: int
    object_bytes: int
    seed: int
    target: str
    """The target node."""
    replicas: Replicas
    bucket: str
    steps: int = 1
    one_key: bool = False
    prefilled: Prefilled | None = None
    """What is there already, if anything."""


@dataclass(frozen=True)
class Plan:
    """All requests of a study of one system, by phase, in the order they are sent."""

    prepare: tuple[Request, ...]
    warmup: tuple[Request, ...]
    measure: tuple[Request, ...]
    seed: int


@dataclass(frozen=True)
class Step:
    """What is sent during one step: first to warm up, then to measure."""

    warmup: tuple[Request, ...]
    measure: tuple[Request, ...]


@dataclass(frozen=True)
class StepsPlan:
    """All requests of a study of one system that are taken in several states of the network."""

    prepare: tuple[Request, ...]
    """For all steps."""
    steps: tuple[Step, ...]
    seed: int

    def as_one(self) -> Plan:
        """Return a plan of one step as what it is. Raises ValueError when there are others."""
        (only,) = self.steps
        return Plan(self.prepare, only.warmup, only.measure, self.seed)


def check_key(endpoint: str, key: str | None) -> None:
    """Raise ValueError unless ``key`` is the hex digits of one of Bob's keys."""
    try:
        length = len(bytes.fromhex(key or ""))
    except ValueError:
        length = -1
    if key is None or length != KEY_BYTES or len(key) != 2 * KEY_BYTES:
        raise ValueError(
            f"{endpoint}: a key is {KEY_BYTES} bytes, written as {2 * KEY_BYTES} hex digits, "
            f"not {key!r}; another length would end the server's process"
        )


def shuffled(turns: Sequence[T], wanted: Wanted, step: int) -> Iterator[tuple[Phase, T]]:
    """Yield every turn ``warmup`` times in random order, then ``samples`` times in another.

    The orders of each step are other ones.
    """
    order = random.Random(wanted.seed if step == 0 else f"{wanted.seed}/visits/{step}")
    repeats: dict[Phase, int] = {"warmup": wanted.warmup, "measure": wanted.samples}
    for phase, times in repeats.items():
        phase_turns = [turn for turn in turns for _ in range(times)]
        order.shuffle(phase_turns)
        for turn in phase_turns:
            yield phase, turn


def in_steps(
    turns: Sequence[T], wanted: Wanted, make: Callable[[Phase, T], Request]
) -> tuple[Step, ...]:
    """Return what is sent at each step: of every turn ``warmup`` and ``samples`` requests."""
    steps = []
    for step in range(wanted.steps):
        phases: dict[Phase, list[Request]] = {"warmup": [], "measure": []}
        for phase, turn in shuffled(turns, wanted, step):
            phases[phase].append(make(phase, turn))
        steps.append(Step(tuple(phases["warmup"]), tuple(phases["measure"])))
    return tuple(steps)


def body_seed(plan_seed: int, key: str) -> int:
    """Return the seed of the object at ``key``: another one for every key and plan."""
    return random.Random(f"{plan_seed}/{key}").getrandbits(53)


def read_objects(samples: int, object_bytes: int, steps: int = 1) -> int:
    """Return how many objects to read from: one a sample, but fewer when there are many or large.

    At most ``READ_OBJECTS`` a step, and together at most ``READ_BYTES``. ``samples`` are those of
    one step.
    """
    wanted = min(samples, READ_OBJECTS) * steps
    return max(1, min(wanted, READ_BYTES // max(object_bytes, 1)))
