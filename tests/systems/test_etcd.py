"""etcd, really run: who leads, and how large an object may be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.needs import lab_of, needs
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
    largest = cluster.defined.definition.objects.largest
    assert largest is not None
    probe = Probe(cluster.lab, cluster, lambda _: None)
    assert probe.put("large", object_bytes=largest.bytes).ok
    assert probe.at("n3").get("large").ok and probe.at("n2").remove("large").ok
    gone = probe.get("large")  # answered, without an object
    assert (gone.outcome, gone.sample.grpc_status) == ("fail", 0)
    assert (gone.error or "").startswith("not found")
    probe.close()
