"""What a store's own protocol takes: known of the reference store alone, as its README has it."""

from __future__ import annotations

from typing import Any

import pytest
from systems_doubles import plan_of

from wanlat.systems import registry
from wanlat.topologies.load import load
from wanlat.topologies.resolve import Plan, resolve

READS = ("ListBuckets", "ListObjects", "GetObject", "HeadObject")
WRITES = ("PutObject", "RemoveObject")


def promised(
    endpoint: str,
    plan: Plan | None = None,
    system: str = "quorum",
    placement: str = "unknown",
    **options: Any,
) -> float | None:
    at = plan or resolve(load("five-sites"))
    store = registry.get(system)
    return store.promised_round_trips(at, store.parse_options(options), "n1", endpoint, placement)


@pytest.mark.parametrize("endpoint", [*READS, *WRITES])
@pytest.mark.parametrize(
    ("protocol", "rounds"), [("leaderless", 1), ("rounds:1", 1), ("rounds:5", 5)]
)
def test_rounds_to_a_majority_are_the_protocols(endpoint: str, protocol: str, rounds: int) -> None:
    assert promised(endpoint, protocol=protocol) == rounds


@pytest.mark.parametrize(
    ("leader", "reads", "writes"), [({}, 0, 1), ({"leader": "n3"}, 1, 2)], ids=["here", "elsewhere"]
)
def test_a_leader_reads_alone_and_a_request_goes_to_it_first(
    leader: dict[str, str], reads: int, writes: int
) -> None:
    assert {promised(each, protocol="leader", **leader) for each in READS} == {reads}
    assert {promised(each, protocol="leader", **leader) for each in WRITES} == {writes}


def test_a_majority_in_the_site_takes_no_round_trip_between_sites() -> None:
    wide = plan_of(3, 1, 1)
    assert promised("PutObject", wide, protocol="rounds:5") == 0
    # Half of an even number has what a read must meet, and this protocol waits for a majority.
    assert promised("GetObject", plan_of(2, 2)) == 1


@pytest.mark.parametrize(
    ("endpoint", "local", "remote"),
    [("Put", 1, 1), ("Delete", 1, 1), ("Get", 0, 1), ("Exist", 0, 1)],
)
def test_over_bobs_api_it_is_that_of_the_replicas(endpoint: str, local: int, remote: int) -> None:
    assert promised(endpoint, placement="local", api="bob") == local
    assert promised(endpoint, placement="remote", api="bob") == remote
    assert promised("Ping", api="bob") == 0


def test_where_keys_differ_no_one_number_is_promised() -> None:
    # One replica: that of a remote key is on the node beside the asked one, or in the other site.
    options = {"api": "bob", "replication_factor": 1}
    assert promised("Get", plan_of(2, 2), placement="remote", **options) is None
    assert promised("Get", plan_of(2, 2), placement="local", **options) == 0


def test_a_mixture_a_defect_and_an_unknown_method_promise_nothing() -> None:
    assert promised("GetObject", protocol="mixture:30:1:3") is None
    assert promised("GetObject", defects=["stale-reads"]) is None
    assert promised("shop.Catalogue/Find") is None


@pytest.mark.parametrize("system", ["garage", "minio", "bob"])
def test_of_real_stores_nothing_is_known_by_construction(system: str) -> None:
    assert promised("GetObject", system=system) is None
