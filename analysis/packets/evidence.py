"""All that a bundle's packet record says of one system's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.packets.background import read_background
from wanlat.analysis.packets.chains import Chains, chains
from wanlat.analysis.packets.cost import Cost, costs
from wanlat.analysis.packets.kept import read_kept
from wanlat.analysis.packets.model import GroupEvidence, PacketEvidence, Share
from wanlat.analysis.packets.record import is_gone, read_record, why_no_record
from wanlat.analysis.packets.rtts import LEAST_RTT_MS, counting
from wanlat.analysis.summary import grouped

if TYPE_CHECKING:
    import pandas as pd


def evidence_of(bundle: Bundle, system: str) -> PacketEvidence:
    """Read what the packet record has of a system. Raises BundleError where it is damaged.

    Where the record was thrown away, it is what an earlier report found in it.
    """
    kept: dict[str, PacketEvidence] = bundle.derived.setdefault("packets", {})
    if system not in kept:
        earlier = read_kept(bundle, system) if is_gone(bundle) else None
        kept[system] = earlier or _from_record(bundle, system)
    return kept[system]


def _from_record(bundle: Bundle, system: str) -> PacketEvidence:
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

    from wanlat.analysis.visits import read_visits

    visits = read_visits(bundle)
    if visits is None or "rtt_step" not in bundle.samples.columns:
        return pd.Series(True, index=bundle.samples.index)
    failed = {visit.number for visit in visits.of(system) if not visit.passed}
    return ~bundle.samples["rtt_step"].isin(failed)


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
