"""Plans: each endpoint measured alike, in an order that only the seed decides, on its own keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probes.plans import plan_of
from wanlat.probes.method_plan import Call, Measured
from wanlat.probes.plan import Plan, Request
from wanlat.probes.prefilled import Prefilled, body_seed_of, key_of
from wanlat.probes.protocols.bob import BobEndpoint
from wanlat.probes.protocols.s3 import PAGE, S3Endpoint

S3: list[S3Endpoint] = [
    "ListBuckets",
    "ListObjects",
    "GetObject",
    "PutObject",
    "RemoveObject",
    "HeadObject",
]


def s3_plan_of(**changes: Any) -> Plan:
    return plan_of("s3", changes.pop("endpoints", S3), **changes)


def only(requests: Sequence[Request], *endpoints: str) -> list[Request]:
    return [request for request in requests if request.endpoint in endpoints]


def on_keys(requests: Sequence[Request], endpoint: str) -> list[str | None]:
    return [request.key for request in only(requests, endpoint)]


def test_each_endpoint_is_measured_as_often_as_asked() -> None:
    plan = s3_plan_of()
    assert Counter(request.endpoint for request in plan.measure) == dict.fromkeys(S3, 20)
    assert Counter(request.endpoint for request in plan.warmup) == dict.fromkeys(S3, 3)
    assert {request.phase for request in plan.measure} == {"measure"}
    assert {request.phase for request in plan.warmup} == {"warmup"}
    assert {request.phase for request in plan.prepare} == {"prepare"}


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    assert s3_plan_of() == s3_plan_of()
    order = [request.endpoint for request in s3_plan_of().measure]
    assert order != [request.endpoint for request in s3_plan_of(seed=8).measure]


@given(
    samples=st.integers(1, 30),
    warmup=st.integers(0, 5),
    object_bytes=st.integers(0, 2**20),
    seed=st.integers(0, 2**63 - 1),
    endpoints=st.lists(st.sampled_from(S3), min_size=1, unique=True),
)
def test_no_request_over_s3_disturbs_another(
    samples: int, warmup: int, object_bytes: int, seed: int, endpoints: list[S3Endpoint]
) -> None:
    plan = s3_plan_of(
        samples=samples, warmup=warmup, object_bytes=object_bytes, seed=seed, endpoints=endpoints
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


# -- Bob


BOB: tuple[BobEndpoint, ...] = get_args(BobEndpoint)
KEYED = [name for name in BOB if name != "Ping"]
NODES = ["n1", "n2", "n3", "n4", "n5"]


def two_of_five(key: bytes) -> tuple[str, ...]:
    vdisk = int.from_bytes(key, "little") % 5
    return (NODES[vdisk], NODES[(vdisk + 1) % 5])


def bob_plan_of(**changes: Any) -> Plan:
    return plan_of("bob", changes.pop("endpoints", BOB), **{"replicas": two_of_five, **changes})


def counted(requests: Sequence[Request]) -> Counter[tuple[str, str]]:
    return Counter((request.endpoint, request.placement) for request in requests)


def test_each_placement_of_each_endpoint_is_measured_as_often_as_asked() -> None:
    plan = bob_plan_of()
    turned = {(name, placement) for name in KEYED for placement in ("local", "remote")}
    turned.add(("Ping", "unknown"))
    assert counted(plan.measure) == dict.fromkeys(turned, 20)
    assert counted(plan.warmup) == dict.fromkeys(turned, 3)
    assert len(plan.measure) == 20 * len(turned)


@pytest.mark.parametrize("target", NODES)
def test_a_placement_is_what_the_vdisks_say(target: str) -> None:
    plan = bob_plan_of(target=target)
    for request in (*plan.prepare, *plan.warmup, *plan.measure):
        if request.key is not None:
            holds = target in two_of_five(bytes.fromhex(request.key))
            assert request.placement == ("local" if holds else "remote")


@pytest.mark.parametrize(
    ("replicas", "placement"),
    [
        (lambda _: ("n1", "n2"), "local"),
        (lambda _: ("n2", "n3"), "remote"),
        (lambda _: None, "unknown"),
    ],
)
def test_where_all_keys_lie_alike_only_that_placement_is_planned(
    replicas: Any, placement: str
) -> None:
    plan = bob_plan_of(replicas=replicas)
    assert {request.placement for request in plan.measure if request.key} == {placement}
    assert len(plan.measure) == 20 * len(BOB)


@given(
    samples=st.integers(1, 20),
    warmup=st.integers(0, 5),
    object_bytes=st.integers(0, 2**26),
    seed=st.integers(0, 2**63 - 1),
    endpoints=st.lists(st.sampled_from(BOB), min_size=1, unique=True),
)
def test_no_request_to_bob_disturbs_another(
    samples: int, warmup: int, object_bytes: int, seed: int, endpoints: list[BobEndpoint]
) -> None:
    plan = bob_plan_of(
        samples=samples, warmup=warmup, object_bytes=object_bytes, seed=seed, endpoints=endpoints
    )
    later = (*plan.warmup, *plan.measure)
    assert {request.endpoint for request in plan.prepare} <= {"Put"}
    made = {request.key: request for request in plan.prepare}
    assert len(made) == len(plan.prepare), "an object is prepared once"
    put, removed = on_keys(later, "Put"), on_keys(later, "Delete")
    assert len({*put}) == len(put), "a Put that overwrites is another operation"
    assert made.keys().isdisjoint(put)
    assert len({*removed}) == len(removed), "an object is removed once"
    assert made.keys() >= set(removed)
    for request in later:
        if request.endpoint in ("Get", "Exist"):
            assert request.key in made
            assert request.key not in removed
        if request.endpoint == "Get":
            put_before = made[request.key]
            assert (request.object_bytes, request.body_seed) == (
                put_before.object_bytes,
                put_before.body_seed,
            )
        if request.endpoint == "Exist":
            assert request.exists is True
    seeds = [r.body_seed for r in (*plan.prepare, *later) if r.endpoint == "Put"]
    assert len(set(seeds)) == len(seeds), "no two objects are alike"


@pytest.mark.parametrize("endpoint", KEYED)
@pytest.mark.parametrize(
    "key", [None, "", "00" * 7, "00" * 9, "zz" * 8, "00 " * 8, "0" * 15, "k/000000"]
)
def test_a_key_of_a_wrong_length_is_never_planned(endpoint: str, key: str | None) -> None:
    with pytest.raises(ValueError, match="a key is 8 bytes, written as 16 hex digits"):
        Request(0, "measure", endpoint, key=key)


def test_the_generated_code_is_of_todays_definitions() -> None:
    """A change of bob.proto alone fails here; `cargo test -p generate` compares all of the code."""
    proto = Path(__file__).parents[2] / "proto"
    digest = hashlib.sha256((proto / "bob.proto").read_bytes()).hexdigest()
    code = (proto / "bob_storage.rs").read_text(encoding="utf-8")
    assert digest in code.partition("\n")[0], "WANLAT_GENERATE=1 cargo test -p generate"


# -- prefilled buckets


PREFILLED: list[S3Endpoint] = [
    *("ListObjects", "ListObjectsPage", "GetObject", "HeadObject", "PutObject", "RemoveObject"),
]


def filled(objects: int, *, text_keys: bool = True) -> Prefilled:
    return Prefilled("wanlat", objects, seed=5, text_keys=text_keys)


def s3_prefilled(objects: int | None) -> Plan:
    prefilled = None if objects is None else filled(objects)
    return s3_plan_of(
        endpoints=PREFILLED, samples=40, warmup=5, seed=5, bucket="wanlat", prefilled=prefilled
    )


def test_each_read_is_of_another_prefilled_object_with_its_bytes() -> None:
    plan = s3_prefilled(1000)
    for endpoint in ("GetObject", "HeadObject"):
        read = only(plan.warmup + plan.measure, endpoint)
        assert len({request.key for request in read}) == 45
    for request in only(plan.measure, "GetObject"):
        index = int(str(request.key).removeprefix("fill-"))
        assert request.key == key_of(5, "wanlat", index, is_text=True)
        assert request.body_seed == body_seed_of(5, "wanlat", index)


def test_the_draw_is_over_the_whole_bucket_and_only_the_seed_decides() -> None:
    drawn = list(islice(filled(1_000_000).drawn(), 2000))
    assert drawn == list(islice(filled(1_000_000).drawn(), 2000))
    assert len(set(drawn)) == 2000
    tenths = Counter(index // 100_000 for index in drawn)
    # 200 in each tenth, ± 13: five times that happens in none only a million draws.
    assert all(135 < tenths[tenth] < 265 for tenth in range(10))
    assert sorted(filled(50).drawn()) == list(range(50))


def test_bobs_reads_are_of_prefilled_keys_of_their_placement() -> None:
    plan = bob_plan_of(
        endpoints=["Put", "Get", "Exist", "Delete"],
        samples=40,
        seed=5,
        replicas=lambda key: ("n1",) if key[0] % 8 == 0 else ("n2",),
        prefilled=filled(2000, text_keys=False),
    )
    keys = {key_of(5, "wanlat", index, is_text=False) for index in range(2000)}
    for request in only(plan.measure, "Get", "Exist"):
        assert request.key in keys
        assert (bytes.fromhex(str(request.key))[0] % 8 == 0) == (request.placement == "local")
    assert set(counted(plan.measure).values()) == {40}
    assert not keys & {each.key for each in only(plan.measure, "Put", "Delete")}


def test_a_page_is_whole_where_a_page_was_prefilled() -> None:
    for objects, listed in ((PAGE, PAGE), (PAGE - 1, None), (None, None)):
        plan = s3_prefilled(objects)
        assert {each.listed for each in only(plan.measure, "ListObjectsPage")} == {listed}


def test_the_listed_prefix_has_half_of_the_bucket_before_it_and_half_behind() -> None:
    plan = s3_prefilled(1000)
    (prefix,) = {str(each.prefix) for each in only(plan.measure, "ListObjects")}
    keys = [key_of(5, "wanlat", index, is_text=True) for index in range(1000)]
    # The first key, too, must be before it: an object and a prefix cannot share a name everywhere.
    assert sum(key < prefix for key in keys) == 501
    assert not any(key.startswith(prefix) or prefix.startswith(f"{key}/") for key in keys)


# -- any gRPC method


ADD = Call("shop.Catalogue/Add", {"id": "{key}", "picture": "{body}"})
FIND = Measured("shop.Catalogue/Find", {"id": "{key}"}, "item.picture", prepare=ADD)
COUNT = Measured("shop.Catalogue/Count")


def method_plan_of(*methods: Measured, **changes: Any) -> Plan:
    return plan_of("grpc", methods or (FIND, COUNT), **{"object_bytes": 100, **changes})


def test_each_method_is_measured_as_often_as_asked() -> None:
    plan = method_plan_of()
    names = [FIND.endpoint, COUNT.endpoint]
    assert Counter(r.endpoint for r in plan.measure) == dict.fromkeys(names, 20)
    assert Counter(r.endpoint for r in plan.warmup) == dict.fromkeys(names, 3)
    assert {r.placement for r in plan.measure} == {"unknown"}
    assert plan == method_plan_of()
    assert [r.endpoint for r in plan.measure] != [
        r.endpoint for r in method_plan_of(seed=8).measure
    ]


def test_what_a_method_needs_is_made_for_each_key() -> None:
    plan = method_plan_of()
    made = {r.key: r for r in plan.prepare}
    assert len(made) == len(plan.prepare) == 23
    assert {r.endpoint for r in plan.prepare} == {ADD.endpoint}
    found = [r for r in (*plan.warmup, *plan.measure) if r.endpoint == FIND.endpoint]
    assert {r.key for r in found} == made.keys(), "each is asked for once"
    for request in found:
        assert request.body_seed == made[request.key].body_seed
        assert request.response_object == "item.picture"


def test_a_request_has_what_its_message_has_a_place_for() -> None:
    nested = Measured("a.B/Deep", {"items": [{"id": "{key}"}]})
    (deep,) = method_plan_of(nested, samples=1, warmup=0).measure
    assert (deep.key is None, deep.object_bytes) == (False, None)
    (bare,) = method_plan_of(COUNT, samples=1, warmup=0).measure
    assert (bare.key, bare.object_bytes, bare.body_seed) == (None, None, None)
    sends = Measured("a.B/Send", {"data": "{body}"})
    (sent,) = method_plan_of(sends, samples=1, warmup=0).measure
    assert (sent.key, sent.object_bytes) == (None, 100)
