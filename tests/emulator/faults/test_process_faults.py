"""Faults on processes do to real ones what they say, at the instants they tell."""

from __future__ import annotations

import signal
import sys
import time

import pytest

from tests.emulator.faults.heartbeats import BEAT, Heart, Played, play
from tests.emulator.plans import mesh
from wanlat.emulator.faults.fault import Hit, Scene
from wanlat.emulator.faults.processes import CrashLoop, Kill, Restart, Stop
from wanlat.emulator.lab import Lab
from wanlat.topologies.units import Duration, Fraction

PYTHON = [sys.executable, "-S", "-E", "-c"]


def ms(value: float) -> Duration:
    return Duration(round(value * 1e6))


def crash_loop(period: Duration, down: float = 0) -> CrashLoop:
    return CrashLoop(Hit.on_nodes("n1"), {"period": period, "down": Fraction(down)})


@pytest.fixture(scope="module")
def lab():
    with Lab(mesh(2)) as made:
        yield made


@pytest.fixture
def start(lab):
    """Start a program on a node; what is left of it ends with the test."""
    started = []

    def one(node, argv=None, *, beats=("beats",)):
        heart = Heart(lab, node, argv)
        started.append(heart)
        heart.start(lab)
        for name in beats:
            heart.await_beat(name)
        return heart

    yield one
    for heart in started:
        heart.clear()


@pytest.fixture
def hearts(lab, start):
    return {node.name: start(node.name) for node in lab.nodes}


@pytest.fixture
def scene(lab, hearts):
    return Scene(lab, hearts)


# -- stop -----------------------------------------------------------------------------------


def test_a_stop_is_a_silence_from_its_instant_to_the_end_that_is_due(scene, hearts):
    played = play(scene, (Stop(Hit.on_nodes("n1")), 0.2, 2.2))
    (stopped,), (continued,) = played.marked("inject"), played.marked("heal")
    hearts["n1"].await_beat(after_ns=continued)
    assert stopped >= played.due("inject")
    assert continued >= played.due("heal")
    assert hearts["n1"].beats_between(stopped, played.due("heal")) == 0
    assert len(hearts["n1"].pids()) == 1
    assert [mark.detail["late_ms"] for mark in played.marks] == pytest.approx(
        [(stopped - played.due("inject")) / 1e6, (continued - played.due("heal")) / 1e6], abs=0.01
    )
    assert hearts["n2"].beats_between(stopped, continued) > 10


def test_a_stop_reaches_children_and_those_that_left_the_session(lab, start):
    script = (
        f"setsid {sys.executable} -S -E -c '{BEAT}' apart &\n"
        f"{sys.executable} -S -E -c '{BEAT}' beside &\n"
        f"{sys.executable} -S -E -c '{BEAT}' beats\n"
    )
    names = ("beats", "beside", "apart")
    heart = start("n1", ["sh", "-c", script], beats=names)
    played = play(Scene(lab, {"n1": heart}), (Stop(Hit.on_nodes("n1")), 0.1, 0.6))
    for name in names:
        heart.await_beat(name, after_ns=played.marked("heal")[0])
        assert heart.beats_between(played.marked("inject")[0], played.due("heal"), name) == 0


# -- kill -----------------------------------------------------------------------------------


def test_a_kill_takes_effect_when_the_process_has_ended_and_its_end_starts_another(scene, hearts):
    first = hearts["n1"].process
    played = play(scene, (Kill(Hit.on_nodes("n1")), 0.1, 0.4))
    assert first.poll() == -signal.SIGKILL
    (killed,), (started,) = played.marked("inject"), played.marked("heal")
    assert killed == first.ended_ns
    assert killed >= played.due("inject")
    assert started >= played.due("heal")
    hearts["n1"].await_beat(after_ns=started)
    assert hearts["n1"].beats_between(killed, played.due("heal")) == 0
    assert len(hearts["n1"].pids()) == 2
    assert hearts["n1"].died() is None, "the end of a killed process is nobody's surprise"


# -- restart --------------------------------------------------------------------------------


POLITE = "import signal, sys, time\nsignal.signal(15, lambda *_: (time.sleep(0.2), sys.exit(7)))\n"
DEAF = "import signal\nsignal.signal(15, signal.SIG_IGN)\n"


