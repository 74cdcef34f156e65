"""Latencies of single requests: counted and averaged as they should be, and said in RTTs."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from synthetic_bundles import (
    BOB,
    BOB_ENDPOINTS,
    BOTH,
    ENDPOINTS,
    FOUR_SYSTEMS,
    GARAGE,
    MINIO,
    MINIO_RELEASE,
    QUORUM,
    MakeBundle,
)

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.figures.latency import EndpointSummary
from wanlat.analysis.report.in_rtts import InWords, counted, in_words
from wanlat.analysis.summary import Summary, print_summary, summarize

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "endpoint-latency"
ONLY_BOB: dict[str, Any] = {"systems": [BOB], "endpoints": ["Get", "Ping"], "placed": {"bob": BOTH}}
SPREAD_MS = [100 + (i * 7919) % 83 / 3 for i in range(100)]


def summary_of(path: Path) -> Summary:
    return summarize(read_bundle(path))


def entry_of(
    summary: Summary, system: str, endpoint: str, placement: str = "unknown"
) -> EndpointSummary:
    (entry,) = (
        e
        for e in summary.endpoints
        if (e.series.system, e.endpoint, e.placement) == (system, endpoint, placement)
    )
    return entry


def printed(summary: Summary, width: int) -> str:
    out = io.StringIO()
    print_summary(summary, Console(file=out, width=width), verbose=False)
    return out.getvalue()


def test_entries_have_the_keys_of_the_design_and_the_figures_of_the_samples(
    make_bundle: MakeBundle,
) -> None:
    values = [100.0 + 0.5 * i for i in range(100)]
    summary = summary_of(make_bundle(values_ms={("garage", "GetObject"): values}))
    document = json.loads(summary.to_text())
    assert {"n", "percentiles", "mean_ci95_ms", "outliers"} <= document["definitions"].keys()
    facts = document["bundle"]
    assert (facts["study"], facts["topology"]) == ("endpoint-latency", "five-sites")
    assert (facts["status"], facts["seed"], facts["calibration"]) == ("complete", 7, "pass")
    assert 100 < facts["measured_rtt_ms"]["median"] < 101
    assert len(document["endpoints"]) == 10
    for entry in document["endpoints"]:
        low, high = entry["mean_ci95_ms"]
        assert low < entry["mean_ms"] < high
        ordered = [entry[f"{name}_ms"] for name in ("min", "median", "p95", "p99", "max")]
        # Warm-up takes 88 and 99 seconds, and counts nowhere.
        assert entry["n"] == entry["ok"] == 100 and sorted(ordered) == ordered
        assert entry["max_ms"] < 5000
    got = entry_of(summary, "garage", "GetObject").to_json()
    assert got["mean_ms"] == pytest.approx(np.mean(values))
    assert (got["min_ms"], got["max_ms"]) == (100.0, 149.5)
    assert got["p95_ms"] == pytest.approx(np.percentile(values, 95))
    assert got["first_byte_median_ms"] == pytest.approx(0.99 * np.median(values))


@pytest.mark.usefixtures("few_resamples")
def test_failures_are_counted_and_never_averaged_in(make_bundle: MakeBundle) -> None:
    values = {("garage", "PutObject"): [100.0] * 50 + [120.0] * 50}
    failures = {("garage", "PutObject"): (6, 4), ("minio", "GetObject"): (10, 90)}
    summary = summary_of(make_bundle(values_ms=values, failures=failures))
    entry = entry_of(summary, "garage", "PutObject")
    assert (entry.n, entry.ok, entry.fail, entry.unknown) == (100, 90, 6, 4)
    assert entry.latency is not None and entry.latency.n == 90
    assert entry.latency.mean_ms == pytest.approx((40 * 100 + 50 * 120) / 90)
    assert entry.latency.min_ms == 100.0  # a failed request's duration would be 0.000001
    failed = entry_of(summary, "minio", "GetObject").to_json()
    assert (failed["n"], failed["ok"]) == (100, 0)
    assert all(failed[f"{name}_ms"] is None for name in ("mean", "median", "min", "max", "p99"))
    assert "NaN" not in summary.to_text() and "Infinity" not in summary.to_text()


@pytest.mark.usefixtures("few_resamples")
def test_order_is_the_studys_then_garages_pages_and_the_runs(make_bundle: MakeBundle) -> None:
    studied = ["PutObject", "ListBuckets", "SomethingNew", "GetObject"]
    summary = summary_of(make_bundle(systems=[MINIO, GARAGE, MINIO_RELEASE], endpoints=studied))
    assert list(dict.fromkeys(entry.endpoint for entry in summary.endpoints)) == studied
    assert [e.series for e in summary.endpoints][:3] == [MINIO, GARAGE, MINIO_RELEASE]
    path = make_bundle(name="b", endpoints=tuple(reversed(ENDPOINTS)), manifest={"study": {}})
    found = dict.fromkeys(entry.endpoint for entry in summary_of(path).endpoints)
    assert tuple(found) == ENDPOINTS
    four = summary_of(make_bundle(name="four", **FOUR_SYSTEMS))
    row = [e.group for e in four.endpoints if e.endpoint in ("GetObject", "Get")]
    assert [(g.series.system, g.placement) for g in row] == [
        *(("garage", "unknown"), ("minio", "unknown"), ("bob", "local"), ("bob", "remote")),
        *(("quorum", "local"), ("quorum", "remote")),
    ]
    assert len({entry.group for entry in four.endpoints}) == 2 * 5 + 2 * 9


def test_an_interval_depends_on_its_own_requests_alone(make_bundle: MakeBundle) -> None:
    values: dict[Any, Any] = {("garage", "GetObject"): SPREAD_MS}
    alone = make_bundle(name="alone", systems=[GARAGE], endpoints=["GetObject"], values_ms=values)
    among = make_bundle(name="among", systems=[QUORUM, GARAGE], values_ms=values)
    found = [entry_of(summary_of(path), "garage", "GetObject").latency for path in (alone, among)]
    assert found[0] is not None and found[1] is not None
    # Samples come in another shuffled order, of which resampling by position makes a little.
    assert found[0].mean_ci95_ms == pytest.approx(found[1].mean_ci95_ms, abs=0.1)
    same = {("bob", "Get", placement): SPREAD_MS for placement in BOTH}
    both = summary_of(make_bundle(name="both", **ONLY_BOB, values_ms=same))
    local, remote = (entry_of(both, "bob", "Get", placement).latency for placement in BOTH)
    assert local is not None and remote is not None
    assert local.mean_ci95_ms != remote.mean_ci95_ms  # of a seed of their own
    assert local.mean_ci95_ms == pytest.approx(remote.mean_ci95_ms, abs=0.5)


@pytest.mark.usefixtures("few_resamples")
def test_local_and_remote_are_never_averaged_together(make_bundle: MakeBundle) -> None:
    local, remote = list(np.linspace(1, 2, 100)), list(np.linspace(90, 110, 100))
    values = {("bob", "Get", "local"): local, ("bob", "Get", "remote"): remote}
    summary = summary_of(make_bundle(**ONLY_BOB, values_ms=values))
    assert [e.placement for e in summary.endpoints] == ["local", "remote", "unknown"]
    for placement, expected in (("local", local), ("remote", remote)):
        entry = entry_of(summary, "bob", "Get", placement)
        assert entry.latency is not None
        assert (entry.n, entry.latency.mean_ms) == (100, pytest.approx(np.mean(expected)))
    (note,) = (note for note in summary.notes if "replica" in note)
    assert "No figure is over both" in note


@pytest.mark.parametrize("name", ["five-sites", "three-datacenters"])
def test_results_from_before_placement_keep_every_figure(name: str) -> None:
    committed = json.loads((RESULTS / name / "summary.json").read_text(encoding="utf-8"))
    made = summary_of(RESULTS / name).to_json()
    for entry in [*committed["endpoints"], *made["endpoints"]]:
        assert entry.pop("placement", "unknown") == "unknown"
    assert made["endpoints"] == committed["endpoints"]
    assert made["bundle"] == committed["bundle"]


@pytest.mark.usefixtures("few_resamples")
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


@pytest.mark.usefixtures("few_resamples")
def test_retransmits_and_new_connections_are_counted(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True)
    rows = [json.loads(line) for line in (path / "samples.jsonl").read_text().splitlines()]
    of_one = [r for r in rows if (r["system"], r["endpoint"]) == ("minio", "GetObject")]
    measured = [r for r in of_one if r["phase"] == "measure"]
    measured[0] |= {"retransmits": 3, "new_connection": True}
    measured[1] |= {"retransmits": None, "new_connection": None}
    (path / "samples.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    summary = summary_of(path)
    entry = entry_of(summary, "minio", "GetObject")
    assert (entry.retransmits, entry.new_connections) == (3, 1)
    assert any("sent again: 3 (MinIO GetObject)" in note for note in summary.notes)


@pytest.mark.usefixtures("few_resamples")
def test_a_run_as_it_should_be_has_nothing_to_note_but_outliers(make_bundle: MakeBundle) -> None:
    assert all("outlier" in note.lower() for note in summary_of(make_bundle()).notes)


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_a_terminal_gets_every_row_and_digit(make_bundle: MakeBundle, width: int) -> None:
    failures = {("minio", "GetObject"): (1, 2)}
    summary = summary_of(make_bundle(**{**FOUR_SYSTEMS, "failures": failures, "n": 20}))
    wide, narrow = printed(summary, 300), printed(summary, width)
    assert len([line for line in wide.splitlines() if "20/0/0" in line]) == 27
    assert sorted(c for c in narrow if c.isdigit()) == sorted(c for c in wide if c.isdigit())
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= width


# --- in RTTs


def about(*middles_ms: float, n: int = 100, spread_ms: float = 0.3) -> list[float]:
    """Latencies around each of `middles_ms` in turn, as if the RTT were 100.2 ms and not 100."""
    rng = np.random.default_rng(5)
    around = [middles_ms[i % len(middles_ms)] * 1.002 for i in range(n)]
    return [middle + float(rng.normal(0, spread_ms)) for middle in around]


def said_of(path: Path) -> InWords:
    said = in_words(read_bundle(path))
    assert said is not None
    return said


def one(make: MakeBundle, values_ms: Sequence[float], **settings: Any) -> InWords:
    """What is said of one endpoint of Garage whose requests took `values_ms`."""
    wanted: dict[str, Any] = {"systems": [GARAGE], "endpoints": ["GetObject"]}
    values = {("garage", "GetObject"): list(values_ms)}
    return said_of(make(**wanted, values_ms=values, **settings))


def knowing(key: str, number: float) -> dict[str, Any]:
    """A manifest that knows so many round trips of Garage's GetObject beforehand."""
    entry = {"endpoint": "GetObject", "placement": "unknown", "round_trips": number}
    entry |= {"why": "so"} if key == "least_round_trips" else {}
    return {"systems": [{"name": GARAGE[0], "version": GARAGE[1], "options": {}, key: [entry]}]}


