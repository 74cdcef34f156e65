"""What is run of the reference store, and what each of its requests is known to cost.

The numbers are those of systems/quorum/README.md: they follow from how the store is built, and
`cargo test` holds it to them. Three sites of one node; node n1 is the target unless something
else is said, and is the leader where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Request = tuple[str, str]
"""Endpoint and placement, as samples name them."""

S3 = ("ListObjects", "GetObject", "PutObject")


@dataclass(frozen=True)
class Run:
    """One cluster that is measured at every RTT, and the truth about it."""

    truth: Mapping[Request, float]
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = "n1"
    loss: str | None = None
    """Of the packets in each direction of every WAN link."""
    samples: int = 4
    """Of each endpoint at each RTT step."""
    twin: str | None = None
    """The same run, undisturbed."""

    @property
    def weight(self) -> float:
        """About how long it takes, beside the others: requests wait for their round trips."""
        return sum(self.truth.values()) * self.samples + 30


def _each(*round_trips: float) -> dict[Request, float]:
    return {(endpoint, "unknown"): k for endpoint, k in zip(S3, round_trips, strict=True)}


def _rounds(k: int) -> Run:
    return Run(_each(k, k, k), {"protocol": f"rounds:{k}"})


LEADER = {"protocol": "leader", "leader": "n1"}

KNOWN: dict[str, Run] = {
    "leaderless": Run(_each(1, 1, 1), {"protocol": "leaderless"}),
    "leader as target": Run(_each(0, 0, 1), LEADER),
    "another node as target": Run(_each(1, 1, 2), LEADER, target="n2"),
    **{f"rounds:{k}": _rounds(k) for k in range(1, 6)},
    "Bob's API": Run(
        {
            ("Put", "local"): 1,
            ("Put", "remote"): 1,
            ("Get", "local"): 0,
            ("Get", "remote"): 1,
            ("Exist", "local"): 0,
            ("Exist", "remote"): 1,
            ("Delete", "local"): 1,
            ("Delete", "remote"): 1,
            ("Ping", "unknown"): 0,
        },
        {"api": "bob", "replication_factor": 2},
    ),
}

WITHIN = 0.03
"""Round trips by which the median of all slopes may differ from the truth."""
WIDENED_BY = 0.1
"""Round trips by which an interval is widened before the truth is sought in it: what the RTT of
a step was measured wrong by, and what of a store's work changed between steps, is not in it."""

DISTURBED: dict[str, Run] = {
    # Of three responses one waits 40 ms for the client's kernel, at any RTT.
    "a delayed acknowledgement": Run(
        _each(1, 1, 1),
        {"protocol": "leaderless", "delayed_ack": 3},
        samples=12,
        twin="leaderless",
    ),
    # Every node hears of every other ten times a second, on the connections that requests take.
    "a heartbeat": Run(
        _each(2, 2, 2), {"protocol": "rounds:2", "heartbeat_ms": 100}, twin="rounds:2"
    ),
    # No second node that could answer instead: what is lost is waited for.
    "retransmissions": Run(
        _each(1, 1, 2),
        LEADER,
        target="n2",
        loss="1.5%",
        samples=10,
        twin="another node as target",
    ),
}

MIXED = Run(
    # 30 % of the requests cost one; the number is that of the most frequent ones.
    {("GetObject", "unknown"): 3},
    {"protocol": "mixture:30:1:3"},
    samples=24,
)

NAGLE = Run(
    # The second half of what is passed on to the leader goes out when the first is acknowledged: a
    # round trip more, and up to 40 ms. The leader answers in one piece. With more than one node to
    # hear it would not be as certain: what the slower one has not acknowledged yet holds back the
    # next command too, and then both halves of that leave together.
    {("ListObjects", "unknown"): 2, ("GetObject", "unknown"): 2},
    {**LEADER, "nagle": True},
    target="n2",
    samples=7,
)

RUNS = {**KNOWN, **DISTURBED, "a mixture": MIXED, "Nagle between nodes": NAGLE}
