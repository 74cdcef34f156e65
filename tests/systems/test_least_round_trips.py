"""The least round trips of each system: worked out by hand, and against every way to be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems_doubles import plan_of

from wanlat.systems import registry
from wanlat.systems.base import Least
from wanlat.systems.least import Answers
from wanlat.topologies.load import load
from wanlat.topologies.resolve import Plan, resolve

S3 = ("ListBuckets", "ListObjects", "GetObject", "HeadObject", "PutObject", "RemoveObject")
GARAGE: Any = registry.get("garage").hooks
SHIPPED = ("one-site", "four-sites", "five-sites", "three-datacenters")


def least(
    plan: Plan | str,
    system: str,
    endpoint: str,
    placement: str = "unknown",
    target: str = "n1",
    **options: Any,
) -> Least | None:
    at = resolve(load(plan)) if isinstance(plan, str) else plan
    store = registry.get(system)
    return store.least_round_trips(at, store.parse_options(options), target, endpoint, placement)


def number(*args: Any, **kwargs: Any) -> float | None:
    found = least(*args, **kwargs)
    return None if found is None else found.round_trips


# -- worked out by hand ---------------------------------------------------------------------


@pytest.mark.parametrize("system", ["quorum", "garage", "minio"])
@pytest.mark.parametrize("endpoint", S3)
def test_over_s3_one_site_needs_none_and_no_site_of_the_others_is_a_quorum(
    system: str, endpoint: str
) -> None:
    assert [number(name, system, endpoint) for name in SHIPPED] == [0, 1, 1, 1]


@pytest.mark.parametrize("system", ["quorum", "bob"])
@pytest.mark.parametrize(
    ("topology", "endpoint", "local", "remote"),
    [
        # Three replicas, one a site; two must have a write, one has what is read.
        ("five-sites", "Put", 1, 1),
        ("five-sites", "Delete", 1, 1),
        ("five-sites", "Get", 0, 1),
        ("five-sites", "Exist", 0, 1),
        ("four-sites", "Put", 1, 1),
        ("four-sites", "Get", 0, 1),
        # Of every vdisk each datacenter has a replica, if not the node that is asked.
        ("three-datacenters", "Put", 1, 1),
        ("three-datacenters", "Get", 0, 0),
        ("three-datacenters", "Exist", 0, 0),
        # Every node holds everything, so there are no remote keys to speak of.
        ("one-site", "Put", 0, None),
        ("one-site", "Get", 0, None),
    ],
)
def test_over_bobs_api_the_vdisks_decide(
    system: str, topology: str, endpoint: str, local: float, remote: float | None
) -> None:
    options = {"api": "bob"} if system == "quorum" else {}
    assert number(topology, system, endpoint, "local", **options) == local
    assert number(topology, system, endpoint, "remote", **options) == remote


@pytest.mark.parametrize("topology", SHIPPED)
def test_a_ping_concerns_nobody_else(topology: str) -> None:
    assert number(topology, "bob", "Ping") == number(topology, "quorum", "Ping", api="bob") == 0


def test_bobs_quorum_of_one_is_had_where_a_replica_is() -> None:
    assert number("five-sites", "bob", "Put", "local", quorum=1) == 0
    assert number("five-sites", "bob", "Put", "remote", quorum=1) == 1
    assert number("three-datacenters", "bob", "Put", "remote", quorum=1) == 0


def test_a_quorum_in_the_asked_site_makes_zero() -> None:
    wide = plan_of(3, 1, 1)
    assert [number(wide, "quorum", each) for each in ("GetObject", "PutObject")] == [0, 0]
    assert [number(wide, "quorum", each, target="n4") for each in ("GetObject", "PutObject")] == [
        1,
        1,
    ]


def test_of_an_even_number_half_is_enough_to_read_what_a_majority_has() -> None:
    halves = plan_of(2, 2)
    assert number(halves, "quorum", "GetObject") == 0
    assert number(halves, "quorum", "PutObject") == 1


def test_more_rounds_and_a_leader_elsewhere_are_the_protocols_own_choice() -> None:
    for protocol in ("leaderless", "rounds:1", "rounds:5"):
        assert number("five-sites", "quorum", "GetObject", protocol=protocol) == 1
        assert number("five-sites", "quorum", "PutObject", protocol=protocol) == 1
    elsewhere = {"protocol": "leader", "leader": "n3"}
    assert [number("five-sites", "quorum", each, **elsewhere) for each in S3] == [1] * 6
    # A majority is here, so a store without that leader would not leave the site.
    assert number(plan_of(3, 1, 1), "quorum", "PutObject", protocol="leader", leader="n5") == 0


def test_at_its_site_a_leader_reads_alone_and_writes_with_others() -> None:
    at_the_leader = [number("five-sites", "quorum", each, protocol="leader") for each in S3]
    assert at_the_leader == [0, 0, 0, 0, 1, 1]
    beside_it = {"protocol": "leader", "leader": "n2"}
    assert number("three-datacenters", "quorum", "GetObject", **beside_it) == 0


def test_garages_consistency_modes_have_their_own_quorums() -> None:
    def both(mode: str) -> list[float | None]:
        asked = ("GetObject", "PutObject")
        return [number("five-sites", "garage", each, consistency_mode=mode) for each in asked]

    assert both("consistent") == [1, 1]
    # A read is content with one copy, a write with two or one; some keys have one here.
    assert both("degraded") == [0, 1]
    assert both("dangerous") == [0, 0]


@pytest.mark.parametrize(
    ("copies", "reads", "writes"), [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3), (5, 3, 3)]
)
def test_garages_quorums_are_those_of_its_source(copies: int, reads: int, writes: int) -> None:
    # read: div_ceil(2); write: factor + 1 - read (garage_rpc 2.5.0, replication_mode.rs)
    assert GARAGE.quorum("consistent", copies, writes=False) == reads
    assert GARAGE.quorum("consistent", copies, writes=True) == writes


def test_two_zones_hold_two_of_some_keys_three_copies() -> None:
    found = least(plan_of(2, 2), "garage", "GetObject")
    assert found == Least(
        0,
        "two of three replicas must answer, and of some keys that many are in the asked node's"
        " site",
    )
    # A single node in the zone never holds two.
    assert number(plan_of(1, 3), "garage", "GetObject") == 1
    assert number(plan_of(1, 3), "garage", "GetObject", target="n2") == 0


def test_minio_reads_as_many_shards_as_hold_the_data() -> None:
    # Six drives: three hold data. Of two sites of three, one is enough to read, not to write.
    halves = plan_of(3, 3)
    assert [number(halves, "minio", each) for each in S3] == [0, 0, 0, 0, 1, 1]
    # With one parity drive of six, five hold data and have a write; metadata are met by two.
    assert number(halves, "minio", "GetObject", parity=1) == 1
    assert number(halves, "minio", "HeadObject", parity=1) == 0


def test_with_several_erasure_sets_a_listing_needs_all_of_them() -> None:
    # 32 nodes make two sets of 16, the first of which is in the first site. A Get may find its
    # object there; a listing has to hear the other set, too.
    plan = plan_of(16, 16)
    assert number(plan, "minio", "GetObject") == 0
    assert number(plan, "minio", "ListObjects") == 1


def test_of_a_users_own_service_nothing_is_known() -> None:
    assert number("five-sites", "service", "shop.Catalogue/Find") is None
    assert number("five-sites", "garage", "shop.Catalogue/Find") is None


def test_it_says_why() -> None:
    found = least("three-datacenters", "garage", "GetObject")
    why = "two of three replicas must answer, and only one is in the asked node's site"
    assert found == Least(1, why)
    away = least("five-sites", "bob", "Get", "remote")
    assert away == Least(
        1, "one of three replicas must answer, and none is in the asked node's site"
    )


def test_a_client_in_another_site_waits_for_one_more() -> None:
    plan = resolve(load("three-datacenters"))
    found = least(plan, "bob", "Get", "local")
    assert found is not None
    assert found.from_client(plan, "n2", "n1") == found
    far = found.from_client(plan, "n3", "n1")
    assert far.round_trips == 1
    assert far.why.startswith(
        "one to the site of the node that is asked and back; beyond that none"
    )


# -- against every way to be asked ----------------------------------------------------------

small = st.lists(st.integers(1, 3), min_size=1, max_size=4)


def dearest_of_cheapest(plan: Plan, target: str, holders: tuple[str, ...], needed: int) -> int:
    """Tries every set of holders that may answer; each costs what the farthest of it costs."""
    site = plan.node(target).site
    return min(
        max((int(plan.node(name).site != site) for name in asked), default=0)
        for asked in combinations(holders, needed)
    )


@given(small, st.data())
def test_for_every_placement_no_choice_of_who_answers_is_cheaper(
    sizes: list[int], data: st.DataObject
) -> None:
    plan = plan_of(*sizes)
    names = [node.name for node in plan.nodes]
    replicas = data.draw(st.integers(1, min(4, len(names))))
    needed = data.draw(st.integers(1, replicas))
    for target, holders in product(names, combinations(names, replicas)):
        said = Answers.among(plan, target, needed, [holders]).least()
        assert said.round_trips == dearest_of_cheapest(plan, target, holders, needed)


@given(small, st.data())
def test_every_read_meets_every_acknowledged_write(sizes: list[int], data: st.DataObject) -> None:
    """The numbers of answers that majorities and Garage's quorums ask for are enough, and least."""
    count = len(plan_of(*sizes).nodes)
    reads = GARAGE.quorum("consistent", count, writes=False)
    writes = GARAGE.quorum("consistent", count, writes=True)
    nodes = range(count)
    written = set(data.draw(st.permutations(nodes))[:writes])
    assert all(written & set(read) for read in combinations(nodes, reads))
    assert not all(written & set(read) for read in combinations(nodes, reads - 1)) or reads == 1


def spread_over_zones(plan: Plan, copies: int) -> Iterator[tuple[str, ...]]:
    """Every choice of nodes that Garage's `maximum` zone redundancy allows."""
    site_of = {node.name: node.site for node in plan.nodes}
    zones = min(copies, len(plan.sites))
    for chosen in combinations(site_of, copies):
        if len(Counter(site_of[name] for name in chosen)) >= zones:
            yield chosen


@given(small, st.data())
def test_garages_copies_near_are_the_fewest_and_most_that_its_zones_allow(
    sizes: list[int], data: st.DataObject
) -> None:
    plan = plan_of(*sizes)
    names = [node.name for node in plan.nodes]
    copies = data.draw(st.integers(1, min(4, len(names))))
    for target in names:
        site = plan.node(target).site
        near = [
            sum(plan.node(name).site == site for name in chosen)
            for chosen in spread_over_zones(plan, copies)
        ]
        assert GARAGE.may_be_near(plan, target, copies) == {min(near), max(near)}
