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
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.packets.connections import streams_of
from wanlat.bundle.documents import RttSteps
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_document

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Spans = list[tuple[int, int]]

FILE = "packets.parquet"
TCP, UDP = 6, 17
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

_COLUMNS = [
    *("system", "source", "target", "entry_ns", "departure_ns", "fate", "bytes", "segments"),
    *("source_address", "target_address", "protocol", "source_port", "target_port"),
    *("tcp_seq", "tcp_ack", "tcp_flags", "payload_bytes", "duplicate", "corrupted"),
]


@dataclass(frozen=True)
class Record:
    """TCP and UDP packets that entered a WAN link, in the order of entry; arrays of shape (n,).

    Calibration's own packets are not among them, nor copies that a link made. Instants are
    CLOCK_MONOTONIC, ns, the clock of the samples.
    """

    system: str
    sites: tuple[str, ...]
    nodes: tuple[str, ...]
    """Their names; `source` and `target` count from 0 into it."""
    node_site: Ints
    """The place in `sites` of each node's site, shape (nodes,)."""
    row: Ints
    """The row of each packet in packets.parquet."""
    source: Ints
    target: Ints
    entry_ns: Ints
    departure_ns: Ints
    """When it left the link for the target's site; -1: it never did, or not unharmed."""
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
    """The node that requests are sent to, where the manifest tells."""
    ended_ns: int | None
    """From when on packets are missing, because a limit or a full disk ended the record."""

    def __len__(self) -> int:
        return len(self.entry_ns)

    @cached_property
    def is_bare_ack(self) -> Bools:
        """Which packets do nothing but acknowledge."""
        other = self.flags & (SYN | FIN | RST) != 0
        bare: Bools = self.is_tcp & (self.payload_bytes == 0) & ~other
        return bare

    @cached_property
    def source_site(self) -> Ints:
        """The place in `sites` of the site that each packet left."""
        return self.node_site[self.source]

    @cached_property
    def target_site(self) -> Ints:
        """The place in `sites` of the site that each packet went to."""
        return self.node_site[self.target]

    def site_of(self, node: str) -> int | None:
        """The place in `sites` of the site of a node by its name; None: it is not known."""
        place = self.node_of(node)
        return None if place is None else int(self.node_site[place])

    def node_of(self, name: str) -> int | None:
        """The place in `nodes` of a node by its name; None: neither topology nor record has it."""
        return self.nodes.index(name) if name in self.nodes else None


def has_record(bundle: Bundle) -> bool:
    """Whether a bundle has a table of packets at all."""
    return (bundle.directory / FILE).is_file()


def is_gone(bundle: Bundle) -> bool:
    """Whether packets were recorded and their table is no longer there."""
    return isinstance(bundle.manifest.get("capture"), Mapping) and not has_record(bundle)


def why_no_record(bundle: Bundle, system: str) -> str | None:
    """Why there is nothing to read of a system's packets, in a sentence; None if there is."""
    capture = bundle.manifest.get("capture")
    if not isinstance(capture, Mapping):
        return "The run kept no packet record, so there is no second answer."
    if capture.get("table_error"):
        return f"The table of packets could not be made: {capture['table_error']}"
    if not has_record(bundle):
        return f"{FILE} is not in the bundle; `wanlat capture table` makes it again."
    for entry in capture.get("files") or []:
        if entry.get("system") == system and not entry.get("packets"):
            ended = f": {entry['ended']}" if entry.get("ended") else ""
            return f"The packet record has nothing of {system}{ended}."
    return None


def read_record(bundle: Bundle, system: str) -> Record | None:
    """The packets of one system's lab; None if none were recorded of it.

    Raises BundleError where the table is damaged.
    """
    path = bundle.directory / FILE
    if not path.is_file():
        return None
    frame = _read(path, system)
    if frame.empty:
        return None
    in_calibration = _inside(frame["entry_ns"], _calibrations(bundle, system))
    kept = frame[~_is_calibration(frame, in_calibration)]
    ended_ns = _ended_ns(bundle, system, frame)
    return record_of(kept, system, bundle.manifest, ended_ns)


