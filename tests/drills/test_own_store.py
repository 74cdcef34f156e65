"""Drill, load and probe on a system that is asked over its own gRPC, as its definition says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import document_of, measure, samples_of, study
from tests.experiments.drill.drills import SHORT, drill
from tests.needs import lab_of
from tests.own_store import NAME, adopted
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.bundle.documents import Prefills
from wanlat.experiments import session
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.prepare import load, prepare
from wanlat.systems.base import System
from wanlat.testing.probe import Probe
from wanlat.topologies.errors import UserError


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)
    return adopted(tmp_path)


@pytest.mark.parametrize(("defects", "verdict"), [(["lose-acked"], "fail"), ([], "pass")])
def test_a_drill_finds_what_a_store_loses_over_its_own_grpc(
    own: System, tmp_path: Path, defects: list[str], verdict: str
) -> None:
    options: dict[str, Any] = {"defects": defects} if defects else {}
    bundle = tmp_path / "bundle"
    file = drill(tmp_path, head=SHORT + "delete_ratio: 30%\n")
    prepared = prepare(load(file), system=own.name, options=options, directory=bundle)
    outcome = runner.run(prepared)
    assert outcome.status == "complete", outcome.reason
    durability = read_drill(bundle)["durability"]
    assert durability["verdict"] == verdict, durability
    assert bool(durability["lost"]) == bool(defects)
    assert durability["acknowledged"] > 30 and durability["removed"] > 0
    assert set(samples_of(bundle).endpoint) == {"Store", "Fetch", "Drop"}


def test_a_load_reads_and_writes_over_its_own_grpc(own: System, tmp_path: Path) -> None:
    text = """
endpoints: [GetObject, PutObject]
object_size: 64KiB
prefill: {objects: 20, buckets: 2, writers: 4, settle: 0s}
load:
  {workers: 4, probe_interval: 20ms, duration: 1s, idle: 200ms,
   mix: {Get: 0.5, Put: 0.4, RemoveObject: 0.1}}
"""
    file = study(tmp_path, f"systems: [{own.name}]\n{text}", sites=1)
    outcome = measure(file, tmp_path / "bundle")
    assert outcome.status == "complete", outcome.reason
    rows = pd.read_parquet(outcome.directory / "load.parquet")
    assert set(rows.outcome) == {"ok"} and set(rows.endpoint) == {"Store", "Fetch", "Drop"}
    assert set(rows[rows.endpoint == "Fetch"].object_bytes) == {64 << 10}
    samples = samples_of(outcome.directory)
    assert set(samples.endpoint) == {"Store", "Fetch"} and set(samples.outcome) == {"ok"}
    found = document_of(outcome.directory, Prefills)
    (prefill,) = found.systems
    assert (prefill.written, prefill.read_back, prefill.counted) == (40, 40, None)


def test_a_probe_of_a_test_asks_over_its_own_grpc(own: System, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    with lab_of("one-site") as lab:
        cluster = own.start(lab, own.parse_options(), tmp_path / "logs", 30, lambda _: None)
        probe = Probe(lab, cluster, rows.append)
        assert probe.put("mine", object_bytes=2000).ok
        assert probe.at("n2").get("mine").ok
        assert probe.remove("mine").ok
        gone = probe.at("n3").get("mine")
        assert (gone.outcome, gone.sample.grpc_status) == ("fail", 5)
        with pytest.raises(UserError, match=f"more than system {NAME} takes"):
            probe.put("large", object_bytes=2 << 20)
        probe.close()
    assert [row["endpoint"] for row in rows] == ["Store", "Fetch", "Drop", "Fetch"]
