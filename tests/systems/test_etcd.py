"""etcd, really run: objects, drills on its leader, load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.experiments.commands import measure
from tests.needs import lab_of, needs
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.bundle.read import read_table
from wanlat.experiments import session
from wanlat.experiments.drill import prepare as drills
from wanlat.experiments.drill import runner
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.testing.probe import Probe


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    needs("etcd")
    etcd = registry.get("etcd")
    with lab_of("one-site") as lab:
        options = etcd.parse_options({"leader": lab.nodes[-1].name})
        yield etcd.start(lab, options, tmp_path_factory.mktemp("logs"), 60, print)


@pytest.mark.stores
def test_it_is_led_by_the_node_that_is_asked_for(cluster: Cluster) -> None:
    assert cluster.leader() == list(cluster.nodes)[-1]


@pytest.mark.stores
def test_objects_as_large_as_its_definition_says_fit_and_no_larger_ones(cluster: Cluster) -> None:
    largest = cluster.of.definition.objects.largest
    assert largest is not None
    probe = Probe(cluster.lab, cluster, lambda _: None)
    assert probe.put("large", object_bytes=largest.bytes).ok
    assert probe.at("n3").get("large").ok and probe.at("n2").remove("large").ok
    gone = probe.get("large")  # answered, without an object
    assert (gone.outcome, gone.sample.grpc_status) == ("fail", 0)
    assert (gone.error or "").startswith("not found")
    probe.close()


@pytest.mark.stores
def test_a_drill_hits_who_leads_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("etcd")
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)  # nobody looks at its times
    few = drills.changed(drills.load("leader-killed"), {"objects": 200})
    prepared = drills.prepare(
        few, system="etcd", scale=0.1, seed=3, options={"leader": "n2"}, directory=tmp_path / "b"
    )
    outcome = runner.run(prepared)
    assert outcome.status == "complete", outcome.reason
    durability = read_drill(outcome.directory)["durability"]
    assert durability["verdict"] == "pass", durability
    assert durability["acknowledged"] > 200 and durability["removed"] > 0
    found = read_table(outcome.directory, "events")
    assert found is not None
    killed = found[0][found[0]["kind"] == "inject"]["subject"].tolist()
    leaders = found[0][found[0]["kind"] == "leader"]["subject"].tolist()
    assert (leaders, killed) == (["n2", "n2"], ["1 kill n2"])


@pytest.mark.stores
def test_a_load_runs_on_it(tmp_path: Path) -> None:
    needs("etcd")
    outcome = measure(
        "mixed-load",
        tmp_path / "bundle",
        **{"systems": ["etcd"], "object_size": "1KiB", "prefill.objects": 50},
        **{"load.duration": "2s", "load.idle": "1s", "resources.idle": "0s", "storage": "memory"},
    )
    assert outcome.status == "complete", outcome.reason
    read = read_table(outcome.directory, "load")
    assert read is not None
    assert set(read[0]["endpoint"]) == {"Put", "Range"} and set(read[0]["outcome"]) == {"ok"}
