"""Before a study measures, its network is measured once; what is said of one that is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.emulator.calibration import Tolerance
from wanlat.experiments import calibration_gate
from wanlat.experiments.calibration_gate import (
    FOR_DRILLS,
    FOR_LATENCY,
    busy_remark,
    prove,
    what_is_off,
)

PAIRS = [("n1", "n2"), ("n2", "n1")]
LAB: Any = SimpleNamespace(plan=None, check=lambda: None)


def document(p99_ms: float, tolerance: Tolerance, stall_ms: float = 0.0) -> dict[str, Any]:
    verdict = "pass" if p99_ms <= tolerance.p99_ms else "fail"
    pairs: list[dict[str, Any]] = [
        {
            "from": source,
            "to": target,
            "error_ms": {"p50": 0.0, "p99": p99_ms},
            "verdict": verdict,
            "reasons": [] if verdict == "pass" else [f"p99 error {p99_ms} ms"],
            "rounds": 1,
            "stall_ms": stall_ms,
        }
        for source, target in PAIRS
    ]
    return {"pairs": pairs, "overflows": 0, "verdict": verdict, "tolerance": {}}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is asked of the calibration of a network that is 8.8 ms late at the 99th percentile."""
    asked: list[dict[str, Any]] = []

    def calibrate(_: Any, **settings: Any) -> dict[str, Any]:
        asked.append(settings)
        return document(8.8, settings["tolerance"])

    monkeypatch.setattr(calibration_gate, "calibrate", calibrate)
    monkeypatch.setattr(calibration_gate, "pairs_of", lambda *_: PAIRS)
    return asked


def test_a_network_that_is_refused_was_measured_once(calls: list[dict[str, Any]]) -> None:
    came = prove(LAB, lambda *_: None, FOR_LATENCY)
    assert came is not None
    assert came["verdict"] == "fail"
    assert [call["pairs"] for call in calls] == [PAIRS]


def test_a_drill_goes_on_and_says_that_packets_were_held_up(calls: list[dict[str, Any]]) -> None:
    came = prove(LAB, lambda *_: None, FOR_DRILLS, longest_s=20.0)
    assert came is not None
    assert came["verdict"] == "pass"
    assert [call["limits"].longest_s for call in calls] == [20.0]
    assert "8.8 ms late" in str(busy_remark(came))


def test_nothing_is_said_of_a_machine_that_was_in_time() -> None:
    assert busy_remark(document(0.4, FOR_LATENCY)) is None


def test_a_refusal_names_pairs_reasons_and_how_long_the_machine_stalled() -> None:
    said = what_is_off(document(30.0, FOR_LATENCY, stall_ms=480.0), "near", may_tolerate=True)
    assert "2 of 2 pairs" in said
    assert "n1 → n2: p99 error 30.0 ms" in said
    assert "480 ms" in said
    assert "--max-p99-error" in said
    assert "--max-p99-error" not in what_is_off(document(30.0, FOR_LATENCY), "near")
