"""`objects`: how a store is asked for objects, by the data of its protocol or its definition."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.own_store import DEFINITION, NAME, adopted
from wanlat.experiments.config.endpoints import (
    endpoints_of,
    matching_endpoints,
    name_of,
    objects_of,
)
from wanlat.experiments.config.study import Study
from wanlat.experiments.drill.prepare import Misfit, assign, load
from wanlat.experiments.prepare import RequestPlan, plan_requests
from wanlat.probes.objects import ObjectApi
from wanlat.probes.plan import Request
from wanlat.probes.prefilled import key_of
from wanlat.systems import registry
from wanlat.systems.base import System
from wanlat.systems.engine.definition import DefinitionError, read
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve

SERVICE = "bob_storage.BobApi/"
STORES = ["quorum", "garage", "minio", "minio-nginx", "bob", "versitygw", "etcd"]
STORES += ["nginx", "apache", "postgresql", "redis", "zookeeper"]


@pytest.fixture
def own(tmp_path: Path) -> System:
    return adopted(tmp_path)


def api_of(system: System) -> ObjectApi:
    api = objects_of(system, system.parse_options())
    assert api is not None
    return api


def asked(system: System, **keys: Any) -> RequestPlan:
    options = system.parse_options()
    study = Study.model_validate({"name": "s", "topology": "t", "samples": 10, **keys})
    of: dict[str, Any] = {"objects": objects_of(system, options), "own": endpoints_of(system)}
    more: dict[str, Any] = {"target": "n1", "replicas": lambda _: None, "seed": 1}
    return plan_requests(study, system.name, system.api(options), **of, **more)


@pytest.mark.parametrize("name", STORES)
def test_every_store_is_asked_for_objects_by_its_own_names(name: str) -> None:
    system = registry.get(name)
    api, names = api_of(system), system.objects(system.parse_options()).names
    for does in ("write", "read", "delete"):
        key = api.key(7, "some client", 3)
        more: dict[str, Any] = {"bucket": "b", "object_bytes": 9, "body_seed": 5}
        request = api.request(does, 1, key, **more, deadline_ms=3)  # type: ignore[arg-type]
        assert (request.does, request.called) == (does, names[does])
        assert (request.key, request.deadline_ms) == (key, 3)
        carries = None if does == "delete" else 9
        assert request.object_bytes == carries
        assert request.bucket == ("b" if api.in_buckets else None)
        assert b"operation" not in request.line()


def test_a_system_of_ones_own_is_asked_its_own_methods(own: System) -> None:
    api = api_of(own)
    key = api.native("a name")
    assert (len(key), key) == (16, api.native("a name")) != (16, api.native("another"))
    more: dict[str, Any] = {"bucket": "b", "object_bytes": 9, "body_seed": 5}
    read_it = api.request("read", 1, key, **more)
    expected = (f"{SERVICE}Get", "Fetch", "data", 5)
    found = (read_it.endpoint, read_it.called, read_it.response_object, read_it.body_seed)
    assert found == expected
    assert not api.in_buckets and not api.has("exists")


def test_a_study_of_stores_asks_it_for_what_it_asks_stores(own: System) -> None:
    def names(*endpoints: str) -> list[str]:
        return asked(own, endpoints=list(endpoints)).names

    assert names("GetObject", "PutObject") == names("Get", "Put") == ["Store", "Fetch"]
    assert names("RemoveObject", "ListBuckets") == ["Drop"]
    etcd = registry.get("etcd")
    of_etcd = endpoints_of(etcd), api_of(etcd)
    for endpoints, expected in (
        (["GetObject"], ["Range"]),
        # What is under no `objects` goes with what is no operation on objects.
        (["GetObject", "ListBuckets"], ["Range", "SerializableRange"]),
    ):
        assert [
            name_of(each) for each in matching_endpoints("grpc", endpoints, *of_etcd)
        ] == expected


def test_reads_are_of_what_was_prefilled_and_all_else_has_objects_of_its_own(own: System) -> None:
    prefill = {"objects": 50, "settle": "0s"}
    plan = asked(own, endpoints=["GetObject", "PutObject", "RemoveObject"], prefill=prefill).plan()
    filled = {key_of(1, "wanlat", index, is_text=False) for index in range(50)}

    def keys(requests: tuple[Request, ...], name: str) -> list[str | None]:
        return [each.key for each in requests if each.called == name]

    assert len({*keys(plan.measure, "Fetch")} & filled) == 10
    assert not {*keys(plan.measure, "Store"), *keys(plan.measure, "Drop")} & filled
    made = [each.key for each in plan.prepare]
    assert {*made} >= {*keys(plan.measure, "Drop")} and not {*made} & filled
    assert Counter(each.does for each in plan.prepare) == {"write": 15}  # warm-up and samples


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"object_size": "2MiB"}, r"objects: {largest: 1MiB}`. Make it 1MiB or less"),
        ({"key_mode": "same"}, "`key_mode: same` is of S3"),
        (
            {
                "load": {"mix": {"HeadObject": 0.5, "PutObject": 0.5}},
                "prefill": {"objects": 1},
            },
            "kind `exists`",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_before_a_start(
    own: System, keys: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        asked(own, endpoints=["GetObject"], **keys)


def test_without_objects_a_system_has_no_load(tmp_path: Path, monkeypatch: Any) -> None:
    text = DEFINITION.replace("objects: {write: Store, read: Fetch, delete: Drop, ", "objects: {")
    bare = adopted(tmp_path, text)
    with pytest.raises(UserError, match="does not say how: name its endpoints under `objects"):
        asked(bare, endpoints=["GetObject"], reclaim={})


def test_what_cannot_do_that_to_objects_is_reported_with_its_line(tmp_path: Path) -> None:
    line = "objects: {write: Store, read: Fetch, delete: Drop, largest: 1MiB}"
    text = DEFINITION.replace(line, "objects: {write: Fetch, read: Store, delete: Drp}")
    (tmp_path / "system.yaml").write_text(text)
    with pytest.raises(DefinitionError) as caught:
        read(tmp_path)
    for part in (
        f"system.yaml:{DEFINITION.splitlines().index(line) + 1}:",
        "BobApi/Get` is sent no `{body}`",
        "BobApi/Put` has no `response_object`",
        "`endpoints` has no `Drp` (did you mean `Drop`?)",
    ):
        assert part in str(caught.value)
    (tmp_path / "system.yaml").write_text(DEFINITION.replace("delete: Drop", "delete: Fetch"))
    with pytest.raises(DefinitionError, match="BobApi/Get` has a `response_object`: a write whose"):
        read(tmp_path)


def test_the_leader_is_whoever_leads_and_nobody_where_there_is_none() -> None:
    drill, plan = load("leader-killed"), resolve(load_topology("four-sites"))
    for leader in ("n1", "n3"):
        assigned = assign(drill, "etcd", plan, 7, leader)
        assert assigned.roles["victim"] == (leader,)
        assert assigned.roles["survivor"] != (leader,)
        assert assigned.steps[0].fault.subject == leader
    assert assign(drill, "quorum", plan, 7).roles["victim"] == ("n1",)
    leaderless = drill.model_copy(update={"options": {}})
    with pytest.raises(Misfit, match="`quorum` has no leader as it is set up here"):
        assign(leaderless, "quorum", plan, 7)


def test_a_drill_is_for_every_system_that_has_objects(own: System) -> None:
    drill = load("one-node-killed")
    named = drill.model_copy(update={"systems": [*drill.systems, NAME]})
    assigned = assign(named, own.name, resolve(load_topology("four-sites")), 7)
    assert assigned.objects.name("write") == "Store"
