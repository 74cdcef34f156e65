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

MS = 1_000_000
THINKS_NS = 300_000
HEADERS = 66
DELAYED_ACK_NS = 40 * MS
SERVICE = 9001

SITES = ("a", "b", "c", "d", "e")


def topology(sites: Sequence[str] = SITES, nodes: int = 1) -> dict[str, Any]:
    return {
        "name": "made-up",
        "sites": [
            {"name": site, "nodes": [f"{site}{number}" for number in range(1, nodes + 1)]}
            for site in sites
        ],
    }


@dataclass
class Traffic:
    """The packets of a lab whose links take `one_way_ns`; each `send` returns the arrival."""

    one_way_ns: int = 100 * MS
    sites: tuple[str, ...] = SITES
    nodes: int = 1
    acknowledges: bool = True
    first_seq: int = 1000
    rows: list[dict[str, Any]] = field(default_factory=list)
    ports: dict[frozenset[str], tuple[str, int]] = field(default_factory=dict)

    def send(self, at_ns: int, source: str, target: str, payload: int = 100, **other: Any) -> int:
        """Data over the connection of two nodes, whoever opened it."""
        return self._packet(at_ns, source, target, payload, tcp_flags=24, **other)

    def again(self, at_ns: int, row: dict[str, Any], **other: Any) -> int:
        """The data of a row (`rows[-1]` is what was sent last) once more."""
        source, target = (self._name(row[f"{end}_address"]) for end in ("source", "target"))
        return self.send(at_ns, source, target, row["payload_bytes"], again=row, **other)

    def opening(self, at_ns: int, source: str, target: str) -> int:
        """SYN and SYN-ACK of a new connection; returns when the first data may leave."""
        self.ports[frozenset((source, target))] = (source, 40_000 + len(self.rows))
        there = self._packet(at_ns, source, target, 0, tcp_flags=2)
        return self._packet(there + 50_000, target, source, 0, tcp_flags=18) + 50_000

    def ack(self, at_ns: int, source: str, target: str) -> int:
        """A bare acknowledgement of all that has arrived."""
        return self._packet(at_ns, source, target, 0, tcp_flags=16)

    def datagram(
        self, at_ns: int, source: str, target: str, payload: int = 100, **other: Any
    ) -> int:
        return self._packet(at_ns, source, target, payload, protocol=17, **other)

    def echo(self, at_ns: int, source: str, target: str) -> int:
        """Calibration's: ICMP, which has no ports."""
        return self._packet(
            at_ns, source, target, 20, protocol=1, source_port=None, target_port=None
        )

    def _packet(self, at_ns: int, source: str, target: str, payload: int, **other: Any) -> int:
        opener, port = self.ports.setdefault(
            frozenset((source, target)), (source, 40_000 + len(self.ports))
        )
        takes_ns = other.pop("takes_ns", self.one_way_ns)
        row = {
            "system": "made-up",
            "source": source[0],
            "target": target[0],
            "entry_ns": at_ns,
            "departure_ns": at_ns + takes_ns,
            "fate": "sent",
            "bytes": payload + HEADERS,
            "segments": 1,
            "source_address": self.address(source),
            "target_address": self.address(target),
            "protocol": 6,
            "source_port": port if source == opener else SERVICE,
            "target_port": SERVICE if source == opener else port,
            "tcp_seq": None,
            "tcp_ack": None,
            "tcp_flags": None,
            "payload_bytes": payload,
            "duplicate": False,
            "corrupted": False,
            "again": None,
        } | other
        if row["fate"] != "sent":
            row["departure_ns"] = None
        self.rows.append(row)
        return at_ns + takes_ns

    def address(self, node: str) -> str:
        return f"10.{self.sites.index(node[0]) + 1}.0.{node[1:]}"

    def frame(self) -> pd.DataFrame:
        """The rows of packets.parquet, acknowledgements filled in."""
        if self.acknowledges:
            self._delayed_acks()
        self.rows.sort(key=lambda row: row["entry_ns"])
        self._number()
        received: dict[tuple[Any, ...], int] = {}
        events = [(row["departure_ns"], 0, row) for row in self.rows if row["departure_ns"]]
        events += [(row["entry_ns"], 1, row) for row in self.rows]
        for _, kind, row in sorted(events, key=lambda event: event[:2]):
            if row["protocol"] != 6:
                continue
            way, back = _ways(row)
            if kind == 0:
                has = row["payload_bytes"] + bool(row["tcp_flags"] & 2)
                received[way] = max(received.get(way, 0), row["tcp_seq"] + has)
            elif row["tcp_ack"] is None and row["tcp_flags"] & 16:
                row["tcp_ack"] = received.get(back, self.first_seq) % (1 << 32)
        frame = pd.DataFrame(self.rows, columns=COLUMNS)
        frame["tcp_seq"] = frame["tcp_seq"].astype("Int64") % (1 << 32)
        whole = ["entry_ns", "departure_ns", "tcp_seq", "tcp_ack", "tcp_flags"]
        return frame.astype(dict.fromkeys(whole, "Int64"))

    def _number(self) -> None:
        """Give data its sequence numbers, in the order in which it is sent."""
        upto: dict[tuple[Any, ...], int] = {}
        for row in self.rows:
            if row["protocol"] != 6:
                continue
            way = _ways(row)[0]
            if row["tcp_flags"] & 2:
                row["tcp_seq"] = self.first_seq - 1
            elif row["again"] is not None:
                row["tcp_seq"] = row["again"]["tcp_seq"]
            else:
                row["tcp_seq"] = upto.get(way, self.first_seq)
                upto[way] = row["tcp_seq"] + row["payload_bytes"]

    def _delayed_acks(self) -> None:
        data = sorted(
            (row for row in self.rows if row["payload_bytes"] and row["departure_ns"]),
            key=lambda row: row["departure_ns"],
        )
        leaves: dict[tuple[Any, ...], list[int]] = {}
        for row in self.rows:
            if row["protocol"] == 6:
                leaves.setdefault(_ways(row)[0], []).append(row["entry_ns"])
        for row in data:
            if row["protocol"] != 6:
                continue
            back = _ways(row)[1]
            came = row["departure_ns"]
            if not any(came <= at <= came + DELAYED_ACK_NS for at in leaves.get(back, [])):
                source, target = (self._name(row[f"{end}_address"]) for end in ("target", "source"))
                self.ack(came + DELAYED_ACK_NS, source, target)
                leaves.setdefault(back, []).append(came + DELAYED_ACK_NS)

    def _name(self, address: str) -> str:
        _, site, _, number = address.split(".")
        return f"{self.sites[int(site) - 1]}{number}"

    def record(self) -> Record:
        return record_of(self.frame(), "made-up", {"topology": topology(self.sites, self.nodes)})


