"""Outages and the time to recover, on clients whose store stalls, fails or slows at known times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from drill_bundles import ORIGIN_NS, Fault, Play, Trouble, stalled, write_drill
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.analysis.figures.drill.model import ClientFigures, FaultWindow
from wanlat.analysis.figures.drill.outages import (
    Injection,
    Request,
    Status,
    clients_of,
    outages_of,
)
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.analysis.figures.drill.requests import requests_of

FAULT_S, HEAL_S, END_S = 4.0, 24.0, 34.0
VICTIM = {"node": "n2", "site": "dc2", "target": "n2"}


def fault(begin_s: float = FAULT_S, end_s: float | None = HEAL_S, late_ms: float = 0.1) -> Any:
    return FaultWindow(1, "stop", "n2", "", ("n2",), (), begin_s, end_s, late_ms, ())


def client(
    *troubles: Trouble,
    faults: Sequence[FaultWindow] | None = None,
    interval_ms: float = 50.0,
    latency_ms: float = 5.0,
    **scene: Any,
) -> ClientFigures:
    """How a client fares whose store has `troubles`, 4 s before, 20 s during, 10 s after."""
    import pandas as pd

    phases_s = (FAULT_S, HEAL_S - FAULT_S, END_S - HEAL_S)
    both_ms = (latency_ms, latency_ms)
    play = Play(interval_ms=interval_ms, latency_ms=both_ms, phases_s=phases_s, **scene)
    play.keys.append("k")
    play.send("victim", VICTIM, "read", troubles)
    columns = ("start_ns", "total_ns", "elapsed_ns", "due_ns", "error", "status", "key")
    frame = pd.DataFrame([dict.fromkeys(columns) | row for row in play.samples])
    whole = [name for name in frame.columns if name.endswith("_ns")]
    requests = requests_of(frame.astype(dict.fromkeys(whole, "Int64")), ORIGIN_NS)
    injected = [fault()] if faults is None else faults
    (figures,) = clients_of(requests, ["victim"], injected, interval_ms=interval_ms, until_s=END_S)
    return figures


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    seconds=st.floats(0.5, 9.0),
    latency_ms=st.floats(0.3, 40.0),
    interval_ms=st.sampled_from([50.0, 100.0]),
    offset_s=st.floats(0.0, 5.0),
)
def test_an_outage_and_the_recovery_last_as_long_as_the_stall(
    seed: int, seconds: float, latency_ms: float, interval_ms: float, offset_s: float
) -> None:
    at_s = FAULT_S + offset_s
    told = client(
        stalled(seconds, at_s),
        seed=seed,
        latency_ms=latency_ms,
        interval_ms=interval_ms,
        faults=[fault(at_s, at_s + seconds)],
    )
    assert told.longest_outage_s == pytest.approx(seconds, abs=0.11)
    assert told.recovery_s == pytest.approx(seconds, abs=0.11)
    assert told.recovered is True
    assert told.recovery_after_heal_s == pytest.approx(0.0, abs=0.11)
    during = told.phases["during"]
    assert during.p99_ms is not None and during.from_start.p99_ms is not None
    if seconds > 3:  # it counts as the many requests that it delayed
        assert during.p99_ms > 2000 and during.from_start.p99_ms < 100


CASES = """
stall 4-22     | deadline=5000       | outages=1 longest=18 recovery=18 | beyond the deadline
stall 1-2.5    |                     | outages=1 longest=0 recovery=0 recovered=True | no fault's
down 2-8       |                     | outages=1 longest=0 recovered=None | out already as it began
stall 4-7      | latency=40          | outages=1 longest=3 recovery=3 | in flight as the fault began
down 4-10      | latency=40 late=120 | outages=1 longest=6 recovery=5.88 | seen too late
stall 5-6 9-13 17-19 |               | outages=3 longest=4 recovery=15 | the longest; the last
down 4-9       |                     | recovery=5 after_heal=0 | fails over, though the fault lasts
down 10-35     |                     | longest=24 recovered=False recovery=None | not back
down 10-33.93  |                     | recovered=False recovery=None | one answer is too few
slow30 10-35   |                     | outages=0 slow=1 recovered=False | stays slow
slow15 10-10.3 | interval=25         | slow=0 recovery=0 | a hiccup of a few requests
slow15 10-11.5 | interval=25         | slow=1 recovery=7.5 | longer than a hiccup
down 12-19     | faults=2            | recovery=15 after_heal=3 | first injection, last heal
stall 2-4      | faults=0            | longest=2 recovered=None recovery=None | nothing was injected
none 0-0       | latency=40          | outages=0 slow=0 longest=0 recovery=0 after_heal=0 | healthy
none 0-0       | latency=3 jitter=.9 | outages=0 slow=0 longest=0 recovery=0 after_heal=0 | healthy
none 0-0       | jitter=0 tail=.5    | outages=0 slow=0 longest=0 recovery=0 after_heal=0 | healthy
none 0-0       | latency=1 jitter=0 tail=1 | outages=0 slow=0 longest=0 recovery=0 | healthy
"""
"""What the store does and when, s; the scene; what is found of it; and why so. The fault lasts from
4 s to 24 s, but for `faults=2`: from 4 s to 8 s and from 12 s to 16 s."""
SCENE = {"deadline": "deadline_ms", "latency": "latency_ms", "interval": "interval_ms"}
SCENE |= {"jitter": "jitter", "tail": "heavy_tail"}
FIGURES = {"longest": "longest_outage_s", "recovery": "recovery_s"}
FIGURES |= {"after_heal": "recovery_after_heal_s"}


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_each_definition_holds(case: str) -> None:
    does, given, expected, _why = (part.split() for part in case.split("|"))
    kind, extra_ms = does[0].rstrip("0123456789"), float(does[0].lstrip("slowdntae") or 0)
    spans = [tuple(map(float, span.split("-"))) for span in does[1:]]
    troubles = [Trouble(kind, begin, end, extra_ms=extra_ms) for begin, end in spans]
    scene = {name: float(value) for name, value in (each.split("=") for each in given)}
    faults = [fault(late_ms=0.1), *[fault(4.0, 8.0), fault(12.0, 16.0)]]
    if late_ms := scene.pop("late", None):
        faults[0] = fault(FAULT_S + late_ms / 1000, HEAL_S, late_ms)
    faults = {0.0: [], 1.0: faults[:1], 2.0: faults[1:]}[scene.pop("faults", 1.0)]
    settings = {SCENE[name]: value for name, value in scene.items()}
    for seed in range(3):
        told = client(*troubles, seed=seed, faults=faults, **settings)
        for name, wanted in (each.split("=") for each in expected):
            found = getattr(told, FIGURES.get(name, name))
            found = len(found) if isinstance(found, tuple) else found
            if wanted in ("None", "True", "False"):
                assert str(found) == wanted, (name, seed)
            else:
                assert found == pytest.approx(float(wanted), abs=0.15), (name, seed)


def test_one_hiccup_before_the_fault_does_not_make_a_stall_look_normal() -> None:
    told = client(stalled(1.5, 0.4), stalled(3.0, FAULT_S), interval_ms=100.0)
    assert told.longest_outage_s == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize("interval_ms", [50.0, 250.0])
def test_a_store_that_is_only_slower_recovers_at_its_heal(interval_ms: float) -> None:
    slower = Trouble("slow", FAULT_S, HEAL_S, extra_ms=200.0)
    told = client(slower, interval_ms=interval_ms, latency_ms=40.0)
    assert told.recovery_s == pytest.approx(HEAL_S - FAULT_S, abs=0.3)
    assert told.longest_outage_s < 0.4  # each request is answered
    (stretch,) = told.slow
    assert (stretch.begin_s, stretch.end_s) == pytest.approx((FAULT_S, HEAL_S), abs=0.3)


def test_a_request_that_is_never_answered_delays_recovery_by_its_deadline_at_most() -> None:
    told = client(Trouble("silent", FAULT_S, FAULT_S + 5.0), deadline_ms=2_000)
    assert told.recovery_s is not None
    assert 5.0 <= told.recovery_s <= 7.1


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(list(Status)), max_size=30), st.integers(0, 30))
def test_outages_agree_with_the_definition(drawn: list[Status], fault_at: int) -> None:
    """Second by second: out from a request that is late or not ok, until the next ok answer."""
    requests = [
        Request(float(second), second + 0.5, what, False) for second, what in enumerate(drawn)
    ]
    told = outages_of(
        requests,
        ("v", "read"),
        Injection(float(fault_at), float(fault_at)),
        limit_ms=100.0,
        record_end_s=float(len(drawn)),
    )
    expected: list[tuple[float, float, bool]] = []
    begin: float | None = None
    for second, what in enumerate(drawn):
        if what in (Status.BAD, Status.LATE) and begin is None:
            begin = float(second)
        if what in (Status.GOOD, Status.LATE) and begin is not None:
            expected.append((begin, second + 0.5, True))
            begin = None
    if begin is not None:
        expected.append((begin, float(len(drawn)), False))
    assert [(each.begin_s, each.end_s, each.ended) for each in told] == expected
    assert [each.before_fault for each in told] == [b < fault_at for b, _, _ in expected]


def test_a_drills_figures_are_of_the_client_that_fared_worst(tmp_path: Path) -> None:
    drill = read_drill(
        write_drill(
            tmp_path / "b",
            phases_s=(4, 10, 6),
            interval_ms=100,
            latency_ms=(5.0, 20.0),
            faults=[Fault("stop", "n2", 5.0, 8.0)],
            troubles=[stalled(3.0, 5.0, clients=["victim"])],
        )
    )
    by_name = {one.name: one for one in drill.clients}
    assert drill.longest_outage_s == pytest.approx(3.0, abs=0.1)
    assert drill.recovery_s == pytest.approx(3.0, abs=0.1)
    assert by_name["survivor/read"].longest_outage_s == 0.0


def test_with_too_few_answers_before_only_failures_are_outages(tmp_path: Path) -> None:
    path = write_drill(
        tmp_path / "b", phases_s=(1.5, 6, 3), troubles=[stalled(2.0, 2.0)], objects=3
    )
    drill = read_drill(path)
    assert {one.limit_ms for one in drill.clients} == {None}
    assert drill.longest_outage_s == 0.0
