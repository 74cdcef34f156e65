"""chains.json: what was found in the packets, small enough to stay when they are thrown away.

A packet record takes megabytes, and what a report needs of it is one number a request and a few an
endpoint. `wanlat report` writes them beside the record, and reads them where the record is gone.
"""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.packets.cost import Cost
from wanlat.analysis.packets.model import GroupEvidence, PacketEvidence, Share
from wanlat.analysis.summary import Group
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "chains.json"


def to_text(found: Mapping[str, PacketEvidence]) -> str | None:
    """The file's text, of the evidence by system; None where no packets said anything."""
    systems = {system: _document(each) for system, each in found.items() if each.trips is not None}
    if not systems:
        return None
    return json.dumps({"systems": systems}, separators=(",", ":"), allow_nan=False) + "\n"


def read_kept(bundle: Bundle, system: str) -> PacketEvidence | None:
    """What an earlier report found of a system; None where it found nothing, or is of other
    samples. Raises BundleError where the file is damaged.
    """
    import pandas as pd

    path = bundle.directory / NAME
    if not path.is_file():
        return None
    try:
        kept = read_json(path)["systems"].get(system)
        if kept is None:
            return None
        trips = pd.Series(
            [math.nan if value is None else float(value) for value in kept["round_trips"]],
            index=[int(row) for row in kept["rows"]],
            dtype="float64",
        )
        groups = dict(_group(system, each) for each in kept["groups"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{path} is damaged ({error!r}). Remove it: the slopes can be reported without."
        ) from error
    if not trips.index.isin(bundle.samples.index).all():
        return None
    return PacketEvidence(None, trips, groups)


def _document(evidence: PacketEvidence) -> dict[str, Any]:
    trips = evidence.trips
    assert trips is not None
    return {
        "rows": [int(row) for row in trips.index],
        "round_trips": [None if math.isnan(value) else float(value) for value in trips],
        "groups": [_of_group(group, each) for group, each in evidence.groups.items()],
    }


def _of_group(group: Group, evidence: GroupEvidence) -> dict[str, Any]:
    return {
        "version": group.series.version,
        "endpoint": group.endpoint,
        "placement": group.placement,
        "chain_round_trips": evidence.chain_round_trips,
        "chains": [list(share) for share in evidence.chains],
        "n": evidence.n,
        "loose": evidence.loose,
        "waited_for_ack": evidence.waited_for_ack,
        "roomy": evidence.roomy,
        "held_up": evidence.held_up,
        "cost": None if evidence.cost is None else list(astuple(evidence.cost)),
        "why": evidence.why,
    }


def _group(system: str, kept: Mapping[str, Any]) -> tuple[Group, GroupEvidence]:
    group = Group(Series(system, kept["version"]), kept["endpoint"], kept["placement"])
    cost = kept["cost"]
    if cost is not None:
        n, wan_bytes, bytes_ci95, wan_packets, packets_ci95 = cost
        cost = Cost(n, wan_bytes, tuple(bytes_ci95), wan_packets, tuple(packets_ci95))
    return group, GroupEvidence(
        chain_round_trips=kept["chain_round_trips"],
        chains=tuple(Share(*share) for share in kept["chains"]),
        n=kept["n"],
        loose=kept["loose"],
        waited_for_ack=kept["waited_for_ack"],
        roomy=kept["roomy"],
        held_up=kept["held_up"],
        cost=cost,
        why=kept["why"],
    )
