"""A plan measures each endpoint alike, in an order that only the seed decides, on its own keys."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wanlat.probes.plan import Plan, Request
from wanlat.probes.s3_plan import S3Endpoint, s3_plan

S3: list[S3Endpoint] = [
    "ListBuckets",
    "ListObjects",
    "GetObject",
    "PutObject",
    "RemoveObject",
    "HeadObject",
]


def plan_of(**changes: Any) -> Plan:
    arguments: dict[str, Any] = {
        "samples": 20,
        "warmup": 3,
        "object_bytes": 5000,
        "seed": 7,
        "bucket": "b",
    }
    return s3_plan(changes.pop("endpoints", S3), **(arguments | changes))


def on_keys(requests: tuple[Request, ...], endpoint: str) -> list[str | None]:
    return [request.key for request in requests if request.endpoint == endpoint]


def test_each_endpoint_is_measured_as_often_as_asked() -> None:
    plan = plan_of()
    assert Counter(request.endpoint for request in plan.measure) == dict.fromkeys(S3, 20)
    assert Counter(request.endpoint for request in plan.warmup) == dict.fromkeys(S3, 3)
    assert {request.phase for request in plan.measure} == {"measure"}
    assert {request.phase for request in plan.warmup} == {"warmup"}
    assert {request.phase for request in plan.prepare} == {"prepare"}


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    assert plan_of() == plan_of()
    order = [request.endpoint for request in plan_of().measure]
    assert order != [request.endpoint for request in plan_of(seed=8).measure]


@given(
    samples=st.integers(1, 30),
    warmup=st.integers(0, 5),
    object_bytes=st.integers(0, 2**20),
    seed=st.integers(0, 2**63 - 1),
    endpoints=st.lists(st.sampled_from(S3), min_size=1, unique=True),
)
def test_no_request_disturbs_another(
    samples: int, warmup: int, object_bytes: int, seed: int, endpoints: list[S3Endpoint]
) -> None:
    plan = s3_plan(
        endpoints,
        samples=samples,
        warmup=warmup,
        object_bytes=object_bytes,
        seed=seed,
        bucket="b",
    )
    later = (*plan.warmup, *plan.measure)
    made = {r.key: r for r in plan.prepare if r.endpoint == "PutObject"}
    put, removed = on_keys(later, "PutObject"), on_keys(later, "RemoveObject")
    assert len(set(put)) == len(put), "a PutObject that overwrites is another operation"
    assert made.keys().isdisjoint(put)
    assert len(set(removed)) == len(removed), "an object is removed once"
    assert made.keys() >= set(removed)
    for request in later:
        if request.endpoint in ("GetObject", "HeadObject"):
            assert request.key not in removed
            assert request.object_bytes == made[request.key].object_bytes == object_bytes
        if request.endpoint == "GetObject":
            assert request.body_seed == made[request.key].body_seed
        if request.endpoint == "ListObjects":
            prefix = request.prefix or ""
            assert request.listed == sum((key or "").startswith(prefix) for key in made)
            assert not any((key or "").startswith(prefix) for key in (*put, *removed))
    seeds = [r.body_seed for r in (*plan.prepare, *later) if r.endpoint == "PutObject"]
    assert len(set(seeds)) == len(seeds), "no two objects are alike"
