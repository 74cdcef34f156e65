"""The least round trips that a request can cost, whatever the store, from where replicas are.

A request is answered once enough replicas have answered: a write when as many have it as it is
acknowledged for, a read when it must have met every such write. Those in the site of the node that
is asked answer without crossing a WAN link; all others can be asked at once, which is one round
trip. So the least is 0 where enough are near, and 1 where they are not. What a store pays beyond
that (a lock, a leader elsewhere, an index that is read before the data) is its own choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan

LISTINGS = frozenset({"ListObjects", "ListObjectsPage"})
S3_READS = LISTINGS | {"ListBuckets", "GetObject", "HeadObject"}
S3_WRITES = frozenset({"PutObject", "RemoveObject"})
BOB_READS = frozenset({"Get", "Exist"})
BOB_WRITES = frozenset({"Put", "Delete"})

_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Least:
    """What no store can beat that has as many replicas, at these places, and keeps the promise."""

    round_trips: float
    """Over WAN links, one after the other, from the request's arrival to its answer. Where keys of
    a kind lie differently, that of the luckiest: no request of the kind can cost less."""
    why: str
    """A sentence, without its full stop: what is needed, and how much of it is near."""

    def from_client(self, plan: Plan, client: str, target: str) -> Least:
        """Return what a client at another node sees: one more, if that is in another site."""
        if plan.node(client).site == plan.node(target).site:
            return self
        way = "one to the site of the node that is asked and back"
        if not self.round_trips:
            return Least(1, f"{way}; beyond that none, as {self.why}")
        return Least(self.round_trips + 1, f"{way}, and there {self.why}")


@dataclass(frozen=True)
class Answers:
    """How many replicas must answer, and how many are in the site of the node that is asked.

    ``near`` has the latter for every key, or for every place that a key's replicas may have.
    """

    needed: int
    replicas: int
    near: frozenset[int]
    what: str = "replica"
    """What one is called: a replica, a drive, a node."""

    @classmethod
    def among(
        cls,
        plan: Plan,
        target: str,
        needed: int,
        held: Collection[Collection[str]],
        what: str = "replica",
    ) -> Answers:
        """Return it where the nodes are known: ``held`` has those of each key, equally many."""
        (replicas,) = {len(nodes) for nodes in held}
        return cls(needed, replicas, frozenset(near(plan, target, nodes) for nodes in held), what)

    def least(self) -> Least:
        """Return the least round trips of a request that waits for these answers."""
        most = max(self.near)
        needs = f"{_count(self.needed)} of {_count(self.replicas, self.what)} must answer"
        if most < self.needed:
            only = f"only {_count(most)} {_is(most)}" if most else "none is"
            return Least(1, f"{needs}, and {only} in the asked node's site")
        if min(self.near) < self.needed:
            return Least(0, f"{needs}, and of some keys that many are in the asked node's site")
        return Least(0, f"{needs}, and {_count(most)} {_is(most)} in the asked node's site")


NO_REPLICA = Least(0, "the asked node answers alone")


def near(plan: Plan, target: str, nodes: Iterable[str]) -> int:
    """Return how many of the nodes are in the site of the node that is asked."""
    site = plan.node(target).site
    return sum(plan.node(name).site == site for name in nodes)


def to_meet(written: int, replicas: int) -> int:
    """Return how many must answer a read, so that one of them has what ``written`` of them have."""
    return replicas - written + 1


def _count(number: int, what: str = "") -> str:
    word = _WORDS[number] if number < len(_WORDS) else str(number)
    return f"{word} {what}{'' if number == 1 else 's'}" if what else word


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
