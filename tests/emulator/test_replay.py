"""A file of values over time is read, and each is applied at its own instant."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wanlat.emulator.replay import read, replay
from wanlat.topologies.errors import UserError
from wanlat.topologies.stop import Stop
from wanlat.topologies.units import Duration

STARLINK = """# one-way delay in ms, one value every 100 ms
25
25
26
55
57
54
25
26
"""


def ms(value: float) -> Duration:
    return Duration(round(value * 10**6))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (STARLINK, [25, 25, 26, 55, 57, 54, 25, 26]),
        ("25ms\n\n0.5  # short\r\n800us\n1.5s\n0\n", [25, 0.5, 0.8, 1500, 0]),
        ("\ufeff20 ms\n500\N{MICRO SIGN}s", [20, 0.5]),
    ],
)
def test_a_value_a_line_in_ms_or_with_a_unit(
    text: str, values: list[float], tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    assert read(tmp_path / "t.txt") == [ms(value) for value in values]


def test_a_comment_is_no_reason_to_refuse_what_was_stated(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("# RTT in ms, a value every 1 s\n25\n")
    assert read(tmp_path / "t.txt", key="rtt") == read(tmp_path / "t.txt", key="delay") == [ms(25)]
    (tmp_path / "t.txt").write_text("# in us\n25us\n# half of the RTT\n")
    assert read(tmp_path / "t.txt") == [ms(0.025)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("25\nfast\n", "t.txt:2: `fast` is not a number and a unit"),
        ("25 26\n", "t.txt:1: `25 26` is not a number and a unit"),
        ("-1\n", "t.txt:1: `-1` is negative"),
        ("# nothing\n", "has no values"),
        ("# delays in us\n25\n", "write the unit behind each, as `25us`"),
        ("# RTT in ms\n25\n", "`rtt=FILE` replays these"),
        (None, "no such file"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(
    text: str | None, says: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "t.txt").write_text(text)
    with pytest.raises(UserError) as caught:
        read(tmp_path / "t.txt")
    assert says in str(caught.value)


def test_each_value_has_its_own_instant_however_late_the_one_before() -> None:
    applied: list[tuple[Duration, int]] = []

    def apply(value: Duration) -> int:
        if value == ms(2):
            time.sleep(0.035)  # into the fifth interval of 10 ms
        applied.append((value, time.monotonic_ns()))
        return applied[-1][1]

    ended = replay([ms(n) for n in range(8)], ms(10), apply, Stop())
    after_ms = {value.ms: (at - applied[0][1]) / 1e6 for value, at in applied}
    assert all(after >= 10 * n for n, after in after_ms.items())
    assert ended.is_whole and ended.last == ms(7)
    assert ended.applied == len(applied) and ended.applied + ended.skipped == ended.values == 8
    assert ended.skipped >= 2  # those that the late one ran over
    assert ended.worst_ns >= 35 * 10**6
    assert (time.monotonic_ns() - applied[0][1]) / 1e6 >= 80  # the last has its interval too


def test_an_interruption_leaves_the_value_that_is_in_force() -> None:
    stopping, applied = Stop(), list[Duration]()

    def apply(value: Duration) -> int:
        applied.append(value)
        if len(applied) == 4:  # whichever that is where this machine is late
            stopping.set()
        return time.monotonic_ns()

    ended = replay([ms(n) for n in range(10_000)], ms(1), apply, stopping)
    assert len(applied) == 4 and ended.last == applied[3] and not ended.is_whole


def test_what_cannot_be_applied_ends_it() -> None:
    def apply(value: Duration) -> int:
        raise UserError("no")

    with pytest.raises(UserError):
        replay([ms(1)], ms(1), apply, Stop())
