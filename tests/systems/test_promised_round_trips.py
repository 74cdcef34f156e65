"""Stores from Debian, really run: what their protocols promise, and no network makes fewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.commands import samples_of
from tests.needs import needs
from wanlat.experiments.config.study import Study
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import silent
from wanlat.systems import registry
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve

RTT_MS = 100
PROMISED: dict[str, tuple[str, dict[str, str | int], dict[str, int | None]]] = {
    "etcd": ("etcd", {}, {"Put": 1, "DeleteRange": 1, "Range": 1, "SerializableRange": 0}),
    "etcd, led elsewhere": (
        "etcd",
        {"leader": "n2"},
        {"Put": 2, "DeleteRange": 2, "Range": 2, "SerializableRange": 0},
    ),
    "nginx": ("nginx", {}, {"Get": 0, "Head": 0, "Put": 0, "Delete": 0}),
    "apache": ("apache", {}, {"Get": 0, "Head": 0, "Put": 0, "Delete": 0}),
    "nats": ("nats", {}, {"Publish": 1, "Purge": 1, "Get": 0, "DirectGet": None}),
    "nats, led elsewhere": (
        "nats",
        {"leader": "n2"},
        {"Publish": 2, "Purge": 2, "Get": 1, "DirectGet": None},
    ),
    "postgresql": ("postgresql", {}, {"Commit": 1, "Delete": 1, "LocalCommit": 0, "Read": 0}),
    "postgresql, asynchronous, at a standby": (
        "postgresql",
        {"primary": "n2", "synchronous": 0},
        {"Commit": 1, "Delete": 1, "LocalCommit": 1, "Read": 0},
    ),
    "redis": ("redis", {}, {"Set": 1, "Delete": 1, "SetNoWait": 0, "Get": 0}),
    "redis, at a replica": (
        "redis",
        {"primary": "n2"},
        {"Set": 2, "Delete": 2, "SetNoWait": 1, "Get": 0},
    ),
    "zookeeper": ("zookeeper", {}, {"Create": 1, "Delete": 1, "Get": 0, "SyncGet": 0}),
    "zookeeper, led elsewhere": (
        "zookeeper",
        {"leader": "n2"},
        {"Create": 2, "Delete": 2, "Get": 0, "SyncGet": 1},
    ),
}
"""Round trips by what is configured; n1 is asked. None: chance has a part in it."""


@pytest.mark.parametrize(("system", "options", "promised"), PROMISED.values(), ids=PROMISED)
def test_a_definition_knows_the_round_trips_of_its_protocol(
    system: str, options: dict[str, str | int], promised: dict[str, int | None]
) -> None:
    found, plan = registry.get(system), resolve(load("five-sites"))
    assert set(found.definition.endpoints) == set(promised)
    given = found.parse_options(options)
    for endpoint, round_trips in promised.items():
        its = found.promised_round_trips(plan, given, "n1", endpoint, "unknown")
        assert its == round_trips, endpoint


@pytest.mark.stores
@pytest.mark.parametrize(("system", "options", "promised"), PROMISED.values(), ids=PROMISED)
def test_a_study_of_stores_asks_for_its_own_endpoints_and_they_take_what_is_promised(
    system: str, options: dict[str, str | int], promised: dict[str, int | None], tmp_path: Path
) -> None:
    needs(system)
    study = Study(
        name="promised",
        topology="five-sites",
        systems=[system],
        endpoints=["PutObject", "GetObject", "HeadObject", "RemoveObject", "ListBuckets"],
        options={system: options},
        samples=5,
        warmup=1,
    )
    outcome = run(prepare(study, directory=tmp_path / "bundle"), silent)
    assert outcome.status == "complete", outcome.reason
    samples = samples_of(outcome.directory)
    rows = samples[samples["phase"] == "measure"]
    assert set(rows["outcome"]) == {"ok"}
    for endpoint, round_trips in promised.items():
        if round_trips is None:
            continue
        fastest_ms = rows[rows["endpoint"] == endpoint]["total_ns"].min() / 1e6
        # Jitter of 20 ms; what a busy machine adds, no fastest of five has twice.
        assert round_trips * (RTT_MS - 20) <= fastest_ms < (round_trips + 1) * (RTT_MS - 20)
