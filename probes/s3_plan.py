"""The plan of S3 requests: which, on which keys.

Every request is on keys that no other request disturbs:

- GetObject and HeadObject read objects of their own (``get/``), many instead of one, because
  where a store places an object, and so how far away it is, depends on its key. Each is read
  about once; when objects are large there are fewer (``probes.plan.read_objects``).
- PutObject writes a fresh key each time (``put/``).
- RemoveObject removes an object that was made for it (``remove/``).
- ListObjects lists ``list/``, which holds ``listed_objects`` small objects throughout, and the
  answer must list exactly those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Literal

from probes.plan import (
    Phase,
    Plan,
    Request,
    Visit,
    VisitsPlan,
    body_seed,
    read_objects,
    shuffled,
)

S3Endpoint = Literal[
    "ListBuckets", "ListObjects", "GetObject", "HeadObject", "PutObject", "RemoveObject"
]

LISTED_OBJECT_BYTES = 1024
_LIST_PREFIX = "list/"


def s3_plan(
    endpoints: Sequence[S3Endpoint],
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
    return s3_visits(
        endpoints,
        visits=1,
        samples=samples,
        warmup=warmup,
        object_bytes=object_bytes,
        seed=seed,
        bucket=bucket,
        listed_objects=listed_objects,
    ).as_one()


def s3_visits(
    endpoints: Sequence[S3Endpoint],
    *,
    visits: int,
    samples: int,
    warmup: int,
    object_bytes: int,
    seed: int,
    bucket: str,
    listed_objects: int = 10,
) -> VisitsPlan:
    """Return a plan that does at each of ``visits`` what ``s3_plan`` does once.

    No visit writes or removes a key of another one.
    """
    maker = _Maker(bucket, object_bytes, seed, listed_objects)
    maker.read_objects = read_objects(samples, object_bytes, visits)
    unknown = [name for name in endpoints if name not in maker.makers]
    if unknown:
        raise ValueError(f"{unknown[0]} cannot be measured, only {', '.join(maker.makers)}")

    prepare = list(maker.prepare(endpoints, visits * (samples + warmup)))
    made: list[Visit] = []
    used = dict.fromkeys(endpoints, 0)
    for visit in range(visits):
        phases: dict[Phase, list[Request]] = {"warmup": [], "measure": []}
        for phase, name in shuffled(
            endpoints, warmup=warmup, samples=samples, seed=seed, visit=visit
        ):
            phases[phase].append(maker.makers[name](phase, used[name]))
            used[name] += 1
        made.append(Visit(tuple(phases["warmup"]), tuple(phases["measure"])))
    return VisitsPlan(tuple(prepare), tuple(made), seed)


class _Maker:
    """Makes the requests of one plan, numbering them as it goes."""

    def __init__(self, bucket: str, object_bytes: int, seed: int, listed_objects: int) -> None:
        self.bucket = bucket
        self.object_bytes = object_bytes
        self.listed_objects = listed_objects
        self.read_objects = 1
        self._seed = seed
        self._seq = count()
        self.makers: dict[S3Endpoint, Callable[[Phase, int], Request]] = {
            "ListBuckets": lambda phase, _: Request(next(self._seq), phase, "ListBuckets"),
            "ListObjects": self._list,
            "GetObject": self._get,
            "HeadObject": self._head,
            "PutObject": lambda phase, i: self._put(phase, f"put/{i:06}", self.object_bytes),
            "RemoveObject": lambda phase, i: Request(
                next(self._seq), phase, "RemoveObject", self.bucket, f"remove/{i:06}"
            ),
        }

    def prepare(self, endpoints: Sequence[S3Endpoint], repeats: int) -> Iterator[Request]:
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

    def _put(self, phase: Phase, key: str, size: int) -> Request:
        return Request(
            next(self._seq),
            phase,
            "PutObject",
            self.bucket,
            key,
            object_bytes=size,
            body_seed=body_seed(self._seed, key),
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
            body_seed=body_seed(self._seed, key),
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
