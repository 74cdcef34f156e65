"""What is left of a run: at first by its estimate, then by what has passed."""

from __future__ import annotations

from wanlat.remaining import Remaining


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def passes(self, s: float) -> None:
        self.now_s += s


def test_before_anything_is_measured_the_estimate_is_a_lower_bound_for_all_systems() -> None:
    clock = Clock()
    left = Remaining({"garage": 60, "minio": 120}, clock=clock)
    assert left("garage: building the lab", 0, None) == "at least 3 min 00 s left"
    clock.passes(30)
    assert left("garage: building the lab", 0, None) == "at least 2 min 30 s left"
    clock.passes(600)
    assert left("garage: building the lab", 0, None) == "at least 2 min 00 s left"


def test_the_pace_of_what_is_measured_takes_the_estimates_place() -> None:
    clock = Clock()
    left = Remaining({"garage": 60}, clock=clock)
    left("garage: measuring", 0, 100)
    clock.passes(50)
    left("garage: another step", 0, None)
    assert left("garage: measuring", 10, 100) == "about 7 min 30 s left"
    clock.passes(450)
    assert left("garage: measuring", 100, 100) == ""


def test_what_a_system_took_changes_what_is_expected_of_the_next() -> None:
    clock = Clock()
    left = Remaining({"garage": 60, "minio": 120}, clock=clock)
    left("garage: measuring", 0, 100)
    clock.passes(180)
    assert left("minio: building the lab", 0, None) == "at least 6 min 00 s left"


def test_what_takes_at_most_so_long_is_said_so() -> None:
    clock = Clock()
    left = Remaining({"quorum": 300}, bound="at most", clock=clock)
    left("quorum: before", 0, 10)
    clock.passes(60)
    assert left("quorum: before", 5, 10) == "at most 4 min 00 s left"


def test_where_nothing_is_known_nothing_is_said() -> None:
    clock = Clock()
    left = Remaining(clock=clock)
    assert left("measuring a → b", 0, 100) == ""
    clock.passes(1)
    assert left("measuring a → b", 1, 100) == "", "a moment is no pace"
    clock.passes(9)
    assert left("measuring a → b", 10, 100) == "about 1 min 30 s left"
    assert left("drawing", 0, None) == ""
