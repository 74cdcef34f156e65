"""Two runs compared: no false alarm, nothing overlooked, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers import changing

from tests.bundles import (
    ENDPOINTS,
    GARAGE,
    MINIO,
    QUORUM,
    Does,
    Key,
    write_bundle,
    write_round_trips_bundle,
)
from wanlat.analysis.compare import Comparison, Kind, Limit, Thresholds, Verdict, compare
from wanlat.analysis.compare import differences as diff
from wanlat.analysis.compare.judge import Change, Reason, Rules, judge, overall
from wanlat.analysis.compare.report import document, print_comparison, sentence
from wanlat.analysis.figures.round_trips import RoundTrips, round_trips_of
from wanlat.analysis.stats.intervals import of_mean, wilson
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import read_run

STEPS = 15
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


# --- differences ---------------------------------------------------------------------------------


def test_differences_are_held_19_times_in_20_and_alarms_are_as_rare_as_said() -> None:
    rng = np.random.default_rng(1)
    held = alarms = of_shares = 0
    for _ in range(400):
        old, new, same = rng.exponential(10, 100), rng.exponential(10, 60), rng.exponential(10, 60)
        new += 5
        found = diff.of_intervals(old.mean(), of_mean(old), new.mean(), of_mean(new), (99, 59))
        held += found.ci95[0] <= 5 <= found.ci95[1]
        found = diff.of_intervals(old.mean(), of_mean(old), same.mean(), of_mean(same), (99, 59))
        alarms += found.p < 0.005
        n, m = int(rng.binomial(60, 0.2)), int(rng.binomial(60, 0.2))
        of_shares += diff.of_intervals(n / 60, wilson(n, 60), m / 60, wilson(m, 60)).p < 0.005
    assert 365 <= held <= 395
    assert max(alarms, of_shares) <= 10  # 4 of 400 are expected, 2 on each side
    # Newcombe 1998, table II, method 10.
    newcombe = diff.of_intervals(48 / 80, wilson(48, 80), 56 / 70, wilson(56, 70))
    assert newcombe.ci95 == pytest.approx((0.0524, 0.3339), abs=5e-5)
    half = 1.959963984540054 * 0.1
    far = diff.of_intervals(1.0, (1 - half, 1 + half), 2.0, (2 - half, 2 + half))
    assert 1e-14 < far.p < 1e-11  # 7.07 standard deviations: 8e-13


def ways(*parts: tuple[float, int]) -> diff.Ways:
    """So many requests of so many round trips each, over all RTT steps alike."""
    costs = np.concatenate([np.full(n, cost, dtype=float) for cost, n in parts])
    return diff.Ways(costs, np.arange(costs.size) % STEPS)


@pytest.mark.parametrize(
    ("old", "new", "sure", "anyhow"),
    [
        # A way that OLD did not have.
        ([(1, 200)], [(1, 140), (2, 60)], 0.3, 0.3),
        # One more in all of them, though some ways are those of others before.
        ([(1, 140), (2, 60)], [(2, 140), (3, 60)], 0.7, 0.7),
        # A way that NEW no longer has.
        ([(1, 120), (2, 80)], [(2, 200)], 0.6, 0.6),
        # Shares of ways that both have: a start draws them, unless nearly all moved.
        ([(1, 140), (3, 60)], [(1, 80), (3, 120)], 0.0, 0.3),
        ([(1, 90), (2, 90), (3, 20)], [(1, 11), (2, 169), (3, 20)], 0.0, 0.395),
        ([(1, 186), (2, 14)], [(1, 12), (2, 188)], 0.87, 0.87),
        # A stray request does not make a way; nothing gained, and some that lost.
        ([(2, 196), (3, 4)], [(2, 140), (3, 60)], 0.28, 0.28),
        ([(1, 200)], [(1.2, 200)], 0.0, 0.0),
        ([(5, 100), (9, 100)], [(5, 140), (7, 60)], 0.0, 0.0),
        # What is not known is no gain: slow before, fast after.
        ([(1, 140), (np.nan, 60)], [(1, 140), (2, 60)], 0.0, 0.0),
    ],
)
def test_only_ways_count_that_one_of_the_runs_has_not(
    old: list[tuple[float, int]], new: list[tuple[float, int]], sure: float, anyhow: float
) -> None:
    found_any, found_sure = diff.gain(ways(*old), ways(*new), 0.25)
    assert found_sure.estimate == pytest.approx(sure)
    assert found_any.estimate == pytest.approx(anyhow)
    assert (found_sure.p < 1e-6) is (sure > 0)


def test_requests_of_one_rtt_step_that_all_go_one_way_count_as_one() -> None:
    rng = np.random.default_rng(3)
    step = np.repeat(np.arange(STEPS), STEPS)
    together = np.repeat(rng.random(STEPS) < 0.4, STEPS)
    assert diff.step_effect(together, step) == pytest.approx(STEPS, rel=0.2)
    alone = [diff.step_effect(rng.random(225) < 0.4, step) for _ in range(200)]
    assert 1 <= np.mean(alone) < 1.3
    # A leader that moves now and then, and a way that OLD happened not to go, is no alarm.
    found = []
    for _ in range(100):
        runs = [np.repeat(rng.random(STEPS) < 0.1, STEPS).astype(float) for _ in range(2)]
        found.append(diff.gain(diff.Ways(runs[0], step), diff.Ways(runs[1], step), 0.25)[1])
    assert sum(each.estimate > 0.1 for each in found) > 10
    assert sum(each.p < 0.005 for each in found) <= 2  # none is expected


# --- studies -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes a run of a store that does as TRUTH says, and as told, with noise of its own."""
    seeds = count(501)

    def make(changed: Mapping[Key, Sequence[Does]] | None = None, **settings: Any) -> Path:
        made = {"does": {**TRUTH, **(changed or {})}, "seed": next(seeds)} | settings
        return write_round_trips_bundle(tmp_path_factory.mktemp("run"), **made)

    return make


