"""One measurement, extended: its verdict rests on every probe, and none is sent twice to pass."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import again, between_sites, document, rounds
from wanlat.emulator.calibration.again import recalibrate
from wanlat.emulator.calibration.between_sites import BetweenSites
from wanlat.emulator.calibration.document import calibrate
from wanlat.emulator.calibration.rounds import (
    ONE_ROUND,
    Finding,
    Judged,
    Limits,
    Round,
    StallClock,
    blame,
    is_certain,
    measure_in_rounds,
)
from wanlat.emulator.calibration.trains import Spread
from wanlat.emulator.links import requested, wan
from wanlat.emulator.prober import Echoes
from wanlat.emulator.stream import Delivery
from wanlat.topologies.resolve import Impairment

PAIRS = [("n1", "n2"), ("n2", "n1")]
ONE_WAY_MS = 25.0

Lateness = Callable[[int], float | None]
"""How late (ms) the probe of this number is, one way; None: it is lost."""


@dataclass
class FakeProber:
    """A prober on a link of 25 ms each way whose faults are planned, probe by probe."""

    late_ms: Lateness
    sent: int = 0
    calls: list[int] = field(default_factory=list)

    def __enter__(self) -> FakeProber:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def measure(
        self, pairs: Sequence[tuple[str, str]], count: int, *_: Any, **__: Any
    ) -> dict[tuple[str, str], Echoes]:
        self.calls.append(count)
        first, self.sent = self.sent, self.sent + count
        return {pair: self._echoes(range(first, first + count)) for pair in pairs}

    def _echoes(self, numbers: range) -> Echoes:
        noise = random.Random(numbers.start)
        echoes = Echoes(sent=len(numbers))
        for place, number in enumerate(numbers):
            if (late_ms := self.late_ms(number)) is None:
                continue
            there_ns = round((ONE_WAY_MS + late_ms + noise.expovariate(50)) * 1e6)
            back_ns = round((ONE_WAY_MS + noise.expovariate(50)) * 1e6)
            echoes.numbers.append(place)
            echoes.rtt_ns.append(there_ns + back_ns)
            echoes.seen_numbers.append(place)
            echoes.seen_sent_ns.append(number * 5_000_000)
            echoes.forward_ns.append(there_ns)
            echoes.backward_ns.append(back_ns)
        return echoes


class FakeTrains(FakeProber):
    """Trains that nothing spreads."""

    def measure(self, lengths: Any, times: int, *_: Any, **__: Any) -> Any:
        return {way: [Spread(length - 1, 0.001)] * times for way, length in lengths.items()}


class FakeStream(FakeProber):
    """Datagrams that all arrive."""

    def send(self, pairs: Any, count: int, *_: Any, **__: Any) -> Any:
        sent_ns = np.arange(count) * 200_000
        late_ns = round(ONE_WAY_MS * 1e6)
        return {pair: Delivery(sent_ns, np.arange(count), sent_ns + late_ns, 0) for pair in pairs}


Instrument = Callable[[Lateness, Impairment], dict[str, Any]]


# How many probes a stall may hold up that one round cannot dilute, and all rounds can.
IN_FLIGHT = {"calibrate": 25, "between sites": 20, "again": 100}


@pytest.fixture(params=IN_FLIGHT)
def kind(request: pytest.FixtureRequest) -> str:
    """Which instrument."""
    return str(request.param)


@pytest.fixture
def instrument(kind: str, monkeypatch: pytest.MonkeyPatch) -> Instrument:
    """One of the three instruments, on a link that is planned: returns the entry of one pair."""
    monkeypatch.setattr(rounds.time, "sleep", lambda _: None)

    def measured(late_ms: Lateness, asked: Impairment) -> dict[str, Any]:
        plan = mesh(2, wan=asked)
        lab: Any = SimpleNamespace(
            plan=plan,
            backend="wire",
            impairments=requested(plan),
            settled=requested(plan),
            check=lambda: None,
            change=lambda *_, **__: 0,
            counters=dict,
        )
        probers: list[FakeProber] = []

        def prober(*_: Any) -> FakeProber:
            probers.append(FakeProber(late_ms))
            return probers[-1]

        for module in (document, between_sites, again):
            monkeypatch.setattr(module, "Prober", prober)
        monkeypatch.setattr(document, "Stream", lambda *_: FakeStream(late_ms))
        monkeypatch.setattr(again, "Trains", lambda *_: FakeTrains(late_ms))
        if kind == "calibrate":
            monkeypatch.setattr(document, "bare_pass", lambda *_: dict.fromkeys(PAIRS, Echoes()))
            (entry, _) = calibrate(lab)["pairs"]
        elif kind == "between sites":
            (entry,) = BetweenSites(lab, PAIRS[:1]).measure()
        else:
            (entry,) = recalibrate(lab, [wan("dc1", "dc2")])
        assert entry["sent"] == sum(probers[0].calls)  # every probe that was sent
        return entry

    return measured


def test_a_right_link_passes_after_one_round(instrument: Instrument) -> None:
    entry = instrument(lambda _: 0.0, ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["rounds"], entry["reasons"]) == ("pass", 1, [])


def test_one_stall_among_the_first_probes_is_diluted(instrument: Instrument, kind: str) -> None:
    """Those in flight are late, the last of them the least."""
    entry = instrument(lambda n: 5.0 * max(0, IN_FLIGHT[kind] - n), ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["reasons"]) == ("pass", [])
    assert entry["rounds"] > 1


@pytest.mark.parametrize("spell", [1, 20, 150])
def test_a_link_that_is_wrong_a_third_of_the_time_fails(instrument: Instrument, spell: int) -> None:
    entry = instrument(lambda n: 20.0 if n // spell % 3 == 0 else 0.0, ms(ONE_WAY_MS))
    assert entry["verdict"] == "fail"


@pytest.mark.parametrize("off_ms", [2.0, -2.0, 30.0])
def test_a_wrong_delay_fails_soon(instrument: Instrument, off_ms: float) -> None:
    entry = instrument(lambda _: off_ms, ms(ONE_WAY_MS))
    assert entry["verdict"] == "fail"
    assert entry["rounds"] <= (1 if off_ms < 0 else 2)


def test_a_loss_that_nobody_asked_for_fails_at_once(instrument: Instrument) -> None:
    entry = instrument(lambda n: None if n % 10 == 0 else 0.0, ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["rounds"]) == ("fail", 1)


def test_a_missing_loss_fails(instrument: Instrument) -> None:
    entry = instrument(lambda _: 0.0, ms(ONE_WAY_MS, loss=0.2))
    assert entry["verdict"] == "fail"
    assert any("lost" in reason for reason in entry["reasons"])


def test_a_link_that_nothing_passes_fails_at_once(instrument: Instrument) -> None:
    entry = instrument(lambda _: None, ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["rounds"]) == ("fail", 1)


class Shares(list[bool]):
    """Probes that were right or not."""

    def __add__(self, later: Any) -> Shares:
        return Shares([*self, *later])


def in_rounds(
    plan: Callable[[str, int], bool], limits: Limits, *, final: bool = False
) -> tuple[dict[str, dict[str, Any]], list[tuple[list[str], int]]]:
    """Measure keys a and b, of which a fifth of the probes may be wrong, 10 in the first round."""
    asked: list[tuple[list[str], int]] = []
    sent = {"a": 0, "b": 0}

    def send(keys: list[str], size: int) -> dict[str, Shares]:
        asked.append((list(keys), size))
        found = {}
        for key in keys:
            found[key] = Shares(plan(key, sent[key] + n) for n in range(10 * size))
            sent[key] += 10 * size
        return found

    def judge(_: str, probes: Shares, this: Round) -> Judged:
        share = 1 - sum(probes) / len(probes)
        words = f"{share:.0%} of {len(probes)} wrong"
        is_final = final or this.is_beyond(share, 0.2)
        return {"sent": len(probes)}, [Finding(words, is_final)] if share > 0.2 else []

    return measure_in_rounds(["a", "b"], send, judge, limits), asked


def test_rounds_grow_and_only_what_is_unclear_is_extended() -> None:
    entries, asked = in_rounds(lambda key, n: key == "a" or n % 4 != 0, Limits((1, 1, 2, 4)))
    assert asked == [(["a", "b"], 1), (["b"], 1), (["b"], 2), (["b"], 4)]
    assert (entries["a"]["verdict"], entries["a"]["sent"], entries["a"]["rounds"]) == (
        "pass",
        10,
        1,
    )
    assert (entries["b"]["verdict"], entries["b"]["sent"], entries["b"]["rounds"]) == (
        "fail",
        80,
        4,
    )
    assert entries["b"]["reasons"] == ["25% of 80 wrong"]


def test_what_no_further_probe_can_clear_is_not_extended() -> None:
    hopeless = Limits((1, 1))
    entries, asked = in_rounds(lambda key, n: key == "a" or n >= 6, hopeless)
    assert entries["b"]["reasons"] == ["60% of 10 wrong"]  # of 20 at least 30 % would be
    assert len(asked) == 1
    assert len(in_rounds(lambda *_: False, Limits((1, 1, 2)), final=True)[1]) == 1


def test_no_round_begins_for_which_there_is_no_time() -> None:
    entries, asked = in_rounds(lambda _, n: n % 4 != 0, Limits((1, 1, 2), 0.0, longest_s=0.0))
    assert len(asked) == 1
    assert entries["b"]["verdict"] == "fail"
    assert len(in_rounds(lambda _, n: n % 4 != 0, ONE_ROUND)[1]) == 1


def test_a_p_value_has_to_be_larger_after_each_further_round() -> None:
    assert [Round(number).alpha(1e-4) for number in (1, 3)] == pytest.approx([1e-4, 3e-4])
    assert is_certain(1e-9, 1e-4)
    assert not is_certain(1e-5, 1e-4)


def test_probes_of_two_rounds_are_one_sample() -> None:
    first = Echoes(5, [0, 2, 1], [1, 2, 3], [0, 2], [10, 20], [1, 2], [3, 4], 1, 2)
    both = first + first
    assert both.numbers == [0, 2, 1, 5, 7, 6]
    assert both.seen_numbers == [0, 2, 5, 7]
    assert (both.sent, both.lost, both.reordered) == (10, 4, 2)
    assert (both.duplicates, both.corrupted, len(both.rtt_ns)) == (2, 4, 6)
    sent_ns = np.arange(4) * 1000
    some = Delivery(sent_ns, np.array([0, 3, 2, 2]), sent_ns + 500, 1)
    twice = some + some
    assert (twice.sent, twice.lost, twice.damaged) == (8, 0, 2)
    assert (twice.duplicated, twice.overtaken) == (2 * some.duplicated, 2 * some.overtaken)
    assert twice.bursts.tolist() == [1, 1]


def test_who_reads_a_failure_is_told_how_long_the_machine_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = itertools.count(step=0.5)
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    with StallClock() as clock:
        pass
    assert clock.longest_ms == pytest.approx(490)  # between two beats, 10 ms apart
    assert "up to 480 ms: end what else runs" in blame([{"stall_ms": 480.0}, {"stall_ms": 3.0}])
    assert blame([{"stall_ms": 3.0}]).endswith("up to 3 ms.")
