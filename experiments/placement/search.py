"""Every placement of a cluster's nodes over regions, ranked by what clients wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import Any, Literal

import numpy as np

from wanlat.bundle.documents import (
    PlacedClient,
    Placement,
    Placements,
    PredictedRequest,
    RegionLost,
)
from wanlat.experiments.placement.model import Matrix, Model, Ms, Places, Protocol, shares_of
from wanlat.probes.protocols import PLANNERS
from wanlat.systems import registry
from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import did_you_mean, listing, show

RankBy = Literal["mean", "worst", "lost"]
MOST_PLACEMENTS = 1_000_000
_AT_ONCE = 4096


@dataclass(frozen=True)
class Wish:
    """What is wanted, as the command line has it; empty texts are what is usual."""

    system: str
    topology: Topology
    nodes: int = 3
    regions: str = ""
    clients: str = ""
    mix: str = ""
    fixed: str = ""
    rank_by: RankBy = "mean"
    options: Mapping[str, Any] | None = None
    measured: Mapping[str, float] | None = None
    """Round trips of endpoints of which the definition states nothing."""


@dataclass(frozen=True)
class Ranking:
    """All placements from the best to the worst, `places` in this order, with their leaders."""

    model: Model
    rank_by: RankBy
    sources: Mapping[str, str]
    places: Places
    leaders: Places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def to_confirm(self) -> Sequence[int]:
        """The ranks from 1 on of which a measurement shows most besides the best: middle, last."""
        return [(len(self) + 1) // 2, len(self)]

    def placements(self, ranks: Sequence[int]) -> list[Placement]:
        """Return placements by their ranks, from 1 on, with all that is predicted of them."""
        at = np.array(ranks) - 1
        places, leaders = self.places[at], self.leaders[at]
        network, lost = self.model.network(places), self.model.after_loss(places)
        store_ms = self.model.protocol.store_ms(network.rtt_ms)
        return [
            self._placement(
                rank,
                [self.model.matrix.regions[place] for place in places[n]],
                int(leaders[n]),
                (network.targets[:, n], network.way_ms[:, n], store_ms[leaders[n], :, :, n]),
                (float(lost[0][n]), int(lost[1][n]), int(lost[2][n])),
            )
            for n, rank in enumerate(ranks)
        ]

    def _placement(
        self,
        rank: int,
        regions: list[str],
        leader: int,
        network: tuple[Places, Ms, Ms],
        after_loss: tuple[float, int, int],
    ) -> Placement:
        """Return one; ``found``: target nodes of clients, the way there, and what nodes take."""
        targets, way_ms, store_ms = network
        clients, has_leader = self.model.clients, self.model.protocol.leader_option is not None
        theirs = store_ms[targets] + way_ms[:, None]  # (clients, endpoints)
        of_clients = theirs @ np.array([*self.model.mix.values()])
        shares, (lost_ms, lost, then) = np.array([*clients.values()]), after_loss
        is_answered = bool(np.isfinite(lost_ms))
        return Placement(
            rank=rank,
            name=f"placement-{rank}",
            regions=regions,
            leader=regions[leader] if has_leader else None,
            mean_ms=_ms(shares @ of_clients),
            endpoints=dict(zip(self.model.mix, map(_ms, shares @ theirs), strict=True)),
            worst_client=[*clients][of_clients.argmax()],
            worst_client_ms=_ms(of_clients.max()),
            lost=RegionLost(
                region=regions[lost],
                leader=regions[then] if has_leader and is_answered else None,
                mean_ms=_ms(lost_ms) if is_answered else None,
            ),
            clients=[
                PlacedClient(region=name, share=share, target=regions[node], way_ms=_ms(ms))
                for (name, share), node, ms in zip(clients.items(), targets, way_ms, strict=True)
            ],
            requests=[
                PredictedRequest(target=regions[node], endpoint=name, ms=_ms(store_ms[node, e]))
                for node in sorted({*targets.tolist()})
                for e, name in enumerate(self.model.mix)
            ],
        )

    def document(self, ranks: Sequence[int]) -> Placements:
        """Return what a bundle and `--json` have of the placements at these ranks."""
        return Placements(
            system=self.model.protocol.system.name,
            matrix=self.model.matrix.name,
            compared=len(self),
            rank_by=self.rank_by,
            mix=self.model.mix,
            sources=self.sources,
            placements=self.placements(ranks),
        )


def _ms(value: float) -> float:
    return round(float(value), 6)


def rank(wish: Wish) -> Ranking:
    """Return every placement that is possible, ranked. Raises UserError for what cannot be."""
    system, matrix = registry.get(wish.system), Matrix.from_topology(wish.topology)
    options = system.parse_options(wish.options)
    objects = system.objects(options).names
    usual = [objects[operation] for operation in ("read", "write") if operation in objects]
    known = [*(system.definition.endpoints or PLANNERS[system.api(options)].endpoints)]
    if not known:
        raise UserError(
            f"The definition of system {wish.system} has no `endpoints`, so nothing is known of "
            "what its requests wait for. Name another system."
        )
    mix = shares_of(
        "--mix", wish.mix or ",".join(usual or known), known, f"endpoint of {wish.system}"
    )
    regions = _regions(wish.regions, "--regions", matrix) or [*matrix.regions]
    fixed = _regions(wish.fixed, "--fixed", matrix)
    if left_out := [region for region in fixed if region not in regions]:
        raise UserError(
            f"--fixed: {listing(left_out)} is not among --regions ({listing(regions)}). Add it "
            "there, or leave it out here."
        )
    clients = shares_of("--clients", wish.clients or ",".join(regions), matrix.regions, "region")
    _check_count(wish.nodes, regions, fixed, matrix.name)
    protocol = Protocol(system, wish.options or {}, wish.nodes, tuple(mix), wish.measured or {})
    sources = {endpoint: protocol.source(endpoint) for endpoint in mix}
    model = Model(protocol, matrix, clients, mix)
    free = [region for region in regions if region not in fixed]
    places = _places(matrix.places(free), matrix.places(fixed), wish.nodes)
    score, mean, leaders = (
        np.concatenate(parts) for parts in zip(*_scores(model, places, wish.rank_by), strict=True)
    )
    if not np.isfinite(mean).any():  # options that no cluster of so many nodes can keep
        raise UserError(f"{system.title} answers nothing on {wish.nodes} nodes with its options.")
    order = np.lexsort((mean, score))
    return Ranking(model, wish.rank_by, sources, places[order], leaders[order])


def _scores(model: Model, places: Places, rank_by: RankBy) -> Iterator[tuple[Ms, Ms, Places]]:
    """Yield what placements are ranked by, the mean, and the leader for it; part by part."""
    for begin in range(0, len(places), _AT_ONCE):
        part = places[begin : begin + _AT_ONCE]
        network, every = model.network(part), np.arange(len(part))
        means = model.mean_ms(network)
        own = model.worst_ms(network) if rank_by == "worst" else means
        leaders = own.argmin(axis=0)
        score = model.after_loss(part)[0] if rank_by == "lost" else own[leaders, every]
        yield score, means[leaders, every], leaders


def _regions(text: str, option: str, matrix: Matrix) -> list[str]:
    """Return the regions that a list names; none of an empty one. Raises UserError."""
    names = [*dict.fromkeys(name.strip() for name in text.split(","))] if text else []
    for name in names:
        if name not in matrix.regions:
            near = did_you_mean(name, matrix.regions)
            raise UserError(
                f"{option}: {matrix.name} has no region {show(name)}{near}; it has "
                f"{listing(matrix.regions, at_most=20)}."
            )
    return names


def _check_count(nodes: int, regions: Sequence[str], fixed: Sequence[str], matrix: str) -> None:
    if nodes > len(regions):
        raise UserError(
            f"--nodes {nodes}: every node is in a region of its own, and there are "
            f"{len(regions)} ({listing(regions, at_most=20)}). Ask for fewer nodes, name more "
            f"with --regions, or give a larger matrix than {matrix}."
        )
    if len(fixed) > nodes:
        raise UserError(f"--fixed: {len(fixed)} regions, and --nodes {nodes}. Name fewer.")
    count = comb(len(regions) - len(fixed), nodes - len(fixed))
    if count > MOST_PLACEMENTS:
        raise UserError(
            f"There are {count:,} ways to put {nodes} nodes into {len(regions)} regions, more "
            f"than {MOST_PLACEMENTS:,}. Name those that are possible (--regions), or some that "
            "have a node (--fixed)."
        )


def _places(free: Places, fixed: Places, nodes: int) -> Places:
    """Return all placements, shape (c, nodes), each in the order of the matrix."""
    chosen = combinations(free.tolist(), nodes - len(fixed))
    flat = np.fromiter(chain.from_iterable(chosen), dtype=np.intp)
    others = flat.reshape(comb(len(free), nodes - len(fixed)), nodes - len(fixed))
    own = np.broadcast_to(fixed, (len(others), len(fixed)))
    return np.sort(np.concatenate([own, others], axis=1), axis=1)
