"""Two studies compared: no false alarm, nothing overlooked, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from round_trips_bundles import Does, Key, write_round_trips_bundle
from synthetic_bundles import ENDPOINTS, GARAGE, MINIO, QUORUM, write_bundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.compare import Comparison, Kind, Limit, Quantity, Thresholds, Verdict, compare
from wanlat.analysis.compare.differences import of_figures, of_round_trips
from wanlat.analysis.compare.judge import Change, Reason, Rules, judge, overall
from wanlat.analysis.compare.report import document, print_comparison
from wanlat.analysis.figures.round_trips import RoundTrips, round_trips_of
from wanlat.bundle.errors import BundleError

GET: Key = ("quorum", "GetObject", "local")
PUT: Key = ("quorum", "PutObject", "unknown")
LIST: Key = ("quorum", "ListObjects", "unknown")
REMOVE: Key = ("quorum", "RemoveObject", "remote")
TRUTH: Mapping[Key, Sequence[Does]] = {
    LIST: [Does(1, 1.5)],
    GET: [Does(1, 0)],
    PUT: [Does(1, 2)],
    REMOVE: [Does(0.6, 3), Does(0.4, 1)],
}


class Runs:
    """Bundles of runs of a store that does as told, each run with noise of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made = 0

    def __call__(
        self, changed: Mapping[Key, Sequence[Does]] | None = None, **settings: Any
    ) -> Path:
        self.made += 1
        directory = self.directory / f"run{self.made}"
        directory.mkdir()
        settings = {"does": {**TRUTH, **(changed or {})}, "seed": 500 + self.made} | settings
        return write_round_trips_bundle(directory, **settings)

    def of_latencies(self, medians: Mapping[str, float] | None = None, **settings: Any) -> Path:
        """An ordinary study of Garage, 100 ms where `medians` says nothing."""
        self.made += 1
        directory = self.directory / f"run{self.made}"
        directory.mkdir()
        rng, of = np.random.default_rng(self.made), medians or {}
        values = {("garage", name): rng.normal(of.get(name, 100.0), 3, 100) for name in ENDPOINTS}
        write_bundle(directory, **{"systems": [GARAGE], "values_ms": values} | settings)
        return directory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def usual(run: Runs) -> list[Path]:
    """Three runs of a store that does as TRUTH says."""
    return [run() for _ in range(3)]


@pytest.fixture(scope="module")
def steady(run: Runs) -> list[Path]:
    """Two ordinary studies of one store."""
    return [run.of_latencies() for _ in range(2)]


@pytest.fixture(autouse=True, scope="module")
def _estimated_once() -> Any:
    """Each bundle once, however often it is compared: the same bundle gives the same estimate."""
    from wanlat.analysis import compare as module

    seen: dict[Path, tuple[RoundTrips, ...]] = {}

    def once(bundle: Any) -> tuple[RoundTrips, ...]:
        if bundle.directory not in seen:
            seen[bundle.directory] = round_trips_of(bundle)
        return seen[bundle.directory]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "round_trips_of", once)
        yield


def held(old: Path, new: Path, **settings: Any) -> Comparison:
    thresholds = settings.pop("thresholds", Thresholds())
    return compare(read_bundle(old), read_bundle(new), thresholds, **settings)


def verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {each.group.endpoint: each.verdict for each in comparison.endpoints}


def failing(comparison: Comparison) -> list[str]:
    return [each.group.endpoint for each in comparison.failing]


def change_of(comparison: Comparison, endpoint: str, quantity: Quantity) -> Change:
    entry = next(each for each in comparison.endpoints if each.group.endpoint == endpoint)
    change = entry.change(quantity)
    assert change is not None
    return change


def test_runs_of_the_same_store_differ_in_nothing(usual: list[Path], steady: list[Path]) -> None:
    """Many more pairs in docs/compare.md."""
    for old, new in permutations(usual, 2):
        found = verdicts(held(old, new, strict=False))
        # Shares of 0.6 differ by a tenth now and then: it is told, and fails nothing.
        assert found.pop("RemoveObject") in (Verdict.SAME, Verdict.NOT_DECIDED)
        assert set(found.values()) == {Verdict.SAME}
    assert set(verdicts(held(*steady)).values()) == {Verdict.SAME}


