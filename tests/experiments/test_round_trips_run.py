"""A study of round trips, run for real on the reference store: visits, samples, journal, time."""

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
from tests.wanlat.running import in_process
from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.round_trips_block import round_trips_of
from wanlat.experiments.config.study import load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import CaptureWanted, Outcome
from wanlat.experiments.workloads.rtt_steps import schedule

RTTS_MS = (0.0, 10.0, 20.0)
SAMPLES, WARMUP = 2, 1
SEED = 7
STUDY = f"""
endpoints: [GetObject, PutObject]
round_trips: {{rtts: [0ms, 10ms, 20ms], visits: 1, settle: 1s}}
samples: {SAMPLES}
warmup: {WARMUP}
"""


@pytest.fixture(scope="module", autouse=True)
def late_network() -> Iterator[None]:
    """No visit fails because the machine held up its echoes: visits are what is tested here."""
    with accepting_late_packets("run"):
        yield


def run_once(directory: Path, out: Path, on_progress: Any = lambda *_: None) -> Outcome:
    read = load(study(directory, STUDY))
    prepared = prepare(read, directory=out, capture=CaptureWanted(1 << 28, 256))
    return run(prepared, on_progress)


@pytest.fixture(scope="module")
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, told: list[tuple[str, str]]) -> Path:
    directory = tmp_path_factory.mktemp("visits")

    def tell(stage: str, *more: Any) -> None:
        told.append((stage, more[2] if len(more) > 2 else ""))

    outcome = run_once(directory, directory / "bundle", tell)
    assert outcome.status == "complete", outcome.reason
    assert outcome.measured == outcome.planned == 3 * 2 * SAMPLES
    return directory / "bundle"


def visits_of(bundle: Path) -> list[dict[str, Any]]:
    visits: list[dict[str, Any]] = json.loads((bundle / "visits.json").read_text())["visits"]
    return visits


def test_every_rtt_was_visited_in_the_order_of_the_seed(bundle: Path) -> None:
    visits = visits_of(bundle)
    assert [visit["requested_rtt_ms"] for visit in visits] == list(schedule(RTTS_MS, 1, SEED))
    assert [visit["visit"] for visit in visits] == [0, 1, 2]
    assert {visit["system"] for visit in visits} == {"quorum"}
    assert {visit["verdict"] for visit in visits} == {"pass"}


def test_the_rtt_of_each_visit_was_measured_between_every_two_sites(bundle: Path) -> None:
    for visit in visits_of(bundle):
        asked_ms = visit["requested_rtt_ms"]
        assert asked_ms - 0.1 <= visit["measured_rtt_ms"]
        pairs = {frozenset((pair["from"], pair["to"])): pair for pair in visit["pairs"]}
        assert pairs.keys() == {
            frozenset(two) for two in (("n1", "n2"), ("n1", "n3"), ("n2", "n3"))
        }
        for pair in pairs.values():
            assert pair["requested_rtt_ms"] == asked_ms
            assert pair["min_ms"] <= pair["measured_rtt_ms"] <= pair["p99_ms"] <= pair["max_ms"]
            # The least of fifteen and more: of this RTT, and not of the next step's.
            assert asked_ms - 0.1 <= pair["min_ms"] < asked_ms + 10
            assert pair["sent"] >= 15
            assert pair["lost"] == 0


def test_a_visit_settles_then_is_idle_then_is_calibrated_then_asks(bundle: Path) -> None:
    before_ns = 0
    for visit in visits_of(bundle):
        instants = [
            visit["changed_ns"],
            *visit["idle_ns"],
            *visit["calibrated_ns"],
            visit["begun_ns"],
            visit["ended_ns"],
        ]
        assert instants == sorted(instants)
        assert before_ns < instants[0]
        assert visit["idle_ns"][1] - visit["idle_ns"][0] >= 1e9
        before_ns = instants[-1]
    events = pd.read_parquet(bundle / "events.parquet")
    said = [json.loads(detail) for detail in events[events.kind == "visit"].detail]
    each = ["change", "idle", "calibrate", "warmup", "measure", "end"]
    assert [(one["visit"], one["what"]) for one in said] == [
        (number, what) for number in range(3) for what in each
    ]


def test_every_sample_lies_within_its_visit(bundle: Path) -> None:
    samples = samples_of(bundle)
    assert set(samples.outcome) == {"ok"}
    assert len(samples) == 3 * 2 * (SAMPLES + WARMUP)
    assert samples.seq.is_unique
    for visit in visits_of(bundle):
        its = samples[samples.visit == visit["visit"]]
        counted = its.groupby(["phase", "endpoint"]).size()
        assert set(counted["measure"]) == {SAMPLES}
        assert set(counted["warmup"]) == {WARMUP}
        assert set(its.rtt_ms) == {visit["requested_rtt_ms"]}
        assert visit["begun_ns"] <= its.start_ns.min()
        assert (its.start_ns + its.elapsed_ns).max() <= visit["ended_ns"]