def record_of(
    frame: pd.DataFrame, system: str, manifest: Mapping[str, Any], ended_ns: int | None = None
) -> Record:
    """The record of rows of packets.parquet, whose index is their place in it.

    Of the manifest it takes the topology, and the node that was asked. Packets of calibration are
    not told apart here.
    """
    import numpy as np

    frame = frame[~frame["duplicate"].astype(bool) & frame["entry_ns"].notna()]
    frame = frame.sort_values("entry_ns", kind="stable")
    nodes, node_site, sites, codes = _nodes(frame, manifest.get("topology"))
    source, target = (codes[name].to_numpy() for name in ("source", "target"))

    def ints(name: str, otherwise: int = 0) -> Ints:
        return frame[name].fillna(otherwise).to_numpy(dtype=np.int64)

    is_tcp = frame["protocol"].to_numpy() == TCP
    arrived = (frame["fate"] == "sent").to_numpy() & ~frame["corrupted"].to_numpy(dtype=bool)
    flags, seq = ints("tcp_flags"), ints("tcp_seq")
    source_port, target_port = ints("source_port", -1), ints("target_port", -1)
    stream, unwrapped = streams_of(source, target, source_port, target_port, is_tcp, flags, seq)
    return Record(
        system=system,
        sites=sites,
        nodes=nodes,
        node_site=node_site,
        row=frame.index.to_numpy(dtype=np.int64),
        source=source,
        target=target,
        entry_ns=ints("entry_ns"),
        departure_ns=np.where(arrived, ints("departure_ns", -1), -1),
        wire_bytes=ints("bytes"),
        segments=ints("segments", 1),
        payload_bytes=ints("payload_bytes"),
        is_tcp=is_tcp,
        flags=flags,
        seq=unwrapped,
        ack=ints("tcp_ack"),
        source_port=source_port,
        target_port=target_port,
        stream=stream,
        asked=_asked(manifest),
        ended_ns=ended_ns,
    )


def _asked(manifest: Mapping[str, Any]) -> str | None:
    target = manifest.get("target")
    node = target.get("node") if isinstance(target, Mapping) else None
    return node if isinstance(node, str) else None


def _read(path: Path, system: str) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=_COLUMNS)
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{path} is damaged: it cannot be read as a table of packets ({error}). "
            "`wanlat capture table` makes it again from the files in capture/."
        ) from error
    if set(pc.unique(table["system"]).to_pylist()) != {None}:
        table = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
        table = table.filter(pc.equal(table["system"], system))
        frame: pd.DataFrame = table.to_pandas(types_mapper=_nullable)
        return frame.set_index("row")
    unnamed: pd.DataFrame = table.to_pandas(types_mapper=_nullable)
    return unnamed


def _nullable(kind: Any) -> Any:
    """Integers that may be null stay integers: a float has no room for a nanosecond's digits."""
    import pandas as pd
    import pyarrow as pa

    return pd.Int64Dtype() if pa.types.is_integer(kind) else None


def _calibrations(bundle: Bundle, system: str) -> Spans:
    """When the links of a system's lab were being calibrated, as spans of ns.

    The first ends with the event `calibrated`; the others are those of the visits.
    """
    spans: Spans = []
    first = _first_calibration_ns(bundle, system)
    if first is not None:
        spans.append((-(1 << 62), first))
    steps = read_document(bundle.directory, RttSteps)
    for step in steps.rtt_steps if steps is not None else ():
        if step.system == system and step.calibrated_ns:
            spans.append(step.calibrated_ns)
    return spans


def _first_calibration_ns(bundle: Bundle, system: str) -> int | None:
    import pandas as pd

    path = bundle.directory / "events.parquet"
    if not path.is_file():
        return None
    events = pd.read_parquet(path, columns=["t_ns", "kind", "subject"])
    ends = events.loc[(events["kind"] == "calibrated") & (events["subject"] == system), "t_ns"]
    return int(ends.min()) if len(ends) else None


