"""Resolving: the numbers of a plan are those one computes by hand from the file."""

import dataclasses
import ipaddress
import math
from typing import Any

import pytest

from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import GilbertElliott, Impairment, Plan, WanLink, resolve
from wanlat.topologies.shapes import extent

MS = 10**6


def plan_of(**fields: Any) -> Plan:
    return resolve(Topology.model_validate({"name": "t", **fields}))


def two_sites(**links: Any) -> Plan:
    sites = [{"name": "a", "nodes": ["n1"]}, {"name": "b", "nodes": ["n2"]}]
    return plan_of(sites=sites, links=links)


def test_five_sites_are_100_ms_give_or_take_20_apart_every_two() -> None:
    plan = resolve(load("five-sites"))
    assert [(site.name, [node.name for node in site.nodes]) for site in plan.sites] == [
        (f"dc{i}", [f"n{i}"]) for i in range(1, 6)
    ]
    half = Impairment(delay_ns=50 * MS, jitter_ns=10 * MS)
    assert len(plan.wan_links) == 10
    assert all(link.forward == link.backward == half for link in plan.wan_links)
    for a in plan.nodes:
        for b in plan.nodes:
            expected = (0.0, 0.0) if a == b else (100.0, 20.0)
            assert (plan.rtt_ms(a.name, b.name), plan.jitter_ms(a.name, b.name)) == expected


def test_three_datacenters_are_half_a_millisecond_inside_and_add_it_outside() -> None:
    plan = resolve(load("three-datacenters"))
    assert [[node.name for node in site.nodes] for site in plan.sites] == [
        ["n1", "n2"],
        ["n3", "n4"],
        ["n5", "n6"],
    ]
    leg = Impairment(delay_ns=125_000)
    assert {(link.up, link.down) for link in plan.lan_links} == {(leg, leg)}
    assert (plan.rtt_ms("n1", "n2"), plan.jitter_ms("n1", "n2")) == (0.5, 0.0)
    # 100 ms of the link, and once half of each site's 0.5 ms.
    assert (plan.rtt_ms("n1", "n3"), plan.jitter_ms("n1", "n3")) == (100.5, 20.0)
    assert (plan.rtt_ms("n6", "n3"), plan.jitter_ms("n6", "n3")) == (100.5, 20.0)


