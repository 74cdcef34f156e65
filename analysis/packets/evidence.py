"""All that a bundle's packet record says of one system's requests, and what of it is kept.

A packet record takes megabytes, and what a report needs of it is one number a request and a few an
endpoint. `wanlat report` writes them beside the record, into chains.json, and reads them where the
record is gone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import TypeAdapter

from wanlat.analysis.bundle import MEASURED_PHASE, Bundle, Series
from wanlat.analysis.groups import Group, grouped
from wanlat.analysis.packets.background import read_background
from wanlat.analysis.packets.cost import LEAST_RTT_MS, Cost, costs, counting
from wanlat.analysis.packets.critical_path import critical_paths
from wanlat.analysis.packets.record import FILE, read_record, steps_of, why_no_record
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_json

NAME = "chains.json"


class Share(NamedTuple):
    """The part of a group's requests whose critical path has so many round trips."""

    round_trips: float
    share: float


@dataclass(frozen=True)
class GroupEvidence:
    """Of one group of requests: `n` of them have a critical path at an RTT that counts.

    `chains` has the most frequent first; that is `chain_round_trips`, None without any (`why`).
    """

    chain_round_trips: float | None
    chains: tuple[Share, ...]
    n: int
    cost: Cost | None
    why: str | None


@dataclass(frozen=True)
class PacketEvidence:
    """Of one system. `trips` has, by the index of the bundle's samples, the round trips of each
    measured request's critical path; NaN where it cannot be told or its RTT does not count.

    `why` says why there is nothing at all, in a sentence.
    """

    why: str | None
    trips: pd.Series[float] | None
    groups: Mapping[Group, GroupEvidence]


_KEPT = TypeAdapter(GroupEvidence)


def evidence_of(bundle: Bundle, system: str) -> PacketEvidence:
    """Read what the packet record has of a system. Raises BundleError where it is damaged.

    Where the record was thrown away, it is what an earlier report found in it.
    """
    kept: dict[str, PacketEvidence] = bundle.derived.setdefault("packets", {})
    if system not in kept:
        earlier = _read_kept(bundle, system) if not (bundle.directory / FILE).is_file() else None
        kept[system] = earlier or _from_record(bundle, system)
    return kept[system]


def to_keep(directory: Path, derived: Mapping[str, Any]) -> str | None:
    """The text of chains.json of the bundle in `directory`, from what was `derived` of it.

    None where no packets said anything, or what they said came from there.
    """
    found: Mapping[str, PacketEvidence] = derived.get("packets", {})
    systems = {
        system: {
            "rows": [int(row) for row in each.trips.index],
            "round_trips": [None if pd.isna(trips) else trips for trips in each.trips.tolist()],
            "groups": [
                {"version": series.version, "endpoint": endpoint, "placement": placement}
                | _KEPT.dump_python(of_group, mode="json")
                for (series, endpoint, placement), of_group in each.groups.items()
            ],
        }
        for system, each in found.items()
        if each.trips is not None
    }
    if not systems or not (directory / FILE).is_file():
        return None
    return json.dumps({"systems": systems}, separators=(",", ":"), allow_nan=False) + "\n"


def _read_kept(bundle: Bundle, system: str) -> PacketEvidence | None:
    """What an earlier report found of a system; None where it found nothing, or is of other
    samples. Raises BundleError where the file is damaged.
    """
    path = bundle.directory / NAME
    if not path.is_file():
        return None
    try:
        kept = read_json(path)["systems"].get(system)
        if kept is None:
            return None
        trips = pd.Series(kept["round_trips"], index=list(map(int, kept["rows"])), dtype="float64")
        groups = {}
        for one in kept["groups"]:
            series = Series(system, one["version"])
            groups[Group(series, one["endpoint"], one["placement"])] = _KEPT.validate_python(one)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{path} is damaged ({error!r}). Remove it: the slopes can be reported without."
        ) from error
    is_same = trips.index.isin(bundle.samples.index).all()
    return PacketEvidence(None, trips, groups) if is_same else None


def _from_record(bundle: Bundle, system: str) -> PacketEvidence:
    why = why_no_record(bundle, system)
    record = read_record(bundle, system) if why is None else None
    if record is None:
        return PacketEvidence(why or f"The packet record has nothing of {system}.", None, {})
    background = read_background(bundle, record)
    samples = bundle.samples[bundle.samples["system"] == system]
    if "rtt_step" in samples.columns:
        failed = [one.rtt_step for one in steps_of(bundle, system) if one.verdict != "pass"]
        samples = samples[~samples["rtt_step"].isin(failed)]
    rows = samples[samples["phase"] == MEASURED_PHASE]
    trips = critical_paths(record, rows, background)["round_trips"].where(counting(rows))
    prices = costs(record, samples, background, [abs(bundle.seed), 6])
    groups = {
        group: _of_group(trips[part.index].dropna(), prices.get(group), system)
        for group, part in grouped(rows).items()
    }
    return PacketEvidence(None, trips, groups)


def _of_group(trips: pd.Series[float], cost: Cost | None, system: str) -> GroupEvidence:
    if trips.empty:
        why = (
            f"No request that was acknowledged, at an RTT of {LEAST_RTT_MS:g} ms or more, lies "
            f"within the packet record of {system}."
        )
        return GroupEvidence(None, (), 0, cost, why)
    # Of equally frequent ones the shorter: it is the safer.
    shares = [Share(value, n / len(trips)) for value, n in Counter(trips.tolist()).items()]
    chains = tuple(sorted(shares, key=lambda one: (-one.share, one.round_trips)))
    return GroupEvidence(chains[0].round_trips, chains, len(trips), cost, None)
