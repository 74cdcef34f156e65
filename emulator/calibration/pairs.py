"""Which pairs of nodes are measured, and which of them at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from wanlat.emulator.links import Direction, lan_down, lan_up, wan
from wanlat.emulator.prober import Pair
from wanlat.topologies.resolve import Plan

_MAX_PAIRS = 132  # every ordered pair up to 12 nodes


def pairs_of(plan: Plan, limit: int = _MAX_PAIRS) -> list[Pair]:
    """Return the ordered pairs of nodes to measure.

    All of them up to ``limit``; beyond, one pair for every ordered pair of sites and one for
    every node with a neighbour in its site, nodes taken in turn so that each occurs.
    """
    names = [node.name for node in plan.nodes]
    if len(names) * (len(names) - 1) <= limit:
        return list(permutations(names, 2))
    return list(dict.fromkeys(_covering_pairs(plan)))


def _covering_pairs(plan: Plan) -> Iterator[Pair]:
    for turn, (a, b) in enumerate(permutations(plan.sites, 2)):
        yield a.nodes[turn % len(a.nodes)].name, b.nodes[turn % len(b.nodes)].name
    for site in plan.sites:
        for node, neighbour in zip(site.nodes, (*site.nodes[1:], site.nodes[0]), strict=True):
            if node.name != neighbour.name:
                yield node.name, neighbour.name


def directions_of(plan: Plan, pair: Pair) -> tuple[Direction, ...]:
    """Return the directions of links that a packet passes, in the order of ``plan.path``."""
    source, target = (plan.node(name) for name in pair)
    between = (wan(source.site, target.site),) if source.site != target.site else ()
    return (lan_up(source.name, source.site), *between, lan_down(target.name, target.site))


def batches(
    plan: Plan, pairs: Sequence[Pair], *, at_most: int | None = None, both_ways: bool = False
) -> list[list[Pair]]:
    """Split pairs into batches in which no two use the same direction of a link.

    ``both_ways``: nor the directions of the way back. ``at_most``: pairs in a batch.
    """
    made: list[tuple[set[Direction], list[Pair]]] = []
    for pair in pairs:
        uses = set(directions_of(plan, pair))
        if both_ways:
            uses |= set(directions_of(plan, pair[::-1]))
        for used, batch in made:
            if used.isdisjoint(uses) and (at_most is None or len(batch) < at_most):
                used.update(uses)
                batch.append(pair)
                break
        else:
            made.append((uses, [pair]))
    return [batch for _, batch in made]


def slices(pairs: Sequence[Pair], at_most: int) -> list[list[Pair]]:
    """Split pairs into batches of ``at_most``, whatever they share."""
    return [list(pairs[begin : begin + at_most]) for begin in range(0, len(pairs), at_most)]
