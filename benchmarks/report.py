"""What a report of a very large study takes: a synthetic bundle, and `wanlat report` of it.

    python -m benchmarks.report [--samples 10000000] [--json]

Samples are drawn from a seed: two systems, six endpoints and placements, a few failures. The report
is made by a process of its own; its CPU time, and the most memory that it held, are the kernel's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.bundle.documents import SCHEMA_VERSION
from wanlat.bundle.tables import SAMPLES

MOST_S, MOST_BYTES = 10.0, 2 * 2**30
SYSTEMS = (("first", "1.0"), ("second", "2.0"))
ENDPOINTS = ("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject", "HeadObject")
_AT_ONCE = 1_000_000


def write_bundle(directory: Path, samples: int) -> None:
    """Write a bundle of so many measured samples, as a run leaves it."""
    sites = [{"name": f"dc{n}", "nodes": [f"n{n}"]} for n in (1, 2, 3)]
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "kind": "study",
        "seed": 1,
        "study": {"name": "large", "endpoints": list(ENDPOINTS)},
        "topology": {"name": "made-up", "sites": sites},
        "systems": [{"name": name, "version": version} for name, version in SYSTEMS],
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(directory / "samples.parquet", SAMPLES) as writer:
        for begin in range(0, samples, _AT_ONCE):
            writer.write_table(_rows(rng, begin, min(_AT_ONCE, samples - begin)))


def _rows(rng: np.random.Generator, begin: int, n: int) -> pa.Table:
    """A part of the table, with all columns of a bundle."""
    system, endpoint = rng.integers(0, 2, n), rng.integers(0, len(ENDPOINTS), n)
    trips = 1 + endpoint % 3 + 2 * system * (rng.random(n) < 0.6)
    total_ns = (trips * rng.normal(100e6, 2e6, n) + rng.lognormal(14, 0.5, n)).astype(np.int64)
    outcome = rng.choice(3, n, p=[0.999, 0.0005, 0.0005])
    words = {
        "system": (system, [name for name, _ in SYSTEMS]),
        "version": (system, [version for _, version in SYSTEMS]),
        "endpoint": (endpoint, ENDPOINTS),
        "outcome": (outcome, ("ok", "fail", "unknown")),
        "placement": (endpoint % 2, ("local", "remote")),
        "phase": (np.zeros(n, np.int64), ("measure",)),
        "topology": (np.zeros(n, np.int64), ("made-up",)),
        "client": (np.zeros(n, np.int64), ("n1",)),
    }
    coded = pa.DictionaryArray.from_arrays
    columns: dict[str, object] = {
        name: coded(pa.array(codes, pa.int32()), list(among)).cast("string")
        for name, (codes, among) in words.items()
    }
    numbers = {"object_bytes": 1024, "status": 200, "retransmits": 0, "connect_ns": 0}
    columns |= {name: np.full(n, value) for name, value in numbers.items()}
    columns |= {
        "seq": np.arange(begin, begin + n),
        "start_ns": np.arange(begin, begin + n) * 200_000_000,
        "first_byte_ns": pa.array(total_ns - 50_000, mask=outcome == 2),
        "total_ns": pa.array(total_ns, mask=outcome == 2),
        "rtt_ms": np.full(n, 100.0),
        "new_connection": np.zeros(n, bool),
        "verify_ns": rng.integers(1_000, 9_000, n),
        "make_ns": rng.integers(1_000, 9_000, n),
    }
    every = [columns.get(each.name, pa.nulls(n, each.type)) for each in SAMPLES]
    return pa.table(every, schema=SAMPLES)


def measure(samples: int) -> dict[str, float]:
    """Seconds, CPU seconds and the most resident bytes of the report of so many samples."""
    with tempfile.TemporaryDirectory() as there:
        write_bundle(Path(there), samples)
        began = time.monotonic()
        command = [sys.executable, "-m", "wanlat", "report", there, "-q"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took_s = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    return {"samples": samples, "s": took_s, "cpu_s": cpu_s, "peak_bytes": used.ru_maxrss * 1024}


def main() -> int:
    """Print what it took; exit code 1 where that is more than it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000_000, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="the document on standard output")
    options = parser.parse_args()
    took = measure(options.samples)
    if options.json:
        print(json.dumps(took, indent=2))
    else:
        print(
            f"{options.samples} samples: {took['s']:.1f} s, {took['cpu_s']:.1f} s of CPU, "
            f"{took['peak_bytes'] / 2**20:.0f} MiB on {os.cpu_count()} cores"
        )
    return int(took["s"] > MOST_S or took["peak_bytes"] > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
