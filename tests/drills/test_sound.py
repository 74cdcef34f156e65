"""A store that keeps its promises is never said to have broken one.

Every shipped drill is run once; WANLAT_SOUND_RUNS says how many runs there are, the drills taking
turns with another seed each time (50 take six minutes on two cores).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.drills.short import Short, play
from tests.drills.test_defects import VERDICTS
from wanlat.experiments.drill.files import shipped

pytestmark = pytest.mark.minutes

RUNS = int(os.environ.get("WANLAT_SOUND_RUNS", "0")) or len(shipped())
FEW = {"objects": 60, "interval": "500ms"}
"""Enough to be lost, and no more than two cores can look for so many times over."""


def test_without_a_defect_no_drill_reports_a_loss(tmp_path: Path) -> None:
    names = shipped()
    runs = [Short(names[number % len(names)], number, changes=FEW) for number in range(RUNS)]
    came = list(play(runs, tmp_path))
    # A drill that did not end in the time it states says nothing of objects; hardly any may.
    ended = [each for each in came if each.status == "complete"]
    assert len(ended) >= RUNS - max(1, RUNS // 10), "\n\n".join(map(str, came))
    wrong = [each for each in ended if each.drill.durability.verdict != "pass"]
    assert not wrong, "\n\n".join(map(str, wrong))
    assert not any(each.drill.durability[said] for each in came for said in VERDICTS)
    acknowledged = sum(each.drill.durability.acknowledged for each in ended)
    removed = sum(each.drill.durability.removed for each in ended)
    # They were runs of which something could be said.
    assert acknowledged > len(ended) * FEW["objects"]  # type: ignore[operator]
    assert removed > len(ended)
