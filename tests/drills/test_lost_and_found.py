"""A drill from end to end, twice: with a planted defect, which it finds, and without one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.drills.short import Came, Short, play
from tests.wanlat.running import in_process

DRILL, SEED = "two-nodes-killed", 11
FEW = {"objects": 100, "interval": "500ms"}
DEFECT = "lose-acked"


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> Mapping[bool, Came]:
    """By whether the defect is planted."""
    runs = [Short(DRILL, SEED, {"defects": [DEFECT]}, FEW), Short(DRILL, SEED, {}, FEW)]
    played = play(runs, tmp_path_factory.mktemp("drills"))
    return {bool(each.of.options): each for each in played}


def test_lost_acknowledged_writes_are_found(came: Mapping[bool, Came]) -> None:
    run = came[True]
    assert run.status == "complete", run
    durability = run.drill.durability
    assert durability.verdict == "fail" and durability["lost"] > 0, run
    assert not any(durability[each] for each in ("corrupt", "stale", "resurrected", "unexpected"))
    held = [claim.verdict for claim in run.drill.claims if "durability" in claim.spec]
    assert held == ["does not hold"], run


def test_nothing_is_found_where_nothing_is_lost(came: Mapping[bool, Came]) -> None:
    run = came[False]
    assert run.status == "complete", run
    durability = run.drill.durability
    assert durability.verdict == "pass", run
    # It is a run of which something can be said.
    assert durability.acknowledged > int(FEW["objects"]) and durability.removed > 0
    held = [claim.verdict for claim in run.drill.claims if "durability" in claim.spec]
    assert held == ["holds"], run


def test_a_matrix_shows_both(came: Mapping[bool, Came], tmp_path: Path) -> None:
    bundles = [str(came[planted].bundle) for planted in (True, False)]
    done = in_process(["drill", "matrix", *bundles, "--out", str(tmp_path / "matrix")])
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads((tmp_path / "matrix" / "matrix.json").read_text())["cells"]
    assert sorted(run["durability"]["verdict"] for run in cell["runs"]) == ["fail", "pass"]
    claims = (tmp_path / "matrix" / "claims.md").read_text()
    assert "**does not hold** (1 of 2 runs)" in claims
    assert (tmp_path / "matrix" / "matrix.png").stat().st_size > 0
