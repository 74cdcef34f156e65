"""The WAN packets of one system's lab, by node and by connection, and which carry a cause.

Addresses are given the names of nodes by the manifest's topology (site i has 10.i.0.0/16, its
nodes are numbered from 1; docs/reference/topology.md); others are called by their address.

A message is what makes somebody at the other end do something: data that was not sent before, the
SYN and SYN-ACK of a new connection, a datagram. It arrives when all of its stream up to its last
byte has: TCP hands nothing over before. So what was lost and sent again is one message, which left
when it was first sent and arrived when its last missing part did; what was sent again for nothing
is none.

A bare acknowledgement causes nothing, but in two cases in which the sender had data and waited:

- Nagle's algorithm (RFC 896) holds back a segment that is not full while anything is unconfirmed.
  Then the acknowledgement of everything outstanding arrives, and at once the segment leaves.
- The congestion window (RFC 5681) is used up: at least ten segments are outstanding, the stream
  has been silent for the time an acknowledgement takes, and goes on at once as one arrives.

Such an acknowledgement is a link from the data that it confirms to the data that it lets go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wanlat.bundle import beneath
from wanlat.bundle.documents import RttStep, RttSteps
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import parquet_file, read_document
from wanlat.bundle.run import Run

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FILE = "packets.parquet"
TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 1, 2, 4, 16
WRAP = 1 << 32
"""Sequence numbers begin again here."""

COLUMNS = [
    *("system", "source", "target", "entry_ns", "departure_ns", "fate", "bytes", "segments"),
    *("source_address", "target_address", "protocol", "source_port", "target_port"),
    *("tcp_seq", "tcp_ack", "tcp_flags", "payload_bytes", "duplicate", "corrupted"),
]


@dataclass(frozen=True, eq=False)
class Record:
    """TCP and UDP packets that entered a WAN link, without calibration's and copies of a link.

    `packets` has one row each, in the order of entry; its index counts from 0, a packet's *place*.
    Columns, all without nulls:

    - `row`: its number among the system's rows of packets.parquet, and in the pcapng file;
    - `source`, `target`: nodes, as places in `nodes`; `source_port`, `target_port`;
    - `entry_ns`, `departure_ns`: when it entered the link and left it (-1: never, or corrupted), on
      CLOCK_MONOTONIC, the clock of the samples; `fate`: what became of it, as
      docs/how-to/capture.md has it;
    - `wire_bytes` with Ethernet headers, and `payload_bytes`, of all its `segments`;
    - `is_tcp`; of TCP `flags`, `ack` (32 bits), and `seq` and `end`: sequence numbers of the first
      byte and after the last (a SYN counts as one), unwrapped; `is_bare_ack`: it does nothing else;
    - `stream`: one direction of one connection; `stream ^ 1` is the other. A connection that uses
      the ports of an earlier one again is another one.

    `node_site` has the place in `sites` of each node's site, shape (nodes,). `target_node` is that
    of requests, where the manifest has it. From `ended_ns` on packets are missing, because a
    limit or a full disk ended the record.
    """

    system: str
    nodes: tuple[str, ...]
    sites: tuple[str, ...]
    node_site: Ints
    packets: pd.DataFrame
    target_node: str | None
    ended_ns: int | None

    def __len__(self) -> int:
        return len(self.packets)

    def ints(self, column: str) -> Ints:
        """A column of `packets` as an array."""
        return np.asarray(self.packets[column], dtype=np.int64)

    def node_of(self, name: str) -> int | None:
        """The place in `nodes` of a node by its name; None: neither topology nor record has it."""
        return self.nodes.index(name) if name in self.nodes else None


def why_no_record(bundle: Run, system: str) -> str | None:
    """Why there is nothing to read of a system's packets, in a sentence; None if there is."""
    capture = bundle.manifest.capture
    if capture is None:
        return "The run kept no packet record, so there is no second answer."
    if capture.table_error:
        return f"The table of packets could not be made: {capture.table_error}"
    if not beneath.is_file(bundle.directory / FILE):
        return f"{FILE} is not in the bundle; `wanlat capture table` makes it again."
    for entry in capture.files:
        if entry.system == system and not entry.packets:
            ended = f": {entry.ended}" if entry.ended else ""
            return f"The packet record has nothing of {system}{ended}."
    return None


