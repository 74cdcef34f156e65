"""Synthetic bundles of drills: clients, a store that stalls or fails, a ledger; all from a seed.

The clients are played request by request: each is sent when it is due or when the one before it
is done, so that what a stall does to them is what it does to real ones. The instants at which the
store misbehaves are given by the test, which therefore knows the truth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ORIGIN_NS = 5_000_000_000_000
"""Begin of `before` on the monotonic clock."""
NODES = ("n1", "n2", "n3", "n4")
SITES = {"n1": "dc1", "n2": "dc2", "n3": "dc3", "n4": "dc4"}
CLIENTS = {
    "survivor": {"node": "n3", "site": "dc3", "target": "n3"},
    "victim": {"node": "n2", "site": "dc2", "target": "n2"},
}
PHASES_S = (20.0, 40.0, 40.0)
S = 1_000_000_000


@dataclass(frozen=True)
class Trouble:
    """What the store does from `begin_s` to `end_s`, seconds since the origin.

    `stall`: requests in flight wait until it is over. `down`: refused at once. `silent`: never
    answered, the deadline runs out. `slow`: `extra_ms` on top. None of clients or operations:
    all of them.
    """

    kind: str
    begin_s: float
    end_s: float
    clients: Sequence[str] | None = None
    operations: Sequence[str] | None = None
    extra_ms: float = 0.0
    error: str = "refused"
    part: float = 1.0

    def hits(self, client: str, operation: str) -> bool:
        """Whether it is this client's trouble."""
        return (self.clients is None or client in self.clients) and (
            self.operations is None or operation in self.operations
        )


@dataclass(frozen=True)
class Fault:
    """A fault as the events tell of it. `end_s` None: never healed."""

    kind: str
    subject: str
    begin_s: float
    end_s: float | None
    detail: str = ""
    nodes: Sequence[str] = ()
    directions: Sequence[str] = ()
    occurrences_s: Sequence[float] = ()


@dataclass
class Play:
    """What the drill did, before it is written: rows of each file."""

    samples: list[dict[str, Any]] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    verification: list[dict[str, Any]] = field(default_factory=list)


def stalled(seconds: float = 3.0, at_s: float = 22.0, **where: Any) -> Trouble:
    """A store that is stopped for `seconds`."""
    return Trouble("stall", at_s, at_s + seconds, **where)


def write_drill(
    directory: Path,
    *,
    name: str = "one-node-killed",
    system: tuple[str, str] = ("quorum", "0.1.0"),
    topology: str = "four-sites",
    clients: Mapping[str, Mapping[str, str]] = CLIENTS,
    phases_s: tuple[float, float, float] = PHASES_S,
    interval_ms: float = 250.0,
    deadline_ms: float = 10_000.0,
    latency_ms: tuple[float, float] = (5.0, 60.0),
    jitter: float = 0.2,
    heavy_tail: float = 0.0,
    faults: Sequence[Fault] | None = None,
    troubles: Sequence[Trouble] = (),
    objects: int = 50,
    spoil: Mapping[str, int] | None = None,
    rounds: Sequence[str] = ("healed", "restarted"),
    claims: Sequence[Mapping[str, Any]] = (),
    extra_events: Sequence[tuple[float, str, str, Any]] = (),
    killed_at_s: float | None = None,
    as_lines: bool = False,
    seed: int = 7,
    manifest: Mapping[str, Any] | None = None,
) -> Path:
    """Write a bundle of kind "drill" into `directory` and return it.

    `latency_ms` is that of reads and of writes, `jitter` their uniform spread, `heavy_tail` the
    sigma of a log-normal factor on top. `faults` default to one kill of n2 through `during`.
    `spoil` says how many keys get which verdict in the verification ("lost": 2). `killed_at_s`
    leaves what a drill leaves that was killed then: lines, the last of each cut short.
    """
    rng = np.random.default_rng(seed)
    before, during, _after = phases_s
    if faults is None:
        faults = [Fault("kill", "n2", before, before + during, nodes=("n2",))]
    play = Play()
    keys = _prefill(play, objects, next(iter(clients)), clients)
    for client, place in clients.items():
        for operation in ("read", "write"):
            play_client(
                play,
                rng,
                client,
                place,
                operation,
                keys=keys,
                schedule=(interval_ms, deadline_ms, sum(phases_s)),
                cuts=(before, before + during),
                latency_ms=latency_ms[operation == "write"],
                spread=(jitter, heavy_tail),
                troubles=[t for t in troubles if t.hits(client, operation)],
                series=system,
                topology=topology,
            )
    _events(play, phases_s, faults, extra_events)
    _verify(play, sum(phases_s) + 2, rounds, spoil or {})
    document = _manifest(name, system, topology, clients, phases_s, interval_ms, deadline_ms, seed)
    document["claims"] = [dict(claim) for claim in claims]
    document["drill"]["faults"] = [{f.kind: f.subject, "at": "0s"} for f in faults]
    directory.mkdir(parents=True, exist_ok=True)
    killed = killed_at_s is not None
    if killed_at_s is not None:
        play = _until(play, killed_at_s)
        document |= {"status": "running", "reached": _reached(play)}
    (directory / "manifest.json").write_text(json.dumps(document | dict(manifest or {})))
    _write(directory, play, as_lines=as_lines or killed, cut=killed)
    return directory


