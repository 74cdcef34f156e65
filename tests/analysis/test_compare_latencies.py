"""Two ordinary studies held against each other: what is worse, what is chance, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_bundles import ENDPOINTS, GARAGE, MINIO, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.compare import (
    Comparison,
    Kind,
    Limit,
    Thresholds,
    Verdict,
    compare,
    difference,
)
from wanlat.analysis.compare.document import document
from wanlat.analysis.compare.model import FAILURES, MEDIAN
from wanlat.bundle.errors import BundleError

ONE = ("garage", "GetObject")


def around(median_ms: float, seed: int, n: int = 100) -> list[float]:
    return list(np.random.default_rng(seed).normal(median_ms, 3, n))


def held(old: Path, new: Path, **settings: Any) -> Comparison:
    return compare(read_bundle(old), read_bundle(new), Thresholds(), **settings)


def verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {each.endpoint: each.verdict for each in comparison.endpoints}


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is beyond doubt either way."""
    monkeypatch.setattr(difference, "RESAMPLES", 299)


@pytest.fixture
def two(make_bundle: MakeBundle) -> Any:
    """Two bundles of Garage whose endpoints have the given medians, 100 ms where none is."""

    def made(old: dict[str, float], new: dict[str, float], **settings: Any) -> tuple[Path, Path]:
        bundles = []
        for number, medians in enumerate((old, new)):
            values = {
                ("garage", name): around(medians.get(name, 100.0), 10 * number + place)
                for place, name in enumerate(ENDPOINTS)
            }
            bundles.append(
                make_bundle(
                    name=("old", "new")[number], systems=[GARAGE], values_ms=values, **settings
                )
            )
        return bundles[0], bundles[1]

    return made


def test_the_same_store_twice_is_the_same(two: Any) -> None:
    comparison = held(*two({}, {}))
    assert comparison.passed
    assert set(verdicts(comparison).values()) == {Verdict.SAME}
    assert comparison.failures == ()


def test_an_endpoint_that_takes_a_round_trip_more_is_named_and_alone(two: Any) -> None:
    comparison = held(*two({}, {"PutObject": 200.0}))
    assert not comparison.passed
    assert verdicts(comparison) == {
        **dict.fromkeys(ENDPOINTS, Verdict.SAME),
        "PutObject": Verdict.WORSE,
    }
    change = next(each for each in comparison.endpoints if each.fails).change(MEDIAN)
    assert change is not None
    assert change.difference == pytest.approx(100, abs=2)
    assert change.ci95 is not None
    assert change.ci95[0] < 100 < change.ci95[1]
    assert change.ci95[1] - change.ci95[0] < 5
    assert "Garage PutObject" in comparison.failures[0]


def test_what_became_faster_is_better_and_passes(two: Any) -> None:
    comparison = held(*two({"PutObject": 200.0}, {}))
    assert comparison.passed
    assert verdicts(comparison)["PutObject"] == Verdict.BETTER


def test_a_change_within_the_threshold_is_none_and_a_lower_threshold_finds_it(two: Any) -> None:
    old, new = two({}, {"PutObject": 107.0})
    assert verdicts(held(old, new))["PutObject"] is Verdict.SAME
    strict = Thresholds(latency_ms=Limit(relative=0.03))
    found = compare(read_bundle(old), read_bundle(new), strict)
    assert verdicts(found)["PutObject"] is Verdict.WORSE


def test_one_millisecond_that_became_two_is_the_machine(two: Any) -> None:
    """Beyond 10 %, and less than a machine differs from itself: the 5 ms of the default."""
    near = dict.fromkeys(ENDPOINTS, 30.0)
    assert held(*two(near, {**near, "PutObject": 33.5})).passed


