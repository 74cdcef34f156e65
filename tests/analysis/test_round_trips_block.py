"""What summary.json says of round trips: both answers, or why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from round_trips_bundles import TWO_LINES, Does, straight, write_round_trips_bundle
from synthetic_bundles import MakeBundle

from wanlat.analysis.agreement import compare
from wanlat.analysis.bundle import Bundle, read_bundle
from wanlat.analysis.packets import evidence
from wanlat.analysis.packets.cost import Cost
from wanlat.analysis.packets.model import GroupEvidence, PacketEvidence, Share
from wanlat.analysis.round_trips import Mode
from wanlat.analysis.round_trips_block import RoundTrips, round_trips_of
from wanlat.analysis.summary import Summary, grouped, summarize
from wanlat.bundle.errors import BundleError

PUT = ("quorum", "PutObject", "unknown")
LOCAL = ("quorum", "GetObject", "local")
REMOTE = ("quorum", "GetObject", "remote")
TWO_ROUND_TRIPS = {PUT: [Does(1, 2)]}

ISSUE_KEYS = [
    *("system", "version", "topology", "endpoint", "placement", "round_trips", "ci95"),
    *("intercept_ms", "modes", "chain_round_trips", "wan_bytes", "wan_packets", "n"),
]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(**settings: Any) -> Path:
        directory = tmp_path / "bundle"
        directory.mkdir()
        return write_round_trips_bundle(directory, **settings)

    return written


def only(path: Path) -> tuple[RoundTrips, Summary]:
    """The only entry of a bundle, and its summary."""
    summary = summarize(read_bundle(path))
    assert summary.round_trips is not None
    (entry,) = summary.round_trips
    return entry, summary


def assert_no_number(entry: RoundTrips) -> None:
    """Neither the entry nor its JSON has a figure that claims a slope."""
    document = entry.to_json()
    assert entry.why
    assert entry.round_trips is entry.ci95 is entry.integer is entry.intercept_ms is None
    for key in ("round_trips", "ci95", "integer", "intercept_ms", "intercept_ci95_ms"):
        assert document[key] is None, key
    assert document["mean_round_trips"] is document["mean_ci95"] is document["agrees"] is None
    assert document["modes"] == []
    assert document["why"] == entry.why


def test_the_keys_of_the_issue_come_first_and_in_its_order(write: Write) -> None:
    _, summary = only(write(does=TWO_ROUND_TRIPS))
    (document,) = summary.to_json()["round_trips"]
    assert list(document)[: len(ISSUE_KEYS)] == ISSUE_KEYS
    assert json.loads(summary.to_text())["round_trips"] == [document]


def test_slope_and_own_time_are_those_that_the_latencies_were_made_with(write: Write) -> None:
    entry, _ = only(write(does=TWO_ROUND_TRIPS))
    assert entry.round_trips == pytest.approx(2, abs=0.01)
    assert entry.integer == 2
    assert entry.intercept_ms == pytest.approx(3.3, abs=0.5)
    assert entry.n == 5 * 3 * 15  # no warm-up


def test_each_mode_has_its_share_and_its_round_trips(write: Write) -> None:
    entry, _ = only(write(does={REMOTE: TWO_LINES}))
    modes = entry.to_json()["modes"]
    assert [round(mode["round_trips"], 1) for mode in modes] == [3, 1]
    assert modes[0]["share"] == pytest.approx(0.7, abs=0.08)
    assert list(modes[0])[:2] == ["share", "round_trips"]


def test_no_latency_is_given_over_all_rtts_together_but_at_each(write: Write) -> None:
    _, summary = only(write(does=TWO_ROUND_TRIPS))
    document = summary.to_json()
    assert document["endpoints"] == []
    by_rtt = document["round_trips_by_rtt"]
    assert [row["rtt_ms"] for row in by_rtt] == [0, 25, 50, 100, 200]
    assert [row["n"] for row in by_rtt] == [45] * 5
    for row in by_rtt:
        assert row["median_ms"] == pytest.approx(3.3 + 2 * row["measured_rtt_ms"], abs=0.5)


def test_an_ordinary_study_has_no_round_trips(make_bundle: MakeBundle) -> None:
    bundle = read_bundle(make_bundle(n=5))
    assert round_trips_of(bundle) == ()
    assert "round_trips" not in summarize(bundle).to_json()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"jitter_ms": 20.0}, "jitter of 20 ms"),
        ({"rtts_ms": (0.0, 100.0)}, "only 2 RTTs (0, 100 ms)"),
        ({"rtts_ms": (100.0,)}, "only one RTT (100 ms)"),
        ({"far_ms": {"dc3": 12.0}}, "not equally long"),
        ({"failures": {PUT: 10_000}}, "No request succeeded"),
    ],
    ids=["jitter", "two RTTs", "one RTT", "unequal links", "all failed"],
)
def test_where_the_number_means_nothing_there_is_none_and_it_says_why(
    write: Write, settings: dict[str, Any], words: str
) -> None:
    entry, summary = only(write(does=TWO_ROUND_TRIPS, **settings))
    assert_no_number(entry)
    assert words in str(entry.why)
    assert any(words in note for note in summary.notes)


def test_latencies_that_bend_give_no_number(write: Write) -> None:
    def bent(rtt_ms: float, does: Does, rng: Any) -> float:
        return straight(rtt_ms, does, rng) + rtt_ms**2 / 150

    entry, _ = only(write(does=TWO_ROUND_TRIPS, latency=bent))
    assert_no_number(entry)
    assert entry.to_json()["fit"]["verdict"] == "not a line"


def test_links_within_a_millisecond_of_each_other_are_equal(write: Write) -> None:
    entry, _ = only(write(does=TWO_ROUND_TRIPS, far_ms={"dc3": 0.9}))
    assert entry.round_trips is not None


def test_pairs_inside_a_site_are_no_links(write: Write) -> None:
    sites = {"dc1": ["n1", "n2"], "dc2": ["n3", "n4"], "dc3": ["n5", "n6"]}
    entry, _ = only(write(does=TWO_ROUND_TRIPS, sites=sites))
    assert entry.round_trips == pytest.approx(2, abs=0.01)


def test_a_visit_whose_calibration_failed_is_left_out_and_named(write: Write) -> None:
    entry, summary = only(write(does=TWO_ROUND_TRIPS, failed_visits=[2, 7]))
    assert entry.n == 13 * 15
    (note,) = [note for note in summary.notes if "left out" in note]
    assert note.startswith("2 visits of 15 left out with 30 requests, because calibration failed")
    assert "0.9 ms off" in note


def test_failed_visits_can_leave_too_few_rtts(write: Write) -> None:
    path = write(does=TWO_ROUND_TRIPS, rtts_ms=(0.0, 50.0, 100.0), visits=1, failed_visits=[1])
    entry, _ = only(path)
    assert_no_number(entry)
    assert "among the visits whose calibration passed" in str(entry.why)


def test_requests_of_the_visit_in_which_a_run_was_killed_are_left_out_and_counted(
    write: Write,
) -> None:
    path = write(does=TWO_ROUND_TRIPS, forgotten_visits=[14], manifest={"status": "running"})
    entry, summary = only(path)
    assert entry.n == 14 * 15
    assert any("15 requests of the visit in which the run ended" in n for n in summary.notes)


def test_a_run_killed_before_its_first_visit_ended_has_no_number(write: Write) -> None:
    path = write(does=TWO_ROUND_TRIPS, forgotten_visits=range(15))
    (path / "rtt_steps.json").unlink()
    entry, _ = only(path)
    assert_no_number(entry)
    assert "No visit" in str(entry.why)


def test_failures_are_counted_and_in_no_slope(write: Write) -> None:
    entry, summary = only(write(does=TWO_ROUND_TRIPS, failures={PUT: 20}))
    assert (entry.n, entry.failed, entry.ok) == (225, 20, 205)
    assert entry.round_trips == pytest.approx(2, abs=0.01)
    assert any("20 of 225" in note for note in summary.notes)


def test_damaged_visits_are_refused(write: Write) -> None:
    path = write(does=TWO_ROUND_TRIPS)
    document = json.loads((path / "rtt_steps.json").read_text())
    (path / "rtt_steps.json").write_text(json.dumps({"rtt_steps": document["rtt_steps"] * 2}))
    with pytest.raises(BundleError, match="twice"):
        summarize(read_bundle(path))
    (path / "rtt_steps.json").write_text(json.dumps({"rtt_steps": [{"system": "quorum"}]}))
    with pytest.raises(BundleError, match="damaged"):
        summarize(read_bundle(path))


@pytest.mark.parametrize(
    ("links", "words"), [({"loss": "1%"}, "have loss"), ({"rate": "100mbit"}, "have rate")]
)
def test_loss_and_rate_take_no_number_away_and_are_said(
    write: Write, links: dict[str, str], words: str
) -> None:
    entry, summary = only(write(does=TWO_ROUND_TRIPS, links=links))
    assert entry.round_trips is not None
    assert any(words in note for note in summary.notes)


def test_the_least_round_trips_come_from_the_manifest(write: Write) -> None:
    entry, _ = only(write(does=TWO_ROUND_TRIPS, least={PUT: (1.0, "three of five must answer")}))
    document = entry.to_json()
    assert document["least_round_trips"] == 1
    assert document["least_why"] == "three of five must answer"


def test_fewer_round_trips_than_any_store_can_make_are_pointed_out(write: Write) -> None:
    least = {PUT: (3.0, "made up")}
    _, summary = only(write(does=TWO_ROUND_TRIPS, least=least))
    assert any("Fewer round trips" in note for note in summary.notes)


def test_without_a_packet_record_the_second_answer_is_missing_and_that_is_said(
    write: Write,
) -> None:
    entry, summary = only(write(does=TWO_ROUND_TRIPS))
    document = entry.to_json()
    assert document["chain_round_trips"] is document["wan_bytes"] is document["agrees"] is None
    assert document["chains"] == []
    assert document["why_no_chain"]
    assert any(note.startswith("No chain") for note in summary.notes)


def recorded(monkeypatch: pytest.MonkeyPatch, chains: Sequence[Share], n: int = 225) -> None:
    """Let the packet record say `chains` of every group."""

    def evidence_of(bundle: Bundle, system: str) -> PacketEvidence:
        cost = Cost(n, 4321.5, (4300.0, 4350.0), 22.25, (22.0, 22.5))
        one = GroupEvidence(chains[0].round_trips, tuple(chains), n, 0.0, 0.0, 0.0, cost, None)
        groups = dict.fromkeys(grouped(bundle.measured), one)
        assert system == "quorum"
        trips = pd.Series(chains[0].round_trips, index=bundle.measured.index)
        return PacketEvidence(None, trips, groups)

    monkeypatch.setattr(evidence, "evidence_of", evidence_of)


def test_a_chain_that_agrees_stands_beside_the_slope(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(monkeypatch, [Share(2.0, 1.0)])
    entry, summary = only(write(does=TWO_ROUND_TRIPS))
    document = entry.to_json()
    assert document["agrees"] is True
    assert document["chain_round_trips"] == 2
    assert document["chains"] == [{"round_trips": 2, "share": 1}]
    assert document["wan_bytes"] == 4321.5
    assert document["wan_packets"] == 22.25
    assert document["wan_bytes_ci95"] == [4300, 4350]
    assert not any("disagree" in note for note in summary.notes)
    assert (entry.points.chain == 2).all()


def test_a_chain_that_disagrees_is_reported_and_not_hidden(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(monkeypatch, [Share(3.0, 1.0)])
    entry, summary = only(write(does=TWO_ROUND_TRIPS))
    document = entry.to_json()
    assert document["agrees"] is False
    assert document["round_trips"] == pytest.approx(2, abs=0.01)
    assert document["chain_round_trips"] == 3
    assert "the packets of 100 % of those requests say 3" in document["disagreement"]
    assert any("disagree in 1 row of 1" in note for note in summary.notes)


def test_the_chain_needs_no_line(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(monkeypatch, [Share(2.0, 1.0)])
    entry, _ = only(write(does=TWO_ROUND_TRIPS, jitter_ms=20.0))
    assert_no_number(entry)
    assert entry.chain_round_trips == 2


MODE = Mode(1.0, (0.98, 1.0), 2.0, (1.99, 2.01), 3.0, (2.9, 3.1), 225)
THREE = replace(MODE, share=0.7, round_trips=3.0, ci95=(2.98, 3.02))
ONE = replace(MODE, share=0.3, round_trips=1.0, ci95=(0.97, 1.03))


@pytest.mark.parametrize(
    ("mode", "chain", "agree"),
    [
        (MODE, 2.0, True),
        (replace(MODE, ci95=(2.05, 2.09)), 2.0, True),
        (replace(MODE, ci95=(2.12, 2.2)), 2.0, False),
        (replace(MODE, ci95=(1.4, 2.6)), 2.5, True),
        (MODE, 2.5, False),
    ],
)
def test_a_chain_agrees_within_a_tenth_of_the_interval(
    mode: Mode, chain: float, agree: bool
) -> None:
    assert compare([mode], np.zeros(50, int), np.full(50, chain)).agrees is agree


@pytest.mark.parametrize(
    ("members", "chains", "agree"),
    [
        ([0] * 70 + [1] * 30, [3.0] * 70 + [1.0] * 30, True),
        ([0] * 70 + [1] * 30, [3.0] * 100, False),
        ([0] * 70 + [1] * 30, [3.0] * 40 + [1.0] * 60, False),
        ([0] * 70 + [1] * 30, [3.0] * 65 + [1.0] * 35, True),
        ([0] * 70 + [1] * 30, [1.0] * 70 + [3.0] * 30, False),
        # Latencies on no line, and chains that are not known, contradict nothing.
        ([0] * 70 + [-1] * 30, [3.0] * 70 + [7.0] * 30, True),
        ([0] * 70 + [1] * 30, [3.0] * 70 + [math.nan] * 30, True),
        # One request among few is no disagreement, two are.
        ([0] * 6, [3.0] * 5 + [5.0], True),
        ([0] * 6, [3.0] * 4 + [5.0] * 2, False),
        # No request has both answers.
        ([0] * 5, [math.nan] * 5, None),
    ],
)
def test_when_modes_and_chains_agree(
    members: list[int], chains: list[float], agree: bool | None
) -> None:
    found = compare([THREE, ONE], np.array(members), np.array(chains))
    assert found.agrees is agree
    assert (found.disagreement is not None) is (agree is False)


def test_two_parallel_lines_are_one_length_of_chain() -> None:
    late = replace(MODE, share=0.4, intercept_ms=43.0)
    members = np.array([0] * 6 + [1] * 4)
    assert compare([MODE, late], members, np.full(10, 2.0)).agrees


def test_the_words_of_a_disagreement_have_both_numbers() -> None:
    found = compare([THREE, ONE], np.array([0] * 7 + [1] * 3), np.array([3.0] * 10))
    assert found.disagreement == (
        "3 of 3 on the line of 1.00 have a chain of another length, mostly 3"
    )
