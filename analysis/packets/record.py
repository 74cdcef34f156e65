"""The WAN packets of one system's lab, as arrays.

Sites are as the record has them. Addresses are given the names of nodes by the manifest's topology
(site i has 10.i.0.0/16, its nodes are numbered from 1; docs/topologies.md), where the record
does not contradict it; a node that cannot be named is called by its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.packets.streams import FIN, RST, SYN, Bools, Ints, streams_of
from wanlat.bundle.documents import RttStep, RttSteps
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document

FILE = "packets.parquet"
TCP, UDP = 6, 17

COLUMNS = [
    *("system", "source", "target", "entry_ns", "departure_ns", "fate", "bytes", "segments"),
    *("source_address", "target_address", "protocol", "source_port", "target_port"),
    *("tcp_seq", "tcp_ack", "tcp_flags", "payload_bytes", "duplicate", "corrupted"),
]


@dataclass(frozen=True, eq=False)
class Record:
    """TCP and UDP packets that entered a WAN link, in the order of entry; arrays of shape (n,).

    Calibration's own packets are not among them, nor copies that a link made. Instants are
    CLOCK_MONOTONIC, ns, the clock of the samples.
    """

    system: str
    sites: tuple[str, ...]
    nodes: tuple[str, ...]
    """Their names, in the topology's order; `source` and `target` count from 0 into it."""
    node_site: Ints
    """The place in `sites` of each node's site, shape (nodes,)."""
    row: Ints
    """Of packets.parquet, counted from 0 among those of the system: its number in the file."""
    source: Ints
    target: Ints
    entry_ns: Ints
    departure_ns: Ints
    """When it left the link for the target's site; -1: it never did, or not unharmed."""
    fate: NDArray[np.object_]
    """What became of it, in docs/capture.md's words: "sent", "lost", …"""
    wire_bytes: Ints
    """On the wire, Ethernet headers included, of all segments."""
    segments: Ints
    payload_bytes: Ints
    is_tcp: Bools
    flags: Ints
    """TCP's flags; 0 of UDP."""
    seq: Ints
    """Of TCP: sequence number of the first byte, unwrapped within its stream; 0 of UDP."""
    ack: Ints
    """Of TCP: as on the wire, 32 bits; 0 where it has none."""
    source_port: Ints
    target_port: Ints
    stream: Ints
    """One direction of one connection: a number that `stream ^ 1` of the other direction shares a
    connection with. A connection that uses the ports of an earlier one again is another one."""
    asked: str | None
    """The target node of requests, where the manifest tells."""
    ended_ns: int | None
    """From when on packets are missing, because a limit or a full disk ended the record."""

    def __len__(self) -> int:
        return len(self.entry_ns)

    @cached_property
    def is_bare_ack(self) -> Bools:
        """Which packets do nothing but acknowledge."""
        other = self.flags & (SYN | FIN | RST) != 0
        return np.asarray(self.is_tcp & (self.payload_bytes == 0) & ~other)

    @cached_property
    def end(self) -> Ints:
        """The sequence number after the last byte of each packet; a SYN counts as one."""
        return np.asarray(self.seq + self.payload_bytes + (self.flags & SYN != 0))

    def node_of(self, name: str) -> int | None:
        """The place in `nodes` of a node by its name; None: neither topology nor record has it."""
        return self.nodes.index(name) if name in self.nodes else None

    def site_of(self, node: str) -> int | None:
        """The place in `sites` of the site of a node by its name; None: it is not known."""
        place = self.node_of(node)
        return None if place is None else int(self.node_site[place])


def is_gone(bundle: Bundle) -> bool:
    """Whether packets were recorded and their table is no longer there."""
    was_recorded = isinstance(bundle.manifest.get("capture"), Mapping)
    return was_recorded and not (bundle.directory / FILE).is_file()


def why_no_record(bundle: Bundle, system: str) -> str | None:
    """Why there is nothing to read of a system's packets, in a sentence; None if there is."""
    capture = bundle.manifest.get("capture")
    if not isinstance(capture, Mapping):
        return "The run kept no packet record, so there is no second answer."
    if capture.get("table_error"):
        return f"The table of packets could not be made: {capture['table_error']}"
    if is_gone(bundle):
        return f"{FILE} is not in the bundle; `wanlat capture table` makes it again."
    for entry in capture.get("files") or []:
        if entry.get("system") == system and not entry.get("packets"):
            ended = f": {entry['ended']}" if entry.get("ended") else ""
            return f"The packet record has nothing of {system}{ended}."
    return None


def steps_of(bundle: Bundle, system: str) -> list[RttStep]:
    """The RTT steps of one system, in the order taken; none of a run without."""
    steps = read_document(bundle.directory, RttSteps)
    return [one for one in steps.rtt_steps if one.system == system] if steps is not None else []


def read_record(bundle: Bundle, system: str) -> Record | None:
    """The packets of one system's lab; None if none were recorded of it.

    Raises BundleError where the table is damaged.
    """
    path = bundle.directory / FILE
    frame = _read(path, system) if path.is_file() else pd.DataFrame()
    if frame.empty:
        return None
    ended_ns = int(frame["entry_ns"].max()) if _was_ended(bundle, system) else None
    frame = frame[~_is_calibration(frame, _calibrations(bundle, system))]
    return record_of(frame, system, bundle.manifest, ended_ns)


