"""A drill on the reference store, from the command line to the bundle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import node_of
from tests.experiments.drill.drills import SHORT, STAGES, drill, manifest_of, reached, started
from wanlat.experiments.drill.timing import WARMUP_S
from wanlat.systems.progress import elapsed

FAULTS = """
faults:
  - {kill: victim, at: 300ms, for: 1s}
  - {slow: survivor, delay: 40ms, at: 1400ms, for: 600ms}
"""
CLAIMS = """
system: quorum
claims:
  - {id: reads, claim: reads go on, source: the store's README, drill: short,
     availability: {of: reads, client: survivor, from: 100ms, to: 1200ms, at_least: 50%}}
  - {id: victim, claim: the victim answers, source: nobody, drill: [short, flapping],
     availability: {of: writes, client: victim, from: 400ms, to: 1200ms, at_most: 30%}}
  - {id: elsewhere, claim: of another drill, source: nobody, drill: flapping, durability: broken}
  - {id: intact, claim: nothing is lost, source: the README, drill: short, durability: intact}
"""
HEAD = SHORT.replace("deadline: 1s", "deadline: 30s").replace("after: 2s", "after: 4s")
PHASES_S = {"before": 1.0, "during": 2.5, "after": 4.0}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a drill, in whose last phase somebody else ended a node."""
    directory = tmp_path_factory.mktemp("drill")
    out = directory / "bundle"
    begun = time.monotonic()
    (directory / "claims.yaml").write_text(CLAIMS)
    claims = ("--claims", str(directory / "claims.yaml"))
    run = started(drill(directory, FAULTS, HEAD), out, "--json", *claims)
    reached(run, out, "after")
    bystander = next(
        node for node in ("n1", "n2", "n3") if [node] not in manifest_of(out)["roles"].values()
    )
    os.kill(node_of(run.pid, bystander), signal.SIGTERM)
    said, told = run.communicate(timeout=300)
    took_s = time.monotonic() - begun
    # The two claims of availability say of 1.1 s what a stall in them would change.
    drilled = json.loads(said)["drill"]
    assert run.returncode == (0 if drilled["passed"] else 1), told
    assert drilled["durability"]["verdict"] == "pass", told
    (directory / "said.json").write_text(said)
    (directory / "told.txt").write_text(told)
    (directory / "facts.json").write_text(json.dumps({"took_s": took_s, "bystander": bystander}))
    return out


def events_of(bundle: Path) -> pd.DataFrame:
    events = pd.read_parquet(bundle / "events.parquet")
    return events[events.kind != "impairment"].reset_index(drop=True)


def lines_of(bundle: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bundle / name).read_text().splitlines()]


def test_the_bundle_is_whole(bundle: Path) -> None:
    names = {path.name for path in bundle.iterdir()}
    assert names >= {
        *("manifest.json", "calibration.json", "samples.parquet", "events.parquet"),
        *("ledger.jsonl", "verification.jsonl", "summary.json", "logs", "charts"),
    }
    assert not names & {"samples.jsonl", "events.jsonl"}


def test_the_manifest_says_what_was_done_to_whom(bundle: Path) -> None:
    manifest = manifest_of(bundle)
    told = [manifest[key] for key in ("kind", "status", "reached")]
    assert told == ["drill", "complete", "done"]
    assert (manifest["drill"]["name"], manifest["drill"]["scale"]) == ("short", 1)
    (victim,), (survivor,) = manifest["roles"]["victim"], manifest["roles"]["survivor"]
    assert manifest["clients"]["victim"] == {
        "node": victim,
        "target": victim,
        "site": f"dc{victim[1:]}",
    }
    assert manifest["clients"]["survivor"]["node"] == survivor != victim
    assert [each["id"] for each in manifest["claims"]] == ["reads", "victim", "intact"]
    (system,) = manifest["systems"]
    assert (system["name"], system["api"]) == ("quorum", "s3")
    assert manifest["failures"] == []


