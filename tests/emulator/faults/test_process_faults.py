"""Faults on processes do to real ones what they say, at the instants they tell."""

from __future__ import annotations

import signal
import sys
import time

import pytest

from emulator.faults.crash_loop import CrashLoop
from emulator.faults.fault import FaultFailed, Scene
from emulator.faults.kill import Kill
from emulator.faults.restart import Restart
from emulator.faults.stop import Stop
from emulator.lab import Lab
from tests.emulator.faults.heartbeats import BEAT, Heart, Played, play
from tests.emulator.plans import mesh
from topologies.errors import MachineError
from topologies.units import Duration, Fraction

PYTHON = [sys.executable, "-S", "-E", "-c"]


def ms(value: float) -> Duration:
    return Duration(round(value * 1e6))


@pytest.fixture
def lab():
    with Lab(mesh(2)) as made:
        yield made


@pytest.fixture
def hearts(lab):
    made = {node.name: Heart(lab, node.name) for node in lab.nodes}
    for heart in made.values():
        heart.start(lab)
    for heart in made.values():
        heart.await_beat()
    return made


@pytest.fixture
def scene(lab, hearts):
    return Scene(lab, hearts)


def seconds(gap):
    return (gap[1] - gap[0]) / 1e9


# -- stop -----------------------------------------------------------------------------------


def test_a_stop_of_three_seconds_is_a_silence_of_three_seconds(scene, hearts):
    played = play(scene, (Stop(["n1"]), 0.2, 3.2))
    hearts["n1"].await_beat(after_ns=played.told("heal")[0])
    (gap,) = hearts["n1"].gaps()
    assert seconds(gap) == pytest.approx(3.0, abs=0.05)
    assert hearts["n2"].gaps() == []
    # The instants told are those of the silence: not one beat lies between them.
    (stopped,), (continued,) = played.told("inject"), played.told("heal")
    assert gap[0] <= stopped <= gap[0] + 30e6
    assert gap[1] - 30e6 <= continued <= gap[1]
    assert len(hearts["n1"].pids()) == 1
    assert [mark.detail["late_ms"] for mark in played.marks] == pytest.approx([0, 0], abs=30)


def test_a_stop_reaches_children_and_those_that_left_the_session(lab):
    script = (
        f"setsid {sys.executable} -S -E -c '{BEAT}' apart &\n"
        f"{sys.executable} -S -E -c '{BEAT}' beside &\n"
        f"{sys.executable} -S -E -c '{BEAT}' beats\n"
    )
    heart = Heart(lab, "n1", ["sh", "-c", script])
    heart.start(lab)
    names = ("beats", "beside", "apart")
    for name in names:
        heart.await_beat(name)
    played = play(Scene(lab, {"n1": heart}), (Stop(["n1"]), 0.1, 0.6))
    for name in names:
        heart.await_beat(name, after_ns=played.told("heal")[0])
        (gap,) = heart.gaps(name=name)
        assert seconds(gap) == pytest.approx(0.5, abs=0.05)


def test_two_stops_of_one_node_last_until_the_later_one_ends(scene, hearts):
    played = play(scene, (Stop(["n1"]), 0.0, 0.5), (Stop(["n1"]), 0.3, 1.0))
    hearts["n1"].await_beat(after_ns=played.told("heal")[-1])
    (gap,) = hearts["n1"].gaps()
    assert seconds(gap) == pytest.approx(1.0, abs=0.05)


# -- kill -----------------------------------------------------------------------------------


def test_a_kill_takes_effect_when_the_process_has_ended_and_its_end_starts_another(scene, hearts):
    first = hearts["n1"].process
    played = play(scene, (Kill(["n1"]), 0.1, 0.6))
    assert first.poll() == -signal.SIGKILL
    (killed,), (started,) = played.told("inject"), played.told("heal")
    assert killed == first.ended_ns
    assert (started - killed) / 1e9 == pytest.approx(0.5, abs=0.05)
    hearts["n1"].await_beat(after_ns=started)
    ((before, after),) = hearts["n1"].gaps()
    assert before <= killed <= before + 50e6
    assert after >= started - 50e6
    assert len(hearts["n1"].pids()) == 2
    assert hearts["n1"].died() is None, "the end of a killed process is nobody's surprise"


def test_several_nodes_are_killed_within_milliseconds(lab, scene, hearts):
    firsts = [heart.process for heart in hearts.values()]
    play(scene, (Kill(["n1", "n2"]), 0.1, 0.3))
    ended = [first.ended_ns for first in firsts]
    assert max(ended) - min(ended) < 20e6
    assert all(heart.process.poll() is None for heart in hearts.values())


