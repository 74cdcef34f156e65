"""Sentences in RTTs: worded by what was measured, and no claim that the figures do not support."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from synthetic_bundles import BOB, BOTH, GARAGE, MINIO, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.in_rtts import LatenciesInRtts, counted
from wanlat.analysis.report import report
from wanlat.analysis.summary import summarize

pytestmark = pytest.mark.usefixtures("few_resamples")


def about(*middles_ms: float, n: int = 100, spread_ms: float = 0.3) -> list[float]:
    """Latencies around each of `middles_ms` in turn, as if the RTT were 100.2 ms and not 100."""
    rng = np.random.default_rng(5)
    around = [middles_ms[i % len(middles_ms)] * 1.002 for i in range(n)]
    return [middle + float(rng.normal(0, spread_ms)) for middle in around]


def said_of(path: Path) -> LatenciesInRtts:
    said = summarize(read_bundle(path)).in_rtts
    assert said is not None
    return said


def knowing(system: tuple[str, str], key: str, **numbers: float) -> dict[str, Any]:
    """A manifest's `systems` with what is known beforehand of endpoints."""
    why = {"why": "so"} if key == "least_round_trips" else {}
    entries = [
        {"endpoint": endpoint, "placement": "unknown", "round_trips": number, **why}
        for endpoint, number in numbers.items()
    ]
    return {"systems": [{"name": system[0], "version": system[1], "options": {}, key: entries}]}


def one(make: MakeBundle, values_ms: Sequence[float], **settings: Any) -> LatenciesInRtts:
    """What is said of one endpoint of Garage whose requests took `values_ms`."""
    wanted: dict[str, Any] = {"systems": [GARAGE], "endpoints": ["GetObject"]}
    values = {("garage", "GetObject"): list(values_ms)}
    return said_of(make(**wanted, values_ms=values, **settings))


def test_a_whole_number_is_said_in_words(make_bundle: MakeBundle) -> None:
    said = one(make_bundle, about(200.0))
    (entry,) = said.entries
    assert entry.sentence == "GetObject: 2.00 × RTT: two round trips."
    assert entry.round_trips == 2
    assert entry.ci95 is not None and entry.rtts is not None
    assert entry.ci95[0] <= entry.rtts <= entry.ci95[1]


def test_the_rtt_is_the_measured_one(make_bundle: MakeBundle) -> None:
    path = make_bundle(
        systems=[GARAGE],
        endpoints=["GetObject"],
        values_ms={("garage", "GetObject"): about(200.0)},
    )
    calibration = json.loads((path / "calibration.json").read_text())
    for pair in calibration["pairs"]:
        pair["rtt_ms"]["p50"] = 125.0
    (path / "calibration.json").write_text(json.dumps(calibration))
    (entry,) = said_of(path).entries
    assert entry.rtt_ms == 125.0
    assert entry.sentence.startswith("GetObject: 1.60 × RTT [")


def test_a_promise_is_named_where_the_run_knew_it(make_bundle: MakeBundle) -> None:
    manifest = knowing(GARAGE, "promised_round_trips", GetObject=2.0)
    (kept,) = one(make_bundle, about(200.0), manifest=manifest, name="kept").entries
    assert kept.sentence == "GetObject: 2.00 × RTT: two round trips, as the protocol promises."
    (slower,) = one(make_bundle, about(300.0), manifest=manifest, name="slower").entries
    assert slower.sentence == (
        "GetObject: 3.00 × RTT: three round trips, where the protocol by itself takes two round "
        "trips."
    )


@pytest.mark.parametrize(
    ("latency_ms", "words"),
    [
        (100.0, "one round trip, the fewest that its replicas allow"),
        (300.0, "three round trips; the fewest that its replicas allow: one round trip"),
        (1.0, "answered by the node itself, fewer than its replicas allow if it keeps its promise"),
    ],
)
def test_a_lower_bound_is_no_promise(
    make_bundle: MakeBundle, latency_ms: float, words: str
) -> None:
    manifest = knowing(GARAGE, "least_round_trips", GetObject=1.0)
    (entry,) = one(make_bundle, about(latency_ms, spread_ms=0.1), manifest=manifest).entries
    assert words in entry.sentence
    assert "promises" not in entry.sentence


def test_nothing_is_promised_where_the_bundle_does_not_say_so(make_bundle: MakeBundle) -> None:
    (entry,) = one(make_bundle, about(100.0)).entries
    assert entry.sentence == "GetObject: 1.00 × RTT: one round trip."


def test_a_local_answer_is_no_round_trip(make_bundle: MakeBundle) -> None:
    (alone,) = one(make_bundle, about(0.4, spread_ms=0.05), name="alone").entries
    assert alone.sentence == "GetObject: 0.00 × RTT: no round trip, answered by the node itself."
    (near,) = one(
        make_bundle, about(0.9, spread_ms=0.05), name="near", sites=3, nodes_a_site=2
    ).entries
    assert near.sentence == "GetObject: 0.01 × RTT: no round trip between sites."


