"""Quorum's nodes talk again soon after a partition, however long it was."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.needs import lab_of
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.faults.links import Partition
from wanlat.emulator.lab import Lab
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.request import NoAnswer
from wanlat.systems.engine.wait import Wait
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve

READY_S = 60.0
SOON_S = 9.0
"""About three are promised. TCP by itself, whose pauses double, would go on eleven seconds after
a partition of fourteen."""

pytestmark = pytest.mark.minutes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with lab_of("four-sites"):
        pass  # where there can be none, this skips
    quorum = registry.get("quorum")
    logs = tmp_path_factory.mktemp("logs")
    with Lab(resolve(load("four-sites")), splice="all") as lab:
        started = quorum.start(lab, quorum.parse_options(), logs, READY_S, print)
        assert started.ask_s3("n1", "/healing", method="PUT").ok
        yield started


def serves(cluster: Cluster, node: str, timeout_s: float) -> bool:
    try:
        return cluster.ask_s3(node, f"/healing/{node}", timeout_s, method="PUT").ok
    except NoAnswer:
        return False


# Shorter and longer than the silence after which a connection is given up.
@pytest.mark.parametrize("for_s", [3.0, 14.0])
def test_after_two_were_cut_from_two_every_node_writes_again_within_seconds(
    cluster: Cluster, for_s: float
) -> None:
    scene = Scene(cluster.lab, cluster.nodes)
    partition = Partition.parse([["n1", "n2"], ["n3", "n4"]], {}, cluster.lab.plan, {})
    partition.begin(scene)
    begun = time.monotonic()
    try:
        # What is asked now has no majority: it is refused, or not answered in time.
        assert not serves(cluster, "n1", for_s - 1)
        assert not serves(cluster, "n3", 0.5)
        time.sleep(max(0.0, begun + for_s - time.monotonic()))
    finally:
        partition.end(scene)
    healed = time.monotonic()
    for name in cluster.nodes:
        while not serves(cluster, name, 1.0):
            assert time.monotonic() - healed < SOON_S, name
            time.sleep(0.05)
    cluster.await_serving(Wait(cluster.nodes, SOON_S, print))
    print(f"{for_s:g} s of partition: {time.monotonic() - healed:.1f} s")