def test_more_failures_are_worse_whatever_the_latencies(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[GARAGE])
    new = make_bundle(name="new", systems=[GARAGE], failures={ONE: (10, 10)})
    comparison = held(old, new, gate=[Kind.OUTLIERS])
    entry = next(each for each in comparison.endpoints if each.endpoint == "GetObject")
    assert not comparison.passed
    assert entry.verdict is Verdict.WORSE
    change = entry.change(FAILURES)
    assert change is not None
    assert (change.old, change.new) == (0, 0.2)
    assert held(new, old).passed


def test_two_failures_of_a_hundred_are_told_and_fail_only_where_it_is_strict(
    make_bundle: MakeBundle,
) -> None:
    old = make_bundle(name="old", systems=[GARAGE])
    new = make_bundle(name="new", systems=[GARAGE], failures={ONE: (1, 1)})
    comparison = held(old, new)
    assert comparison.passed
    assert verdicts(comparison)["GetObject"] is Verdict.NOT_DECIDED
    assert not held(old, new, strict=True).passed
    assert held(old, old, strict=True).passed


def test_an_endpoint_without_a_success_has_no_latency_and_fails(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[GARAGE])
    new = make_bundle(name="new", systems=[GARAGE], failures={ONE: (100, 0)})
    comparison = held(old, new, allow_missing=True)
    assert verdicts(comparison)["GetObject"] is Verdict.WORSE
    assert "100 %" in comparison.failures[0]


def test_an_endpoint_that_is_gone_fails_and_a_new_one_does_not(make_bundle: MakeBundle) -> None:
    more = make_bundle(name="more", systems=[GARAGE])
    fewer = make_bundle(name="fewer", systems=[GARAGE], endpoints=ENDPOINTS[:3])
    gone = held(more, fewer)
    assert not gone.passed
    assert [each.endpoint for each in gone.endpoints if each.verdict is Verdict.GONE] == [
        "PutObject",
        "RemoveObject",
    ]
    assert held(more, fewer, allow_missing=True).passed
    came = held(fewer, more)
    assert came.passed
    assert verdicts(came)["PutObject"] is Verdict.NEW


def test_two_systems_are_held_against_each_other_where_each_bundle_has_one(
    make_bundle: MakeBundle,
) -> None:
    old = make_bundle(name="old", systems=[GARAGE])
    new = make_bundle(name="new", systems=[MINIO])
    comparison = held(old, new)
    assert {(each.old, each.new) for each in comparison.endpoints} == {(GARAGE, MINIO)}
    assert not comparison.passed


def test_of_several_systems_it_must_be_said_which(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[GARAGE, MINIO])
    new = make_bundle(name="new", systems=[QUORUM], endpoints=ENDPOINTS)
    with pytest.raises(BundleError, match="--as OLD=NEW"):
        held(old, new)
    comparison = held(old, new, renamed={"minio": "quorum"}, allow_missing=True)
    assert {each.old for each in comparison.endpoints if each.new} == {MINIO}
    assert {each.old for each in comparison.endpoints if not each.new} == {GARAGE}
    with pytest.raises(BundleError, match="no samples of bob"):
        held(old, new, renamed={"bob": "quorum"})
    with pytest.raises(BundleError, match="two systems of OLD"):
        held(old, new, renamed={"minio": "quorum", "garage": "quorum"})


def test_versions_may_differ_and_are_named(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[("garage", "2.4.0")])
    new = make_bundle(name="new", systems=[("garage", "2.5.0")])
    entry = held(old, new).endpoints[0]
    assert entry.old is not None
    assert entry.new is not None
    assert (entry.old.version, entry.new.version) == ("2.4.0", "2.5.0")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"backend": "netem"}, "backend: wire against netem"),
        ({"storage": "disk"}, "storage: memory against disk"),
        ({"client": {"node": "n2", "site": "dc2"}}, "client's node: n1 against n2"),
        ({"target": {"node": "n3", "site": "dc3"}}, "target's node: n1 against n3"),
        ({"study": {"name": "s", "object_size": "4KiB"}}, "object size: 1KiB against 4KiB"),
        (
            {
                "systems": [
                    {"name": "garage", "version": "2.5.0", "options": {"replication_factor": 2}}
                ]
            },
            "options of garage: replication_factor 3 against 2",
        ),
        (
            {"topology": {"name": "five-sites", "sites": [{"name": "dc1", "nodes": ["n1"]}]}},
            "both are named five-sites, and differ in sites",
        ),
    ],
)
def test_what_was_not_measured_alike_is_refused_and_named(
    make_bundle: MakeBundle, change: dict[str, Any], says: str
) -> None:
    base = {
        "study": {"name": "s", "object_size": "1KiB"},
        "systems": [{"name": "garage", "version": "2.5.0", "options": {"replication_factor": 3}}],
    }
    old = make_bundle(name="old", systems=[GARAGE], manifest=base)
    new = make_bundle(name="new", systems=[GARAGE], manifest=base | change)
    with pytest.raises(BundleError, match=says):
        held(old, new)
    comparison = held(old, new, anyway=True)
    assert says in comparison.differs[0]


