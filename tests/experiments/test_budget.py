"""How many samples a budget allows, and what `key_mode: same` reads: decided while it runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.commands import manifest_of, samples_of
from wanlat.experiments.config.budget import BudgetSpec, Planned, plan_samples
from wanlat.experiments.config.study import Study, load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.request_plan import RequestPlan, plan_requests
from wanlat.experiments.run import run
from wanlat.probes.fewer import Turn
from wanlat.probes.one_key import Overwrites
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample

MIB = 1 << 20
GET: Turn = ("GetObject", "unknown")
LIST: Turn = ("ListBuckets", "unknown")


def planned(spec: BudgetSpec, took_s: float, turn: Turn = GET, wanted: int = 100) -> Planned:
    (found,) = plan_samples(spec, [turn], wanted, 100 * MIB, {turn: [took_s, took_s, 9.0]})
    return found


@pytest.mark.parametrize(
    ("spec", "took_s", "samples", "limited_by", "why"),
    [
        ({"time": "60s"}, 0.1, 100, None, "all fit"),
        ({"time": "60s"}, 2.0, 30, "time", "in 60s there are 30 requests of 2 s"),
        ({"time": "10s"}, 2.0, 10, "min_samples", "and 10 are taken at least"),
        ({"bytes": "4GiB"}, 0.1, 40, "bytes", "4GiB hold 40 objects of 100MiB"),
        ({"bytes": "4GiB", "time": "60s"}, 2.0, 30, "time", "30 requests"),
        ({"bytes": "4GiB", "time": "600s"}, 2.0, 40, "bytes", "40 objects"),
        ({"bytes": "1GiB", "min_samples": 50}, 2.0, 50, "min_samples", "and 50 are taken at least"),
    ],
)
def test_samples_are_as_many_as_fit(
    spec: dict[str, str], took_s: float, samples: int, limited_by: str | None, why: str
) -> None:
    found = planned(BudgetSpec.model_validate(spec), took_s)
    assert (found.samples, found.limited_by) == (samples, limited_by)
    assert why in found.why
    assert found.wanted == 100


def test_never_more_than_the_study_wants_and_what_carries_no_object_pays_no_bytes() -> None:
    spec = BudgetSpec.model_validate({"time": "1h", "min_samples": 50})
    assert planned(spec, 1.0, wanted=7).samples == 7
    spec = BudgetSpec.model_validate({"bytes": "100MiB"})
    assert planned(spec, 0.001, LIST).samples == 100
    assert planned(spec, 0.001, GET).samples == 10


def asked(**keys: object) -> RequestPlan:
    study = Study.model_validate(
        {
            "name": "mine",
            "topology": "one-site",
            "endpoints": ["GetObject", "PutObject", "ListBuckets"],
            "seed": 7,
            **keys,
        }
    )
    return plan_requests(study, "quorum", "s3", target="n1", replicas=lambda _: [], seed=7)


def test_what_bytes_forbid_is_never_prepared_and_the_rest_lies_all_over_the_plan() -> None:
    whole = asked(object_size="100MiB").plan()
    cut = asked(object_size="100MiB", budget={"bytes": "1GiB"})
    plan = cut.plan()
    assert plan == cut.plan()
    counted = Counter(request.endpoint for request in plan.measure)
    assert counted == {"GetObject": 10, "PutObject": 10, "ListBuckets": 100}
    assert cut.measured() == 120
    assert len(plan.prepare) <= len(whole.prepare)
    read = {each.key for each in plan.measure if each.endpoint == "GetObject"}
    assert read <= {request.key for request in plan.prepare}
    places = [place for place, each in enumerate(plan.measure) if each.endpoint == "GetObject"]
    assert places[-1] - places[0] > len(plan.measure) / 3


def test_one_key_is_written_again_and_again_and_is_what_is_read() -> None:
    plan = asked(key_mode="same").plan()
    requests = [*plan.prepare, *plan.warmup, *plan.measure]
    keys = {each.key for each in requests if each.endpoint in ("PutObject", "GetObject")}
    assert keys == {"one/object"}
    writes = [each.body_seed for each in requests if each.endpoint == "PutObject"]
    assert len(set(writes)) == len(writes)  # each brings other bytes


def sample(request: Request, outcome: str) -> Sample:
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in fields(Sample))
    of_it = {"seq": request.seq, "phase": request.phase, "endpoint": request.endpoint}
    return Sample(**nothing | of_it | {"outcome": outcome})


def test_a_read_of_the_one_key_expects_what_was_written_last() -> None:
    put = Request(0, "measure", "PutObject", "b", "one", object_bytes=8, body_seed=1)
    get = Request(1, "measure", "GetObject", "b", "one", object_bytes=8, body_seed=0)
    known = Overwrites()
    assert known.now(get).body_seed == 0
    known.note(put, sample(put, "ok"))
    assert known.now(get).body_seed == 1
    known.note(Request(2, "measure", "PutObject", "b", "one", body_seed=2), sample(put, "fail"))
    assert known.now(get).body_seed == 1
    known.note(Request(3, "measure", "PutObject", "b", "one", body_seed=3), sample(put, "unknown"))
    assert known.now(get).body_seed is None  # either may be there


def test_a_run_on_one_key_within_a_budget(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(
        "name: test\ntopology: one-site\nnodes: 1\nendpoints: [GetObject, PutObject]\n"
        "key_mode: same\nobject_size: 1MiB\nsamples: 50\nwarmup: 3\nseed: 7\nresources: false\n"
        "budget: {bytes: 20MiB, time: 60s, min_samples: 5}\n"
    )
    out = tmp_path / "bundle"
    outcome = run(prepare(load(str(file)), directory=out), lambda *_: None)
    assert outcome.status == "complete"
    assert (outcome.measured, outcome.planned) == (40, 40)
    (remark,) = outcome.remarks
    assert "20MiB hold 20 objects of 1MiB" in remark
    samples = samples_of(out)
    assert set(samples.outcome) == {"ok"}  # every read brought what was written last
    counted = samples[samples.phase == "measure"].groupby("endpoint").size()
    assert counted.to_dict() == {"GetObject": 20, "PutObject": 20}
    rows = manifest_of(out)["budget"]
    assert [(row["endpoint"], row["samples"], row["limited_by"]) for row in rows] == [
        ("GetObject", 20, "bytes"),
        ("PutObject", 20, "bytes"),
    ]
    assert all(row["request_s"] > 0 for row in rows)