def _prefill(
    play: Play, objects: int, client: str, clients: Mapping[str, Mapping[str, str]]
) -> list[str]:
    keys = [f"fill-{number:05d}" for number in range(objects)]
    for number, key in enumerate(keys):
        begin_ns = ORIGIN_NS - 3 * S + number * S // max(objects, 1)
        _put(play, key, client, clients[client]["target"], begin_ns, begin_ns + 10_000_000, "ok")
    return keys


def play_client(
    play: Play,
    rng: np.random.Generator,
    client: str,
    place: Mapping[str, str],
    operation: str,
    *,
    keys: Sequence[str],
    schedule: tuple[float, float, float],
    cuts: tuple[float, float],
    latency_ms: float,
    spread: tuple[float, float],
    troubles: Sequence[Trouble],
    series: tuple[str, str],
    topology: str,
) -> None:
    """Add the requests of one client, and its writes, to `play`.

    `schedule` is every and deadline, ms, and the length of all phases, s; `cuts` are the begin of
    `during` and of `after`, s; `spread` is the uniform jitter and the sigma of a heavy tail.
    """
    every_s, deadline_s, total_s = schedule[0] / 1000, schedule[1] / 1000, schedule[2]
    due_s, free_s = float(rng.uniform(0, every_s)), 0.0
    own: list[str] = []
    seq = 0
    while due_s < total_s:
        base = _row(client, place, operation, series, topology, seq, due_s, cuts)
        start_s = max(due_s, free_s)
        # As the drill's own clients: what has not half of its time left is not sent any more.
        if due_s + deadline_s - start_s < deadline_s / 2:
            base |= {
                "outcome": "fail",
                "error": "not sent: an earlier request was still waiting",
            }
            play.samples.append(base)
        else:
            wait_ms = latency_ms * (1 + rng.uniform(-spread[0], spread[0]))
            if spread[1]:
                wait_ms *= float(rng.lognormal(0, spread[1]))
            outcome, error, end_s = _served(
                rng, start_s, wait_ms / 1000, due_s + deadline_s, troubles
            )
            free_s = end_s
            start_ns, end_ns = _ns(start_s), _ns(end_s)
            key = str(rng.choice(keys)) if operation == "read" and keys else ""
            if operation == "write":
                remove = bool(own) and rng.random() < 0.1
                key = own.pop() if remove else f"{client}-{seq:06d}"
                if remove:
                    _remove(play, key, client, place["target"], start_ns, end_ns, outcome)
                    base["endpoint"] = "RemoveObject"
                else:
                    _put(play, key, client, place["target"], start_ns, end_ns, outcome)
                    own += [key] if outcome == "ok" else []
            base |= {
                "key": key,
                "start_ns": start_ns,
                "connect_ns": 0,
                "first_byte_ns": end_ns - start_ns if outcome == "ok" else None,
                "total_ns": end_ns - start_ns if outcome == "ok" else None,
                "elapsed_ns": end_ns - start_ns,
                "outcome": outcome,
                "error": error,
                "status": 200 if outcome == "ok" else None,
            }
            play.samples.append(base)
        seq += 1
        due_s += every_s


