"""Resolving: the numbers of a plan are those one computes by hand from the file."""

import dataclasses
import ipaddress
import math
import random
from typing import Any

import numpy as np
import pytest

from wanlat.topologies import shapes
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import GilbertElliott, Impairment, Plan, WanLink, resolve

MS = 10**6


def plan_of(**fields: Any) -> Plan:
    return resolve(Topology.model_validate({"name": "t", **fields}))


def two_sites(**links: Any) -> Plan:
    sites = [{"name": "a", "nodes": ["n1"]}, {"name": "b", "nodes": ["n2"]}]
    return plan_of(sites=sites, links=links)


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
    with pytest.raises(UserError, match=r"no node `n11` \(did you mean `n1`\?\); its nodes are n1"):
        plan.path("n11", "n2")
    with pytest.raises(UserError, match="no site `paris`; its sites are a and b"):
        plan.site("paris")


def test_every_field_of_a_link_reaches_both_its_directions() -> None:
    pair = {
        **{"between": ["b", "a"], "rtt": "8ms", "jitter": "1ms", "distribution": "pareto"},
        **{"loss": "0.1%", "duplicate": "0.2%", "corrupt": "0.3%", "reorder": True},
        **{"rate": "1gbit", "queue": "1MiB"},
    }
    expected = Impairment(
        **{"delay_ns": 4 * MS, "jitter_ns": MS // 2, "distribution": "pareto"},
        **{"reorder": True, "loss": 0.001, "duplicate": 0.002, "corrupt": 0.003},
        **{"rate_bps": 10**9, "queue_bytes": 2**20},
    )
    assert two_sites(pairs=[pair]).wan_links == (WanLink("a", "b", expected, expected),)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"reorder": True}, {"reorder": True}),
        ({"reorder": "1%"}, {"overtake": 0.01}),
        ({"reorder": "0%"}, {}),
        (
            {"loss": {"p": "1%", "r": "30%", "h": "5%"}},
            {"bursts": GilbertElliott(p=0.01, r=0.3, h=0.05, k=1.0)},
        ),
    ],
)
def test_reordering_and_bursts(given: dict[str, Any], expected: dict[str, Any]) -> None:
    forward = two_sites(default={"rtt": "2ms", **given}).wan_links[0].forward
    assert forward == Impairment(delay_ns=MS, **expected)
    if forward.bursts:
        assert forward.loss_probability == pytest.approx(0.01 / 0.31 * 0.95)


def test_ranges_are_those_of_the_distributions_and_deviations_add_up_by_squares() -> None:
    plan = plan_of(
        sites=[
            {"name": "a", "nodes": ["n1"], "lan": {"rtt": "4ms", "jitter": "2ms"}},
            {"name": "b", "nodes": ["n2"]},
        ],
        links={"default": {"rtt": "100ms", "jitter": "20ms", "distribution": "normal"}},
    )
    smallest, largest = shapes.extent("normal")
    expected = (100 + 2 - 1 + 20 * smallest, 100 + 2 + 1 + 20 * largest)
    assert plan.range_ms("n1", "n2") == pytest.approx(expected)
    assert two_sites(default={"rtt": "100ms", "reorder": "1%"}).range_ms("n1", "n2") == (0, 100)
    for distribution, factor in (("normal", 1), ("uniform", math.sqrt(1 / 3))):
        link = {"rtt": "1s", "jitter": "20ms", "distribution": distribution}
        assert two_sites(default=link).deviation_ms("n1", "n2") == pytest.approx(
            20 / math.sqrt(2) * factor
        )


def test_a_direction_that_is_not_given_takes_the_default() -> None:
    plan = two_sites(
        default={"rtt": "100ms", "jitter": "20ms"},
        pairs=[{"from": "b", "to": "a", "delay": "60ms"}],
    )
    (link,) = plan.wan_links
    assert link.backward == Impairment(delay_ns=60 * MS)
    assert link.forward == Impairment(delay_ns=50 * MS, jitter_ns=10 * MS)


def test_a_lan_shares_every_part_between_its_two_legs_but_bursts() -> None:
    parts = {"loss": "19%", "duplicate": "36%", "corrupt": "51%", "reorder": "75%"}
    plan = plan_of(sites=[{"name": "a", "nodes": 2, "lan": {"rtt": "4ms", **parts}}])
    for leg in plan.path("a-1", "a-2"):
        shared = (leg.loss, leg.duplicate, leg.corrupt, leg.overtake)
        assert shared == pytest.approx((0.1, 0.2, 0.3, 0.5))
    for loss, half in ((1e-12, 5e-13), (1, 1)):
        ends = plan_of(sites=[{"name": "a", "nodes": 1, "lan": {"rtt": 0, "loss": loss}}])
        assert ends.lan_links[0].up.loss == pytest.approx(half, rel=1e-9)
    lan = {"rtt": "8ms", "jitter": "2ms", "loss": {"p": "1%", "r": "50%"}}
    up, down = plan_of(sites=[{"name": "a", "nodes": 2, "lan": lan}]).path("a-1", "a-2")
    assert up == Impairment(2 * MS, MS // 2)
    assert down == dataclasses.replace(up, bursts=GilbertElliott(p=0.01, r=0.5))


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


# The shapes of jitter.


def test_the_quantiles_are_those_of_scipy() -> None:
    import scipy.stats

    middles = (np.arange(shapes.QUANTILES) + 0.5) / shapes.QUANTILES
    for name, reference in [("normal", scipy.stats.norm), ("pareto", scipy.stats.pareto(3))]:
        expected = reference.ppf(middles)
        expected = (expected - expected.mean()) / expected.std()
        assert np.allclose(shapes.quantiles(name), expected, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e12])
def test_samples_keep_their_distribution_whatever_their_unit(scale: float) -> None:
    import scipy.stats

    rng = random.Random(5)
    samples = [rng.lognormvariate(0, 0.5) for _ in range(20_000)]
    table = shapes.empirical(tuple(scale * each for each in samples))
    drawn = [shapes.draw("table", rng.random(), table) for _ in range(5000)]
    expected = (np.array(samples) - np.mean(samples)) / np.std(samples)
    assert scipy.stats.ks_2samp(drawn, expected).pvalue > 0.001
    assert scipy.stats.ks_2samp([each * 1.2 for each in drawn], expected).pvalue < 0.001
