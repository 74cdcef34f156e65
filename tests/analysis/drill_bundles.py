"""Synthetic bundles of drills: clients, a store that stalls or fails, a ledger; all from a seed.

The clients are played request by request: each is sent when it is due or when one before it is
done, as many at once as are `in_flight`, so that what a stall does to them is what it does to real
ones. The instants at which the store misbehaves are given by the test, which so knows the truth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any

from tests.bundles import Row, S, manifest_of, write
from wanlat.bundle.outcomes import EXPIRED

ORIGIN_NS = 5_000_000_000_000
"""Begin of `before` on the monotonic clock."""
NODES = ("n1", "n2", "n3", "n4")
CLIENTS = {
    "survivor": {"node": "n3", "site": "dc3", "target": "n3"},
    "victim": {"node": "n2", "site": "dc2", "target": "n2"},
}


@dataclass(frozen=True)
class Trouble:
    """What the store does from `begin_s` to `end_s`, seconds since the origin.

    `stall`: requests in flight wait until it is over. `down`: refused at once. `reset`: those in
    flight too. `silent`: never answered, the deadline runs out. `slow`: `extra_ms` on top.
    `ours`: the machine cannot send them, which is no trouble of the store's (as bundles had it
    before there was `not_sent`: `stored`). Of a `part` of the requests, of some clients or
    operations, or of all of them (None).
    """

    kind: str
    begin_s: float
    end_s: float
    clients: Sequence[str] | None = None
    operations: Sequence[str] | None = None
    extra_ms: float = 0.0
    error: str = "refused"
    part: float = 1.0


@dataclass(frozen=True)
class Fault:
    """A fault as the events record it. `end_s` None: never healed."""

    kind: str
    subject: str
    begin_s: float
    end_s: float | None
    detail: str = ""
    nodes: Sequence[str] = ()
    directions: Sequence[str] = ()
    occurrences_s: Sequence[float] = ()
    affects: str | None = None
    """None: as bundles have it that do not record it."""


def stalled(seconds: float = 3.0, at_s: float = 22.0, **where: Any) -> Trouble:
    """A store that is stopped for `seconds`."""
    return Trouble("stall", at_s, at_s + seconds, **where)


@dataclass
class Play:
    """A drill as it is played: rows of each file, and what its clients do.

    `latency_ms` is that of reads and of writes, `jitter` their uniform spread, `heavy_tail` the
    sigma of a log-normal factor on top.
    """

    series: tuple[str, str] = ("quorum", "0.1.0")
    phases_s: tuple[float, float, float] = (20.0, 40.0, 40.0)
    interval_ms: float = 250.0
    deadline_ms: float = 10_000.0
    latency_ms: tuple[float, float] = (5.0, 60.0)
    jitter: float = 0.2
    heavy_tail: float = 0.0
    in_flight: int = 1
    seed: int = 7
    placement: str = "unknown"
    files: dict[str, list[Row]] = field(
        default_factory=lambda: {n: [] for n in ("samples", "ledger", "events", "verification")}
    )
    keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw everything from the seed."""
        self.rng = Random(self.seed)

    def send(
        self, client: str, place: Mapping[str, str], operation: str, troubles: Sequence[Trouble]
    ) -> None:
        """Play the reads or the writes of one client."""
        before_s, during_s, _ = self.phases_s
        interval_s, deadline_s = self.interval_ms / 1000, self.deadline_ms / 1000
        mean_s = self.latency_ms[operation == "write"] / 1000
        due_s, seq = self.rng.uniform(0, interval_s), 0
        free_s = [0.0] * int(self.in_flight)
        own: list[str] = []
        while due_s < sum(self.phases_s):
            ended = (due_s >= before_s) + (due_s >= before_s + during_s)
            row = {
                **{"system": self.series[0], "version": self.series[1], "topology": "four-sites"},
                **{"client": place["node"], "drill_client": client, "target": place["target"]},
                **{"operation": operation, "seq": seq, "due_ns": _ns(due_s)},
                **{"placement": self.placement, "object_bytes": 1024, "rtt_ms": 100.0},
                **{"phase": ("before", "during", "after")[ended], "start_ns": None},
                "endpoint": "GetObject" if operation == "read" else "PutObject",
            }
            start_s = max(due_s, heappop(free_s))
            # As the drill's own clients: what has not half of its time left is not sent any more.
            if start_s - due_s > deadline_s / 2:
                row |= {"outcome": "fail", "error": EXPIRED}
                heappush(free_s, start_s)
            else:
                wait_s = mean_s * (1 + self.rng.uniform(-self.jitter, self.jitter))
                wait_s *= self.rng.lognormvariate(0, self.heavy_tail) if self.heavy_tail else 1
                served = self._served(start_s, wait_s, due_s + deadline_s, troubles)
                outcome, error, end_s = served
                heappush(free_s, end_s)
                start_ns, end_ns = _ns(start_s), _ns(end_s)
                key = self.rng.choice(self.keys) if operation == "read" and self.keys else ""
                if operation == "write":
                    remove = bool(own) and self.rng.random() < 0.1
                    key = own.pop() if remove else f"{client}-{seq:06d}"
                    op = "remove" if remove else "put"
                    self.write(op, key, client, start_ns, end_ns, outcome)
                    row["endpoint"] = "RemoveObject" if remove else "PutObject"
                    own += [key] if outcome == "ok" and not remove else []
                took_ns = end_ns - start_ns if outcome == "ok" else None
                row |= {"key": key, "start_ns": start_ns, "total_ns": took_ns, "error": error}
                row |= {"elapsed_ns": end_ns - start_ns, "outcome": outcome}
            self.files["samples"].append(row)
            seq += 1
            due_s += interval_s

    def write(
        self, op: str, key: str, client: str, begin_ns: int, end_ns: int, outcome: str
    ) -> None:
        """Have a write in the ledger, and what came of it."""
        number = len(self.files["ledger"]) // 2 + 1
        line = {"state": "invoked", "id": number, "op": op, "key": key, "client": client}
        ended = {"id": number, "state": outcome, "t_ns": end_ns}
        self.files["ledger"] += [line | {"t_ns": begin_ns}, ended]

    def happen(self, faults: Sequence[Fault], extra: Sequence[tuple[float, str, str, Any]]) -> None:
        """Have phases, stages, `faults` and whatever else in the events."""
        before, during, after = self.phases_s
        begins = {"before": 0.0, "during": before, "after": before + during}
        end_s = before + during + after
        stages = {"lab": -9.0, "calibrated": -7.0, "ready": -5.0, "filled": -2.0, **begins}
        stages |= {"healed": end_s + 12, "restarted": end_s + 24, "done": end_s + 25}
        marks = [(at_s, "phase", name, "") for name, at_s in (begins | {"end": end_s}).items()]
        marks += [(at_s, "stage", name, "") for name, at_s in stages.items()]
        marks += extra
        for number, fault in enumerate(faults, start=1):
            subject = f"{number} {fault.kind} {fault.subject}"
            keys = ("kind", "subject", "detail", "nodes", "directions")
            detail = {"id": number, "late_ms": 0.4} | {key: getattr(fault, key) for key in keys}
            detail |= {"affects": fault.affects} if fault.affects else {}
            marks.append((fault.begin_s, "inject", subject, json.dumps(detail)))
            marks += [(at_s, "occurrence", subject, "") for at_s in fault.occurrences_s]
            marks += [] if fault.end_s is None else [(fault.end_s, "heal", subject, "")]
        names = ("t_ns", "kind", "subject", "detail")
        for at_s, kind, subject, text in sorted(marks, key=lambda mark: mark[0]):
            words = text if isinstance(text, str) else json.dumps(text)
            row = dict(zip(names, (_ns(at_s), kind, subject, words), strict=True))
            self.files["events"].append(row)

    def verify(self, rounds: Sequence[str], spoil: Mapping[str, int]) -> None:
        """Ask every node for every key; as many keys as `spoil` says get each verdict."""
        state = self._final_state()
        verdicts: dict[str, str] = {}
        for verdict, number in spoil.items():
            wanted = {"resurrected": "R", "recovered": "U", "unexpected": "F"}.get(verdict, "P")
            fitting = [k for k, s in state.items() if s == wanted and k not in verdicts]
            assert len(fitting) >= number, f"only {len(fitting)} keys can be {verdict}"
            verdicts |= dict.fromkeys(fitting[:number], verdict)
        for name in rounds:
            at_ns = _ns(sum(self.phases_s) + (2 if name == "healed" else 14))
            asked = [{"round": name, "begun_ns": at_ns, "nodes": list(NODES)}]
            asked += [
                {"round": name, "node": node, "key": key, "t_ns": at_ns + number * 1000}
                | {"found": _answer(verdicts.get(key), expected, node)}
                for number, (key, expected) in enumerate(state.items())
                for node in NODES
            ]
            self.files["verification"] += asked

    def _served(
        self, start_s: float, wait_s: float, until_s: float, troubles: Sequence[Trouble]
    ) -> tuple[str, str | None, float]:
        """Outcome, error and end of one request sent at `start_s` that must end by `until_s`."""
        end_s = start_s + wait_s
        for trouble in sorted(troubles, key=lambda each: each.begin_s):
            if trouble.part < 1 and self.rng.random() >= trouble.part:
                continue
            begun = trouble.begin_s <= start_s < trouble.end_s
            overlaps = start_s < trouble.end_s and end_s > trouble.begin_s
            if trouble.kind == "slow" and begun:
                end_s += trouble.extra_ms / 1000
            if trouble.kind == "stall" and overlaps:
                end_s = trouble.end_s + (end_s - max(start_s, trouble.begin_s))
            if trouble.kind in ("ours", "stored") and begun:
                outcome = "not_sent" if trouble.kind == "ours" else "fail"
                return outcome, "python3 did not become ready: it has not answered", start_s
            if trouble.kind == "down" and begun:
                return "fail", trouble.error, start_s + 0.001
            if trouble.kind in ("down", "reset") and overlaps:
                return "unknown", "reset (first byte)", max(start_s, trouble.begin_s) + 0.001
            if trouble.kind == "silent" and overlaps:
                return "unknown", "timeout (first byte)", until_s
        if end_s > until_s:
            return "unknown", "timeout (first byte)", until_s
        return "ok", None, end_s

    def _final_state(self) -> dict[str, str]:
        """Of each key P(resent), F(ailed), U(nknown), R(emoved), or E(ither)."""
        lines, state = self.files["ledger"], dict[str, str]()
        for line, ended in zip(lines[::2], lines[1::2], strict=True):
            if line["op"] == "put":
                state[line["key"]] = {"ok": "P", "fail": "F", "not_sent": "F", "unknown": "U"}[
                    ended["state"]
                ]
            elif ended["state"] not in ("fail", "not_sent"):
                state[line["key"]] = "R" if ended["state"] == "ok" else "E"
        return state


