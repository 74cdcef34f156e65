"""What a trace consists of: messages between nodes, the chain among them, and what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from wanlat.analysis.summary import Group

Kind = Literal["request", "background", "other"]
"""Of the request; of nobody's request, as far as idle windows tell; left over from an earlier one,
or at least not to be explained by this one."""


@dataclass(frozen=True)
class Message:
    """What went one way over a WAN link in one go: one packet, or several of a stream together.

    Instants are milliseconds since the request's start; `departure_ms` is when the last of it left
    the link, None if it never did (`fate` says why). `entry_ms` is negative where it was under way
    before. `bytes` are those on the wire. `label` says what it is, where its first bytes tell;
    `on_chain` is its place in the chain, from 1, or None.
    """

    source: str
    target: str
    entry_ms: float
    last_entry_ms: float
    first_departure_ms: float | None
    departure_ms: float | None
    bytes: int
    payload_bytes: int
    packets: int
    label: str | None
    kind: Kind
    on_chain: int | None
    fate: str
    is_resent: bool
    is_acknowledgement: bool

    @property
    def is_lost(self) -> bool:
        """Whether it never left the link, not even the last of it."""
        return self.departure_ms is None

    def to_json(self) -> dict[str, Any]:
        """The entry of trace.json."""
        return {
            "from": self.source,
            "to": self.target,
            "entry_ms": _rounded(self.entry_ms),
            "departure_ms": _rounded(self.departure_ms),
            "bytes": self.bytes,
            "payload_bytes": self.payload_bytes,
            "packets": self.packets,
            "label": self.label,
            "on_chain": self.on_chain,
            "background": self.kind == "background",
            "kind": self.kind,
            "fate": self.fate,
            "resent": self.is_resent,
            "acknowledgement": self.is_acknowledgement,
        }


@dataclass(frozen=True)
class Lane:
    """A node, and the site that it is at."""

    node: str
    site: str


@dataclass(frozen=True)
class Crossing:
    """One message of the chain. `wait_ms` is from when the one before it had arrived (or from the
    start) to when this one left: what nodes, disks and the LAN took."""

    number: int
    message: Message
    wait_ms: float


@dataclass(frozen=True)
class Trace:
    """One request and what crossed the WAN links for it.

    `until_ms` is where the trace ends, since the request's start; `next_ms` when the next request
    was sent, if that is before. `rtt_ms` is the measured RTT between sites, None where links differ
    so much that there is no one; `rtt_range_ms` its extremes over the pairs. `bare_acks` counts
    those bare acknowledgements before the answer that are left out. `picked` says in words which
    request it is, of how many.
    """

    group: Group
    topology: str
    client: str
    target: str
    lanes: tuple[Lane, ...]
    rtt_ms: float | None
    rtt_range_ms: tuple[float, float] | None
    start_ns: int
    latency_ms: float
    until_ms: float
    next_ms: float | None
    messages: tuple[Message, ...]
    bare_acks: int
    knows_background: bool
    picked: str
    notes: tuple[str, ...]

    @property
    def chain(self) -> tuple[Crossing, ...]:
        """The longest chain, crossing by crossing."""
        links = sorted(
            (message for message in self.messages if message.on_chain is not None),
            key=lambda message: message.on_chain or 0,
        )
        crossings, ready_ms = [], 0.0
        for number, message in enumerate(links, start=1):
            crossings.append(Crossing(number, message, message.entry_ms - ready_ms))
            arrival = message.departure_ms
            ready_ms = message.last_entry_ms if arrival is None else arrival
        return tuple(crossings)

    @property
    def round_trips(self) -> float:
        """Half the crossings of the chain."""
        return len(self.chain) / 2

    @property
    def rest_ms(self) -> float:
        """From the chain's last arrival to the answer; the whole latency if nothing crossed."""
        if not self.chain:
            return self.latency_ms
        return self.latency_ms - (self.chain[-1].message.departure_ms or 0.0)

    @property
    def after_answer(self) -> tuple[Message, ...]:
        """The messages that entered a link after the answer was there."""
        return tuple(one for one in self.messages if one.entry_ms > self.latency_ms)

    def site_of(self, node: str) -> str:
        """The site of a node."""
        return next((lane.site for lane in self.lanes if lane.node == node), "?")

    def to_json(self) -> dict[str, Any]:
        """The document of trace.json; milliseconds are since the request's start."""
        series, endpoint, placement = self.group
        return {
            "system": series.system,
            "version": series.version,
            "topology": self.topology,
            "endpoint": endpoint,
            "placement": placement,
            "client": self.client,
            "target": self.target,
            "start_ns": self.start_ns,
            "latency_ms": _rounded(self.latency_ms),
            "until_ms": _rounded(self.until_ms),
            "next_request_ms": _rounded(self.next_ms),
            "measured_rtt_ms": _rounded(self.rtt_ms),
            "chain_round_trips": self.round_trips,
            "chain": [
                {
                    "crossing": crossing.number,
                    "from": crossing.message.source,
                    "to": crossing.message.target,
                    "waited_ms": _rounded(crossing.wait_ms),
                    "entry_ms": _rounded(crossing.message.entry_ms),
                    "departure_ms": _rounded(crossing.message.departure_ms),
                    "bytes": crossing.message.bytes,
                    "label": crossing.message.label,
                }
                for crossing in self.chain
            ],
            "after_chain_ms": _rounded(self.rest_ms),
            "nodes": [{"node": lane.node, "site": lane.site} for lane in self.lanes],
            "messages": [message.to_json() for message in self.messages],
            "bare_acknowledgements": self.bare_acks,
            "picked": self.picked,
            "notes": list(self.notes),
        }


def _rounded(value_ms: float | None) -> float | None:
    return None if value_ms is None else round(value_ms, 6)
