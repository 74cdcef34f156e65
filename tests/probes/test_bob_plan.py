"""Bob's plan measures near and far keys alike, each request on a key that no other disturbs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanlat.probes.bob_plan import BobEndpoint, bob_plan, turns
from wanlat.probes.plan import Plan, Request

BOB: tuple[BobEndpoint, ...] = get_args(BobEndpoint)
KEYED = [name for name in BOB if name != "Ping"]
NODES = ["n1", "n2", "n3", "n4", "n5"]


def two_of_five(key: bytes) -> tuple[str, ...]:
    vdisk = int.from_bytes(key, "little") % 5
    return (NODES[vdisk], NODES[(vdisk + 1) % 5])


def plan_of(**changes: Any) -> Plan:
    arguments: dict[str, Any] = {
        "samples": 20,
        "warmup": 3,
        "object_bytes": 5000,
        "seed": 7,
        "target": "n1",
        "replicas": two_of_five,
    }
    return bob_plan(changes.pop("endpoints", BOB), **(arguments | changes))


def counted(requests: Sequence[Request]) -> Counter[tuple[str, str]]:
    return Counter((request.endpoint, request.placement) for request in requests)


def test_each_placement_of_each_endpoint_is_measured_as_often_as_asked() -> None:
    plan = plan_of()
    turned = {(name, placement) for name in KEYED for placement in ("local", "remote")}
    turned.add(("Ping", "unknown"))
    assert counted(plan.measure) == dict.fromkeys(turned, 20)
    assert counted(plan.warmup) == dict.fromkeys(turned, 3)
    assert set(turns(BOB, 7, "n1", two_of_five)) == turned
    assert len(plan.measure) == 20 * len(turned)


@pytest.mark.parametrize("target", NODES)
def test_a_placement_is_what_the_vdisks_say(target: str) -> None:
    plan = plan_of(target=target)
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
    plan = plan_of(replicas=replicas)
    assert {request.placement for request in plan.measure if request.key} == {placement}
    assert len(plan.measure) == 20 * len(BOB)


@given(
    samples=st.integers(1, 20),
    warmup=st.integers(0, 5),
    object_bytes=st.integers(0, 2**26),
    seed=st.integers(0, 2**63 - 1),
    endpoints=st.lists(st.sampled_from(BOB), min_size=1, unique=True),
)
def test_no_request_disturbs_another(
    samples: int, warmup: int, object_bytes: int, seed: int, endpoints: list[BobEndpoint]
) -> None:
    plan = plan_of(
        samples=samples, warmup=warmup, object_bytes=object_bytes, seed=seed, endpoints=endpoints
    )
    later = (*plan.warmup, *plan.measure)
    assert {request.endpoint for request in plan.prepare} <= {"Put"}
    made = {request.key: request for request in plan.prepare}
    assert len(made) == len(plan.prepare), "an object is prepared once"
    put = [request.key for request in later if request.endpoint == "Put"]
    removed = [request.key for request in later if request.endpoint == "Delete"]
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