def test_a_path_is_up_across_and_down() -> None:
    plan = plan_of(
        sites=[
            {"name": "a", "nodes": ["n1", "n2"], "lan": {"rtt": "4ms", "jitter": "2ms"}},
            {"name": "b", "nodes": ["n3"], "lan": {"rtt": "8ms"}},
        ],
        links={"default": {"rtt": "20ms", "jitter": "6ms"}},
    )
    up = Impairment(delay_ns=1 * MS, jitter_ns=MS // 2)
    wan = Impairment(delay_ns=10 * MS, jitter_ns=3 * MS)
    down = Impairment(delay_ns=2 * MS)
    assert plan.path("n1", "n3") == (up, wan, down)
    assert plan.path("n3", "n1") == (down, wan, up)
    assert plan.path("n1", "n2") == (up, up)
    assert plan.path("n1", "n1") == ()
    assert plan.rtt_ms("n1", "n3") == 20 + 4 / 2 + 8 / 2
    assert plan.jitter_ms("n1", "n3") == 6 + 2 / 2


def test_every_field_of_a_link_reaches_both_its_directions() -> None:
    pair = {
        "between": ["b", "a"],
        "rtt": "8ms",
        "jitter": "1ms",
        "distribution": "pareto",
        "loss": "0.1%",
        "duplicate": "0.2%",
        "corrupt": "0.3%",
        "rate": "1gbit",
        "queue": "1MiB",
        "reorder": True,
    }
    plan = two_sites(pairs=[pair])
    expected = Impairment(
        delay_ns=4 * MS,
        jitter_ns=MS // 2,
        distribution="pareto",
        reorder=True,
        loss=0.001,
        duplicate=0.002,
        corrupt=0.003,
        rate_bps=10**9,
        queue_bytes=2**20,
    )
    assert plan.wan_links == (WanLink("a", "b", expected, expected),)


def test_reordering_is_by_jitter_or_by_a_part_that_overtakes() -> None:
    def way(reorder: Any) -> Impairment:
        return two_sites(default={"rtt": "2ms", "reorder": reorder}).wan_links[0].forward

    assert way(True) == Impairment(delay_ns=MS, reorder=True)
    assert way("1%") == way(0.01) == Impairment(delay_ns=MS, overtake=0.01)
    assert way(False) == way(0) == way("0%") == Impairment(delay_ns=MS)


def test_loss_in_bursts_reaches_each_direction() -> None:
    plan = two_sites(default={"rtt": 0, "loss": {"p": "1%", "r": "30%", "h": "5%"}})
    chain = GilbertElliott(p=0.01, r=0.3, h=0.05, k=1.0)
    assert plan.wan_links[0].backward == Impairment(bursts=chain)
    bad = 0.01 / 0.31
    assert plan.wan_links[0].backward.loss_probability == pytest.approx(bad * 0.95)


def test_the_range_of_a_path_is_that_of_its_distributions() -> None:
    plan = plan_of(
        sites=[
            {"name": "a", "nodes": ["n1"], "lan": {"rtt": "4ms", "jitter": "2ms"}},
            {"name": "b", "nodes": ["n2"]},
        ],
        links={"default": {"rtt": "100ms", "jitter": "20ms", "distribution": "normal"}},
    )
    lowest, highest = plan.range_ms("n1", "n2")
    smallest, largest = extent("normal")
    assert lowest == pytest.approx(100 + 2 - 1 + 20 * smallest)
    assert highest == pytest.approx(100 + 2 + 1 + 20 * largest)
    assert plan.range_ms("n1", "n1") == (0, 0)


def test_whoever_overtakes_passes_without_delay() -> None:
    plan = two_sites(default={"rtt": "100ms", "reorder": "1%"})
    assert plan.range_ms("n1", "n2") == (0, 100)


def test_the_standard_deviation_of_a_path_adds_up_by_squares() -> None:
    normal = two_sites(default={"rtt": "1s", "jitter": "20ms", "distribution": "normal"})
    assert normal.deviation_ms("n1", "n2") == pytest.approx(20 / math.sqrt(2))
    uniform = two_sites(default={"rtt": "1s", "jitter": "20ms"})
    assert uniform.deviation_ms("n1", "n2") == pytest.approx(20 / math.sqrt(2) / math.sqrt(3))
    lan = {"rtt": "1s", "jitter": "20ms", "distribution": "pareto"}
    inside = plan_of(sites=[{"name": "a", "nodes": 2, "lan": lan}])
    assert inside.deviation_ms("a-1", "a-2") == pytest.approx(20 / 2)


def test_the_two_directions_may_differ() -> None:
    plan = two_sites(
        pairs=[
            {"from": "b", "to": "a", "delay": "60ms", "jitter": "10ms"},
            {"from": "a", "to": "b", "delay": "30ms"},
        ]
    )
    (link,) = plan.wan_links
    assert link.forward == Impairment(delay_ns=30 * MS)
    assert link.backward == Impairment(delay_ns=60 * MS, jitter_ns=10 * MS)
    assert (plan.rtt_ms("n1", "n2"), plan.rtt_ms("n2", "n1")) == (90, 90)
    assert plan.jitter_ms("n1", "n2") == 10


def test_a_direction_that_is_not_given_takes_the_default() -> None:
    plan = two_sites(
        default={"rtt": "100ms", "jitter": "20ms"},
        pairs=[{"from": "a", "to": "b", "delay": "60ms"}],
    )
    (link,) = plan.wan_links
    assert link.forward == Impairment(delay_ns=60 * MS)
    assert link.backward == Impairment(delay_ns=50 * MS, jitter_ns=10 * MS)
    assert plan.rtt_ms("n1", "n2") == 110


def test_a_lan_shares_every_part_between_its_two_legs() -> None:
    parts = {"loss": "19%", "duplicate": "36%", "corrupt": "51%", "reorder": "75%"}
    plan = plan_of(sites=[{"name": "a", "nodes": 2, "lan": {"rtt": "4ms", **parts}}])
    for leg in plan.path("a-1", "a-2"):
        shared = (leg.loss, leg.duplicate, leg.corrupt, leg.overtake)
        assert shared == pytest.approx((0.1, 0.2, 0.3, 0.5))
    for loss, half in ((0, 0), (1e-12, 5e-13), (1, 1)):
        ends = plan_of(sites=[{"name": "a", "nodes": 1, "lan": {"rtt": 0, "loss": loss}}])
        assert ends.lan_links[0].up.loss == pytest.approx(half, rel=1e-9)


def test_a_lan_has_its_bursts_on_the_leg_down_and_its_jitter_on_all_four() -> None:
    lan = {"rtt": "8ms", "jitter": "2ms", "distribution": "normal"}
    lan |= {"loss": {"p": "1%", "r": "50%"}}
    up, down = plan_of(sites=[{"name": "a", "nodes": 2, "lan": lan}]).path("a-1", "a-2")
    assert up == Impairment(2 * MS, MS // 2, distribution="normal")
    assert down == dataclasses.replace(up, bursts=GilbertElliott(p=0.01, r=0.5))


def test_an_access_line_has_its_two_directions_as_they_are_given() -> None:
    up = {"delay": "10ms", "rate": "1mbit", "loss": "1%"}
    down = {"delay": "5ms", "jitter": "1ms", "loss": {"p": "1%", "r": "50%"}}
    plan = plan_of(sites=[{"name": "a", "nodes": 2, "access": {"up": up, "down": down}}])
    assert plan.path("a-1", "a-2") == (
        Impairment(10 * MS, loss=0.01, rate_bps=10**6),
        Impairment(5 * MS, MS, bursts=GilbertElliott(p=0.01, r=0.5)),
    )


def test_addresses_stay_unique_and_usable_in_the_largest_site() -> None:
    plan = plan_of(
        sites=[{"name": "a", "nodes": 1}, {"name": "big", "nodes": 60_000}],
        links={"default": {"rtt": 0}},
    )
    site = plan.sites[1]
    network = ipaddress.ip_network(site.subnet)
    addresses = {ipaddress.ip_address(node.address) for node in site.nodes}
    assert len(addresses) == 60_000
    assert all(address in network for address in addresses)
    assert ipaddress.ip_address(site.router_address) not in addresses
    assert not {address.packed[3] for address in addresses} & {0, 255}
    assert (site.nodes[253].address, site.nodes[254].address) == ("10.2.0.254", "10.2.1.1")


def test_an_impairment_knows_when_it_does_nothing() -> None:
    assert Impairment().is_noop
    assert Impairment(reorder=True, overtake=0.1).is_noop  # nothing is on its way
    bursts = GilbertElliott(p=0.1, r=0.1)
    for effect in ({"delay_ns": 1}, {"loss": 0.1}, {"bursts": bursts}, {"rate_bps": 10**9}):
        assert not Impairment(**effect).is_noop  # type: ignore[arg-type]


def test_an_unknown_node_or_site_names_the_nearest() -> None:
    plan = resolve(load("five-sites"))
    with pytest.raises(UserError, match=r"no node `n11` \(did you mean `n1`\?\); its nodes are n1"):
        plan.path("n11", "n2")
    with pytest.raises(UserError, match="no site `paris`; its sites are dc1, dc2"):
        plan.site("paris")
    assert plan.node("n2").address == "10.2.0.1"


def test_one_direction_of_an_access_line_leaves_the_other_alone() -> None:
    plan = plan_of(sites=[{"name": "a", "nodes": ["n1"], "access": {"up": {"rate": "1mbit"}}}])
    assert plan.lan_links[0].up == Impairment(rate_bps=10**6)
    assert plan.lan_links[0].down == Impairment()
