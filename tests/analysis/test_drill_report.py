"""A drill's bundle is read, checked and reported, also when the drill was killed at any moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drill_bundles import ORIGIN_NS, Fault, Trouble, stalled, write_drill

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.drill.block import drill_block
from wanlat.analysis.drill.model import STAGES
from wanlat.analysis.drill.read import read_drill
from wanlat.analysis.report import report
from wanlat.analysis.summary import summarize
from wanlat.bundle.errors import BundleError

pytestmark = pytest.mark.usefixtures("few_resamples")

ROOT = Path(__file__).parents[2]
SHORT = (4.0, 6.0, 5.0)
KEYS = ["name", "system", "phases", "longest_outage_s", "recovery_s", "durability", "claims"]
FIGURES = ["attempted", "ok", "fail", "unknown", "p50_ms", "p99_ms", "max_ms"]
DURABILITY = [
    *("acknowledged", "lost", "recovered", "corrupt", "stale", "resurrected", "unread", "verdict")
]


def block(path: Path) -> dict[str, Any]:
    return drill_block(read_drill(path))


def test_the_block_has_the_promised_keys_first_and_in_order(tmp_path: Path) -> None:
    claim = {"id": "i", "claim": "c", "source": "s", "durability": "intact"}
    told = block(write_drill(tmp_path / "b", phases_s=SHORT, claims=[claim]))
    assert list(told)[: len(KEYS)] == KEYS
    for phase in told["phases"]:
        assert list(phase)[:3] == ["name", "reads", "writes"]
        assert list(phase["reads"])[:7] == list(phase["writes"])[:7] == FIGURES
    assert list(told["durability"])[: len(DURABILITY)] == DURABILITY
    assert list(told["claims"][0])[:3] == ["id", "claim", "source"]
    assert [phase["name"] for phase in told["phases"]] == ["before", "during", "after"]


def test_the_block_is_json_without_nan(tmp_path: Path) -> None:
    for killed_at_s in (None, -20.0, 5.0):
        path = write_drill(tmp_path / f"b{killed_at_s}", phases_s=SHORT, killed_at_s=killed_at_s)
        json.dumps(block(path), allow_nan=False)


def test_figures_are_numpys_over_the_requests_that_were_due(tmp_path: Path) -> None:
    path = write_drill(
        tmp_path / "b", phases_s=SHORT, troubles=[stalled(2.0, 5.0), Trouble("down", 8, 9)]
    )
    rows = pd.read_parquet(path / "samples.parquet")
    told = read_drill(path)
    for phase in told.phases:
        for operation in ("read", "write"):
            of = rows[(rows["phase"] == phase.name) & (rows["operation"] == operation)]
            figures = phase.of(operation)
            assert figures.attempted == len(of) > 0
            for outcome in ("ok", "fail", "unknown"):
                assert getattr(figures, outcome) == (of["outcome"] == outcome).sum()
            ok = of[of["outcome"] == "ok"]
            from_start = ok["total_ns"].astype(float).to_numpy() / 1e6
            waited = (ok["start_ns"] - ok["due_ns"]).astype(float).to_numpy() / 1e6
            for latencies, values in (
                (figures.from_start, from_start),
                (figures.from_due, from_start + waited),
            ):
                expected = [*np.percentile(values, [50, 99]), values.max()]
                told_ms = [latencies.p50_ms, latencies.p99_ms, latencies.max_ms]
                assert told_ms == pytest.approx(expected, abs=1e-6)


def test_requests_that_were_never_sent_are_attempts_that_failed(tmp_path: Path) -> None:
    silent = Trouble("stall", 4.0, 10.0)
    path = write_drill(tmp_path / "b", phases_s=SHORT, troubles=[silent], deadline_ms=1000)
    during = read_drill(path).phases[1].reads
    assert during.not_sent > 0
    assert during.attempted == 48 == during.ok + during.fail + during.unknown
    assert during.fail >= during.not_sent


def test_clients_and_endpoints_add_up_to_the_phases(tmp_path: Path) -> None:
    drill = read_drill(write_drill(tmp_path / "b", phases_s=SHORT, interval_ms=100))
    for phase in drill.phases:
        for operation in ("read", "write"):
            clients = [each for each in drill.clients if each.operation == operation]
            endpoints = [
                each
                for each in drill.endpoints
                if (each.phase, each.operation) == (phase.name, operation)
            ]
            total = phase.of(operation).attempted
            assert sum(each.phases[phase.name].attempted for each in clients) == total
            assert sum(each.figures.attempted for each in endpoints) == total
    assert {each.endpoint for each in drill.endpoints} == {
        *("GetObject", "PutObject", "RemoveObject")
    }


def test_a_fault_has_its_window_its_occurrences_and_its_words(tmp_path: Path) -> None:
    faults = [
        Fault("crash-loop", "n2", 4.2, 8.0, "every 1 s", ("n2",), occurrences_s=(5.0, 6.0)),
        Fault("partition", "n1, n2 | n3, n4", 5.0, None, directions=("dc1 → dc3",)),
    ]
    drill = read_drill(write_drill(tmp_path / "b", phases_s=SHORT, faults=faults))
    loop, cut = drill.faults
    assert (loop.begin_s, loop.end_s, loop.nodes) == (4.2, 8.0, ("n2",))
    assert loop.label == "crash-loop n2, every 1 s"
    assert [occurrence.at_s for occurrence in loop.occurrences] == [5.0, 6.0]
    assert (cut.end_s, cut.directions) == (None, ("dc1 → dc3",))
    assert any("Not healed" in note and "partition" in note for note in drill.notes)
    assert drill.recovery_after_heal_s is None


def test_deaths_and_links_that_are_not_as_before_are_told(tmp_path: Path) -> None:
    off = {"requested_rtt_ms": 10.0, "rtt_ms": {"p50": 14.2}, "verdict": "fail"}
    events = [(5.5, "died", "n4", "exit code 1"), (12.0, "recalibrated", "n1->n2", off)]
    drill = read_drill(write_drill(tmp_path / "b", phases_s=SHORT, extra_events=events))
    assert [(mark.subject, mark.at_s) for mark in drill.deaths] == [("n4", 5.5)]
    (again,) = drill.recalibrations
    assert (again.passed, again.measured_rtt_ms) == (False, 14.2)
    assert not drill.passed
    assert any("n4 at 5.5 s (exit code 1)" in note for note in drill.notes)


def test_a_drill_that_lost_nothing_passes(tmp_path: Path) -> None:
    drill = read_drill(write_drill(tmp_path / "b", phases_s=SHORT))
    assert drill.passed and drill.failures == ()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"spoil": {"lost": 1}}, "Durability is fail: 1 lost"),
        ({"rounds": ("healed",)}, "Durability is unknown"),
        ({"manifest": {"status": "failed", "reason": "no luck."}}, "The drill failed: no luck."),
        ({"manifest": {"status": "interrupted"}}, "The drill was interrupted."),
        ({"manifest": {"failures": ["The link is off."]}}, "The link is off."),
        (
            {"troubles": [Trouble("down", 5, 6, error="checksum mismatch")]},
            "answered with other bytes",
        ),
    ],
)
def test_what_does_not_hold_is_a_reason(tmp_path: Path, settings: Any, why: str) -> None:
    drill = read_drill(write_drill(tmp_path / "b", phases_s=SHORT, **settings))
    assert not drill.passed
    assert any(why in failure for failure in drill.failures), drill.failures


# --- killed at any moment ----------------------------------------------------------------------

MOMENTS = (-20.0, -8.0, -6.0, -4.0, -2.5, -1.0, 0.01, 2.0, 4.0, 4.05, 9.0, 10.5, 15.5, 17.0, 20.0)


@pytest.mark.parametrize("moment_s", MOMENTS)
def test_a_drill_killed_at_any_moment_can_be_read_and_says_how_far_it_got(
    tmp_path: Path, moment_s: float
) -> None:
    path = write_drill(
        tmp_path / "b", phases_s=SHORT, killed_at_s=moment_s, troubles=[stalled(2.0, 4.0)]
    )
    drill = read_drill(path)
    assert drill.status == "running"
    assert drill.reached in (None, *STAGES)
    assert not drill.passed
    assert drill.durability.verdict == "unknown"
    begun = [phase.name for phase in drill.phases if phase.begin_s is not None]
    assert begun == ["before", "during", "after"][: sum(moment_s >= at for at in (0, 4, 10))]
    assert [phase.complete for phase in drill.phases] == [
        moment_s >= end for end in (4.0, 10.0, 15.0)
    ]
    for phase in drill.phases:
        assert phase.end_s is None or phase.end_s <= max(moment_s, 0.0) + 1e-6
    block(path)


@pytest.mark.parametrize("moment_s", [-20.0, -1.0, 5.0])
def test_a_killed_drill_has_a_report(tmp_path: Path, moment_s: float) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, killed_at_s=moment_s)
    made = report(path)
    assert made.drill is not None
    assert "killed" in made.summary.notes[0]
    written = json.loads(made.summary_path.read_text())
    assert written["drill"]["reached"] == made.drill.reached
    assert (path / "charts" / "drill-timeline.svg").is_file()


@pytest.mark.parametrize("name", ["samples", "events", "ledger", "verification"])
def test_any_file_that_is_not_there_yet_is_no_obstacle(tmp_path: Path, name: str) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT)
    for suffix in ("jsonl", "parquet"):
        (path / f"{name}.{suffix}").unlink(missing_ok=True)
    assert not read_drill(path).passed or name == "events"
    block(path)


def test_nothing_but_a_manifest_is_a_bundle_too(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, killed_at_s=-20.0)
    for file in path.iterdir():
        if file.name != "manifest.json":
            file.unlink()
    drill = read_drill(path)
    assert (drill.origin_ns, drill.end_s, drill.clients, drill.faults) == (None, None, (), ())
    assert drill.requests.empty
    assert (block(path)["longest_outage_s"], block(path)["recovery_s"]) == (None, None)
    assert any("killed" in sentence for sentence in summarize(drill.bundle).notes)


@pytest.mark.parametrize("name", ["samples", "events", "ledger", "verification"])
def test_damage_that_no_kill_explains_is_refused(tmp_path: Path, name: str) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, as_lines=True)
    file = path / f"{name}.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1][:10] + "\n", *lines[2:]]))
    with pytest.raises(BundleError, match="damaged"):
        read_drill(path)


def test_lines_and_table_give_the_same_figures(tmp_path: Path) -> None:
    table = write_drill(tmp_path / "a", phases_s=SHORT, troubles=[stalled(2.0, 5.0)])
    lines = write_drill(tmp_path / "b", phases_s=SHORT, troubles=[stalled(2.0, 5.0)], as_lines=True)
    assert block(table) == block(lines)


# --- the rest of the room ----------------------------------------------------------------------


def test_a_study_is_no_drill(tmp_path: Path) -> None:
    from synthetic_bundles import write_bundle

    (tmp_path / "b").mkdir()
    write_bundle(tmp_path / "b", n=10)
    with pytest.raises(BundleError, match="no bundle of a drill"):
        read_drill(tmp_path / "b")
    summary = summarize(read_bundle(tmp_path / "b"))
    assert summary.drill is None and "drill" not in summary.to_json()


def test_the_endpoints_of_a_drill_are_of_the_phase_before(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, troubles=[stalled(2.0, 5.0)])
    summary = summarize(read_bundle(path))
    assert summary.drill is not None
    before = {
        each.endpoint: each.figures for each in summary.drill.endpoints if each.phase == "before"
    }
    assert {each.endpoint: each.n for each in summary.endpoints} == {
        name: figures.attempted for name, figures in before.items()
    }
    assert all(each.latency is None or each.latency.max_ms < 100 for each in summary.endpoints)


def test_the_same_drill_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT)
    assert len({summarize(read_bundle(path)).to_text() for _ in range(2)}) == 1


def test_instants_are_seconds_since_the_first_phase(tmp_path: Path) -> None:
    drill = read_drill(write_drill(tmp_path / "b", phases_s=SHORT))
    assert drill.origin_ns == ORIGIN_NS
    assert [(phase.begin_s, phase.end_s) for phase in drill.phases] == [
        *((0.0, 4.0), (4.0, 10.0), (10.0, 15.0))
    ]
    assert drill.requests["due_s"].between(0, 15).all()
    assert drill.requests["due_s"].is_monotonic_increasing


def test_requests_that_always_wait_in_line_are_told_of(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, interval_ms=50, latency_ms=(5.0, 60.0))
    (note,) = [note for note in read_drill(path).notes if "waited in line" in note]
    assert "survivor/write" in note and "survivor/read" not in note


def test_an_unhealthy_first_phase_is_told_but_not_what_was_in_flight(tmp_path: Path) -> None:
    sick = read_drill(write_drill(tmp_path / "a", phases_s=SHORT, troubles=[Trouble("down", 1, 2)]))
    assert any("Not everything was well" in note for note in sick.notes)
    hit = read_drill(
        write_drill(
            tmp_path / "b", phases_s=SHORT, interval_ms=65, troubles=[Trouble("down", 4, 5)]
        )
    )
    assert hit.phases[0].writes.ok < hit.phases[0].writes.attempted
    assert not any("Not everything was well" in note for note in hit.notes)


def test_a_bundle_of_a_drill_is_named_after_it(tmp_path: Path) -> None:
    bundle = read_bundle(write_drill(tmp_path / "b", phases_s=SHORT, name="two-nodes-killed"))
    assert bundle.is_drill and bundle.study == "two-nodes-killed"


@pytest.mark.minutes
def test_no_other_room_is_imported_and_nothing_heavy_before_it_is_needed(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT)
    code = """
import json, sys
import wanlat.analysis.drill.block, wanlat.analysis.drill.read, wanlat.analysis.report
heavy = {"pandas", "numpy", "scipy", "matplotlib", "pyarrow"} & set(sys.modules)
from wanlat.analysis.report import report
report(sys.argv[1])
print(json.dumps({"heavy": sorted(heavy), "modules": sorted(sys.modules)}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    told = json.loads(done.stdout)
    rooms = ("topologies", "emulator", "systems", "probes", "experiments", "proto", "commands")
    assert told["heavy"] == []
    assert {f"wanlat.{room}" for room in rooms}.isdisjoint(told["modules"])
