"""All that a bundle's packet record says of one system's requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analysis.bundle import Bundle
from analysis.packets.background import read_background
from analysis.packets.chains import Chains, chains
from analysis.packets.cost import Cost, costs
from analysis.packets.record import read_record, why_no_record
from analysis.packets.rtts import LEAST_RTT_MS, counting
from analysis.summary import Group, grouped

if TYPE_CHECKING:
    import pandas as pd


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


def evidence_of(bundle: Bundle, system: str) -> PacketEvidence:
    """Read what the packet record has of a system. Raises BundleError where it is damaged."""
    import numpy as np
    import pandas as pd

    why = why_no_record(bundle, system)
    record = read_record(bundle, system) if why is None else None
    if record is None:
        return PacketEvidence(why or f"The packet record has nothing of {system}.", None, {})
    background = read_background(bundle, record)
    samples = bundle.samples[(bundle.samples["system"] == system) & _calibrated(bundle, system)]
    rows = samples[samples["phase"] == "measure"]
    counts = counting(rows)
    found = chains(record, rows, background)
    trips = pd.Series(np.where(counts, found.round_trips, np.nan), index=rows.index)
    prices = costs(record, samples, background, [abs(bundle.seed), 6])
    place = pd.Series(np.arange(len(rows)), index=rows.index)
    one_way_ns = pd.to_numeric(rows["rtt_ms"]).to_numpy(np.float64, na_value=np.nan) * 1e6 / 2
    is_roomy = found.spare_ns >= one_way_ns
    return PacketEvidence(
        None,
        trips,
        {
            group: _of_group(
                trips[part.index].dropna(), found, place, is_roomy, prices.get(group), record.system
            )
            for group, part in grouped(rows).items()
        },
    )


def _calibrated(bundle: Bundle, system: str) -> pd.Series[bool]:
    """Which samples are of no visit whose calibration failed."""
    import pandas as pd

    from analysis.visits import read_visits

    visits = read_visits(bundle)
    if visits is None or "visit" not in bundle.samples.columns:
        return pd.Series(True, index=bundle.samples.index)
    failed = {visit.number for visit in visits.of(system) if not visit.passed}
    return ~bundle.samples["visit"].isin(failed)


def _of_group(
    trips: pd.Series[float],
    found: Chains,
    place: pd.Series[int],
    is_roomy: object,
    cost: Cost | None,
    system: str,
) -> GroupEvidence:
    import numpy as np

    if trips.empty:
        why = (
            f"No request that was acknowledged, at an RTT of {LEAST_RTT_MS:g} ms or more, lies "
            f"within the packet record of {system}."
        )
        return GroupEvidence(None, (), 0, 0.0, 0.0, 0.0, cost, why)
    values, counts = np.unique(trips.to_numpy(), return_counts=True)
    order = np.lexsort((values, -counts))  # of equally frequent ones the shorter: it is the safer
    shares = tuple(Share(float(values[one]), float(counts[one] / len(trips))) for one in order)
    places = place[trips.index].to_numpy()
    return GroupEvidence(
        chain_round_trips=shares[0].round_trips,
        chains=shares,
        n=len(trips),
        loose=float((found.loose[places] > 0).mean()),
        waited_for_ack=float((found.acknowledgements[places] > 0).mean()),
        held_up=float((found.held_up[places] > 0).mean()),
        roomy=float(np.asarray(is_roomy)[places].mean()),
        cost=cost,
        why=None,
    )
