"""The comparison with published figures and the chart of calibration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chart_checks import assert_readable, bars_of, marks_of, texts_of
from matplotlib.figure import Figure
from synthetic_bundles import GARAGE, MINIO, MINIO_RELEASE, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.charts import calibration, published
from wanlat.analysis.summary import summarize


def published_chart(path: Path) -> Figure:
    bundle = read_bundle(path)
    return published.draw(bundle, summarize(bundle))


def has_counterpart(path: Path) -> bool:
    bundle = read_bundle(path)
    return published.has_counterpart(bundle, summarize(bundle))


def test_the_published_table_is_whole() -> None:
    figures = published.published_latencies()
    assert len(figures) == 20
    assert {one.topology for one in figures} == {"five-sites", "three-datacenters"}
    one = next(
        f
        for f in figures
        if (f.topology, f.series.system, f.endpoint) == ("five-sites", "minio", "PutObject")
    )
    assert (one.mean_ms, one.min_ms, one.max_ms) == (1189, 1131, 1347)
    assert [f.endpoint for f in figures if f.min_ms is None] == ["ListBuckets"]


def test_only_what_both_measured_on_the_same_topology_is_compared(
    make_bundle: MakeBundle,
) -> None:
    assert has_counterpart(make_bundle(name="a"))
    assert has_counterpart(make_bundle(name="b", topology="three-datacenters"))
    assert not has_counterpart(make_bundle(name="c", topology="one-site"))
    assert not has_counterpart(make_bundle(name="d", systems=[QUORUM]))
    assert not has_counterpart(make_bundle(name="e", endpoints=["HeadObject"]))


def test_ours_and_theirs_stand_one_below_the_other(make_bundle: MakeBundle) -> None:
    path = make_bundle(
        systems=[GARAGE, MINIO, QUORUM], values_ms={("garage", "GetObject"): [150.0, 170.0]}
    )
    bars = bars_of(published_chart(path))
    assert len(bars) == 5 * 2 * 2  # quorum was not published
    ours, theirs = bars[8], bars[9]
    assert (ours.get_width(), theirs.get_width()) == (160.0, 129.0)
    assert ours.get_hatch() and not theirs.get_hatch()
    assert theirs.get_linestyle() == "--"


def test_the_caption_says_whose_and_when(make_bundle: MakeBundle) -> None:
    texts = texts_of(published_chart(make_bundle()))
    whole = " ".join(texts)
    assert "Garage's benchmark page, 2021" in whole
    assert "other versions on another machine" in whole
    assert "about ±3 ms" in whole
    assert "MinIO RELEASE.2021-11-24T23-19-33Z" in whole
    assert {"Garage 2.5.0, measured here", "Garage 0.5.0, published 2021"} <= set(texts)


def test_a_figure_that_could_not_be_read_off_is_a_question_mark(make_bundle: MakeBundle) -> None:
    figure = published_chart(make_bundle(topology="three-datacenters", sites=3))
    assert "? – 30" in texts_of(figure)


@pytest.mark.parametrize("topology", ["five-sites", "three-datacenters"])
@pytest.mark.parametrize("systems", [[GARAGE], [GARAGE, MINIO, QUORUM], [MINIO, MINIO_RELEASE]])
def test_the_comparison_can_be_read(
    make_bundle: MakeBundle, systems: list[tuple[str, str]], topology: str
) -> None:
    failures = {("minio", "PutObject"): (100, 0), ("garage", "GetObject"): (1, 1)}
    path = make_bundle(systems=systems, topology=topology, failures=failures)
    assert_readable(published_chart(path))


def test_calibration_shows_every_pair_against_its_tolerance(make_bundle: MakeBundle) -> None:
    path = make_bundle(sites=3, nodes_a_site=2)
    figure = calibration.draw(read_bundle(path))
    assert_readable(figure)
    document = json.loads((path / "calibration.json").read_text())
    drawn = [*marks_of(figure, "^"), *marks_of(figure, "s")]
    errors = [pair["error_ms"][p] for pair in document["pairs"] for p in ("p50", "p99")]
    assert sorted(drawn) == pytest.approx(sorted(errors))
    ticks = marks_of(figure, "|")
    assert set(ticks) == {0.15, 0.5, 2.0}  # near pairs, distant pairs, 99th percentile
    assert ticks.count(0.15) == 2 * 6


def test_a_failed_pair_is_seen(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    document = json.loads((path / "calibration.json").read_text())
    document["pairs"][3] |= {"verdict": "fail", "error_ms": {"p50": 7.0, "p99": 9.0}}
    document["pairs"][4] |= {"verdict": "fail", "rtt_ms": None, "error_ms": None}
    document["verdict"] = "fail"
    (path / "calibration.json").write_text(json.dumps(document))
    figure = calibration.draw(read_bundle(path))
    texts = texts_of(figure)
    assert "Calibration FAILED: five-sites" in texts
    assert texts.count("FAIL") == 2
    assert figure.axes[0].get_xlim()[1] > 9
    assert_readable(figure)


def test_of_very_many_pairs_the_worst_are_shown(make_bundle: MakeBundle) -> None:
    path = make_bundle(sites=11, systems=[GARAGE])
    document = json.loads((path / "calibration.json").read_text())
    document["pairs"][60]["error_ms"] = {"p50": 0.4, "p99": 1.9}
    (path / "calibration.json").write_text(json.dumps(document))
    figure = calibration.draw(read_bundle(path))
    assert texts_of(figure).count("pass") == 90
    assert any("20 better ones not drawn" in text for text in texts_of(figure))
    assert 1.9 in marks_of(figure, "^")
