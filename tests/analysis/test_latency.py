"""Latencies of single requests: counted and averaged as they should be, and said in RTTs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers import changing

from tests.bundles import BOB, BOB_ENDPOINTS, BOTH, GARAGE, QUORUM, MakeBundle
from wanlat.analysis import statistics
from wanlat.analysis.figures.in_rtts import InWords, in_rtts_of
from wanlat.analysis.figures.latency import EndpointSummary
from wanlat.analysis.stats import intervals
from wanlat.analysis.summary import Summary, summarize
from wanlat.bundle.documents import Manifest
from wanlat.bundle.run import read_run

ONLY_BOB: dict[str, Any] = {"systems": [BOB], "endpoints": ["Get", "Ping"], "placed": {"bob": BOTH}}
SPREAD_MS = [100 + (i * 7919) % 83 / 3 for i in range(100)]

pytestmark = pytest.mark.usefixtures("few_resamples")


def summary_of(path: Path) -> Summary:
    return summarize(read_run(path))


def row_of(summary: Summary, system: str, endpoint: str) -> dict[str, Any]:
    """The entry of an endpoint in summary.json, of which there is one."""
    rows = summary.to_json()["endpoints"]
    (row,) = (r for r in rows if (r["system"], r["endpoint"]) == (system, endpoint))
    return row


def entry_of(
    summary: Summary, system: str, endpoint: str, placement: str = "unknown"
) -> EndpointSummary:
    """The entry of an endpoint, of which there is one."""
    of = (system, endpoint, placement)
    every = summary.endpoints
    (entry,) = (e for e in every if (e.series.system, e.endpoint, e.placement) == of)
    return entry


def test_figures_are_of_the_samples_that_succeeded(make_bundle: MakeBundle) -> None:
    values = [100.0 + 0.5 * i for i in range(100)]
    failures = {("garage", "PutObject"): (6, 4), ("minio", "GetObject"): (10, 90)}
    measured = {
        ("garage", "GetObject"): values,
        ("garage", "PutObject"): [100.0] * 50 + [120.0] * 50,
    }
    summary = summary_of(make_bundle(values_ms=measured, failures=failures))
    document = json.loads(summary.to_text())
    assert {"n", "percentiles", "mean_ci95_ms", "outliers"} <= document["definitions"].keys()
    facts = document["bundle"]
    assert (facts["study"], facts["topology"]) == ("endpoint-latency", "five-sites")
    assert (facts["status"], facts["seed"], facts["calibration"]) == ("complete", 7, "pass")
    assert 100 < facts["measured_rtt_ms"]["median"] < 101
    entries = document["endpoints"]
    assert len(entries) == 10
    for entry in entries:
        assert entry["n"] == entry["ok"] + entry["fail"] + entry["unknown"] == 100
        if entry["ok"]:
            low, high = entry["mean_ci95_ms"]
            assert low < entry["mean_ms"] < high
            ordered = [entry[f"{name}_ms"] for name in ("min", "median", "p95", "p99", "max")]
            assert sorted(ordered) == ordered
            assert ordered[-1] < 5000  # warm-up takes 88 and 99 seconds, and counts nowhere
    got = row_of(summary, "garage", "GetObject")
    assert (got["min_ms"], got["max_ms"]) == (100.0, 149.5)
    for key, expected in {
        "mean_ms": np.mean(values),
        "median_ms": np.median(values),
        "p95_ms": np.percentile(values, 95),
        "p99_ms": np.percentile(values, 99),
        "first_byte_median_ms": 0.99 * np.median(values),
    }.items():
        assert got[key] == pytest.approx(expected)
    spoilt = entry_of(summary, "garage", "PutObject")
    assert (spoilt.n, spoilt.ok, spoilt.fail, spoilt.unknown) == (100, 90, 6, 4)
    assert spoilt.latency is not None
    assert spoilt.latency.mean_ms == pytest.approx((40 * 100 + 50 * 120) / 90)
    assert spoilt.latency.min_ms == 100.0  # a failed request's duration would be 0.000001
    failed = row_of(summary, "minio", "GetObject")
    assert (failed["n"], failed["ok"]) == (100, 0)
    assert all(failed[f"{name}_ms"] is None for name in ("mean", "median", "min", "max", "p99"))


def test_the_interval_of_very_many_requests_is_that_of_the_bootstrap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 9999)
    rng = np.random.default_rng(3)
    stalls = rng.normal(100, 3, 2000) + 2000 * (rng.random(2000) < 0.01)
    drawn = statistics.mean_interval(stalls, 1)
    monkeypatch.setattr(statistics, "MAX_N_FOR_BOOTSTRAP", 1999)
    computed = statistics.mean_interval(stalls, 1)
    assert drawn is not None and computed is not None
    # Student's bounds are off by 9 %.
    assert computed == pytest.approx(drawn, abs=0.03 * (drawn[1] - drawn[0]))


def test_an_interval_depends_on_its_own_requests_alone(make_bundle: MakeBundle) -> None:
    values: dict[Any, Any] = {("garage", "GetObject"): SPREAD_MS}
    alone = make_bundle(name="alone", systems=[GARAGE], endpoints=["GetObject"], values_ms=values)
    among = make_bundle(name="among", systems=[QUORUM, GARAGE], values_ms=values)
    found = [entry_of(summary_of(path), "garage", "GetObject").latency for path in (alone, among)]
    assert found[0] is not None and found[1] is not None
    # Samples come in another shuffled order, of which resampling by position makes a little.
    assert found[0].mean_ci95_ms == pytest.approx(found[1].mean_ci95_ms, abs=0.3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"manifest": {"status": "interrupted", "reason": "Ctrl-C"}}, "interrupted (Ctrl-C)"),
        ({"manifest": {"status": "running"}}, "The run was killed"),
        ({"manifest": {"status": "failed", "reason": "disk full"}}, "failed (disk full)"),
        ({"failures": {("minio", "PutObject"): (2, 1)}}, "PutObject 2 fail, 1 unknown of 100"),
        ({"n": 50}, "p99 rests on fewer than 100 successful requests"),
        ({"n": 10}, "No interval of the mean from fewer than 20"),
        ({"rtt_ms": None}, "stored no calibration"),
        ({"manifest": {"warnings": ["3 packets were dropped"]}}, "3 packets were dropped"),
        (
            {"manifest": {"systems": [{"name": "bob", "version": "2.1", "title": "Bob"}]}},
            "Not one measured sample of Bob 2.1",
        ),
        (
            {"systems": [BOB], "endpoints": BOB_ENDPOINTS, "placed": {"bob": ["local"]}, "n": 20},
            "nothing is known of the other: Bob 2.1.0-alpha.12 local.",
        ),
        (
            {**ONLY_BOB, "failures": {("bob", "Get"): (2, 1)}},
            "Bob Get, local 2 fail, 1 unknown of 100",
        ),
    ],
)
def test_what_a_reader_must_know_is_noted(
    make_bundle: MakeBundle, settings: dict[str, Any], said: str
) -> None:
    notes = summary_of(make_bundle(**settings)).notes
    assert any(said in note for note in notes), notes


# --- in RTTs


def about(*middles_ms: float, n: int = 100, spread_ms: float = 0.3) -> list[float]:
    """Latencies around each of `middles_ms` in turn, as if the RTT were 100.2 ms and not 100."""
    rng = np.random.default_rng(5)
    around = [middles_ms[i % len(middles_ms)] * 1.002 for i in range(n)]
    return [middle + float(rng.normal(0, spread_ms)) for middle in around]


def said_of(path: Path) -> InWords:
    said = in_rtts_of(read_run(path))
    assert said is not None
    return said


def of_one(values_ms: list[float], **settings: Any) -> dict[str, Any]:
    """Settings of a bundle with one endpoint of one system whose requests took `values_ms`."""
    values = {("garage", "GetObject"): values_ms}
    return {"systems": [GARAGE], "endpoints": ["GetObject"], "values_ms": values, **settings}


def knowing(key: str, number: float) -> dict[str, Any]:
    """A manifest that knows so many round trips of that endpoint beforehand."""
    entry = {"endpoint": "GetObject", "placement": "unknown", "round_trips": number}
    return {"systems": [{"name": GARAGE[0], "version": GARAGE[1], key: [entry | {"why": "so"}]}]}


def recalibrated(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The bundle in `path` after its calibration was changed."""
    with changing(path / "calibration.json") as document:
        change(document)
    return path


