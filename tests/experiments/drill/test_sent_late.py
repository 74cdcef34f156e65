"""A machine on which a drill's clients get no processor is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.experiments.drill.drills import SHORTEST, drill
from tests.late_network import accepting_late_packets
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.files import find
from wanlat.experiments.drill.model import Drill, scenario
from wanlat.experiments.drill.prepare import load, prepare
from wanlat.experiments.drill.runner import SentLate
from wanlat.topologies.units import Duration

LATE_NS, IN_TIME_NS = 101 * 10**6, 99 * 10**6


def row(phase: str, lag_ns: int | None) -> dict[str, Any]:
    due_ns = 5 * 10**9
    return {
        "phase": phase,
        "due_ns": due_ns,
        "start_ns": None if lag_ns is None else due_ns + lag_ns,
    }


@pytest.mark.parametrize(("late", "is_told"), [(3, False), (4, True), (100, True)])
@pytest.mark.parametrize("phase", ["before", "during", "after"])
def test_requests_that_are_sent_too_late_are_told(late: int, is_told: bool, phase: str) -> None:
    sent = SentLate()
    for number in range(100):
        lag_ns = LATE_NS if number < late else IN_TIME_NS
        sent.handed_over(phase, 0 if phase == "before" else lag_ns)
        sent.take(row(phase, lag_ns))
    for _ in range(50):
        sent.take(row(phase, None))  # never sent: it says nothing
        sent.handed_over("warmup", LATE_NS)
    said = sent.warning()
    assert (said is not None) == is_told
    if said is not None:
        assert said.startswith(f"{late} % of the requests of the phase `{phase}` were sent more")
        assert "--jobs auto" in said


def test_each_phase_counts_by_itself_and_few_requests_not_at_all() -> None:
    sent = SentLate()
    for number in range(1000):
        sent.handed_over("during", 0)
        sent.take(row("before", LATE_NS if number < 2 else 0) if number < 40 else row("after", 0))
    assert sent.warning() is None, "2 of 40"
    sent.take(row("before", LATE_NS))
    assert (sent.warning() or "").startswith("7 % of the requests of the phase `before`")


def test_a_probe_that_connects_to_a_node_that_is_down_blames_no_machine() -> None:
    sent = SentLate()
    for _ in range(100):
        sent.handed_over("during", 10**6)
        sent.take(row("during", 30 * 10**9))
    assert sent.warning() is None


def test_a_drill_whose_requests_were_sent_late_is_to_be_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_SENT_LATE_NS", -1)  # each is
    fault = "faults:\n  - {kill: victim, for: 500ms}\n"
    made = prepare(
        load(drill(tmp_path, fault, SHORTEST)), system="quorum", directory=tmp_path / "b"
    )
    with accepting_late_packets("drill"):
        outcome = runner.run(made)
    assert (outcome.status, outcome.is_late) == ("complete", True)
    assert any("were sent more than" in each for each in outcome.warnings)


def test_only_where_no_request_waits_for_another() -> None:
    shipped = scenario("one-node-killed")
    assert shipped.waits_for_none
    assert find("one-node-killed").is_file()
    one = shipped.to_dict() | {"in_flight": 1}
    assert not Drill.model_validate(one).waits_for_none
    many = shipped.model_copy(update={"interval": Duration(20 * 10**6)})
    assert (many.most_in_flight, many.waits_for_none) == (501, True), "as many as are due"
