"""A machine on which a drill's clients get no processor is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.drill.drills import SHORTEST, drill
from tests.late_network import accepting_late_packets
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.files import find
from wanlat.experiments.drill.model import Drill, scenario
from wanlat.experiments.drill.prepare import prepare
from wanlat.experiments.drill.runner import SentLate
from wanlat.topologies.units import Duration


@pytest.mark.parametrize(("late", "is_told"), [(3, False), (4, True), (100, True)])
def test_requests_that_are_sent_too_late_are_told(late: int, is_told: bool) -> None:
    sent = SentLate()
    for number in range(100):
        lag_ms = 101 if number < late else 99
        sent.take({"due_ns": 5_000_000_000, "start_ns": 5_000_000_000 + lag_ms * 1_000_000})
    for _ in range(50):
        sent.take({"due_ns": 5_000_000_000, "start_ns": None})  # never sent: it says nothing
    said = sent.said()
    assert (said is not None) == is_told
    if said is not None:
        assert said.startswith(f"{late} % of the requests were sent more than 100 ms after")
        assert "--jobs auto" in said


def test_a_drill_whose_requests_were_sent_late_is_to_be_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_MOST_SENT_LATE", -1.0)  # none is too many
    fault = "faults:\n  - {kill: victim, for: 500ms}\n"
    made = prepare(drill(tmp_path, fault, SHORTEST), system="quorum", directory=tmp_path / "b")
    with accepting_late_packets("drill"):
        outcome = runner.run(made)
    assert (outcome.status, outcome.is_late) == ("complete", True)
    assert any("requests were sent more than 100 ms after" in each for each in outcome.warnings)


def test_only_where_no_request_waits_for_another() -> None:
    shipped = scenario("one-node-killed")
    assert shipped.waits_for_none
    assert find("one-node-killed").is_file()
    one = shipped.to_dict() | {"in_flight": 1}
    assert not Drill.model_validate(one).waits_for_none
    many = shipped.model_copy(update={"interval": Duration(20 * 10**6)})
    assert not many.waits_for_none, "64 of 500"