def steps_of(bundle: Run, system: str) -> list[RttStep]:
    """The RTT steps of one system, in the order taken; none of a run without."""
    steps = read_document(bundle.directory, RttSteps)
    return [one for one in steps.rtt_steps if one.system == system] if steps is not None else []


def read_record(bundle: Run, system: str) -> Record | None:
    """The packets of one system's lab; None if none were recorded of it.

    Raises BundleError where the table is damaged.
    """
    path = bundle.directory / FILE
    if not beneath.is_file(path):
        return None
    try:
        with parquet_file(path, COLUMNS) as file:
            frame = pd.read_parquet(
                file,
                columns=COLUMNS,
                filters=[("system", "==", system)],
                dtype_backend="numpy_nullable",  # a float has no room for a nanosecond's digits
            )
        if frame.empty:
            return None
        capture = bundle.manifest.capture
        files = capture.files if capture else ()
        was_ended = any(file.system == system and file.ended for file in files)
        ended_ns = int(frame["entry_ns"].max()) if was_ended else None
        frame = frame[~_is_calibration(frame, bundle, system)]
        manifest = bundle.manifest
        target = manifest.target.node if manifest.target else None
        return record_of(frame, system, manifest.site_of_node, target, ended_ns)
    except (
        OSError,
        pa.ArrowException,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise BundleError(
            f"{path} is damaged: it cannot be read as a table of packets ({error}). "
            "`wanlat capture table` makes it again from the files in capture/."
        ) from error


def record_of(
    frame: pd.DataFrame,
    system: str,
    sites: Mapping[str, str],
    target: str | None = None,
    ended_ns: int | None = None,
) -> Record:
    """The record of a system's rows of packets.parquet, with their number among them.

    `sites`: the site of each node; `target`: the node that requests went to. Packets of
    calibration are not distinguished here.
    """
    frame = frame[~frame["duplicate"].astype(bool) & frame["entry_ns"].notna()]
    frame = frame.sort_values("entry_ns", kind="stable")
    site_of, name_of = _nodes(frame, sites)
    known = tuple(dict.fromkeys(site_of.values()))
    nodes = sorted(site_of, key=lambda node: known.index(site_of[node]))
    place = {address: nodes.index(name) for address, name in name_of.items()}

    names = {"bytes": "wire_bytes", "tcp_flags": "flags", "tcp_seq": "seq", "tcp_ack": "ack"}
    otherwise = dict.fromkeys((*names.values(), "payload_bytes", "protocol"), 0)
    otherwise |= {"departure_ns": -1, "source_port": -1, "target_port": -1, "segments": 1}
    packets = frame.rename(columns=names).reset_index(names="row").fillna(otherwise)
    packets = packets.astype(dict.fromkeys([*otherwise, "entry_ns"], np.int64))
    for end in ("source", "target"):
        packets[end] = packets[f"{end}_address"].map(place).astype(np.int64)
    arrived = (packets["fate"] == "sent") & ~packets["corrupted"].astype(bool)
    packets["departure_ns"] = packets["departure_ns"].where(arrived, -1)
    packets["is_tcp"] = packets["protocol"] == TCP
    packets["stream"] = _streams(packets)
    packets["seq"] = _unwrapped(packets["seq"], packets["stream"]) * packets["is_tcp"]
    is_empty = packets["payload_bytes"] == 0
    packets["end"] = packets["seq"] + packets["payload_bytes"] + (packets["flags"] & SYN != 0)
    other = packets["flags"] & (SYN | FIN | RST) != 0
    packets["is_bare_ack"] = packets["is_tcp"] & is_empty & ~other
    return Record(
        system=system,
        nodes=tuple(nodes),
        sites=known,
        node_site=np.array([known.index(site_of[node]) for node in nodes], dtype=np.int64),
        packets=packets,
        target_node=target,
        ended_ns=ended_ns,
    )


def _streams(packets: pd.DataFrame) -> pd.Series[int]:
    """The stream of each packet, which come in the order of entry."""
    near = packets["source"] * 65536 + packets["source_port"]
    far = packets["target"] * 65536 + packets["target_port"]
    ends = [np.minimum(near, far), np.maximum(near, far), packets["is_tcp"]]
    pair = packets.groupby(ends).ngroup()
    # Between two ends a new connection begins with each SYN, but for one that is sent again.
    is_syn = packets["is_tcp"] & (packets["flags"] & (SYN | ACK) == SYN)
    opening = packets["seq"].where(is_syn)
    before = opening.groupby(pair).ffill().groupby(pair).shift()
    number = (is_syn & (opening != before)).groupby(pair).cumsum()
    return 2 * packets.groupby([pair, number]).ngroup() + (near > far)


def _unwrapped(seq: pd.Series[int], stream: pd.Series[int]) -> pd.Series[int]:
    """Sequence numbers that go on beyond 2³², each stream's from its first packet's."""
    steps = seq.groupby(stream).diff().fillna(0).astype(np.int64)
    steps = (steps + WRAP // 2) % WRAP - WRAP // 2  # the nearest of the numbers it may be
    return seq.groupby(stream).transform("first") + steps.groupby(stream).cumsum()


def _is_calibration(frame: pd.DataFrame, bundle: Run, system: str) -> pd.Series[bool]:
    """Which packets are calibration's: its echoes are ICMP, its trains UDP while it lasts.

    It lasts until the event that ends it, and at each RTT step.
    """
    spans = [one.calibrated_ns for one in steps_of(bundle, system) if one.calibrated_ns]
    path = bundle.directory / "events.parquet"
    if beneath.is_file(path):
        columns = ["t_ns", "kind", "subject"]
        with parquet_file(path, columns) as file:
            events = pd.read_parquet(file, columns=columns)
        ends = events.loc[(events["kind"] == "calibrated") & (events["subject"] == system), "t_ns"]
        spans += [(0, int(end)) for end in ends[:1]]
    inside = pd.Series(False, index=frame.index)
    for begin, end in spans:
        inside |= frame["entry_ns"].between(begin, end).fillna(False).astype(bool)
    protocol = frame["protocol"].fillna(-1)
    return (protocol != TCP) & ((protocol != UDP) | inside)


def _nodes(frame: pd.DataFrame, sites: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The site of each node by its name, and the name of each address in the record.

    Nodes that no packet was seen of have their place too: a client may be one.
    """
    members: dict[str, list[str]] = {}
    for node, site in sites.items():
        members.setdefault(site, []).append(node)
    known = {
        f"10.{number}.{place // 254}.{place % 254 + 1}": node
        for number, nodes in enumerate(members.values(), start=1)
        for place, node in enumerate(nodes)
    }
    site_of = {**sites}
    name_of: dict[str, str] = {}
    for end in ("source", "target"):
        seen = frame[[f"{end}_address", end]].drop_duplicates()
        for address, site in seen.itertuples(index=False, name=None):
            name_of[address] = known.get(address, address)
            site_of.setdefault(name_of[address], site)
    return site_of, name_of


AT_ONCE_NS = 3_000_000
"""A message that left within this time after another arrived at its site's router was most likely
caused by it: two ways over the LAN, the kernel, and a program that does not wait for a disk."""
_RELEASED_AT_ONCE_NS = 1_000_000
"""The same of an acknowledgement and the data that it let go, which no program has a hand in."""
FULL_SEGMENT_BYTES = 1448
"""Of data, where Ethernet's 1500 bytes have TCP's timestamps in them."""
INITIAL_WINDOW = 10
"""Segments (RFC 6928)."""
NEVER = 1 << 62


@dataclass(frozen=True)
class Messages:
    """The links that a critical path may be made of, in the order of entry; arrays (messages,)."""

    packet: Ints
    """The place in the record of the packet that carries it; of several, the last's."""
    releases: Ints
    """Of an acknowledgement that was waited for: the place, among these, of what it let go; -1."""
    arrival_ns: Ints
    """Of shape (packets,): when each packet had arrived with all before it; NEVER: it did not."""
    is_resent: Bools
    """Of shape (packets,): which packets of the record were there before."""


@lru_cache(maxsize=2)  # whatever is said of a record begins with them
def messages_of(record: Record) -> Messages:
    """Find the messages in a record, and the acknowledgements that somebody waited for."""
    packets = record.packets
    left_ns = record.ints("departure_ns")
    arrival_ns = np.where(left_ns >= 0, left_ns, NEVER)
    data = packets[packets["is_tcp"] & (packets["end"] > packets["seq"])]
    sent = data["end"].groupby(data["stream"]).cummax().groupby(data["stream"]).shift()
    is_resent = np.zeros(len(packets), dtype=bool)
    is_resent[data.index[data["end"] <= sent]] = True
    for _, stream in data.groupby("stream"):
        places = stream.index.to_numpy()
        begin, end = (stream[name].to_numpy() for name in ("seq", "end"))
        arrival_ns[places] = _handed_over(begin, end, arrival_ns[places])
    is_message = ~packets["is_tcp"].to_numpy()
    is_message[data.index] = ~is_resent[data.index]
    released = _waited_for(packets, data[is_message[data.index] & (data["flags"] & SYN == 0)])
    packet = np.flatnonzero(is_message | (released >= 0))
    number = np.full(len(packets) + 1, -1, dtype=np.int64)
    number[packet] = np.arange(len(packet))
    return Messages(packet, number[released[packet]], arrival_ns, is_resent)


def _handed_over(begin: Ints, end: Ints, arrival_ns: Ints) -> Ints:
    """When each packet of a stream is whole together with all before it."""
    edges = np.unique(np.r_[begin, end])
    first, last = np.searchsorted(edges, begin), np.searchsorted(edges, end)
    # Of the bytes between two edges, when the first copy arrived; then of all up to there.
    came_ns = np.full(len(edges), NEVER, dtype=np.int64)
    for low, high, arrival in zip(first, last, arrival_ns, strict=True):
        came_ns[low:high] = np.minimum(came_ns[low:high], arrival)
    return np.maximum.accumulate(came_ns)[last - 1]


def _waited_for(packets: pd.DataFrame, data: pd.DataFrame) -> Ints:
    """For each packet the place of the `data` that it let go, being an acknowledgement; else -1."""
    released = np.full(len(packets), -1, dtype=np.int64)
    is_ack = packets["is_tcp"] & (packets["flags"] & ACK != 0) & (packets["departure_ns"] >= 0)
    acks = dict(list(packets[is_ack].sort_values("departure_ns", kind="stable").groupby("stream")))
    for stream, sent in data.groupby("stream"):
        if (answers := acks.get(int(str(stream)) ^ 1)) is not None and len(sent) > 1:
            _let_go(sent, answers, released)
    return released


def _let_go(data: pd.DataFrame, acks: pd.DataFrame, released: Ints) -> None:
    """Mark in `released`, for one stream of data, the acknowledgements that it waited for.

    `acks` are those of the other direction in the order of arrival.
    """
    arrivals, entries = acks["departure_ns"].to_numpy(), data["entry_ns"].to_numpy()
    is_bare, takes = acks["is_bare_ack"].to_numpy(), arrivals - acks["entry_ns"].to_numpy()
    # How far data is confirmed before the first acknowledgement and after each, unwrapped.
    base = int(data["seq"].iloc[0])
    steps = np.diff(acks["ack"].to_numpy(), prepend=base % WRAP)
    steps = (steps + WRAP // 2) % WRAP - WRAP // 2
    confirmed = np.r_[base, np.maximum.accumulate(base + np.cumsum(steps))]
    sent, before, now = data["end"].to_numpy()[:-1], entries[:-1], entries[1:]
    is_full = data["payload_bytes"] >= FULL_SEGMENT_BYTES * data["segments"]
    # The last to arrive before the data left, and the first of those that arrived just then.
    last = np.searchsorted(arrivals, now, side="right") - 1
    first = np.searchsorted(
        arrivals, np.maximum(before, now - _RELEASED_AT_ONCE_NS - 1), side="right"
    )
    none = first > last
    first = np.minimum(first, len(arrivals) - 1)
    outstanding = sent - confirmed[first]
    nagle = ~is_full.to_numpy()[1:] & (confirmed[last + 1] >= sent)
    used_up = outstanding >= INITIAL_WINDOW * FULL_SEGMENT_BYTES
    used_up &= arrivals[first] - before >= takes[last]
    waited = ~none & is_bare[last] & (outstanding > 0) & (nagle | used_up)
    released[acks.index[last[waited]]] = data.index[1:][waited]
