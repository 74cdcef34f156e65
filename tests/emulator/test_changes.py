"""Settings mean what they mean in a topology file; changes and holds add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.plans import ms
from wanlat.emulator.changes import Change, fitting, mistakes
from wanlat.emulator.impairments import Stack
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Impairment, resolve


def resolved(**settings: object) -> Impairment:
    """Return what a topology makes of a direction."""
    sites = [{"name": "a", "nodes": 1}, {"name": "b", "nodes": 1}]
    pairs = [{"from": "a", "to": "b", **settings}, {"from": "b", "to": "a", "delay": 0}]
    plan = resolve(
        Topology.model_validate({"name": "t", "sites": sites, "links": {"pairs": pairs}})
    )
    return plan.wan_links[0].forward


def after(before: Impairment, *, both_ways: bool = False, **settings: object) -> Impairment:
    return Change.parse(settings, both_ways=both_ways).on(before)


@pytest.mark.parametrize(
    "settings",
    [
        {"delay": "20ms"},
        {"delay": "20ms", "jitter": "1.5ms"},
        {"delay": "20ms", "jitter": "2ms", "distribution": "normal"},
        {"delay": "20ms", "jitter": "2ms", "distribution": "table", "table": [1, 2, 3, 9]},
        {"delay": "20ms", "jitter": "2ms", "reorder": True},
        {"delay": "20ms", "reorder": "1%"},
        {"delay": "0ms", "loss": "5%", "duplicate": "0.1%", "corrupt": 0.01},
        {"delay": "1ms", "loss": {"p": "1%", "r": "30%"}},
        {"delay": "1ms", "rate": "10mbit", "queue": "64KiB"},
    ],
)
def test_settings_mean_what_they_mean_in_a_topology_file(settings):
    assert after(Impairment(), **settings) == resolved(**settings)


def test_a_sign_adds_to_what_is_there():
    assert after(ms(10, jitter=2), delay="+5ms", jitter="-1ms") == ms(15, jitter=1)
    assert after(ms(10), delay="-15ms") == ms(0), "and nothing is below zero"


def test_a_round_trip_is_halved_with_its_jitter():
    both = {"both_ways": True}
    assert after(ms(10), rtt="100ms", jitter="20ms", **both) == ms(50, jitter=10)
    assert after(ms(10), rtt="+100ms", **both) == ms(60)
    assert after(ms(10), jitter="4ms", **both) == ms(10, jitter=4)


def test_none_removes():
    before = ms(10, jitter=2, rate_bps=1000, queue_bytes=9000, loss=0.1)
    assert after(before, rate=None) == after(before, rate="none") == ms(10, jitter=2, loss=0.1)
    assert after(before, loss=None, jitter="none") == ms(10, rate_bps=1000, queue_bytes=9000)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "Nothing"),
        ({"dealy": "1ms"}, "did you mean `delay`"),
        ({"rtt": "1ms"}, "only one of them"),
        ({"delay": "1"}, "delay: `1` has no unit"),
        ({"loss": "200%"}, "loss: .*outside"),
        ({"distribution": "gauss"}, "distribution: "),
        ({"distribution": "table"}, "needs a `table`"),
        ({"table": "/nowhere"}, "table: .*nowhere"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(settings, says):
    with pytest.raises(UserError, match=says):
        Change.parse(settings, both_ways=False)


def test_what_does_not_fit_together_is_told():
    assert mistakes(ms(10, jitter=10)) == ()
    assert "negative" in mistakes(ms(10, jitter=11))[0]
    assert "negative" in mistakes(ms(10, jitter=9, distribution="normal"))[0]
    assert "rate" in mistakes(ms(10, queue_bytes=3000))[0]
    for odd in (ms(10, jitter=11), ms(10, jitter=9, distribution="normal"), ms(0, jitter=1)):
        assert mistakes(fitting(odd)) == ()


impairments = st.builds(
    lambda delay, loss, rate: ms(delay, loss=loss, rate_bps=rate),
    st.integers(0, 100),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([None, 10**6]),
)
settings = st.fixed_dictionaries(
    {},
    optional={
        "delay": st.sampled_from(["1ms", "20ms", "+5ms", "+50ms"]),
        "loss": st.sampled_from(["0%", "1%", "100%"]),
        "rate": st.sampled_from(["1mbit", "none"]),
    },
).filter(bool)
changes = st.one_of(
    impairments.map(Change.to), settings.map(lambda each: Change.parse(each, both_ways=False))
)


@given(impairments, st.lists(st.tuples(st.sampled_from(["stays", "a", "b"]), changes), max_size=8))
def test_what_a_hold_did_is_gone_when_it_ends_and_nothing_else(base, made):
    stack, alone = Stack(base), Stack(base)
    for holder, change in made:
        stack = stack.changed([change], None if holder == "stays" else holder)
        if holder == "stays":
            alone = alone.changed([change])
    assert stack.without("a").without("b") == stack.without("b").without("a") == alone
    assert stack.cut("x").top.loss == 1
    assert stack.cut("x").cut("y").without("x").is_cut
    assert not stack.cut("x").without("x").is_cut
    assert stack.cut("x").healed().top == stack.top


def test_no_delay_is_left_below_zero_when_a_hold_ends():
    stack = Stack(ms(2)).changed([Change.parse({"delay": "+50ms"}, both_ways=False)], "slow")
    jittery = stack.changed([Change.parse({"jitter": "20ms"}, both_ways=False)])
    assert jittery.top == ms(52, jitter=20)
    assert jittery.without("slow").top == ms(2, jitter=2)
    lossy = jittery.changed([Change.parse({"loss": "1%"}, both_ways=False)], "lossy")
    assert lossy.without("slow").top == ms(2, jitter=2, loss=0.01)
    assert lossy.without("slow").without("lossy").top == ms(2, jitter=2)