def _inside(instants: pd.Series[int], spans: Spans) -> Bools:
    import numpy as np

    inside = np.zeros(len(instants), dtype=bool)
    values = instants.fillna(-1).to_numpy(dtype=np.int64)
    for begin, end in spans:
        inside |= (values >= begin) & (values <= end)
    return inside


def _is_calibration(frame: pd.DataFrame, in_calibration: Bools) -> Bools:
    """Which packets are calibration's, or no message of any store.

    Its echoes are ICMP. Its trains are UDP between ports of their own: those between which
    nothing crosses but while it calibrates. A store's own datagrams do not keep to that.
    """
    import numpy as np

    protocol = frame["protocol"].fillna(-1).to_numpy(dtype=np.int64)
    is_udp = protocol == UDP
    left_out = (protocol != TCP) & ~is_udp
    if is_udp.any():
        names = ["source_address", "source_port", "target_address", "target_port"]
        datagrams = frame.loc[is_udp, names].copy()
        datagrams["inside"] = in_calibration[is_udp]
        only_inside = datagrams.groupby(names, dropna=False)["inside"].transform("all")
        left_out[is_udp] = only_inside.to_numpy(dtype=bool)
    return np.asarray(left_out, dtype=bool)


def _ended_ns(bundle: Bundle, system: str, frame: pd.DataFrame) -> int | None:
    capture = bundle.manifest.get("capture")
    files = capture.get("files") if isinstance(capture, Mapping) else None
    for entry in files if isinstance(files, list) else []:
        if entry.get("system") == system and entry.get("ended"):
            return int(frame["entry_ns"].max()) if len(frame) else 0
    return None


def _nodes(
    frame: pd.DataFrame, topology: object
) -> tuple[tuple[str, ...], Ints, tuple[str, ...], pd.DataFrame]:
    """Names of the nodes, the place of each one's site, the sites, and the nodes of each packet."""
    import numpy as np
    import pandas as pd

    ends = pd.concat(
        [
            frame[["source_address", "source"]].set_axis(["address", "site"], axis=1),
            frame[["target_address", "target"]].set_axis(["address", "site"], axis=1),
        ]
    ).drop_duplicates()
    asked = _addresses(topology)
    sites = tuple(dict.fromkeys(site for _, site in asked.values())) or ()
    sites += tuple(sorted(set(ends["site"]) - set(sites)))
    homes: dict[str, str] = dict(zip(ends["address"], ends["site"], strict=True))
    names = {
        address: asked[address][0] if asked.get(address, ("", ""))[1] == site else address
        for address, site in homes.items()
    }
    # Nodes that no packet was seen of have their place too: a client may be one.
    known = {name: site for name, site in asked.values() if name not in names.values()}
    placed = {names[address]: site for address, site in homes.items()} | known
    nodes = tuple(sorted(placed, key=lambda name: (sites.index(placed[name]), name)))
    place = {name: number for number, name in enumerate(nodes)}
    codes = pd.DataFrame(
        {
            end: frame[f"{end}_address"].map({a: place[n] for a, n in names.items()}).astype(int)
            for end in ("source", "target")
        }
    )
    node_site = np.array([sites.index(placed[name]) for name in nodes], dtype=np.int64)
    return nodes, node_site, sites, codes


def _addresses(topology: object) -> dict[str, tuple[str, str]]:
    """Node and site by address, as a topology's file implies them."""
    found: dict[str, tuple[str, str]] = {}
    sites = topology.get("sites") if isinstance(topology, Mapping) else None
    for index, site in enumerate(sites if isinstance(sites, list) else [], start=1):
        if not isinstance(site, Mapping):
            continue
        name, nodes = str(site.get("name")), site.get("nodes")
        if isinstance(nodes, int):
            nodes = [f"{name}-{number}" for number in range(1, nodes + 1)]
        for position, node in enumerate(nodes if isinstance(nodes, list) else []):
            called = str(node.get("name")) if isinstance(node, Mapping) else str(node)
            found[f"10.{index}.{position // 254}.{position % 254 + 1}"] = (called, name)
    return found