PROMISED, LEAST = knowing("promised_round_trips", 2.0), knowing("least_round_trips", 1.0)
NONE_OK = {"failures": {("garage", "GetObject"): (5, 0)}}
# Median and mean are 2.00, and 60 requests of 200 take something else.
MIXED = about(*[200, 100, 200, 300] + [200] * 9 + [100, 300], n=210, spread_ms=0.5)


@pytest.mark.parametrize(
    ("values_ms", "settings", "number", "sentence"),
    [
        (about(200.0), {}, 2, "2.00 × RTT: two round trips"),
        (about(200.0), {"manifest": PROMISED}, 2, "as the protocol promises"),
        (about(300.0), {"manifest": PROMISED}, 3, "where the protocol by itself takes two"),
        (about(100.0), {"manifest": LEAST}, 1, "one round trip, the fewest"),
        (about(300.0), {"manifest": LEAST}, 3, "the fewest that its replicas allow: one"),
        (about(1.0, spread_ms=0.1), {"manifest": LEAST}, 0, "fewer than its replicas allow if"),
        (about(0.4, spread_ms=0.05), {}, 0, "no round trip, answered by the node"),
        (about(0.9), {"sites": 3, "nodes_a_site": 2}, 0, "no round trip between sites"),
        (about(112.0), {}, None, "not a whole number"),  # slowest of several answers
        (about(101.0, 201.0), {}, None, "not a whole number"),
        ([*about(200.0, n=94), *[2500.0] * 6], {}, None, "not a whole number"),  # mean elsewhere
        (MIXED, {}, None, "no one number of round trips"),
        (about(100.0, n=8), {}, None, "too few requests"),
        (about(4.0), {"rtt_ms": 2.0, "jitter_ms": 0.0}, None, "on so short an RTT"),
        ([1.25] * 30, {"sites": 1, "nodes_a_site": 3}, None, "1.25 ms"),
        (about(100.0, n=5), NONE_OK, None, "no request succeeded"),
    ],
)
def test_a_number_of_round_trips_is_said_where_the_figures_support_it(
    make_bundle: MakeBundle,
    values_ms: list[float],
    settings: dict[str, Any],
    number: int | None,
    sentence: str,
) -> None:
    said = said_of(make_bundle(**of_one(values_ms, **settings)))
    (row,) = said.rows
    assert sentence in row["sentence"] and row["round_trips"] == number
    assert ("promises" in row["sentence"]) == ("promises" in sentence)
    asides = " ".join(said.asides)
    assert ("wanlat run round-trips" in asides) == (row["rtts"] is not None and number is None)
    assert "one cluster" in asides


