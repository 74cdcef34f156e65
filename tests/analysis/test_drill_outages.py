"""Outages and the time to recover, on clients whose store stalls, fails or slows at known times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from drill_bundles import ORIGIN_NS, Play, Trouble
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.analysis.figures.drill.outages import BAD, GOOD, LATE, NOT_SENT, client_of, outages_of
from wanlat.analysis.figures.drill.requests import quantity, requests_of
from wanlat.topologies.units import Duration

FAULT_S, HEAL_S, END_S = 4.0, 24.0, 34.0
VICTIM = {"node": "n2", "site": "dc2", "target": "n2"}


def fault(begin_s: float = FAULT_S, end_s: float = HEAL_S, late_ms: float = 0.1) -> dict[str, Any]:
    return {"begin_s": begin_s, "end_s": end_s, "late_ms": late_ms}


def client(
    *troubles: Trouble,
    faults: Sequence[dict[str, Any]] = (fault(),),
    interval_ms: float = 50.0,
    latency_ms: float = 5.0,
    is_machine: bool = False,
    **scene: Any,
) -> dict[str, Any]:
    """How a client fares whose store has `troubles`, 4 s before, 20 s during, 10 s after.

    `is_machine`: it was the machine that made late what took long.
    """
    import pandas as pd

    phases_s = (FAULT_S, HEAL_S - FAULT_S, END_S - HEAL_S)
    both_ms = (latency_ms, latency_ms)
    play = Play(interval_ms=interval_ms, latency_ms=both_ms, phases_s=phases_s, **scene)
    play.send("victim", VICTIM, "read", troubles)
    columns = ("start_ns", "total_ns", "elapsed_ns", "due_ns", "error", "key", "late")
    frame = pd.DataFrame([dict.fromkeys(columns) | row for row in play.files["samples"]])
    if is_machine:
        frame["late"] = frame["elapsed_ns"].fillna(frame["total_ns"]) > 100e6
    whole = [name for name in frame.columns if name.endswith("_ns")]
    requests = requests_of(frame.astype(dict.fromkeys(whole, "Int64")), ORIGIN_NS)
    figures, outages, slow = client_of(requests, faults, interval_ms, END_S)
    assert figures["outages"] == sum(not each["before_fault"] for each in outages)
    return {**figures, "outages": len(outages), "slow": len(slow)}


CASES = """
stall 4-22     | deadline=5000       | outages=1 longest=18 recovery=18 | beyond the deadline
stall 1-2.5    |                     | outages=1 longest=0 recovery=0 recovered=True | no fault's
stall 0.4-1.9 4-7 | interval=100     | longest=3 | a hiccup makes no stall look normal
down 2-8       |                     | outages=1 longest=0 recovered=None | out already as it began
stall 4-7      | latency=40          | outages=1 longest=3 recovery=3 | in flight as the fault began
down 4-10      | latency=40 late=120 | outages=1 longest=6 recovery=5.88 | seen too late
stall 5-6 9-13 17-19 |               | outages=3 longest=4 recovery=15 | the longest; the last
down 4-9       |                     | recovery=5 after_heal=0 | fails over, though the fault lasts
silent 4-9     | deadline=2000       | recovery=6±1.1 | never answered: until the deadline at most
down 10-35     |                     | longest=24 recovered=False recovery=None | not back
down 10-33.93  |                     | recovered=False recovery=None | one answer is too few
slow30 10-35   |                     | outages=0 slow=1 recovered=False | stays slow
slow200 4-24   | latency=40 interval=250 | outages=0 slow=1 recovery=20±.3 | only slower: the heal
slow15 10-10.3 | interval=25         | slow=0 recovery=0 | a hiccup of a few requests
slow15 10-11.5 | interval=25         | slow=1 recovery=7.5 | longer than a hiccup
down 12-19     | faults=2            | recovery=15 after_heal=3 | first injection, last heal
stall 2-4      | faults=0            | longest=2 recovered=None recovery=None | nothing was injected
down 0-34      |                     | outages=1 longest=0 recovered=None | nothing is normal
none 0-0       | latency=40          | outages=0 slow=0 longest=0 recovery=0 after_heal=0 | healthy
none 0-0       | latency=3 jitter=.9 | outages=0 slow=0 longest=0 recovery=0 after_heal=0 | healthy
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
    kind, extra_ms = does[0].rstrip("0123456789"), float(does[0].lstrip("slowdntaei") or 0)
    spans = [tuple(map(float, span.split("-"))) for span in does[1:]]
    troubles = [Trouble(kind, begin, end, extra_ms=extra_ms) for begin, end in spans]
    scene = {name: float(value) for name, value in (each.split("=") for each in given)}
    late_ms = scene.pop("late", 0.1)
    one = [fault(FAULT_S + late_ms / 1000, HEAL_S, late_ms)]
    several = {0.0: [], 1.0: one, 2.0: [fault(4.0, 8.0), fault(12.0, 16.0)]}
    faults = several[scene.pop("faults", 1.0)]
    more = {SCENE[name]: value for name, value in scene.items()}
    for seed, in_flight in ((0, 1), (1, 1), (2, 100)):
        told = client(*troubles, seed=seed, in_flight=in_flight, faults=faults, **more)
        for name, wanted in (each.split("=") for each in expected):
            found = told[FIGURES.get(name, name)]
            value, _, around = wanted.partition("±")
            if value in ("None", "True", "False"):
                assert str(found) == value, (name, seed)
            else:
                assert found == pytest.approx(float(value), abs=float(around or 0.15)), (name, seed)


