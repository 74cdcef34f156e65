"""The study on real clusters of the reference store, with a limit that is planted in it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from tests.command_line import ran
from tests.experiments.commands import (
    command,
    document_of,
    manifest_of,
    measure,
    run,
    samples_of,
    study,
)
from wanlat.bundle import documents
from wanlat.bundle.documents import Envelope, Envelopes, Points
from wanlat.bundle.read import read_document
from wanlat.experiments.envelope.trial import Sending
from wanlat.experiments.workloads import envelope as workload

pytestmark = pytest.mark.minutes

QUICK = """
options: {quorum: {refuse_above: 60}}
endpoints: [GetObject, PutObject]
resources: false
envelope:
  promise: {deadline: 400ms, rate: 10, share: 80%, window: 400ms, cut: 200ms, recovery: 2s}
  rtt: {low: 10ms, high: 300ms, precision: 100%}
  settle: 200ms
  fails: 10%
  error: 10%
"""


def found_in(bundle: Path) -> Envelope:
    document = document_of(bundle, Envelopes)
    (mine,) = document.systems
    return mine


class Replicated(NamedTuple):
    """Two fresh clusters."""

    bundle: Path
    clusters: list[Path]


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Replicated:
    directory = tmp_path_factory.mktemp("envelope")
    bundle = directory / "bundle"
    done = run(study(directory, QUICK), "--replicates", "2", "--jobs", "2", out=bundle)
    assert done.returncode == 0, done.stderr
    points = document_of(bundle, Points)
    assert [point.status for point in points.points] == ["complete"] * 2
    return Replicated(bundle, [bundle / each.directory for each in points.points])


def test_every_tested_network_can_be_opened(replicated: Replicated) -> None:
    bundle = replicated.clusters[0]
    mine = found_in(bundle)
    (limit,) = mine.limits
    assert limit.inside is not None
    assert limit.outside is not None
    assert limit.inside < 60 < limit.outside <= 2 * limit.inside
    assert limit.is_approached
    samples, ledger = samples_of(bundle), (bundle / "ledger.jsonl").read_text().splitlines()
    rounds = {
        line["round"]
        for line in map(json.loads, (bundle / "verification.jsonl").read_text().splitlines())
    }
    events = pd.read_parquet(bundle / "events.parquet")
    for test in mine.tests:
        own = samples[samples.rtt_step == test.number]
        assert set(own[own.phase != "beyond"].rtt_ms) == {test.network.rtt_ms}
        assert (own.phase == "window").any()
        assert f"test {test.number}" in rounds
        assert (test.lost, test.stale, test.unread) == (0, 0, 0)
        assert test.measured_rtt_ms == pytest.approx(test.network.rtt_ms, abs=1.0)
        begun_ns = test.trials[0].span_ns[0]
        before = events[(events.kind == "impairment") & (events.t_ns < begun_ns)].iloc[-1]
        delay_ms = json.loads(before.detail)["after"]["delay_ns"] / 1e6
        assert delay_ms == pytest.approx(test.network.rtt_ms / 2, rel=1e-3)
    held = next(test for test in mine.tests if test.verdict == "holds")
    assert set(samples[samples.rtt_step == held.number].phase) >= {
        "window",
        "over",
        "cut",
        "healed",
    }
    assert len(ledger) > 2 * sum(test.written for test in mine.tests) > 0
    assert len(mine.regions) == 45


def test_replicates_are_fresh_clusters_and_one_map(replicated: Replicated) -> None:
    bundle = replicated.bundle
    (row,) = json.loads((bundle / "summary.json").read_text())["envelope"]["limits"]
    assert row["clusters"] == 2
    assert row["limit_ci95"][0] < row["limit"] < row["limit_ci95"][1]
    assert (bundle / "charts" / "envelope.png").exists()
    assert manifest_of(bundle)["kind"] == "matrix"


def test_a_run_that_was_killed_goes_on_with_what_it_measured(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    words = ("run", study(tmp_path, QUICK), "--seed", "5", "--out", str(bundle))
    point = bundle / "points" / "quorum"
    with subprocess.Popen(command(*words), stderr=subprocess.DEVNULL) as killed:
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s and killed.poll() is None:
            if (point / "verification.jsonl").is_file() and len(verdicts_in(point)) >= 2:
                break
            time.sleep(0.1)
        killed.kill()
    before = verdicts_in(point)
    assert len(before) >= 2
    done = ran(*command("run", "--resume", str(bundle)))
    assert done.returncode == 0, done.stderr
    mine = found_in(point)
    assert mine.is_complete and [*mine.tests[: len(before)]] == before
    (limit,) = mine.limits
    assert limit.inside is not None and limit.outside is not None
    assert limit.inside < 60 < limit.outside
    assert {*samples_of(point).rtt_step} & {test.number for test in before} == set()
    assert (point.with_name("quorum.attempt-1") / "samples.jsonl").stat().st_size > 0
    (warning,) = manifest_of(point)["warnings"]
    assert "earlier attempts" in warning


def verdicts_in(point: Path) -> list[documents.TestedNetwork]:
    document = read_document(point, Envelopes)
    return [test for test in document.systems[0].tests if test.verdict] if document else []


def test_a_cluster_that_does_not_serve_when_it_is_near_is_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, unwell = Sending.broken, [True]

    def broken(sending: Sending, phase: str, share: float) -> str | None:
        if phase == "near" and unwell:
            unwell.clear()
            return "as if nobody answered"
        monkeypatch.setattr(workload, "_WELL_WITHIN_S", 15.0)
        return whole(sending, phase, share)

    monkeypatch.setattr(Sending, "broken", broken)
    monkeypatch.setattr(workload, "_WELL_WITHIN_S", 0.0)
    outcome = measure(study(tmp_path, QUICK), tmp_path / "bundle")
    assert outcome.status == "complete", outcome.reason
    first, *others = found_in(outcome.directory).tests
    assert (first.restarted, first.lost) == (True, 0)
    assert not any(test.restarted for test in others)
    events = pd.read_parquet(outcome.directory / "events.parquet")
    assert (events.kind == "restart").sum() == 1