@pytest.mark.parametrize(
    "values_ms",
    [
        about(112.0),  # the slowest of several answers on links with jitter
        about(150.0),
        about(101.0, 201.0),  # half of them wait for one more
        [*about(200.0, n=94), *[2500.0] * 6],  # the mean is elsewhere than the median
    ],
)
def test_what_is_no_whole_number_is_not_called_one(
    make_bundle: MakeBundle, values_ms: list[float]
) -> None:
    said = one(make_bundle, values_ms)
    (entry,) = said.entries
    assert entry.round_trips is None
    assert entry.sentence.endswith("]: not a whole number of RTTs.")
    assert any("wanlat run round-trips" in note for note in said.notes)


def test_a_mixture_around_a_whole_number_is_not_called_that_number(
    make_bundle: MakeBundle,
) -> None:
    # Median and mean are 2.00, and 60 requests of 200 take something else.
    (entry,) = one(
        make_bundle,
        about(200, 100, 200, 300, 200, 200, 200, 100, 200, 300, 200, 200, 200, n=208, spread_ms=0.5)
        + about(100, 300, n=24, spread_ms=0.5),
    ).entries
    assert entry.round_trips is None
    assert "no one number of round trips" in entry.sentence
    assert "nearest to 2" in entry.sentence


def test_few_requests_name_no_number(make_bundle: MakeBundle) -> None:
    (entry,) = one(make_bundle, about(100.0, n=8)).entries
    assert entry.round_trips is None
    assert "too few requests to name a number of round trips" in entry.sentence


def test_a_short_rtt_names_no_number(make_bundle: MakeBundle) -> None:
    said = one(make_bundle, about(4.0, spread_ms=0.05), rtt_ms=2.0, jitter_ms=0.0)
    (entry,) = said.entries
    assert entry.round_trips is None
    assert "no number of round trips on so short an RTT" in entry.sentence
    assert any("own time cannot be distinguished" in note for note in said.notes)


def test_without_a_success_there_is_no_figure(make_bundle: MakeBundle) -> None:
    said = one(make_bundle, about(100.0, n=5), failures={("garage", "GetObject"): (5, 0)})
    (entry,) = said.entries
    assert entry.sentence == "GetObject: no request succeeded."
    assert entry.to_json()["rtts"] is None


def test_unequal_rtts_give_no_figure_and_say_why(make_bundle: MakeBundle) -> None:
    path = make_bundle(systems=[GARAGE], n=20)
    calibration = json.loads((path / "calibration.json").read_text())
    for pair in calibration["pairs"]:
        if "n5" in (pair["from"], pair["to"]):
            pair["rtt_ms"]["p50"] = 180.0
    (path / "calibration.json").write_text(json.dumps(calibration))
    said = said_of(path)
    assert said.entries == ()
    assert said.why_not is not None
    assert "differ from one pair of sites to another (100." in said.why_not
    assert "180.0 ms)" in said.why_not
    assert said.to_json()["endpoints"] == []


def test_each_system_is_compared_with_the_rtt_of_its_own_lab(make_bundle: MakeBundle) -> None:
    values = {(name, "GetObject"): about(200.0) for name in ("garage", "minio")}
    path = make_bundle(systems=[GARAGE, MINIO], endpoints=["GetObject"], values_ms=values)
    calibration = json.loads((path / "calibration.json").read_text())
    for pair in calibration["pairs"]:
        pair["rtt_ms"]["p50"] = 100.0 if pair["system"] == "garage" else 104.0
    (path / "calibration.json").write_text(json.dumps(calibration))
    said = said_of(path)
    assert [entry.rtt_ms for entry in said.entries] == [100.0, 104.0]
    assert said.entries[0].sentence.startswith("Garage GetObject: 2.00")
    assert said.entries[1].sentence.startswith("MinIO GetObject: 1.93")
    assert "100.0–104.0 ms" in said.notes[0]


def test_placements_have_sentences_of_their_own(make_bundle: MakeBundle) -> None:
    values = {
        ("bob", "Get", "local"): about(0.3, spread_ms=0.02),
        ("bob", "Get", "remote"): about(100.0),
    }
    path = make_bundle(systems=[BOB], endpoints=["Get"], placed={"bob": BOTH}, values_ms=values)
    assert [entry.sentence for entry in said_of(path).entries] == [
        "Get, local: 0.00 × RTT: no round trip, answered by the node itself.",
        "Get, remote: 1.00 × RTT: one round trip.",
    ]