@pytest.fixture(scope="module")
def latencies(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes an ordinary study of Garage, 100 ms where nothing else is said."""
    seeds = count(1)

    def make(medians: Mapping[str, float] | None = None, **settings: Any) -> Path:
        rng, of = np.random.default_rng(next(seeds)), medians or {}
        values = {("garage", name): rng.normal(of.get(name, 100.0), 3, 100) for name in ENDPOINTS}
        made = {"systems": [GARAGE], "values_ms": values} | settings
        directory = tmp_path_factory.mktemp("run")
        write_bundle(directory, **made)
        return directory

    return make


@pytest.fixture(scope="module")
def usual(run: Any) -> list[Path]:
    """Two runs of a store that does as TRUTH says."""
    return [run() for _ in range(2)]


@pytest.fixture(scope="module")
def steady(latencies: Any) -> list[Path]:
    """Two ordinary studies of one store."""
    return [latencies() for _ in range(2)]


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
    return compare(read_run(old), read_run(new), thresholds, **settings)


def verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {each["endpoint"]: each["verdict"] for each in comparison.endpoints}


def failing(comparison: Comparison) -> list[str]:
    return [each["endpoint"] for each in comparison.failing]


def change_of(comparison: Comparison, endpoint: str, quantity: str) -> Change:
    entry = next(each for each in comparison.endpoints if each["endpoint"] == endpoint)
    return next(each for each in entry["changes"] if each.quantity == quantity)


def test_runs_of_the_same_store_differ_in_nothing(usual: list[Path], steady: list[Path]) -> None:
    """Many more pairs in docs/results/instrument/README.md."""
    for old, new in permutations(usual):
        found = verdicts(held(old, new))
        # Shares of 0.6 differ by a tenth now and then: it is told, and fails nothing.
        assert found.pop("RemoveObject") in (Verdict.SAME, Verdict.NOT_DECIDED)
        assert set(found.values()) == {Verdict.SAME}
    assert set(verdicts(held(*steady)).values()) == {Verdict.SAME}


@pytest.mark.parametrize(
    ("key", "does", "quantity", "difference"),
    [
        (PUT, [Does(1, 3)], "round_trips", 1),
        (LIST, [Does(1, 2.5)], "round_trips", 1),
        (REMOVE, [Does(0.6, 4), Does(0.4, 2)], "round_trips", 1),
        (PUT, [Does(0.7, 2), Does(0.3, 3)], "gained_round_trips", 0.3),
    ],
)
def test_a_round_trip_more_is_found_in_its_endpoint_and_nowhere_else_and_fewer_are_better(
    run: Any, usual: list[Path], key: Key, does: list[Does], quantity: str, difference: float
) -> None:
    more = run({key: does})
    comparison = held(usual[0], more)
    assert failing(comparison) == [key[1]]
    change = change_of(comparison, key[1], quantity)
    assert change.fails
    assert change.ci95 is not None
    assert change.difference == pytest.approx(difference, abs=0.11)
    assert change.ci95[0] < difference < change.ci95[1]
    back = held(more, usual[0])
    assert back.passed
    assert verdicts(back)[key[1]] is Verdict.BETTER


def test_a_start_that_draws_other_shares_is_told_and_fails_nothing(run: Any) -> None:
    """Keys, places of replicas and leaders: what two starts of one store differ in."""
    one = run({PUT: [Does(0.85, 1), Does(0.15, 2)], REMOVE: [Does(0.6, 2), Does(0.4, 2, 45.0)]})
    other = run({PUT: [Does(0.2, 1), Does(0.8, 2)], REMOVE: [Does(0.3, 2), Does(0.7, 2, 45.0)]})
    gate = [Kind.ROUND_TRIPS, Kind.LATENCY, Kind.INTERCEPT]
    of_put = ("round_trips", "gained_round_trips", "latency_at_rtt_ms")
    for old, new in ((one, other), (other, one)):
        comparison = held(old, new, gate=gate)
        assert comparison.passed
        moved = [change_of(comparison, "PutObject", quantity) for quantity in of_put]
        moved.append(change_of(comparison, "RemoveObject", "intercept_ms"))
        assert {change.why for change in moved} == {Reason.START}
        assert {change.verdict for change in moved} == {Verdict.NOT_DECIDED}
    assert not held(one, other, strict=True).passed


def test_latencies_of_round_trips_are_compared_at_the_rtt_that_is_asked_for(
    run: Any, usual: list[Path], steady: list[Path]
) -> None:
    """A round trip more is as long as the RTT at which it is looked at, and no longer."""
    more, settings = run({PUT: [Does(1, 3)]}), {"gate": [Kind.LATENCY]}
    limit = Thresholds(latency_ms=Limit(0.0, 40.0))
    for at_rtt_ms, fails in ((25.0, []), (100.0, ["PutObject"])):
        found = held(usual[0], more, thresholds=limit, at_rtt_ms=at_rtt_ms, **settings)
        assert (found.at_rtt_ms, failing(found)) == (at_rtt_ms, fails)
    for old, new, says in ((*usual, "at_rtt_ms 900: both measured"), (*steady, "at_rtt_ms is of")):
        with pytest.raises(BundleError, match=says):
            held(old, new, at_rtt_ms=900.0)


def test_no_number_is_no_pass(run: Any, usual: list[Path]) -> None:
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
    latencies: Any, old: float, new: float, limit: Limit, verdict: Verdict
) -> None:
    before, after = (latencies({"PutObject": median}) for median in (old, new))
    comparison = held(before, after, thresholds=Thresholds(latency_ms=limit))
    expected = {**dict.fromkeys(ENDPOINTS, Verdict.SAME), "PutObject": verdict}
    assert verdicts(comparison) == expected
    assert comparison.passed is (verdict is not Verdict.WORSE)


def test_more_failures_are_worse_whatever_else_is_looked_at(
    run: Any, latencies: Any, usual: list[Path], steady: list[Path]
) -> None:
    assert failing(held(usual[0], run(failures={PUT: 30}))) == ["PutObject"]
    one = ("garage", "GetObject")
    few, none = (latencies(failures={one: n}) for n in ((10, 10), (100, 0)))
    assert failing(held(steady[0], few, gate=[Kind.OUTLIERS])) == ["GetObject"]
    assert held(few, steady[0], gate=[Kind.OUTLIERS]).passed
    assert failing(held(steady[0], none, allow_missing=True)) == ["GetObject"]
    # Two of a hundred may be chance: they fail only where it is strict.
    two = latencies(failures={one: (1, 1)})
    assert verdicts(held(steady[0], two))["GetObject"] is Verdict.NOT_DECIDED
    assert not held(steady[0], two, strict=True).passed
    assert held(two, two, strict=True).passed


def test_every_line_names_its_endpoint_and_what_is_gone_fails(
    run: Any, usual: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    fewer = run(does={key: TRUTH[key] for key in (GET, PUT)})
    gone, came = held(usual[0], fewer), held(fewer, usual[0])
    assert failing(gone) == ["ListObjects", "RemoveObject"]
    assert held(usual[0], fewer, allow_missing=True).passed
    assert came.passed
    assert verdicts(came)["RemoveObject"] is Verdict.NEW
    worse = held(usual[0], run({PUT: [Does(1, 3)]}))
    for comparison in (gone, came, worse):
        print_comparison(comparison, Console(width=400))
    lines = [line for line in capsys.readouterr().out.splitlines() if "threshold" in line]
    assert lines
    assert all(line.startswith("quorum ") for line in lines)

    made = document(worse)
    assert made == json.loads(json.dumps(made, allow_nan=False))
    assert (made["kind"], made["at_rtt_ms"]) == ("round-trips", 100)
    assert made["gate"]["kinds"] == ["round-trips", "failures"]
    assert (made["gate"]["passed"], made["counts"]["worse"]) == (False, 1)
    assert "PutObject" in made["gate"]["failures"][0]
    entry = next(each for each in made["endpoints"] if each["fails"])
    fails = {each["quantity"]: each for each in entry["changes"] if each["fails"]}
    assert set(fails) == {"round_trips", "gained_round_trips"}
    change = fails["round_trips"]
    assert change["difference"] == pytest.approx(change["new"] - change["old"], abs=1e-5)
    assert "+1.0" in change["sentence"]


def test_systems_are_matched_by_name_or_as_said(latencies: Any) -> None:
    garage, minio = latencies(), latencies(systems=[MINIO])
    both = latencies(systems=[GARAGE, MINIO])
    quorum = latencies(systems=[QUORUM], endpoints=ENDPOINTS)
    newer = latencies(systems=[("garage", "2.6.0")])
    assert {each["system"] for each in held(garage, minio).endpoints} == {"minio"}
    assert {each["new_version"] for each in held(garage, newer).endpoints} == {"2.6.0"}
    comparison = held(both, quorum, renamed={"minio": "quorum"}, allow_missing=True)
    assert {each["old_system"] for each in comparison.endpoints if each["new_version"]} == {"minio"}
    for renamed, says in (
        ({}, "--as OLD=NEW"),
        ({"bob": "quorum"}, "--as OLD=NEW"),
        ({"minio": "quorum", "garage": "quorum"}, "two systems of OLD"),
    ):
        with pytest.raises(BundleError, match=says):
            held(both, quorum, renamed=renamed)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"backend": "netem"}, "backend: wire against netem"),
        ({"client": {"node": "n2", "site": "dc2"}}, "client's node: n1 against n2"),
        ({"study": {"name": "s", "object_size": "4KiB"}}, "object size: 1KiB against 4KiB"),
        (
            {"systems": [{"name": "garage", "version": "2.5.0", "options": {"replication": 2}}]},
            "option replication of garage: 3 against 2",
        ),
        ({"topology": {"name": "five-sites", "sites": [{"name": "dc1"}]}}, "sites: "),
        (
            {"topology": {"name": "five-sites", "links": {"default": {"rtt": "50ms"}}}},
            "links.default.rtt: 100ms against 50ms",
        ),
        ({}, "calibration"),
    ],
)
def test_what_was_not_measured_alike_is_refused_and_named(
    latencies: Any, change: dict[str, Any], says: str
) -> None:
    base = {
        "study": {"name": "s", "object_size": "1KiB", "key_mode": "fresh"},
        "systems": [{"name": "garage", "version": "2.5.0", "options": {"replication": 3}}],
        "topology": {"name": "five-sites", "sites": [], "links": {"default": {"rtt": "100ms"}}},
    }
    old, new = latencies(manifest=base), latencies(manifest=base | change)
    if not change:
        with changing(new / "calibration.json") as calibration:
            calibration["verdict"] = calibration["pairs"][0]["verdict"] = "fail"
    with pytest.raises(BundleError, match=says):
        held(old, new)
    assert any(says in differs for differs in held(old, new, force=True).differs)


@pytest.mark.parametrize("lost", ["the end of the run", "half of a line", "the calibration"])
def test_what_lacks_evidence_does_not_pass(latencies: Any, lost: str) -> None:
    old, new = latencies(), latencies()
    assert held(old, new).passed
    if lost == "the end of the run":
        with changing(new / "manifest.json") as manifest:
            manifest["status"] = "interrupted"
    elif lost == "half of a line":
        rows = read_run(new).samples.to_json(orient="records", lines=True)
        (new / "samples.jsonl").write_text(rows[:-40])
    else:
        (new / "calibration.json").unlink()
    with pytest.raises(BundleError, match="NEW"):
        held(old, new)
    assert held(old, new, force=True).differs


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


@pytest.fixture(scope="module")
def puts(usual: list[Path]) -> list[RoundTrips]:
    """PutObject of two runs of one store."""
    entries = [round_trips_of(read_run(path)) for path in usual]
    return [next(each for each in of if each.endpoint == "PutObject") for of in entries]


def judged(old: RoundTrips, new: RoundTrips, **settings: bool) -> dict[str, Change]:
    rules = Rules(Thresholds(), (Kind.ROUND_TRIPS, Kind.FAILURES), **settings)
    one, other = (diff.of_round_trips(*pair, 100.0, 0.25) for pair in ((old, new), (new, old)))
    changes = diff.of_figures(one, other, rules.thresholds)
    judge([changes], rules)
    return {change.quantity: change for change in changes}


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


def test_sentences_on_latencies_have_their_unit(latencies: Any) -> None:
    (endpoint, *_) = held(latencies(), latencies()).endpoints
    said = [sentence(each) for each in endpoint["changes"] if each.definition.unit == "ms"]
    assert len(said) == 2
    for text in said:
        assert re.search(r"\d ms, .*\(threshold [\d.]+ ms\)", text), text


def test_programs_of_one_version_that_are_not_the_same_are_noted(latencies: Any) -> None:
    store = {"name": "garage", "version": "2.5.0", "sha256": "a" * 64, "files": {"hooks.py": "a"}}
    tools = [{"name": "oneshot", "version": "1", "sha256": "a" * 64}]
    base = {"systems": [store], "instruments": tools}
    old = latencies(manifest=base)

    def notes(**change: Any) -> str:
        return " ".join(held(old, latencies(manifest=base | change)).notes)

    assert "not the same" not in notes()
    assert "garage: `hooks.py`" in notes(systems=[store | {"files": {"hooks.py": "b"}}])
    assert "garage: its program" in notes(systems=[store | {"sha256": "b" * 64}])
    # Another version is what a comparison is of.
    newer = store | {"version": "2.6.0", "sha256": "b" * 64}
    assert "not the same" not in notes(systems=[newer])
    assert "oneshot" in notes(instruments=[tools[0] | {"sha256": "b" * 64}])