def _served(
    rng: np.random.Generator,
    start_s: float,
    wait_s: float,
    until_s: float,
    troubles: Sequence[Trouble],
) -> tuple[str, str | None, float]:
    """Outcome, error and end of one request sent at `start_s` that must end by `until_s`."""
    end_s = start_s + wait_s
    for trouble in sorted(troubles, key=lambda each: each.begin_s):
        if trouble.part < 1 and rng.random() >= trouble.part:
            continue
        if trouble.kind == "slow" and trouble.begin_s <= start_s < trouble.end_s:
            end_s += trouble.extra_ms / 1000
        overlaps = start_s < trouble.end_s and end_s > trouble.begin_s
        if trouble.kind == "stall" and overlaps:
            end_s = trouble.end_s + (end_s - max(start_s, trouble.begin_s))
        if trouble.kind == "down" and trouble.begin_s <= start_s < trouble.end_s:
            return "fail", trouble.error, start_s + 0.001
        if trouble.kind in ("down", "reset") and overlaps:
            return "unknown", "reset (first byte)", max(start_s, trouble.begin_s) + 0.001
        if trouble.kind == "silent" and overlaps:
            return "unknown", "timeout (first byte)", until_s
    if end_s > until_s:
        return "unknown", "timeout (first byte)", until_s
    return "ok", None, end_s


def _row(
    client: str,
    place: Mapping[str, str],
    operation: str,
    series: tuple[str, str],
    topology: str,
    seq: int,
    due_s: float,
    cuts: tuple[float, float],
) -> dict[str, Any]:
    phase = "before" if due_s < cuts[0] else "during" if due_s < cuts[1] else "after"
    return {
        "system": series[0],
        "version": series[1],
        "topology": topology,
        "client": place["node"],
        "drill_client": client,
        "target": place["target"],
        "operation": operation,
        "key": None,
        "endpoint": "GetObject" if operation == "read" else "PutObject",
        "placement": "unknown",
        "seq": seq,
        "due_ns": _ns(due_s),
        "start_ns": None,
        "connect_ns": None,
        "first_byte_ns": None,
        "total_ns": None,
        "elapsed_ns": None,
        "outcome": "ok",
        "error": None,
        "object_bytes": 1024,
        "rtt_ms": 100.0,
        "phase": phase,
        "retransmits": 0,
        "status": None,
        "new_connection": False,
    }


def _ns(seconds: float) -> int:
    return ORIGIN_NS + round(seconds * S)


def _put(
    play: Play, key: str, client: str, target: str, begin_ns: int, end_ns: int, outcome: str
) -> None:
    extra = {"bytes": 1024, "body_seed": len(play.ledger), "sha256": sha_of(key)}
    _ledger(play, "put", key, client, target, begin_ns, end_ns, outcome, extra)


def _remove(
    play: Play, key: str, client: str, target: str, begin_ns: int, end_ns: int, outcome: str
) -> None:
    extra = {"bytes": None, "body_seed": None, "sha256": None}
    _ledger(play, "remove", key, client, target, begin_ns, end_ns, outcome, extra)


def _ledger(
    play: Play,
    op: str,
    key: str,
    client: str,
    target: str,
    begin_ns: int,
    end_ns: int,
    outcome: str,
    extra: Mapping[str, Any],
) -> None:
    number = len(play.ledger) // 2 + 1
    invoked = {"state": "invoked", "id": number, "op": op, "key": key, **extra}
    play.ledger.append(invoked | {"client": client, "target": target, "t_ns": begin_ns})
    error = None if outcome == "ok" else "as the sample says"
    play.ledger.append({"id": number, "state": outcome, "error": error, "t_ns": end_ns})


