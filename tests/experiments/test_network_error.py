"""Samples of a late network are marked, in no figure of latency, and resampled."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import samples_of, study
from tests.stalling_machine import may_stall, stalling
from wanlat.analysis.charts.frame import lateness_sentence
from wanlat.analysis.groups import timed
from wanlat.analysis.summary import notes_on_run
from wanlat.bundle.run import read_run
from wanlat.emulator.lab import Lab
from wanlat.emulator.lateness import LatenessLog
from wanlat.emulator.links import wan
from wanlat.experiments.config.study import load
from wanlat.experiments.network_error import NetworkErrors
from wanlat.experiments.prepare import RequestPlan, plan_requests, prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import silent
from wanlat.experiments.workloads.requests import Workload
from wanlat.experiments.workloads.resampling import Resampling
from wanlat.probes.objects import ObjectApi
from wanlat.probes.plan import Request
from wanlat.topologies.errors import RunFailed

MS, S = 10**6, 10**9
STUDY = """
endpoints: [ListBuckets, GetObject, PutObject, RemoveObject]
samples: 12
warmup: 1
resources: false
"""


def requests_of(tmp_path: Path, api: Any) -> RequestPlan:
    endpoints = "[Get, Put, Delete]" if api == "bob" else "[GetObject, PutObject, RemoveObject]"
    file = study(tmp_path, f"endpoints: {endpoints}\nsamples: 4\nwarmup: 0\n")
    near: Any = {"target": "n1", "replicas": lambda key: ["n1"] if key[0] % 2 else ["n2"]}
    return plan_requests(load(file), "quorum", api, objects=ObjectApi.over(api), seed=1, **near)


class Late(NetworkErrors):
    """A network that is late during the first so many of all requests that are measured."""

    def __init__(self, first: int) -> None:
        super().__init__(LatenessLog(lambda _: None), 2.0)
        self._left = first

    def is_late(self, *_: int) -> bool:
        self._left -= 1
        return self._left >= 0

    def is_known(self, _until_ns: int) -> bool:
        return True


def answer(seq: int) -> Any:
    return SimpleNamespace(start_ns=seq, object_bytes=0)


@pytest.mark.parametrize("api", ["s3", "bob"])
def test_what_is_taken_again_finds_what_the_first_found_and_spoils_no_other(
    tmp_path: Path, api: Any
) -> None:
    requests = requests_of(tmp_path, api)
    plan, errors = requests.plan(), Late(len(requests.plan().measure))
    sent: list[Request] = []
    resampling = Resampling(errors, requests, plan.prepare, 100.0)
    for request in resampling.following(plan.measure):
        sent.append(request)
        if request.phase == "measure":
            resampling.take(request, answer(request.seq))
    there = {request.key for request in plan.prepare}
    for request in sent:
        if request.endpoint in ("PutObject", "Put"):
            assert request.key not in there, "a fresh key"
            there.add(request.key)
        elif request.endpoint in ("RemoveObject", "Delete"):
            there.remove(request.key)  # it was there, and is not used again
        else:
            assert request.key in there
        if api == "bob":
            is_near = bytes.fromhex(request.key or "")[0] % 2
            assert request.placement == ("local" if is_near else "remote")
    assert len({request.seq for request in sent}) == len(sent)
    measured = [request.endpoint for request in sent if request.phase == "measure"]
    kept = measured[len(plan.measure) :]
    assert len(measured) == 2 * len(plan.measure)
    assert len(kept) == len(plan.measure)


def test_a_machine_that_is_late_all_the_time_fails_the_run_with_the_way_out(tmp_path: Path) -> None:
    requests, errors = requests_of(tmp_path, "s3"), Late(10**6)
    plan = requests.plan()
    with pytest.raises(RunFailed, match=r"2 ms late in the first .*--max-network-error 10ms"):
        resampling = Resampling(errors, requests, plan.prepare, 100.0)
        for request in resampling.following(plan.measure):
            resampling.take(request, answer(request.seq))


def figures(out: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The samples that count, and those that were late, of the phase that counts."""
    samples, bundle = samples_of(out), read_run(out)
    late = samples[(samples.phase == "measure") & samples.late]
    counted = timed(bundle.measured)
    assert len(bundle.measured) == len(bundle.timed) == len(counted) + len(late)
    assert (counted.groupby("endpoint", observed=True).size() >= 11).all()
    assert len(counted) >= 4 * 12 - 1  # what became known only when all had been sent
    assert bundle.late == len(late)
    told_ms = bundle.network_error_ms
    assert told_ms is not None
    assert told_ms == tuple(sorted(told_ms))
    said = lateness_sentence(bundle) or ""
    assert (f"{len(late)} sample" in said and "with more left out" in said) == (len(late) > 0), said
    assert len(late) == 0 or any("resampled" in note for note in notes_on_run(bundle))
    return counted, late


def test_a_planted_lateness_spoils_exactly_the_samples_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = study(tmp_path, STUDY, rtt="20ms")
    planted: list[int] = []
    real = Workload.taking

    def taking(self: Workload, *arguments: Any) -> Any:
        take = real(self, *arguments)

        def count(request: Request, sample: Any) -> None:
            take(request, sample)
            if sample.phase == "measure" and self.outcome.measured == 20 and not planted:
                (lab,) = labs
                planted.append(lab._call("plant_lateness", wan("dc1", "dc2"), 5 * MS, S)[0])

        return count

    labs: list[Lab] = []
    monkeypatch.setattr(Workload, "before_start", lambda _, lab: labs.append(lab))
    monkeypatch.setattr(Workload, "taking", taking)
    outcome = run(prepare(load(file), directory=tmp_path / "out", backend="wire"), silent)
    assert outcome.status == "complete", outcome.reason
    measured, late = figures(tmp_path / "out")
    (began_ns,) = planted
    spans = pd.concat([measured, late])
    within = (spans.start_ns > began_ns) & (spans.start_ns + spans.elapsed_ns < began_ns + S)
    # A request of the node itself may cross no link; what crosses that link is late.
    assert within.sum() > 10
    assert spans[within & (spans.endpoint != "ListBuckets")].late.mean() > 0.9


@pytest.mark.alone
@pytest.mark.skipif(not may_stall(), reason="may not take the processors from others")
def test_a_stalling_machine_costs_samples_and_no_study(tmp_path: Path) -> None:
    """Its medians are a calm run's, give or take half of the calm run's samples' own spread."""
    file, by_machine = study(tmp_path, STUDY, rtt="40ms"), []
    for name, machine in (("calm", nullcontext()), ("stalling", stalling(share=0.25))):
        prepared = prepare(load(file), directory=tmp_path / name, backend="wire")
        with machine:
            outcome = run(prepared, silent)
        assert outcome.status == "complete", outcome.reason
        measured, late = figures(tmp_path / name)
        by_machine.append(measured.total_ns.groupby(measured.endpoint, observed=True))
    assert len(late) > 0
    calm, stalled = by_machine
    apart_ms = (calm.median() - stalled.median()).abs() / MS
    assert (apart_ms < 0.5 + (calm.quantile(0.75) - calm.quantile(0.25)) / MS).all(), apart_ms
