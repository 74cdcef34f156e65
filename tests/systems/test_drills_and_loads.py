"""Stores from Debian, really run: drills with a ledger, and loads, over each protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import measure, samples_of
from tests.needs import needs
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.experiments import session
from wanlat.experiments.drill import prepare as drills
from wanlat.experiments.drill import runner
from wanlat.systems import registry

FEW: dict[str, Any] = {"objects": 200, "interval": "1s"}


@pytest.mark.stores
@pytest.mark.parametrize(
    ("system", "drill", "victim", "options", "verdict", "goes_on"),
    [
        ("etcd", "leader-killed", "n2", {"leader": "n2"}, "pass", None),  # an election's time
        ("nats", "leader-killed", "n2", {"leader": "n2"}, "pass", None),
        ("zookeeper", "leader-killed", "n2", {"leader": "n2"}, "pass", None),
        ("redis", "leader-killed", "n1", {"appendonly": "always"}, "pass", False),
        # Without a log a primary that was killed is empty, and so are its replicas then.
        ("redis", "leader-killed", "n1", {}, "fail", False),
        ("redis", "one-node-killed", "n3", {"appendonly": "always"}, "pass", True),
        ("postgresql", "leader-killed", "n1", {}, "pass", False),
        ("postgresql", "one-node-killed", "n3", {}, "pass", True),
    ],
)
def test_a_drill_finds_what_becomes_of_objects_and_of_writes(
    system: str,
    drill: str,
    victim: str,
    options: dict[str, str],
    verdict: str,
    goes_on: bool | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs(system)
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)  # nobody looks at its times
    roles = {"victim": {"select": victim}, "survivor": {"select": "n4"}}
    more_roles = {"roles": roles} if drill == "one-node-killed" else {}
    few = drills.load(drill, settings=FEW | more_roles)
    more: dict[str, Any] = {"options": options, "directory": tmp_path / "b", "seed": 3}
    outcome = runner.run(drills.prepare(few, system=system, scale=0.2, **more))
    assert outcome.status == "complete", outcome.reason
    found = read_drill(outcome.directory)
    durability = found["durability"]
    assert durability["verdict"] == verdict, durability["why"]
    assert durability["acknowledged"] > 200 and durability["removed"] > 0
    assert not durability["unread"] and not durability["unledgered"]
    events = pd.read_parquet(outcome.directory / "events.parquet")
    killed, phases = (events[events["kind"] == kind] for kind in ("inject", "phase"))
    due_ns = phases[phases["subject"] == "after"]["t_ns"].item()
    assert killed["subject"].tolist() == [f"1 kill {victim}"]
    samples = samples_of(outcome.directory)
    # A busy machine kills later than is due, and a node may serve before its start is noted.
    rows = samples[samples["start_ns"].between(killed["t_ns"].item(), due_ns)]
    # What a busy machine could not send is nothing of the store's.
    of_survivor = rows[(rows["drill_client"] == "survivor") & (rows["outcome"] != "not_sent")]
    assert len(of_survivor) > 20
    reads, writes = (of_survivor[of_survivor["operation"] == each] for each in ("read", "write"))
    if goes_on is not None:  # the others answer reads, whatever becomes of writes
        assert (reads["outcome"] == "ok").mean() > 0.8
        assert (
            (writes["outcome"] == "ok").mean() > 0.8
            if goes_on
            else not (writes["outcome"] == "ok").any()
        )


@pytest.mark.stores
@pytest.mark.parametrize("system", ["etcd", "nats", "redis", "postgresql", "nginx", "zookeeper"])
def test_a_load_runs_over_each_protocol(system: str, tmp_path: Path) -> None:
    needs(system)
    outcome = measure(
        "mixed-load",
        tmp_path / "bundle",
        **{"systems": [system], "object_size": "1KiB", "prefill.objects": 50, "load.workers": 4},
        **{"load.mix": {"GetObject": 0.5, "PutObject": 0.3, "RemoveObject": 0.2}},
        **{"load.duration": "5s", "load.idle": "1s", "resources.idle": "0s", "storage": "memory"},
    )
    assert outcome.status == "complete", outcome.reason
    load = pd.read_parquet(outcome.directory / "load.parquet")
    names = registry.get(system).definition.objects
    assert set(load["endpoint"]) == {names.write, names.read, names.delete}
    assert set(load["outcome"]) == {"ok"}