@pytest.mark.parametrize(
    ("key", "does", "quantity", "difference"),
    [
        (PUT, [Does(1, 3)], Quantity.ROUND_TRIPS, 1),
        (GET, [Does(1, 1)], Quantity.ROUND_TRIPS, 1),
        (LIST, [Does(1, 2.5)], Quantity.ROUND_TRIPS, 1),
        (REMOVE, [Does(0.6, 4), Does(0.4, 2)], Quantity.ROUND_TRIPS, 1),
        (PUT, [Does(0.7, 2), Does(0.3, 3)], Quantity.GAINED, 0.3),
    ],
)
def test_a_round_trip_more_is_found_in_its_endpoint_and_nowhere_else_and_fewer_are_better(
    run: Runs,
    usual: list[Path],
    key: Key,
    does: list[Does],
    quantity: Quantity,
    difference: float,
) -> None:
    more = run({key: does})
    comparison = held(usual[0], more)
    assert failing(comparison) == [key[1]]
    change = change_of(comparison, key[1], quantity)
    assert change.fails
    assert change.difference is not None
    assert change.difference.estimate == pytest.approx(difference, abs=0.11)
    assert change.difference.ci95[0] < difference < change.difference.ci95[1]
    back = held(more, usual[0])
    assert back.passed
    assert verdicts(back)[key[1]] is Verdict.BETTER


def test_a_start_that_draws_other_shares_is_told_and_fails_nothing(run: Runs) -> None:
    """Keys, places of replicas and leaders: what two starts of one store differ in."""
    one = run({PUT: [Does(0.85, 1), Does(0.15, 2)], REMOVE: [Does(0.6, 2), Does(0.4, 2, 45.0)]})
    other = run({PUT: [Does(0.2, 1), Does(0.8, 2)], REMOVE: [Does(0.3, 2), Does(0.7, 2, 45.0)]})
    gate = [Kind.ROUND_TRIPS, Kind.LATENCY, Kind.INTERCEPT]
    for old, new in ((one, other), (other, one)):
        comparison = held(old, new, gate=gate)
        assert comparison.passed
        for endpoint, quantity in (
            ("PutObject", Quantity.ROUND_TRIPS),
            ("PutObject", Quantity.MEAN_ROUND_TRIPS),
            ("PutObject", Quantity.GAINED),
            ("PutObject", Quantity.LATENCY_AT),
            ("RemoveObject", Quantity.INTERCEPT),
            ("RemoveObject", Quantity.LATENCY_AT),
        ):
            change = change_of(comparison, endpoint, quantity)
            assert change.verdict is Verdict.NOT_DECIDED, (endpoint, quantity)
            assert change.reason is Reason.START
    assert not held(one, other, strict=True).passed


def test_two_starts_of_garage_pass_and_minio_of_2021_does_not() -> None:
    """Recorded: docs/results/round-trips."""
    results = Path(__file__).parents[2] / "docs" / "results" / "round-trips"
    usual, again, older = (
        results / name
        for name in ("five-sites", "garage-again-five-sites", "minio-2021-five-sites")
    )
    for one, other, fails in ((usual, again, False), (usual, older, True)):
        for old, new in ((one, other), (other, one)):
            comparison = held(old, new, allow_missing=True)
            assert comparison.passed is not fails, (old.name, new.name)
            assert "ListBuckets" not in failing(comparison)


def test_a_short_run_finds_a_round_trip_too(run: Runs) -> None:
    """Three RTT steps of five requests: what a hurried CI has time for."""
    short: dict[str, Any] = {"rtts_ms": (0.0, 50.0, 100.0), "repeats": 1, "samples": 5}
    old, again, new = (
        run(does={PUT: [Does(1, trips)], GET: [Does(1, 0)]}, **short) for trips in (2, 2, 3)
    )
    assert failing(held(old, new)) == ["PutObject"]
    assert held(old, again).passed