def test_a_kill_ends_what_a_script_has_started_as_well(lab):
    script = f"setsid {sys.executable} -S -E -c '{BEAT}' apart &\nsleep 60; true"
    heart = Heart(lab, "n1", ["sh", "-c", script])
    heart.start(lab)
    heart.await_beat("apart")
    played = play(Scene(lab, {"n1": heart}), (Kill(["n1"]), 0.0, 0.4))
    heart.await_beat("apart", after_ns=played.told("heal")[0])
    ((before, _),) = heart.gaps(name="apart")
    assert before <= played.told("inject")[0]
    assert len(heart.pids("apart")) == 2


def test_two_kills_of_one_node_leave_it_down_until_both_have_ended(scene, hearts):
    played = play(scene, (Kill(["n1"]), 0.0, 0.4), (Kill(["n1"]), 0.2, 0.8))
    hearts["n1"].await_beat(after_ns=played.told("heal")[-1])
    (gap,) = hearts["n1"].gaps()
    assert seconds(gap) == pytest.approx(0.85, abs=0.1)  # and the time it takes to start
    assert len(hearts["n1"].pids()) == 2
    instants = [played.told(kind, step)[0] for step in (1, 2) for kind in ("inject", "heal")]
    assert [(each - played.origin_ns) / 1e9 for each in instants] == pytest.approx(
        [0.0, 0.4, 0.2, 0.8], abs=0.05
    )


def test_a_node_that_is_killed_anew_at_the_instant_of_its_start_is_started_in_between(
    scene, hearts
):
    play(scene, (Kill(["n1"]), 0.3, 0.6), (Kill(["n1"]), 0.0, 0.3))
    # The process that was started at 0.3 s was killed before it could beat; it was there.
    assert hearts["n1"].process.pid - min(hearts["n1"].pids()) >= 2


def test_a_process_that_does_not_stay_up_fails_the_drill_and_the_other_faults_are_undone(
    lab, hearts
):
    once = "import os, sys, time\nif os.path.exists('was'): sys.exit(3)\nopen('was', 'w')\n"
    frail = Heart(lab, "n1", [*PYTHON, once + BEAT, "beats"])
    hearts["n1"].stop()
    frail.start(lab)
    frail.await_beat()
    scene = Scene(lab, {**hearts, "n1": frail})
    with pytest.raises(FaultFailed) as failed:
        play(scene, (Kill(["n1"]), 0.0, 0.2), (Stop(["n2"]), 0.1, 30.0))
    assert "`1 kill n1` could not be undone on n1" in str(failed.value)
    assert "the process on n1 ended with exit code 3, within 0.5 s of being started" in str(
        failed.value
    )
    hearts["n2"].await_beat(after_ns=time.monotonic_ns())


def test_what_has_ended_by_itself_cannot_be_killed(lab, hearts):
    brief = Heart(lab, "n1", ["true"])
    hearts["n1"].stop()
    brief.start(lab)
    brief.process.wait(5)
    with pytest.raises(FaultFailed, match="n1 had ended by itself before, with exit code 0"):
        play(Scene(lab, {"n1": brief}), (Kill(["n1"]), 0.0, 0.2))


# -- restart --------------------------------------------------------------------------------


POLITE = "import signal, sys, time\nsignal.signal(15, lambda *_: (time.sleep(0.2), sys.exit(7)))\n"
DEAF = "import signal\nsignal.signal(15, signal.SIG_IGN)\n"


@pytest.mark.parametrize(
    ("habit", "code", "took_ms", "told"),
    [(POLITE, 7, 200, ""), (DEAF, -signal.SIGKILL, 400, ", n1 by SIGKILL")],
)
def test_a_restart_asks_first_and_kills_after_the_grace(lab, habit, code, took_ms, told):
    heart = Heart(lab, "n1", [*PYTHON, habit + BEAT, "beats"])
    heart.start(lab)
    heart.await_beat()
    first = heart.process
    restart = Restart(("n1",), grace=ms(400))
    assert restart.detail == "SIGTERM, SIGKILL after 400ms"
    played = play(Scene(lab, {"n1": heart}), (restart, 0.1, None))
    assert first.poll() == code
    (sent,), (started,) = played.told("inject"), played.told("heal")
    assert (sent - played.origin_ns) / 1e6 == pytest.approx(100, abs=30)
    assert (started - sent) / 1e6 == pytest.approx(took_ms, abs=60)
    assert first.ended_ns < started
    heart.await_beat(after_ns=started)
    detail = played.marks[-1].detail["detail"]
    assert detail.startswith("SIGTERM, ended after ") and detail.endswith(f" ms{told}")


