"""Overriding: every link between sites, and nothing else."""

import re

import pytest

from wanlat.topologies.load import TopologyError, load
from wanlat.topologies.model import Topology
from wanlat.topologies.override import override
from wanlat.topologies.resolve import resolve
from wanlat.topologies.units import Duration

MIXED = Topology.model_validate(
    {
        "name": "mixed",
        "sites": [
            {"name": "a", "nodes": ["n1", "n4"], "lan": {"rtt": "2ms", "jitter": "1ms"}},
            {"name": "b", "nodes": ["n2"]},
            {"name": "c", "nodes": ["n3"]},
        ],
        "links": {
            "default": {"rtt": "100ms", "jitter": "20ms", "loss": "1%"},
            "pairs": [
                {"between": ["a", "b"], "rtt": "8ms", "jitter": "1ms"},
                {"from": "a", "to": "c", "delay": "60ms", "jitter": "10ms"},
            ],
        },
    }
)


def test_jitter_0_leaves_every_delay() -> None:
    plan = resolve(override(MIXED, jitter=Duration(0)))
    assert plan.jitter_ms("n2", "n3") == plan.jitter_ms("n1", "n2") - 0.5 == 0
    before = resolve(MIXED)
    for a, b in [("n1", "n2"), ("n1", "n3"), ("n2", "n3")]:
        assert plan.rtt_ms(a, b) == before.rtt_ms(a, b)


def test_rtt_and_jitter_reach_every_pair_and_direction() -> None:
    plan = resolve(override(MIXED, rtt=Duration.parse("40ms"), jitter=Duration.parse("4ms")))
    for link in plan.wan_links:
        for way in (link.forward, link.backward):
            assert (way.delay_ns, way.jitter_ns) == (20_000_000, 2_000_000)


def test_lans_and_everything_but_delays_stay() -> None:
    changed = override(MIXED, rtt=Duration.parse("40ms"), jitter=Duration(0))
    assert changed.sites == MIXED.sites
    assert changed.links.default is not None and MIXED.links.default is not None
    assert changed.links.default.loss == MIXED.links.default.loss


def test_nothing_asked_changes_nothing() -> None:
    assert override(MIXED) == MIXED
    assert override(load("one-site"), rtt=Duration.parse("1s")) == load("one-site")


def test_an_rtt_below_the_jitter_of_the_file_is_refused_with_every_link() -> None:
    with pytest.raises(TopologyError) as caught:
        override(MIXED, rtt=Duration.parse("10ms"))
    assert [mistake.where for mistake in caught.value.mistakes] == [
        "links.default.jitter",
        "links.pairs[1].jitter",
    ]
    assert "topology mixed with rtt 10ms" in str(caught.value)


def shaped(**fields: str | list[int]) -> Topology:
    values = MIXED.to_dict()
    values["links"]["default"] |= fields
    return Topology.model_validate(values)


def test_a_jitter_keeps_its_shape() -> None:
    topology = shaped(distribution="table", table=[1, 2, 7], correlation="5%")
    changed = override(topology, jitter=Duration.parse("2ms")).links.default
    assert changed is not None and topology.links.default is not None
    assert changed.jitter == Duration.parse("2ms")
    assert changed.distribution == "table"
    assert changed.table == topology.links.default.table
    assert changed.correlation == topology.links.default.correlation


def test_no_jitter_has_no_shape() -> None:
    for fields in ({"distribution": "normal", "correlation": "5%"},
                   {"distribution": "table", "table": [1, 2, 7]}):  # fmt: skip
        steady = override(shaped(**fields), jitter=Duration(0))  # type: ignore[arg-type]
        assert steady == override(MIXED, jitter=Duration(0))


def test_a_jitter_too_large_for_its_shape_is_refused_with_the_largest() -> None:
    with pytest.raises(TopologyError) as caught:
        override(shaped(distribution="normal"), jitter=Duration.parse("28ms"))
    told = str(caught.value)
    assert "topology mixed with jitter 28ms" in told
    assert "links.default.jitter: `28ms` is too large for the rtt `100ms`" in told
    (limit,) = re.findall("rtt `100ms`.*at most `([0-9a-z.]+)`", told)
    widest = override(
        shaped(distribution="normal"), rtt=Duration.parse("100ms"), jitter=Duration.parse(limit)
    )
    lowest, _ = resolve(widest).range_ms("n2", "n3")
    assert 0 <= lowest < 1e-5


def test_an_rtt_too_short_for_the_jitter_and_shape_of_the_file_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"links.default.jitter: `20ms` is too large for the r"):
        override(shaped(distribution="normal"), rtt=Duration.parse("70ms"))
    assert override(shaped(distribution="pareto"), rtt=Duration.parse("20ms"))
