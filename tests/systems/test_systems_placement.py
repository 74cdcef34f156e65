"""Vdisks laid out over nodes and sites, for the shipped topologies and for odd shapes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems_doubles import plan_of

from wanlat.systems.placement import vdisk_of, vdisks
from wanlat.topologies.load import load
from wanlat.topologies.resolve import Plan, resolve


def shipped(name: str) -> Plan:
    return resolve(load(name))


def held(table: tuple[tuple[str, ...], ...], plan: Plan) -> dict[str, int]:
    """How many replicas each node holds."""
    counted = Counter(name for replicas in table for name in replicas)
    return {node.name: counted[node.name] for node in plan.nodes}


def sites_of(replicas: tuple[str, ...], plan: Plan) -> Counter[str]:
    """How many of a vdisk's replicas are in each site."""
    return Counter(node.site for node in plan.nodes if node.name in replicas)


def spread(values: list[int]) -> int:
    return max(values) - min(values)


def test_one_site_of_three_nodes_has_everything_everywhere() -> None:
    assert vdisks(shipped("one-site"), 3) == (
        ("n1", "n2", "n3"),
        ("n2", "n3", "n1"),
        ("n3", "n1", "n2"),
    )


@pytest.mark.parametrize(("copies", "each"), [(1, 1), (2, 2), (3, 3), (5, 5)])
def test_five_sites_hold_equally_many(copies: int, each: int) -> None:
    plan = shipped("five-sites")
    table = vdisks(plan, copies)
    assert set(held(table, plan).values()) == {each}
    assert [replicas[0] for replicas in table] == ["n1", "n2", "n3", "n4", "n5"]


def test_of_three_datacenters_each_has_a_replica_on_one_of_its_two_nodes() -> None:
    plan = shipped("three-datacenters")
    table = vdisks(plan, 3)
    assert len(table) == 6
    for replicas in table:
        assert sites_of(replicas, plan) == {"dc1": 1, "dc2": 1, "dc3": 1}
    assert set(held(table, plan).values()) == {3}
    # So a node holds half of all keys: both kinds can be measured at it.
    assert sum("n1" in replicas for replicas in table) == 3


def test_the_number_of_vdisks_can_be_chosen() -> None:
    plan = shipped("five-sites")
    assert len(vdisks(plan, 3, 10)) == 10
    assert set(held(vdisks(plan, 3, 10), plan).values()) == {6}
    assert len(vdisks(plan, 3, 1)) == 1


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Plan, int, tuple[tuple[str, ...], ...]]:
    """A plan, a replication factor it can hold, and the table."""
    plan = plan_of(*draw(sizes))
    copies = draw(st.integers(1, len(plan.nodes)))
    count = draw(st.none() | st.integers(1, 3 * len(plan.nodes)))
    return plan, copies, vdisks(plan, copies, count)


@given(layouts())
def test_replicas_are_on_different_nodes(
    case: tuple[Plan, int, tuple[tuple[str, ...], ...]],
) -> None:
    _, copies, table = case
    for replicas in table:
        assert len(replicas) == len(set(replicas)) == copies


@given(layouts())
def test_replicas_are_in_as_many_sites_as_there_are_and_evenly(
    case: tuple[Plan, int, tuple[tuple[str, ...], ...]],
) -> None:
    plan, copies, table = case
    for replicas in table:
        used = sites_of(replicas, plan)
        assert len(used) == min(copies, len(plan.sites))
        for site in plan.sites:
            # A site with room to spare has at most one replica less than any other.
            if used[site.name] < len(site.nodes):
                assert used[site.name] >= max(used.values()) - 1


@given(layouts())
def test_each_node_is_first_equally_often(
    case: tuple[Plan, int, tuple[tuple[str, ...], ...]],
) -> None:
    plan, _, table = case
    first = Counter(replicas[0] for replicas in table)
    assert spread([first[node.name] for node in plan.nodes]) <= 1


@given(layouts())
def test_the_nodes_of_a_site_hold_equally_many(
    case: tuple[Plan, int, tuple[tuple[str, ...], ...]],
) -> None:
    plan, _, table = case
    holds = held(table, plan)
    for site in plan.sites:
        assert spread([holds[node.name] for node in site.nodes]) <= 1


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.data())
def test_all_nodes_of_equal_sites_hold_equally_many(
    sites: int, nodes: int, rounds: int, data: st.DataObject
) -> None:
    plan = plan_of(*[nodes] * sites)
    copies = data.draw(st.integers(1, sites))
    table = vdisks(plan, copies, rounds * len(plan.nodes))
    assert set(held(table, plan).values()) == {rounds * copies}


@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_a_number_of_vdisks_that_does_not_divide_costs_little_balance(
    sites: int, nodes: int, data: st.DataObject
) -> None:
    plan = plan_of(*[nodes] * sites)
    copies = data.draw(st.integers(1, len(plan.nodes)))
    table = vdisks(plan, copies, data.draw(st.integers(1, 3 * len(plan.nodes))))
    assert spread(list(held(table, plan).values())) <= 2


@given(layouts())
def test_the_same_layout_comes_out_again(
    case: tuple[Plan, int, tuple[tuple[str, ...], ...]],
) -> None:
    plan, copies, table = case
    assert vdisks(plan, copies, len(table)) == table


@given(st.binary(min_size=8, max_size=8), st.integers(1, 1000))
def test_the_vdisk_of_a_key_is_the_key_modulo_their_number(key: bytes, count: int) -> None:
    number = sum(byte << (8 * place) for place, byte in enumerate(key))
    assert vdisk_of(key, count) == number % count


def test_a_key_is_read_little_endian() -> None:
    assert vdisk_of(bytes([7, 0, 0, 0, 0, 0, 0, 0]), 5) == 2
    assert vdisk_of(bytes([0, 0, 0, 0, 0, 0, 0, 7]), 5) == (7 << 56) % 5 == 2
    assert vdisk_of(bytes([1, 1, 0, 0, 0, 0, 0, 0]), 5) == 257 % 5
