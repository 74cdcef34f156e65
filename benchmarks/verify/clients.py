"""The ways to fetch an object that are compared, and what other checksums of it would take.

Every fetch is of the same object from a null server on loopback, over a connection that is kept:
the fastest transfer that this machine has, where verifying is dearest.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.null_server import NullServer
from wanlat.emulator.binaries import binary
from wanlat.probes.body import body
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import GrpcHeader, Header, PlanHeader, Request
from wanlat.probes.process import spawn_here
from wanlat.probes.records import Sample

WARMUP = 2
_SEED = 0
_KEY = "00112233445566ff"


@dataclass(frozen=True)
class Fetched:
    """One fetch: what it took, and how much of that went into comparing its bytes."""

    total_ns: int
    verify_ns: int | None


@dataclass(frozen=True)
class Client:
    """A way to fetch. ``fetch`` does it so often, after some that do not count."""

    api: str
    name: str
    fetch: Callable[[int], list[Fetched]]


COMPARED = "every byte compared"
HELD = "kept, not compared"
THROWN_AWAY = "bare loop, thrown away"


@contextmanager
def clients(object_bytes: int) -> Iterator[list[Client]]:
    """Yield all of them, with their servers running."""
    with (
        NullServer("null-server", object_bytes, _SEED) as s3,
        NullServer("null-grpc", object_bytes, _SEED) as bob,
    ):
        s3_header = PlanHeader(s3.host, s3.port, "garage", "ACCESS", "SECRET")
        bob_header = GrpcHeader(bob.host, bob.port)
        yield [
            Client("S3", THROWN_AWAY, lambda count: _bare_loop(s3.address, count)),
            Client("S3", HELD, lambda count: _oneshot(s3_header, object_bytes, None, count)),
            Client("S3", COMPARED, lambda count: _oneshot(s3_header, object_bytes, _SEED, count)),
            Client("gRPC", HELD, lambda count: _oneshot(bob_header, object_bytes, None, count)),
            Client(
                "gRPC", COMPARED, lambda count: _oneshot(bob_header, object_bytes, _SEED, count)
            ),
        ]


def _oneshot(header: Header, object_bytes: int, seed: int | None, count: int) -> list[Fetched]:
    is_s3 = isinstance(header, PlanHeader)
    fetched: list[Fetched] = []

    def requests() -> Iterator[Request]:
        for seq in range(count + WARMUP):
            yield Request(
                seq,
                "measure",
                "GetObject" if is_s3 else "Get",
                bucket="bucket" if is_s3 else None,
                key=_KEY,
                object_bytes=object_bytes,
                body_seed=seed,
            )

    def take(_: Request, sample: Sample) -> None:
        if sample.outcome != "ok" or sample.total_ns is None:
            raise RuntimeError(f"a request to a null server ended {sample.outcome}")
        fetched.append(Fetched(sample.total_ns, sample.verify_ns))

    run_requests(spawn_here, header, requests(), take)
    return fetched[WARMUP:]


def _bare_loop(address: str, count: int) -> list[Fetched]:
    command = [binary("bare-loop"), address, "/bucket/key", str(count + WARMUP), "0"]
    done = subprocess.run(command, check=True, capture_output=True)
    return [Fetched(total_ns, None) for total_ns in json.loads(done.stdout)[WARMUP:]]


def others(object_bytes: int, times: int = 5) -> dict[str, int]:
    """Return what checksums of so many bytes in memory take, in ns: the quickest of a few."""
    content = body(_SEED, object_bytes)
    ways: dict[str, Callable[[bytes], object]] = {
        "CRC-32 (zlib)": zlib.crc32,
        "MD5": hashlib.md5,
        "SHA-256": hashlib.sha256,
    }
    return {name: min(_timed(way, content) for _ in range(times)) for name, way in ways.items()}


def _timed(way: Callable[[bytes], object], content: bytes) -> int:
    began_ns = time.perf_counter_ns()
    way(content)
    return time.perf_counter_ns() - began_ns