def test_it_ends_within_the_time_that_it_states(bundle: Path) -> None:
    told = (bundle.parent / "told.txt").read_text()
    stated_s = manifest_of(bundle)["stated_time_s"]
    assert f"short on quorum: requests for 8 s, all of it within {elapsed(stated_s)}" in told
    # By its own instants, without the report: some 40 s of more than five minutes.
    events = events_of(bundle)
    first_ns, *_, last_ns = events[events.kind == "stage"].t_ns
    assert stated_s > 300, "so that only what hangs comes near it"
    assert WARMUP_S + sum(PHASES_S.values()) < (last_ns - first_ns) / 1e9 < stated_s


def test_every_stage_is_an_event_in_its_order(bundle: Path) -> None:
    events = events_of(bundle)
    assert list(events[events.kind == "stage"].subject) == list(STAGES)
    phases = events[events.kind == "phase"].set_index("subject").t_ns
    assert list(phases.index) == ["before", "during", "after", "end"]
    assert list(phases.diff().dropna() / 1e6) == [1000, 2500, 4000], "by their plan"
    assert phases["before"] == manifest_of(bundle)["origin_ns"]


def test_faults_begin_and_end_when_they_should(bundle: Path) -> None:
    events = events_of(bundle)
    during_ns = events[(events.kind == "phase") & (events.subject == "during")].t_ns.iloc[0]
    roles = manifest_of(bundle)["roles"]
    kill, slow = f"1 kill {roles['victim'][0]}", f"2 slow {roles['survivor'][0]}"
    for kind, subject, due_ms in (
        *(("inject", kill, 300), ("heal", kill, 1300)),
        *(("inject", slow, 1400), ("heal", slow, 2000)),
    ):
        (event,) = events[(events.kind == kind) & (events.subject == subject)].itertuples()
        after_ms = (event.t_ns - during_ns) / 1e6
        assert due_ms <= after_ms, (kind, subject)
        detail = json.loads(str(event.detail))
        assert detail["late_ms"] == pytest.approx(after_ms - due_ms, abs=0.01)
        assert (detail["kind"], detail["nodes"]) == (subject.split()[1], [subject.split()[2]])


def test_links_that_were_broken_are_measured_again_once_they_are_healed(bundle: Path) -> None:
    events = events_of(bundle)
    healed_ns = events[events.kind == "heal"].t_ns.max()
    again = events[events.kind == "recalibrated"]
    assert len(again) >= 1
    assert (again.t_ns > healed_ns).all()
    survivor = manifest_of(bundle)["roles"]["survivor"][0]
    for event in again.itertuples():
        measured = json.loads(str(event.detail))
        assert measured["verdict"] == "pass", measured
        assert survivor in (measured["from"], measured["to"])
        assert measured["requested_rtt_ms"] == 10.0
        assert 9.9 <= measured["measured_rtt_ms"] < 50, "the 40 ms of the fault are gone"


def test_a_process_that_ends_by_itself_is_told_and_does_not_end_the_drill(bundle: Path) -> None:
    bystander = json.loads((bundle.parent / "facts.json").read_text())["bystander"]
    events = events_of(bundle)
    (death,) = events[events.kind == "died"].itertuples()
    assert death.subject == bystander
    assert json.loads(str(death.detail))["how"] == "was ended by SIGTERM"
    starts = events[(events.kind == "started") & (events.subject == bystander)]
    assert len(starts) == 2, "after the phases, and after the restart of all"
    assert (starts.t_ns > death.t_ns).all()


def test_each_client_has_a_row_for_each_request_that_was_due(bundle: Path) -> None:
    samples = pd.read_parquet(bundle / "samples.parquet")
    assert set(samples.phase) == {"prepare", "warmup", "before", "during", "after"}
    assert (samples.phase == "prepare").sum() == 30
    due = samples[samples.phase != "prepare"]
    phases = due.groupby(["drill_client", "operation", "phase"]).size().unstack()
    assert len(phases) == 4
    for name, seconds in PHASES_S.items():
        assert set(phases[name]) == {round(seconds / 0.05)}, name
    times = due.sort_values("due_ns").groupby(["drill_client", "operation"]).due_ns
    assert {round(step / 1e6) for step in times.diff().dropna()} == {50}
    sent = due[due.start_ns.notna()]
    assert (sent.start_ns >= sent.due_ns).all()


