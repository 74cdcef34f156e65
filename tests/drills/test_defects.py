"""The instrument notices: a shipped drill catches each planted defect, by the right verdict."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drills.short import Came, Short, play

pytestmark = pytest.mark.minutes

FEW = {"objects": 100, "interval": "500ms"}
CAUGHT = {
    "lose-acked": ("two-nodes-killed", FEW, "lost"),
    # With all its objects: it takes a thousand to lose one.
    "drop-acked": ("one-node-killed", {"interval": "500ms"}, "lost"),
    "stale-reads": ("one-node-stopped", FEW, "stale"),
    # A node's two hundredth Put is the first that suffers.
    "flip-bits": ("one-link-lossy", FEW | {"objects": 250}, "corrupt"),
    "resurrect": ("rolling-loss", FEW, "resurrected"),
    "split-brain": ("partition-two-two", FEW, "lost"),
}
VERDICTS = ("lost", "corrupt", "stale", "resurrected", "unexpected")


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Came]:
    def runs() -> Iterator[Short]:
        for seed, (defect, (drill, changes, _)) in enumerate(CAUGHT.items(), start=1):
            yield Short(drill, seed, {"defects": [defect]}, changes)

    below = tmp_path_factory.mktemp("defects")
    return {each.of.options["defects"][0]: each for each in play(runs(), below)}


@pytest.mark.parametrize("defect", CAUGHT)
def test_a_planted_defect_is_caught_by_the_right_verdict_and_by_no_other(
    came: dict[str, Came], defect: str
) -> None:
    run, verdict = came[defect], CAUGHT[defect][2]
    assert run.status == "complete", run
    durability = run.drill.durability
    assert durability.verdict == "fail", run
    found = {each for each in VERDICTS if durability[each]}
    assert found == {verdict}, run
    held = [claim.verdict for claim in run.drill.claims if "durability" in claim.spec]
    assert held == ["does not hold"], run


def test_what_was_lost_is_counted_and_no_more(came: dict[str, Came]) -> None:
    dropped = came["drop-acked"].drill.durability
    # One in a thousand of each node that was asked, of which only the first has as many.
    assert dropped["lost"] == dropped.acknowledged // 1000 or dropped["lost"] == 2
    flipped = came["flip-bits"].drill.durability
    assert 1 <= flipped["corrupt"] <= flipped.acknowledged // 200


def test_a_minority_that_acknowledges_is_told_of(came: dict[str, Came]) -> None:
    claims = came["split-brain"].drill.claims
    sides = [each for each in claims if each.claim.startswith("no side acknowledges")]
    assert [each.verdict for each in sides] == ["does not hold"] * 2


def test_every_defect_is_loud_in_the_log_of_each_node_that_has_it(came: dict[str, Came]) -> None:
    for defect, run in came.items():
        logs = {log.stem: log.read_text() for log in (run.bundle / "logs").glob("quorum-*.log")}
        loud = {name for name, text in logs.items() if f"DEFECT PLANTED: --{defect}" in text}
        assert loud == ({"quorum-n1"} if defect == "stale-reads" else set(logs)), defect
