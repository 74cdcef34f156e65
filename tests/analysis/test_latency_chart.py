"""The chart of endpoint latency shows what was measured, and every word on it can be read."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answers import answer_of, changing
from chart_checks import assert_apart, bars_of, contrast, dots_of, lightness, seen_with, texts_of
from matplotlib.figure import Figure

from tests.bundles import (
    BOB,
    BOB_ENDPOINTS,
    BOTH,
    FOUR_SYSTEMS,
    GARAGE,
    MINIO,
    MINIO_RELEASE,
    QUORUM,
    MakeBundle,
)
from wanlat.analysis.charts.style import styles
from wanlat.analysis.figures.latency import LATENCY
from wanlat.analysis.stats.modes import clumps
from wanlat.bundle.run import Series

pytestmark = pytest.mark.usefixtures("few_resamples")

LONG_NAME = (
    "a-name-of-a-topology-that-somebody-made-longer-than-any-page-is-wide/and-then-some.yaml"
)
STRANGE = ("a-system-with-a-rather-long-name", "v3.0.0-beta.12345.dirty+build.2026.11.20")
METHODS = ["some.package.v1.KeyValueStore/ReadConsistently", "some.package.v1.KeyValueStore/Write"]
ONLY_BOB: dict[str, Any] = {"systems": [BOB], "endpoints": BOB_ENDPOINTS, "placed": {"bob": BOTH}}
ONE: dict[str, Any] = {"systems": [GARAGE], "endpoints": ["GetObject"]}
FAR = {("garage", "GetObject"): [*np.linspace(80, 120, 99), 30_000.0]}


def chart_of(path: Path) -> Figure:
    return answer_of(LATENCY, path).charts()["endpoint-latency"]


def of_one(make: MakeBundle, values_ms: Any, **settings: Any) -> Figure:
    """The chart of one endpoint of Garage whose requests took `values_ms`."""
    return chart_of(make(**ONE, values_ms={("garage", "GetObject"): list(values_ms)}, **settings))


@pytest.mark.minutes
@pytest.mark.parametrize(
    "settings",
    [
        {"failures": {("minio", "PutObject"): (11, 22), ("garage", "GetObject"): (100, 0)}},
        {"systems": [MINIO, MINIO_RELEASE, STRANGE], "topology": LONG_NAME, "values_ms": FAR},
        {"n": 1, "manifest": {"status": "interrupted", "reason": "a reason, and a long one " * 9}},
        {"rtt_ms": None, "sites": 3, "nodes_a_site": 2, "topology": "costs $5 or $6"},
        {"values_ms": {("garage", "GetObject"): [0.0] * 100}, "endpoints": ["GetObject"]},
        {**FOUR_SYSTEMS, "failures": {("bob", "Get"): (100, 99), ("quorum", "Put"): (0, 5)}},
        {**ONLY_BOB, "endpoints": METHODS, "systems": [BOB, QUORUM, ("service", "unknown")]},
    ],
    ids=lambda settings: ",".join(map(str, settings)),
)
def test_no_word_lies_on_another(make_bundle: MakeBundle, settings: dict[str, Any]) -> None:
    assert_apart(chart_of(make_bundle(**settings)))


def test_every_sample_is_a_dot_on_the_bar_of_its_mode(make_bundle: MakeBundle) -> None:
    fast, slow = np.linspace(190, 210, 60), np.linspace(490, 510, 40)
    figure = of_one(make_bundle, [*fast, *slow])
    dots, bars = dots_of(figure), bars_of(figure)
    assert [sorted(each) for each in dots] == [pytest.approx(fast), pytest.approx(slow)]
    assert [bar.get_width() for bar in bars] == pytest.approx([200, 500])
    assert bars[0].get_height() / bars[1].get_height() == pytest.approx(60 / 40)
    assert {bar.get_x() for bar in bars} == {0.0} and figure.axes[0].get_xlim()[0] == 0
    assert "GetObject takes 2.0 or 5.0 RTTs on Garage" in texts_of(figure)


def test_modes_are_found_where_there_are_some_and_only_there() -> None:
    rng = np.random.default_rng(3)
    one = rng.uniform(80, 120, 200)
    assert [mode.share for mode in clumps(one, 12)] == [1.0]
    two = np.concatenate([one, rng.uniform(280, 320, 100)])
    assert [mode.share for mode in clumps(two, 12)] == pytest.approx([2 / 3, 1 / 3])
    assert len(clumps(np.append(one, [2000.0] * 5), 12)) == 1  # too few to be one
    assert len(clumps(two, None)) == len(clumps(np.full(9, 7.0), 12)) == 1
    members = np.array([mode.member for mode in clumps(two, 12)])
    assert (members.sum(axis=0) == 1).all()


def test_words_say_topology_systems_rtt_samples_and_failures(make_bundle: MakeBundle) -> None:
    failures = {("garage", "GetObject"): (3, 2), ("minio", "PutObject"): (0, 100)}
    manifest = {"status": "interrupted", "reason": "Ctrl-C"}
    path = make_bundle(systems=[GARAGE, MINIO, QUORUM], failures=failures, manifest=manifest)
    figure = chart_of(path)
    texts = texts_of(figure)
    whole = " ".join(texts)
    assert "endpoint-latency on five-sites" in whole and "0 to 100 samples a row" in whole
    assert "MinIO v0.0.0-20260212201848-7aac2a2c5b7c" in whole
    assert {"95 ok · 3 fail · 2 unknown", "0 ok · 100 unknown"} <= set(texts)
    assert "no request succeeded" in texts and "The run was interrupted (Ctrl-C)" in whole
    assert "Measured RTT between sites: median 100." in whole
    (ruler,) = figure.axes[0].child_axes
    assert ruler.get_xlim()[1] == pytest.approx(figure.axes[0].get_xlim()[1] / 100, rel=0.01)


def test_caption_and_table_count_what_dots_and_figures_rest_on(make_bundle: MakeBundle) -> None:
    path = make_bundle(**ONE, failures={("garage", "GetObject"): (3, 2)})
    samples = pd.read_parquet(path / "samples.parquet")
    is_ok = (samples["phase"] == "measure") & (samples["outcome"] == "ok")
    samples["late"] = is_ok & (is_ok.cumsum() <= 10)
    samples.to_parquet(path / "samples.parquet")
    answer = answer_of(LATENCY, path)
    figure = answer.charts()["endpoint-latency"]
    assert sum(len(dots) for dots in dots_of(figure)) == 85
    assert "85 samples a row" in " ".join(texts_of(figure))
    (grid,) = answer.grids()
    ((n, outcomes),) = [
        [cells[grid.headers.index(header)] for header in ("n", "ok/fail/unknown")]
        for cells in grid.rows
    ]
    assert (n, outcomes) == ("85", "95/3/2")


def test_a_network_without_one_rtt_has_no_ruler_and_says_why(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=20)
    with changing(path / "calibration.json") as document:
        document["pairs"][0]["rtt_ms"]["p50"] = 8.0
    figure = chart_of(path)
    assert figure.axes[0].child_axes == []
    assert "not equally far apart" in " ".join(texts_of(figure))


@pytest.mark.parametrize(
    ("values_ms", "reach", "named"),
    [
        ([*np.linspace(80, 120, 97), 700.0, 800.0, 900.0], (120, 200), "3 requests to 900 ms »"),
        ([*np.linspace(1, 3, 90), *np.linspace(41, 44, 10)], (44, 50), None),  # delayed ACKs
    ],
)
def test_a_few_far_samples_do_not_set_the_axis_and_are_named(
    make_bundle: MakeBundle, values_ms: Any, reach: tuple[float, float], named: str | None
) -> None:
    figure = of_one(make_bundle, values_ms)
    assert reach[0] < figure.axes[0].get_xlim()[1] < reach[1]
    beyond = [text for text in texts_of(figure) if "»" in text]
    assert beyond == ([] if named is None else [named])
    assert any("beyond the axis" in text for text in texts_of(figure)) == (named is not None)


def test_placements_have_rows_and_looks_of_their_own(make_bundle: MakeBundle) -> None:
    values = {("bob", "Get", "local"): [1.5] * 50, ("bob", "Get", "remote"): [100.0] * 50}
    path = make_bundle(**{**ONLY_BOB, "endpoints": ["Get", "Ping"]}, values_ms=values)
    figure = chart_of(path)
    local, remote, ping = bars_of(figure)
    assert (local.get_width(), remote.get_width()) == (1.5, 100.0)
    assert local.get_facecolor() == remote.get_facecolor() == ping.get_facecolor()
    assert local.get_hatch() == ping.get_hatch() != remote.get_hatch()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["Bob, local", "Bob, remote", "Bob"]
    (legend,) = figure.legends
    entries = [text.get_text() for text in legend.get_texts()]
    assert entries == ["Bob 2.1.0-alpha.12", "Bob 2.1.0-alpha.12, remote"]


def test_systems_can_be_told_apart_in_greyscale_and_by_the_colour_blind() -> None:
    garage, minio, *_ = known = [Series(name, "1") for name in ("garage", "minio", "quorum", "bob")]
    looks = styles(known)
    for one, other in combinations(looks.values(), 2):
        assert abs(lightness(one.fill) - lightness(other.fill)) > 8
        assert one.hatch != other.hatch and one.marker != other.marker
        for deficiency in ("protanopia", "deuteranopia", "tritanopia"):
            assert contrast(*(seen_with(deficiency, look.fill) for look in (one, other))) > 15
    # More than there are looks in store, so that every spare one is among them.
    many = styles([*known, *(Series(name, "1") for name in "abcdefghi")])
    rings = {look.at("remote").hatch for look in many.values()}
    assert len(rings) == 1 and rings.isdisjoint(look.hatch for look in many.values())
    for look in looks.values():
        assert lightness(look.fill) - lightness(look.dark) > 25  # dots stand out from their bar
        assert look.at("local") == look.at("unknown") == look != look.at("remote")
    # A system keeps its look whoever stands beside it; a second version of it has another.
    assert styles([garage])[garage] == looks[garage]
    both = styles([minio, Series("minio", "2")])
    assert both[minio] == looks[minio] != both[Series("minio", "2")]
