"""Bundles made up from a seed in no time: what runs leave, by way of what writes those of runs.

`write` is the builder: a manifest, tables and documents. Beside it are the kinds of bundles that
several tests need; what plays a drill, or packets, is `tests/analysis/drill_bundles.py` and
`trace_bundles.py`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from wanlat.bundle import documents, tables
from wanlat.bundle.load_records import MAGIC, OUTCOMES, RAMP, RECORD
from wanlat.bundle.units import bytes_of
from wanlat.bundle.write import write_document, write_manifest, write_points, write_table

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]] | pd.DataFrame
Series = tuple[str, str]
"""A system, and its version."""
Values = Callable[[str, Mapping[str, Any], str, int], np.ndarray]
"""(system, values of the point, endpoint, bytes) -> latencies in ms of its requests."""
WritePoint = Callable[[Path, Series, Mapping[str, Any]], None]
"""(directory, system and version, values of the point): writes its bundle."""
MakeBundle = Callable[..., Path]
"""The fixture `make_bundle`: the settings of `write_bundle`, and a `name`."""

S, KIB, MIB = 10**9, 2**10, 2**20
GARAGE = ("garage", "2.5.0")
MINIO = ("minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
MINIO_NGINX = ("minio-nginx", MINIO[1])
MINIO_RELEASE = ("minio", "RELEASE.2026-02-12T20-18-48Z")
QUORUM = ("quorum", "0.1.0")
BOB = ("bob", "2.1.0-alpha.12")
TITLES = {"bob": "Bob", "garage": "Garage", "minio": "MinIO", "minio-nginx": "MinIO behind nginx"}
"""Of some systems; the others are called by their names."""
ENDPOINTS = ("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject")
BOB_ENDPOINTS = ("Put", "Get", "Exist", "Delete", "Ping")
BOTH = ("local", "remote")
FOUR_SYSTEMS: dict[str, Any] = {
    "systems": [GARAGE, MINIO, BOB, QUORUM],
    "endpoints": {
        **dict.fromkeys(("garage", "minio"), ENDPOINTS),
        **dict.fromkeys(("bob", "quorum"), BOB_ENDPOINTS),
    },
    "placed": {"bob": BOTH, "quorum": BOTH},
}
"""Two stores that speak S3, and two that speak Bob's interface and know where a key lies."""
FIVE_SITES = {f"dc{number}": [f"n{number}"] for number in range(1, 6)}


# -- the builder -----------------------------------------------------------------------------


def write(
    directory: Path,
    manifest: Mapping[str, Any],
    rows: Mapping[str, Rows] = {},
    *written: documents.Document,
    as_lines: Collection[str] = (),
    cut: str = "",
) -> Path:
    """Write a bundle and return its directory: rows by the names of their tables, and documents.

    Tables that are in ``as_lines`` stay the lines that a run that was killed leaves; ``cut`` is the
    beginning of another.
    """
    directory.mkdir(parents=True, exist_ok=True)
    write_manifest(directory, manifest)
    for document in written:
        write_document(directory, document)
    for name, each in rows.items():
        if name in as_lines:
            many = each.to_dict("records") if isinstance(each, pd.DataFrame) else each
            text = "".join(json.dumps(row) + "\n" for row in many)
            (directory / f"{name}.jsonl").write_text(text + cut)
        else:
            schema: pa.Schema = getattr(tables, name.upper())
            write_table(directory, name, schema, [_table(each, schema)])
    return directory


def _table(rows: Rows, schema: pa.Schema) -> pa.Table:
    if isinstance(rows, pd.DataFrame):
        frame = rows.reindex(columns=schema.names)
        return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def manifest_of(
    systems: Iterable[Series],
    study: Mapping[str, Any],
    *,
    topology: str = "five-sites",
    sites: Mapping[str, Sequence[str]] = FIVE_SITES,
    **changes: Any,
) -> Row:
    """The manifest of a study that is complete; its client is the first node."""
    site = next(iter(sites))
    first = {"node": sites[site][0], "site": site}
    return {
        "schema_version": documents.SCHEMA_VERSION,
        "wanlat": "0.1.0",
        "kind": "study",
        "status": "complete",
        "seed": 7,
        "study": dict(study),
        "topology": {
            "name": topology,
            "sites": [{"name": name, "nodes": list(nodes)} for name, nodes in sites.items()],
        },
        "backend": "wire",
        "storage": "memory",
        "client": first,
        "target": first,
        "systems": [
            {"name": name, "version": version, "title": TITLES.get(name)}
            for name, version in systems
        ],
        **changes,
    }


def sample(ms: float, **more: Any) -> Row:
    """A row of a request that took so long."""
    return {
        "client": "n1",
        "connect_ns": 0,
        "first_byte_ns": round(ms * 0.99e6),
        "total_ns": round(ms * 1e6),
        "outcome": "ok",
        "error": None,
        "object_bytes": 1024,
        "phase": "measure",
        "retransmits": 0,
        "status": 200,
        "new_connection": False,
        **more,
    }


# -- single requests on one network ----------------------------------------------------------

