"""What a trace consists of: messages between nodes, the critical path among them, the request."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from wanlat.analysis.groups import Group

Kind = Literal["request", "background", "other"]
"""Of the request; of nobody's request, as far as idle windows and its label tell; left over from an
earlier one, or at least not to be explained by this one."""


@dataclass(frozen=True)
class Message:
    """What went one way over a WAN link in one go: one packet, or several of a stream together.

    Instants are milliseconds since the request's start; `departure_ms` is when the last of it left
    the link, None if it never did (`fate` says why). `entry_ms` is negative where it was under way
    before. `bytes` are those on the wire. `label` says what it is, where its first bytes tell;
    `on_chain` is its place in the critical path, from 1, or None.
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
    on_chain: int | None
    kind: Kind
    fate: str
    resent: bool
    acknowledgement: bool

    @property
    def is_lost(self) -> bool:
        """Whether it never left the link, not even the last of it."""
        return self.departure_ms is None

    def to_json(self) -> dict[str, Any]:
        """The entry of trace.json."""
        fields = {name: _rounded(value) for name, value in asdict(self).items()}
        ends = {"from": fields.pop("source"), "to": fields.pop("target")}
        return {**ends, **fields, "background": self.kind == "background"}


@dataclass(frozen=True)
class Lane:
    """A node, and the site that it is at."""

    node: str
    site: str


@dataclass(frozen=True)
class Hop:
    """One message of the critical path. `wait_ms` is from when the one before it had arrived (or
    from the start) to when this one left: what nodes, disks and the LAN took."""

    number: int
    message: Message
    wait_ms: float

    def to_json(self) -> dict[str, Any]:
        """Its entry among trace.json's `chain`."""
        message = self.message.to_json()
        waited = {"crossing": self.number, "waited_ms": _rounded(self.wait_ms)}
        same = ("from", "to", "entry_ms", "departure_ms", "bytes", "label")
        return waited | {name: message[name] for name in same}


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
    def path(self) -> tuple[Hop, ...]:
        """The critical path, WAN hop by WAN hop."""
        links = sorted(
            (message for message in self.messages if message.on_chain is not None),
            key=lambda message: message.on_chain or 0,
        )
        hops, ready_ms = [], 0.0
        for number, message in enumerate(links, start=1):
            hops.append(Hop(number, message, message.entry_ms - ready_ms))
            arrival = message.departure_ms
            ready_ms = message.last_entry_ms if arrival is None else arrival
        return tuple(hops)

    @property
    def round_trips(self) -> float:
        """Half the hops of the critical path."""
        return len(self.path) / 2

    @property
    def rest_ms(self) -> float:
        """From the path's last arrival to the answer; the whole latency if nothing crossed."""
        if not self.path:
            return self.latency_ms
        return self.latency_ms - (self.path[-1].message.departure_ms or 0.0)

    def site_of(self, node: str) -> str:
        """The site of a node."""
        return next((lane.site for lane in self.lanes if lane.node == node), "?")

    def to_json(self) -> dict[str, Any]:
        """The document of trace.json; milliseconds are since the request's start."""
        (system, version), endpoint, placement = self.group
        return {
            "system": system,
            "version": version,
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
            "chain": [hop.to_json() for hop in self.path],
            "after_chain_ms": _rounded(self.rest_ms),
            "nodes": [asdict(lane) for lane in self.lanes],
            "messages": [message.to_json() for message in self.messages],
            "bare_acknowledgements": self.bare_acks,
            "picked": self.picked,
            "notes": list(self.notes),
        }


def _rounded(value: Any) -> Any:
    """Milliseconds to the nanosecond; everything else as it is."""
    return round(value, 6) if isinstance(value, float) else value
