"""What a cluster's nodes in some regions answer clients in others in, on the network alone.

A system's definition states which nodes its own protocol waits for, and an expression that is
evaluated over distances gives the time for that: `to_node(options.leader)` the RTT between two
regions, `to_majority()` that to the farthest of the nearest nodes that are a majority. Evaluated
over arrays it does so for thousands of placements at once. Of an endpoint of which the definition
states nothing, round trips that were measured are taken, each of them to a majority.

Every region has one node, at the most. Clients send to the nearest.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wanlat.systems import registry
from wanlat.systems.base import System
from wanlat.systems.engine.options import Options
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import listing

Ms = NDArray[np.float64]
Places = NDArray[np.intp]
"""Placements, shape (c, k): of each the places of its k regions in the matrix."""


@dataclass(frozen=True)
class Protocol:
    """A system's cluster of so many nodes in as many regions, and what it states of its requests.

    ``measured``: round trips of endpoints, for those of which the definition states nothing.
    """

    system: System
    given: Mapping[str, Any]
    nodes: int
    endpoints: tuple[str, ...]
    measured: Mapping[str, float]

    @cached_property
    def plan(self) -> Plan:
        """The nodes, n1 and so on, each in a site of its own, at no distances in particular."""
        sites = [{"name": f"region-{n}", "nodes": [f"n{n}"]} for n in range(1, self.nodes + 1)]
        links = {"default": {"rtt": "1ms"}} if self.nodes > 1 else {}
        topology = {"name": f"{self.nodes}-regions", "sites": sites, "links": links}
        return resolve(Topology.model_validate(topology))

    @cached_property
    def leader_option(self) -> str | None:
        """The option that sets which node leads; None: none does."""
        return self.system.leader_option(self.plan, self.system.parse_options(self.given))

    @cached_property
    def options(self) -> Sequence[Options]:
        """The system's options with each node as the leader; where none leads the only ones.

        Raises UserError where the system does not run on so many nodes.
        """
        key, names = self.leader_option, [node.name for node in self.plan.nodes]
        own = [self.given] if key is None else [{**self.given, key: name} for name in names]
        parsed = [self.system.parse_options(given) for given in own]
        for options in parsed:
            self.system.check_topology(self.plan, options)
        return parsed

    def source(self, endpoint: str) -> str:
        """Return what an endpoint's prediction is from. Raises UserError where there is nothing."""
        one = np.ones((1, self.nodes, self.nodes))
        if self._promised(self.options[0], "n1", endpoint, one) is not None:
            return "promised"
        if endpoint in self.measured:
            return f"measured: {self.measured[endpoint]:.3g} round trips"
        name = self.system.name
        given = registry.adopted([name]).get(name, name)
        raise UserError(
            f"The definition of system {name} does not say which nodes {endpoint} waits for. "
            "Measure its round trips (`wanlat run round-trips --systems "
            f"{shlex.quote(given)}`) and give the bundle: --from BUNDLE."
        )

    def store_ms(self, rtt_ms: Ms) -> Ms:
        """Return what requests take from their arrival at a node to the response.

        ``rtt_ms`` are round-trip times between the nodes of c placements, shape (c, k, k); what is
        returned has the shape (leaders, k target nodes, endpoints, c).
        """
        names = [node.name for node in self.plan.nodes]
        made = np.empty((len(self.options), len(names), len(self.endpoints), len(rtt_ms)))
        for at in np.ndindex(made.shape[:3]):
            leader, target, endpoint = at
            name = self.endpoints[endpoint]
            known = self._promised(self.options[leader], names[target], name, rtt_ms)
            if known is None:
                majority = np.sort(rtt_ms[:, target], axis=1)[:, self.nodes // 2]
                known = self.measured[name] * majority
            made[at] = known
        return made

    def _promised(self, options: Options, target: str, endpoint: str, rtt_ms: Ms) -> Any | None:
        places = {node.name: place for place, node in enumerate(self.plan.nodes)}

        def distance(a: str, b: str) -> Ms:
            apart: Ms = rtt_ms[:, places[a], places[b]]
            return apart

        return self.system.promised_distance(self.plan, options, target, endpoint, distance)


@dataclass(frozen=True)
class Matrix:
    """Round-trip times between regions, ms, shape (regions, regions); `name`: of the topology."""

    name: str
    regions: tuple[str, ...]
    rtt_ms: Ms

    @classmethod
    def from_topology(cls, topology: Topology) -> Matrix:
        """Return that of a topology: between the first nodes of its sites."""
        plan = resolve(topology)
        names = [site.nodes[0].name for site in plan.sites]
        rtt_ms = np.array([[plan.rtt_ms(a, b) for b in names] for a in names])
        return cls(topology.name, tuple(site.name for site in plan.sites), rtt_ms)

    def places(self, regions: Sequence[str]) -> Places:
        """Return where regions are in it."""
        return np.array([self.regions.index(region) for region in regions], dtype=np.intp)


@dataclass(frozen=True)
class Network:
    """The round-trip times of c placements, ms: between their nodes, shape (c, k, k).

    `targets` is which of a placement's nodes clients send to, shape (clients, c), and `way_ms` the
    round-trip time to it.
    """

    rtt_ms: Ms
    targets: Places
    way_ms: Ms


@dataclass(frozen=True)
class Model:
    """A protocol on a matrix, with the shares of clients in regions and of endpoints."""

    protocol: Protocol
    matrix: Matrix
    clients: Mapping[str, float]
    mix: Mapping[str, float]

    def network(self, places: Places, lost: int | None = None) -> Network:
        """Return the distances of placements; inf to what answers nothing.

        ``lost``: the number of the region in each placement that answers no more.
        """
        rtt_ms = self.matrix.rtt_ms[places[:, :, None], places[:, None, :]]
        regions = self.matrix.places([*self.clients])
        way_ms = self.matrix.rtt_ms[regions[:, None, None], places[None]]
        if lost is not None:
            rtt_ms[:, lost, :] = rtt_ms[:, :, lost] = way_ms[:, :, lost] = np.inf
        targets = way_ms.argmin(axis=2)
        return Network(
            rtt_ms, targets, np.take_along_axis(way_ms, targets[:, :, None], axis=2)[..., 0]
        )

    def mixed_ms(self, network: Network) -> Ms:
        """Return the mean over endpoints from the arrival on, shape (leaders, target nodes, c)."""
        shares = np.array([*self.mix.values()])
        mean: Ms = np.tensordot(shares, self.protocol.store_ms(network.rtt_ms), axes=(0, 2))
        return mean

    def mean_ms(self, network: Network) -> Ms:
        """Return the mean over clients and endpoints, shape (leaders, c); inf: no answer."""
        shares, store_ms = np.array([*self.clients.values()]), self.mixed_ms(network)
        nodes = np.arange(store_ms.shape[1])[:, None, None]
        of_nodes = np.einsum("n,knc->kc", shares, network.targets == nodes)
        theirs = np.where(of_nodes > 0, store_ms, 0.0) * of_nodes
        mean: Ms = theirs.sum(axis=1) + shares @ network.way_ms
        return mean

    def worst_ms(self, network: Network) -> Ms:
        """Return the mean over endpoints of the client that waits longest, shape (leaders, c)."""
        every = np.arange(network.targets.shape[1])
        theirs: Ms = self.mixed_ms(network)[:, network.targets, every] + network.way_ms
        return np.asarray(theirs.max(axis=1))

    def after_loss(self, places: Places) -> tuple[Ms, Places, Places]:
        """Return what the worst loss of a region leaves, with the best leader then.

        That is the mean over clients and endpoints (inf: nothing is answered), which region of the
        placement is lost, and which one leads; each of shape (c,).
        """
        lost_places = range(places.shape[1])
        means = np.stack([self.mean_ms(self.network(places, lost)) for lost in lost_places])
        best, leaders = means.min(axis=1), means.argmin(axis=1)  # over leaders: (lost, c)
        worst, every = best.argmax(axis=0), np.arange(len(places))
        return best[worst, every], worst, leaders[worst, every]


def shares_of(option: str, text: str, known: Sequence[str], what: str) -> dict[str, float]:
    """Read `A=70%,B=30%`, or names alone, which have equal shares. Raises UserError."""
    from wanlat.topologies.units import Fraction, QuantityError
    from wanlat.topologies.wording import did_you_mean, show

    shares: dict[str, float] = {}
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        name, equals, share = (text_part.strip() for text_part in part.partition("="))
        if name not in known:
            near = did_you_mean(name, known)
            raise UserError(
                f"{option}: there is no {what} {show(name)}{near}; there are "
                f"{listing(known, at_most=20)}."
            )
        if name in shares:
            raise UserError(f"{option}: {show(name)} is given twice; give it once.")
        try:
            shares[name] = float(Fraction.parse(share)) if equals else 1 / len(parts)
        except QuantityError as error:
            raise UserError(f"{option}: {show(name)}: {error}.") from None
        if not shares[name]:
            raise UserError(f"{option}: {show(name)} has a share of nothing; leave it out.")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise UserError(
            f"{option}: shares add up to {100 * sum(shares.values()):g} %, not to 100 %. "
            "Give one to each, or to none, for equal ones."
        )
    return shares
