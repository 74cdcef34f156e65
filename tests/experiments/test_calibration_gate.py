"""What a user reads of a network on which nothing is measured."""

from __future__ import annotations

from typing import Any

import pytest

from wanlat.bundle.documents import RttStep, RttStepPair
from wanlat.experiments.calibration_gate import FOR_LATENCY, is_only_late, what_is_off
from wanlat.experiments.workloads import rtt_steps


def document(p99_ms: float, late: int = 0) -> dict[str, Any]:
    verdict = "pass" if p99_ms <= FOR_LATENCY.p99_ms else "fail"
    pair: dict[str, Any] = {
        "from": "n1",
        "to": "n2",
        "error_ms": {"p50": 0.0, "p99": p99_ms},
        "verdict": verdict,
        "reasons": [] if verdict == "pass" else [f"p99 error {p99_ms} ms"],
        "rounds": 1,
        "sent": 99,
        "late": late,
        "only_late": False,
    }
    return {"pairs": [pair], "overflows": 0, "verdict": verdict, "tolerance": {}}


def test_a_refusal_names_pairs_reasons_and_what_the_machine_held_up() -> None:
    said = what_is_off(document(30.0, late=48), "near", may_tolerate=True)
    for part in ("1 of 1 pairs", "n1 → n2: p99 error 30.0 ms", "48 of 99", "--max-network-error"):
        assert part in said
    assert "--max-network" not in what_is_off(document(30.0, late=48), "near")
    assert "This machine held up" not in what_is_off(document(30.0), "near")


def test_a_refusal_for_lateness_alone_blames_the_machine_and_no_pair() -> None:
    found = document(30.0, late=98)
    found["pairs"][0]["only_late"] = True
    said = what_is_off(found, "near")
    assert "is not known to be what near asks for" in said
    assert "of 1 of 1 pairs too few probes are left" in said
    assert "This machine held up 98 of 99 probes: end what else runs" in said
    assert "n1 → n2" not in said


def test_an_rtt_step_says_once_what_the_machine_held_up() -> None:
    held_up = "this machine held up 98 of 99 probes, so that too few are left to judge by"
    pair = {"from": "n1", "to": "n2", "verdict": "fail", "reasons": [held_up], "only_late": True}
    one = RttStepPair.model_validate(pair | {"late": 98, "sent": 99})
    step = RttStep(system="quorum", rtt_step=1, requested_rtt_ms=50.0, pairs=[one])
    said = rtt_steps.what_is_off(step)
    assert said.startswith("n1 → n2: too few probes are left to judge by. This machine held up 98")
    assert said.count("held up") == 1


@pytest.mark.parametrize(
    ("reasons", "is_late"), [([True], True), ([True, True], True), ([True, False], False)]
)
def test_only_where_all_pairs_were_late_and_nothing_else_nothing_was_learned(
    reasons: list[bool], is_late: bool
) -> None:
    found = document(0.0)
    found["pairs"] += [{"verdict": "fail", "only_late": each} for each in reasons]
    assert is_only_late(found) is is_late
    assert not is_only_late(found | {"overflows": 1})
