"""The charts of round trips show what the summary says, and every word on them can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_checks import assert_readable, texts_of
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from round_trips_bundles import TWO_LINES, Does, straight, write_round_trips_bundle

from wanlat.analysis.bundle import Bundle, read_bundle
from wanlat.analysis.charts import latency_against_rtt, round_trips
from wanlat.analysis.charts.style import ALARM
from wanlat.analysis.packets.model import Share
from wanlat.analysis.report import report
from wanlat.analysis.report import write as report_module
from wanlat.analysis.round_trips_block import RoundTrips
from wanlat.analysis.summary import Group, Summary, summarize
from wanlat.bundle.errors import BundleError

PUT = ("quorum", "PutObject", "unknown")
SMALL: dict[str, Any] = {"visits": 2, "samples": 8}
LONG = "a-name-of-a-topology-that-somebody-made-longer-than-any-page-is-wide-and-then-some"
STORES = {
    ("garage", "GetObject", "unknown"): [Does(1, 1)],
    ("minio", "GetObject", "unknown"): [Does(1, 5)],
    ("bob", "Get", "local"): [Does(1, 0)],
    ("bob", "Get", "remote"): TWO_LINES,
    ("bob", "Ping", "unknown"): [Does(1, 0)],
}
LONG_SYSTEM = {("a-system-with-a-rather-long-name", "GetObject", "unknown"): [Does(1, 1)]}
VERSIONS = {
    "garage": "2.5.0",
    "minio": "v0.0.0-20260212201848-7aac2a2c5b7c",
    "bob": "2.1.0-alpha.12",
    "a-system-with-a-rather-long-name": "v3.0.0-beta.12345.dirty+build.2026.11.20",
}

Made = tuple[Bundle, Summary]
Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(**settings: Any) -> Made:
        directory = tmp_path / f"bundle-{len(list(tmp_path.iterdir()))}"
        directory.mkdir()
        bundle = read_bundle(
            write_round_trips_bundle(directory, **{**SMALL, "versions": VERSIONS, **settings})
        )
        return bundle, summarize(bundle)

    return made


def with_chain(summary: Summary, chain: float, *, agrees: bool) -> Summary:
    """`summary`, every request of which has a chain of so many round trips."""
    assert summary.round_trips is not None

    def one(entry: RoundTrips) -> RoundTrips:
        return replace(
            entry,
            chain_round_trips=chain,
            chains=(Share(chain, 1.0),),
            agrees=agrees,
            disagreement=None if agrees else "made up",
            wan_bytes=123_456.7,
            wan_packets=1234.5,
        )

    return replace(summary, round_trips=tuple(one(entry) for entry in summary.round_trips))


def scatters(figure: Figure, marker_edges: int | None = None) -> list[PathCollection]:
    """The marks of all panels; with `marker_edges` those of a shape with so many corners."""
    found = [c for axes in figure.axes for c in axes.collections if isinstance(c, PathCollection)]
    return [
        one
        for one in found
        if marker_edges is None or len(one.get_paths()[0].vertices) == marker_edges
    ]


def bent(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
    return straight(rtt_ms, does, rng) + rtt_ms**2 / 150


@pytest.mark.minutes
@pytest.mark.parametrize(
    "settings",
    [
        {"does": LONG_SYSTEM | STORES, "topology": LONG},
        {"does": {PUT: [Does(0.3, 1), Does(0.3, 3), Does(0.4, 6)]}, "samples": 40},
        {"does": {PUT: [Does(1, 0)]}, "rtts_ms": (0.0,)},
        {"does": {PUT: [Does(1, 2)]}, "jitter_ms": 20.0},
        {"does": {PUT: [Does(1, 2)]}, "latency": bent},
        {"does": {PUT: [Does(1, 2)]}, "failures": {PUT: 10_000}},
        {"does": {PUT: [Does(1, 40)]}, "manifest": {"status": "failed", "reason": "why, " * 60}},
        {"does": {("quorum", "an.endpoint.with.a.long.Name/OfAMethod", "local"): [Does(1, 1)]}},
    ],
    ids=[
        *("long names", "three modes", "one RTT", "jitter", "bent", "all failed", "forty"),
        "long endpoint",
    ],
)
def test_no_word_is_clipped_or_overlaps_another(make: Make, settings: dict[str, Any]) -> None:
    bundle, summary = make(**settings)
    assert_readable(round_trips.draw(bundle, with_chain(summary, 2.5, agrees=False)))
    assert_readable(latency_against_rtt.draw(bundle, summary))


def test_every_request_is_a_point_near_its_rtt_and_at_its_latency(make: Make) -> None:
    bundle, summary = make(does={PUT: [Does(1, 2)]})
    figure = latency_against_rtt.draw(bundle, summary)
    assert summary.round_trips is not None
    points = summary.round_trips[0].points
    drawn = np.concatenate([np.asarray(one.get_offsets()) for one in scatters(figure)])
    drawn = drawn[np.argsort(drawn[:, 1])]
    order = np.argsort(points.latency_ms)
    assert drawn[:, 1] == pytest.approx(points.latency_ms[order])
    assert drawn[:, 0] == pytest.approx(points.rtt_ms[order], abs=0.035 * 200)


def test_the_line_that_is_drawn_has_the_slope_that_is_written(make: Make) -> None:
    bundle, summary = make(does={PUT: [Does(1, 3)]})
    figure = latency_against_rtt.draw(bundle, summary)
    (line,) = [line for line in figure.axes[0].get_lines() if line.get_linewidth() > 1]
    (left, right), (low, high) = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert (high - low) / (right - left) == pytest.approx(3, abs=0.02)
    assert any(text in texts_of(figure) for text in ("3.00", "2.99", "3.01"))


def test_requests_on_no_line_are_marked(make: Make) -> None:
    def with_strays(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
        return straight(rtt_ms, does, rng) + (rng.uniform(300, 900) if rng.random() < 0.06 else 0)

    bundle, summary = make(does={PUT: [Does(1, 1)]}, samples=20, latency=with_strays)
    assert summary.round_trips is not None
    (entry,) = summary.round_trips
    assert entry.unexplained
    figure = latency_against_rtt.draw(bundle, summary)
    alarming = [
        one
        for one in scatters(figure)
        if len(one.get_offsets()) and to_hex(one.get_edgecolor()[0]) == ALARM
    ]
    # Crosses within the axis and triangles at its end.
    assert sum(len(np.asarray(one.get_offsets())) for one in alarming) >= entry.unexplained


@pytest.mark.parametrize(
    "settings", [{"jitter_ms": 20.0}, {"latency": bent}], ids=["jitter", "bent"]
)
def test_no_line_and_no_mark_stand_where_there_is_no_number(
    make: Make, settings: dict[str, Any]
) -> None:
    bundle, summary = make(does={PUT: [Does(1, 2)]}, **settings)
    figure = latency_against_rtt.draw(bundle, summary)
    assert [line for line in figure.axes[0].get_lines() if line.get_linewidth() > 1] == []
    assert any("see below" in text for text in texts_of(figure))
    figure = round_trips.draw(bundle, summary)
    assert scatters(figure) == []
    words = " ".join(texts_of(figure))
    assert "see below" in words
    assert str((summary.round_trips or ())[0].why).split(":")[0] in words


def test_slope_and_chain_stand_at_their_values(make: Make) -> None:
    bundle, summary = make(does={PUT: [Does(1, 2)]})
    figure = round_trips.draw(bundle, with_chain(summary, 2.5, agrees=False))
    chain, slope = (np.asarray(one.get_offsets())[0][0] for one in scatters(figure))
    assert chain == 2.5
    assert slope == pytest.approx(2, abs=0.02)


def test_a_chain_that_disagrees_is_red_and_one_that_agrees_is_not(make: Make) -> None:
    bundle, summary = make(does={PUT: [Does(1, 2)]})
    for agrees in (True, False):
        figure = round_trips.draw(bundle, with_chain(summary, 2.0, agrees=agrees))
        (edge,) = {to_hex(one.get_edgecolor()[0]) for one in scatters(figure)[:1]}
        assert (edge == ALARM) is not agrees
        assert any("disagree" in text for text in texts_of(figure)) is not agrees


def test_the_area_of_a_mark_goes_by_its_share(make: Make) -> None:
    bundle, summary = make(does={PUT: TWO_LINES}, samples=40)
    figure = round_trips.draw(bundle, summary)
    areas = {
        round(np.asarray(one.get_offsets())[0][0]): one.get_sizes()[0] for one in scatters(figure)
    }
    assert areas[3] / areas[1] == pytest.approx(7 / 3, rel=0.3)


def test_what_is_out_of_reach_is_grey_up_to_the_least(make: Make) -> None:
    bundle, summary = make(does={PUT: [Does(1, 2)]}, least={PUT: (1.0, "two of three must answer")})
    figure = round_trips.draw(bundle, summary)
    (floor,) = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert floor.get_x() + floor.get_width() == pytest.approx(1)
    assert any("two of three must answer" in text for text in texts_of(figure))


def test_there_is_a_grid_line_at_each_whole_number(make: Make) -> None:
    bundle, summary = make(does={PUT: [Does(1, 4)]})
    axes = round_trips.draw(bundle, summary).axes[0]
    assert list(axes.get_xticks()) == [0, 1, 2, 3, 4, 5]


def test_a_report_of_two_systems_draws_both_charts_and_the_same_bytes_again(
    tmp_path: Path,
) -> None:
    does = {key: STORES[key] for key in STORES if key[1] == "Ping" or key[0] == "garage"}
    write_round_trips_bundle(tmp_path, does=does, versions=VERSIONS, visits=1, samples=6)

    def made() -> dict[str, bytes]:
        paths = report(tmp_path).paths
        return {path.name: path.read_bytes() for path in paths}

    first = made()
    names = {
        f"{stem}{suffix}"
        for stem in ("round-trips", "latency-against-rtt")
        for suffix in (".png", ".svg")
    }
    assert names <= first.keys()
    assert "endpoint-latency.png" not in first
    assert made() == first


def test_traces_that_cannot_be_drawn_take_no_other_away(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, summary = make(does={PUT: [Does(1, 2)], ("quorum", "Ping", "unknown"): [Does(1, 0)]})
    put, ping = sorted(summary.groups, key=lambda group: group.endpoint == "Ping")

    def traces_of(_: Bundle, groups: Sequence[Group]) -> tuple[str, ...]:
        if ping in groups:
            raise BundleError("the record ended before")
        return tuple(group.endpoint for group in groups)

    monkeypatch.setattr("wanlat.analysis.trace.traces_of", traces_of)
    assert report_module._traces(bundle, [put, ping]) == ("PutObject",)