PROMISED, LEAST = knowing("promised_round_trips", 2.0), knowing("least_round_trips", 1.0)


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize(
    ("values_ms", "settings", "number", "sentence"),
    [
        (about(200.0), {}, 2, "2.00 × RTT: two round trips."),
        (about(200.0), {"manifest": PROMISED}, 2, "two round trips, as the protocol promises."),
        (about(300.0), {"manifest": PROMISED}, 3, "where the protocol by itself takes two"),
        (about(100.0), {"manifest": LEAST}, 1, "one round trip, the fewest that its replicas"),
        (about(300.0), {"manifest": LEAST}, 3, "; the fewest that its replicas allow: one round"),
        (about(1.0, spread_ms=0.1), {"manifest": LEAST}, 0, "fewer than its replicas allow if"),
        (about(0.4, spread_ms=0.05), {}, 0, "0.00 × RTT: no round trip, answered by the node"),
        (about(0.9), {"sites": 3, "nodes_a_site": 2}, 0, "no round trip between sites."),
        (about(112.0), {}, None, "]: not a whole number of RTTs."),  # slowest of several answers
        (about(101.0, 201.0), {}, None, "]: not a whole number of RTTs."),
        # The mean is elsewhere than the median.
        ([*about(200.0, n=94), *[2500.0] * 6], {}, None, "]: not a whole number of RTTs."),
        # Median and mean are 2.00, and 60 requests of 200 take something else.
        (
            about(*[200, 100, 200, 300] + [200] * 9 + [100, 300], n=210, spread_ms=0.5),
            {},
            None,
            "no one number of round trips: ",
        ),
        (about(100.0, n=8), {}, None, "too few requests to name a number of round trips"),
        (about(4.0), {"rtt_ms": 2.0, "jitter_ms": 0.0}, None, "on so short an RTT"),
        ([1.25] * 30, {"sites": 1, "nodes_a_site": 3}, None, "GetObject: 1.25 ms."),
        (
            about(100.0, n=5),
            {"failures": {("garage", "GetObject"): (5, 0)}},
            None,
            "GetObject: no request succeeded.",
        ),
    ],
)
def test_a_number_of_round_trips_is_said_where_the_figures_support_it(
    make_bundle: MakeBundle,
    values_ms: list[float],
    settings: dict[str, Any],
    number: int | None,
    sentence: str,
) -> None:
    said = one(make_bundle, values_ms, **settings)
    (row,) = said.rows
    line = row["sentence"]
    assert sentence in line
    assert row["round_trips"] == number
    assert ("promises" in line) == ("promises" in sentence)
    asides = " ".join(said.asides)
    assert ("wanlat run round-trips" in asides) == (row["rtts"] is not None and number is None)
    assert "one cluster" in asides