def _ways(row: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    source = (row["source_address"], row["source_port"])
    target = (row["target_address"], row["target_port"])
    return (source, target), (target, source)


def samples(
    requests: Sequence[tuple[str, int, int]],
    client: str = "a1",
    rtt_ms: float = 200.0,
) -> pd.DataFrame:
    """Rows of samples.parquet: (endpoint, start, end) each."""
    rows = pd.DataFrame(requests, columns=["endpoint", "start_ns", "end_ns"])
    lasted_ns = rows.pop("end_ns") - rows["start_ns"]
    rows = rows.assign(
        system="made-up", version="1", topology="made-up", client=client, target=None
    )
    rows = rows.assign(
        placement="unknown", phase="measure", outcome="ok", rtt_ms=rtt_ms, rtt_step=0
    )
    rows = rows.assign(total_ns=lasted_ns, elapsed_ns=lasted_ns)
    whole = ["start_ns", "total_ns", "elapsed_ns", "rtt_step"]
    return rows.astype(dict.fromkeys(whole, "Int64") | {"rtt_ms": "Float64"})


Protocol = Callable[[Traffic, int], int]
"""Makes the packets of a request that starts then, and returns when it is answered."""


def majority_rounds(rounds: int, asked: str = "a1", waits_ns: int = 0) -> Protocol:
    """Rounds to all other sites, each over when two of four have replied."""

    def run(traffic: Traffic, at_ns: int) -> int:
        for number in range(rounds):
            replies = []
            for place, peer in enumerate(node for node in _peers(traffic) if node != asked):
                there = traffic.send(at_ns + THINKS_NS + place * 10_000, asked, peer, 200 + number)
                wait_ns = waits_ns if number == 0 else 0
                back = traffic.send(there + THINKS_NS + wait_ns, peer, asked, 40 + number)
                replies.append(back + (place == 3) * 500_000)
            at_ns = sorted(replies)[1] + THINKS_NS
        return at_ns

    return run


def by_leader(traffic: Traffic, at_ns: int) -> int:
    """The asked node forwards to a leader, which asks the others: two round trips."""
    there = traffic.send(at_ns + THINKS_NS, "a1", "b1", 300)
    done = majority_rounds(1, "b1")(traffic, there)
    return traffic.send(done + THINKS_NS, "b1", "a1", 50) + THINKS_NS


def relay(traffic: Traffic, at_ns: int, way: str, *payloads: int) -> int:
    """From node to node, each a little after what it got; the last payload again and again."""
    sizes = [*payloads, *[payloads[-1] if payloads else 100] * len(way)]
    for (source, target), size in zip(pairwise(way.split()), sizes, strict=False):
        at_ns = traffic.send(at_ns + THINKS_NS, source, target, size)
    return at_ns


def alone(_traffic: Traffic, at_ns: int) -> int:
    """Answered by the node that is asked."""
    return at_ns + 2 * MS


def _peers(traffic: Traffic) -> list[str]:
    return [f"{site}1" for site in traffic.sites]


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
    nodes = _peers(traffic)
    for place, source in enumerate(nodes):
        for at_ns in range(begin_ns + 7 * MS * place, end_ns, every_ns):
            for other, target in enumerate(nodes):
                if other > place:
                    there = traffic.send(at_ns + other * 20_000, source, target, payload)
                    traffic.send(there + 100_000, target, source, payload)
