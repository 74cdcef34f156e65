"""The comparison with published figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from chart_checks import assert_readable, bars_of, texts_of
from matplotlib.figure import Figure
from synthetic_bundles import GARAGE, MINIO, MINIO_RELEASE, QUORUM, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.charts import published
from wanlat.analysis.summary import summarize

pytestmark = pytest.mark.usefixtures("few_resamples")


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