def test_what_the_machine_made_late_is_no_outage_and_in_no_latency() -> None:
    stall = Trouble("stall", 6, 9)
    told, by_machine = client(stall), client(stall, is_machine=True)
    assert (told["outages"], by_machine["outages"]) == (1, 0)
    during, calm = (each["phases"]["during"] for each in (told, by_machine))
    assert during["from_start"]["max_ms"] > 1000 > 10 * calm["from_start"]["max_ms"]
    assert during["ok"] == calm["ok"], "outcomes count"


@settings(max_examples=80)
@given(st.lists(st.sampled_from([GOOD, LATE, BAD, NOT_SENT]), max_size=30), st.integers(0, 30))
def test_outages_agree_with_the_definition(drawn: list[str], fault_at: int) -> None:
    """Second by second: out from a request that is late or not ok, until the next ok answer."""
    import pandas as pd

    begins = [float(second) for second in range(len(drawn))]
    ends = [begin + 0.5 for begin in begins]
    requests = pd.DataFrame({"begin_s": begins, "end_s": ends, "status": drawn}, dtype=object)
    told = [*outages_of(requests, (float(fault_at),) * 2, 100.0, float(len(drawn)))]
    expected: list[tuple[float, float, bool]] = []
    begin: float | None = None
    for second, what in enumerate(drawn):
        if what in (BAD, LATE) and begin is None:
            begin = float(second)
        if what in (GOOD, LATE) and begin is not None:
            expected.append((begin, second + 0.5, True))
            begin = None
    if begin is not None:
        expected.append((begin, float(len(drawn)), False))
    assert [(each["begin_s"], each["end_s"], each["ended"]) for each in told] == expected
    assert [each["before_fault"] for each in told] == [b < fault_at for b, _, _ in expected]


SENT = st.tuples(st.sampled_from([GOOD, LATE, BAD]), st.integers(1, 40))


@settings(max_examples=80)
@given(st.lists(SENT, min_size=1, max_size=30))
def test_several_on_their_way_are_back_with_the_first_answer_to_what_was_sent_since(
    drawn: list[tuple[str, int]],
) -> None:
    """Each is sent a second after the one before, and takes so many halves of one."""
    import pandas as pd

    begins = [float(second) for second in range(len(drawn))]
    ends = [begin + took / 2 for begin, (_, took) in zip(begins, drawn, strict=True)]
    said = [what for what, _ in drawn]
    requests = pd.DataFrame({"begin_s": begins, "end_s": ends, "status": said}, dtype=object)
    told = [*outages_of(requests, None, 100.0, 99.0)]
    answers = [(b, e) for b, e, what in zip(begins, ends, said, strict=True) if what != BAD]
    expected, back_s = [], 0.0
    for begin, what in zip(begins, said, strict=True):
        if what in (BAD, LATE) and begin >= back_s:
            back_s = min((end for sent, end in answers if sent >= begin), default=99.0)
            expected.append((begin, back_s))
    assert [(each["begin_s"], each["end_s"]) for each in told] == expected
    for each in told:
        within = [each["begin_s"] <= begin < each["end_s"] for begin in begins]
        hit = [what for what, inside in zip(said, within, strict=True) if inside and what != GOOD]
        assert each["requests"] == len(hit)


@pytest.mark.parametrize("unit", [*Duration._units, *Duration._read_only])
def test_a_time_is_read_in_every_spelling_that_a_drill_may_have(unit: str) -> None:
    assert quantity(f"3{unit}") == pytest.approx(Duration.parse(f"3{unit}").s)
