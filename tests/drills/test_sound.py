"""A store that keeps its promises is never said to have broken one.

Every shipped drill is run once; WANLAT_SOUND_RUNS says how many runs there are, the drills taking
turns with another seed each time (`make test-sound`: 50, six minutes on two cores).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.drill.files import shipped
from tests.drills.short import Short, play

pytestmark = pytest.mark.drills

RUNS = int(os.environ.get("WANLAT_SOUND_RUNS", "0")) or len(shipped())
FEW = {"objects": 60, "every": "500ms"}
"""Enough to be lost, and no more than two cores can look for so many times over."""


def test_without_a_defect_no_drill_reports_a_loss(tmp_path: Path) -> None:
    names = shipped()
    runs = [Short(names[number % len(names)], number, changes=FEW) for number in range(RUNS)]
    came = list(play(runs, tmp_path / "first"))
    # A drill that did not end in the time it states says nothing of objects: a busy machine does
    # that, and it is played again. One that ended and reports a loss never is.
    unended = [each.of for each in came if each.status != "complete"]
    assert len(unended) <= max(1, RUNS // 10), "\n\n".join(map(str, came))
    came = [each for each in came if each.status == "complete"] + list(
        play(unended, tmp_path / "again")
    )
    wrong = [e for e in came if e.status != "complete" or e.drill.durability.verdict != "pass"]
    assert not wrong, "\n\n".join(map(str, wrong))
    assert len(came) == RUNS
    acknowledged = sum(each.drill.durability.acknowledged for each in came)
    removed = sum(each.drill.durability.removed for each in came)
    # They were runs of which something could be said.
    assert acknowledged > RUNS * FEW["objects"]  # type: ignore[operator]
    assert removed > RUNS
