"""Placements are ranked by latencies that one can work out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import here
from wanlat.experiments.placement import search
from wanlat.experiments.placement.search import Wish, rank
from wanlat.systems import registry
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve

RTTS_MS = {"ab": 10, "ac": 30, "bc": 50, "ad": 100, "bd": 120, "cd": 70}
"""Between regions a, b, c and d."""


def topology(rtts_ms: Mapping[str, float] = RTTS_MS) -> Topology:
    names = sorted({name for pair in rtts_ms for name in pair})
    pairs = [{"between": [*pair], "rtt": f"{ms}ms"} for pair, ms in rtts_ms.items()]
    sites = [{"name": name, "nodes": 1} for name in names]
    return Topology.model_validate({"name": "four", "sites": sites, "links": {"pairs": pairs}})


PLANTED: dict[str, Any] = {"topology": topology(), "nodes": 3, "clients": "a,d"}
ETCD = Wish("etcd", mix="Put", **PLANTED)


def found(wish: Wish) -> list[tuple[str, str | None, float]]:
    """Regions, leader and mean of every placement, the best first."""
    ranking = rank(wish)
    every = ranking.placements(range(1, len(ranking) + 1))
    return [("".join(each.regions), each.leader, each.mean_ms) for each in every]


def test_a_leader_waits_for_its_nearest_majority_and_others_forward_to_it() -> None:
    # In abc, led by a, which waits 10 ms for b: clients in a wait 10 ms; those in d send to c, 70
    # ms away, which sends to a, 30 ms away: 110 ms.
    assert found(ETCD) == [("abc", "a", 60), ("abd", "a", 60), ("acd", "a", 80), ("bcd", "b", 115)]
    (first,) = rank(ETCD).placements([1])
    assert (first.worst_client, first.worst_client_ms) == ("d", 110)
    assert [(each.target, each.way_ms) for each in first.clients] == [("a", 0), ("c", 70)]
    assert [(each.target, each.ms) for each in first.requests] == [("a", 10), ("c", 40)]


def test_what_a_lost_region_costs_is_known_and_may_be_ranked_by() -> None:
    # Of abc without a, b and c are the majority, 50 ms apart: 60 and 170 ms, led by b.
    lost = rank(ETCD).placements([1])[0].lost
    assert (lost.region, lost.leader, lost.mean_ms) == ("a", "b", 115)
    by_loss = rank(Wish("etcd", mix="Put", rank_by="lost", **PLANTED))
    every = [("".join(each.regions), each.lost.mean_ms) for each in by_loss.placements(range(1, 5))]
    assert every == [("abc", 115), ("acd", 150), ("abd", 185), ("bcd", 185)]
    (alone,) = rank(Wish("etcd", topology(), nodes=1, regions="a")).placements([1])
    assert (alone.lost.mean_ms, alone.lost.leader) == (None, None)


def test_the_worst_client_has_another_leader() -> None:
    wish = Wish("etcd", mix="Put", rank_by="worst", **PLANTED)
    assert found(wish)[0] == ("abc", "c", 80)
    assert [each.worst_client_ms for each in rank(wish).placements(range(1, 5))] == [
        100,
        100,
        110,
        120,
    ]


@pytest.mark.parametrize(
    ("system", "options", "mix", "means_ms"),
    [
        # Nobody leads: the target node waits for its own majority. c waits 30 ms, d 70 ms.
        ("quorum", {}, "PutObject", {"abc": (10 + 100) / 2, "acd": (30 + 70) / 2}),
        ("quorum", {"protocol": "rounds:3"}, "PutObject", {"abc": (30 + 160) / 2}),
        ("etcd", {}, "SerializableRange", {"abc": 35, "abd": 0}),
        ("etcd", {}, "SerializableRange=75%,Put=25%", {"abd": 60 / 4}),
        # Two replicas are to have it: the farthest counts.
        ("redis", {"wait": 2}, "Set", {"abc": (30 + 70 + 30 + 30) / 2}),
        ("redis", {"wait": 0}, "Set", {"abc": (0 + 70 + 30) / 2}),
        ("zookeeper", {}, "Create=50%,Get=50%", {"abd": 60 / 2}),
    ],
)
def test_a_definition_says_what_is_waited_for(
    system: str, options: dict[str, Any], mix: str, means_ms: dict[str, float]
) -> None:
    every = {
        regions: mean_ms
        for regions, _, mean_ms in found(Wish(system, mix=mix, options=options, **PLANTED))
    }
    assert {regions: every[regions] for regions in means_ms} == means_ms


def test_a_measured_number_of_round_trips_is_to_a_majority() -> None:
    wish = Wish("garage", mix="PutObject", measured={"PutObject": 2.5}, **PLANTED)
    every = {regions: mean_ms for regions, _, mean_ms in found(wish)}
    assert every["abc"] == (25 + 70 + 2.5 * 30) / 2
    assert rank(wish).sources == {"PutObject": "measured: 2.5 round trips"}


@pytest.mark.parametrize("system", ["etcd", "quorum", "nats", "postgresql", "redis", "zookeeper"])
def test_where_all_are_equally_far_it_is_round_trips_times_the_rtt(system: str) -> None:
    ours, plan = registry.get(system), resolve(load("five-sites"))
    given = ours.parse_options({})

    def distance(a: str, b: str) -> np.ndarray:
        return np.array([0.0 if a == b else 1.0, 0.0 if a == b else 80.0])

    names = [*ours.definition.endpoints] or ["GetObject", "PutObject"]
    for target in ("n1", "n4"):
        for name in names:
            trips = ours.promised_round_trips(plan, given, target, name, "unknown")
            ms = ours.promised_distance(plan, given, target, name, distance)
            assert (trips is None and ms is None) or np.broadcast_to(ms, 2).tolist() == [
                trips,
                80 * trips,
            ], name


def test_a_ranking_of_many_parts_is_that_of_each_placement_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    pairs = ["".join(pair) for pair in combinations("abcdefg", 2)]
    wish = Wish("etcd", topology(dict(zip(pairs, rng.integers(5, 300, 21), strict=True))), nodes=5)
    monkeypatch.setattr(search, "_AT_ONCE", 4)
    every = found(wish)
    assert len(every) == 21
    for regions, leader, mean_ms in every:
        (alone,) = found(Wish("etcd", wish.topology, 5, ",".join(regions), "a,b,c,d,e,f,g"))
        assert alone == (regions, leader, pytest.approx(mean_ms))
    assert [each[2] for each in every] == sorted(each[2] for each in every)
    fixed = found(Wish("etcd", wish.topology, nodes=5, fixed="b,g"))
    assert fixed == [each for each in every if {"b", "g"} <= {*each[0]}]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"regions": "a,b,c,de"}, "--regions: four has no region `de` (did you mean `d`?)"),
        ({"fixed": "x"}, "--fixed: four has no region `x`; it has a, b, c and d."),
        ({"clients": "a=60%,q=40%"}, "--clients: there is no region `q`"),
        ({"clients": "a=60%,b=30%"}, "shares add up to 90 %, not to 100 %"),
        ({"clients": "a=60,b=40"}, "--clients: `a`: "),
        ({"clients": "a,a"}, "--clients: `a` is given twice"),
        ({"clients": "a=100%,b=0%"}, "`b` has a share of nothing; leave it out"),
        ({"mix": "Pot=100%"}, "no endpoint of etcd `Pot` (did you mean `Put`?)"),
        ({"nodes": 5}, "--nodes 5: every node is in a region of its own, and there are 4"),
        ({"regions": "a,b"}, "--nodes 3: every node is in a region of its own, and there are 2"),
        ({"regions": "a,b,c", "fixed": "d"}, "--fixed: d is not among --regions (a, b and c)"),
        ({"fixed": "a,b,c,d"}, "--fixed: 4 regions, and --nodes 3"),
        ({"options": {"heartbeet": 1}}, "heartbeat"),
        ({"system": "service"}, "The definition of system service has no `endpoints`"),
        ({"system": "garage"}, "--systems garage`) and give the bundle: --from BUNDLE"),
    ],
)
def test_what_cannot_be_placed_is_refused(wish: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        rank(Wish(**{"system": "etcd", **PLANTED, **wish}))
    assert said in str(refused.value)


def test_too_many_placements_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_PLACEMENTS", 3)
    with pytest.raises(UserError, match="There are 4 ways to put 3 nodes into 4 regions, more"):
        rank(ETCD)


MATRIX = ",eu,us,ap\neu,0,80,150\nus,84,0,120\nap,150,120,0\n"


def test_a_matrix_of_the_users_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(MATRIX)
    done = here("place", f"{tmp_path}/own.csv", "--system", "etcd", "--clients", "us", "--json")
    assert done.returncode == 0, done.stderr
    assert '"mean_ms": 82.0' in done.stdout  # led from us: to eu and back, the mean of two figures
    assert "have two different round trips, which both ends measured; the mean is" in done.stderr
    assert "north-europe" not in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MATRIX.replace("150", ""), "own.csv: 1 figure is missing: eu to ap"),
        (MATRIX.replace("84", "far"), "own.csv:3: from us to eu: "),
        (MATRIX.replace("us,84", "uk,84"), "own.csv:3: row `uk` has no column of that name"),
    ],
)
def test_what_is_wrong_in_a_matrix_is_said_with_a_way_out(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "own.csv").write_text(text)
    done = here("place", f"{tmp_path}/own.csv", "--system", "etcd")
    assert done.returncode == 2
    assert said in done.stderr
    assert "own.csv -o regions.yaml` has options for a matrix like that" in done.stderr
