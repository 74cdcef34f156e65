"""What people call a link, a node, a site or a partition is found, or told what there is."""

from __future__ import annotations

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.links import Direction, lan_down, lan_up, wan
from wanlat.emulator.targets import Targets
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import LanLink, Node, Plan, Site, WanLink

PLAN = mesh(3, 2, wan=ms(1))  # dc1: n1 n2, dc2: n3 n4, dc3: n5 n6


def found(target: object, plan: Plan = PLAN) -> set[str]:
    return {str(each) for each in Targets(plan).directions(target)}


@pytest.mark.parametrize(
    ("text", "directions"),
    [
        ("dc1:dc2", {"dc1->dc2"}),
        ("dc1->dc2", {"dc1->dc2"}),
        ("dc1/dc2", {"dc1->dc2", "dc2->dc1"}),
        ("n1", {"n1->dc1", "dc1->n1"}),
        ("n1:dc1", {"n1->dc1"}),
        ("dc1:n1", {"dc1->n1"}),
        ("n1/dc1", {"n1->dc1", "dc1->n1"}),
        ("dc1", {"dc1->dc2", "dc2->dc1", "dc1->dc3", "dc3->dc1"}),
        ("dc1.wan", {"dc1->dc2", "dc2->dc1", "dc1->dc3", "dc3->dc1"}),
        ("dc1.lan", {"n1->dc1", "dc1->n1", "n2->dc1", "dc1->n2"}),
        ("site.dc1.lan", {"n1->dc1", "dc1->n1", "n2->dc1", "dc1->n2"}),
        ("n1,n4", {"n1->dc1", "dc1->n1", "n4->dc2", "dc2->n4"}),
        ("dc1,dc2/dc3", {"dc1->dc3", "dc3->dc1", "dc2->dc3", "dc3->dc2"}),
        ("dc1:dc2,dc3", {"dc1->dc2", "dc1->dc3"}),
        ("n1,n2:n3,n4", {"dc1->dc2"}),
        ("n1,n2,dc2:dc3", {"dc1->dc3", "dc2->dc3"}),
    ],
)
def test_a_name_is_what_it_is_called(text, directions):
    assert found(text) == directions


def test_directions_and_several_of_anything_are_targets():
    assert found(wan("dc1", "dc2")) == {"dc1->dc2"}
    assert found([wan("dc1", "dc2"), "n1", ["dc1/dc2"]]) == {
        *("dc1->dc2", "dc2->dc1", "n1->dc1", "dc1->n1")
    }
    twice = Targets(PLAN).directions(["dc1:dc2", "dc1/dc2"])
    assert twice == (wan("dc1", "dc2"), wan("dc2", "dc1"))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("dc9", "did you mean `dc"),
        ("dc1/dc9", "no site or node `dc9`"),
        ("n1/n3", "n1 shares the WAN links of site dc1 with n2"),
        ("dc1/dc1", "cannot be on both sides"),
        ("n1,dc2/dc2", "shares|both sides"),
        ("dc1/dc2/dc3", "more than two ends"),
        ("dc1:", "empty name"),
        ("", "empty name"),
        ("n1.lan", "`n1` is a node, which is not one whole site"),
        ([], "names no link"),
        (wan("dc1", "dc7"), "no link dc1->dc7"),
        (lan_up("n1", "dc2"), "no link n1->dc2"),
        (Direction("wan", "n1", "dc1"), "no link n1->dc1"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(target, says):
    with pytest.raises(UserError, match=says):
        found(target)


def test_a_site_and_a_node_of_one_name_are_told_apart():
    nodes = (Node("a", "a", "10.1.0.1"), Node("b", "wan", "10.2.0.1"))
    sites = tuple(
        Site(node.site, index, f"10.{index}.0.0/16", f"10.{index}.255.254", (node,))
        for index, node in enumerate(nodes, start=1)
    )
    nothing = ms(0)
    plan = Plan(
        "namesakes",
        sites,
        nodes,
        tuple(LanLink(node.name, node.site, nothing, nothing) for node in nodes),
        (WanLink("a", "wan", nothing, nothing),),
    )
    with pytest.raises(UserError, match=r"`site.a` or `node.a`"):
        found("a", plan)
    assert found("node.a", plan) == {"a->a"}
    assert set(Targets(plan).directions("node.a")) == {lan_up("a", "a"), lan_down("a", "a")}
    assert found("site.a", plan) == {"a->wan", "wan->a"}
    assert found("wan", plan) == {"a->wan", "wan->a"}, "a name goes before a word of ours"
