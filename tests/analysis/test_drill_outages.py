"""Outages and the time to recover, on clients whose store stalls, fails or slows at known times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drill_bundles import ORIGIN_NS, Fault, Play, Trouble, play_client, stalled, write_drill
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.analysis.drill.clients import Course, clients_of
from wanlat.analysis.drill.disturbances import Injection, Request, Says, outages_of
from wanlat.analysis.drill.events import fault_windows
from wanlat.analysis.drill.model import ClientFigures, FaultWindow
from wanlat.analysis.drill.read import read_drill
from wanlat.analysis.drill.requests import requests_of

FAULT_S = 4.0
HEAL_S = 24.0
END_S = 34.0


def fault(begin_s: float = FAULT_S, end_s: float | None = HEAL_S) -> FaultWindow:
    return FaultWindow(1, "stop", "n2", "", ("n2",), (), begin_s, end_s, 0.1, ())


def client(
    *troubles: Trouble,
    seed: int = 1,
    interval_ms: float = 50.0,
    latency_ms: float = 5.0,
    jitter: float = 0.2,
    heavy_tail: float = 0.0,
    deadline_ms: float = 10_000.0,
    faults: Sequence[FaultWindow] | None = None,
) -> ClientFigures:
    """How a client fares whose store has `troubles`, 4 s before, 20 s during, 10 s after."""
    play = Play()
    play_client(
        play,
        np.random.default_rng(seed),
        "victim",
        {"node": "n2", "site": "dc2", "target": "n2"},
        "read",
        keys=["k"],
        schedule=(interval_ms, deadline_ms, END_S),
        cuts=(FAULT_S, HEAL_S),
        latency_ms=latency_ms,
        spread=(jitter, heavy_tail),
        troubles=troubles,
        series=("quorum", "0.1.0"),
        topology="four-sites",
    )
    requests = requests_of(typed(play.samples), ORIGIN_NS)
    course = Course.of(
        [fault()] if faults is None else faults,
        interval_ms=interval_ms,
        until_s=END_S,
    )
    (figures,) = clients_of(requests, ["victim"], course)
    return figures


def typed(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame.from_records(rows)
    whole = [name for name in frame.columns if name.endswith("_ns")]
    return frame.astype(dict.fromkeys(whole, "Int64"))


# --- a stall of three seconds ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval_ms", "latency_ms"),
    [(20.0, 0.5), (20.0, 15.0), (50.0, 0.5), (50.0, 5.0), (50.0, 40.0), (100.0, 20.0)],
)
def test_a_stall_of_three_seconds_is_an_outage_of_three_seconds(
    interval_ms: float, latency_ms: float
) -> None:
    for seed in range(6):
        at_s = FAULT_S + seed * 0.0137
        told = client(
            stalled(3.0, at_s),
            seed=seed,
            interval_ms=interval_ms,
            latency_ms=latency_ms,
            faults=[fault(at_s, at_s + 3.0)],
        )
        assert told.longest_outage_s == pytest.approx(3.0, abs=0.1), seed
        assert told.recovery_s == pytest.approx(3.0, abs=0.1), seed
        assert told.recovered is True
        assert told.recovery_after_heal_s == pytest.approx(0.0, abs=0.1)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    seconds=st.floats(0.5, 9.0),
    latency_ms=st.floats(0.3, 30.0),
    offset_s=st.floats(0.0, 5.0),
)
def test_an_outage_lasts_as_long_as_the_stall(
    seed: int, seconds: float, latency_ms: float, offset_s: float
) -> None:
    at_s = FAULT_S + offset_s
    told = client(
        stalled(seconds, at_s),
        seed=seed,
        latency_ms=latency_ms,
        faults=[fault(at_s, at_s + seconds)],
    )
    assert told.longest_outage_s == pytest.approx(seconds, abs=0.1)
    assert told.recovery_s == pytest.approx(seconds, abs=0.1)


def test_a_stall_longer_than_the_deadline_is_one_outage_and_ends_with_it() -> None:
    for latency_ms in (1.0, 20.0, 40.0):
        told = client(stalled(18.0, FAULT_S), latency_ms=latency_ms, deadline_ms=5_000)
        assert told.longest_outage_s == pytest.approx(18.0, abs=0.1)
        assert told.recovery_s == pytest.approx(18.0, abs=0.15)
        assert len(told.outages) == 1


def test_the_stall_counts_as_the_many_requests_it_delayed() -> None:
    told = client(stalled(3.0, FAULT_S + 1))
    during = told.phases["during"]
    assert during.from_due.p99_ms is not None and during.from_start.p99_ms is not None
    assert during.from_due.p99_ms > 2000
    assert during.from_start.p99_ms < 10
    assert during.from_due.max_ms == pytest.approx(3000, abs=100)


# --- what is no outage -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("latency_ms", "jitter", "heavy_tail"),
    [(5.0, 0.2, 0.0), (40.0, 0.2, 0.0), (3.0, 0.9, 0.0), (5.0, 0.0, 0.5), (1.0, 0.0, 1.0)],
)
def test_healthy_traffic_has_no_outage_and_nothing_to_recover_from(
    seed: int, latency_ms: float, jitter: float, heavy_tail: float
) -> None:
    told = client(seed=seed, latency_ms=latency_ms, jitter=jitter, heavy_tail=heavy_tail)
    assert (told.longest_outage_s, told.outages, told.slow) == (0.0, (), ())
    assert (told.recovered, told.recovery_s, told.recovery_after_heal_s) == (True, 0.0, 0.0)


def test_an_outage_before_the_fault_is_no_faults() -> None:
    told = client(stalled(1.5, 1.0))
    assert [outage.before_fault for outage in told.outages] == [True]
    assert told.longest_outage_s == 0.0
    assert (told.recovered, told.recovery_s) == (True, 0.0)


def test_a_client_that_was_out_already_when_the_fault_began_cannot_tell_of_recovery() -> None:
    told = client(Trouble("down", 2.0, 8.0))
    (outage,) = told.outages
    assert outage.before_fault and outage.duration_s == pytest.approx(6.0, abs=0.1)
    assert told.longest_outage_s == 0.0
    assert (told.recovered, told.recovery_s) == (None, None)


def test_a_request_in_flight_when_the_fault_begins_is_the_faults() -> None:
    # 40 ms of every 50 ms a request is in flight, so that most seeds catch one.
    for seed in range(8):
        told = client(stalled(3.0, FAULT_S), seed=seed, latency_ms=40.0)
        (outage,) = told.outages
        assert not outage.before_fault
        assert FAULT_S <= outage.begin_s < FAULT_S + 0.05
        assert outage.end_s == pytest.approx(FAULT_S + 3.0, abs=0.06)


def test_a_fault_that_took_effect_before_it_was_seen_to_is_blamed_all_the_same() -> None:
    # Of a kill, the instant in the journal is when the end of the process was seen.
    seen = FaultWindow(1, "kill", "n2", "", ("n2",), (), FAULT_S + 0.12, HEAL_S, 120.0, ())
    for seed in range(8):
        told = client(
            Trouble("down", FAULT_S, FAULT_S + 6), seed=seed, latency_ms=40, faults=[seen]
        )
        (outage,) = told.outages
        assert not outage.before_fault
        assert outage.begin_s == pytest.approx(FAULT_S, abs=0.06)
        assert told.recovery_s == pytest.approx(5.88, abs=0.1)


# --- several, slow, never back -----------------------------------------------------------------


def test_of_several_outages_the_longest_is_told_and_recovery_ends_with_the_last() -> None:
    told = client(stalled(1.0, 5.0), stalled(4.0, 9.0), stalled(2.0, 17.0))
    lengths = [round(outage.duration_s, 1) for outage in told.outages]
    assert lengths == pytest.approx([1.0, 4.0, 2.0], abs=0.11)
    assert told.longest_outage_s == pytest.approx(4.0, abs=0.1)
    assert told.recovery_s == pytest.approx(15.0, abs=0.1)


@pytest.mark.parametrize("interval_ms", [50.0, 250.0])
@pytest.mark.parametrize("latency_ms", [2.0, 40.0])
def test_a_store_that_is_only_slower_recovers_at_its_heal(
    interval_ms: float, latency_ms: float
) -> None:
    slower = Trouble("slow", FAULT_S, HEAL_S, extra_ms=200.0)
    told = client(slower, interval_ms=interval_ms, latency_ms=latency_ms)
    assert told.recovery_s == pytest.approx(HEAL_S - FAULT_S, abs=0.3)
    assert told.recovered is True
    assert told.longest_outage_s < 0.4  # each request is answered
    (stretch,) = told.slow
    assert stretch.begin_s == pytest.approx(FAULT_S, abs=0.3)
    assert stretch.end_s == pytest.approx(HEAL_S, abs=0.3)


def test_a_store_that_fails_over_recovers_then_though_the_fault_lasts() -> None:
    for kind in ("stall", "down"):
        told = client(Trouble(kind, FAULT_S, FAULT_S + 5.0), deadline_ms=8_000)
        assert told.recovery_s == pytest.approx(5.0, abs=0.15), kind
        assert told.recovery_after_heal_s == 0.0


def test_a_request_that_is_never_answered_delays_recovery_by_its_deadline_at_most() -> None:
    told = client(Trouble("silent", FAULT_S, FAULT_S + 5.0), deadline_ms=2_000)
    assert told.recovery_s is not None
    assert 5.0 <= told.recovery_s <= 7.1


def test_refusals_are_one_outage_from_the_first_to_the_next_answer() -> None:
    told = client(Trouble("down", 10.0, 17.0))
    (outage,) = told.outages
    assert (outage.begin_s, outage.end_s) == pytest.approx((10.0, 17.0), abs=0.06)
    assert outage.requests == pytest.approx(140, abs=2)


def test_what_does_not_come_back_is_not_recovered() -> None:
    told = client(Trouble("down", 10.0, END_S + 1))
    (outage,) = told.outages
    assert not outage.ended
    assert outage.duration_s == pytest.approx(24.0, abs=0.1)
    assert told.longest_outage_s == outage.duration_s
    assert (told.recovered, told.recovery_s, told.recovery_after_heal_s) == (False, None, None)


def test_one_answer_at_the_very_end_is_not_yet_a_recovery() -> None:
    told = client(Trouble("down", 10.0, END_S - 0.07))
    assert (told.recovered, told.recovery_s) == (False, None)


def test_a_store_that_stays_slow_is_not_recovered() -> None:
    told = client(Trouble("slow", 10.0, END_S + 1, extra_ms=30.0))
    assert told.outages == ()
    assert (told.recovered, told.recovery_s) == (False, None)


def test_a_hiccup_of_a_few_requests_is_no_slow_stretch() -> None:
    told = client(Trouble("slow", 10.0, 10.3, extra_ms=15.0), interval_ms=25.0)
    assert (told.slow, told.recovery_s) == ((), 0.0)
    longer = client(Trouble("slow", 10.0, 11.5, extra_ms=15.0), interval_ms=25.0)
    (stretch,) = longer.slow
    assert (stretch.begin_s, stretch.end_s) == pytest.approx((10.0, 11.5), abs=0.06)


def test_half_of_the_requests_failing_is_an_unrecovered_store_without_a_long_outage() -> None:
    flaky = Trouble("down", FAULT_S, END_S + 1, part=0.5)
    told = client(flaky)
    assert told.longest_outage_s < 1.0
    assert told.recovered is not True or told.recovery_s == pytest.approx(END_S - FAULT_S, abs=1)


def test_recovery_counts_from_the_first_injection_and_after_the_last_heal() -> None:
    faults = [fault(4.0, 8.0), fault(12.0, 16.0)]
    told = client(Trouble("down", 12.0, 19.0), faults=faults)
    assert told.recovery_s == pytest.approx(15.0, abs=0.1)
    assert told.recovery_after_heal_s == pytest.approx(3.0, abs=0.1)


def test_without_a_fault_there_is_nothing_to_recover_from_and_every_outage_counts() -> None:
    told = client(stalled(2.0, 2.0), faults=[])
    assert told.longest_outage_s == pytest.approx(2.0, abs=0.1)
    assert (told.recovered, told.recovery_s) == (None, None)


def test_one_hiccup_before_the_fault_does_not_make_a_stall_look_normal() -> None:
    told = client(stalled(1.5, 0.4), stalled(3.0, FAULT_S), interval_ms=100.0)
    assert told.longest_outage_s == pytest.approx(3.0, abs=0.1)


def test_with_too_few_answers_before_only_failures_are_outages(tmp_path: Path) -> None:
    drill = read_drill(
        write_drill(tmp_path / "b", phases_s=(1.5, 6, 3), troubles=[stalled(2.0, 2.0)], objects=3)
    )
    assert {one.limit_ms for one in drill.clients} == {None}
    assert drill.longest_outage_s == 0.0
    assert any("Too few answers before the fault" in note for note in drill.notes)


# --- the definition, brute force ---------------------------------------------------------------

says = st.sampled_from(list(Says))


@settings(max_examples=400, deadline=None)
@given(st.lists(says, max_size=30), st.integers(0, 30))
def test_outages_agree_with_the_definition(drawn: list[Says], fault_at: int) -> None:
    """Second by second: out from a request that is late or not ok, until the next ok answer."""
    requests = [
        Request(float(second), second + 0.5, what, False) for second, what in enumerate(drawn)
    ]
    told = outages_of(
        requests,
        client="v",
        operation="read",
        first_fault=Injection(float(fault_at), float(fault_at)),
        limit_ms=100.0,
        record_end_s=float(len(drawn)),
    )
    expected: list[tuple[float, float, bool]] = []
    begin: float | None = None
    for second, what in enumerate(drawn):
        if what in (Says.BAD, Says.LATE) and begin is None:
            begin = float(second)
        if what in (Says.GOOD, Says.LATE) and begin is not None:
            expected.append((begin, second + 0.5, True))
            begin = None
    if begin is not None:
        expected.append((begin, float(len(drawn)), False))
    assert [(each.begin_s, each.end_s, each.ended) for each in told] == expected
    assert [each.before_fault for each in told] == [b < fault_at for b, _, _ in expected]


def test_drill_figures_are_of_the_client_that_fared_worst(tmp_path: Path) -> None:
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
    assert by_name["survivor/write"].recovery_s == 0.0


def test_faults_that_were_never_injected_are_no_windows() -> None:
    assert fault_windows([], 0) == ()
