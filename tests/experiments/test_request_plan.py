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
    ("api", "turns"),
    [
        ("s3", [("ListBuckets", "unknown"), ("GetObject", "unknown")]),
        (
            "bob",
            [
                *((name, where) for name in ("Put", "Get") for where in ("local", "remote")),
                ("Ping", "unknown"),
            ],
        ),
        ("grpc", [("shop.Catalogue/Count", "unknown"), ("shop.Catalogue/Find", "unknown")]),
    ],
)
def test_samples_count_for_each_placement_and_the_plan_is_the_same_every_time(
    api: Api, turns: list[tuple[str, str]]
) -> None:
    one = asked(api)
    assert one.names == [*dict.fromkeys(name for name, _ in turns)]
    counted = Counter((each.endpoint, each.placement) for each in one.plan().measure)
    assert counted == dict.fromkeys(turns, 10)
    assert one.measured() == counted.total()
    assert one.plan() == one.plan()


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"key_mode": "same"}, "key_mode"),
        ({"prefill": {}}, "prefill"),
        ({"reclaim": {}}, "reclaim"),
        ({"load": {"mix": {"Put": 1.0}}}, "load"),
    ],
)
def test_a_service_is_not_sent_what_only_stores_have(fields: dict[str, Any], key: str) -> None:
    assert asked("bob", **fields).names
    with pytest.raises(UserError, match=f"`{key}` makes requests that S3 or Bob's API has"):
        asked("grpc", **fields)


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