def test_where_no_rtt_speaks_for_all_pairs_nothing_is_said_in_rtts(make_bundle: MakeBundle) -> None:
    def far(document: dict[str, Any]) -> None:
        for pair in document["pairs"]:
            if "n5" in (pair["from"], pair["to"]):
                pair["rtt_ms"]["p50"] = 180.0

    def fail(document: dict[str, Any]) -> None:
        document["pairs"][0]["verdict"] = document["verdict"] = "fail"

    path = make_bundle(name="unlike", systems=[GARAGE], n=20)
    none = said_of(make_bundle(**of_one(about(100.0), rtt_ms=None)))
    unlike, failed = said_of(recalibrated(path, far)), said_of(recalibrated(path, fail))
    reasons = ("was not measured", "differ from one pair of sites", "calibration failed")
    for said, reason in zip((none, unlike, failed), reasons, strict=True):
        assert said.to_json()["endpoints"] == [] and reason in (said.why_not or "")
    for other in ("load", "reclaim"):
        bundle = read_run(path)
        study = {"name": "mine", "endpoints": ["GetObject"], other: {"workers": 1}}
        changed = {**bundle.manifest.model_dump(exclude_unset=True), "study": study}
        assert in_rtts_of(replace(bundle, manifest=Manifest.model_validate(changed))) is None