def test_the_journal_has_the_rtt_that_was_in_force_at_every_sample(bundle: Path) -> None:
    events = pd.read_parquet(bundle / "events.parquet")
    changes = events[events.kind == "impairment"]
    for link in ("dc1->dc2", "dc2->dc1", "dc3->dc1"):
        of_link = changes[changes.subject == link]
        for _, sample in samples_of(bundle).iterrows():
            detail = of_link[of_link.t_ns < sample.start_ns].detail.iloc[-1]
            assert json.loads(detail)["after"].get("delay_ns", 0) == sample.rtt_ms / 2 * 1e6
            during = of_link.t_ns.between(sample.start_ns, sample.start_ns + sample.elapsed_ns)
            assert not during.any()
    origins = {json.loads(detail)["origin"] for detail in changes.detail}
    assert origins == {"calibration", "visit"}


def test_each_sample_takes_the_round_trip_of_its_visit(bundle: Path) -> None:
    samples = samples_of(bundle)
    quickest_ms = samples.groupby("rtt_ms").total_ns.min() / 1e6
    for rtt_ms, least_ms in quickest_ms.items():
        assert rtt_ms - 0.1 <= least_ms < rtt_ms + 10, "one, and not that of the next step"


def test_it_takes_what_it_measures_and_what_it_states(bundle: Path) -> None:
    said = manifest_of(bundle)["round_trips"]
    assert said["visits"] == 3
    stated, took = said["stated"], said["took"]
    assert set(stated["startup"]) == {"lab", "proof", "cluster", "objects"}
    assert stated["startup_s"] == pytest.approx(sum(stated["startup"].values()), abs=0.01)
    settling_s = sum(
        visit["calibrated_ns"][1] - visit["changed_ns"] for visit in visits_of(bundle)
    ) / 1e9  # fmt: skip
    assert took["settling_s"] >= settling_s - 0.001, "it has all of it"
    measured_s = samples_of(bundle).elapsed_ns.sum() / 1e9
    assert took["latencies_s"] == pytest.approx(measured_s, abs=0.01)
    assert took["total_s"] >= took["settling_s"] + took["latencies_s"]
    assert stated["settling_s"] >= 3 * 1.0, "at least what it waits for at every visit"


def test_progress_says_what_is_measured_and_what_is_settled(
    bundle: Path, told: list[tuple[str, str]]
) -> None:
    stated_s = manifest_of(bundle)["round_trips"]["stated"]["settling_s"]
    details = list(dict.fromkeys(detail for _, detail in told if detail))
    assert len(details) == 3, "one line a visit"
    for number, (detail, visit) in enumerate(zip(details, visits_of(bundle), strict=True), 1):
        assert f"visit {number} of 3, RTT {visit['requested_rtt_ms']:g}ms" in detail
        assert f"of {stated_s:.0f} s stated" in detail


def test_packets_were_recorded_on_the_clock_of_the_visits(bundle: Path) -> None:
    packets = pd.read_parquet(bundle / "packets.parquet")
    first, last = visits_of(bundle)[0], visits_of(bundle)[-1]
    within = packets.entry_ns.between(first["changed_ns"], last["ended_ns"])
    assert within.sum() > 100
    # What the study's own echoes are is known from when they were sent, and by their protocol.
    icmp = packets[within & (packets.protocol == 1)]
    inside = sum(icmp.entry_ns.between(*visit["calibrated_ns"]) for visit in visits_of(bundle))
    assert (inside == 1).all()


def test_the_manifest_says_what_no_store_could_beat(bundle: Path) -> None:
    (system,) = manifest_of(bundle)["systems"]
    least = {each["endpoint"]: each for each in system["least_round_trips"]}
    assert least.keys() == {"GetObject", "PutObject"}
    assert least["PutObject"]["round_trips"] == 1
    assert least["PutObject"]["why"]
    assert manifest_of(bundle)["study"]["round_trips"]["rtts"] == ["0ms", "10ms", "20ms"]


def test_both_answers_to_how_many_round_trips_a_request_costs(bundle: Path) -> None:
    """They share nothing but the requests: the slope of latency against RTT, and the packets."""
    found = {each.endpoint: each for each in round_trips_of(read_bundle(bundle))}
    assert found.keys() == {"GetObject", "PutObject"}
    for each in found.values():
        assert each.chain_round_trips == 1
        assert each.n_chains > 0
        # A late packet makes an interval wide, or leaves the slope undecided.
        assert each.ci95 is None or each.ci95[0] - 0.1 <= 1 <= each.ci95[1] + 0.1


def test_a_run_compared_with_itself_has_not_become_worse(bundle: Path) -> None:
    done = in_process(["compare", str(bundle), str(bundle), "--json"])
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["gate"]["passed"]
    assert {each["endpoint"] for each in made["endpoints"]} == {"GetObject", "PutObject"}


def test_a_store_that_dies_leaves_the_visits_that_were_whole(tmp_path: Path) -> None:
    out = tmp_path / "bundle"

    def kill_in_the_second(_: str, *more: Any) -> None:
        if len(more) > 2 and more[2].startswith("visit 2"):
            os.kill(node_of(os.getpid(), "n2"), signal.SIGKILL)

    outcome = run_once(tmp_path, out, kill_in_the_second)
    assert outcome.status == "failed"
    assert "n2" in (outcome.reason or "")
    (whole,) = visits_of(out)
    samples = samples_of(out)
    assert set(samples[samples.visit == whole["visit"]].outcome) == {"ok"}
    manifest = manifest_of(out)
    assert manifest["status"] == "failed"
    assert manifest["round_trips"]["visits"] == 1
    assert manifest["capture"]["rows"] > 0