@pytest.mark.usefixtures("few_resamples")
def test_the_rtt_is_the_measured_one_of_each_systems_own_lab(make_bundle: MakeBundle) -> None:
    values = {(name, "GetObject"): about(200.0) for name in ("garage", "minio")}
    path = make_bundle(systems=[GARAGE, MINIO], endpoints=["GetObject"], values_ms=values)
    calibration = json.loads((path / "calibration.json").read_text())
    for pair in calibration["pairs"]:
        pair["rtt_ms"]["p50"] = 100.0 if pair["system"] == "garage" else 104.0
    (path / "calibration.json").write_text(json.dumps(calibration))
    said = said_of(path)
    assert [row["rtt_ms"] for row in said.rows] == [100.0, 104.0]
    begun = ("Garage GetObject: 2.00", "MinIO GetObject: 1.93")
    assert all(r["sentence"].startswith(b) for r, b in zip(said.rows, begun, strict=True))
    assert "100.0–104.0 ms" in said.asides[0]
    (entry, _) = said.to_json()["endpoints"]
    assert entry["ci95"][0] < entry["rtts"] < entry["ci95"][1]
    assert entry["least_round_trips"] is None
    assert said.calibration is not None and "RTT between sites 100 ms requested" in said.calibration


@pytest.mark.usefixtures("few_resamples")
def test_where_no_rtt_speaks_for_all_pairs_nothing_is_said_in_rtts(make_bundle: MakeBundle) -> None:
    none = one(make_bundle, about(100.0), rtt_ms=None, name="none")
    assert "was not measured" in (none.why_not or "")
    path = make_bundle(systems=[GARAGE], n=20)
    calibration = json.loads((path / "calibration.json").read_text())
    for pair in calibration["pairs"]:
        if "n5" in (pair["from"], pair["to"]):
            pair["rtt_ms"]["p50"] = 180.0
    (path / "calibration.json").write_text(json.dumps(calibration))
    unlike = said_of(path)
    assert "differ from one pair of sites to another (100." in (unlike.why_not or "")
    calibration["pairs"][0]["verdict"] = calibration["verdict"] = "fail"
    (path / "calibration.json").write_text(json.dumps(calibration))
    failed = said_of(path)
    assert "calibration failed" in (failed.why_not or "")
    for said in (none, unlike, failed):
        assert said.to_json()["endpoints"] == []
    assert none.calibration is failed.calibration is None


@pytest.mark.parametrize("of", ["load", "reclaim"])
def test_other_studies_have_no_such_sentences(make_bundle: MakeBundle, of: str) -> None:
    path = make_bundle(systems=[GARAGE], n=20)
    bundle = read_bundle(path)
    study = {"name": "mine", "endpoints": ["GetObject"], of: {"workers": 1}}
    manifest = {**bundle.manifest, "study": study}
    other = type(bundle)(path, manifest, bundle.calibration, bundle.samples, truncated=False)
    assert in_words(other) is None


def test_small_numbers_are_words() -> None:
    said = [counted(number) for number in (0, 1, 9, 12)]
    assert said == ["no round trips", "one round trip", "nine round trips", "12 round trips"]