@pytest.mark.parametrize(
    ("habit", "grace_ms", "code", "least_ms", "told"),
    [(POLITE, 60_000, 7, 200, ""), (DEAF, 400, -signal.SIGKILL, 400, ", n1 by SIGKILL")],
    ids=["polite", "deaf"],
)
def test_a_restart_asks_first_and_kills_after_the_grace(
    lab, start, habit, grace_ms, code, least_ms, told
):
    heart = start("n1", [*PYTHON, habit + BEAT, "beats"])
    first = heart.process
    restart = Restart(Hit.on_nodes("n1"), {"grace": ms(grace_ms)})
    assert restart.detail == f"SIGTERM, SIGKILL after {ms(grace_ms)}"
    played = play(Scene(lab, {"n1": heart}), (restart, 0.1, None))
    assert first.poll() == code
    (sent,), (started,) = played.marked("inject"), played.marked("heal")
    assert sent >= played.due("inject")
    assert first.ended_ns - sent > (least_ms - 10) * 1e6
    assert first.ended_ns < started
    heart.await_beat(after_ns=started)
    detail = played.marks[-1].detail["detail"]
    assert detail.startswith("SIGTERM, ended after ") and detail.endswith(f" ms{told}")


# -- crash loop -----------------------------------------------------------------------------


def test_a_crash_loop_kills_every_period_and_leaves_it_running(scene, hearts):
    played = play(scene, (crash_loop(ms(300), 0.5), 0.1, 1.2))
    occurrences = [mark.detail for mark in played.marks if mark.kind == "occurrence"]
    last = occurrences[-1]["occurrence"]
    assert [(occurrence["occurrence"], occurrence["state"]) for occurrence in occurrences] == [
        (number, state) for number in range(1, last + 1) for state in ("down", "up")
    ]
    downs, ups = played.marked("occurrence")[::2], played.marked("occurrence")[1::2]
    assert all(down - downs[0] >= beat * 300e6 for beat, down in enumerate(downs))
    # What is down is up again half a period later; the last one when the fault ends.
    assert all(up - downs[0] >= beat * 300e6 + 150e6 for beat, up in enumerate(ups[:-1]))
    hearts["n1"].await_beat(after_ns=played.marked("heal")[0])
    assert 2 <= len(hearts["n1"].pids()) <= last + 1
    assert len(hearts["n2"].pids()) == 1


# -- several on one node --------------------------------------------------------------------


def test_a_kill_during_a_stop_works_and_what_is_started_is_stopped_until_the_stop_ends(
    scene, hearts
):
    first = hearts["n1"].process
    played = play(scene, (Stop(Hit.on_nodes("n1")), 0.0, 0.7), (Kill(Hit.on_nodes("n1")), 0.2, 0.4))
    hearts["n1"].await_beat(after_ns=played.marked("heal", 1)[0])
    assert first.poll() == -signal.SIGKILL
    assert first.ended_ns == played.marked("inject", 2)[0]
    still = [(played.marked("inject", 1)[0], played.due("heal", 2))]
    # What is started runs until it is sent SIGSTOP, which the instant of the kill's end is after.
    still.append((played.marked("heal", 2)[0], played.due("heal", 1)))
    assert [hearts["n1"].beats_between(*each) for each in still] == [0, 0]


# -- ends that nobody planned ---------------------------------------------------------------


def test_cut_short_everything_runs_again_at_once(scene, hearts):
    played = Played(
        scene,
        [
            (Kill(Hit.on_nodes("n1")), 0.0, 60.0),
            (Stop(Hit.on_nodes("n2")), 0.1, None),
            (crash_loop(ms(200)), 0.0, 60.0),
            (Restart(Hit.on_nodes("n2"), {"grace": ms(60_000)}), 0.3, None),
        ],
    )
    while len(played.timeline.in_force) < 4:
        time.sleep(0.01)
    began = time.monotonic()
    played.timeline.cut_short()
    assert time.monotonic() - began < 30, "it waits for nobody's 60 s"
    played.join()
    assert played.timeline.in_force == ()
    now = time.monotonic_ns()
    for heart in hearts.values():
        heart.await_beat(after_ns=now)
    heals = [mark for mark in played.marks if mark.kind == "heal"]
    assert sorted(mark.step.id for mark in heals) == [1, 2, 3, 4]
