"""A topology with another number of nodes: the same sites, as evenly filled as can be."""

from __future__ import annotations

import pytest

from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.scale import with_nodes


def sites(topology: Topology) -> dict[str, list[str]]:
    return {site.name: list(site.node_names) for site in topology.sites}


def test_nodes_are_spread_over_the_sites_in_order() -> None:
    made = with_nodes(load("three-datacenters"), 8)
    assert [len(nodes) for nodes in sites(made).values()] == [3, 3, 2]
    names = [name for nodes in sites(made).values() for name in nodes]
    assert len(set(names)) == 8


def test_a_node_that_stays_keeps_its_name_and_its_site() -> None:
    before = sites(load("three-datacenters"))
    for nodes in (3, 4, 12, 24):
        after = sites(with_nodes(load("three-datacenters"), nodes))
        assert sum(map(len, after.values())) == nodes
        for name, was in before.items():
            both = min(len(was), len(after[name]))
            assert after[name][:both] == was[:both]


def test_the_links_stay() -> None:
    before, after = load("three-datacenters"), with_nodes(load("three-datacenters"), 12)
    assert after.to_dict()["links"] == before.to_dict()["links"]


@pytest.mark.parametrize("name", shipped())
def test_as_many_nodes_as_there_are_change_nothing_in_an_even_topology(name: str) -> None:
    topology = load(name)
    sizes = [len(nodes) for nodes in sites(topology).values()]
    made = with_nodes(topology, sum(sizes))
    resolve(made)
    if sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1:
        assert sites(made) == sites(topology)


def test_one_site_takes_any_number() -> None:
    assert sites(with_nodes(load("one-site"), 1)) == {"dc1": ["n1"]}
    assert sites(with_nodes(load("one-site"), 4)) == {"dc1": ["n1", "n2", "n3", "n4"]}


def test_the_description_does_not_go_on_saying_how_many_there_were() -> None:
    one_site = load("one-site")
    assert with_nodes(one_site, 3).description == one_site.description
    for nodes in (1, 6):
        assert f"here with {nodes} node" in with_nodes(one_site, nodes).description


@pytest.mark.parametrize(("nodes", "says"), [(2, "fewer than topology"), (10**6, "more than")])
def test_what_does_not_fit_the_sites_is_refused(nodes: int, says: str) -> None:
    with pytest.raises(UserError, match=says):
        with_nodes(load("three-datacenters"), nodes)
