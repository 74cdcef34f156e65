"""The arithmetic and the verdicts of calibration, on links that are simulated probe by probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import Tolerance, blame, calibrate, document, live
from wanlat.emulator.calibration.delays import fit
from wanlat.emulator.calibration.judgement import judge_delay, judge_jitter
from wanlat.emulator.calibration.live import BetweenSites, recalibrate
from wanlat.emulator.calibration.pairs import batches, directions_of, pairs_of
from wanlat.emulator.calibration.passes import BothWays, Passes
from wanlat.emulator.calibration.rate import FRAME_BITS, Rated, Train, densest, slope_bps
from wanlat.emulator.calibration.rounds import Round
from wanlat.emulator.links import requested, wan
from wanlat.emulator.prober import Leg, Probes
from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment

PAIR = ("n1", "n2")
ONE_WAY_MS = 25.0
SHAPES = {
    "uniform": ms(50, jitter=10),
    "normal": ms(50, jitter=6, distribution="normal"),
    "pareto": ms(50, jitter=6, distribution="pareto"),
    "table": ms(50, jitter=6, distribution="table", table=shapes.empirical((1.0, 2.0, 2.5, 9.0))),
}
Lateness = Callable[[int], float | None]
"""How late (ms) the probe of this number is, one way; None: it is lost."""


def echoes(there_ms: Any, back_ms: Any, every_ns: int = 5_000_000) -> Probes:
    """Return echoes that took so long; nan: it was lost on the way there."""
    sent_ns = 10**15 + np.arange(len(there_ms)) * every_ns
    seen = np.flatnonzero(~np.isnan(there_ms))
    turned_ns = sent_ns[seen] + np.round(there_ms[seen] * 1e6).astype(np.int64)
    there = Leg(seen, turned_ns)
    return Probes(sent_ns, there, Leg(seen, turned_ns + np.round(back_ms[seen] * 1e6).astype(int)))


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

    def measure(self, pairs: Any, count: int, *_: Any, **__: Any) -> dict[Any, Probes]:
        self.calls.append(count)
        noise = np.random.default_rng(self.sent).exponential(0.02, (2, count)) + ONE_WAY_MS
        late = [self.late_ms(self.sent + n) for n in range(count)]
        noise[0] += np.array([np.nan if each is None else each for each in late])
        self.sent += count
        return {pair: echoes(*noise) for pair in pairs}

    def send_full(self, due_s: Any, *_: Any) -> dict[Any, Probes]:
        found = {}
        for pair, due in due_s.items():
            sent_ns = 10**15 + np.round(np.asarray(due) * 1e9).astype(np.int64)
            arrived = Leg(np.arange(sent_ns.size), sent_ns + round(ONE_WAY_MS * 1e6))
            found[pair] = Probes(sent_ns, arrived)
        return found


Instrument = Callable[[Lateness, Impairment], dict[str, Any]]
# How many probes a stall may hold up that one round cannot dilute, and all rounds can.
IN_FLIGHT = {"calibrate": 12, "between sites": 20, "recalibrate": 100}


@pytest.fixture(params=IN_FLIGHT)
def kind(request: pytest.FixtureRequest) -> str:
    """Which instrument."""
    return str(request.param)


@pytest.fixture
def instrument(kind: str, monkeypatch: pytest.MonkeyPatch) -> Instrument:
    """One of the three instruments, on a link that is planned: returns the entry of one pair."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    def measured(late_ms: Lateness, asked: Impairment) -> dict[str, Any]:
        entry: dict[str, Any]
        plan = mesh(2, wan=asked)
        lab: Any = SimpleNamespace(
            plan=plan,
            backend="wire",
            impairments=requested(plan),
            settled=requested(plan),
            change=lambda *_, **__: 0,
            counters=dict,
        )
        prober = FakeProber(late_ms)
        for module in (document, live):
            monkeypatch.setattr(module, "Prober", lambda *_: prober)
        monkeypatch.setattr(Passes, "bare", lambda *_: {PAIR: Probes()})
        monkeypatch.setattr(Passes, "delivery", lambda *_: {PAIR: one_way([], 0)})
        if kind == "calibrate":
            (entry,) = calibrate(lab, pairs=[PAIR])["pairs"]
        elif kind == "between sites":
            (entry,) = BetweenSites(lab, [PAIR]).measure()
        else:
            (entry,) = recalibrate(lab, [wan("dc1", "dc2")])
        assert entry["sent"] == sum(prober.calls)  # every probe that was sent
        return entry

    return measured