def test_the_victim_is_away_and_the_survivor_is_not(bundle: Path) -> None:
    samples = pd.read_parquet(bundle / "samples.parquet")
    events = events_of(bundle)
    kill = events[events.subject == f"1 kill {manifest_of(bundle)['roles']['victim'][0]}"]
    (killed_ns,) = kill[kill.kind == "inject"].t_ns
    during_ns = events[(events.kind == "phase") & (events.subject == "during")].t_ns.iloc[0]
    # The event says when it had been started; it may have answered before.
    not_before_ns = during_ns + 1_300_000_000
    sent_ns = samples.start_ns.astype("float64")
    away = samples[(sent_ns > killed_ns) & (sent_ns + samples.elapsed_ns < not_before_ns)]
    assert "ok" not in set(away[away.drill_client == "victim"].outcome)
    during = samples[(samples.phase == "during") & (samples.drill_client == "survivor")]
    assert (during.outcome == "ok").any()


def test_every_write_is_on_the_ledger_before_it_was_sent(bundle: Path) -> None:
    invoked = {
        (line["key"], line["op"]): line["t_ns"]
        for line in lines_of(bundle, "ledger.jsonl")
        if line["state"] == "invoked"
    }
    samples = pd.read_parquet(bundle / "samples.parquet")
    writes = samples[(samples.operation == "write") & samples.start_ns.notna()]
    assert len(writes) > 50
    for write in writes.itertuples():
        operation = "remove" if write.endpoint == "RemoveObject" else "put"
        assert invoked[(write.key, operation)] <= write.start_ns


def test_every_key_is_looked_for_on_every_node_twice(bundle: Path) -> None:
    lines = lines_of(bundle, "verification.jsonl")
    keys = {line["key"] for line in lines_of(bundle, "ledger.jsonl") if "key" in line}
    for name in ("healed", "restarted"):
        head, *answers = (line for line in lines if line["round"] == name)
        assert (head["nodes"], head["keys"]) == (["n1", "n2", "n3"], len(keys))
        assert {(answer["node"], answer["key"]) for answer in answers} == {
            (node, key) for node in head["nodes"] for key in keys
        }
        assert "unread" not in {answer["found"] for answer in answers}


def test_the_restart_takes_every_node_at_once(bundle: Path) -> None:
    events = events_of(bundle)
    (restart,) = events[events.kind == "restart"].index
    later = events.iloc[restart + 1 :]
    starts = later[later.kind == "started"]
    assert list(starts.subject) == ["n1", "n2", "n3"]
    (verified,) = events[(events.kind == "stage") & (events.subject == "restarted")].index
    assert starts.index.max() < verified


def test_what_is_printed_is_the_summary_with_the_drill(bundle: Path) -> None:
    said = json.loads((bundle.parent / "said.json").read_text())
    assert said == json.loads((bundle / "summary.json").read_text())
    told = said["drill"]
    assert (told["name"], told["system"]) == ("short", "quorum")
    assert [phase["name"] for phase in told["phases"]] == ["before", "during", "after"]
    assert told["durability"]["verdict"] == "pass"
    assert told["claims"][2]["verdict"] == "holds"
    broken = any(claim["verdict"] == "does not hold" for claim in told["claims"])
    assert told["passed"] != broken


def test_progress_in_a_pipe_tells_phases_faults_and_rates(bundle: Path) -> None:
    told = (bundle.parent / "told.txt").read_text()
    roles = manifest_of(bundle)["roles"]
    for line in (
        "quorum: before: nothing broken; reads ",
        f"quorum: during: kill {roles['victim'][0]}; reads ",
        f"quorum: during: slow {roles['survivor'][0]}, +40ms; reads ",
        "quorum: after: nothing broken; reads ",
        "ok in the last 5 s",
        "quorum: verifying every object (restarted)",
    ):
        assert line in told
    took_s = json.loads((bundle.parent / "facts.json").read_text())["took_s"]
    assert told.count("ok in the last") < 12 + took_s / 5, "a line now and then"


def test_the_bundle_can_be_reported_again(bundle: Path) -> None:
    from tests.experiments.commands import command

    before = (bundle / "summary.json").read_bytes()
    again = subprocess.run(
        command("report", str(bundle)), capture_output=True, text=True, timeout=180, check=False
    )
    assert again.returncode == 0, again.stderr
    assert (bundle / "summary.json").read_bytes() == before
