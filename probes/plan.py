"""The plan of requests: which, on which keys, in which order.

A plan has three phases. *prepare* makes what the others need and is not measured. *warmup* is
like *measure* but shorter: caches, connections and locks are in their working state after it.
*measure* is shuffled over all endpoints, so that drift cannot pass for a difference between them.

Every request is on keys that no other request disturbs:

- GetObject and HeadObject read objects of their own (``get/``), many instead of one, because
  where a store places an object, and so how far away it is, depends on its key. Each is read
  about once; when objects are large there are fewer (at most ``READ_BYTES`` together).
- PutObject writes a fresh key each time (``put/``).
- RemoveObject removes an object that was made for it (``remove/``).
- ListObjects lists ``list/``, which holds ``listed_objects`` small objects throughout, and the
  answer must list exactly those.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Literal

Phase = Literal["prepare", "warmup", "measure"]
Connection = Literal["keep-alive", "new"]
EndpointName = Literal[
    "ListBuckets",
    "ListObjects",
    "GetObject",
    "HeadObject",
    "PutObject",
    "RemoveObject",
    "CreateBucket",
]

READ_OBJECTS = 100
READ_BYTES = 256 * 1024 * 1024
LISTED_OBJECT_BYTES = 1024
_LIST_PREFIX = "list/"


@dataclass(frozen=True)
class PlanHeader:
    """The plan's first line: where to, as whom, and for how long a request at most."""

    host: str
    port: int
    region: str
    access_key: str
    secret_key: str
    connection: Connection = "keep-alive"
    deadline_ms: int = 30_000

    def line(self) -> bytes:
        """Return the line that oneshot reads."""
        return _line(asdict(self))


@dataclass(frozen=True)
class Request:
    """One request. Fields that its endpoint has no use for are None."""

    seq: int
    phase: Phase
    endpoint: EndpointName
    bucket: str | None = None
    key: str | None = None
    prefix: str | None = None
    object_bytes: int | None = None
    """Length of the object to send, or of the one that must come back."""
    body_seed: int | None = None
    """Its bytes are ``probes.body.body(body_seed, object_bytes)``."""
    listed: int | None = None
    """ListObjects: how many keys must come back."""

    def line(self) -> bytes:
        """Return the line that oneshot reads."""
        return _line({name: value for name, value in asdict(self).items() if value is not None})


@dataclass(frozen=True)
class Plan:
    """All requests of a study of one system, by phase, in the order they are sent."""

    prepare: tuple[Request, ...]
    warmup: tuple[Request, ...]
    measure: tuple[Request, ...]
    seed: int


def endpoint_plan(
    endpoints: Sequence[EndpointName],
    *,
    samples: int,
    warmup: int,
    object_bytes: int,
    seed: int,
    bucket: str,
    listed_objects: int = 10,
) -> Plan:
    """Return a plan of ``samples`` requests to each endpoint after ``warmup`` unmeasured ones.

    The same arguments give the same plan. The bucket need not exist; it must hold no keys of
    an earlier plan. Raises ValueError for an endpoint that cannot be measured.
    """
    maker = _Maker(bucket, object_bytes, seed, listed_objects)
    maker.read_objects = max(1, min(samples, READ_OBJECTS, READ_BYTES // max(object_bytes, 1)))
    unknown = [name for name in endpoints if name not in maker.makers]
    if unknown:
        raise ValueError(f"{unknown[0]} cannot be measured, only {', '.join(maker.makers)}")

    prepare = list(maker.prepare(endpoints, samples + warmup))
    order = random.Random(seed)
    phases: dict[Phase, list[Request]] = {"warmup": [], "measure": []}
    used = dict.fromkeys(endpoints, 0)
    repeats: dict[Phase, int] = {"warmup": warmup, "measure": samples}
    for phase, requests in phases.items():
        turns = [name for name in endpoints for _ in range(repeats[phase])]
        order.shuffle(turns)
        for name in turns:
            requests.append(maker.makers[name](phase, used[name]))
            used[name] += 1
    return Plan(tuple(prepare), tuple(phases["warmup"]), tuple(phases["measure"]), seed)


class _Maker:
    """Makes the requests of one plan, numbering them as it goes."""

    def __init__(self, bucket: str, object_bytes: int, seed: int, listed_objects: int) -> None:
        self.bucket = bucket
        self.object_bytes = object_bytes
        self.listed_objects = listed_objects
        self.read_objects = 1
        self._seed = seed
        self._seq = count()
        self.makers: dict[EndpointName, Callable[[Phase, int], Request]] = {
            "ListBuckets": lambda phase, _: Request(next(self._seq), phase, "ListBuckets"),
            "ListObjects": self._list,
            "GetObject": self._get,
            "HeadObject": self._head,
            "PutObject": lambda phase, i: self._put(phase, f"put/{i:06}", self.object_bytes),
            "RemoveObject": lambda phase, i: Request(
                next(self._seq), phase, "RemoveObject", self.bucket, f"remove/{i:06}"
            ),
        }

    def prepare(self, endpoints: Sequence[EndpointName], repeats: int) -> Iterator[Request]:
        """Make the bucket and the objects that ``repeats`` requests to each endpoint need."""
        yield Request(next(self._seq), "prepare", "CreateBucket", self.bucket)
        if "ListObjects" in endpoints:
            size = min(self.object_bytes, LISTED_OBJECT_BYTES)
            for i in range(self.listed_objects):
                yield self._put("prepare", f"{_LIST_PREFIX}{i:06}", size)
        if "GetObject" in endpoints or "HeadObject" in endpoints:
            for i in range(self.read_objects):
                yield self._put("prepare", self._read_key(i), self.object_bytes)
        if "RemoveObject" in endpoints:
            for i in range(repeats):
                yield self._put("prepare", f"remove/{i:06}", self.object_bytes)

    def _read_key(self, i: int) -> str:
        return f"get/{i % self.read_objects:06}"

    def _body_seed(self, key: str) -> int:
        """Return the seed of the object at ``key``: another one for every key and plan."""
        return random.Random(f"{self._seed}/{key}").getrandbits(53)

    def _put(self, phase: Phase, key: str, size: int) -> Request:
        return Request(
            next(self._seq),
            phase,
            "PutObject",
            self.bucket,
            key,
            object_bytes=size,
            body_seed=self._body_seed(key),
        )

    def _get(self, phase: Phase, i: int) -> Request:
        key = self._read_key(i)
        return Request(
            next(self._seq),
            phase,
            "GetObject",
            self.bucket,
            key,
            object_bytes=self.object_bytes,
            body_seed=self._body_seed(key),
        )

    def _head(self, phase: Phase, i: int) -> Request:
        return Request(
            next(self._seq),
            phase,
            "HeadObject",
            self.bucket,
            self._read_key(i),
            object_bytes=self.object_bytes,
        )

    def _list(self, phase: Phase, _: int) -> Request:
        return Request(
            next(self._seq),
            phase,
            "ListObjects",
            self.bucket,
            prefix=_LIST_PREFIX,
            listed=self.listed_objects,
        )


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
