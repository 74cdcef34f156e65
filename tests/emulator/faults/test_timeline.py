"""A timeline begins and ends each fault at its time, and undoes all of them when one fails."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from tests.emulator.faults.heartbeats import Played, play
from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Repeating, Scene
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Fraction


class Logged(Fault):
    """A fault that only writes down that it begins and ends."""

    kind, affects = "logged", "processes"

    def __init__(
        self,
        name: str,
        log: list[str],
        *,
        nodes: tuple[str, ...] = (),
        begin_fails: BaseException | None = None,
    ) -> None:
        super().__init__(Hit(name, nodes))
        self._name, self._log, self._begin_fails = name, log, begin_fails

    def begin(self, _: Scene) -> int:
        self._log.append(f"+{self._name}")
        if self._begin_fails:
            raise self._begin_fails
        return time.monotonic_ns()

    def end(self, _: Scene) -> int:
        self._log.append(f"-{self._name}")
        return time.monotonic_ns()


@pytest.fixture
def log():
    return []


@pytest.fixture
def scene():
    return Scene(SimpleNamespace(fate=""), {})  # type: ignore[arg-type]


def late_s(played):
    return [mark.detail["late_ms"] / 1e3 for mark in played.marks]


def test_faults_overlap_and_none_begins_or_ends_before_its_time(scene, log):
    a, b, c = (Logged(name, log) for name in "abc")
    played = play(scene, (a, 0.1, 0.4), (b, 0.2, 0.6), (c, 0.0, 0.5))
    assert sorted(log) == ["+a", "+b", "+c", "-a", "-b", "-c"]
    for step, name in enumerate("abc", start=1):
        assert log.index(f"+{name}") < log.index(f"-{name}")
        for kind in ("inject", "heal"):
            assert played.marked(kind, step)[0] >= played.due(kind, step)
    assert min(late_s(played)) >= 0
    kinds = {(mark.kind, mark.detail["id"], mark.detail["subject"]) for mark in played.marks}
    assert kinds >= {("inject", 3, "c"), ("heal", 2, "b")}
    assert {mark.step.title for mark in played.marks} == {"1 logged a", "2 logged b", "3 logged c"}


def test_at_one_instant_ends_come_first_and_then_the_order_of_the_file(scene, log):
    on = {"nodes": ("n1",)}
    faults = [Logged(name, log, **on) for name in "abcd"]
    play(
        scene, *[(fault, at, at + 0.1) for fault, at in zip(faults, (0.1, 0.1, 0, 0), strict=True)]
    )
    assert log == ["+c", "+d", "-c", "-d", "+a", "+b", "-a", "-b"]


def test_a_slow_fault_holds_up_only_those_on_the_same_node(scene, log):
    over = threading.Event()

    class Patient(Logged):
        """A fault whose beginning takes until the one on another node is over."""

        def begin(self, scene: Scene) -> int:
            assert over.wait(60), "what is on another node waits for it"
            return super().begin(scene)

    slow = Patient("slow", log, nodes=("n1", "n2"))
    same = Logged("same", log, nodes=("n2",))
    other = Logged("other", log, nodes=("n3",))

    def note(_, mark):
        if mark.kind == "heal" and mark.step.fault is other:
            over.set()

    faults = [(slow, 0, 0.5), (same, 0.1, 0.6), (other, 0.1, 0.2)]
    Played(scene, faults, note).join()
    assert log == ["+other", "-other", "+slow", "+same", "-slow", "-same"]


# -- failures -------------------------------------------------------------------------------


def test_a_fault_that_cannot_be_applied_is_undone_with_all_others_the_last_first(scene, log):
    # On one node, so that each waits for those before it.
    on = {"nodes": ("n4",)}
    bad = Logged("bad", log, begin_fails=OSError(5, "Input/output error"), **on)
    faults = [
        (Logged("a", log, **on), 0, 9),
        (Logged("b", log, **on), 0.05, 9),
        (bad, 0.1, 9),
        (Logged("d", log, **on), 1, 9),
    ]
    with pytest.raises(FaultFailed) as failed:
        play(scene, *faults)
    assert log == ["+a", "+b", "+bad", "-bad", "-b", "-a"]
    assert str(failed.value) == (
        "The fault `3 logged bad` could not be applied on n4, so the drill ends here and all other "
        "faults are undone. [Errno 5] Input/output error"
    )


# -- cut short ------------------------------------------------------------------------------


def test_cut_short_undoes_the_last_first_and_begins_nothing_more(scene, log):
    on = {"nodes": ("n1",)}
    faults = [(Logged(name, log, **on), at, 60) for name, at in (("a", 0), ("b", 0.05), ("c", 50))]
    played = Played(scene, faults)
    played.await_marks("inject", 2)
    played.timeline.cut_short()
    assert log == ["+a", "+b", "-b", "-a"], "when it returns, all is undone"
    played.join()
    assert [mark.detail["late_ms"] for mark in played.marks[2:]] == [None, None]


# -- faults that strike more than once ------------------------------------------------------


class Beats(Repeating):
    kind, affects = "beats", "processes"

    class Settings(Fault.Settings):
        period: Duration = Duration(100_000_000)
        down: Fraction = Fraction(0.3)

    strikes = 0

    def strike(self, _):
        self.strikes += 1
        if self.strikes == 3:
            raise UserError("It strikes no more.")
        return time.monotonic_ns()

    def heal(self, _):
        return time.monotonic_ns()


def test_an_occurrence_that_fails_between_fails_the_drill(scene, log):
    with pytest.raises(FaultFailed, match=r"`1 beats x` could not go on.* It strikes no more"):
        play(scene, (Beats(Hit("x")), 0.0, 60.0), (Logged("a", log), 0.0, 60.0))
    assert log == ["+a", "-a"]


def test_two_of_a_kind_that_a_node_has_one_of_are_refused_where_they_overlap(scene, log):
    class Full(Logged):
        is_exclusive = True

    def plays(*times):
        faults = [Full("full", log, nodes=("n1",)) for _ in times]
        play(scene, *[(fault, *each) for fault, each in zip(faults, times, strict=True)])

    plays((0, 0.01), (0.01, 0.02))
    with pytest.raises(UserError, match="`2 logged full` overlaps"):
        plays((0, 0.02), (0.01, None))
