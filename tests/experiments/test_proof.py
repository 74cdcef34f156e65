"""A network that is not what was asked for is measured again before it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.calibration import Tolerance
from experiments import proof
from experiments.proof import FOR_DRILLS, FOR_LATENCY, prove, what_is_held_up

PAIRS = [("n1", "n2"), ("n2", "n1")]


def document(p99_ms: dict[tuple[str, str], float], tolerance: Tolerance) -> dict[str, Any]:
    pairs: list[dict[str, Any]] = [
        {
            "from": source,
            "to": target,
            "error_ms": {"p50": 0.0, "p99": late_ms},
            "verdict": "pass" if late_ms <= tolerance.p99_ms else "fail",
            "reasons": [],
            "attempts": 3,
        }
        for (source, target), late_ms in p99_ms.items()
    ]
    return {"pairs": pairs, "overflows": 0, "verdict": "unread", "tolerance": {}}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[float]]:
    """A machine that is busy once, and then only between n2 and n1, and then not: what is asked
    of the calibration, and how long is waited."""
    asked: list[Any] = []
    waited: list[float] = []
    late: Iterator[dict[tuple[str, str], float]] = iter(
        [dict.fromkeys(PAIRS, 8.8), {PAIRS[0]: 0.3, PAIRS[1]: 3.1}, {PAIRS[1]: 0.4}]
    )

    def calibrate(_: Any, *, pairs: Any, tolerance: Tolerance, **__: Any) -> dict[str, Any]:
        asked.append(list(pairs))
        return document(next(late), tolerance)

    monkeypatch.setattr(proof, "calibrate", calibrate)
    monkeypatch.setattr(proof, "pairs_of", lambda *_: PAIRS)
    monkeypatch.setattr("time.sleep", waited.append)
    return asked, waited


LAB: Any = SimpleNamespace(plan=None, check=lambda: None)


def test_pairs_that_a_busy_machine_made_late_are_measured_again_after_a_pause(
    busy: tuple[list[Any], list[float]],
) -> None:
    asked, waited = busy
    came = prove(LAB, lambda *_: None, FOR_LATENCY)
    assert came is not None
    assert came["verdict"] == "pass"
    assert [pair["attempts"] for pair in came["pairs"]] == [6, 9]
    assert asked == [PAIRS, PAIRS, PAIRS[1:]]
    assert len(waited) == 2


def test_a_drill_goes_on_and_says_that_packets_were_held_up(
    busy: tuple[list[Any], list[float]],
) -> None:
    asked, waited = busy
    came = prove(LAB, lambda *_: None, FOR_DRILLS)
    assert came is not None
    assert came["verdict"] == "pass"
    assert asked == [PAIRS]
    assert not waited
    assert "8.8 ms late" in str(what_is_held_up(came))


def test_nothing_is_said_of_a_machine_that_was_in_time() -> None:
    assert what_is_held_up(document(dict.fromkeys(PAIRS, 0.4), FOR_LATENCY)) is None


def test_a_link_that_stays_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = document(dict.fromkeys(PAIRS, 30.0), FOR_DRILLS)
    monkeypatch.setattr(proof, "calibrate", lambda *_, **__: wrong)
    monkeypatch.setattr(proof, "pairs_of", lambda *_: PAIRS)
    monkeypatch.setattr("time.sleep", lambda _: None)
    came = prove(LAB, lambda *_: None, FOR_DRILLS)
    assert came is not None
    assert came["verdict"] == "fail"
