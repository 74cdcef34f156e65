"""The drills that come with wanlat: each can be run on each of its systems, and says how long."""

from __future__ import annotations

from functools import cache

import pytest

from wanlat.experiments.drill.claims import Availability, Claims, claims_on
from wanlat.experiments.drill.files import CLAIMS, load, shipped
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.roles import assign
from wanlat.experiments.drill.timeline import stated
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.yaml_lines import load_yaml_model

FOUR_NODES = {
    *("one-node-killed", "one-node-stopped", "two-nodes-killed", "rolling-loss"),
    *("one-node-slower", "one-link-lossy", "one-node-blackholed", "partition-two-two"),
    *("datacenter-lost", "one-way-cut", "flapping", "disk-full"),
}
STORES = {"quorum", "garage", "minio", "bob"}
LONGEST_S = 600.0
SEEDS = range(20)

scenario = cache(load)


def test_the_drills_that_were_promised_are_there() -> None:
    on = {name: scenario(name).topology for name in shipped()}
    assert {name for name, topology in on.items() if topology == "four-sites"} == FOUR_NODES
    with_distance = {name for name, topology in on.items() if topology == "three-datacenters"}
    assert with_distance == {
        f"{name}-3dc" for name in FOUR_NODES - {"partition-two-two"} | {"partition-one-two"}
    }
    assert set(on) == FOUR_NODES | with_distance


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_drill_is_for_every_store_and_ends_in_ten_minutes(name: str) -> None:
    drill = scenario(name)
    assert drill.name == name
    assert drill.description
    assert set(drill.systems) == STORES
    assert stated(drill).total_s <= LONGEST_S
    assert all(spec.lasts is not None for spec in drill.faults), "each says how long"
    # No client is late while nothing is broken: MinIO's PutObject takes up to ten round trips, and
    # the machine something besides.
    rtt_s = {"four-sites": 0.012, "three-datacenters": 0.12}[drill.topology]
    assert drill.interval.s > 10 * rtt_s


@pytest.mark.parametrize("name", shipped())
def test_whoever_is_drawn_the_faults_and_clients_fit(name: str) -> None:
    drill = scenario(name)
    plan = resolve(load_topology(drill.topology))
    for system in drill.systems:
        for seed in SEEDS:
            assigned = assign(drill, system, plan, seed)
            assert all(step.fault.subject for step in assigned.steps)
            assert len({each.target for each in assigned.places}) == len(assigned.places)


@pytest.mark.parametrize("system", CLAIMS.names())
def test_claims_are_of_their_store_about_all_drills_and_can_be_looked_up(system: str) -> None:
    assert set(CLAIMS.names()) == STORES
    read = load_yaml_model(CLAIMS.find(system), Claims)
    assert read.system == system
    assert {name for claim in read.claims for name in claim.drills} == set(shipped())
    where = "systems/quorum/README.md, " if system == "quorum" else ", https://"
    for claim in read.claims:
        assert claim.id.startswith(f"{system}-")
        assert where in claim.source, claim.id


@pytest.mark.parametrize("name", shipped())
def test_a_claim_of_availability_can_be_decided(name: str) -> None:
    # With every request as claimed, the interval of its share must be able to clear the bound.
    drill = scenario(name)
    for claim in (each for system in drill.systems for each in claims_on(drill, system)):
        if (figure := claim.availability) is None:
            continue
        due = _due(drill, figure)
        widest = 3.84 / (due + 3.84)  # of Wilson's 95 % interval, when none or all succeed
        assert due >= 10, claim.id
        if figure.at_least is not None:
            assert 1 - widest > figure.at_least.value, (claim.id, due)
        if figure.at_most is not None:
            assert widest < figure.at_most.value, (claim.id, due)


def _due(drill: Drill, figure: Availability) -> float:
    until_s = (figure.to or getattr(drill.phases, figure.phase)).s
    return float((until_s - figure.since.s) / drill.interval.s)


@pytest.mark.parametrize(
    ("system", "drill", "word"),
    [
        ("minio", "two-nodes-killed", "reads go on with two of four nodes lost"),
        ("minio", "two-nodes-killed", "no writes with two of four nodes"),
        ("minio", "one-node-killed", "writes go on with one of four nodes lost"),
        ("bob", "rolling-loss", "writes go on while one node lives"),
        ("bob", "two-nodes-killed", "consistency is lost"),
        ("garage", "one-node-killed", "writes go on normally while only one node fails"),
        ("garage", "datacenter-lost-3dc", "failures are in one zone only"),
        ("quorum", "partition-two-two", "no side acknowledges"),
    ],
)
def test_what_the_stores_are_known_to_claim_is_put_to_the_test(
    system: str, drill: str, word: str
) -> None:
    assert any(word in claim.claim for claim in claims_on(scenario(drill), system))
