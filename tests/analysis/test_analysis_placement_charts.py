"""Local and remote bars share a row and a colour, and can be told apart without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_checks import assert_readable, bars_of, dots_of, texts_of
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from synthetic_bundles import (
    BOB,
    BOB_ENDPOINTS,
    BOTH,
    ENDPOINTS,
    FOUR_SYSTEMS,
    GARAGE,
    MINIO,
    QUORUM,
    MakeBundle,
)

from wanlat.analysis.bundle import Series, read_bundle
from wanlat.analysis.charts import endpoint_latency, published
from wanlat.analysis.charts.style import styles
from wanlat.analysis.summary import Summary, summarize

pytestmark = [pytest.mark.minutes, pytest.mark.usefixtures("few_resamples")]

ONLY_BOB: dict[str, Any] = {"systems": [BOB], "endpoints": BOB_ENDPOINTS, "placed": {"bob": BOTH}}
OTHER_BOB = ("bob", "2.1.0-alpha.99-and-a-branch-of-somebody")
METHODS = ["some.package.v1.KeyValueStore/ReadConsistently", "some.package.v1.KeyValueStore/Write"]
PAGE_HEIGHT = 2**0.5
"""Of a page of any A size, in widths: what a chart may have to be printed whole."""


def chart_of(path: Path) -> tuple[Figure, Summary]:
    bundle = read_bundle(path)
    summary = summarize(bundle)
    return endpoint_latency.draw(bundle, summary), summary


def faces_of(figure: Figure) -> list[str]:
    """The colour that the dots of each row are filled with, from the top."""
    dots = [c for c in figure.axes[0].collections if isinstance(c, PathCollection)]
    return [to_hex(tuple(np.asarray(one.get_facecolor())[0])) for one in dots]


@pytest.mark.parametrize(
    "settings",
    [
        FOUR_SYSTEMS,
        {**FOUR_SYSTEMS, "endpoints": {**FOUR_SYSTEMS["endpoints"], "quorum": ENDPOINTS}},
        {**FOUR_SYSTEMS, "n": 3},
        {**FOUR_SYSTEMS, "failures": {("bob", "Get"): (100, 99), ("quorum", "Put"): (0, 5)}},
        {**FOUR_SYSTEMS, "sites": 3, "nodes_a_site": 2, "topology": "three-datacenters"},
        ONLY_BOB,
        {**ONLY_BOB, "endpoints": ["Get"]},
        {**ONLY_BOB, "placed": {"bob": ["local"]}},
        {**ONLY_BOB, "systems": [BOB, OTHER_BOB]},
        {**ONLY_BOB, "endpoints": METHODS, "systems": [BOB, QUORUM, ("service", "unknown")]},
        {**ONLY_BOB, "rtt_ms": None, "n": 1},
    ],
    ids=[
        *("four systems", "quorum over S3", "few samples", "failures", "three datacenters"),
        *("Bob alone", "one endpoint", "all local", "two versions", "methods", "no calibration"),
    ],
)
def test_no_word_is_clipped_or_overlaps_with_placements(
    make_bundle: MakeBundle, settings: dict[str, Any]
) -> None:
    figure, _ = chart_of(make_bundle(**settings))
    assert_readable(figure)


def test_four_systems_fit_on_a_page(make_bundle: MakeBundle) -> None:
    figure, summary = chart_of(make_bundle(**FOUR_SYSTEMS))
    assert len(summary.endpoints) == 28
    width, height = figure.get_size_inches()
    assert height <= PAGE_HEIGHT * width


def test_endpoints_that_correspond_share_a_row(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(make_bundle(**FOUR_SYSTEMS))
    texts = texts_of(figure)
    assert texts[: texts.index("ListBuckets")].count("Get") == 0
    for s3, bob in (("GetObject", "Get"), ("PutObject", "Put"), ("RemoveObject", "Delete")):
        at = texts.index(f"{s3} ·")
        assert texts[at + 1] == bob
        assert texts.count(bob) == 1
    assert len([line for line in figure.axes[0].get_lines() if line.get_zorder() == 0]) == 7 - 1


def test_a_row_is_called_what_its_system_calls_it(make_bundle: MakeBundle) -> None:
    texts = texts_of(chart_of(make_bundle(**ONLY_BOB))[0])
    assert {*BOB_ENDPOINTS} <= set(texts)
    assert not any("Object" in text for text in texts)


def test_placements_have_bars_of_their_own_each_its_mean(make_bundle: MakeBundle) -> None:
    local, remote = list(np.linspace(1, 2, 50)), list(np.linspace(90, 110, 50))
    values = {("bob", "Get", "local"): local, ("bob", "Get", "remote"): remote}
    path = make_bundle(**{**ONLY_BOB, "endpoints": ["Get"]}, values_ms=values)
    figure, _ = chart_of(path)
    assert [bar.get_width() for bar in bars_of(figure)] == pytest.approx([1.5, 100.0])
    drawn = dots_of(figure)
    assert sorted(drawn[0]) == pytest.approx(local, abs=1e-5)
    assert sorted(drawn[1]) == pytest.approx(remote, abs=1e-5)


def test_local_and_remote_differ_in_all_but_colour(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(make_bundle(**{**ONLY_BOB, "endpoints": ["Get", "Ping"]}))
    local, remote, ping = bars_of(figure)
    assert local.get_facecolor() == remote.get_facecolor() == ping.get_facecolor()
    assert local.get_hatch() == ping.get_hatch() != remote.get_hatch()
    dark = styles([Series(*BOB)])[Series(*BOB)].dark
    assert faces_of(figure) == [dark, "#ffffff", dark]


def test_rings_are_the_hatch_of_no_system() -> None:
    # More than there are looks in store, so that every spare one is among them.
    series = [Series(name, "1") for name in ("garage", "minio", "bob", "quorum", *"abcd")]
    looks = styles(series)
    rings = {look.at("remote").hatch for look in looks.values()}
    assert len(rings) == 1
    assert rings.isdisjoint(look.hatch for look in looks.values())
    for look in looks.values():
        assert look.at("local") == look.at("unknown") == look
        assert look.at("remote").marker == look.marker


def test_every_bar_with_a_placement_says_it(make_bundle: MakeBundle) -> None:
    texts = texts_of(chart_of(make_bundle(**FOUR_SYSTEMS))[0])
    for label, times in (
        *(("Bob, local", 4), ("Bob, remote", 4), ("Bob", 1)),
        *(("quorum, local", 4), ("quorum, remote", 4), ("Garage", 5)),
    ):
        assert texts.count(label) == times, label
    whole = " ".join(texts)
    assert "Local: the node that was asked holds a replica of the key; remote: it does" in whole
    assert "Rings and open dots: remote." in whole
    assert "A bar that says neither: no key" in whole


def test_the_legend_has_both_looks_in_the_order_of_the_run(make_bundle: MakeBundle) -> None:
    texts = texts_of(chart_of(make_bundle(**FOUR_SYSTEMS))[0])
    legend = [
        *("Garage 2.5.0", "MinIO 2026-02-12"),
        *("Bob 2.1.0-alpha.12", "Bob 2.1.0-alpha.12, remote"),
        *("quorum 0.1.0 (reference store)", "quorum 0.1.0, remote"),
    ]
    start = texts.index(legend[0])
    assert texts[start : start + len(legend)] == legend


@pytest.mark.parametrize("placement", BOTH)
def test_bars_of_one_placement_say_it_in_the_legend(
    make_bundle: MakeBundle, placement: str
) -> None:
    settings = {"endpoints": ["Get", "Put"], "placed": {"bob": [placement]}}
    texts = texts_of(chart_of(make_bundle(**{**ONLY_BOB, **settings}))[0])
    assert f"Bob 2.1.0-alpha.12, {placement}" in texts
    assert "Bob 2.1.0-alpha.12" not in texts


def test_nothing_is_said_where_nothing_is_known(make_bundle: MakeBundle) -> None:
    figure, _ = chart_of(make_bundle(systems=[GARAGE, MINIO, BOB]))
    assert not any("remote" in text or "local" in text for text in texts_of(figure))


def test_the_comparison_is_of_what_was_published_alone(make_bundle: MakeBundle) -> None:
    def words(path: Path) -> list[str]:
        bundle = read_bundle(path)
        return texts_of(published.draw(bundle, summarize(bundle)))

    values = {
        (system, endpoint): list(np.linspace(90, 110 + rank, 30))
        for system in ("garage", "minio")
        for rank, endpoint in enumerate(ENDPOINTS)
    }
    without = make_bundle(name="without", values_ms=values)
    placed = make_bundle(name="with", **FOUR_SYSTEMS, values_ms=values)
    # What is calibrated differs between made-up runs, and is written in the caption.
    (placed / "calibration.json").write_bytes((without / "calibration.json").read_bytes())
    assert words(placed) == words(without)
