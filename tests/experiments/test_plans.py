"""What a study comes to for each system: its requests, how many of them, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.commands import manifest_of, measure, samples_of, study
from wanlat.experiments.config.study import Study
from wanlat.experiments.config.workloads import BudgetSpec
from wanlat.experiments.prepare import RequestPlan, plan_requests
from wanlat.probes.fewer import Turn
from wanlat.probes.objects import ObjectApi
from wanlat.probes.plan import Request
from wanlat.systems.base import Api

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

    near: dict[str, Any] = {"target": "n1", "replicas": replicas, "objects": ObjectApi.over(api)}
    return plan_requests(read, "store", api, seed=seed, **near)


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
