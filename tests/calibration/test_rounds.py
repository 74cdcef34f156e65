"""How a measurement is extended, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wanlat.emulator.calibration import rounds
from wanlat.emulator.calibration.rounds import Finding, Limits, Round

ENOUGH = 3
"""Probes by which the link is judged."""


class Clock:
    """What `rounds` knows as `time`."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize(
    ("longest_s", "sizes", "ends_with"),
    [
        (100.0, [1, 2], []),  # enough after the second round
        (25.0, [1, 1], ["too few"]),  # for two there is no time; one more is something
        (35.0, [1, 2], []),
        (15.0, [1], ["too few"]),
    ],
)
def test_a_round_is_as_large_as_there_is_time_for(
    longest_s: float, sizes: list[int], ends_with: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, sent = Clock(), list[int]()
    monkeypatch.setattr(rounds, "time", clock)

    def send(keys: Sequence[str], size: int) -> dict[str, int]:
        sent.append(size)
        clock.sleep(10.0 * size)
        return dict.fromkeys(keys, size)

    def judge(_: str, probes: int, this: Round) -> tuple[dict[str, object], list[Finding]]:
        assert (this.size, this.number) == (sum(sent), len(sent))
        return {}, [] if probes >= ENOUGH else [Finding("too few", is_final=False)]

    limits = Limits(sizes=(1, 2, 4), pause_s=0.0, longest_s=longest_s)
    outcome = rounds.measure_in_rounds(["link"], send, judge, limits)["link"]
    assert (sent, [finding.words for finding in outcome.findings]) == (sizes, ends_with)
