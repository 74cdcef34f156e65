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
    directory: Path, *, systems: Mapping[str, float] | None = None, requests: int = 600
) -> None:
    """Add resources.parquet and events to a bundle, and give its samples times that fit.

    `systems` gives the memory of a node of each in MiB. Requests are one after the other, in
    shuffled order; their usage is that of the tables above, spread evenly over a request's time.
    """
    rng, t0 = np.random.default_rng(5), 1000 * S
    rows: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    samples = []
    manifest = json.loads((directory / "manifest.json").read_text())
    versions = {each["name"]: each["version"] for each in manifest["systems"]}
    for system, memory_mib in (systems or {"garage": 120.0}).items():
        names = rng.permutation(np.resize(list(WAN_BYTES), requests))
        edges = t0 + IDLE_S * S + np.arange(requests + 1) * round(REQUEST_S * S)
        wan, cpu_ms = (
            np.cumsum([0.0, *(of[name] for name in names)]) for of in (WAN_BYTES, CPU_MS)
        )
        events.append({"t_ns": edges[0], "kind": "loaded", "subject": system, "detail": ""})
        for t in range(t0, int(edges[-1]) + S, S):
            crossed = int(np.interp(t, edges, wan) + BACKGROUND_BYTES_PER_S * (t - t0) / S)
            cpu_ns = int(np.interp(t, edges, cpu_ms) * 1e6 + BACKGROUND_CPU * (t - t0))
            common = {"t_ns": t, "system": system, "space_bytes": MIB, "files": 10}
            common |= {"threads": 9, "open_files": 30, "read_bytes": 0, "written_bytes": crossed}
            rows += [
                {**common, "kind": "node", "subject": node, "cpu_ns": cpu_ns // 3}
                | {"rss_bytes": (memory_mib + place) * MIB, "rx_packets": 1, "tx_packets": 1}
                | {"rx_bytes": crossed // 3, "tx_bytes": crossed // 3}
                for place, node in enumerate(NODES)
            ]
            link = {"t_ns": t, "system": system, "kind": "link", "tx_bytes": crossed // 2}
            rows += [{**link, "subject": way} for way in ("dc1->dc2", "dc2->dc1")]
        whole = pd.DataFrame({"endpoint": names, "start_ns": edges[:-1]}).assign(
            system=system,
            version=versions[system],
            topology=manifest["topology"]["name"],
            total_ns=round(REQUEST_S * S),
            outcome="ok",
            object_bytes=[OBJECT_BYTES[name] for name in names],
            phase="measure",
        )
        samples.append(whole)
        t0 = int(edges[-1]) + 20 * S
    pd.concat(samples).to_parquet(directory / "samples.parquet")
    pd.DataFrame(events).to_parquet(directory / "events.parquet")
    pd.DataFrame(rows).to_parquet(directory / "resources.parquet")


def write_reclaim(
    directory: Path, courses: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> None:
    """Add a removal of half of 100 objects to a bundle.

    `courses` gives of each system the space of both nodes (MiB), ten seconds apart from the
    removal's end on, and the trash of them. Before it the nodes had 100 MiB of objects, and 10 MiB
    of their own before that.
    """
    rows, entries, t0 = [], [], 1000 * S
    for system, (spaces, trashes) in courses.items():
        end = t0 + 30 * S
        times = [t0, t0 + 20 * S, *(end + n * 10 * S for n in range(len(spaces)))]
        rows += [
            {"t_ns": t, "system": system, "kind": "node", "subject": node, "files": 1}
            | {"space_bytes": space * MIB / 2, "trash_bytes": trash * MIB / 2}
            for t, space, trash in zip(times, [10, 110, *spaces], [0, 0, *trashes], strict=True)
            for node in ("n1", "n2")
        ]
        entries.append(
            {"system": system, "objects": 100, "object_bytes": MIB, "removed": 50}
            | {"workers": 8, "which": "spread", "filled_ns": [t0, t0 + 10 * S]}
            | {"settled_ns": t0 + 20 * S, "removed_ns": [t0 + 21 * S, end]}
            | {"watched_ns": [end, times[-1]]}
            | {"found": {"kept": 50, "lost": 0, "removed": 50, "still_there": 0}}
        )
        t0 = times[-1] + 60 * S
    (directory / "reclaim.json").write_text(json.dumps({"systems": entries}))
    pd.DataFrame(rows).to_parquet(directory / "resources.parquet")
