"""Stores that cost nothing and have one object: what the generator of load is tested against."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wanlat.emulator.binaries import binary
from wanlat.probes.prefilled import body_seed_of
from wanlat.probes.protocols.grpc import GrpcHeader
from wanlat.probes.protocols.s3 import S3Header


@dataclass
class NullStore:
    """A running one. It has object ``index`` of bucket ``b0``, whatever is asked for."""

    host: str
    port: int
    said: dict[str, int] = field(default_factory=dict)
    """null-server's last words, once it has ended: how many requests it saw."""

    @property
    def s3(self) -> S3Header:
        """A plan's header for null-server."""
        return S3Header(self.host, self.port, "garage", "ACCESS", "SECRET", deadline_ms=5_000)

    @property
    def bob(self) -> GrpcHeader:
        """A plan's header for null-grpc."""
        return GrpcHeader(self.host, self.port)


@contextmanager
def null_store(
    seed: int, *, program: str = "null-server", object_bytes: int = 1024, index: int = 0
) -> Iterator[NullStore]:
    """Run one; it is gone afterwards."""
    body_seed = body_seed_of(seed, "b0", index)
    server = subprocess.Popen(
        [
            binary(program),
            *("--object-bytes", str(object_bytes), "--object-seed", str(body_seed)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            host, _, port = json.loads(server.stdout.readline())["listening"].partition(":")
            store = NullStore(host, int(port))
            yield store
            server.stdin.close()
            store.said |= json.loads(server.stdout.read() or "{}")
        finally:
            server.kill()
