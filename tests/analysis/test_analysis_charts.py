"""The chart of endpoint latency shows what was measured, and every word on it can be read."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_checks import (
    assert_readable,
    bars_of,
    contrast,
    dots_of,
    lightness,
    marks_of,
    seen_with,
    texts_of,
)
from matplotlib.figure import Figure
from synthetic_bundles import ENDPOINTS, GARAGE, MINIO, MINIO_RELEASE, QUORUM, MakeBundle

from wanlat.analysis.bundle import Series, read_bundle
from wanlat.analysis.charts import endpoint_latency
from wanlat.analysis.charts.marks import strip_offsets
from wanlat.analysis.charts.style import styles
from wanlat.analysis.summary import Summary, summarize

pytestmark = pytest.mark.usefixtures("few_resamples")

SIX = (*ENDPOINTS[:3], "HeadObject", *ENDPOINTS[3:])
LONG_NAME = (
    "a-name-of-a-topology-that-somebody-made-longer-than-any-page-is-wide/and-then-some.yaml"
)
KNOWN = [
    *(Series("garage", "2.5.0"), Series("minio", "1")),
    *(Series("quorum", "0.1.0"), Series("bob", "2.1")),
]
STRANGE = ("a-system-with-a-rather-long-name", "v3.0.0-beta.12345.dirty+build.2026.11.20")


def chart_of(path: Path) -> tuple[Figure, Summary]:
    bundle = read_bundle(path)
    summary = summarize(bundle)
    return endpoint_latency.draw(bundle, summary), summary


@pytest.mark.minutes
@pytest.mark.parametrize("endpoints", [1, 2, 5, 6])
@pytest.mark.parametrize("systems", [[QUORUM], [GARAGE, MINIO], [GARAGE, MINIO_RELEASE, QUORUM]])
def test_no_word_is_clipped_or_overlaps_another(
    make_bundle: MakeBundle, systems: list[tuple[str, str]], endpoints: int
) -> None:
    figure, _ = chart_of(make_bundle(systems=systems, endpoints=SIX[:endpoints]))
    assert_readable(figure)


@pytest.mark.minutes
@pytest.mark.parametrize(
    "settings",
    [
        {"failures": {("minio", "PutObject"): (11, 22), ("garage", "GetObject"): (100, 0)}},
        {"values_ms": {("minio", "PutObject"): list(np.linspace(20_000, 22_000, 100))}},
        {"values_ms": {("garage", "GetObject"): [*np.linspace(80, 120, 99), 30_000.0]}},
        {"systems": [MINIO, MINIO_RELEASE, STRANGE], "topology": LONG_NAME},
        {"n": 1},
        {"n": 5, "manifest": {"status": "interrupted", "reason": "a reason, and a long one " * 9}},
        {"rtt_ms": None},
        {"rtt_ms": 0.5, "jitter_ms": 0},
        {"sites": 1, "topology": "one-site"},
        {"sites": 3, "nodes_a_site": 2, "topology": "three-datacenters"},
        {"endpoints": ["an/endpoint.with.a.long.Name/OfAMethod", "GetObject"]},
        {"topology": "costs $5 or $6"},
        {"values_ms": {("garage", "GetObject"): [0.0] * 100}, "endpoints": ["GetObject"]},
    ],
    ids=",".join,
)
def test_no_word_is_clipped_or_overlaps_in_odd_cases(
    make_bundle: MakeBundle, settings: dict[str, Any]
) -> None:
    figure, _ = chart_of(make_bundle(**settings))
    assert_readable(figure)


def test_the_check_itself_sees_an_overlap_and_a_clipped_word(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(make_bundle(n=20))
    title = figure.texts[0]
    figure.text(*title.get_position(), "over the title", transform=title.get_transform())
    with pytest.raises(AssertionError, match="overlap"):
        assert_readable(figure)
    figure, _ = chart_of(make_bundle(name="other", n=20))
    figure.text(0.99, 0.9, "out of the picture")
    with pytest.raises(AssertionError, match="clipped"):
        assert_readable(figure)


def test_every_sample_is_a_dot_at_its_latency(make_bundle: MakeBundle) -> None:
    rng = np.random.default_rng(8)
    values = list(rng.uniform(80, 120, 100).round(3))
    figure, summary = chart_of(make_bundle(values_ms={("garage", "GetObject"): values}))
    dots = dots_of(figure)
    assert sum(len(xs) for xs in dots) == 1000
    row = next(
        number
        for number, entry in enumerate(summary.endpoints)
        if (entry.series.system, entry.endpoint) == ("garage", "GetObject")
    )
    assert sorted(dots[row]) == pytest.approx(sorted(values))


def test_bars_are_the_means_and_start_at_zero(make_bundle: MakeBundle) -> None:
    figure, summary = chart_of(make_bundle())
    bars = bars_of(figure)
    means = [entry.latency.mean_ms for entry in summary.endpoints if entry.latency]
    assert [bar.get_width() for bar in bars] == pytest.approx(means)
    assert {bar.get_x() for bar in bars} == {0.0}
    assert figure.axes[0].get_xlim()[0] == 0.0


def test_samples_stay_on_their_row(make_bundle: MakeBundle) -> None:
    offsets = strip_offsets(1000)
    assert -0.5 <= offsets.min() < -0.49
    assert 0.49 < offsets.max() <= 0.5
    # The most even spread: the largest gap is hardly above that of 1,000 equal ones.
    assert np.diff(np.sort(offsets)).max() < 2.7 / 1000
    assert np.array_equal(offsets, strip_offsets(1000))


def test_lines_stand_at_multiples_of_the_measured_rtt(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    document = json.loads((path / "calibration.json").read_text())
    for pair in document["pairs"]:
        pair["rtt_ms"]["p50"] = 103.0  # 100 was requested
    (path / "calibration.json").write_text(json.dumps(document))
    figure, _ = chart_of(path)
    axes = figure.axes[0]
    named = {t.get_text(): t.xy[0] for t in axes.texts if hasattr(t, "xy")}
    assert named["1 RTT"] == 103.0
    assert named["4"] == 412.0
    assert any("Measured RTT between sites: median 103.0 ms" in t for t in texts_of(figure))


def test_unequal_rtts_get_no_lines_and_the_caption_says_why(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    document = json.loads((path / "calibration.json").read_text())
    document["pairs"][0]["rtt_ms"]["p50"] = 8.0
    (path / "calibration.json").write_text(json.dumps(document))
    figure, _ = chart_of(path)
    texts = " ".join(texts_of(figure))
    assert "1 RTT" not in texts
    assert "not equally far apart" in texts


def test_words_say_topology_systems_samples_and_rtt(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(make_bundle(systems=[GARAGE, MINIO, QUORUM]))
    texts = texts_of(figure)
    whole = " ".join(texts)
    assert "Endpoint latency on five-sites" in texts
    assert {"Garage 2.5.0", "MinIO 2026-02-12", "quorum 0.1.0 (reference store)"} <= set(texts)
    assert "100 samples a bar" in whole
    assert "over 20 ordered pairs" in whole
    assert "MinIO v0.0.0-20260212201848-7aac2a2c5b7c" in whole
    assert "latency of one request, ms" in texts


def test_failures_stand_at_their_bar(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(
        make_bundle(failures={("garage", "GetObject"): (3, 2), ("minio", "PutObject"): (0, 100)})
    )
    texts = texts_of(figure)
    assert "95 ok · 3 fail · 2 unknown" in texts
    assert "0 ok · 100 unknown" in texts
    assert "no request succeeded" in texts
    assert len(bars_of(figure)) == 9


def test_an_interrupted_run_says_so(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(make_bundle(manifest={"status": "interrupted", "reason": "Ctrl-C"}))
    assert any("The run was interrupted (Ctrl-C)" in text for text in texts_of(figure))


def test_a_lone_far_sample_is_cut_with_an_arrow_and_told(make_bundle: MakeBundle) -> None:
    values = [*np.linspace(80, 120, 99), 30_000.0]
    figure, summary = chart_of(make_bundle(values_ms={("garage", "GetObject"): values}))
    axes = figure.axes[0]
    assert axes.get_xlim()[1] < 10_000
    assert len(marks_of(figure, ">")) == 1
    texts = " ".join(texts_of(figure))
    assert "1 sample lies beyond the axis" in texts
    assert "80 – 30000" in texts
    entry = next(e for e in summary.endpoints if e.latency and e.latency.max_ms == 30_000)
    assert entry.latency is not None
    assert entry.latency.mean_ms == pytest.approx(np.mean(values))


def test_a_second_mode_is_not_cut(make_bundle: MakeBundle) -> None:
    values = [*np.linspace(1, 3, 95), *np.linspace(41, 44, 5)]  # delayed acknowledgements
    path = make_bundle(
        systems=[GARAGE], endpoints=["GetObject"], values_ms={("garage", "GetObject"): values}
    )
    figure, _ = chart_of(path)
    assert figure.axes[0].get_xlim()[1] > 44
    assert len(dots_of(figure)[0]) == 100


def test_a_slow_system_is_not_cut(make_bundle: MakeBundle) -> None:
    values = list(np.linspace(20_000, 22_000, 100))
    figure, _ = chart_of(make_bundle(values_ms={("minio", "PutObject"): values}))
    assert figure.axes[0].get_xlim()[1] > 22_000
    assert marks_of(figure, ">") == []


def test_bars_can_be_told_apart_in_greyscale() -> None:
    looks = styles(KNOWN)
    for one, other in combinations(looks.values(), 2):
        assert abs(lightness(one.fill) - lightness(other.fill)) > 8
        assert one.hatch != other.hatch
        assert one.marker != other.marker


@pytest.mark.parametrize("deficiency", ["protanopia", "deuteranopia", "tritanopia"])
def test_bars_can_be_told_apart_by_the_colour_blind(deficiency: str) -> None:
    looks = styles(KNOWN)
    for one, other in combinations(looks.values(), 2):
        assert contrast(seen_with(deficiency, one.fill), seen_with(deficiency, other.fill)) > 15


def test_dots_stand_out_from_their_bar() -> None:
    for look in styles(KNOWN).values():
        assert lightness(look.fill) - lightness(look.dark) > 25


def test_a_system_keeps_its_look_whoever_stands_beside_it() -> None:
    garage, minio, quorum, _ = KNOWN
    assert styles([garage])[garage] == styles([quorum, minio, garage])[garage]
    other = Series("minio", "2")
    both = styles([minio, other])
    assert both[minio] == styles([minio])[minio]
    assert both[other] != both[minio]
