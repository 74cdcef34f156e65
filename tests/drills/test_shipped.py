"""The drills that come with wanlat: each can be run on each of its systems, and says how long."""

from __future__ import annotations

from functools import cache

import pytest

from wanlat.experiments.drill.files import shipped
from wanlat.experiments.drill.prepare import assign, load
from wanlat.experiments.drill.timeline import stated
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve

STORES = {"quorum", "garage", "minio", "bob"}
LED = {"leader-killed": {"etcd", "quorum"}}
"""Drills for those that have a leader."""
LONGEST_S = 600.0
SEEDS = range(20)

scenario = cache(load)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_drill_is_for_every_store_and_ends_in_ten_minutes(name: str) -> None:
    drill = scenario(name)
    assert drill.name == name
    assert drill.description
    assert set(drill.systems) == LED.get(name, STORES)
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
