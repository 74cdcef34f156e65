"""Before a study measures, its network is measured once; what is said of one that is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.bundle.documents import RttStep, RttStepPair
from wanlat.emulator.calibration import Tolerance
from wanlat.experiments import calibration_gate
from wanlat.experiments.calibration_gate import (
    FOR_LATENCY,
    FOR_ROUND_TRIPS,
    is_only_late,
    prove,
    what_is_off,
)
from wanlat.experiments.workloads import rtt_steps

LAB: Any = SimpleNamespace(plan=None, check=lambda: None)
LATE_MS = 8.8
"""The 99th percentile of a network that is late."""


def document(p99_ms: float, tolerance: Tolerance, late: int = 0) -> dict[str, Any]:
    verdict = "pass" if p99_ms <= tolerance.p99_ms else "fail"
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


@pytest.mark.parametrize(
    ("tolerance", "verdict"),
    [(FOR_LATENCY, "fail"), (FOR_ROUND_TRIPS, "pass")],
    ids=["latencies", "round trips"],
)
def test_a_late_network_is_measured_once_and_stops_studies_alone(
    tolerance: Tolerance, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def calibrate(_: Any, **settings: Any) -> dict[str, Any]:
        calls.append(settings)
        return document(LATE_MS, settings["tolerance"])

    monkeypatch.setattr(calibration_gate, "calibrate", calibrate)
    monkeypatch.setattr(calibration_gate, "pairs_of", lambda *_: [("n1", "n2")])
    came = prove(LAB, lambda *_: None, tolerance, longest_s=20.0)
    assert came is not None
    assert came["verdict"] == verdict
    assert [call["limits"].longest_s for call in calls] == [20.0]


def test_a_refusal_names_pairs_reasons_and_what_the_machine_held_up() -> None:
    said = what_is_off(document(30.0, FOR_LATENCY, late=48), "near", may_tolerate=True)
    for part in ("1 of 1 pairs", "n1 → n2: p99 error 30.0 ms", "48 of 99", "--max-network-error"):
        assert part in said
    assert "--max-network" not in what_is_off(document(30.0, FOR_LATENCY, late=48), "near")
    assert "This machine held up" not in what_is_off(document(30.0, FOR_LATENCY), "near")


def test_a_refusal_for_lateness_alone_blames_the_machine_and_no_pair() -> None:
    found = document(30.0, FOR_LATENCY, late=98)
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
    found = document(0.0, FOR_LATENCY)
    found["pairs"] += [{"verdict": "fail", "only_late": each} for each in reasons]
    assert is_only_late(found) is is_late
    assert not is_only_late(found | {"overflows": 1})
