"""``python -m benchmarks.verify``: what verifying every body costs, at the fastest transfer.

Every fetch is of the same object from a null server on loopback, over a connection that is kept:
the fastest transfer that this machine has, where verifying is dearest.
"""

from __future__ import annotations

import argparse
import hashlib
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.comparison import Claim, finish, in_rounds, parser, run, spread, table
from benchmarks.loopback import NullServer, bare_loop, oneshot
from wanlat.probes.body import body
from wanlat.probes.header import Header
from wanlat.topologies.units import Size

_HERE = Path(__file__).parent
_SIZES = "1KiB,50KiB,1MiB,4MiB,100MiB"
_BYTES = 400 << 20
"""Of each client and size, at least: small objects are fetched more often."""
_MOST, _LEAST, _WARM_UP = 200, 4, 2
AT_MOST = 0.10
"""Of the transfer, at the largest size."""
_COLUMNS = {
    "object": "{object}",
    "API": "{api}",
    "client": "{client}",
    "n": "{n}",
    "median": "{median_ms:.3g} ms",
    "GB/s": "{gb_per_s:.2g}",
    "verifying": "{verify_ms:.3g} ms",
    "share": "{share:.1%}",
    "by round": "{by_round[min]:.1%}–{by_round[max]:.1%}",
}


class Fetched(NamedTuple):
    """One fetch: what it took, and how much of that went into comparing its bytes."""

    total_ns: int
    verify_ns: int | None


def _compare(options: argparse.Namespace) -> int:
    rows = [row for size in options.sizes for row in _at(size, options)]
    largest = max(options.sizes)
    of_largest = [row for row in rows if row["object_bytes"] == largest]
    fastest_ms, what = min(row["median_ms"] for row in of_largest), f"{Size(largest)} in memory"
    others = [
        {"way": way, "ms": round(ms, 1), "share": ms / fastest_ms} for way, ms in _others(largest)
    ]
    columns = {what: "{way}", "takes": "{ms:.1f} ms", "of the fastest transfer": "{share:.0%}"}
    claims = [
        Claim(
            f"Verifying {Size(largest)} over {row['api']} takes less than {AT_MOST:.0%}",
            f"{row['share']:.1%}",
            row["share"] < AT_MOST,
        )
        for row in of_largest
        if row["share"] is not None
    ]
    tables = f"{table(rows, _COLUMNS)}\n\n{table(others, columns)}"
    return finish(options, _HERE, rows=rows, tables=tables, claims=claims, others=others)


def _at(size: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each client that fetches an object of so many bytes."""
    n = min(max(_BYTES // size // options.rounds, _LEAST), _MOST)
    with NullServer("s3", size) as s3, NullServer("bob", size) as bob:
        turns: dict[tuple[str, str], Callable[[], list[Fetched]]] = {
            ("S3", "bare loop, thrown away"): lambda: [
                Fetched(total_ns, None) for total_ns in bare_loop(s3, n, _WARM_UP)
            ]
        }
        for api, server in (("S3", s3), ("gRPC", bob)):
            turns[api, "kept, not compared"] = partial(_fetch, server.header, n, size, None)
            turns[api, "every byte compared"] = partial(_fetch, server.header, n, size, 0)
        results = in_rounds(options, turns)
    for (api, client), rounds in results.items():
        fetched = [fetch for one in rounds for fetch in one]
        median_ms = median(fetch.total_ns for fetch in fetched) / 1e6
        is_compared = client == "every byte compared"
        verify_ms = median(fetch.verify_ns or 0 for fetch in fetched) / 1e6
        yield {
            "object": str(Size(size)),
            "object_bytes": size,
            "api": api,
            "client": client,
            "n": len(fetched),
            "median_ms": round(median_ms, 4),
            "gb_per_s": size / median_ms / 1e6,
            "verify_ms": round(verify_ms, 4) if is_compared else None,
            "share": round(_share(fetched), 4) if is_compared else None,
            "by_round": spread(map(_share, rounds)) if is_compared else None,
        }


def _fetch(header: Header, count: int, size: int, seed: int | None) -> list[Fetched]:
    samples = oneshot(header, count, _WARM_UP, size, seed)
    return [Fetched(sample.total_ns or 0, sample.verify_ns) for sample in samples]


def _share(fetched: Sequence[Fetched]) -> float:
    return sum(fetch.verify_ns or 0 for fetch in fetched) / sum(fetch.total_ns for fetch in fetched)


def _others(size: int, times: int = 5) -> Iterator[tuple[str, float]]:
    """Yield what checksums of so many bytes in memory take, in ms: the quickest of a few."""
    content = body(0, size)
    ways = {"CRC-32 (zlib)": zlib.crc32, "MD5": hashlib.md5, "SHA-256": hashlib.sha256}
    for name, way in ways.items():
        took_ns = []
        for _ in range(times):
            began_ns = time.perf_counter_ns()
            way(content)
            took_ns.append(time.perf_counter_ns() - began_ns)
        yield name, min(took_ns) / 1e6


if __name__ == "__main__":
    made = parser("verify", __doc__, rounds=10)
    made.add_argument(
        "--sizes",
        type=lambda text: [Size.parse(one).bytes for one in text.split(",")],
        default=_SIZES,
        help="default: %(default)s",
    )
    run(_compare, made.parse_args())
