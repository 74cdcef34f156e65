"""What a request waited for: the times in which its client had nothing to do but wait.

Between two things that a client does (connect, send a request, send a body, return to its user)
it waits for the last thing that came before the second. That is the whole method: it takes the
client at its deeds, and knows nothing of which client it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from wanlat.experiments.crosscheck.events import Event
from wanlat.experiments.crosscheck.operations import operation

WaitKind = Literal[
    "connect",  # for the server to accept a connection
    "settings",  # for the server's SETTINGS, before the request was sent
    "continue",  # for `100 Continue`, before the body was sent
    "no continue",  # for a `100 Continue` that never came
    "acknowledgement",  # for what was sent to be acknowledged, before the rest was sent
    "answer",  # for the answer to a request
    "pause",  # for nothing on the wire
]

_DEEDS = frozenset({"syn", "preface", "head", "body"})
_TIDINGS = frozenset({"syn-ack", "settings", "continue", "answer"})
_FOR_THE_SERVER: frozenset[WaitKind] = frozenset({"connect", "settings", "continue", "answer"})
_PROMPT = 0.2
"""Part of the shortest wait: so soon after an acknowledgement comes what waited for it."""


@dataclass(frozen=True)
class Wait:
    """One wait of a request."""

    kind: WaitKind
    what: str
    """Of an answer: the operation, and its request."""
    ns: int


def waits_of(events: Sequence[Event], start_ns: int, end_ns: int, shortest_ns: int) -> list[Wait]:
    """Return the waits of at least ``shortest_ns`` of a request that was in flight in that time.

    ``events`` are those of its client's connections, in order.
    """
    begin = Event(start_ns, True, "control")
    done = Event(end_ns, True, "control")
    inside = [event for event in events if start_ns <= event.at_ns <= end_ns]
    deeds = [begin, *(event for event in inside if event.out and event.kind in _DEEDS), done]
    found = []
    request: Event | None = None
    for one, other in pairwise(deeds):
        if one.kind == "head":
            request = one
        if other.at_ns - one.at_ns < shortest_ns:
            continue
        came = [
            event for event in inside if not event.out and one.at_ns < event.at_ns <= other.at_ns
        ]
        waits = _waits_between(one, other, came, request, shortest_ns)
        found += [wait for wait in waits if wait.ns >= shortest_ns]
    return found


def _waits_between(
    one: Event, other: Event, came: Sequence[Event], request: Event | None, shortest_ns: int
) -> list[Wait]:
    tidings = [event for event in came if event.kind in _TIDINGS]
    if tidings:
        kind, what = _kind(tidings, request)
        return [
            Wait(kind, what, tidings[-1].at_ns - one.at_ns),
            Wait("pause", "", other.at_ns - tidings[-1].at_ns),
        ]
    pause = other.at_ns - one.at_ns
    if request is not None and request.expects_continue and other.kind == "body":
        return [Wait("no continue", "", pause)]
    acknowledged = [event for event in came if event.kind == "ack"]
    if (
        acknowledged
        and other.kind in _DEEDS
        and other.at_ns - acknowledged[-1].at_ns < _PROMPT * shortest_ns
    ):
        return [Wait("acknowledgement", "", pause)]
    return [Wait("pause", "", pause)]


def _kind(tidings: Sequence[Event], request: Event | None) -> tuple[WaitKind, str]:
    kinds = {event.kind for event in tidings}
    if "answer" in kinds:
        return "answer", "" if request is None else request.text
    if "continue" in kinds:
        return "continue", ""
    if "settings" in kinds:
        return "settings", ""
    return "connect", ""


@dataclass(frozen=True)
class Extra:
    """What a wait was for beyond the endpoint's own answer. Equal ones are counted together."""

    kind: WaitKind
    what: str = ""


@dataclass(frozen=True)
class Waited:
    """What one request waited for, in ns."""

    answer: int
    """From the last byte of the request until the last of its answer."""
    extras: Mapping[Extra, int]
    """Everything else."""
    network: Mapping[Extra, int]
    """Of that, what is the network's: of a wait for the server, one round trip, since the rest is
    what the server did meanwhile."""

    @property
    def store(self) -> int:
        """Return what was not the network's, and the answer's time."""
        return self.answer + sum(self.extras.values()) - sum(self.network.values())


def split(waits: Sequence[Wait], endpoint: str, rtt_ns: int) -> Waited:
    """Tell the wait for the endpoint's own answer from the others, and what the network took.

    Of several answers to the same endpoint the last is its own: what came before did not do.
    """
    own = [wait for wait in waits if wait.kind == "answer" and operation(wait.what) == endpoint]
    extras: dict[Extra, int] = {}
    network: dict[Extra, int] = {}
    for wait in waits:
        if own and wait is own[-1]:
            continue
        extra = Extra(wait.kind, operation(wait.what) if wait.kind == "answer" else "")
        extras[extra] = extras.get(extra, 0) + wait.ns
        part = min(wait.ns, rtt_ns) if wait.kind in _FOR_THE_SERVER else wait.ns
        network[extra] = network.get(extra, 0) + part
    return Waited(own[-1].ns if own else 0, extras, network)
