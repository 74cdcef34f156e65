"""Roles are drawn with a seed, their nodes are disjoint, and what cannot be is said so."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.plans import mesh
from wanlat.emulator.faults.roles import draw
from wanlat.topologies.errors import UserError

FOUR = mesh(4)  # one node a site
SITES = mesh(3, 2)  # n1, n2 in dc1; n3, n4 in dc2; n5, n6 in dc3
PAIRS = [("n1", "n2"), ("n3", "n4"), ("n5", "n6")]


def test_a_seed_gives_the_same_roles_and_another_seed_others():
    spec = {"victim": "one", "survivor": "one"}
    draws = [draw(spec, FOUR, {}, seed) for seed in range(40)]
    assert draws == [draw(spec, FOUR, {}, seed) for seed in range(40)]
    assert len({tuple(roles.items()) for roles in draws}) == 12, "all pairs of four are drawn"
    # A bundle's seed must give the same roles years later, with another Python.
    assert draw({"a": "one", "b": 2, "c": "rest"}, SITES, {}, 1) == {
        "a": ("n2",),
        "b": ("n4", "n6"),
        "c": ("n1", "n3", "n5"),
    }
    drawn = Counter(draw({"v": "one"}, FOUR, {}, seed)["v"][0] for seed in range(2000))
    assert all(abs(drawn[f"n{n}"] - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5 for n in (1, 2, 3, 4))


def test_sites_are_drawn_whole_and_what_is_named_outright_is_set_aside_first():
    for seed in range(30):
        roles = draw({"lost": "one site", "left": "rest"}, SITES, {}, seed)
        assert roles["lost"] in PAIRS
        assert sorted(roles["lost"] + roles["left"]) == ["n1", "n2", "n3", "n4", "n5", "n6"]
        # Chance might have taken a node of each; then it is drawn again.
        assert draw({"pair": 2, "lost": "2 sites"}, SITES, {}, seed)["pair"] in PAIRS
        spec = {"any": "one", "few": "rest", "head": "leader", "far": ["dc3", "n4"]}
        roles = draw(spec, SITES, {"leader": ("n1",)}, seed)
        assert list(roles) == ["any", "few", "head", "far"]
        assert roles["head"] == ("n1",) and roles["far"] == ("n4", "n5", "n6")
        assert set(roles["any"] + roles["few"]) == {"n2", "n3"}


@settings(max_examples=200)
@given(
    picks=st.lists(st.sampled_from(["one", "minority", 1, 2, "one site", "rest", "n2", "dc3"])),
    seed=st.integers(0, 2**40),
)
def test_names_are_disjoint_or_it_is_said_why_not(picks, seed):
    spec = {f"name{place}": pick for place, pick in enumerate(picks)}
    try:
        roles = draw(spec, SITES, {}, seed)
    except UserError as error:
        assert str(error).startswith(("roles: ", "There is no room"))
        return
    members = [node for nodes in roles.values() for node in nodes]
    assert len(members) == len(set(members))
    assert list(roles) == list(spec)
    assert all(roles.values())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"v": "onee"}, "did you mean `one`?"),
        ({"v": []}, "v is a list"),
        ({"v": ["one"]}, "no site or node `one`"),
        ({"v": "leader"}, "stands for no node just now"),
        ({"n1": "one"}, "`n1` is a node of mesh"),
        ({"rest": "one"}, "`rest` has another meaning"),
        ({"a b": "one"}, "`a b` is no name"),
        ({"a": "n1", "b": ["n1", "n2"]}, "b and a both have n1"),
        ({"a": "rest", "b": "rest"}, "a and b all select the rest"),
        ({"a": 3, "b": "majority"}, "b is `majority`, and 1 of the 4 nodes"),
        ({"a": 3, "b": "2 sites"}, "1 of the 4 sites"),
    ],
)
def test_what_cannot_be_is_said(spec, said):
    with pytest.raises(UserError) as error:
        draw(spec, FOUR, {"leader": ()}, 1)
    assert said in str(error.value)