def test_latency_and_intercept_fail_only_where_asked_for(run: Runs, usual: list[Path]) -> None:
    old, new = usual[0], run({PUT: [Does(1, 2, own_ms=33.0)]})
    assert held(old, new).passed
    for gate in (Kind.INTERCEPT, Kind.LATENCY):
        assert failing(held(old, new, gate=[gate])) == ["PutObject"]
    near = run(rtts_ms=(0.0, 20.0, 50.0, 80.0))
    assert held(old, near).at_rtt_ms == 50
    assert held(old, near, at_rtt_ms=60.0).at_rtt_ms == 60
    with pytest.raises(BundleError, match="nobody measured"):
        held(old, near, at_rtt_ms=100.0)


def test_no_number_is_no_pass(run: Runs, usual: list[Path]) -> None:
    """Jitter: a slope would be no number of round trips, in one bundle or in both."""
    good, jittered = usual[0], run(jitter_ms=5.0)
    for old, new in ((good, jittered), (jittered, good), (jittered, jittered)):
        comparison = held(old, new, force=True)
        assert not comparison.passed
        assert set(verdicts(comparison).values()) == {Verdict.NOT_COMPARABLE}
        assert held(old, new, force=True, allow_missing=True).passed


@pytest.mark.parametrize(
    ("old", "new", "limit", "verdict"),
    [
        (100.0, 200.0, Limit(0.1, 5.0), Verdict.WORSE),
        (200.0, 100.0, Limit(0.1, 5.0), Verdict.BETTER),
        (100.0, 107.0, Limit(0.1, 5.0), Verdict.SAME),
        (100.0, 107.0, Limit(0.03), Verdict.WORSE),
        (30.0, 33.5, Limit(0.1, 5.0), Verdict.SAME),  # beyond 10 %, and what machines differ by
    ],
)
def test_a_latency_is_worse_beyond_both_parts_of_its_threshold(
    run: Runs, old: float, new: float, limit: Limit, verdict: Verdict
) -> None:
    before, after = (run.of_latencies({"PutObject": median}) for median in (old, new))
    comparison = held(before, after, thresholds=Thresholds(latency_ms=limit))
    expected = {**dict.fromkeys(ENDPOINTS, Verdict.SAME), "PutObject": verdict}
    assert verdicts(comparison) == expected
    assert comparison.passed is (verdict is not Verdict.WORSE)


def test_more_failures_are_worse_whatever_else_is_looked_at(
    run: Runs, usual: list[Path], steady: list[Path]
) -> None:
    assert failing(held(usual[0], run(failures={PUT: 30}))) == ["PutObject"]
    one = ("garage", "GetObject")
    few, none = (run.of_latencies(failures={one: n}) for n in ((10, 10), (100, 0)))
    assert failing(held(steady[0], few, gate=[Kind.OUTLIERS])) == ["GetObject"]
    assert held(few, steady[0], gate=[Kind.OUTLIERS]).passed
    assert failing(held(steady[0], none, allow_missing=True)) == ["GetObject"]
    # Two of a hundred may be chance: they fail only where it is strict.
    two = run.of_latencies(failures={one: (1, 1)})
    assert verdicts(held(steady[0], two))["GetObject"] is Verdict.NOT_DECIDED
    assert not held(steady[0], two, strict=True).passed
    assert held(two, two, strict=True).passed


