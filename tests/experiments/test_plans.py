"""What a study comes to for each system: its requests, how many of them, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.commands import manifest_of, measure, samples_of, study
from wanlat.commands.run import _capture
from wanlat.experiments.config.budget import BudgetSpec
from wanlat.experiments.config.study import Study, load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.request_plan import RequestPlan, plan_requests
from wanlat.experiments.session import CaptureWanted
from wanlat.experiments.workloads.rtt_steps import schedule
from wanlat.probes.fewer import Turn
from wanlat.probes.one_key import Overwrites
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems.base import Api
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size

EVERY = [
    *("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject"),
    *("Put", "Get", "Exist", "Delete", "Ping", "shop.Catalogue/Count"),
    {
        **{"method": "shop.Catalogue/Find", "request": {"id": "{key}"}},
        "prepare": {"method": "shop.Catalogue/Add", "request": {"id": "{key}"}},
    },
]
NAMES = {
    "s3": EVERY[:5],
    "bob": EVERY[5:10],
    "grpc": ["shop.Catalogue/Count", "shop.Catalogue/Find"],
}
PLACED = ("Put", "Get", "Exist", "Delete")
STEPS = {"rtts": ["0ms", "10ms"], "repeats": 2}


def asked(api: Api, endpoints: list[Any] | None = None, seed: int = 1, **keys: Any) -> RequestPlan:
    """Requests of a study whose replicas are on n1, the target, of every second key."""
    made = {"name": "s", "topology": "t", "endpoints": endpoints or EVERY, **keys}
    read = Study.model_validate({"samples": 10, **made})

    def replicas(key: bytes) -> tuple[str, ...]:
        return ("n1",) if key[0] % 2 == 0 else ("n2",)

    return plan_requests(read, "store", api, target="n1", replicas=replicas, seed=seed)


@pytest.mark.parametrize("api", ["s3", "bob", "grpc"])
def test_every_step_asks_the_same_in_another_order_and_disturbs_no_other(api: Api) -> None:
    one = asked(api, samples=5, warmup=2, round_trips=STEPS)
    assert one.names == NAMES[api]
    plan = one.plan_of_steps()
    assert plan == one.plan_of_steps()
    assert plan.steps != asked(api, seed=2, samples=5, round_trips=STEPS).plan_of_steps().steps
    turns = [[(each.endpoint, each.placement) for each in step.measure] for step in plan.steps]
    expected = [
        (name, place)
        for name in NAMES[api]
        for place in (("local", "remote") if name in PLACED else ("unknown",))
    ]
    assert one.turns() == expected
    assert all(Counter(each) == dict.fromkeys(expected, 5) for each in turns)
    assert one.measured() == sum(map(len, turns))
    assert len({tuple(each) for each in turns}) == len(turns) == 4
    for step in plan.steps:
        assert set(Counter((e.endpoint, e.placement) for e in step.warmup).values()) == {2}
    later = [each for step in plan.steps for each in (*step.warmup, *step.measure)]
    everything = [*plan.prepare, *later]
    assert [each.seq for each in everything] == list(range(len(everything)))

    def keys(requests: Sequence[Request], *endpoints: str) -> list[str | None]:
        return [each.key for each in requests if each.endpoint in endpoints]

    for changing in (keys(everything, "PutObject", "Put"), keys(later, "RemoveObject", "Delete")):
        assert len(set(changing)) == len(changing), "a key is written, or removed, once"
    prepared = {each.key for each in plan.prepare}
    removed = {*keys(later, "RemoveObject", "Delete")}
    assert removed <= prepared
    assert {*keys(later, "GetObject", "Get", "Exist")} <= prepared - removed
    found = keys(later, "shop.Catalogue/Find")
    assert len(set(found)) == len(found)
    assert prepared >= {*found}


def test_every_rtt_is_a_step_equally_often_at_any_time_in_an_order_of_the_seed() -> None:
    rtts = [0, 25, 50, 100, 200]
    steps = schedule(rtts, 7, seed=3)
    assert Counter(steps) == dict.fromkeys(rtts, 7)
    for end in range(len(steps)):
        times = [Counter(steps[:end])[rtt] for rtt in rtts]
        assert max(times) - min(times) <= 1
    assert len({steps[begin : begin + 5] for begin in range(0, 35, 5)}) > 1, "shuffled anew"
    assert schedule(rtts, 7, seed=3) == steps != schedule(rtts, 7, seed=4)


def test_what_is_proven_of_round_trips_is_the_network_that_is_measured(tmp_path: Path) -> None:
    prepared = prepare(load("round-trips"), directory=tmp_path / "bundle")
    assert {prepared.plan.rtt_ms("n1", each) for each in ("n2", "n3", "n4", "n5")} == {200.0}
    assert prepared.plan.jitter_ms("n1", "n2") == 0
    assert prepared.topology.links.default is not None
    assert prepared.topology.links.default.rtt == Duration(100 * 10**6)


def test_packets_are_recorded_unless_they_are_not_wanted() -> None:
    round_trips, latency = load("round-trips"), load("endpoint-latency")
    assert _capture(round_trips, None, None, Size(256)) == CaptureWanted(1 << 30, 256)
    assert _capture(round_trips, True, Size(1 << 20), Size(200)) == CaptureWanted(1 << 20, 200)
    assert _capture(round_trips, False, None, Size(256)) is None
    assert _capture(latency, None, None, Size(256)) is None
    assert _capture(round_trips, None, None, Size(256), "netem") is None


@pytest.mark.parametrize("key", ["key_mode", "prefill", "reclaim", "load"])
def test_a_service_is_not_sent_what_only_stores_have(key: str) -> None:
    values: dict[str, Any] = {"key_mode": "same", "load": {"mix": {"Put": 1.0}}}
    given = {key: values.get(key, {})}
    assert asked("bob", **given).names
    with pytest.raises(UserError, match=f"`{key}` makes requests that S3 or Bob's API has"):
        asked("grpc", **given)


def test_what_cannot_be_asked_says_what_can() -> None:
    with pytest.raises(UserError, match=r"none of the endpoints.*It has ListBuckets, ListObjects"):
        asked("s3", ["Get", "Put"])
    large = {"object_size": "128MiB"}
    assert asked("s3", **large).names, "S3 has no messages"
    assert asked("bob", ["Ping"], **large).names, "a Ping has no object"
    assert asked("bob", **large, max_message="129MiB").names
    with pytest.raises(UserError, match=r"128MiB.*Put, Get, Exist and Delete.*`max_message`"):
        asked("bob", **large)


MIB = 1 << 20
GET: Turn = ("GetObject", "unknown")
LIST: Turn = ("ListBuckets", "unknown")


@pytest.mark.parametrize(
    ("spec", "turn", "took_s", "samples", "limited_by", "why"),
    [
        ({"time": "60s"}, GET, 0.1, 100, None, "all fit"),
        ({"time": "60s"}, GET, 2.0, 30, "time", "in 60s there are 30 requests of 2 s"),
        ({"time": "10s"}, GET, 2.0, 10, "min_samples", "and 10 are taken at least"),
        ({"bytes": "4GiB"}, GET, 0.1, 40, "bytes", "4GiB hold 40 objects of 100MiB"),
        ({"bytes": "4GiB", "time": "60s"}, GET, 2.0, 30, "time", "30 requests"),
        ({"bytes": "4GiB", "time": "600s"}, GET, 2.0, 40, "bytes", "40 objects"),
        ({"bytes": "100MiB"}, LIST, 0.1, 100, None, "all fit"),
        ({"time": "1s", "min_samples": 500}, GET, 2.0, 100, "min_samples", "100 are taken"),
    ],
)
def test_samples_are_as_many_as_fit(
    spec: dict[str, Any], turn: Turn, took_s: float, samples: int, limited_by: Any, why: str
) -> None:
    budget = BudgetSpec.model_validate(spec)
    (found,) = budget.planned("s", [turn], 100, 100 * MIB, {turn: [took_s, took_s, 9.0]})
    assert (found.samples, found.wanted, found.limited_by) == (samples, 100, limited_by)
    assert why in found.why


def test_what_bytes_forbid_is_never_prepared_and_the_rest_lies_all_over_the_plan() -> None:
    names = ["GetObject", "PutObject", "ListBuckets"]
    whole = asked("s3", names, samples=100, object_size="100MiB").plan()
    cut = asked("s3", names, samples=100, object_size="100MiB", budget={"bytes": "1GiB"})
    plan = cut.plan()
    assert plan == cut.plan()
    counted = Counter(request.endpoint for request in plan.measure)
    assert counted == {"GetObject": 10, "PutObject": 10, "ListBuckets": 100}
    assert cut.measured() == 120
    assert len(plan.prepare) <= len(whole.prepare)
    read = {each.key for each in plan.measure if each.endpoint == "GetObject"}
    assert read <= {request.key for request in plan.prepare}
    places = [n for n, each in enumerate(plan.measure) if each.endpoint == "GetObject"]
    assert places[-1] - places[0] > len(plan.measure) / 3


def test_one_key_is_written_again_and_again_and_read_as_it_was_written_last() -> None:
    plan = asked("s3", ["GetObject", "PutObject"], key_mode="same").plan()
    requests = [*plan.prepare, *plan.warmup, *plan.measure]
    assert {each.key for each in requests if each.endpoint != "CreateBucket"} == {"one/object"}
    writes = [each.body_seed for each in requests if each.endpoint == "PutObject"]
    assert len(set(writes)) == len(writes), "each brings other bytes"
    get, known = Request(1, "measure", "GetObject", "b", "one", body_seed=0), Overwrites()
    empty: dict[str, Any] = dict.fromkeys(field.name for field in fields(Sample))
    for seed, outcome, expected in (
        (1, "ok", 1),
        (2, "fail", 1),
        (3, "unknown", None),
        (4, "ok", 4),
    ):
        put = Request(0, "measure", "PutObject", "b", "one", object_bytes=8, body_seed=seed)
        known.note(put, Sample(**empty | {"endpoint": "PutObject", "outcome": outcome}))
        assert known.now(get).body_seed == expected


def test_a_budget_and_one_key_are_kept_to_by_a_run(tmp_path: Path) -> None:
    text = (
        "resources: false\nendpoints: [GetObject, PutObject]\nsamples: 50\nwarmup: 2\n"
        "object_size: 1MiB\nkey_mode: same\nbudget: {bytes: 20MiB}\n"
    )
    outcome = measure(study(tmp_path, text, sites=1), tmp_path / "b")
    assert (outcome.status, outcome.measured, outcome.planned) == ("complete", 40, 40)
    assert any("20MiB hold 20 objects of 1MiB" in each for each in outcome.remarks)
    samples = samples_of(tmp_path / "b")
    assert set(samples.outcome) == {"ok"}  # every read brought what was written last
    counted = samples[samples.phase == "measure"].groupby("endpoint").size()
    assert counted.to_dict() == {"GetObject": 20, "PutObject": 20}
    rows = manifest_of(tmp_path / "b")["budget"]
    assert [(row["samples"], row["limited_by"]) for row in rows] == [(20, "bytes")] * 2
