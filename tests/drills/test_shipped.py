"""The drills that come with wanlat: each can be run on each of its systems, and says how long."""

from __future__ import annotations

import pytest

from wanlat.emulator.faults.roles import draw
from wanlat.experiments.drill.claim import Availability, Claims, claims_on
from wanlat.experiments.drill.files import CLAIMS, load, shipped
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.on_topology import fault_of, place
from wanlat.experiments.drill.timing import stated
from wanlat.systems import registry
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.yaml_lines import load_yaml_model

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
def test_whoever_is_drawn_the_faults_and_clients_fit(name: str) -> None:
    drill = load(name)
    plan = resolve(load_topology(drill.topology))
    for system in drill.systems:
        options = registry.SYSTEMS[system].parse_options(drill.options.get(system))
        system_roles = registry.SYSTEMS[system].roles(plan, options)
        for seed in SEEDS:
            roles = draw(drill.selects, plan, system_roles, seed)
            for spec in drill.faults:
                assert fault_of(spec, plan, roles).subject
            places = [place(name, each, plan, roles) for name, each in drill.clients.items()]
            assert len({each.target for each in places}) == len(places)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_drill_states_ten_minutes_at_most(name: str) -> None:
    assert stated(load(name)).total_s <= LONGEST_S


@pytest.mark.parametrize("name", shipped())
def test_no_client_is_late_while_nothing_is_broken(name: str) -> None:
    # MinIO's PutObject takes up to ten round trips, and the machine something besides.
    drill = load(name)
    rtt_s = {"four-sites": 0.012, "three-datacenters": 0.12}[drill.topology]
    assert drill.interval.s > 10 * rtt_s


@pytest.mark.parametrize("name", shipped())
def test_a_fault_says_how_long_it_lasts(name: str) -> None:
    assert all(spec.lasts is not None for spec in load(name).faults)


def test_every_store_has_claims_and_they_are_of_that_store() -> None:
    assert set(CLAIMS.names()) == {"quorum", *REAL_STORES}
    for system in CLAIMS.names():
        read = load_yaml_model(CLAIMS.find(system), Claims)
        assert read.system == system
        assert all(claim.id.startswith(f"{system}-") for claim in read.claims)
        assert {name for claim in read.claims for name in claim.drills} == set(shipped())


@pytest.mark.parametrize("system", CLAIMS.names())
def test_every_claim_names_drills_and_clients_that_exist(system: str) -> None:
    for claim in load_yaml_model(CLAIMS.find(system), Claims).claims:
        for name in claim.drills:
            assert name in shipped(), claim.id
            client = claim.availability and claim.availability.client
            assert client is None or client in load(name).clients, claim.id


@pytest.mark.parametrize("system", CLAIMS.names())
def test_every_claim_has_a_source_that_can_be_looked_up(system: str) -> None:
    where = "systems/quorum/README.md, " if system == "quorum" else ", https://"
    for claim in load_yaml_model(CLAIMS.find(system), Claims).claims:
        assert where in claim.source, claim.id


@pytest.mark.parametrize("name", shipped())
def test_a_claim_of_availability_can_be_decided(name: str) -> None:
    # With every request as claimed, the interval of its share must be able to clear the bound.
    drill = load(name)
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
    assert any(word in claim.claim for claim in claims_on(load(drill), system))
