"""Methods of any gRPC service are data: planned like the rest, each request with a fresh key."""

from __future__ import annotations

from collections import Counter
from typing import Any

from wanlat.probes.method_plan import Call, Measured, method_plan
from wanlat.probes.plan import Plan

ADD = Call("shop.Catalogue/Add", {"id": "{key}", "picture": "{body}"})
FIND = Measured("shop.Catalogue/Find", {"id": "{key}"}, "item.picture", prepare=ADD)
COUNT = Measured("shop.Catalogue/Count")


def plan_of(*methods: Measured, **changes: Any) -> Plan:
    arguments: dict[str, Any] = {"samples": 20, "warmup": 3, "object_bytes": 100, "seed": 7}
    return method_plan(methods or (FIND, COUNT), **(arguments | changes))


def test_each_method_is_measured_as_often_as_asked() -> None:
    plan = plan_of()
    names = [FIND.method, COUNT.method]
    assert Counter(r.endpoint for r in plan.measure) == dict.fromkeys(names, 20)
    assert Counter(r.endpoint for r in plan.warmup) == dict.fromkeys(names, 3)
    assert {r.placement for r in plan.measure} == {"unknown"}
    assert plan == plan_of()
    assert [r.endpoint for r in plan.measure] != [r.endpoint for r in plan_of(seed=8).measure]


def test_what_a_method_needs_is_made_for_each_key() -> None:
    plan = plan_of()
    made = {r.key: r for r in plan.prepare}
    assert len(made) == len(plan.prepare) == 23
    assert {r.endpoint for r in plan.prepare} == {ADD.method}
    found = [r for r in (*plan.warmup, *plan.measure) if r.endpoint == FIND.method]
    assert {r.key for r in found} == made.keys(), "each is asked for once"
    for request in found:
        assert request.body_seed == made[request.key].body_seed
        assert request.response_object == "item.picture"


def test_a_request_has_what_its_message_has_a_place_for() -> None:
    nested = Measured("a.B/Deep", {"items": [{"id": "{key}"}]})
    (deep,) = plan_of(nested, samples=1, warmup=0).measure
    assert (deep.key is None, deep.object_bytes) == (False, None)
    (bare,) = plan_of(COUNT, samples=1, warmup=0).measure
    assert (bare.key, bare.object_bytes, bare.body_seed) == (None, None, None)
    sends = Measured("a.B/Send", {"data": "{body}"})
    (sent,) = plan_of(sends, samples=1, warmup=0).measure
    assert (sent.key, sent.object_bytes) == (None, 100)