def sha_of(key: str) -> str:
    """What a body of `key` hashes to here."""
    return hashlib.sha256(key.encode()).hexdigest()


def _events(
    play: Play,
    phases_s: tuple[float, float, float],
    faults: Sequence[Fault],
    extra: Sequence[tuple[float, str, str, Any]],
) -> None:
    before, during, after = phases_s
    begins = {"before": 0.0, "during": before, "after": before + during}
    ends_s = before + during + after
    stages = {"lab": -9.0, "calibrated": -7.0, "ready": -5.0, "filled": -2.0, **begins}
    stages |= {"healed": ends_s + 12, "restarted": ends_s + 24, "done": ends_s + 25}
    marks: list[tuple[float, str, str, Any]] = [
        (begin_s, "phase", name, "") for name, begin_s in (begins | {"end": ends_s}).items()
    ]
    marks += [(at_s, "stage", name, "") for name, at_s in stages.items()]
    for number, fault in enumerate(faults, start=1):
        subject = f"{number} {fault.kind} {fault.subject}"
        detail = {
            "id": number,
            "kind": fault.kind,
            "subject": fault.subject,
            "detail": fault.detail,
            "nodes": list(fault.nodes),
            "directions": list(fault.directions),
            "late_ms": 0.4,
        }
        marks.append((fault.begin_s, "inject", subject, detail))
        marks += [(at_s, "occurrence", subject, detail) for at_s in fault.occurrences_s]
        if fault.end_s is not None:
            marks.append((fault.end_s, "heal", subject, detail))
    marks += extra
    for at_s, kind, subject, detail in sorted(marks, key=lambda mark: mark[0]):
        text = detail if isinstance(detail, str) else json.dumps(detail)
        play.events.append({"t_ns": _ns(at_s), "kind": kind, "subject": subject, "detail": text})


def _verify(play: Play, begin_s: float, rounds: Sequence[str], spoil: Mapping[str, int]) -> None:
    """A verification in which as many keys as `spoil` says get each verdict, all others none."""
    state = _final_state(play)
    taken: set[str] = set()
    verdict_of: dict[str, str] = {}
    wanted = {"lost": "P", "stale": "P", "corrupt": "P", "unread": "P"}
    wanted |= {"resurrected": "R", "recovered": "U", "unexpected": "F"}
    for verdict, number in spoil.items():
        fitting = [k for k, s in state.items() if s == wanted[verdict] and k not in taken]
        if len(fitting) < number:
            raise ValueError(f"only {len(fitting)} keys can be {verdict}")
        for key in fitting[:number]:
            taken.add(key)
            verdict_of[key] = verdict
    for place, name in enumerate(("healed", "restarted")):
        if name not in rounds:
            continue
        at_ns = _ns(begin_s + 12 * place)
        header = {"round": name, "begun_ns": at_ns, "nodes": list(NODES)}
        play.verification.append(header | {"keys": len(state), "passes": 1})
        for number, (key, expected) in enumerate(state.items()):
            for node in NODES:
                found = _answer(verdict_of.get(key), expected, node)
                play.verification.append(
                    {
                        "round": name,
                        "node": node,
                        "key": key,
                        "found": found,
                        "sha256": sha_of(key if found == "yes" else "x")
                        if found in ("yes", "wrong")
                        else None,
                        "error": "timeout" if found == "unread" else None,
                        "t_ns": at_ns + number * 1000,
                    }
                )


def _answer(verdict: str | None, expected: str, node: str) -> str:
    if verdict == "lost":
        return "no"
    if verdict == "stale":
        return "no" if node == NODES[-1] else "yes"
    if verdict == "corrupt":
        return "wrong" if node == NODES[1] else "yes"
    if verdict == "unread":
        return "unread" if node == NODES[1] else "yes"
    if verdict in ("resurrected", "recovered", "unexpected"):
        return "yes"
    return "yes" if expected == "P" else "no"