def record_of(
    frame: pd.DataFrame, system: str, manifest: Mapping[str, Any], ended_ns: int | None = None
) -> Record:
    """The record of a system's rows of packets.parquet, whose index is their number among them.

    Of the manifest it takes the topology and the target node. Packets of calibration are not
    told apart here.
    """
    frame = frame[~frame["duplicate"].astype(bool) & frame["entry_ns"].notna()]
    frame = frame.sort_values("entry_ns", kind="stable")
    nodes, sites, source, target = _named(frame, manifest.get("topology"))

    def ints(name: str, otherwise: int = 0) -> Ints:
        return frame[name].fillna(otherwise).to_numpy(dtype=np.int64)

    is_tcp = frame["protocol"].to_numpy() == TCP
    arrived = (frame["fate"] == "sent").to_numpy() & ~frame["corrupted"].to_numpy(dtype=bool)
    ends = {"source": source, "target": target, "is_tcp": is_tcp, "flags": ints("tcp_flags")}
    ends |= {name: ints(name, -1) for name in ("source_port", "target_port")}
    stream, seq = streams_of(pd.DataFrame({**ends, "seq": ints("tcp_seq")}))
    asked = manifest.get("target")
    return Record(
        system=system,
        sites=sites,
        nodes=tuple(nodes),
        node_site=np.array([sites.index(site) for site in nodes.values()], dtype=np.int64),
        row=frame.index.to_numpy(dtype=np.int64),
        entry_ns=ints("entry_ns"),
        departure_ns=np.where(arrived, ints("departure_ns", -1), -1),
        fate=frame["fate"].to_numpy(dtype=object),
        wire_bytes=ints("bytes"),
        segments=ints("segments", 1),
        payload_bytes=ints("payload_bytes"),
        seq=seq,
        ack=ints("tcp_ack"),
        stream=stream,
        asked=asked.get("node") if isinstance(asked, Mapping) else None,
        ended_ns=ended_ns,
        **ends,
    )


def _read(path: Path, system: str) -> pd.DataFrame:
    """The rows of one system; of a table that names no system, all."""
    # Integers that may be null stay integers: a float has no room for a nanosecond's digits.
    nullable = {
        pa.int64(): pd.Int64Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int16(): pd.Int16Dtype(),
    }
    of_system = (pc.field("system") == system) | pc.field("system").is_null()
    try:
        table = pq.read_table(path, columns=COLUMNS, filters=of_system)
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{path} is damaged: it cannot be read as a table of packets ({error}). "
            "`wanlat capture table` makes it again from the files in capture/."
        ) from error
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame


def _calibrations(bundle: Bundle, system: str) -> list[tuple[int, int]]:
    """When the links of a system's lab were being calibrated, as spans of ns.

    The first ends with the event `calibrated`; the others are those of the RTT steps.
    """
    spans = []
    path = bundle.directory / "events.parquet"
    if path.is_file():
        events = pd.read_parquet(path, columns=["t_ns", "kind", "subject"])
        ends = events.loc[(events["kind"] == "calibrated") & (events["subject"] == system), "t_ns"]
        spans += [(0, int(end)) for end in ends[:1]]
    return spans + [one.calibrated_ns for one in steps_of(bundle, system) if one.calibrated_ns]


def _is_calibration(frame: pd.DataFrame, spans: list[tuple[int, int]]) -> pd.Series[bool]:
    """Which packets are calibration's: its echoes are ICMP, its trains UDP while it lasts."""
    inside = pd.Series(False, index=frame.index)
    for begin, end in spans:
        inside |= frame["entry_ns"].between(begin, end).fillna(False).astype(bool)
    protocol = frame["protocol"].fillna(-1)
    return (protocol != TCP) & ((protocol != UDP) | inside)


def _was_ended(bundle: Bundle, system: str) -> bool:
    """Whether a limit or a full disk ended the record of a system before the run was over."""
    files = (bundle.manifest.get("capture") or {}).get("files") or []
    return any(one.get("system") == system and one.get("ended") for one in files)


def _named(
    frame: pd.DataFrame, topology: object
) -> tuple[dict[str, str], tuple[str, ...], Ints, Ints]:
    """The site of each node by its name, in order; the sites; the nodes of each packet's ends."""
    expected = _addresses(topology)
    ends = [frame[[f"{end}_address", end]] for end in ("source", "target")]
    both = pd.concat([end.set_axis(["address", "site"], axis=1) for end in ends])
    seen: dict[str, str] = dict(both.drop_duplicates("address").to_numpy().tolist())
    names = {
        address: expected[address][0] if expected.get(address, ("", ""))[1] == site else address
        for address, site in seen.items()
    }
    # Nodes that no packet was seen of have their place too: a client may be one.
    homes = dict(expected.values()) | {names[address]: site for address, site in seen.items()}
    known = list(dict.fromkeys(site for _, site in expected.values()))
    sites = (*known, *sorted(set(homes.values()) - set(known)))
    nodes = {node: homes[node] for node in sorted(homes, key=lambda one: sites.index(homes[one]))}
    place = {address: list(nodes).index(name) for address, name in names.items()}
    source, target = (np.asarray(end.iloc[:, 0].map(place), dtype=np.int64) for end in ends)
    return nodes, sites, source, target


def _addresses(topology: object) -> dict[str, tuple[str, str]]:
    """Node and site by address, as a topology's file implies them."""
    members: dict[str, list[str]] = {}
    for node, site in sites_by_node(topology).items():
        members.setdefault(site, []).append(node)
    return {
        f"10.{index}.{position // 254}.{position % 254 + 1}": (node, site)
        for index, (site, nodes) in enumerate(members.items(), start=1)
        for position, node in enumerate(nodes)
    }
