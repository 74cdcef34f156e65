"""Synthetic resources: what the sampler writes of a cluster whose usage is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

S = 10**9
KIB, MIB = 2**10, 2**20
IDLE_S = 10
WAN_BYTES = {"PutObject": 200 * KIB, "GetObject": 3 * KIB, "HeadObject": 1 * KIB}
CPU_MS = {"PutObject": 12.0, "GetObject": 2.0, "HeadObject": 1.0}
OBJECT_BYTES = {"PutObject": 64 * KIB, "GetObject": 64 * KIB, "HeadObject": 0}
BACKGROUND_BYTES_PER_S = 50 * KIB
BACKGROUND_CPU = 0.02
REQUEST_S = 0.11
NODES = ("n1", "n2", "n3")


def write_resources(
    directory: Path,
    *,
    systems: Mapping[str, float] | None = None,
    requests: int = 600,
    idles: bool = True,
    as_lines: bool = False,
) -> None:
    """Add resources.parquet and events to a bundle, and give its samples times that fit.

    `systems` gives the memory of a node of each in MiB. Requests are one after the other, in
    shuffled order; their usage is that of the tables above, spread evenly over a request's time.
    """
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    manifest = json.loads((directory / "manifest.json").read_text())
    t0 = 1000 * S
    for system, memory_mib in (systems or {"garage": 120.0}).items():
        version = next(s["version"] for s in manifest["systems"] if s["name"] == system)
        names = rng.permutation(np.resize(list(WAN_BYTES), requests))
        begin = t0 + IDLE_S * S + np.arange(requests) * round(REQUEST_S * S)
        end = int(begin[-1]) + round(REQUEST_S * S)
        loaded = t0 + (IDLE_S * S if idles else 0)
        events.append({"t_ns": t0, "kind": "ready", "subject": system, "detail": ""})
        events.append({"t_ns": loaded, "kind": "loaded", "subject": system, "detail": ""})
        wan = np.cumsum([0, *(WAN_BYTES[name] for name in names)]).astype(float)
        cpu = np.cumsum([0, *(CPU_MS[name] for name in names)])
        edges = np.array([*begin, end], dtype=float)
        for t in np.arange(t0, end + S, S):
            crossed = np.interp(t, edges, wan) + BACKGROUND_BYTES_PER_S * (t - t0) / S
            used_ms = np.interp(t, edges, cpu) + 1e3 * BACKGROUND_CPU * (t - t0) / S
            stored = MIB * np.interp(t, edges, np.linspace(0, 90, edges.size))
            common = {"t_ns": int(t), "system": system}
            for place, node in enumerate(NODES):
                rows.append(
                    common
                    | {"kind": "node", "subject": node, "threads": 9, "open_files": 30}
                    | {"rss_bytes": (memory_mib + place) * MIB, "cpu_ns": int(used_ms * 1e6 / 3)}
                    | {"space_bytes": int(stored / 3), "files": 10, "trash_bytes": 0}
                    | {"rx_bytes": int(crossed / 3), "tx_bytes": int(crossed / 3)}
                    | {"rx_packets": int(t - t0) // S, "tx_packets": int(t - t0) // S}
                    | {"read_bytes": 0, "written_bytes": 2 * int(stored / 3)}
                )
            for way in ("dc1->dc2", "dc2->dc1"):
                link = {"kind": "link", "subject": way, "tx_bytes": int(crossed / 2)}
                rows.append(common | link | {"tx_packets": 1})
        samples += [
            {"system": system, "version": version, "topology": manifest["topology"]["name"]}
            | {"endpoint": str(name), "start_ns": int(at), "total_ns": round(REQUEST_S * S)}
            | {"outcome": "ok", "object_bytes": OBJECT_BYTES[str(name)], "phase": "measure"}
            for name, at in zip(names, begin, strict=True)
        ]
        t0 = end + 20 * S
    pd.DataFrame(samples).to_parquet(directory / "samples.parquet")
    pd.DataFrame(events).to_parquet(directory / "events.parquet")
    if as_lines:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / "resources.jsonl").write_text(lines + '{"t_ns": 12')
    else:
        pd.DataFrame(rows).to_parquet(directory / "resources.parquet")


def stored(system: str, objects: int, stored_bytes: int, put_bytes: int) -> dict[str, Any]:
    """What a run notes in its manifest of what it stored."""
    return {
        "every_s": 1.0,
        "cost_cpu_share": 0.004,
        "late_p99_ms": 1.0,
        "stretched": None,
        "failed": None,
        "systems": {
            system: {
                "stored_objects": objects,
                "stored_bytes": stored_bytes,
                "stored_is_known": True,
                "put_bytes": put_bytes,
            }
        },
    }


def write_prefill(directory: Path, *, noted: bool = True) -> None:
    """Add a prefill of 60 objects of 1 MiB to a bundle of one system on two nodes, for 10 s.

    It is filled evenly, and each node goes through its directory for 4 s: what it finds is what was
    there when it began, which rows tell if it is `noted`. The last before the end is over 2 s after
    it and finds 48 of 60 MiB.
    """
    t0, system = 1000 * S, "minio"
    rows = [
        {"t_ns": t0 + end_s * S, "system": system, "kind": "node", "subject": node}
        | {"space_bytes": min(found, 60) * MIB, "files": 1, "trash_bytes": 0}
        | ({"space_began_ns": t0 + (end_s - 4) * S} if noted else {})
        for end_s, found in ((0, 0), (4, 0), (8, 24), (12, 48), (16, 60), (20, 60))
        for node in ("n1", "n2")
    ]
    facts = ((0, {"what": "begins"}), (10, {"what": "ends"}))
    events = [
        {"t_ns": t0 + s * S, "kind": "prefill", "subject": system, "detail": json.dumps(fact)}
        for s, fact in facts
    ]
    entry = {"system": system, "buckets": ["b"], "objects": 60, "object_bytes": MIB}
    (directory / "prefill.json").write_text(json.dumps({"systems": [entry]}))
    pd.DataFrame(events).to_parquet(directory / "events.parquet")
    pd.DataFrame(rows).to_parquet(directory / "resources.parquet")


def write_reclaim(
    directory: Path,
    courses: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    step_s: int = 10,
) -> None:
    """Add a removal of half of 100 objects to a bundle.

    `courses` gives of each system the space of all nodes (MiB), `step_s` apart from the removal's
    end on, and the trash of them. Before it the nodes had 100 MiB of objects, and 10 MiB of their
    own before that.
    """
    rows: list[dict[str, Any]] = []
    entries = []
    t0 = 1000 * S
    for system, (spaces, trashes) in courses.items():
        end = t0 + 30 * S
        samples = [(t0, 10.0, 0.0), (t0 + 20 * S, 110.0, 0.0)]
        samples += [
            (end + n * step_s * S, space, trash)
            for n, (space, trash) in enumerate(zip(spaces, trashes, strict=True))
        ]
        for t, space, trash in samples:
            rows += [
                {"t_ns": t, "system": system, "kind": "node", "subject": node}
                | {"space_bytes": space * MIB / 2, "trash_bytes": trash * MIB / 2, "files": 1}
                for node in ("n1", "n2")
            ]
        entries.append(
            {"system": system, "objects": 100, "object_bytes": MIB, "removed": 50}
            | {
                "workers": 8,
                "which": "spread",
                "filled_ns": [t0, t0 + 10 * S],
                "settled_ns": t0 + 20 * S,
            }
            | {"removed_ns": [t0 + 21 * S, end], "watched_ns": [end, samples[-1][0]]}
            | {"found": {"kept": 50, "lost": 0, "removed": 50, "still_there": 0}}
        )
        t0 = samples[-1][0] + 60 * S
    (directory / "reclaim.json").write_text(json.dumps({"systems": entries}))
    pd.DataFrame(rows).to_parquet(directory / "resources.parquet")
