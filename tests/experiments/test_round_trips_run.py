"""A study of round trips, run for real on the reference store: RTT steps, samples, journal, time.

One run answers most questions.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import manifest_of, node_of, samples_of, study
from tests.late_network import accepting_late_packets
from wanlat.bundle.documents import RttStep, RttSteps
from wanlat.bundle.read import read_document
from wanlat.experiments.config.study import load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import CaptureWanted, Outcome
from wanlat.experiments.workloads.rtt_steps import schedule

RTTS_MS = (0.0, 10.0, 20.0)
SAMPLES, WARMUP, SEED = 2, 1, 7
STUDY = f"""
endpoints: [GetObject, PutObject]
round_trips: {{rtts: [0ms, 10ms, 20ms], repeats: 1, settle: 1s}}
samples: {SAMPLES}
warmup: {WARMUP}
"""


@pytest.fixture(scope="module", autouse=True)
def late_network() -> Iterator[None]:
    """No step fails because the machine held up its echoes: steps are what is tested here."""
    with accepting_late_packets("run"):
        yield


def run_once(directory: Path, on_progress: Any) -> Outcome:
    read = load(study(directory, STUDY))
    wanted = CaptureWanted(1 << 28, 256)
    return run(prepare(read, directory=directory / "bundle", capture=wanted), on_progress)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    details: dict[str, None] = {}

    def tell(_: str, *more: Any) -> None:
        if len(more) > 2 and more[2]:
            details[more[2]] = None

    outcome = run_once(tmp_path_factory.mktemp("steps"), tell)
    assert outcome.status == "complete", outcome.reason
    assert outcome.measured == outcome.planned == 3 * 2 * SAMPLES
    order = schedule(RTTS_MS, 1, SEED)
    assert [*details] == [f"RTT step {n} of 3, RTT {ms:g}ms" for n, ms in enumerate(order, 1)]
    return outcome.directory


@pytest.fixture(scope="module")
def steps(bundle: Path) -> list[RttStep]:
    return steps_of(bundle)


def steps_of(bundle: Path) -> list[RttStep]:
    found = read_document(bundle, RttSteps)
    assert found is not None
    return list(found.rtt_steps)


def test_every_rtt_is_a_step_in_the_order_of_the_seed_and_was_measured(
    steps: list[RttStep],
) -> None:
    assert [step.requested_rtt_ms for step in steps] == list(schedule(RTTS_MS, 1, SEED))
    assert [(step.system, step.rtt_step) for step in steps] == [("quorum", n) for n in range(3)]
    for step in steps:
        rtt_ms = step.requested_rtt_ms
        assert step.verdict == "pass"
        assert rtt_ms - 0.1 <= (step.measured_rtt_ms or 0.0)
        pairs = {frozenset((pair.source, pair.destination)) for pair in step.pairs}
        assert pairs == {frozenset(two) for two in (("n1", "n2"), ("n1", "n3"), ("n2", "n3"))}
        for pair in step.pairs:
            # The least of fifteen and more: of this RTT, and not of the next step's.
            assert rtt_ms - 0.1 <= (pair.min_ms or 0.0) < rtt_ms + 10
            assert (pair.min_ms or 0.0) <= (pair.measured_rtt_ms or 0.0) <= (pair.max_ms or 0.0)
            assert (pair.requested_rtt_ms, pair.lost) == (rtt_ms, 0)
            assert (pair.sent or 0) >= 15


def test_a_step_settles_then_is_idle_then_is_calibrated_then_measured(
    bundle: Path, steps: list[RttStep]
) -> None:
    instants = [
        instant or 0
        for step in steps
        for instant in (
            *(step.changed_ns, *(step.idle_ns or ()), *(step.calibrated_ns or ())),
            *(step.begun_ns, step.ended_ns),
        )
    ]
    assert instants == sorted(instants)
    assert len(set(instants)) >= 3 * 6
    assert all(step.idle_ns and step.idle_ns[1] - step.idle_ns[0] >= 1e9 for step in steps)
    events = pd.read_parquet(bundle / "events.parquet")
    said = [json.loads(detail) for detail in events[events.kind == "rtt step"].detail]
    each = ["change", "idle", "calibrate", "warmup", "measure", "end"]
    assert [(one["rtt_step"], one["what"]) for one in said] == [
        (number, what) for number in range(3) for what in each
    ]


def test_every_sample_lies_within_its_step_and_takes_its_round_trip(
    bundle: Path, steps: list[RttStep]
) -> None:
    samples = samples_of(bundle)
    assert set(samples.outcome) == {"ok"}
    assert len(samples) == 3 * 2 * (SAMPLES + WARMUP)
    assert samples.seq.is_unique
    for step in steps:
        its = samples[samples.rtt_step == step.rtt_step]
        counted = its.groupby(["phase", "endpoint"]).size()
        assert (set(counted["measure"]), set(counted["warmup"])) == ({SAMPLES}, {WARMUP})
        assert set(its.rtt_ms) == {step.requested_rtt_ms}
        assert (step.begun_ns or 0) <= its.start_ns.min()
        assert (its.start_ns + its.elapsed_ns).max() <= (step.ended_ns or 0)
        quickest_ms = its.total_ns.min() / 1e6 - step.requested_rtt_ms
        assert -0.1 <= quickest_ms < 10, "one, and not that of the next step"
    stored = manifest_of(bundle)["resources"]["systems"]["quorum"]
    assert stored["stored_is_known"]
    assert stored["put_bytes"] == 1024 * stored["stored_objects"] >= 1024 * 3 * (SAMPLES + WARMUP)


def test_the_journal_has_the_rtt_that_was_in_force_at_every_sample(bundle: Path) -> None:
    events = pd.read_parquet(bundle / "events.parquet")
    changes = events[events.kind == "impairment"]
    for link in ("dc1->dc2", "dc3->dc1"):
        of_link = changes[changes.subject == link]
        for _, sample in samples_of(bundle).iterrows():
            detail = of_link[of_link.t_ns < sample.start_ns].detail.iloc[-1]
            assert json.loads(detail)["after"].get("delay_ns", 0) == sample.rtt_ms / 2 * 1e6
            during = of_link.t_ns.between(sample.start_ns, sample.start_ns + sample.elapsed_ns)
            assert not during.any()
    assert {json.loads(each)["origin"] for each in changes.detail} == {"calibration", "rtt step"}


def test_packets_are_recorded_and_own_echoes_are_known_by_when_they_were_sent(
    bundle: Path, steps: list[RttStep]
) -> None:
    packets = pd.read_parquet(bundle / "packets.parquet")
    within = packets.entry_ns.between(steps[0].changed_ns, steps[-1].ended_ns)
    assert within.sum() > 100
    icmp = packets[within & (packets.protocol == 1)]
    inside = sum(icmp.entry_ns.between(*(step.calibrated_ns or ())) for step in steps)
    assert (inside == 1).all()
    (system,) = manifest_of(bundle)["systems"]
    least = {each["endpoint"]: each for each in system["least_round_trips"]}
    assert least.keys() == {"GetObject", "PutObject"}
    assert least["PutObject"]["round_trips"] == 1
    assert least["PutObject"]["why"]


def test_a_store_that_dies_leaves_the_steps_that_were_whole(tmp_path: Path) -> None:
    def kill_in_the_second(_: str, *more: Any) -> None:
        if len(more) > 2 and more[2].startswith("RTT step 2"):
            os.kill(node_of(os.getpid(), "n2"), signal.SIGKILL)

    outcome = run_once(tmp_path, kill_in_the_second)
    assert outcome.status == "failed"
    assert "n2" in (outcome.reason or "")
    (whole,) = steps_of(outcome.directory)
    samples = samples_of(outcome.directory)
    assert set(samples[samples.rtt_step == whole.rtt_step].outcome) == {"ok"}
    manifest = manifest_of(outcome.directory)
    assert manifest["status"] == "failed"
    assert manifest["capture"]["rows"] > 0
