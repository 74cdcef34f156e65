"""What a study comes to for each system: its endpoints, its plan, and what cannot be asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from wanlat.experiments.config.study import Study
from wanlat.experiments.request_plan import RequestPlan, plan_requests
from wanlat.systems.base import Api
from wanlat.topologies.errors import UserError

EVERY = [
    *("ListBuckets", "GetObject", "Put", "Get", "Ping"),
    *("shop.Catalogue/Count", {"method": "shop.Catalogue/Find", "request": {"id": "{key}"}}),
]


def n1_holds_even_keys(key: bytes) -> tuple[str, ...]:
    return ("n1",) if key[0] % 2 == 0 else ("n2",)


def asked(api: Api, endpoints: list[Any] | None = None, **fields: Any) -> RequestPlan:
    study = Study.model_validate(
        {"name": "s", "topology": "t", "samples": 10, "endpoints": endpoints or EVERY, **fields}
    )
    return plan_requests(study, "store", api, target="n1", replicas=n1_holds_even_keys, seed=1)


@pytest.mark.parametrize(
    ("api", "names"),
    [
        ("s3", ["ListBuckets", "GetObject"]),
        ("bob", ["Put", "Get", "Ping"]),
        ("grpc", ["shop.Catalogue/Count", "shop.Catalogue/Find"]),
    ],
)
def test_a_system_is_asked_for_what_its_api_has(api: Api, names: list[str]) -> None:
    assert asked(api).names == names
    assert {request.endpoint for request in asked(api).plan().measure} == set(names)


@pytest.mark.parametrize(("api", "turns"), [("s3", 2), ("bob", 5), ("grpc", 2)])
def test_the_planned_total_is_that_of_the_plan(api: Api, turns: int) -> None:
    assert asked(api).measured() == len(asked(api).plan().measure) == 10 * turns


def test_samples_count_for_each_placement() -> None:
    counted = Counter((r.endpoint, r.placement) for r in asked("bob").plan().measure)
    assert counted == {
        ("Put", "local"): 10,
        ("Put", "remote"): 10,
        ("Get", "local"): 10,
        ("Get", "remote"): 10,
        ("Ping", "unknown"): 10,
    }


def test_the_plan_is_the_same_every_time() -> None:
    one = asked("bob")
    assert one.plan() == one.plan()


@pytest.mark.parametrize(
    ("api", "endpoints", "says"),
    [
        ("s3", ["Get", "Put"], "It has ListBuckets, ListObjects, ListObjectsPage, GetObject"),
        ("bob", ["GetObject"], "It has Put, Get, Exist, Delete and Ping"),
        ("grpc", ["GetObject"], "`package.Service/Method`"),
    ],
)
def test_a_system_left_with_nothing_is_told_what_it_has(
    api: Api, endpoints: list[str], says: str
) -> None:
    with pytest.raises(UserError, match="System store has none of the endpoints") as caught:
        asked(api, endpoints)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"object_size": "100MiB"}, True),
        ({"object_size": "128MiB"}, False),
        ({"object_size": "128MiB", "max_message": "129MiB"}, True),
        ({"object_size": "1KiB", "max_message": "1KiB"}, False),
    ],
)
def test_an_object_must_fit_into_a_message(fields: dict[str, str], fits: bool) -> None:
    assert asked("s3", **fields).names, "S3 has no messages"
    assert asked("bob", ["Ping"], **fields).names, "a Ping has no object"
    if fits:
        assert asked("bob", **fields).names
        return
    with pytest.raises(UserError) as caught:
        asked("bob", **fields)
    for part in (fields["object_size"], "Put and Get", "raise `max_message`"):
        assert part in str(caught.value)