def test_another_topology_is_refused(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[GARAGE])
    new = make_bundle(name="new", systems=[GARAGE], topology="three-datacenters")
    with pytest.raises(BundleError, match="five-sites against three-datacenters"):
        held(old, new)


def test_a_failed_calibration_gives_nothing_to_compare(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[GARAGE])
    new = make_bundle(name="new", systems=[GARAGE])
    path = new / "calibration.json"
    document_ = json.loads(path.read_text())
    document_["verdict"] = document_["pairs"][0]["verdict"] = "fail"
    path.write_text(json.dumps(document_))
    comparison = held(old, new)
    assert set(verdicts(comparison).values()) == {Verdict.NOT_COMPARABLE}
    assert not comparison.passed
    assert "NEW: its calibration failed" in comparison.failures[0]
    assert held(old, new, allow_missing=True).passed


def test_a_drill_is_refused(make_bundle: MakeBundle) -> None:
    study = make_bundle(name="study", systems=[QUORUM])
    drill = make_bundle(name="drill", systems=[QUORUM])
    manifest = json.loads((drill / "manifest.json").read_text())
    manifest |= {"kind": "drill", "drill": manifest.pop("study")}
    (drill / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="wanlat drill matrix"):
        held(study, drill)


def test_bundles_of_other_endpoints_are_refused(make_bundle: MakeBundle) -> None:
    old = make_bundle(name="old", systems=[QUORUM], endpoints=("Get", "Put"))
    new = make_bundle(name="new", systems=[QUORUM], endpoints=("GetObject", "PutObject"))
    with pytest.raises(BundleError, match="No endpoint is in both"):
        held(old, new)


def test_a_gate_on_what_was_not_measured_is_refused(two: Any) -> None:
    old, new = two({}, {})
    with pytest.raises(BundleError, match="wanlat run round-trips"):
        held(old, new, gate=[Kind.ROUND_TRIPS])
    with pytest.raises(BundleError, match="--at"):
        held(old, new, at_rtt_ms=100.0)
    assert held(old, new, gate=list(Kind)).passed


def test_the_document_has_the_keys_that_scripts_read(two: Any) -> None:
    made = json.loads(json.dumps(document(held(*two({}, {"PutObject": 200.0}))), allow_nan=False))
    assert made["kind"] == "latency"
    assert made["gate"]["kinds"] == ["failures", "latency"]
    assert not made["gate"]["passed"]
    assert made["counts"]["worse"] == 1
    entry = next(each for each in made["endpoints"] if each["endpoint"] == "PutObject")
    assert entry["verdict"] == "worse"
    change = next(each for each in entry["changes"] if each["quantity"] == "median_ms")
    assert change["difference"] == pytest.approx(change["new"] - change["old"], abs=1e-5)
    assert change["ci95"][0] < change["difference"] < change["ci95"][1]
    assert made == json.loads(json.dumps(made))


def test_the_same_bundles_give_the_same_document(two: Any) -> None:
    old, new = two({}, {"GetObject": 110.0})
    assert document(held(old, new)) == document(held(old, new))