def test_every_line_names_its_endpoint_and_what_is_gone_fails(
    run: Runs, usual: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    fewer = run(does={key: TRUTH[key] for key in (GET, PUT)})
    gone, came = held(usual[0], fewer), held(fewer, usual[0])
    assert failing(gone) == ["ListObjects", "RemoveObject"]
    assert held(usual[0], fewer, allow_missing=True).passed
    assert came.passed
    assert verdicts(came)["RemoveObject"] is Verdict.NEW
    for comparison in (gone, came, held(usual[0], run({PUT: [Does(1, 3)]}))):
        print_comparison(comparison, Console(width=400))
        lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
        sentences = [line for line in lines if "modes" in line or "threshold" in line]
        assert sentences
        assert all(line.startswith("quorum ") for line in sentences)


def test_systems_are_matched_by_name_or_as_said(run: Runs) -> None:
    garage, minio = run.of_latencies(), run.of_latencies(systems=[MINIO])
    both = run.of_latencies(systems=[GARAGE, MINIO])
    quorum = run.of_latencies(systems=[QUORUM], endpoints=ENDPOINTS)
    newer = run.of_latencies(systems=[("garage", "2.6.0")])
    assert {each.group.series for each in held(garage, minio).endpoints} == {MINIO}
    assert {each.group.series.version for each in held(garage, newer).endpoints} == {"2.6.0"}
    with pytest.raises(BundleError, match="--as OLD=NEW"):
        held(both, quorum)
    comparison = held(both, quorum, renamed={"minio": "quorum"}, allow_missing=True)
    assert {each.old and each.old.series for each in comparison.endpoints if each.new} == {MINIO}
    with pytest.raises(BundleError, match="no samples of bob"):
        held(both, quorum, renamed={"bob": "quorum"})
    with pytest.raises(BundleError, match="two systems of OLD"):
        held(both, quorum, renamed={"minio": "quorum", "garage": "quorum"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"backend": "netem"}, "backend: wire against netem"),
        ({"study": {"name": "s", "key_mode": "same"}}, "keys: fresh against same"),
        ({"storage": "disk"}, "storage: memory against disk"),
        ({"client": {"node": "n2", "site": "dc2"}}, "client's node: n1 against n2"),
        ({"target": {"node": "n3", "site": "dc3"}}, "target's node: n1 against n3"),
        ({"study": {"name": "s", "object_size": "4KiB"}}, "object size: 1KiB against 4KiB"),
        (
            {"systems": [{"name": "garage", "version": "2.5.0", "options": {"replication": 2}}]},
            "options of garage: replication 3 against 2",
        ),
        (
            {"topology": {"name": "five-sites", "sites": [{"name": "dc1", "nodes": ["n1"]}]}},
            "both are named five-sites, and differ in sites",
        ),
    ],
)
def test_what_was_not_measured_alike_is_refused_and_named(
    run: Runs, change: dict[str, Any], says: str
) -> None:
    base = {
        "study": {"name": "s", "object_size": "1KiB", "key_mode": "fresh"},
        "systems": [{"name": "garage", "version": "2.5.0", "options": {"replication": 3}}],
    }
    old, new = run.of_latencies(manifest=base), run.of_latencies(manifest=base | change)
    with pytest.raises(BundleError, match=says):
        held(old, new)
    assert says in held(old, new, force=True).differs[0]


def test_another_topology_is_refused(run: Runs) -> None:
    with pytest.raises(BundleError, match="five-sites against elsewhere"):
        held(run.of_latencies(), run.of_latencies(topology="elsewhere"))


def test_bundles_that_have_nothing_in_common_are_refused(
    run: Runs, usual: list[Path], steady: list[Path]
) -> None:
    drill = run.of_latencies()
    manifest = json.loads((drill / "manifest.json").read_text())
    manifest |= {"kind": "drill", "drill": manifest.pop("study")}
    (drill / "manifest.json").write_text(json.dumps(manifest))
    others = run.of_latencies(endpoints=("Get", "Put"), values_ms={})
    cases: list[tuple[Path, Path, dict[str, Any], str]] = [
        (usual[0], steady[0], {}, "no figure in common"),
        (steady[0], drill, {}, "wanlat drill matrix"),
        (steady[0], others, {}, "No endpoint is in both"),
        (steady[0], steady[1], {"gate": [Kind.ROUND_TRIPS]}, "wanlat run round-trips"),
        (steady[0], steady[1], {"at_rtt_ms": 100.0}, "--at"),
    ]
    for old, new, settings, says in cases:
        with pytest.raises(BundleError, match=says):
            held(old, new, **settings)
    assert held(*steady, gate=list(Kind)).passed


def test_a_failed_calibration_gives_nothing_to_compare(run: Runs, steady: list[Path]) -> None:
    new = run.of_latencies()
    calibration = json.loads((new / "calibration.json").read_text())
    calibration["verdict"] = calibration["pairs"][0]["verdict"] = "fail"
    (new / "calibration.json").write_text(json.dumps(calibration))
    comparison = held(steady[0], new)
    assert set(verdicts(comparison).values()) == {Verdict.NOT_COMPARABLE}
    assert "NEW: its calibration failed" in document(comparison)["gate"]["failures"][0]
    assert held(steady[0], new, allow_missing=True).passed


