"""Is what was prefilled there? A sample of it is read back, and listings are counted."""

from __future__ import annotations

import random
import re
from html import unescape
from typing import Protocol

from wanlat.experiments.asked import Asked
from wanlat.experiments.prefill.model import PrefillSpec
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.load import body_seed_of, key_of
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Spawn
from wanlat.systems.ask import NoAnswer
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed

READ_BACK = 100
"""Objects. Where one in a hundred were missing, the sample would show it in 63 of 100 prefills;
where one in twenty were, in 99."""
READ_BACK_BYTES = 256 * 1024 * 1024
"""Fewer are read where they are large."""

_KEYS = re.compile(rb"<Key>fill-[0-9]+<")
_NEXT = re.compile(rb"<NextContinuationToken>([^<]*)</NextContinuationToken>")
_PAGE_S = 60.0


class Tell(Protocol):
    """Gets what is being done, and how much of it is."""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = "", /
    ) -> None:
        """Tell it."""


def sampled(spec: PrefillSpec, object_bytes: int, seed: int) -> list[tuple[str, int]]:
    """Return the objects to read back: the first, the last, and between them evenly at random."""
    total = spec.total
    wanted = min(total, READ_BACK, max(2, READ_BACK_BYTES // max(object_bytes, 1)))
    if wanted < 3:
        turns = [0, total - 1][:wanted]
    else:
        drawn = random.Random(f"{seed}/read back").sample(range(1, total - 1), wanted - 2)
        turns = sorted([0, *drawn, total - 1])
    names = spec.bucket_names
    return [(names[turn % len(names)], turn // len(names)) for turn in turns]


def verify(
    asked: Asked,
    spec: PrefillSpec,
    object_bytes: int,
    spawn: Spawn,
    header: Header,
    cluster: Cluster,
    tell: Tell,
) -> tuple[int, int | None]:
    """Return how many objects were read back, and how many the listings have (None: no listing).

    Raises RunFailed when one is not there or not what was written, or the listings have another
    number of objects than were written.
    """
    requests = [
        _reading(number, asked, bucket, index, object_bytes)
        for number, (bucket, index) in enumerate(sampled(spec, object_bytes, asked.seed))
    ]
    try:
        prepare(spawn, header, requests, lambda *_: None)
    except ProbeFailed as error:
        raise RunFailed(
            f"{cluster.system}: what was prefilled and acknowledged could not be read back: {error}"
        ) from error
    if asked.api != "s3":
        return len(requests), None
    counted = 0
    for bucket in spec.bucket_names:
        found = _count(cluster, asked.target, bucket, counted, spec.total, tell)
        if found != spec.objects:
            raise RunFailed(
                f"{cluster.system}: bucket {bucket} was filled with {spec.objects:,} objects, all "
                f"acknowledged, and its listing has {found:,}."
            )
        counted += found
    return len(requests), counted


def _reading(number: int, asked: Asked, bucket: str, index: int, object_bytes: int) -> Request:
    s3 = asked.api == "s3"
    return Request(
        number,
        "prepare",
        "GetObject" if s3 else "Get",
        bucket if s3 else None,
        key_of(asked.seed, bucket, index, "s3" if s3 else "bob"),
        object_bytes=object_bytes,
        body_seed=body_seed_of(asked.seed, bucket, index),
    )


def _count(cluster: Cluster, node: str, bucket: str, before: int, total: int, tell: Tell) -> int:
    """Return how many prefilled objects a bucket's listing has, page by page."""
    found = 0
    query = {"list-type": "2", "prefix": "fill-"}
    while True:
        try:
            answer = cluster.ask_s3(node, f"/{bucket}", _PAGE_S, query=query)
        except NoAnswer as silence:
            raise RunFailed(f"{cluster.system}: ListObjects of {bucket}: {silence}") from silence
        if not answer.ok:
            raise RunFailed(f"{cluster.system}: ListObjects of {bucket}: {answer.brief()}")
        found += len(_KEYS.findall(answer.body))
        tell("counting the prefill", before + found, total)
        following = _NEXT.search(answer.body)
        if following is None:
            return found
        query["continuation-token"] = unescape(following[1].decode())
