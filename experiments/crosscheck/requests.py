"""Who sends which request, and when: shuffled rounds, in each of which every lane has its turns."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import cast

from wanlat.probes.bob_plan import BobEndpoint, bob_plan
from wanlat.probes.plan import Placement, Plan, Request
from wanlat.probes.s3_plan import S3Endpoint, s3_plan
from wanlat.systems.base import Api, Cluster

BUCKET = "wanlat"


def plan(
    cluster: Cluster,
    api: Api,
    endpoints: Sequence[str],
    *,
    asked: str,
    samples: int,
    warmup: int,
    object_bytes: int,
    seed: int,
) -> Plan:
    """Return as many requests of each endpoint as all lanes together send.

    Of Bob's, those alone whose key the node that is asked holds, where that is known of some:
    the others take another time, and medians over both would compare nothing.
    """
    if api == "s3":
        return s3_plan(
            cast(Sequence[S3Endpoint], endpoints),
            samples=samples,
            warmup=warmup,
            object_bytes=object_bytes,
            seed=seed,
            bucket=BUCKET,
        )
    made = bob_plan(
        cast(Sequence[BobEndpoint], endpoints),
        samples=samples,
        warmup=warmup,
        object_bytes=object_bytes,
        seed=seed,
        target=asked,
        replicas=cluster.replicas,
    )
    everything = (*made.prepare, *made.warmup, *made.measure)
    placements = {request.placement for request in everything if request.key}
    unwanted: Placement | None = "remote" if "local" in placements else None

    def wanted(requests: Sequence[Request]) -> tuple[Request, ...]:
        return tuple(request for request in requests if request.placement != unwanted)

    return Plan(wanted(made.prepare), wanted(made.warmup), wanted(made.measure), seed)


def rounds(
    requests: Sequence[Request], lanes: int, order: random.Random
) -> Iterator[tuple[int, Request]]:
    """Yield (lane, request): every lane gets each endpoint once a round, in random order."""
    waiting: defaultdict[str, deque[Request]] = defaultdict(deque)
    for request in requests:
        waiting[request.endpoint].append(request)
    while all(len(each) >= lanes for each in waiting.values()):
        turns = [(lane, endpoint) for lane in range(lanes) for endpoint in waiting]
        order.shuffle(turns)
        for lane, endpoint in turns:
            yield lane, waiting[endpoint].popleft()