def test_the_document_has_the_keys_that_scripts_read(run: Runs, usual: list[Path]) -> None:
    made = document(held(usual[0], run({PUT: [Does(1, 3)]})))
    assert made == json.loads(json.dumps(made, allow_nan=False))
    assert (made["kind"], made["at_rtt_ms"]) == ("round-trips", 100)
    assert made["gate"]["kinds"] == ["round-trips", "failures"]
    assert (made["gate"]["passed"], made["counts"]["worse"]) == (False, 1)
    assert "PutObject" in made["gate"]["failures"][0]
    entry = next(each for each in made["endpoints"] if each["fails"])
    assert entry["modes"]["new"][0]["round_trips"] == pytest.approx(3, abs=0.02)
    fails = {each["quantity"]: each for each in entry["changes"] if each["fails"]}
    assert set(fails) == {"round_trips", "mean_round_trips", "gained_round_trips"}
    change = fails["round_trips"]
    assert change["difference"] == pytest.approx(change["new"] - change["old"], abs=1e-5)
    assert "+1.0" in change["sentence"]


def with_chain(entry: RoundTrips, trips: Sequence[float], cost: float = 1000.0) -> RoundTrips:
    """The same with a packet record: the critical path of each request, and its bytes."""
    chain = np.resize(np.array(trips, dtype=float), entry.points.step.size)
    levels, counts = np.unique(chain, return_counts=True)
    return replace(
        entry,
        chain_round_trips=float(levels[counts.argmax()]),
        wan_bytes=cost,
        wan_bytes_ci95=(cost - 20, cost + 20),
        points=replace(entry.points, chain=chain),
    )


def judged(old: RoundTrips, new: RoundTrips, **settings: bool) -> dict[str, Change]:
    rules = Rules(Thresholds(), (Kind.ROUND_TRIPS, Kind.FAILURES), **settings)
    sides = of_round_trips(old, new, 100.0, 0.25), of_round_trips(new, old, 100.0, 0.25)
    (changes,) = judge([of_figures(*sides, rules.thresholds)], rules)
    return {change.quantity.key: change for change in changes}


@pytest.fixture(scope="module")
def puts(usual: list[Path]) -> list[RoundTrips]:
    """PutObject of two runs of one store."""
    entries = [round_trips_of(read_bundle(path)) for path in usual[:2]]
    return [next(each for each in of if each.endpoint == "PutObject") for of in entries]


@pytest.mark.parametrize(
    ("paths", "fails"),
    [
        ([3], {"chain_round_trips", "gained_chain"}),
        ([2] * 7 + [3] * 3, {"gained_chain"}),
        ([2] * 49 + [4], set()),
    ],
)
def test_a_longer_critical_path_is_worse_though_the_slope_is_the_same(
    puts: list[RoundTrips], paths: list[float], fails: set[str]
) -> None:
    changes = judged(with_chain(puts[0], [2]), with_chain(puts[1], paths, cost=3000.0))
    assert {key for key, change in changes.items() if change.fails} == fails
    assert overall(list(changes.values())) is (Verdict.WORSE if fails else Verdict.SAME)
    assert changes["wan_bytes"].verdict is Verdict.WORSE  # told, and not in the gate


def test_of_two_answers_one_is_enough_unless_it_is_strict(puts: list[RoundTrips]) -> None:
    """A machine too busy for a straight line moved no packet; --no-capture changes no slope."""
    old, new = (with_chain(each, [2]) for each in puts)
    bent = replace(new, why="Not a line: the latencies bend.")
    bare = replace(puts[1], why_no_chain="no packets were recorded.")
    for other, missing in ((bent, "round_trips"), (bare, "chain_round_trips")):
        changes = judged(old, other)
        assert changes[missing].verdict is Verdict.NOT_COMPARABLE
        assert str(other.why or other.why_no_chain) in str(changes[missing].why)
        assert overall(list(changes.values())) is Verdict.SAME
        assert not any(change.fails for change in changes.values())
        assert any(change.fails for change in judged(old, other, strict=True).values())
    neither = replace(bent, chain_round_trips=None, points=bare.points)
    assert overall(list(judged(old, neither).values())) is Verdict.NOT_COMPARABLE
    assert not any(each.fails for each in judged(old, neither, allow_missing=True).values())
    assert judged(old, with_chain(bent, [3]))["chain_round_trips"].fails