def write_drill(
    directory: Path,
    *,
    name: str = "one-node-killed",
    clients: Mapping[str, Mapping[str, str]] = CLIENTS,
    faults: Sequence[Fault] | None = None,
    troubles: Sequence[Trouble] = (),
    objects: int = 50,
    spoil: Mapping[str, int] | None = None,
    rounds: Sequence[str] = ("healed", "restarted"),
    claims: Sequence[Mapping[str, Any]] = (),
    extra_events: Sequence[tuple[float, str, str, Any]] = (),
    killed_at_s: float | None = None,
    as_lines: bool = False,
    manifest: Mapping[str, Any] | None = None,
    drill: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Path:
    """Write a bundle of kind "drill" into `directory` and return it; `settings` are `Play`'s.

    `faults` default to one kill of n2 through `during`. `spoil` says how many keys get which
    verdict in the verification ("lost": 2). `killed_at_s` leaves what a drill leaves that was
    killed then: lines, the last of each cut short.
    """
    play = Play(**settings)
    before, during, _ = play.phases_s
    for number in range(objects):
        play.keys.append(f"fill-{number:05d}")
        begin_ns = ORIGIN_NS - 3 * S + number * S // objects
        play.write("put", play.keys[-1], next(iter(clients)), begin_ns, begin_ns + S // 100, "ok")
    for client, operation in ((each, one) for each in clients for one in ("read", "write")):
        hit = [
            each
            for each in troubles
            if client in (each.clients or [client])
            and operation in (each.operations or [operation])
        ]
        play.send(client, clients[client], operation, hit)
    default = [Fault("kill", "n2", before, before + during, nodes=("n2",))]
    play.happen(default if faults is None else faults, extra_events)
    play.verify(rounds, spoil or {})
    document = _manifest(play, name) | {"claims": list(claims), "clients": dict(clients)}
    document["drill"] |= dict(drill or {})
    cut = ""
    if killed_at_s is not None:
        for rows in play.files.values():
            rows[:] = [row for row in rows if _known_ns(row) <= _ns(killed_at_s)]
        stages = [event["subject"] for event in play.files["events"] if event["kind"] == "stage"]
        document |= {"status": "running", "reached": stages[-1] if stages else None}
        cut = '{"cut sho'
    for rows in play.files.values():
        rows.sort(key=_known_ns)
    is_raw = as_lines or killed_at_s is not None
    lines = play.files.keys() if is_raw else ("ledger", "verification")
    return write(directory, document | dict(manifest or {}), play.files, as_lines=lines, cut=cut)


def _manifest(play: Play, name: str) -> Row:
    phases = zip(("before", "during", "after"), play.phases_s, strict=True)
    drill = {
        **{"name": name, "description": "made up for a test", "topology": "four-sites"},
        **{"scale": 1, "interval": f"{play.interval_ms:g}ms"},
        "deadline": f"{play.deadline_ms:g}ms",
        "phases": {phase: f"{seconds:g}s" for phase, seconds in phases},
    }
    sites = {f"dc{n}": [node] for n, node in enumerate(NODES, start=1)}
    made = manifest_of(
        [play.series],
        {},
        topology="four-sites",
        sites=sites,
        kind="drill",
        reached="done",
        started="2026-03-01T12:00:00+00:00",
        drill=drill,
        roles={"victim": ["n2"], "survivor": ["n3"]},
        stated_time_s=sum(play.phases_s) + 200,
        seed=play.seed,
    )
    return {key: each for key, each in made.items() if key not in ("study", "client", "target")}


def _answer(verdict: str | None, expected: str, node: str) -> str:
    """What `node` answers for a key that shall get `verdict`."""
    special = {
        "lost": "no",
        "stale": "no" if node == NODES[-1] else "yes",
        "corrupt": "wrong" if node == NODES[1] else "yes",
        "unread": "unread" if node == NODES[1] else "yes",
        **dict.fromkeys(("resurrected", "recovered", "unexpected"), "yes"),
    }
    return special.get(verdict or "", "yes" if expected == "P" else "no")


def _ns(seconds: float) -> int:
    return ORIGIN_NS + round(seconds * S)


def _known_ns(row: Row) -> int:
    """When a row was written."""
    if "due_ns" not in row:
        return int(row["t_ns"] if "t_ns" in row else row["begun_ns"])
    if row["start_ns"] is None:
        return int(row["due_ns"]) + 10 * S
    return int(row["start_ns"]) + int(row["elapsed_ns"])
