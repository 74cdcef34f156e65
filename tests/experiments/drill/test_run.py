"""A drill on the reference store, and the bundle that it leaves."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import manifest_of, node_of, samples_of
from tests.experiments.drill.drills import PHASES, SHORT, STAGES, drill
from tests.late_network import accepting_late_packets
from wanlat.experiments.drill.prepare import PreparedDrill, load, prepare
from wanlat.experiments.drill.runner import run
from wanlat.experiments.drill.timeline import WARMUP_S
from wanlat.experiments.session import Outcome

FAULTS = """
faults:
  - {kill: victim, at: 300ms, for: 1s}
  - {slow: survivor, rtt: 40ms, at: 1400ms, for: 600ms}
"""
HEAD = SHORT.replace("deadline: 1s", "deadline: 30s").replace(
    PHASES, PHASES.replace("2s", "1500ms")
)
PHASES_S = {"before": 1.0, "during": 2.5, "after": 1.5}


@dataclass(frozen=True)
class Done:
    """A drill that has ended, in whose last phase somebody else ended a node, the bystander."""

    prepared: PreparedDrill
    outcome: Outcome
    bystander: str
    told: list[str]

    @cached_property
    def bundle(self) -> Path:
        return self.outcome.directory

    @cached_property
    def manifest(self) -> Any:
        return manifest_of(self.bundle)

    @cached_property
    def events(self) -> pd.DataFrame:
        events = pd.read_parquet(self.bundle / "events.parquet")
        return events[events.kind != "impairment"].reset_index(drop=True)

    @cached_property
    def samples(self) -> pd.DataFrame:
        return samples_of(self.bundle)

    def node(self, role: str) -> str:
        (node,) = self.manifest["roles"][role]
        return str(node)

    def at_ns(self, phase: str) -> int:
        phases = self.events[self.events.kind == "phase"].set_index("subject").t_ns
        return int(phases[phase])


@contextmanager
def once(happens: threading.Event, act: Any) -> Iterator[None]:
    """Do something when something happens, beside the block."""
    thread = threading.Thread(target=lambda: happens.wait(120) and act())
    thread.start()
    yield
    thread.join()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    directory = tmp_path_factory.mktemp("drill")
    made = prepare(load(drill(directory, FAULTS, HEAD)), system="quorum", directory=directory / "b")
    taken, told, is_after = made.roles.values(), list[str](), threading.Event()
    bystander = next(node for node in ("n1", "n2", "n3") if (node,) not in taken)

    def report(stage: str, *more: Any) -> None:
        told.append(" ".join([stage, *more[2:]]))
        if stage.startswith("quorum: after"):
            is_after.set()

    def end_it() -> None:
        os.kill(node_of(os.getpid(), bystander), signal.SIGTERM)

    with accepting_late_packets("drill"), once(is_after, end_it):
        outcome = run(made, report, report_interval_s=5)
    assert outcome.status == "complete", outcome.reason
    return Done(made, outcome, bystander, told)


def test_every_stage_is_an_event_in_its_order_and_all_end_in_the_stated_time(done: Done) -> None:
    stages = done.events[done.events.kind == "stage"]
    assert list(stages.subject) == list(STAGES)
    phases = done.events[done.events.kind == "phase"].set_index("subject").t_ns
    assert list(phases.index) == ["before", "during", "after", "end"]
    assert list(phases.diff().dropna() / 1e6) == [1000, 2500, 1500], "by their plan"
    assert phases["before"] == done.manifest["origin_ns"]
    assert done.manifest["stated_time_s"] == done.prepared.stated.total_s > 300
    took_s = (stages.t_ns.iloc[-1] - stages.t_ns.iloc[0]) / 1e9
    assert WARMUP_S + sum(PHASES_S.values()) < took_s < done.manifest["stated_time_s"]


def test_faults_begin_and_end_when_they_should_and_their_links_are_measured_again(
    done: Done,
) -> None:
    events, survivor = done.events, done.node("survivor")
    kill, slow = f"1 kill {done.node('victim')}", f"2 slow {survivor}"
    for kind, subject, due_ms in (
        *(("inject", kill, 300), ("heal", kill, 1300)),
        *(("inject", slow, 1400), ("heal", slow, 2000)),
    ):
        (event,) = events[(events.kind == kind) & (events.subject == subject)].itertuples()
        after_ms = (event.t_ns - done.at_ns("during")) / 1e6
        assert due_ms <= after_ms, (kind, subject)
        detail = json.loads(str(event.detail))
        assert detail["late_ms"] == pytest.approx(after_ms - due_ms, abs=0.01)
        assert (detail["kind"], detail["nodes"]) == (subject.split()[1], [subject.split()[2]])
    again = events[events.kind == "recalibrated"]
    assert len(again) >= 1
    assert (again.t_ns > events[events.kind == "heal"].t_ns.max()).all()
    for detail in map(json.loads, again.detail):
        assert detail["verdict"] == "pass", detail
        assert survivor in (detail["from"], detail["to"])
        assert 9.9 <= detail["measured_rtt_ms"] < 50, "the 40 ms of the fault are gone"


def test_what_ends_by_itself_is_told_and_started_again_and_then_all_nodes_are(done: Done) -> None:
    events = done.events
    (death,) = events[events.kind == "died"].itertuples()
    assert death.subject == done.bystander
    assert json.loads(str(death.detail))["how"] == "was ended by SIGTERM"
    starts = events[(events.kind == "started") & (events.subject == done.bystander)]
    assert len(starts) == 2, "after the phases, and after the restart of all"
    assert (starts.t_ns > death.t_ns).all()
    (restart,) = events[events.kind == "restart"].index
    (verified,) = events[(events.kind == "stage") & (events.subject == "restarted")].index
    between = events.iloc[restart + 1 : verified]
    assert list(between[between.kind == "started"].subject) == ["n1", "n2", "n3"]


def test_each_client_has_a_row_for_each_request_that_was_due(done: Done) -> None:
    samples, events = done.samples, done.events
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
    kill = events[events.subject == f"1 kill {done.node('victim')}"]
    (killed_ns,) = kill[kill.kind == "inject"].t_ns
    # The event says when it had been started; it may have answered before.
    not_before_ns = done.at_ns("during") + 1_300_000_000
    sent_ns = samples.start_ns.astype("float64")
    away = samples[(sent_ns > killed_ns) & (sent_ns + samples.elapsed_ns < not_before_ns)]
    assert "ok" not in set(away[away.drill_client == "victim"].outcome)
    during = samples[(samples.phase == "during") & (samples.drill_client == "survivor")]
    assert (during.outcome == "ok").any()
