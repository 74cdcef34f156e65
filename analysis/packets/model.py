"""What a packet record says of requests, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.packets.cost import Cost
    from wanlat.analysis.summary import Group


class Share(NamedTuple):
    """The part of a group's requests whose chain has so many round trips."""

    round_trips: float
    share: float


@dataclass(frozen=True)
class GroupEvidence:
    """Of one group of requests: `n` of them have a chain at an RTT that counts.

    `chains` has the most frequent first; that is `chain_round_trips`, None without any (`why`).
    `loose` is the part of the requests whose chain has a loose link, `waited_for_ack` of those with
    an acknowledgement for which a sender waited, `roomy` of those that spent so much time off the
    links beside their chain that a longer one may be hidden in it. `held_up` is the part of those
    that waited for what an earlier request had left on a connection: that costs time at every RTT
    and is in the slope, but in no chain, which has nothing from before the request.
    """

    chain_round_trips: float | None
    chains: tuple[Share, ...]
    n: int
    loose: float
    waited_for_ack: float
    roomy: float
    cost: Cost | None
    why: str | None
    held_up: float = 0.0


@dataclass(frozen=True)
class PacketEvidence:
    """Of one system. `trips` has, by the index of the bundle's samples, the round trips of each
    measured request's chain; NaN where it cannot be told or its RTT does not count.

    `why` says why there is nothing at all, in a sentence.
    """

    why: str | None
    trips: pd.Series[float] | None
    groups: Mapping[Group, GroupEvidence]