def test_a_restart_waits_for_what_a_script_has_started_which_is_slower_to_end(lab):
    # As a port would: the lock is free when the last process that has it has ended.
    slow = (
        "import fcntl, os, signal, sys, time\n"
        "signal.signal(15, lambda *_: (time.sleep(0.3), os._exit(0)))\n"
        "lock = open('lock', 'w')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    )
    script = f"trap 'exit 0' TERM\n{sys.executable} -S -E -c \"$0\" beats & wait"
    heart = Heart(lab, "n1", ["sh", "-c", script, slow + BEAT])
    heart.start(lab)
    heart.await_beat()
    played = play(Scene(lab, {"n1": heart}), (Restart(("n1",)), 0.0, None))
    heart.await_beat(after_ns=played.told("heal")[0])
    assert len(heart.pids()) == 2
    assert "BlockingIOError" not in heart.log.read_text()


# -- crash loop -----------------------------------------------------------------------------


def test_a_crash_loop_kills_every_period_and_leaves_it_running(scene, hearts):
    played = play(scene, (CrashLoop(("n1",), ms(300), Fraction(0.5)), 0.1, 1.2))
    blows = [
        (mark.detail["blow"], mark.detail["state"])
        for mark in played.marks
        if "blow" in mark.detail
    ]
    assert blows == [(n, state) for n in (1, 2, 3, 4) for state in ("down", "up")]
    times = [(each - played.origin_ns) / 1e9 for each in played.told("blow")]
    assert times == pytest.approx([0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.15], abs=0.04)
    hearts["n1"].await_beat(after_ns=played.told("heal")[0])
    assert len(hearts["n1"].pids()) == 5
    assert hearts["n2"].gaps() == []


def test_a_crash_loop_ends_a_start_that_it_has_not_made_yet(scene, hearts):
    played = play(scene, (CrashLoop(("n1",), ms(10_000), Fraction(0.9)), 0.0, 0.3))
    hearts["n1"].await_beat(after_ns=played.told("heal")[0])
    assert len(hearts["n1"].pids()) == 2


# -- several on one node --------------------------------------------------------------------


def test_a_crash_loop_does_not_start_what_a_kill_holds_down(scene, hearts):
    played = play(scene, (CrashLoop(("n1",), ms(200)), 0.0, 2.0), (Kill(["n1"]), 0.5, 1.5))
    (killed,), (freed,) = played.told("inject", 2), played.told("heal", 2)
    beats = hearts["n1"].beats_ns()
    assert not ((beats > killed) & (beats < freed)).any()
    assert (beats > freed).any(), "then it loops on"
    hearts["n1"].await_beat(after_ns=played.told("heal", 1)[0])


def test_a_kill_during_a_stop_works_and_what_is_started_is_stopped_until_the_stop_ends(
    scene, hearts
):
    played = play(scene, (Stop(["n1"]), 0.0, 1.2), (Kill(["n1"]), 0.3, 0.6))
    first, second = hearts["n1"].gaps()[0], hearts["n1"].process
    assert first[1] > played.told("heal", 1)[0]
    assert second.poll() is None
    hearts["n1"].await_beat(after_ns=played.told("heal", 1)[0])


def test_a_stop_of_a_node_that_is_down_takes_hold_of_what_is_started(scene, hearts):
    played = play(scene, (Kill(["n1"]), 0.0, 0.4), (Stop(["n1"]), 0.2, 1.0))
    hearts["n1"].await_beat(after_ns=played.told("heal", 2)[0])
    (gap,) = hearts["n1"].gaps()
    assert gap[1] > played.told("heal", 2)[0]


def test_a_stop_that_ends_while_the_node_is_down_leaves_it_down(scene, hearts):
    played = play(scene, (Stop(["n1"]), 0.0, 0.5), (Kill(["n1"]), 0.2, 0.9))
    hearts["n1"].await_beat(after_ns=played.told("heal", 2)[0])
    (gap,) = hearts["n1"].gaps()
    assert gap[1] > played.told("heal", 2)[0]


# -- ends that nobody planned ---------------------------------------------------------------


def test_cut_short_everything_runs_again_at_once(scene, hearts):
    played = Played(
        scene,
        [
            (Kill(["n1"]), 0.0, 60.0),
            (Stop(["n2"]), 0.1, None),
            (CrashLoop(("n1",), ms(200)), 0.0, 60.0),
            (Restart(("n2",), grace=ms(60_000)), 0.3, None),  # which a stopped one does not heed
        ],
    )
    time.sleep(0.6)
    began = time.monotonic()
    played.timeline.cut_short()
    assert time.monotonic() - began < 2.0
    played.join()
    assert played.timeline.in_force == ()
    now = time.monotonic_ns()
    for heart in hearts.values():
        heart.await_beat(after_ns=now)
    heals = [mark for mark in played.marks if mark.kind == "heal"]
    assert sorted(mark.step.id for mark in heals) == [1, 2, 3, 4]


def test_a_lab_that_ends_is_told_as_such(lab, scene):
    played = Played(scene, [(Kill(["n1"]), 0.0, 0.5)])
    time.sleep(0.2)
    lab.abort("The test ended it.")
    with pytest.raises(MachineError, match="The test ended it"):
        played.join()
