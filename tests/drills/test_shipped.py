"""The drills that come with wanlat: each can be run on each of its systems, and says how long."""

from __future__ import annotations

import pytest

from wanlat.emulator.faults.cast import draw
from wanlat.experiments.drill.claim import Claim
from wanlat.experiments.drill.files import load, shipped
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.on_topology import fault_of, place
from wanlat.experiments.drill.timing import stated
from wanlat.systems import registry
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve

FOUR_NODES = {
    *("one-node-killed", "one-node-stopped", "two-nodes-killed", "rolling-loss"),
    *("one-node-slower", "one-link-lossy", "one-node-blackholed", "partition-two-two"),
    *("datacenter-lost", "one-way-cut", "flapping", "disk-full"),
}
REAL_STORES = {"garage", "minio", "bob"}
LONGEST_S = 600.0
SEEDS = range(20)


def test_the_drills_that_were_promised_are_there() -> None:
    on = {name: load(name).topology for name in shipped()}
    assert {name for name, topology in on.items() if topology == "four-sites"} == FOUR_NODES
    with_distance = {name for name, topology in on.items() if topology == "three-datacenters"}
    assert {name.removesuffix("-3dc") for name in with_distance} == (
        FOUR_NODES - {"partition-two-two"} | {"partition-one-two"}
    )
    assert all(name.endswith("-3dc") for name in with_distance)
    assert set(on) == FOUR_NODES | with_distance


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_drill_is_for_every_store(name: str) -> None:
    drill = load(name)
    assert drill.name == name
    assert drill.description
    assert set(drill.systems) == {"quorum", *REAL_STORES}


@pytest.mark.parametrize("name", shipped())
def test_whoever_is_drawn_the_faults_and_vantages_fit(name: str) -> None:
    drill = load(name)
    plan = resolve(load_topology(drill.topology))
    for system in drill.systems:
        options = registry.SYSTEMS[system].parse_options(drill.options.get(system))
        roles = registry.SYSTEMS[system].roles(plan, options)
        for seed in SEEDS:
            cast = draw(drill.cast, plan, roles, seed)
            for spec in drill.faults:
                assert fault_of(spec, plan, cast).subject
            places = [place(at, v.at, v.ask, plan, cast) for at, v in drill.vantages.items()]
            assert len({each.ask for each in places}) == len(places)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_drill_states_ten_minutes_at_most(name: str) -> None:
    assert stated(load(name)).total_s <= LONGEST_S


@pytest.mark.parametrize("name", shipped())
def test_no_client_is_late_while_nothing_is_broken(name: str) -> None:
    # MinIO's PutObject takes up to ten round trips, and the machine something besides.
    drill = load(name)
    rtt_s = {"four-sites": 0.012, "three-datacenters": 0.12}[drill.topology]
    assert drill.every.s > 10 * rtt_s


@pytest.mark.parametrize("name", shipped())
def test_every_claim_has_a_source_that_can_be_looked_up(name: str) -> None:
    for claim in load(name).claims:
        assert claim.systems is not None, "what one store says is not said of another one"
        assert len(claim.systems) == 1
        if claim.systems == ["quorum"]:
            assert claim.source.startswith("systems/quorum/README.md, ")
        else:
            assert ", https://" in claim.source


@pytest.mark.parametrize("name", shipped())
def test_a_claim_of_availability_can_be_decided(name: str) -> None:
    # With every request as claimed, the interval of its share must be able to clear the bound.
    drill = load(name)
    for claim in drill.claims:
        if claim.availability is None:
            continue
        at_least, at_most = claim.availability.at_least, claim.availability.at_most
        due = _due(drill, claim)
        widest = 3.84 / (due + 3.84)  # of Wilson's 95 % interval, when none or all succeed
        assert due >= 10, claim.claim
        if at_least is not None:
            assert 1 - widest > at_least.value, (claim.claim, due)
        if at_most is not None:
            assert widest < at_most.value, (claim.claim, due)


def _due(drill: Drill, claim: Claim) -> float:
    until_s = (claim.to or getattr(drill.phases, claim.phase)).s
    return float((until_s - claim.since.s) / drill.every.s)


def _said_of(system: str) -> dict[str, set[str]]:
    return {
        name: {claim.claim for claim in load(name).claims if claim.is_of(system)}
        for name in shipped()
    }


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
    assert any(word in claim for claim in _said_of(system)[drill])