def test_within_one_site_it_is_milliseconds(make_bundle: MakeBundle) -> None:
    said = one(make_bundle, [1.25] * 30, sites=1, nodes_a_site=3)
    assert said.lines[0] == "GetObject: 1.25 ms."
    assert said.why_not is not None and "one site" in said.why_not
    assert said.calibration is not None and "between nodes 0.5 ms requested" in said.calibration


def test_without_calibration_or_where_it_failed_there_is_no_figure(
    make_bundle: MakeBundle,
) -> None:
    none = one(make_bundle, about(100.0), rtt_ms=None, name="none")
    assert (none.entries, none.calibration) == ((), None)
    assert none.why_not is not None and "was not measured" in none.why_not
    path = make_bundle(systems=[GARAGE], n=20)
    calibration = json.loads((path / "calibration.json").read_text())
    calibration["pairs"][0]["verdict"] = calibration["verdict"] = "fail"
    (path / "calibration.json").write_text(json.dumps(calibration))
    failed = said_of(path)
    assert (failed.entries, failed.calibration) == ((), None)
    assert failed.why_not is not None and "calibration failed" in failed.why_not


def test_the_verdict_of_calibration_has_requested_measured_and_worst(
    make_bundle: MakeBundle,
) -> None:
    path = make_bundle(systems=[GARAGE], n=20)
    pairs = json.loads((path / "calibration.json").read_text())["pairs"]
    sentence = said_of(path).calibration
    assert sentence is not None
    assert "RTT between sites 100 ms requested, 100." in sentence
    assert "over 20 pairs of nodes" in sentence
    worst = max(pair["error_ms"]["p99"] for pair in pairs)
    assert f"{worst:.2f} ms (p99)" in sentence


def test_it_is_said_that_it_is_one_cluster(make_bundle: MakeBundle) -> None:
    (note,) = one(make_bundle, about(100.0)).notes
    assert "of one cluster" in note
    assert "100 requests" in note


@pytest.mark.parametrize("of", ["load", "reclaim"])
def test_other_studies_have_no_such_sentences(make_bundle: MakeBundle, of: str) -> None:
    path = make_bundle(systems=[GARAGE], n=20)
    bundle = read_bundle(path)
    study = {"name": "mine", "endpoints": ["GetObject"], of: {"workers": 1}}
    manifest = {**bundle.manifest, "study": study}
    from wanlat.analysis.in_rtts import in_rtts

    endpoints = summarize(bundle).endpoints
    assert in_rtts(bundle, endpoints) is not None
    other = type(bundle)(path, manifest, bundle.calibration, bundle.samples, truncated=False)
    assert in_rtts(other, endpoints) is None


def test_scripts_have_it_in_the_summary(make_bundle: MakeBundle) -> None:
    manifest = knowing(QUORUM, "promised_round_trips", GetObject=1.0)
    path = make_bundle(
        systems=[QUORUM],
        endpoints=["GetObject"],
        values_ms={("quorum", "GetObject"): about(100.0)},
        manifest=manifest,
    )
    report(path)
    document = json.loads((path / "summary.json").read_text())["in_rtts"]
    (entry,) = document["endpoints"]
    assert entry["round_trips"] == entry["promised_round_trips"] == 1
    assert entry["least_round_trips"] is None
    assert entry["rtts"] == pytest.approx(1.0, abs=0.02)
    assert entry["ci95"][0] < entry["rtts"] < entry["ci95"][1]
    assert entry["sentence"].endswith("one round trip, as the protocol promises.")
    assert document["calibration"].startswith("Instrument and network agree")


def test_tables_have_latencies_first_then_the_sentences(make_bundle: MakeBundle) -> None:
    made = report(make_bundle(systems=[GARAGE], n=20))
    assert made.tables_path is not None
    text = made.tables_path.read_text()
    table, words = text.index("| system | endpoint |"), text.index("In words:")
    assert text.startswith("# endpoint-latency on five-sites\n")
    assert table < words < text.index("Notes:")
    assert text.count("| Garage 2.5.0 |") == 5
    assert "- PutObject: " in text


def test_a_terminal_gets_one_table_then_sentences_and_one_chart(
    make_bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wanlat import output, results

    out = io.StringIO()
    console = Console(file=out, width=120)
    monkeypatch.setattr(output, "_people", lambda: console)
    monkeypatch.setattr(results, "people", console)
    path = make_bundle(systems=[GARAGE], n=20)
    results.show_report(path, as_json=False)
    text = out.getvalue()
    assert text.count("───") and text.count("system") == 1
    order = ["GetObject", "GetObject: ", "Instrument and network", "tables: ", "chart: "]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert text.count("chart: ") == 1
    assert "(beside it: published, calibration)" in text


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "no round trips"), (1, "one round trip"), (9, "nine round trips"), (12, "12 round trips")],
)
def test_small_numbers_are_words(number: int, words: str) -> None:
    assert counted(number) == words