# Plausible round trips, an endpoint of a system.
_ROUND_TRIPS = {
    "garage": {"ListBuckets": 0, "ListObjects": 2, "GetObject": 1, "PutObject": 1},
    "minio": {"ListBuckets": 1, "ListObjects": 2, "GetObject": 5, "PutObject": 11},
    "bob": {"Put": 1, "Delete": 1, "Get": 0, "Exist": 0, "Ping": 0},
    "quorum": {"Put": 1, "Delete": 1, "Get": 0, "Exist": 0, "Ping": 0},
}


def write_bundle(
    directory: Path,
    *,
    systems: Sequence[Series] = (GARAGE, MINIO),
    endpoints: Sequence[str] | Mapping[str, Sequence[str]] = ENDPOINTS,
    placed: Mapping[str, Sequence[str]] | None = None,
    n: int = 100,
    topology: str = "five-sites",
    sites: int = 5,
    nodes_a_site: int = 1,
    failures: Mapping[tuple[str, str], tuple[int, int]] | None = None,
    values_ms: Mapping[Any, Sequence[float]] | None = None,
    as_lines: bool = False,
    rtt_ms: float | None = 100.0,
    jitter_ms: float = 20.0,
    bytes_each: int = 1024,
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Write a bundle of `n` measured samples an endpoint of each system into `directory`.

    `failures` gives (fail, unknown) for (system, endpoint); `values_ms` latencies to use instead
    of made-up ones, of (system, endpoint, placement) where there is one; `rtt_ms` None leaves
    calibration out; `manifest` overrides its keys. `endpoints` may differ by system. `placed` gives
    the placements of the keys of a system; without it none is known.
    """
    rng = np.random.default_rng(20260101)
    names = {
        name: endpoints[name] if isinstance(endpoints, Mapping) else endpoints
        for name, _ in systems
    }
    rows: list[Row] = []
    for system, version in systems:
        made: list[Row] = []
        of: Row = {"system": system, "version": version, "topology": topology}
        of |= {"rtt_ms": rtt_ms, "object_bytes": bytes_each}
        for endpoint, placement in _measured(names[system], system, placed):
            own = {**of, "endpoint": endpoint, "placement": placement}
            key = (system, endpoint, *([placement] if placement != "unknown" else []))
            latencies = (values_ms or {}).get(key)
            if latencies is None:
                latencies = _latencies(rng, key, n, rtt_ms or 0.0, jitter_ms if rtt_ms else 0.0)
            starts = (S + 2 * S * number for number in range(len(latencies)))
            made += [
                sample(ms, start_ns=at, **own) for ms, at in zip(latencies, starts, strict=True)
            ]
            # Slow first requests, which must show up in no figure.
            made.append(sample(99_999.0, start_ns=S, **own, phase="prepare"))
            made.append(sample(88_888.0, start_ns=3 * S, **own, phase="warmup"))
        for endpoint in names[system]:
            _spoil(made, endpoint, *(failures or {}).get((system, endpoint), (0, 0)))
        rows += [{**made[i], "seq": seq} for seq, i in enumerate(rng.permutation(len(made)))]
    nodes = iter(f"n{number + 1}" for number in range(sites * nodes_a_site))
    lab = {f"dc{k + 1}": [next(nodes) for _ in range(nodes_a_site)] for k in range(sites)}
    studied = list(dict.fromkeys(name for each in names.values() for name in each))
    study = {"name": "endpoint-latency", "endpoints": studied}
    document = manifest_of(systems, study, topology=topology, sites=lab) | dict(manifest or {})
    written = []
    if rtt_ms is not None:
        pairs = [*_calibrated(rng, [name for name, _ in systems], lab, rtt_ms, jitter_ms)]
        tolerance = {"median_ms": 0.5, "p99_ms": 2.0}
        calibration = {"topology": topology, "backend": "wire", "pairs": pairs, "verdict": "pass"}
        written.append(documents.Calibration.model_validate(calibration | {"tolerance": tolerance}))
    write(
        directory, document, {"samples": rows}, *written, as_lines=["samples"] if as_lines else ()
    )


def _measured(
    endpoints: Sequence[str], system: str, placed: Mapping[str, Sequence[str]] | None
) -> Iterator[tuple[str, str]]:
    """Each of `endpoints` with each placement of its keys, of which Ping has none."""
    for endpoint in endpoints:
        known = () if endpoint == "Ping" else (placed or {}).get(system, ())
        yield from ((endpoint, placement) for placement in known or ("unknown",))


def _latencies(
    rng: np.random.Generator, key: Sequence[str], n: int, rtt_ms: float, jitter_ms: float
) -> list[float]:
    system, endpoint, *placement = key
    trips = _ROUND_TRIPS.get(system, {}).get(endpoint, 12 if system == "minio" else 2)
    trips = max(trips, 1) if placement == ["remote"] else trips
    network = rng.uniform(rtt_ms - jitter_ms, rtt_ms + jitter_ms, (n, trips)).sum(axis=1)
    own = 1.0 + rng.lognormal(0.5, 0.6, n) + 60 * (rng.random(n) < 0.03)
    return [float(v) for v in network + own]


def _spoil(rows: list[Row], endpoint: str, fail: int, unknown: int) -> None:
    """Turn the first measured rows of `endpoint` into failures, with absurd durations."""
    measured = [r for r in rows if r["phase"] == "measure" and r["endpoint"] == endpoint]
    for row in measured[:fail]:
        row |= {"outcome": "fail", "error": "http 503 SlowDown", "status": 503, "total_ns": 1}
    for row in measured[fail : fail + unknown]:
        row |= {"outcome": "unknown", "error": "timeout", "status": None, "total_ns": None}


def _calibrated(
    rng: np.random.Generator,
    systems: Sequence[str],
    sites: Mapping[str, Sequence[str]],
    rtt_ms: float,
    jitter_ms: float,
) -> Iterator[Row]:
    site_of = {node: site for site, nodes in sites.items() for node in nodes}
    for system, (a, b) in product(systems, permutations(site_of, 2)):
        inside = site_of[a] == site_of[b]
        requested, jitter = (0.5, 0.0) if inside else (rtt_ms, jitter_ms)
        middle = requested + 0.05 + rng.uniform(0, 0.05 if inside else 0.2)
        rtt = {"n": 100, "mean": middle, "stdev": jitter / 2.4, "p50": middle}
        rtt |= {"min": middle - jitter * 0.97, "p99": middle + jitter * 0.95}
        off = middle - requested
        yield {
            **{"from": a, "to": b, "system": system, "verdict": "pass"},
            **{"requested_rtt_ms": requested, "requested_jitter_ms": jitter},
            "rtt_ms": {**rtt, "max": middle + jitter * 0.98},
            "error_ms": {"p50": off, "p99": off + rng.uniform(0.1, 0.9)},
            **{"sent": 200, "lost": 0, "reordered": 0},
        }


# -- round trips -----------------------------------------------------------------------------

RTTS_MS = (0.0, 25.0, 50.0, 100.0, 200.0)
Key = tuple[str, str, str]
"""System, endpoint, placement."""


@dataclass(frozen=True)
class Does:
    """What a share of the requests does: so many round trips, and `own_ms` besides."""

    share: float
    round_trips: float
    own_ms: float = 3.0


TWO_LINES = (Does(0.7, 3), Does(0.3, 1))
PLAIN: Mapping[Key, Sequence[Does]] = {
    ("quorum", "PutObject", "unknown"): [Does(1, 2)],
    ("quorum", "GetObject", "local"): [Does(1, 0)],
    ("quorum", "GetObject", "remote"): TWO_LINES,
}
Latency = Callable[[float, Does, np.random.Generator], float]


def straight(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
    """A line, a little noise that only ever adds, and a stall now and then."""
    stall_ms = 40.0 if rng.random() < 0.01 else 0.0
    return does.own_ms + does.round_trips * rtt_ms + rng.exponential(0.4) + stall_ms


def bent(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
    """No line: it grows faster than the distance."""
    return straight(rtt_ms, does, rng) + rtt_ms**2 / 150


def write_round_trips_bundle(
    directory: Path,
    *,
    does: Mapping[Key, Sequence[Does]] = PLAIN,
    versions: Mapping[str, str] | None = None,
    rtts_ms: Sequence[float] = RTTS_MS,
    repeats: int = 3,
    samples: int = 15,
    jitter_ms: float = 0.0,
    latency: Latency = straight,
    sites: Mapping[str, Sequence[str]] = FIVE_SITES,
    far_ms: Mapping[str, float] | None = None,
    failed_steps: Sequence[int] = (),
    forgotten_steps: Sequence[int] = (),
    failures: Mapping[Key, int] | None = None,
    least: Mapping[Key, tuple[float | None, str]] | None = None,
    links: Mapping[str, Any] | None = None,
    manifest: Mapping[str, Any] | None = None,
    topology: str = "five-sites",
    seed: int = 20260202,
) -> Path:
    """Write a bundle into `directory` and return it: each RTT is taken `repeats` times.

    `far_ms` adds to the RTT of every pair with that site; `failed_steps` fail their calibration
    and `forgotten_steps` are not in rtt_steps.json, as of a run that was killed in one.
    """
    rng = np.random.default_rng(seed)
    versions = {"quorum": QUORUM[1], **(versions or {})}
    systems = list(dict.fromkeys(system for system, _, _ in does))
    rows: list[Row] = []
    steps: list[documents.RttStep] = []
    for system in systems:
        order_ms = rng.permutation(np.repeat(np.array(rtts_ms), repeats)).tolist()
        for number, requested_ms in enumerate(order_ms):
            measured_ms = requested_ms + 0.08 + rng.uniform(0, 0.04)
            begun_ns, failed = (1 + number) * 1000 * S, number in failed_steps
            mine = {key: parts for key, parts in does.items() if key[0] == system}
            made = _of_step(rng, mine, measured_ms, samples, latency)
            of = {"rtt_step": number, "rtt_ms": requested_ms, "version": versions[system]}
            for turn, place in enumerate(rng.permutation(len(made))):
                at = {"seq": turn, "start_ns": begun_ns + S * turn, "topology": topology}
                rows.append(made[place] | of | at)
            step = documents.RttStep(
                system=system,
                rtt_step=number,
                requested_rtt_ms=requested_ms,
                requested_jitter_ms=jitter_ms,
                idle_ns=(begun_ns - 3 * S, begun_ns - 2 * S),
                begun_ns=begun_ns,
                ended_ns=begun_ns + 900 * S,
                pairs=_pairs(sites, measured_ms, far_ms or {}, failed=failed),
                measured_rtt_ms=measured_ms,
                verdict="fail" if failed else "pass",
            )
            steps += [] if number in forgotten_steps else [step]
    for key, n in (failures or {}).items():
        whose = [row for row in rows if (row["system"], row["endpoint"], row["placement"]) == key]
        for row in [row for row in whose if row["phase"] == "measure"][:n]:
            row |= {"outcome": "fail", "error": "http 503", "status": 503, "total_ns": 1}
    known: dict[str, list[Row]] = {system: [] for system in systems}
    for (system, endpoint, placement), (trips, why) in (least or {}).items():
        entry = {"endpoint": endpoint, "placement": placement, "round_trips": trips, "why": why}
        known[system].append(entry)
    study = {
        "name": "round-trips",
        "endpoints": list(dict.fromkeys(endpoint for _, endpoint, _ in does)),
        "samples": samples,
        "round_trips": {"rtts": [f"{ms:g}ms" for ms in rtts_ms], "repeats": repeats},
    }
    document = manifest_of([], study, topology=topology, sites=sites)
    document["topology"]["links"] = {"default": {"rtt": "100ms", **(links or {})}, "pairs": []}
    document["systems"] = [
        {
            **{"name": name, "version": versions[name], "title": TITLES.get(name)},
            "least_round_trips": known[name],
        }
        for name in systems
    ]
    written = (
        documents.RttSteps(rtt_steps=steps),
        documents.Calibration(topology=topology, backend="wire", pairs=[], verdict="pass"),
    )
    return write(directory, document | dict(manifest or {}), {"samples": rows}, *written)


def _of_step(
    rng: np.random.Generator,
    does: Mapping[Key, Sequence[Does]],
    measured_ms: float,
    samples: int,
    latency: Latency,
) -> list[Row]:
    made = []
    for (system, endpoint, placement), parts in does.items():
        shares = np.array([part.share for part in parts])
        for turn in range(-2, samples):
            part = parts[int(rng.choice(len(parts), p=shares / shares.sum()))]
            # Warm-up is slow and must show up in no figure.
            ms = 9_999.0 if turn < 0 else latency(measured_ms, part, rng)
            of = {"system": system, "endpoint": endpoint, "placement": placement, "target": "n1"}
            made.append(sample(ms, **of, phase="warmup" if turn < 0 else "measure"))
    return made


def _pairs(
    sites: Mapping[str, Sequence[str]],
    measured_ms: float,
    far_ms: Mapping[str, float],
    *,
    failed: bool,
) -> list[documents.RttStepPair]:
    site_of = {node: site for site, nodes in sites.items() for node in nodes}
    pairs: list[documents.RttStepPair] = []
    for one, other in permutations(site_of, 2):
        farther_ms = sum(far_ms.get(site_of[node], 0.0) for node in (one, other))
        rtt_ms = 0.55 if site_of[one] == site_of[other] else measured_ms + farther_ms
        bad: Row = {"verdict": "fail", "reasons": ["median 0.9 ms off, 0.5 are allowed"]}
        bad = bad if failed and not pairs else {}
        of: Row = {"source": one, "destination": other, "requested_rtt_ms": rtt_ms}
        pairs.append(documents.RttStepPair(**of, measured_rtt_ms=rtt_ms, **bad))
    return pairs


# -- load ------------------------------------------------------------------------------------

ZERO_NS = 5 * S
OBJECT_BYTES = 512_000
WORKERS = 16
CLIENT = {"cores": 2, "cpu_s": 1.0, "cpu_share": 0.21, "threads": WORKERS, "waited_share": 0.0} | {
    f"{name}_share": 0.01 for name in ("busiest_thread", "verify", "computed", "between")
}
BETWEEN_S = 20e-6
"""From an answer to the next request of its worker."""
KIND = "http 503 SlowDown"


MEAN_MS = {"GetObject": 11.4, "PutObject": 43.1}


def rows_of(*, duration_s: float, slowness: float = 1.0, fails: float = 0.0) -> pd.DataFrame:
    """Requests of closed-loop workers, half reads, half writes, in the order of their begin.

    They take `MEAN_MS` times `slowness` on average, and a share `fails`. The first second is the
    ramp.
    """
    rng, most = np.random.default_rng(1), 100 + round(50 * (duration_s + 1) / slowness)
    endpoint = rng.integers(2, size=(WORKERS, most))
    worker = np.arange(WORKERS)[:, None]
    ms = slowness * np.array([*MEAN_MS.values()])[endpoint]
    ms = ms * rng.lognormal(-0.08, 0.4, endpoint.shape)
    took_s = ms / 1e3 + BETWEEN_S
    start_s = worker / WORKERS - 1.0 + np.cumsum(took_s, axis=1) - took_s
    order = np.argsort(start_s, axis=None, kind="stable")
    order = order[start_s.flat[order] < duration_s]
    failed = rng.random(order.size) < fails
    elapsed_ns = np.round(ms.flat[order] * 1e6).astype(np.int64)
    return pd.DataFrame(
        {
            "start_ns": ZERO_NS + np.round(start_s.flat[order] * 1e9).astype(np.int64),
            "due_ns": pd.array([None] * order.size, dtype="Int64"),
            "total_ns": pd.array(elapsed_ns, dtype="Int64"),
            "elapsed_ns": elapsed_ns,
            "worker": order // most,
            "endpoint": np.array([*MEAN_MS])[endpoint.flat[order]],
            "object_bytes": np.where(failed, 0, OBJECT_BYTES),
            "outcome": np.where(failed, "fail", "ok"),
            "error": np.where(failed, KIND, None),
            "phase": np.where(start_s.flat[order] < 0, "ramp", "load"),
        }
    )


def write_load(
    directory: Path,
    *,
    duration_s: float,
    slowness: float = 1.0,
    fails: float = 0.0,
    rows: pd.DataFrame | None = None,
    series: Series = MINIO,
    load: Mapping[str, Any] | None = None,
    study: Mapping[str, Any] | None = None,
    raw: bool = False,
) -> pd.DataFrame:
    """Write a bundle of one system under load; returns the requests.

    `raw`: as a run leaves it that was killed.
    """
    if rows is None:
        rows = rows_of(duration_s=duration_s, slowness=slowness, fails=fails)
    recorded = {
        "offered": {"workers": WORKERS, "rate": None},
        "achieved_per_s": round(len(rows) / duration_s, 3),
        "began_ns": ZERO_NS - S,
        "ramp_ms": 1000,
        "ended_ns": ZERO_NS + round(duration_s * 1e9),
        "client": CLIENT,
        "bottleneck": None,
        **(load or {}),
    }
    own = {"name": "mixed-load", "load": {"workers": WORKERS, "duration": f"{duration_s}s"}}
    document = manifest_of(
        [series],
        own | dict(study or {}),
        topology="lan",
        sites={"dc1": ["n1"]},
        load={} if raw else {series[0]: recorded},
    )
    made: dict[str, Rows] = {"samples": _probed(series, duration_s, slowness)}
    if not raw:
        made["load"] = rows.assign(system=series[0], version=series[1])
    write(directory, document, made)
    if raw:
        (directory / "records").mkdir()
        (directory / "records" / f"load-{series[0]}.raw").write_bytes(raw_of(rows))
    return rows


def raw_of(rows: pd.DataFrame) -> bytes:
    """`rows` as the generator writes them (probes/oneshot/src/load/record.rs)."""
    records = np.zeros(len(rows), dtype=RECORD)
    for name in ("start_ns", "total_ns", "elapsed_ns", "object_bytes", "worker"):
        records[name] = rows[name]
    endpoints = ("GetObject", "PutObject")
    records["endpoint"] = [endpoints.index(name) for name in rows["endpoint"]]
    records["outcome"] = [OUTCOMES.index(name) for name in rows["outcome"]]
    records["error"] = rows["error"].notna()
    records["flags"] = np.where(rows["phase"] == "ramp", RAMP, 0)
    for name in ("due_ns", "first_byte_ns", "grpc_status"):
        records[name] = -1
    size = RECORD.itemsize
    header = (MAGIC + size.to_bytes(4, "little")).ljust(size, b"\0")
    kind = bytes((255, len(KIND), 0, 0, 1, 0, 0, 0)) + KIND.encode()
    names = [
        (bytes((254, len(name), 0, 0, number, 0, 0, 0)) + name.encode()).ljust(size, b"\0")
        for number, name in enumerate(endpoints)
    ]
    return header + b"".join(names) + kind.ljust(size, b"\0") + records.tobytes()


def _probed(series: Series, duration_s: float, slowness: float) -> pd.DataFrame:
    """The probe client's requests, every 100 ms, 30 s before the ramp and beside the load."""
    rng = np.random.default_rng([1, 2])
    at_s = np.arange(-30.0, duration_s, 0.1)
    is_idle, is_put = at_s < 0, rng.random(at_s.size) < 0.5
    mean_ms = np.where(is_idle, 4.0, 12.0) * np.where(is_put, 2.0, 1.0)
    total_ms = slowness * mean_ms * rng.lognormal(-0.045, 0.3, at_s.size)
    return pd.DataFrame(
        {
            "system": series[0],
            "version": series[1],
            "topology": "lan",
            "client": "n1",
            "endpoint": np.where(is_put, "PutObject", "GetObject"),
            "seq": np.arange(at_s.size),
            "start_ns": ZERO_NS + np.round(1e9 * (at_s - 2 * is_idle)).astype(np.int64),
            "total_ns": np.round(1e6 * total_ms).astype(np.int64),
            "outcome": "ok",
            "object_bytes": OBJECT_BYTES,
            "phase": np.where(is_idle, "idle", "loaded"),
        }
    )


# -- resources -------------------------------------------------------------------------------

IDLE_S = 10
WAN_BYTES = {"PutObject": 200 * KIB, "GetObject": 3 * KIB, "HeadObject": 1 * KIB}
CPU_MS = {"PutObject": 12.0, "GetObject": 2.0, "HeadObject": 1.0}
BODY_BYTES = {"PutObject": 64 * KIB, "GetObject": 64 * KIB, "HeadObject": 0}
BACKGROUND_BYTES_PER_S = 50 * KIB
BACKGROUND_CPU = 0.02
REQUEST_S = 0.11


def write_resources(
    directory: Path, *, systems: Mapping[str, float] | None = None, requests: int = 600
) -> None:
    """Add resources and events to a bundle, and give its samples times that fit.

    `systems` gives the memory of a node of each in MiB. Requests are one after the other, in
    shuffled order; their usage is that of the tables above, spread evenly over a request's time.
    """
    rng, t0 = np.random.default_rng(5), 1000 * S
    rows: list[Row] = []
    events: list[Row] = []
    samples = []
    manifest = json.loads((directory / "manifest.json").read_text())
    versions = {each["name"]: each["version"] for each in manifest["systems"]}
    for system, memory_mib in (systems or {"garage": 120.0}).items():
        names = rng.permutation(np.resize(list(WAN_BYTES), requests))
        edges = t0 + IDLE_S * S + np.arange(requests + 1) * round(REQUEST_S * S)
        wan, cpu_ms = (
            np.cumsum([0.0, *(of[name] for name in names)]) for of in (WAN_BYTES, CPU_MS)
        )
        events.append({"t_ns": int(edges[0]), "kind": "loaded", "subject": system, "detail": ""})
        for t in range(t0, int(edges[-1]) + S, S):
            crossed = int(np.interp(t, edges, wan) + BACKGROUND_BYTES_PER_S * (t - t0) / S)
            cpu_ns = int(np.interp(t, edges, cpu_ms) * 1e6 + BACKGROUND_CPU * (t - t0))
            common = {"t_ns": t, "system": system, "space_bytes": MIB, "files": 10}
            common |= {"threads": 9, "open_files": 30, "read_bytes": 0, "written_bytes": crossed}
            rows += [
                {**common, "kind": "node", "subject": node, "cpu_ns": cpu_ns // 3}
                | {"rss_bytes": round((memory_mib + place) * MIB), "rx_packets": 1}
                | {"rx_bytes": crossed // 3, "tx_bytes": crossed // 3, "tx_packets": 1}
                for place, node in enumerate(("n1", "n2", "n3"))
            ]
            link = {"t_ns": t, "system": system, "kind": "link", "tx_bytes": crossed // 2}
            rows += [{**link, "subject": way} for way in ("dc1->dc2", "dc2->dc1")]
        whole = pd.DataFrame({"endpoint": names, "start_ns": edges[:-1]}).assign(
            system=system,
            version=versions[system],
            topology=manifest["topology"]["name"],
            total_ns=round(REQUEST_S * S),
            outcome="ok",
            object_bytes=[BODY_BYTES[name] for name in names],
            phase="measure",
        )
        samples.append(whole)
        t0 = int(edges[-1]) + 20 * S
    made: dict[str, Rows] = {"samples": pd.concat(samples), "events": events, "resources": rows}
    write(directory, manifest, made)


def write_reclaim(
    directory: Path, courses: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> None:
    """Add a removal of half of 100 objects to a bundle.

    `courses` gives of each system the space of both nodes (MiB), ten seconds apart from the
    removal's end on, and the trash of them. Before it the nodes had 100 MiB of objects, and 10 MiB
    of their own before that.
    """
    rows: list[Row] = []
    entries, t0 = [], 1000 * S
    for system, (spaces, trashes) in courses.items():
        end = t0 + 30 * S
        times = [t0, t0 + 20 * S, *(end + n * 10 * S for n in range(len(spaces)))]
        rows += [
            {"t_ns": t, "system": system, "kind": "node", "subject": node, "files": 1}
            | {"space_bytes": round(space * MIB / 2), "trash_bytes": round(trash * MIB / 2)}
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
    manifest = json.loads((directory / "manifest.json").read_text())
    reclaims = documents.Reclaims.model_validate({"systems": entries})
    write(directory, manifest, {"resources": rows}, reclaims)


# -- matrices --------------------------------------------------------------------------------


def plausible(n: int = 40) -> Values:
    """Latencies as of the documents: a time of its own, a rate, and for MinIO a tail."""

    def values(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
        rng = np.random.default_rng(zlib.crc32(f"{system}{sorted(at.items())}{endpoint}".encode()))
        writes = endpoint.startswith("Put")
        own_ms = {"bob": 0.4, "quorum": 0.3}.get(system, 2.0) * (1.5 if writes else 1.0)
        mib_s = {"bob": 100.0}.get(system, 60.0 if writes else 220.0)
        body_ms = size / MIB / mib_s * 1e3
        if system == "bob" and size > 4 * MIB:
            body_ms *= 1.4
        tail = 0.6 if system.startswith("minio") else 0.08
        return (own_ms + body_ms) * rng.lognormal(0, tail if writes else 0.05, n)

    return values


def write_sweep(
    directory: Path,
    parameters: Mapping[str, Sequence[Any]],
    *,
    systems: Sequence[Series] = (BOB, MINIO),
    values: Values | None = None,
    statuses: Mapping[str, str] | None = None,
    manifest: Mapping[str, Any] | None = None,
    study: Mapping[str, Any] | None = None,
    endpoints: Mapping[str, Sequence[str]] | None = None,
    placed: Mapping[str, Sequence[str]] | None = None,
    point_manifest: Mapping[str, Any] | None = None,
    write_point: WritePoint | None = None,
) -> None:
    """Write the bundle of a matrix over the grid of `parameters` on each of `systems`.

    `statuses` gives those of points, by name, that are not complete; such a point has no bundle.
    `manifest` overrides keys of the matrix', `point_manifest` of each point's. `write_point` writes
    a point's bundle in place of the one of single requests.
    """
    draw, points = values or plausible(), []
    whole: Row = {
        "name": "object-sizes",
        "systems": [name for name, _ in systems],
        "key_mode": "fresh",
    }
    whole |= {"samples": 100, "warmup": 5, "object_size": "1KiB", "nodes": 1, **(study or {})}

    def write_latencies(path: Path, series: Series, at: Mapping[str, Any]) -> None:
        system = series[0]
        mine = {**whole, **{k: v for k, v in at.items() if "." not in k}, "systems": [system]}
        size = bytes_of(mine["object_size"]) or 0
        its = (endpoints or {"bob": ("Get", "Put")}).get(system, ("GetObject", "PutObject"))
        where = (placed or {}).get(system, ("",))
        measured = {
            (system, endpoint, *filter(None, [placement])): draw(
                system, at, endpoint, size
            ).tolist()
            for endpoint, placement in product(its, where)
        }
        settings: dict[str, Any] = {"endpoints": its, "placed": placed, "values_ms": measured}
        settings |= {"topology": "lan", "sites": 1, "nodes_a_site": int(mine["nodes"] or 1)}
        own = {"study": mine, **(point_manifest or {})}
        write_bundle(path, systems=[series], rtt_ms=None, bytes_each=size, manifest=own, **settings)

    for combination in product(*parameters.values()):
        at = dict(zip(parameters, combination, strict=True))
        for series in systems:
            name = "-".join([series[0], *(f"{key}-{value}" for key, value in at.items())])
            status = (statuses or {}).get(name, "complete")
            reason = "the store died" if status == "failed" else None
            of = {"name": name, "system": series[0], "values": at, "directory": f"points/{name}"}
            points.append(of | {"status": status, "reason": reason, "attempts": 1})
            if status == "complete":
                (write_point or write_latencies)(directory / "points" / name, series, at)
    order = np.random.default_rng(1).permutation(len(points))
    varied = [{"name": name, "values": list(each)} for name, each in parameters.items()]
    about = manifest_of(systems, whole, kind="matrix", topologies={"lan": {"name": "lan"}})
    for key in ("topology", "client", "target"):
        del about[key]
    write(directory, about | dict(manifest or {}))
    shuffled = ({**points[i], "point": place} for place, i in enumerate(order))
    write_points(directory, json.dumps(varied), map(json.dumps, shuffled))


# -- envelopes, advice, placements -----------------------------------------------------------

NEAR = {"rtt_ms": 5.0, "jitter_ms": 0.0, "loss": 0.0}
LOSSY = {**NEAR, "loss": 0.01}
PROMISE = {"deadline": "1s", "rate": 20.0, "share": "99%", "cut": "1s", "recovery": "3s"}
STUDY: Row = {"name": "envelope", "envelope": {"promise": PROMISE}}
REGIONS = {("london", "new-york"): 75.0, ("frankfurt", "sydney"): 290.0, ("here", "there"): 302.0}
ELECTION = "options.minio.election"


def write_envelope(
    directory: Path,
    *,
    limit_ms: float = 300.0,
    limit: Mapping[str, Any] | None = None,
    test: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    price: Mapping[str, Any] | None = None,
    timeouts: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the bundle of one cluster that holds up to 2 % more and less than ``limit_ms``.

    Up to half of it where 1 % is lost. ``limit`` and ``test`` override keys of the first of each.
    ``price`` is that of its ``timeouts``.
    """
    study = {**STUDY, "options": options or {}}
    its = {**dict(zip(("name", "version"), MINIO, strict=True)), "title": TITLES["minio"]}
    its |= {"timeouts": list(timeouts)}
    write_bundle(directory, systems=(MINIO,), n=1, manifest={"study": study, "systems": [its]})
    envelope = {
        "system": "minio",
        "tests": [
            _test(0, limit_ms, "holds") | dict(test or {}),
            _test(1, 1.02 * limit_ms, "fails"),
            _test(2, limit_ms / 2, "holds", LOSSY),
        ],
        "limits": [
            _limit("rtt", NEAR, limit_ms) | dict(limit or {}),
            _limit("loss", NEAR, 0.1),
            _limit("rtt", LOSSY, limit_ms / 2),
        ],
        "price": price,
        "regions": [{"sites": sites, "rtt_ms": ms} for sites, ms in REGIONS.items()],
    }
    write_document(directory, documents.Envelopes.model_validate({"systems": [envelope]}))


def _test(number: int, rtt_ms: float, verdict: str, network: Mapping[str, Any] = NEAR) -> Row:
    broken = None if verdict == "holds" else "n1 led, then n2"
    trial = {"span_ns": [1, 2], "held": verdict == "holds", "broken": broken}
    tested = {"number": number, "network": {**network, "rtt_ms": rtt_ms}, "trials": [trial] * 4}
    return {**tested, "verdict": verdict, "written": 40}


def _limit(axis: str, network: Mapping[str, Any], middle: float) -> Row:
    ends = {"inside": middle / 1.02, "outside": middle * 1.02}
    return {"axis": axis, "at": network, **ends, "back": ends["inside"], "is_approached": True}


def timeouts(election_ms: float) -> list[Row]:
    """As a manifest has them: an election of 1 s, ten round trips, and what follows it."""
    election = {"name": "election", "role": "election", "option": "election", "ms": election_ms}
    beat = {"name": "heartbeat", "role": "heartbeat", "option": "heartbeat", "ms": election_ms / 10}
    return [
        election | {"default_ms": 1000.0, "rtts": 10.0},
        beat | {"default_ms": 100.0, "follows": "election"},
    ]


def price(answered_s: Sequence[float | None], lost: int = 0) -> Row:
    """Of kills after which it took so long to a write, and a bit less to a leader."""
    killed = {"killed": "n1", "killed_ns": 1, "waited_s": 15.0}
    kills = [
        killed | {"led": s and "n2", "led_s": s and s - 0.1, "answered_s": s} for s in answered_s
    ]
    return {"kills": kills, "idle_s": 2.0, "idle_bytes": 40_000, "idle_packets": 400, "lost": lost}


def write_advice(
    directory: Path,
    elections_ms: Sequence[float] = (500.0, 1000.0, 5000.0),
    *,
    limits_ms: Mapping[float, float] = {500.0: 30.0, 1000.0: 300.0, 5000.0: 1900.0},
    replicates: int = 1,
    of_point: Mapping[float, Mapping[str, Any]] = {},
) -> None:
    """Write a matrix over an election timeout; ``of_point``: settings of `write_envelope`.

    After a kill it takes 1.2 times the timeout, and replicate n holds n - 1 percent more.
    """

    def point(path: Path, _series: Series, at: Mapping[str, Any]) -> None:
        ms = float(at[ELECTION].removesuffix("ms"))
        took_s = 1.2 * ms / 1000
        settings: Row = {
            "limit_ms": limits_ms[ms] * (1 + (at.get("replicate", 1) - 1) / 100),
            "price": price([took_s * (0.8 + 0.08 * n) for n in range(6)]),
            "timeouts": timeouts(ms),
            **of_point.get(ms, {}),
        }
        write_envelope(path, **settings)

    parameters: dict[str, list[Any]] = {ELECTION: [f"{ms:g}ms" for ms in elections_ms]}
    if replicates > 1:
        parameters["replicate"] = [*range(1, replicates + 1)]
    study = {**STUDY, "replicates": replicates}
    write_sweep(directory, parameters, systems=(MINIO,), study=study, write_point=point)


PREDICTED_MS = {"eu": 40.0, "us": 80.0}
"""Of a Put with that target; a Get is answered at once in the one, and 40 ms away."""
MIX = {"GetObject": 0.75, "PutObject": 0.25}


def write_placements(
    directory: Path,
    added_ms: Mapping[tuple[int, str, str], float] = {},
    *,
    replicates: int = 5,
    source: str = "promised",
) -> None:
    """Write two placements, of which the second takes twice as long.

    Every request takes 1 ms more than predicted, and what ``added_ms`` adds to those of a rank, a
    target node and an endpoint; clusters differ by up to 0.1 ms.
    """

    def values(_system: str, at: Mapping[str, Any], endpoint: str, _size: int) -> np.ndarray:
        rank = int(at["topology"][-1])
        more = added_ms.get((rank, at["client"], endpoint), 0.0)
        ms = predicted_ms(rank, at["client"], endpoint) + 1 + 0.05 * (at["replicate"] - 3) + more
        return np.array([*[ms] * 9, ms + 50])  # a mean is off by 5 ms

    axes: dict[str, list[Any]] = {
        "topology": ["placement-1", "placement-2"],
        "client": ["eu", "us"],
        "replicate": list(range(1, replicates + 1)),
    }
    write_sweep(directory, axes, systems=(QUORUM,), values=values, study={"name": "placement"})
    document = {
        **{"system": "quorum", "matrix": "three", "compared": 7, "rank_by": "mean", "mix": MIX},
        "sources": dict.fromkeys(MIX, source),
        "placements": [_placement(rank) for rank in (1, 2)],
    }
    write_document(directory, documents.Placements.model_validate(document))


def predicted_ms(rank: int, target: str, endpoint: str) -> float:
    return rank * (PREDICTED_MS[target] - (40.0 if endpoint == "GetObject" else 0.0))


def _placement(rank: int) -> Row:
    own = {
        each: sum(s * predicted_ms(rank, each, e) for e, s in MIX.items()) for each in PREDICTED_MS
    }
    clients = [("eu", 0.5, "eu", 0.0), ("us", 0.25, "us", 0.0), ("br", 0.25, "us", 60.0)]
    return {
        **{"rank": rank, "name": f"placement-{rank}", "regions": ["eu", "us", f"ap-{rank}"]},
        **{"leader": "eu", "endpoints": {}, "worst_client": "us", "worst_client_ms": own["us"]},
        "mean_ms": 0.5 * own["eu"] + 0.5 * own["us"] + 0.25 * 60,
        "lost": {"region": "eu", "leader": "us", "mean_ms": 200.0},
        "clients": [
            dict(zip(("region", "share", "target", "way_ms"), client, strict=True))
            for client in clients
        ],
        "requests": [
            {"target": target, "endpoint": endpoint, "ms": predicted_ms(rank, target, endpoint)}
            for target, endpoint in product(PREDICTED_MS, MIX)
        ],
    }
