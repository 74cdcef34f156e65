"""What a report says of round trips: both answers, or why there is none, in words and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from answers import answer_of

from tests.bundles import PLAIN, TWO_LINES, Does, bent, straight, write_round_trips_bundle
from wanlat.analysis.figures import round_trips as figures
from wanlat.analysis.figures.round_trips import ROUND_TRIPS, RoundTrips, Status, percents
from wanlat.analysis.groups import grouped
from wanlat.analysis.packets.evidence import Cost, GroupEvidence, PacketEvidence, Share
from wanlat.analysis.section import Answer
from wanlat.analysis.summary import Summary, summarize
from wanlat.bundle.run import Run, read_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

pytestmark = pytest.mark.usefixtures("few_resamples")

PUT = ("quorum", "PutObject", "unknown")
REMOTE = ("quorum", "GetObject", "remote")
STORES = {
    ("garage", "GetObject", "unknown"): [Does(1, 1)],
    ("bob", "Get", "local"): [Does(1, 0)],
    ("bob", "Get", "remote"): TWO_LINES,
    ("a-system-with-a-rather-long-name", "GetObject", "unknown"): [Does(1, 5)],
}
VERSIONS = {
    "garage": "2.5.0",
    "bob": "2.1.0-alpha.12",
    "a-system-with-a-rather-long-name": "v3.0.0-beta.12345.dirty+build.2026.11.20",
}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(**settings: Any) -> Path:
        directory = tmp_path / f"bundle-{len(list(tmp_path.iterdir()))}"
        directory.mkdir()
        return write_round_trips_bundle(directory, **{"does": {PUT: [Does(1, 2)]}, **settings})

    return written


def only(path: Path) -> tuple[RoundTrips, Summary]:
    """The only entry of a bundle, and its summary."""
    summary = summarize(read_run(path))
    (entry,) = getattr(summary.blocks["round_trips"], "figures").arrays  # noqa: B009
    return entry, summary


def cells(answer: Answer, row: int = 0) -> dict[str, str]:
    (grid,) = answer.grids()
    return dict(zip(grid.headers, grid.rows[row], strict=True))


def recorded(monkeypatch: pytest.MonkeyPatch, *chains: tuple[float, float]) -> None:
    """Let the packet record have critical paths of so many round trips, with their shares."""

    def evidence_of(bundle: Run, system: str) -> PacketEvidence:
        cost = Cost(225, 4321.5, (4300.0, 4350.0), -1.0, (-2.0, 22.5))
        shares = tuple(Share(*chain) for chain in chains)
        one = GroupEvidence(chains[0][0], shares, 225, cost, None)
        trips = pd.Series(chains[0][0], index=bundle.measured.index)
        return PacketEvidence(None, trips, dict.fromkeys(grouped(bundle.measured), one))

    monkeypatch.setattr(figures, "evidence_of", evidence_of)


# --- the slope ----------------------------------------------------------------------------------


SITES = {"dc1": ["n1", "n2"], "dc2": ["n3", "n4"], "dc3": ["n5", "n6"]}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"jitter_ms": 20.0}, "jitter of 20 ms"),
        ({"rtts_ms": (0.0, 100.0)}, "only two RTTs (0, 100 ms)"),
        ({"far_ms": {"dc3": 12.0}}, "not equally long"),
        ({"failures": {PUT: 10_000}}, "No request succeeded"),
        ({"latency": bent}, "Not a line"),
        (
            {"rtts_ms": (0.0, 50.0, 100.0), "repeats": 1, "failed_steps": [1]},
            "among the RTT steps whose calibration passed",
        ),
        ({"forgotten_steps": range(15)}, "No RTT step was begun"),
        ({"far_ms": {"dc3": 0.9}}, None),  # links within a millisecond are equal
        ({"sites": SITES}, None),  # pairs inside a site are no links
    ],
)
def test_where_the_number_means_nothing_there_is_none_and_it_says_why(
    write: Write, settings: dict[str, Any], words: str | None
) -> None:
    entry, summary = only(write(**settings))
    document = entry.to_json()
    keys = ("round_trips", "ci95", "integer", "intercept_ms", "mean_round_trips", "mean_ci95")
    if words is None:
        assert document["round_trips"] == pytest.approx(2, abs=0.02)
        return
    assert words in document["why"] and any(words in note for note in summary.notes)
    assert {key: document[key] for key in keys} == dict.fromkeys(keys)
    assert document["modes"] == [] and document["agrees"] is None
    assert entry.status is (Status.NOT_A_LINE if "latency" in settings else Status.NO_NUMBER)


@pytest.mark.parametrize(
    ("settings", "n", "said"),
    [
        (
            {"failed_steps": [2, 7]},
            13 * 15,
            "2 RTT steps of 15 left out with 30 requests, because calibration failed",
        ),
        (
            {"forgotten_steps": [14], "manifest": {"status": "running"}},
            14 * 15,
            "15 requests left out: what RTT",
        ),
        ({"failures": {PUT: 20}}, 225, "20 of 225"),
        ({"links": {"loss": "1%", "rate": "100mbit"}}, 225, "The links have loss and rate"),
        ({"least": {PUT: (3.0, "made up")}}, 225, "Fewer round trips than a store can make"),
    ],
)
def test_what_is_left_out_or_odd_is_said(
    write: Write, settings: dict[str, Any], n: int, said: str
) -> None:
    entry, summary = only(write(**settings))
    assert entry.n == n and entry.round_trips == pytest.approx(2, abs=0.01)
    assert any(said in note for note in summary.notes)


# --- both answers, in the table -----------------------------------------------------------------


@pytest.mark.parametrize(("chain", "agrees"), [(2.0, True), (3.0, False)])
def test_both_answers_stand_side_by_side(
    write: Write, monkeypatch: pytest.MonkeyPatch, chain: float, agrees: bool
) -> None:
    recorded(monkeypatch, (chain, 1.0))
    answer = answer_of(ROUND_TRIPS, write())
    (document,) = answer.to_json()
    assert document["agrees"] is agrees
    assert document["chain_round_trips"] == chain
    assert document["chains"] == [{"round_trips": chain, "share": 1}]
    assert document["wan_bytes"] == 4321.5 and document["wan_bytes_ci95"] == [4300, 4350]
    said = cells(answer)
    assert said["critical path"] == f"{chain:g}" + ("" if agrees else " ≠")
    assert said["modes"] == "98 %: 2.00, 2 % unexplained"
    assert said["WAN packets"] == "≤ 22.5"  # that may be nothing
    assert any("disagree" in note for note in answer.notes) is not agrees


def test_a_headline_hides_no_half_of_the_requests_and_has_the_packets_number_where_no_line_is(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves, path = {REMOTE: [Does(0.55, 3), Does(0.45, 1)]}, write(latency=bent)
    none = answer_of(ROUND_TRIPS, path)
    assert cells(none)["round trips [95 %]"] == "not a line"
    assert any(note.startswith("No critical path") for note in none.notes)
    recorded(monkeypatch, (3.0, 113 / 225), (1.0, 112 / 225))
    said = cells(answer_of(ROUND_TRIPS, write(does=halves, samples=30)))
    assert said["critical path"].startswith("3 or 1")
    first, _, second = said["round trips [95 %]"].partition(" or ")
    assert {round(float(first.split()[0])), round(float(second))} == {1, 3}
    recorded(monkeypatch, (2.0, 0.9), (3.0, 0.1))
    assert cells(answer_of(ROUND_TRIPS, path))["round trips [95 %]"] == "2 by packets (90 %)"


def test_shares_of_modes_and_of_what_is_on_no_line_add_up_to_100(tmp_path: Path) -> None:
    assert percents([0.456, 0.411, 0.089]) == [46, 41, 9, 4]
    assert sum(percents([1 / 3] * 3)) == sum(percents([0.995])) == 100
    answer = answer_of(ROUND_TRIPS, write_round_trips_bundle(tmp_path))
    assert len(answer.figures.rows) == len(PLAIN)
    said = cells(answer, 2)["modes"]
    assert sum(int(part.split(" %")[0]) for part in said.split(", ")) == 100
    assert "-0.00" not in str(answer.grids())


# --- the charts ---------------------------------------------------------------------------------


def drawn(answer: Answer) -> tuple[Figure, Figure]:
    from wanlat.analysis.charts import round_trips

    return round_trips.draw_marks(answer), round_trips.draw_lines(answer)


def scatters(figure: Figure) -> list[Any]:
    from matplotlib.collections import PathCollection

    return [c for axes in figure.axes for c in axes.collections if isinstance(c, PathCollection)]


@pytest.mark.minutes
@pytest.mark.parametrize(
    "settings",
    [
        {"does": STORES, "topology": "a-name-of-a-topology-longer-than-any-page-is-wide" * 2},
        {"does": {PUT: [Does(0.3, 1), Does(0.3, 3), Does(0.4, 6)]}, "samples": 40},
        {"failures": {PUT: 10_000}, "manifest": {"status": "failed", "reason": "why, " * 60}},
        {"does": {("quorum", "an.endpoint.with.a.long.Name/OfAMethod", "local"): [Does(1, 40)]}},
    ],
)
def test_no_word_is_clipped_or_overlaps_another(
    write: Write, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    from chart_checks import assert_apart

    recorded(monkeypatch, (2.5, 0.6), (2.0, 0.4))
    for figure in drawn(answer_of(ROUND_TRIPS, write(versions=VERSIONS, **settings))):
        assert_apart(figure)


def test_every_request_is_a_point_and_marks_stand_at_their_values(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.colors import to_hex

    from wanlat.analysis.charts.style import ALARM

    def with_strays(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
        return straight(rtt_ms, does, rng) + (rng.uniform(300, 900) if rng.random() < 0.06 else 0)

    recorded(monkeypatch, (2.5, 1.0))
    least = {PUT: (1.0, "two of three must answer")}
    how = {"does": {PUT: TWO_LINES}, "samples": 40, "latency": with_strays, "least": least}
    answer = answer_of(ROUND_TRIPS, write(**how))
    (entry,), (marks, lines) = answer.figures.arrays, drawn(answer)
    points = np.concatenate([np.asarray(one.get_offsets()) for one in scatters(lines)])
    expected = np.minimum(entry.points.latency_ms, lines.axes[0].get_ylim()[1])
    assert np.sort(points[:, 1]) == pytest.approx(np.sort(expected))
    _, *alarming = scatters(lines)
    assert sum(len(one.get_offsets()) for one in alarming) >= entry.to_json()["unexplained"] > 0
    ends = [line.get_xydata() for line in lines.axes[0].get_lines() if line.get_linewidth() > 1]
    slopes = [(high - low) / (right - left) for (left, low), (right, high) in ends]
    assert sorted(slopes) == pytest.approx([1, 3], abs=0.05)

    chain, *modes = scatters(marks)
    assert chain.get_offsets()[0][0] == 2.5
    assert to_hex(chain.get_edgecolor()[0]) == ALARM  # it disagrees
    areas = {round(one.get_offsets()[0][0]): one.get_sizes()[0] for one in modes}
    assert areas[3] / areas[1] == pytest.approx(7 / 3, rel=0.3)
    (floor,) = marks.axes[0].patches
    assert floor.get_x() + floor.get_width() == pytest.approx(1)
    words = [text.get_text() for text in marks.texts]
    assert any("two of three must answer" in text for text in words)
    assert "quorum PutObject takes 3 or 1 round trips" in words
    agreeing = [replace(entry, agrees=True) for entry in answer.figures.arrays]
    again = replace(answer, figures=replace(answer.figures, arrays=tuple(agreeing)))
    assert to_hex(scatters(drawn(again)[0])[0].get_edgecolor()[0]) != ALARM


@pytest.mark.parametrize(
    ("trips", "says"),
    [
        (
            {"ListObjects": 0, "PutObject": 2, "RemoveObject": 2},
            "quorum PutObject and RemoveObject take 2 round trips",
        ),
        (
            {"GetObject": 1, "PutObject": 1, "RemoveObject": 1},
            "quorum GetObject and 2 more take 1 round trip",
        ),
    ],
)
def test_a_title_names_all_that_take_most(write: Write, trips: dict[str, int], says: str) -> None:
    does = {("quorum", name, "unknown"): [Does(1, number)] for name, number in trips.items()}
    marks, _ = drawn(answer_of(ROUND_TRIPS, write(does=does)))
    assert says in [text.get_text() for text in marks.texts]
    assert not any("lower bound" in text.get_text() for text in marks.texts)


def test_no_line_and_no_mark_stand_where_there_is_no_number(write: Write) -> None:
    answer = answer_of(ROUND_TRIPS, write(latency=bent))
    marks, lines = drawn(answer)
    assert [line for line in lines.axes[0].get_lines() if line.get_linewidth() > 1] == []
    assert scatters(marks) == []
    why = str(answer.figures.rows[0]["why"]).split(":")[0]
    for figure in (marks, lines):
        assert any("see below" in text.get_text() for text in figure.axes[0].texts)
        assert why in " ".join(text.get_text() for text in figure.texts)