def _final_state(play: Play) -> dict[str, str]:
    invoked = {line["id"]: line for line in play.ledger if line["state"] == "invoked"}
    ends = {line["id"]: line["state"] for line in play.ledger if line["state"] != "invoked"}
    state: dict[str, str] = {}
    for number, line in invoked.items():
        end = ends.get(number, "unknown")
        if line["op"] == "put":
            state[line["key"]] = {"ok": "P", "fail": "F", "unknown": "U"}[end]
        elif end == "ok":
            state[line["key"]] = "R"
        elif end == "unknown":
            state[line["key"]] = "E"
    return state


def _manifest(
    name: str,
    system: tuple[str, str],
    topology: str,
    clients: Mapping[str, Mapping[str, str]],
    phases_s: tuple[float, float, float],
    interval_ms: float,
    deadline_ms: float,
    seed: int,
) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "wanlat": "0.1.0",
        "kind": "drill",
        "status": "complete",
        "reason": None,
        "reached": "done",
        "started": "2026-03-01T12:00:00+00:00",
        "drill": {
            "name": name,
            "description": "made up for a test",
            "topology": topology,
            "scale": 1,
            "interval": f"{interval_ms:g}ms",
            "deadline": f"{deadline_ms:g}ms",
            "phases": {
                phase: f"{seconds:g}s"
                for phase, seconds in zip(("before", "during", "after"), phases_s, strict=True)
            },
        },
        "roles": {"victim": ["n2"], "survivor": ["n3"]},
        "clients": {client: dict(place) for client, place in clients.items()},
        "stated_time_s": sum(phases_s) + 200,
        "topology": {
            "name": topology,
            "description": "made up for a test",
            "sites": [{"name": SITES[node], "nodes": [node]} for node in NODES],
        },
        "seed": seed,
        "backend": "wire",
        "storage": "memory",
        "systems": [{"name": system[0], "version": system[1], "sha256": "0" * 64, "options": {}}],
        "warnings": [],
    }


def _until(play: Play, at_s: float) -> Play:
    """What was on disk at `at_s`."""
    at_ns = _ns(at_s)
    return Play(
        samples=[row for row in play.samples if _known_ns(row) <= at_ns],
        ledger=[line for line in play.ledger if line["t_ns"] <= at_ns],
        events=[event for event in play.events if event["t_ns"] <= at_ns],
        verification=[
            line for line in play.verification if line.get("t_ns", line.get("begun_ns", 0)) <= at_ns
        ],
    )


def _known_ns(row: Mapping[str, Any]) -> int:
    """When the row of a request was written."""
    if row["start_ns"] is None:
        return int(row["due_ns"]) + 10 * S
    return int(row["start_ns"]) + int(row["elapsed_ns"])


def _reached(play: Play) -> str | None:
    stages = [event["subject"] for event in play.events if event["kind"] == "stage"]
    return stages[-1] if stages else None


def _write(directory: Path, play: Play, *, as_lines: bool, cut: bool) -> None:
    samples = sorted(play.samples, key=_known_ns)
    if as_lines:
        _lines(directory / "samples.jsonl", samples, cut)
        _lines(directory / "events.jsonl", play.events, cut)
    else:
        pd.DataFrame.from_records(samples).to_parquet(directory / "samples.parquet")
        pd.DataFrame.from_records(play.events).to_parquet(directory / "events.parquet")
    ledger = sorted(play.ledger, key=lambda line: int(line["t_ns"]))
    _lines(directory / "ledger.jsonl", ledger, cut)
    if play.verification or not cut:
        _lines(directory / "verification.jsonl", play.verification, cut)


def _lines(path: Path, rows: Sequence[Mapping[str, Any]], cut: bool) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text + ('{"cut sho' if cut else ""))
