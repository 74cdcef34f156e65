"""The instrument notices: a shipped drill catches each planted defect, by the right verdict, and a
store that keeps its promises is never said to have broken one.

Of the sound store every kind of drill is run once, on near and far nodes by turns;
WANLAT_SOUND_RUNS says how many runs there are, the drills taking turns with another seed each time
(24 are every shipped drill).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.command_line import here
from tests.drills.short import Came, Short, play
from wanlat.experiments.drill.files import shipped

FEW = {"objects": 100, "interval": "500ms"}
FEWER = {"objects": 60, "interval": "1s"}
CAUGHT = {
    # With all its objects: it takes a thousand to lose one.
    "drop-acked": ("one-node-killed", {"interval": "500ms"}, "lost"),
    "stale-reads": ("one-node-stopped", FEW, "stale"),
    # A node's two hundredth Put is the first that suffers.
    "flip-bits": ("one-link-lossy", FEW | {"objects": 250}, "corrupt"),
    "resurrect": ("rolling-loss", FEW, "resurrected"),
    "split-brain": ("partition-two-two", FEW, "lost"),
}
VERDICTS = ("lost", "corrupt", "stale", "resurrected", "unexpected")
FAR = "-3dc"
KINDS = list(dict.fromkeys(name.removesuffix(FAR) for name in shipped()))
SOUND_RUNS = int(os.environ.get("WANLAT_SOUND_RUNS", "0")) or len(KINDS)


def by_kind() -> list[str]:
    """The shipped drills: first one of each kind, near and far by turns, then the others."""
    turns = [kind + FAR * (turn % 2) for turn, kind in enumerate(KINDS)]
    first = [
        name if name in shipped() else next(each for each in shipped() if each.startswith(kind))
        for name, kind in zip(turns, KINDS, strict=True)
    ]
    return [*first, *(name for name in shipped() if name not in first)]


def check_caught(run: Came, verdict: str) -> None:
    """A drill failed by this verdict on objects, and by no other."""
    assert run.status == "complete", run
    durability = run.drill["durability"]
    assert durability["verdict"] == "fail", run
    found = {each for each in VERDICTS if durability[each]}
    # Two sides that both acknowledge lose writes; a removal that is lost is an object come back.
    also = {"resurrected"} if run.of.options["defects"] == ["split-brain"] else set()
    assert {verdict} <= found <= {verdict} | also, run
    assert held(run) == ["does not hold"], run


def held(run: Came) -> list[str]:
    """The verdicts on claims that nothing is lost."""
    return [claim["verdict"] for claim in run.drill["claims"] if "durability" in claim]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Mapping[bool, Came]:
    """One drill, twice: by whether there is a defect in the store."""
    runs = [
        Short("two-nodes-killed", 11, options, FEWER)
        for options in ({"defects": ["lose-acked"]}, {})
    ]
    played = play(runs, tmp_path_factory.mktemp("drills"))
    return {bool(each.of.options): each for each in played}


def test_lost_acknowledged_writes_are_found(both: Mapping[bool, Came]) -> None:
    check_caught(both[True], "lost")


def test_nothing_is_found_where_nothing_is_lost(both: Mapping[bool, Came]) -> None:
    run = both[False]
    assert run.status == "complete", run
    durability = run.drill["durability"]
    assert durability["verdict"] == "pass", run
    # It is a run of which something can be said.
    assert durability["acknowledged"] > int(str(FEWER["objects"])) and durability["removed"] > 0
    assert held(run) == ["holds"], run


def test_a_matrix_shows_both(both: Mapping[bool, Came], tmp_path: Path) -> None:
    bundles = [str(both[planted].bundle) for planted in (True, False)]
    done = here("drill", "matrix", *bundles, "--out", str(tmp_path / "matrix"))
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads((tmp_path / "matrix" / "matrix.json").read_text())["cells"]
    assert sorted(run["durability"]["verdict"] for run in cell["runs"]) == ["fail", "pass"]
    claims = (tmp_path / "matrix" / "claims.md").read_text()
    assert "**does not hold** (1 of 2 runs)" in claims
    assert (tmp_path / "matrix" / "matrix.png").stat().st_size > 0


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Came]:
    runs = [
        Short(drill, seed, {"defects": [defect]}, changes)
        for seed, (defect, (drill, changes, _)) in enumerate(CAUGHT.items(), start=2)
    ]
    played = play(runs, tmp_path_factory.mktemp("defects"))
    return {each.of.options["defects"][0]: each for each in played}


@pytest.mark.minutes
@pytest.mark.parametrize("defect", CAUGHT)
def test_a_planted_defect_is_caught_and_loud_in_the_log_of_each_node_that_has_it(
    came: dict[str, Came], defect: str
) -> None:
    run = came[defect]
    check_caught(run, CAUGHT[defect][2])
    logs = {log.stem: log.read_text() for log in (run.bundle / "logs").glob("quorum-*.log")}
    loud = {name for name, text in logs.items() if f"DEFECT PLANTED: --{defect}" in text}
    assert loud == ({"quorum-n1"} if defect == "stale-reads" else set(logs))


@pytest.mark.minutes
def test_without_a_defect_no_drill_reports_a_loss(tmp_path: Path) -> None:
    names, few = by_kind(), FEW | {"objects": 60}
    runs = [Short(names[turn % len(names)], turn, changes=few) for turn in range(SOUND_RUNS)]
    came = list(play(runs, tmp_path))
    # A drill that did not end in the time it states says nothing of objects; hardly any may.
    ended = [each for each in came if each.status == "complete"]
    assert len(ended) >= SOUND_RUNS - max(1, SOUND_RUNS // 10), "\n\n".join(map(str, came))
    wrong = [each for each in ended if each.drill["durability"]["verdict"] != "pass"]
    assert not wrong, "\n\n".join(map(str, wrong))
    assert not any(each.drill["durability"][said] for each in came for said in VERDICTS)
    # They were runs of which something could be said.
    assert sum(each.drill["durability"]["acknowledged"] for each in ended) > len(ended) * 60
    assert sum(each.drill["durability"]["removed"] for each in ended) > len(ended)
