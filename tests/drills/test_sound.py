"""A store that keeps its promises is never said to have broken one."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.drill.files import shipped
from tests.drills.short import Short, play

pytestmark = pytest.mark.drills

RUNS = 50
FEW = {"objects": 60, "every": "500ms"}
"""Enough to be lost, and no more than two cores can look for fifty times over."""


def test_without_a_defect_no_drill_reports_a_loss_in_fifty_runs(tmp_path: Path) -> None:
    names = shipped()
    runs = [Short(names[number % len(names)], number, changes=FEW) for number in range(RUNS)]
    wrong = []
    removed = acknowledged = 0
    for came in play(runs, tmp_path):
        durability = came.drill.durability
        acknowledged += durability.acknowledged
        removed += durability.removed
        if came.status != "complete" or durability.verdict != "pass":
            wrong.append(str(came))
    assert not wrong, "\n\n".join(wrong)
    # They were runs of which something could be said.
    assert acknowledged > RUNS * FEW["objects"]  # type: ignore[operator]
    assert removed > RUNS
