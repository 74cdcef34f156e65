"""summary.json has the design's keys, counts what it should and averages nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_bundles import ENDPOINTS, GARAGE, MINIO, MINIO_RELEASE, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.summary import EndpointSummary, Summary, summarize

DESIGN_KEYS = {
    *("system", "version", "topology", "endpoint", "n", "ok", "fail", "unknown"),
    *("mean_ms", "median_ms", "min_ms", "max_ms", "p95_ms", "p99_ms", "mean_ci95_ms"),
}


def entry_of(summary: Summary, system: str, endpoint: str) -> EndpointSummary:
    return next(
        e for e in summary.endpoints if e.series.system == system and e.endpoint == endpoint
    )


def document_of(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(summarize(read_bundle(path)).to_text())
    return document


def test_entries_have_the_keys_of_the_design(make_bundle: MakeBundle) -> None:
    document = document_of(make_bundle())
    assert len(document["endpoints"]) == 10
    for entry in document["endpoints"]:
        assert not DESIGN_KEYS - entry.keys()
        low, high = entry["mean_ci95_ms"]
        assert low < entry["mean_ms"] < high
        assert entry["min_ms"] <= entry["median_ms"] <= entry["p95_ms"] <= entry["p99_ms"]
        assert entry["p99_ms"] <= entry["max_ms"]


def test_the_run_is_described(make_bundle: MakeBundle) -> None:
    facts = document_of(make_bundle())["bundle"]
    assert facts["study"] == "endpoint-latency"
    assert facts["topology"] == "five-sites"
    assert (facts["status"], facts["seed"], facts["calibration"]) == ("complete", 7, "pass")
    assert 100 < facts["measured_rtt_ms"]["median"] < 101


def test_figures_are_of_the_samples_in_milliseconds(make_bundle: MakeBundle) -> None:
    values = [100.0 + 0.5 * i for i in range(100)]
    path = make_bundle(values_ms={("garage", "GetObject"): values})
    got = entry_of(summarize(read_bundle(path)), "garage", "GetObject").to_json()
    assert got["mean_ms"] == pytest.approx(np.mean(values))
    assert got["median_ms"] == pytest.approx(np.median(values))
    assert (got["min_ms"], got["max_ms"]) == (100.0, 149.5)
    assert got["p95_ms"] == pytest.approx(np.percentile(values, 95))
    assert got["first_byte_median_ms"] == pytest.approx(0.99 * np.median(values))


def test_preparation_and_warm_up_count_nowhere(make_bundle: MakeBundle) -> None:
    summary = summarize(read_bundle(make_bundle()))  # its warm-up takes 88 and 99 seconds
    assert all(entry.n == 100 for entry in summary.endpoints)
    assert all(entry.latency and entry.latency.max_ms < 5000 for entry in summary.endpoints)


def test_failures_are_counted_and_never_averaged_in(make_bundle: MakeBundle) -> None:
    values = [100.0] * 50 + [120.0] * 50
    path = make_bundle(
        values_ms={("garage", "PutObject"): values}, failures={("garage", "PutObject"): (6, 4)}
    )
    entry = entry_of(summarize(read_bundle(path)), "garage", "PutObject")
    assert (entry.n, entry.ok, entry.fail, entry.unknown) == (100, 90, 6, 4)
    assert entry.latency is not None
    assert entry.latency.n == 90
    assert entry.latency.mean_ms == pytest.approx((40 * 100 + 50 * 120) / 90)
    assert entry.latency.min_ms == 100.0  # a failed request's duration would be 0.000001


def test_an_endpoint_that_only_failed_has_counts_and_nulls(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=30, failures={("minio", "GetObject"): (10, 20)})
    got = entry_of(summarize(read_bundle(path)), "minio", "GetObject").to_json()
    assert (got["n"], got["ok"], got["fail"], got["unknown"]) == (30, 0, 10, 20)
    nulls = ["mean_ms", "median_ms", "min_ms", "max_ms", "p95_ms", "p99_ms", "mean_ci95_ms"]
    assert all(got[key] is None for key in nulls)


def test_json_has_no_nan(make_bundle: MakeBundle) -> None:
    path = make_bundle(
        n=1, failures={("minio", "GetObject"): (1, 0)}, values_ms={("garage", "GetObject"): [5.0]}
    )
    text = summarize(read_bundle(path)).to_text()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_order_is_the_studys_and_the_runs(make_bundle: MakeBundle) -> None:
    studied = ["PutObject", "ListBuckets", "SomethingNew", "GetObject"]
    path = make_bundle(systems=[MINIO, GARAGE], endpoints=studied)
    summary = summarize(read_bundle(path))
    assert summary.endpoint_names == studied
    assert [one.system for one in summary.series] == ["minio", "garage"]


def test_order_without_a_study_is_that_of_garages_page(make_bundle: MakeBundle) -> None:
    path = make_bundle(endpoints=tuple(reversed(ENDPOINTS)), manifest={"study": {}})
    assert tuple(summarize(read_bundle(path)).endpoint_names) == ENDPOINTS


def test_two_versions_of_a_system_are_two_series(make_bundle: MakeBundle) -> None:
    path = make_bundle(systems=[MINIO, MINIO_RELEASE], endpoints=["GetObject"])
    summary = summarize(read_bundle(path))
    assert [entry.n for entry in summary.endpoints] == [100, 100]


def test_an_interval_does_not_depend_on_what_else_ran(make_bundle: MakeBundle) -> None:
    values = {("garage", "GetObject"): [100 + (i * 7919) % 83 / 3 for i in range(100)]}
    alone = make_bundle(name="alone", systems=[GARAGE], endpoints=["GetObject"], values_ms=values)
    among = make_bundle(name="among", systems=[QUORUM, GARAGE], values_ms=values)
    intervals = []
    for path in (alone, among):
        entry = entry_of(summarize(read_bundle(path)), "garage", "GetObject")
        assert entry.latency is not None
        intervals.append(entry.latency.mean_ci95_ms)
    # Samples come in another shuffled order, of which resampling by position makes a little.
    assert intervals[0] == pytest.approx(intervals[1], abs=0.1)


def test_retransmits_and_new_connections_are_counted(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    rows = [json.loads(line) for line in (path / "samples.jsonl").read_text().splitlines()]
    of_one = [r for r in rows if (r["system"], r["endpoint"]) == ("minio", "GetObject")]
    measured = [r for r in of_one if r["phase"] == "measure"]
    measured[0] |= {"retransmits": 3, "new_connection": True}
    measured[1] |= {"retransmits": None, "new_connection": None}
    (path / "samples.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    summary = summarize(read_bundle(path))
    entry = entry_of(summary, "minio", "GetObject")
    assert (entry.retransmits, entry.new_connections) == (3, 1)
    assert any("TCP sent 3 segments again: MinIO" in note for note in summary.notes)


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
            {"manifest": {"systems": [{"name": "bob", "version": "2.1"}]}},
            "Not one measured sample of Bob 2.1",
        ),
    ],
)
def test_what_a_reader_must_know_is_noted(
    make_bundle: MakeBundle, settings: dict[str, Any], said: str
) -> None:
    summary = summarize(read_bundle(make_bundle(**settings)))
    assert any(said in note for note in summary.notes), summary.notes


def test_a_lab_of_one_node_had_no_network_to_calibrate(make_bundle: MakeBundle) -> None:
    bundle = make_bundle(rtt_ms=None)
    manifest = json.loads((bundle / "manifest.json").read_text())
    alone = {"sites": [{"name": "dc1", "nodes": ["n1"]}]}
    manifest["topology"] = {**manifest["topology"], **alone}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    notes = summarize(read_bundle(bundle)).notes
    assert not any("calibration" in note for note in notes)


def test_a_run_as_it_should_be_has_nothing_to_note_but_outliers(make_bundle: MakeBundle) -> None:
    notes = summarize(read_bundle(make_bundle())).notes
    assert all("outlier" in note for note in notes)
