"""The plan of S3 requests: which, on which keys.

Every request is on keys that no other request disturbs:

- GetObject and HeadObject read objects of their own (``get/``), many instead of one, because
  where a store places an object, and so how far away it is, depends on its key. Each is read
  about once; when objects are large there are fewer (``probes.plan.read_objects``). In a prefilled
  bucket they read the prefilled objects instead, drawn over all of them (``probes.prefilled``).
- PutObject writes a fresh key each time (``put/``).
- RemoveObject removes an object that was made for it (``remove/``).
- With ``one_key``, all of PutObject overwrite one key, and GetObject and HeadObject read it. Each
  write has other bytes, because a store may know bytes that it holds already by their hash, and
  write nothing. Which of them a read must bring is known when it is sent (``probes.one_key``).
- ListObjects lists ``list/``, which holds ``LISTED_OBJECTS`` small objects throughout, and the
  answer must list exactly those. In a prefilled bucket that prefix lies in the middle of the
  prefilled keys: a store may read on behind the prefix before it sees that the prefix has ended,
  and what it finds there is part of what it takes. ListObjectsPage lists the bucket from its
  beginning, as far as the store does in one answer; where more than a page was prefilled, that
  must be a whole page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, ClassVar, Literal, get_args

from wanlat.probes.fewer import Turn
from wanlat.probes.header import Header
from wanlat.probes.plan import (
    Phase,
    Request,
    StepsPlan,
    Wanted,
    body_seed,
    in_steps,
    read_objects,
)
from wanlat.probes.prefilled import Prefilled
from wanlat.probes.protocols.base import Planner
from wanlat.systems.engine.protocols import PROTOCOLS, S3Target

S3Endpoint = Literal[
    "ListBuckets",
    "ListObjects",
    "ListObjectsPage",
    "GetObject",
    "HeadObject",
    "PutObject",
    "RemoveObject",
]

LISTED_OBJECTS = 10
LISTED_OBJECT_BYTES = 1024
PAGE = 1000
"""Keys of one answer to ListObjects, in S3."""
_LIST_PREFIX = "list/"
_ONE_KEY = "one/object"


@dataclass(frozen=True)
class S3Header(Header):
    """The first line of a plan for S3: where to, and as whom."""

    subcommand: ClassVar[str] = "s3"

    host: str
    port: int
    region: str
    access_key: str
    secret_key: str


class S3Planner(Planner[S3Target]):
    """Endpoints of its own, on objects in buckets."""

    name, target, header = "s3", S3Target, S3Header
    endpoints = get_args(S3Endpoint)

    def plan(self, wanted: Wanted) -> StepsPlan:
        """Return ``samples`` requests to each endpoint after ``warmup`` unmeasured ones, a step.

        The bucket need not exist; it must hold no keys of an earlier plan, but may hold
        ``prefilled`` ones. No step writes or removes a key of another one, unless with ``one_key``.
        """
        maker = _Maker(wanted)
        repeats = wanted.steps * (wanted.samples + wanted.warmup)
        prepare = list(maker.prepare(wanted.endpoints, repeats))
        numbers = {name: count() for name in wanted.endpoints}

        def make(phase: Phase, name: S3Endpoint) -> Request:
            return maker.makers[name](phase, next(numbers[name]))

        steps = in_steps(wanted.endpoints, wanted, make)
        return StepsPlan(tuple(prepare), steps, wanted.seed)

    def turns(self, wanted: Wanted) -> list[Turn]:
        """Return the endpoints; where their keys lie is not known."""
        return [(name, "unknown") for name in wanted.endpoints]

    def blank(self, endpoint: str) -> Request:
        """Return the request to an endpoint that lacks key and bytes."""
        does = PROTOCOLS["s3"].objects.does(endpoint)
        carries: dict[str, Any] = {}
        if does in ("write", "read"):
            carries = {"object_bytes": 0, "body_seed": 0}
        elif does == "exists":
            carries = {"object_bytes": 0}
        return Request(0, "measure", endpoint, "", "", **carries)


class _Maker:
    """Makes the requests of one plan, numbering them as it goes."""

    def __init__(self, wanted: Wanted) -> None:
        self.bucket = wanted.bucket
        self.object_bytes = wanted.object_bytes
        self.read_objects = read_objects(wanted.samples, wanted.object_bytes, wanted.steps)
        self._prefilled: list[tuple[str, int]] = []
        self._list_prefix = _LIST_PREFIX
        self._page: int | None = None
        self._seed = wanted.seed
        self._one_key = wanted.one_key
        self._seq = count()
        if wanted.prefilled is not None and wanted.prefilled.objects:
            most = wanted.steps * (wanted.samples + wanted.warmup)
            self._use_prefilled(wanted.prefilled, most)
        self.makers: dict[S3Endpoint, Callable[[Phase, int], Request]] = {
            "ListBuckets": lambda phase, _: Request(next(self._seq), phase, "ListBuckets"),
            "ListObjects": self._list,
            "ListObjectsPage": lambda phase, _: Request(
                next(self._seq), phase, "ListObjectsPage", self.bucket, listed=self._page
            ),
            "GetObject": self._get,
            "HeadObject": self._head,
            "PutObject": self._write,
            "RemoveObject": lambda phase, i: Request(
                next(self._seq), phase, "RemoveObject", self.bucket, f"remove/{i:06}"
            ),
        }

    def _use_prefilled(self, prefilled: Prefilled, most: int) -> None:
        """Have reads be of prefilled objects, each once while there are enough of them, and the
        prefix that is listed lie among them.
        """
        self._list_prefix = f"{prefilled.key(prefilled.objects // 2)}-{_LIST_PREFIX}"
        self._page = PAGE if prefilled.objects >= PAGE else None
        if prefilled.is_read and not self._one_key:
            drawn = islice(prefilled.drawn(), most)
            self._prefilled = [(prefilled.key(i), prefilled.body_seed(i)) for i in drawn]

    def prepare(self, endpoints: Sequence[S3Endpoint], repeats: int) -> Iterator[Request]:
        """Make the bucket and the objects that ``repeats`` requests to each endpoint need."""
        yield Request(next(self._seq), "prepare", "CreateBucket", self.bucket)
        if "ListObjects" in endpoints:
            size = min(self.object_bytes, LISTED_OBJECT_BYTES)
            for i in range(LISTED_OBJECTS):
                yield self._put("prepare", f"{self._list_prefix}{i:06}", size)
        if self._one_key and {"PutObject", "GetObject", "HeadObject"} & set(endpoints):
            yield self._put("prepare", _ONE_KEY, self.object_bytes)
        elif {"GetObject", "HeadObject"} & set(endpoints) and not self._prefilled:
            for i in range(self.read_objects):
                yield self._put("prepare", self._read_key(i), self.object_bytes)
        if "RemoveObject" in endpoints:
            for i in range(repeats):
                yield self._put("prepare", f"remove/{i:06}", self.object_bytes)

    def _read_key(self, i: int) -> str:
        if self._prefilled:
            return self._prefilled[i % len(self._prefilled)][0]
        return _ONE_KEY if self._one_key else f"get/{i % self.read_objects:06}"

    def _read_seed(self, i: int) -> int:
        if self._prefilled:
            return self._prefilled[i % len(self._prefilled)][1]
        return body_seed(self._seed, self._read_key(i))

    def _write(self, phase: Phase, i: int) -> Request:
        if self._one_key:
            return self._put(phase, _ONE_KEY, self.object_bytes, written=f"{_ONE_KEY}/{i:06}")
        return self._put(phase, f"put/{i:06}", self.object_bytes)

    def _put(self, phase: Phase, key: str, size: int, written: str = "") -> Request:
        return Request(
            next(self._seq),
            phase,
            "PutObject",
            self.bucket,
            key,
            object_bytes=size,
            body_seed=body_seed(self._seed, written or key),
        )

    def _get(self, phase: Phase, i: int) -> Request:
        return Request(
            next(self._seq),
            phase,
            "GetObject",
            self.bucket,
            self._read_key(i),
            object_bytes=self.object_bytes,
            body_seed=self._read_seed(i),
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
            prefix=self._list_prefix,
            listed=LISTED_OBJECTS,
        )
