"""Vdisks laid out over nodes and sites, and lower bounds against every way to be asked."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems_doubles import plan_of

from wanlat.systems import registry
from wanlat.systems.placement import Least, least_of, near, vdisk_of, vdisks
from wanlat.topologies.load import load
from wanlat.topologies.resolve import Plan, resolve

sizes = st.lists(st.integers(1, 6), min_size=1, max_size=6)


def spread(values: list[int]) -> int:
    return max(values) - min(values)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Plan, int, tuple[tuple[str, ...], ...]]:
    """A plan, a replication factor it can hold, and the table."""
    plan = plan_of(*draw(sizes))
    copies = draw(st.integers(1, len(plan.nodes)))
    count = draw(st.none() | st.integers(1, 3 * len(plan.nodes)))
    return plan, copies, vdisks(plan, copies, count)


@given(layouts())
def test_replicas_are_spread_over_sites_and_nodes_as_evenly_as_can_be(
    case: tuple[Plan, int, tuple[tuple[str, ...], ...]],
) -> None:
    plan, copies, table = case
    holds = Counter(name for replicas in table for name in replicas)
    first = Counter(replicas[0] for replicas in table)
    assert spread([first[node.name] for node in plan.nodes]) <= 1
    for site in plan.sites:
        assert spread([holds[node.name] for node in site.nodes]) <= 1
    for replicas in table:
        assert len(replicas) == len(set(replicas)) == copies
        used = Counter(plan.node(name).site for name in replicas)
        assert len(used) == min(copies, len(plan.sites))
        for site in plan.sites:
            # A site with room to spare has at most one replica less than any other.
            if used[site.name] < len(site.nodes):
                assert used[site.name] >= max(used.values()) - 1


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.data())
def test_all_nodes_of_equal_sites_hold_equally_many(
    sites: int, nodes: int, rounds: int, data: st.DataObject
) -> None:
    plan = plan_of(*[nodes] * sites)
    copies = data.draw(st.integers(1, sites))
    table = vdisks(plan, copies, rounds * len(plan.nodes))
    holds = Counter(name for replicas in table for name in replicas)
    assert holds == dict.fromkeys((node.name for node in plan.nodes), rounds * copies)


def test_the_vdisk_of_a_key_is_the_key_read_little_endian_modulo_their_number() -> None:
    assert vdisk_of(bytes([7, 0, 0, 0, 0, 0, 0, 0]), 5) == 2
    assert vdisk_of(bytes([1, 1, 0, 0, 0, 0, 0, 0]), 5) == 257 % 5


# -- lower bounds ----------------------------------------------------------------------------

small = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@given(small, st.data())
def test_no_choice_of_who_answers_is_cheaper_than_the_lower_bound(
    sizes: list[int], data: st.DataObject
) -> None:
    plan = plan_of(*sizes)
    names = [node.name for node in plan.nodes]
    replicas = data.draw(st.integers(1, min(4, len(names))))
    needed = data.draw(st.integers(1, replicas))
    for target, holders in product(names, combinations(names, replicas)):
        costs = [int(plan.node(name).site != plan.node(target).site) for name in holders]
        cheapest = min(max(asked) for asked in combinations(costs, needed))
        assert least_of(needed, replicas, near(plan, target, [holders])).round_trips == cheapest


@given(small, st.data())
def test_garages_copies_near_are_the_fewest_and_most_that_its_zones_allow(
    sizes: list[int], data: st.DataObject
) -> None:
    plan, garage = plan_of(*sizes), registry.get("garage")
    site_of = {node.name: node.site for node in plan.nodes}
    copies = data.draw(st.integers(1, min(4, len(site_of))))
    zones = min(copies, len(plan.sites))
    for target, site in site_of.items():
        held = [
            sum(site_of[name] == site for name in chosen)
            for chosen in combinations(site_of, copies)
            if len({site_of[name] for name in chosen}) >= zones
        ]
        assert garage.hook("may_be_near")(plan, target, copies) == {min(held), max(held)}


@pytest.mark.parametrize(("system", "reads", "writes"), [("quorum", 2, 3), ("garage", 2, 2)])
def test_what_must_answer_a_read_meets_every_acknowledged_write(
    system: str, reads: int, writes: int
) -> None:
    plan, store = plan_of(1, 1, 1, 1), registry.get(system)
    holders = 4 if system == "quorum" else 3
    for endpoint, needed in (("GetObject", reads), ("PutObject", writes)):
        found = store.least_round_trips(plan, store.parse_options(), "n1", endpoint, "unknown")
        words = ["none", "one", "two", "three", "four"]
        assert found is not None
        assert found.why.startswith(f"{words[needed]} of {words[holders]} replicas must answer")
    assert reads + writes > holders


def test_a_client_in_another_site_waits_for_one_more() -> None:
    plan = resolve(load("three-datacenters"))
    found = Least(0, "it is near")
    assert found.from_client(plan, "n2", "n1") == found
    assert found.from_client(plan, "n3", "n1").round_trips == 1
    assert Least(1, "far").from_client(plan, "n3", "n1").round_trips == 2


# The table in MinIO's own tests (cmd/endpoint-ellipses_test.go) for arguments without ellipses,
# and what `minio` itself says of http://n{1...N}/drive{1...D}, in its administration's `info`.
@pytest.mark.parametrize(
    ("nodes", "drives", "size"),
    [
        *((n, 1, size) for n, size in ((1, 1), (2, 2), (16, 16), (18, 9), (20, 10), (34, 2))),
        *((17, 1, None), (23, 1, None), (17, 2, None), (1, 4, 4), (2, 2, 4), (4, 4, 16)),
        *((4, 5, 4), (5, 4, 10), (3, 6, 9), (24, 1, 12)),
    ],
)
def test_minio_has_equally_many_drives_of_a_set_on_each_node(
    nodes: int, drives: int, size: int | None
) -> None:
    minio: Any = registry.get("minio").hooks
    assert minio.set_size(nodes, drives) == size
    sets = minio.Sets(nodes, drives, size or 0)
    for members in sets.members([f"n{number}" for number in range(nodes)]) if size else ():
        assert set(Counter(members).values()) == {sets.of_a_node}


def test_minios_default_parity_is_that_of_its_source() -> None:
    minio: Any = registry.get("minio").hooks
    assert [minio.default_parity(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 16)] == [
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
    ]
