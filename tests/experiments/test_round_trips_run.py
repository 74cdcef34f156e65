"""A study of round trips, run for real on the reference store: steps in their order, and the truth
by slope and by packets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.experiments.commands import document_of, samples_of, study
from wanlat.analysis.figures.round_trips import round_trips_of
from wanlat.bundle.documents import RttStep, RttSteps
from wanlat.bundle.run import read_run
from wanlat.experiments.config.study import load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import CaptureWanted, silent
from wanlat.experiments.workloads.rtt_steps import schedule

RTTS_MS, SAMPLES, SEED = (0.0, 60.0, 120.0), 8, 7
STUDY = f"""
endpoints: [GetObject, PutObject]
options: {{quorum: {{protocol: leader, leader: n1}}}}
target: n2
client: n2
round_trips: {{rtts: [0ms, 60ms, 120ms], repeats: 1, settle: 1s}}
samples: {SAMPLES}
warmup: 1
"""
TRUTH = {"GetObject": 1, "PutObject": 2}
"""Of systems/quorum/README.md: asked elsewhere than at the leader."""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("steps")
    prepared = prepare(
        load(study(directory, STUDY)),
        directory=directory / "bundle",
        capture=CaptureWanted(1 << 28, 256),
    )
    outcome = run(prepared, silent)
    assert outcome.status == "complete", outcome.reason
    assert outcome.measured == outcome.planned == len(RTTS_MS) * len(TRUTH) * SAMPLES
    return outcome.directory


def steps_of(bundle: Path) -> list[RttStep]:
    found = document_of(bundle, RttSteps)
    return list(found.rtt_steps)


@pytest.mark.alone
def test_every_rtt_is_a_step_in_the_order_of_the_seed_and_was_measured(bundle: Path) -> None:
    steps, samples = steps_of(bundle), samples_of(bundle)
    assert [step.requested_rtt_ms for step in steps] == list(schedule(RTTS_MS, 1, SEED))
    for step in steps:
        assert step.verdict == "pass"
        assert step.requested_rtt_ms - 0.1 <= (step.measured_rtt_ms or 0.0)
        assert step.idle_ns and step.idle_ns[1] - step.idle_ns[0] >= 1e9
        mine = samples[(samples.rtt_step == step.rtt_step) & (samples.phase == "measure")]
        assert (mine.start_ns >= (step.begun_ns or 0)).all()
        for endpoint, rows in mine[mine.outcome == "ok"].groupby("endpoint", observed=True):
            least_ms = TRUTH[str(endpoint)] * step.requested_rtt_ms - 0.1
            assert rows.total_ns.min() / 1e6 >= least_ms


@pytest.mark.alone
def test_slope_and_critical_path_are_the_truth(bundle: Path) -> None:
    found = {each.endpoint: each for each in round_trips_of(read_run(bundle))}
    assert {name: each.chain_round_trips for name, each in found.items()} == TRUTH
    decided = {name: each for name, each in found.items() if each.round_trips is not None}
    assert decided, found  # a busy machine may leave one open
    for name, each in decided.items():
        low, high = each.ci95 or (math.nan, math.nan)
        assert low - 0.1 < TRUTH[name] < high + 0.1, each
