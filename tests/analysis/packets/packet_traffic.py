"""Packets made up: who sends what to whom and when, as the record of a lab would have it.

A connection is opened at once between two nodes when they first speak. Acknowledgements ride on
the data of the other direction; where there is none within 40 ms, a bare one is sent, as Linux
does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pandas as pd

from wanlat.analysis.packets.record import COLUMNS, Record, record_of
from wanlat.bundle.documents import Topology

MS = 1_000_000
THINKS_NS = 300_000
HEADERS = 66
DELAYED_ACK_NS = 40 * MS
SERVICE = 9001
SITES = ("a", "b", "c", "d", "e")

Row = dict[str, Any]


def topology(sites: Sequence[str] = SITES, nodes: int = 1) -> Row:
    names = {site: [f"{site}{number}" for number in range(1, nodes + 1)] for site in sites}
    return {
        "name": "made-up",
        "sites": [{"name": site, "nodes": names[site]} for site in sites],
    }


def sites_of(topology: Row) -> dict[str, str]:
    return Topology.model_validate(topology).site_of_node


@dataclass
class Traffic:
    """The packets of a lab whose links take `one_way_ns`; each `send` returns the arrival."""

    one_way_ns: int = 100 * MS
    sites: tuple[str, ...] = SITES
    nodes: int = 1
    acknowledges: bool = True
    first_seq: int = 1000
    rows: list[Row] = field(default_factory=list)
    ports: dict[frozenset[str], tuple[str, int]] = field(default_factory=dict)

    def send(self, at_ns: int, source: str, target: str, payload: int = 100, **other: Any) -> int:
        """Data over the connection of two nodes, whoever opened it; other packets by `other`."""
        opener, port = self.ports.setdefault(
            frozenset((source, target)), (source, 40_000 + len(self.ports))
        )
        arrival_ns: int = at_ns + other.pop("takes_ns", self.one_way_ns)
        row = {
            "system": "made-up",
            "source": source[0],
            "target": target[0],
            "entry_ns": at_ns,
            "departure_ns": arrival_ns if other.get("fate", "sent") == "sent" else None,
            "fate": "sent",
            "bytes": payload + HEADERS,
            "segments": 1,
            "source_address": self.address(source),
            "target_address": self.address(target),
            "protocol": 6,
            "source_port": port if source == opener else SERVICE,
            "target_port": SERVICE if source == opener else port,
            "tcp_flags": 24 if other.get("protocol", 6) == 6 else None,
            "payload_bytes": payload,
            "duplicate": False,
            "corrupted": False,
            "again": None,
            "ends": (source, target),
        }
        self.rows.append(row | other)
        return arrival_ns

    def again(self, at_ns: int, row: Row, **other: Any) -> int:
        """The data of a row (`rows[-1]` is what was sent last) once more."""
        source, target = row["ends"]
        return self.send(at_ns, source, target, row["payload_bytes"], again=row, **other)

    def opening(self, at_ns: int, source: str, target: str) -> int:
        """SYN and SYN-ACK of a new connection; returns when the first data may leave."""
        self.ports[frozenset((source, target))] = (source, 40_000 + len(self.rows))
        there = self.send(at_ns, source, target, 0, tcp_flags=2)
        return self.send(there + 50_000, target, source, 0, tcp_flags=18) + 50_000

    def ack(self, at_ns: int, source: str, target: str) -> int:
        """A bare acknowledgement of all that has arrived."""
        return self.send(at_ns, source, target, 0, tcp_flags=16)

    def address(self, node: str) -> str:
        return f"10.{self.sites.index(node[0]) + 1}.0.{node[1:]}"

    def frame(self) -> pd.DataFrame:
        """The rows of packets.parquet, acknowledgements and sequence numbers filled in."""
        tcp = [row for row in self.rows if row["protocol"] == 6]
        leaves: dict[object, list[int]] = {}
        for row in tcp:
            leaves.setdefault(_way(row), []).append(row["entry_ns"])
        for row in sorted(tcp, key=lambda row: row["departure_ns"] or 0):
            came, back = row["departure_ns"], leaves.setdefault(_way(row)[::-1], [])
            is_due = self.acknowledges and row["payload_bytes"] and came
            if is_due and not any(came <= at <= came + DELAYED_ACK_NS for at in back):
                source, target = row["ends"]
                self.ack(came + DELAYED_ACK_NS, target, source)
                tcp.append(self.rows[-1])
                back.append(came + DELAYED_ACK_NS)
        self.rows.sort(key=lambda row: int(row["entry_ns"]))
        events = [(row["departure_ns"], 0, row) for row in tcp if row["departure_ns"]]
        events += [(row["entry_ns"], 1, row) for row in tcp]
        sent: dict[object, int] = {}
        received: dict[object, int] = {}
        for _, is_entry, row in sorted(events, key=lambda event: event[:2]):
            way, is_syn = _way(row), bool(row["tcp_flags"] & 2)
            if not is_entry:
                end = row["tcp_seq"] + row["payload_bytes"] + is_syn
                received[way] = max(received.get(way, 0), end)
                continue
            next_seq = sent.get(way, self.first_seq)
            row["tcp_seq"] = row["again"]["tcp_seq"] if row["again"] else next_seq - is_syn
            sent[way] = next_seq if row["again"] else next_seq + row["payload_bytes"]
            if row["tcp_flags"] & 16:
                row["tcp_ack"] = received.get(way[::-1], self.first_seq) % (1 << 32)
        frame = pd.DataFrame(self.rows, columns=COLUMNS)
        frame["tcp_seq"] = frame["tcp_seq"].astype("Int64") % (1 << 32)
        whole = ["entry_ns", "departure_ns", "tcp_seq", "tcp_ack", "tcp_flags"]
        return frame.astype(dict.fromkeys(whole, "Int64"))

    def record(self) -> Record:
        return record_of(self.frame(), "made-up", sites_of(topology(self.sites, self.nodes)))


def _way(row: Row) -> tuple[object, object]:
    source, target = row["ends"]
    return (source, row["source_port"]), (target, row["target_port"])


def samples(
    requests: Sequence[tuple[str, int, int]], client: str = "a1", rtt_ms: float = 200.0
) -> pd.DataFrame:
    """Rows of samples.parquet: (endpoint, start, end) each."""
    rows = pd.DataFrame(requests, columns=["endpoint", "start_ns", "end_ns"])
    lasted_ns = rows.pop("end_ns") - rows["start_ns"]
    words = {"system": "made-up", "version": "1", "placement": "unknown", "phase": "measure"}
    words |= {"topology": "made-up", "client": client, "outcome": "ok"}
    rows = rows.assign(**words, target=None, rtt_ms=rtt_ms, rtt_step=0)
    rows = rows.assign(total_ns=lasted_ns, elapsed_ns=lasted_ns)
    whole = ["start_ns", "total_ns", "elapsed_ns", "rtt_step"]
    types = dict.fromkeys(whole, "Int64") | dict.fromkeys(["endpoint", *words], "category")
    return rows.astype(types | {"rtt_ms": "Float64"})


Protocol = Callable[[Traffic, int], int]
"""Makes the packets of a request that starts then, and returns when it is answered."""


def majority_rounds(rounds: int, asked: str = "a1", waits_ns: int = 0) -> Protocol:
    """Rounds to all other sites, each over when two of four have replied."""

    def run(traffic: Traffic, at_ns: int) -> int:
        for number in range(rounds):
            replies = []
            others = [f"{site}1" for site in traffic.sites if f"{site}1" != asked]
            for place, peer in enumerate(others):
                there = traffic.send(at_ns + THINKS_NS + place * 10_000, asked, peer, 200 + number)
                wait_ns = waits_ns if number == 0 else 0
                back = traffic.send(there + THINKS_NS + wait_ns, peer, asked, 40 + number)
                replies.append(back + (place == 3) * 500_000)
            at_ns = sorted(replies)[1] + THINKS_NS
        return at_ns

    return run


def by_leader(traffic: Traffic, at_ns: int, client: str = "a1", leader: str = "b1") -> int:
    """The asked node forwards to a leader, which asks the others: two round trips."""
    there = traffic.send(at_ns + THINKS_NS, client, leader, 300)
    done = majority_rounds(1, leader)(traffic, there)
    return traffic.send(done + THINKS_NS, leader, client, 50) + THINKS_NS


def relay(traffic: Traffic, at_ns: int, way: str, *payloads: int) -> int:
    """From node to node, each a little after what it got; the last payload again and again."""
    sizes = [*payloads, *[payloads[-1] if payloads else 100] * len(way)]
    for (source, target), size in zip(pairwise(way.split()), sizes, strict=False):
        at_ns = traffic.send(at_ns + THINKS_NS, source, target, size)
    return at_ns


def alone(_traffic: Traffic, at_ns: int) -> int:
    """Answered by the node that is asked."""
    return at_ns + 2 * MS


def one_after_another(
    traffic: Traffic, requests: Sequence[tuple[str, Protocol]], begin_ns: int = 10**9
) -> list[tuple[str, int, int]]:
    """Play requests, the next 0.3 ms after each answer."""
    done, at_ns = [], begin_ns
    for name, protocol in requests:
        end_ns = protocol(traffic, at_ns)
        done.append((name, at_ns, end_ns))
        at_ns = end_ns + 300_000
    return done


def heartbeats(
    traffic: Traffic, begin_ns: int, end_ns: int, every_ns: int, payload: int = 25
) -> None:
    """Every node pings every other and is answered, all the time."""
    nodes = [f"{site}1" for site in traffic.sites]
    for place, source in enumerate(nodes):
        for at_ns in range(begin_ns + 7 * MS * place, end_ns, every_ns):
            for other, target in enumerate(nodes[place + 1 :], start=place + 1):
                there = traffic.send(at_ns + other * 20_000, source, target, payload)
                traffic.send(there + 100_000, target, source, payload)
