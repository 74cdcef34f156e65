"""Claims are compared with intervals, not with single percentages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drill_bundles import Trouble, write_drill
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from wanlat.analysis.drill.claims import wilson
from wanlat.analysis.drill.model import Claim
from wanlat.analysis.drill.read import read_drill

SOURCE = {"id": "mine", "claim": "it goes on", "source": "somewhere, section 3"}


def claim(directory: Path, spec: dict[str, Any], *troubles: Trouble, **settings: Any) -> Claim:
    settings = {"phases_s": (5, 20, 5), "objects": 5} | settings
    figure = spec if "durability" in spec else {"availability": spec}
    path = write_drill(directory, troubles=troubles, claims=[SOURCE | figure], **settings)
    (told,) = read_drill(path).claims
    return told


@given(st.integers(1, 3000), st.data())
def test_the_interval_is_wilsons(n: int, data: Any) -> None:
    ok = data.draw(st.integers(0, n))
    expected = binomtest(ok, n).proportion_ci(method="wilson")
    assert wilson(ok, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_nothing_seen_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("bound", "part_down", "verdict"),
    [
        ({"at_least": "90%"}, 0.0, "holds"),
        ({"at_least": "90%"}, 1.0, "does not hold"),
        ({"at_most": "10%"}, 1.0, "holds"),
        ({"at_most": "10%"}, 0.0, "does not hold"),
        ({"at_least": 0.5}, 0.5, "not decided"),
        ({"at_most": 0.5}, 0.5, "not decided"),
        # 80 requests, all ok: the interval begins at 95.4 %.
        ({"at_least": "99%"}, 0.0, "not decided"),
    ],
)
def test_a_claim_of_availability_needs_all_of_the_interval(
    tmp_path: Path, bound: dict[str, Any], part_down: float, verdict: str
) -> None:
    down = [Trouble("down", 5, 25, ["victim"], part=part_down)] if part_down else []
    spec = {"of": "reads", "client": "victim", **bound}
    if part_down == 0.5:
        spec |= {"from": "1s"}
    told = claim(tmp_path / "b", spec, *down)
    assert told.verdict == verdict, told.evidence


def test_the_evidence_has_the_figures(tmp_path: Path) -> None:
    spec = {
        "of": "reads",
        "client": "survivor",
        "from": "5s",
        "to": "10s",
        "at_least": "90%",
    }
    told = claim(tmp_path / "b", spec)
    assert told.evidence == (
        "20 of 20 reads from n3 (survivor) between 5 s and 10 s of `during` were ok "
        "(100.0 %, 83.9–100.0 %)"
    )
    assert told.verdict == "not decided"


def test_only_the_claimed_part_of_the_phase_counts(tmp_path: Path) -> None:
    down = Trouble("down", 5, 10)  # the first 5 s of `during`
    spec = {"of": "writes", "at_least": "90%"}
    assert claim(tmp_path / "a", spec, down).verdict == "does not hold"
    assert claim(tmp_path / "b", spec | {"from": "6s"}, down).verdict == "holds"
    assert claim(tmp_path / "c", spec | {"to": "4s"}, down).evidence.startswith("0 of 32 writes")
    assert claim(tmp_path / "d", spec | {"phase": "after"}, down).verdict == "holds"


def test_fewer_than_ten_requests_decide_nothing(tmp_path: Path) -> None:
    spec = {"of": "reads", "client": "victim", "to": "2s", "at_least": "10%"}
    told = claim(tmp_path / "b", spec)
    assert told.verdict == "not decided" and "too few" in told.evidence


def test_a_phase_that_was_cut_short_decides_only_what_it_covers(tmp_path: Path) -> None:
    spec = {"of": "reads", "at_least": "80%"}
    whole = claim(tmp_path / "a", spec, killed_at_s=15.0)
    assert whole.verdict == "not decided" and "cut short" in whole.evidence
    assert claim(tmp_path / "b", spec | {"to": "8s"}, killed_at_s=15.0).verdict == "holds"
    never = claim(tmp_path / "c", spec, killed_at_s=3.0)
    assert (never.verdict, never.evidence) == ("not decided", "`during` was not reached")


@pytest.mark.parametrize(
    ("claimed", "spoil", "rounds", "verdict"),
    [
        ("intact", {}, ("healed", "restarted"), "holds"),
        ("intact", {"lost": 1}, ("healed", "restarted"), "does not hold"),
        ("intact", {}, ("healed",), "not decided"),
        ("broken", {}, ("healed", "restarted"), "does not hold"),
        ("broken", {"stale": 1}, ("healed", "restarted"), "holds"),
        ("broken", {"unread": 1}, ("healed", "restarted"), "not decided"),
    ],
)
def test_a_claim_of_durability_is_compared_with_the_verdict(
    tmp_path: Path, claimed: str, spoil: dict[str, int], rounds: tuple[str, ...], verdict: str
) -> None:
    told = claim(tmp_path / "b", {"durability": claimed}, spoil=spoil, rounds=rounds)
    assert told.verdict == verdict


def test_a_claim_that_does_not_hold_fails_the_drill_and_one_undecided_does_not(
    tmp_path: Path,
) -> None:
    figure = {"of": "reads", "at_least": "90%"}
    least = SOURCE | {"availability": figure}
    down = [Trouble("down", 5, 25)]
    fails = read_drill(
        write_drill(tmp_path / "a", phases_s=(5, 20, 5), troubles=down, claims=[least])
    )
    assert not fails.passed
    assert any("does not hold" in why for why in fails.failures)
    undecided = SOURCE | {"availability": figure | {"to": "500ms"}}
    passes = read_drill(
        write_drill(tmp_path / "b", phases_s=(5, 20, 5), troubles=down, claims=[undecided])
    )
    assert passes.passed, passes.failures
