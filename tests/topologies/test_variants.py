"""A topology with other delays between its sites, or with another number of nodes."""

import re

import pytest

from wanlat.topologies.errors import UserError
from wanlat.topologies.load import TopologyError, load, shipped
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Duration
from wanlat.topologies.variants import override, with_nodes


def mixed(**default: object) -> Topology:
    link = {"rtt": "100ms", "jitter": "20ms", "loss": "1%", **default}
    pairs = [
        {"between": ["a", "b"], "rtt": "8ms", "jitter": "1ms"},
        {"from": "a", "to": "c", "delay": "60ms", "jitter": "10ms"},
    ]
    sites = [
        {"name": "a", "nodes": ["n1", "n4"], "lan": {"rtt": "2ms", "jitter": "1ms"}},
        {"name": "b", "nodes": ["n2"]},
        {"name": "c", "nodes": ["n3"]},
    ]
    links = {"default": link, "pairs": pairs}
    return Topology.model_validate({"name": "mixed", "sites": sites, "links": links})


def ms(value: float) -> Duration:
    return Duration(round(value * 10**6))


def test_jitter_0_leaves_every_delay_and_no_shape() -> None:
    for shape in ({}, {"distribution": "normal"}, {"distribution": "table", "table": [1, 2, 7]}):
        before, steady = resolve(mixed(**shape)), override(mixed(**shape), jitter=ms(0))
        plan = resolve(steady)
        assert steady == override(mixed(), jitter=ms(0))
        assert plan.jitter_ms("n2", "n3") == 0
        assert plan.jitter_ms("n1", "n4") == 1  # a site's own
        for a, b in [("n1", "n2"), ("n1", "n3"), ("n2", "n3")]:
            assert plan.rtt_ms(a, b) == before.rtt_ms(a, b)


def test_rtt_and_jitter_reach_every_pair_and_direction_and_nothing_else() -> None:
    changed = override(mixed(distribution="normal"), rtt=ms(40), jitter=ms(4))
    for link in resolve(changed).wan_links:
        for way in (link.forward, link.backward):
            assert (way.delay_ns, way.jitter_ns) == (20_000_000, 2_000_000)
    assert changed.sites == mixed().sites
    default = changed.links.default
    assert default is not None and default.distribution == "normal"
    assert str(default.loss) == "1%"
    assert override(mixed()) == mixed()


def test_a_jitter_too_large_is_refused_with_every_link_and_the_largest() -> None:
    with pytest.raises(TopologyError, match="topology mixed with rtt 10ms") as caught:
        override(mixed(), rtt=ms(10))
    places = ["links.default.jitter", "links.pairs[1].jitter"]
    assert [mistake.where for mistake in caught.value.mistakes] == places
    # The largest that is named is one that is taken.
    normal = mixed(distribution="normal")
    with pytest.raises(TopologyError) as caught:
        override(normal, jitter=ms(28))
    (limit,) = re.findall("rtt `100ms`.*at most `([0-9a-z.]+)`", str(caught.value))
    assert override(normal, rtt=ms(100), jitter=Duration.parse(limit))


def sites(topology: Topology) -> dict[str, list[str]]:
    return {site.name: list(site.node_names) for site in topology.sites}


def test_nodes_are_spread_evenly_and_those_that_stay_keep_their_name_and_site() -> None:
    topology = load("three-datacenters")
    before = sites(topology)
    for nodes in (3, 4, 8, 24):
        made = with_nodes(topology, nodes)
        after = sites(made)
        counts = [len(names) for names in after.values()]
        assert sum(counts) == nodes and counts == sorted(counts, reverse=True)
        assert counts[0] - counts[-1] <= 1
        assert len({name for names in after.values() for name in names}) == nodes
        for name, was in before.items():
            assert after[name][: len(was)] == was[: len(after[name])]
        assert made.to_dict()["links"] == topology.to_dict()["links"]
    for name in shipped():
        topology = load(name)
        assert sites(with_nodes(topology, len(resolve(topology).nodes))) == sites(topology)


def test_names_go_on() -> None:
    assert sites(with_nodes(load("one-site"), 4)) == {"dc1": ["n1", "n2", "n3", "n4"]}
    named = Topology.model_validate({"name": "t", "sites": [{"name": "a", "nodes": ["db", "x"]}]})
    assert sites(with_nodes(named, 4)) == {"a": ["db", "x", "a-1", "a-2"]}


@pytest.mark.parametrize(("nodes", "says"), [(2, "fewer than topology"), (10**6, "more than")])
def test_what_does_not_fit_the_sites_is_refused(nodes: int, says: str) -> None:
    with pytest.raises(UserError, match=says):
        with_nodes(load("three-datacenters"), nodes)
