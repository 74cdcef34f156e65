"""Reads of a prefilled bucket are of prefilled objects, drawn evenly over all of them."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any, Literal

from wanlat.probes.bob_plan import bob_steps
from wanlat.probes.load import body_seed_of, key_of
from wanlat.probes.plan import Request, StepsPlan
from wanlat.probes.prefilled import Prefilled
from wanlat.probes.s3_plan import PAGE, S3Endpoint, s3_steps

S3: list[S3Endpoint] = [
    *("ListObjects", "ListObjectsPage", "GetObject", "HeadObject", "PutObject", "RemoveObject"),
]


def filled(objects: int, api: Literal["s3", "bob"] = "s3") -> Prefilled:
    return Prefilled(api, "wanlat", objects, seed=5)


def s3_plan(objects: int | None, **changes: Any) -> StepsPlan:
    arguments: dict[str, Any] = {
        **{"steps": 1, "samples": 40, "warmup": 5, "object_bytes": 1024, "seed": 5},
        **{"bucket": "wanlat", "prefilled": None if objects is None else filled(objects)},
    }
    return s3_steps(S3, **(arguments | changes))


def bob_plan(objects: int | None) -> StepsPlan:
    return bob_steps(
        ["Put", "Get", "Exist", "Delete"],
        steps=1,
        samples=40,
        warmup=5,
        object_bytes=1024,
        seed=5,
        target="n1",
        replicas=lambda key: ("n1",) if key[0] % 8 == 0 else ("n2",),
        prefilled=None if objects is None else filled(objects, "bob"),
    )


def of(requests: tuple[Request, ...], *endpoints: str) -> list[Request]:
    return [request for request in requests if request.endpoint in endpoints]


def test_each_read_is_of_another_prefilled_object_with_its_bytes() -> None:
    (step,) = s3_plan(1000).steps
    for endpoint in ("GetObject", "HeadObject"):
        read = of(step.warmup + step.measure, endpoint)
        assert len({request.key for request in read}) == 45
    for request in of(step.measure, "GetObject"):
        index = int(str(request.key).removeprefix("fill-"))
        assert request.key == key_of(5, "wanlat", index, "s3")
        assert request.body_seed == body_seed_of(5, "wanlat", index)


def test_the_draw_is_over_the_whole_bucket_and_only_the_seed_decides() -> None:
    drawn = list(islice(filled(1_000_000).drawn(), 2000))
    assert drawn == list(islice(filled(1_000_000).drawn(), 2000))
    assert len(set(drawn)) == 2000
    tenths = Counter(index // 100_000 for index in drawn)
    # 200 in each tenth, ± 13: five times that happens in none of a million draws.
    assert all(135 < tenths[tenth] < 265 for tenth in range(10))
    assert sorted(filled(50).drawn()) == list(range(50))


def test_bobs_reads_are_of_prefilled_keys_of_their_placement() -> None:
    (step,) = bob_plan(2000).steps
    keys = {key_of(5, "wanlat", index, "bob") for index in range(2000)}
    for request in of(step.measure, "Get", "Exist"):
        assert request.key in keys
        assert (bytes.fromhex(str(request.key))[0] % 8 == 0) == (request.placement == "local")
    counted = Counter((each.endpoint, each.placement) for each in step.measure)
    assert set(counted.values()) == {40}
    assert not keys & {each.key for each in of(step.measure, "Put", "Delete")}


def test_a_page_is_whole_where_a_page_was_prefilled() -> None:
    for objects, listed in ((PAGE, PAGE), (PAGE - 1, None), (None, None)):
        (step,) = s3_plan(objects).steps
        assert {each.listed for each in of(step.measure, "ListObjectsPage")} == {listed}


def test_the_listed_prefix_has_half_of_the_bucket_before_it_and_half_behind() -> None:
    (step,) = s3_plan(1000).steps
    (prefix,) = {str(each.prefix) for each in of(step.measure, "ListObjects")}
    keys = [key_of(5, "wanlat", index, "s3") for index in range(1000)]
    # The first key, too, must be before it: an object and a prefix cannot share a name everywhere.
    assert sum(key < prefix for key in keys) == 501
    assert not any(key.startswith(prefix) or prefix.startswith(f"{key}/") for key in keys)