def test_a_right_link_passes_after_one_round(instrument: Instrument) -> None:
    entry = instrument(lambda _: 0.0, ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["rounds"], entry["reasons"]) == ("pass", 1, [])
    assert entry.get("measured_rtt_ms", 50) == pytest.approx(50, abs=0.1)


def test_one_stall_among_the_first_probes_is_diluted(instrument: Instrument, kind: str) -> None:
    """Those in flight are late, the last of them the least."""
    entry = instrument(lambda n: 5.0 * max(0, IN_FLIGHT[kind] - n), ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["reasons"]) == ("pass", [])
    assert entry["rounds"] > 1


@pytest.mark.parametrize("spell", [1, 20, 150])
def test_a_link_that_is_wrong_a_third_of_the_time_fails(instrument: Instrument, spell: int) -> None:
    entry = instrument(lambda n: 20.0 if n // spell % 3 == 0 else 0.0, ms(ONE_WAY_MS))
    assert entry["verdict"] == "fail"


@pytest.mark.parametrize("off_ms", [1.2, -0.7, 30.0])
def test_a_wrong_delay_fails_soon(instrument: Instrument, off_ms: float) -> None:
    entry = instrument(lambda _: off_ms, ms(ONE_WAY_MS))
    assert entry["verdict"] == "fail"
    assert entry["rounds"] <= (1 if off_ms < 0 else 2)


@pytest.mark.parametrize("every", [1, 10])
def test_a_loss_that_nobody_asked_for_fails_at_once(instrument: Instrument, every: int) -> None:
    entry = instrument(lambda n: None if n % every == 0 else 0.0, ms(ONE_WAY_MS))
    assert (entry["verdict"], entry["rounds"]) == ("fail", 1)


def test_a_missing_loss_fails(instrument: Instrument) -> None:
    entry = instrument(lambda _: 0.0, ms(ONE_WAY_MS, loss=0.2))
    assert entry["verdict"] == "fail"


def test_as_many_probes_are_sent_as_the_tolerance_needs() -> None:
    """By simulation: what a first round is to miss at most one time in twenty, and finds."""
    tolerance, random, runs = Tolerance(), np.random.default_rng(3), 200
    assert (tolerance.echoes, tolerance.delays) == (99, 298)
    plan = mesh(2, wan=ms(ONE_WAY_MS))
    wide = mesh(2, wan=ms(ONE_WAY_MS, jitter=5))
    still = echoes(*(ONE_WAY_MS + random.exponential(0.02, (2, tolerance.echoes))))

    def refused(share: float, off_ms: float) -> float:
        count = 0
        for _ in range(runs):
            there, back = ONE_WAY_MS + random.exponential(0.02, (2, tolerance.echoes))
            there += np.where(random.random(there.size) < share, off_ms, 0.0)
            count += bool(judge_delay(plan, PAIR, echoes(there, back), tolerance, Round())[1])
        return count / runs

    def misfit(jitter_ms: float) -> float:
        count = 0
        for _ in range(runs // 8):
            drawn = ONE_WAY_MS + jitter_ms * random.uniform(-1, 1, (2, tolerance.delays))
            found = echoes(*drawn)
            count += bool(judge_jitter(wide, PAIR, BothWays(found), still, tolerance, Round())[1])
        return count / (runs // 8)

    assert refused(0.0, 0.0) == 0
    assert refused(0.03, 3.0) > 0.9  # 95 % by design
    assert refused(1.0, 0.55) == refused(1.0, -0.55) == 1
    assert misfit(5.0) <= 0.02
    assert misfit(6.5) > 0.9


def draws(asked: Impairment, count: int, seed: int = 1) -> Any:
    """Draw as a backend does: a random place in the list of quantiles, linear in between."""
    random = np.random.default_rng(seed)
    quantiles = shapes.shape(asked.distribution, asked.table)
    if quantiles is None:
        drawn = random.uniform(-1, 1, count)
    else:
        drawn = np.interp(random.uniform(0, 1, count), np.linspace(0, 1, 4096), quantiles)
    return asked.delay_ns / 1e6 + asked.jitter_ns / 1e6 * drawn


@pytest.mark.parametrize("asked", SHAPES)
def test_draws_fit_what_was_asked_for_and_nothing_else(asked: str) -> None:
    """Of the others, of the same deviation, none does; beside what the machine is late by."""
    late = np.random.default_rng(0).exponential(0.05, (20, 5000))
    right = SHAPES[asked]
    p_values = [
        fit(draws(right, 5000, seed) + late[seed], [right], late[seed - 1]).p_value
        for seed in range(20)
    ]
    assert sum(p_value < 0.05 for p_value in p_values) <= 4  # 1 in 20 is expected
    alike = {**SHAPES, "uniform": ms(50, jitter=6 * 3**0.5)}
    for drawn in alike.keys() - {asked}:
        assert fit(draws(alike[drawn], 5000), [alike[asked]], np.zeros(0)).p_value < 1e-6


def test_early_delays_are_the_links_late_ones_may_be_the_machines_and_a_spread_is_seen() -> None:
    asked = SHAPES["uniform"]
    found = {late: fit(draws(asked, 1000) + late, [asked], np.zeros(0)) for late in (-3, 0, 3)}
    assert found[-3].early_p_value < 1e-8
    assert min(found[0].early_p_value, found[3].early_p_value) > 0.01
    assert found[3].p_value < 1e-6
    wide = replace(asked, jitter_ns=round(1.25 * asked.jitter_ns))
    assert fit(draws(wide, 1000), [asked], np.zeros(0)).p_value < 1e-4


def one_way(numbers: Sequence[int], sent: int) -> Probes:
    instants_ns = 10**9 + np.arange(len(numbers)) * 1000
    return Probes(
        10**9 + np.arange(sent) * 1000 - 500, Leg(np.array(numbers, dtype=np.int64), instants_ns)
    )


@pytest.mark.parametrize("rate_bps", [1_000_000, 20_000_000, 400_000_000, 1_000_000_000])
@pytest.mark.parametrize("queue_bytes", [None, 20_000, 10_000_000])
def test_a_train_never_overflows_the_queue_and_never_lets_it_run_empty(
    rate_bps: int, queue_bytes: int | None
) -> None:
    rated = Rated.on_path([ms(10, rate_bps=rate_bps, queue_bytes=queue_bytes)])
    assert rated is not None
    train = Train.for_rate(rated)
    backlog_s = 0.0
    for before, at in zip((0.0, *train.offsets_s), train.offsets_s, strict=False):
        backlog_s -= at - before
        assert backlog_s > -rated.packet_s
        backlog_s = max(0.0, backlog_s) + rated.packet_s
        assert backlog_s * rate_bps / 8 <= max(rated.queue_bytes, 2 * 1514)
    assert train.length >= 5


def test_rate_is_the_slope_of_a_trains_arrivals_and_held_up_trains_do_not_count() -> None:
    even_ns = (np.arange(100) * FRAME_BITS * 50).astype(np.int64)  # 20 Mbit/s
    assert slope_bps(even_ns, 100) == pytest.approx(20e6, rel=1e-6)
    late_ns = np.maximum(even_ns, np.where(np.arange(100) // 10 % 4 == 0, even_ns + 2_000_000, 0))
    assert slope_bps(late_ns, 100) == pytest.approx(20e6, rel=0.01)
    assert slope_bps(even_ns[:80], 100) is None  # too little of it arrived
    assert slope_bps(np.repeat(even_ns[-1:], 100), 100) is None  # all at once
    assert densest([20.0, 20.1, 19.9, 35.0, 12.0]) == pytest.approx((20.0, 0.2))


def test_pairs_of_a_batch_share_no_direction_of_a_link() -> None:
    plan = mesh(4, 2)
    pairs = pairs_of(plan)
    assert len(pairs) == 56
    made = batches(plan, pairs, at_most=5)
    assert sorted(pair for batch in made for pair in batch) == sorted(pairs)
    for batch in made:
        used = [direction for pair in batch for direction in directions_of(plan, pair)]
        assert len(used) == len(set(used))
        assert len(batch) <= 5


def test_who_reads_a_failure_is_told_that_the_machine_held_packets_up() -> None:
    assert "48 of 130 probes" in blame([{"late": 48, "sent": 99}, {"late": 0, "sent": 31}])
    assert blame([{"late": 0, "sent": 99}]) == ""
