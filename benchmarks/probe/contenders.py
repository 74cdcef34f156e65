"""The clients that are compared. Each does some requests and returns the time of each, in ns.

All of them GET the same 1 KiB object from the same null server on loopback, over a connection
that is kept. What counts is the time from the call until the last byte of the body is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from emulator.binaries import binary
from probes.oneshot import run_requests
from probes.plan import PlanHeader, Request
from probes.process import spawn_here

OBJECT_BYTES = 1024
PAUSE_US = 200
_WARMUP = 20
_BUCKET, _KEY = "bucket", "key"

Measure = Callable[[int], list[int]]


@dataclass(frozen=True)
class Contender:
    """A way to send the requests. ``against`` names the one that it is compared with."""

    name: str
    measure: Measure
    against: str


class NullServer:
    """A null server on loopback; gone when the context is left."""

    def __init__(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [binary("null-server"), "--object-bytes", str(OBJECT_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.address = str(json.loads(self._process.stdout.readline())["listening"])
        host, _, port = self.address.partition(":")
        self.header = PlanHeader(host, int(port), "garage", "ACCESS", "SECRET")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def contenders(server: NullServer) -> list[Contender]:
    """Return all of them; those that others are compared with come first."""
    plain, paced = "bare loop", "bare loop, pausing"
    return [
        Contender(plain, lambda n: _bare_loop(server, n, 0), plain),
        Contender("oneshot, plan from a file", lambda n: _oneshot(server, n), plain),
        Contender("minio-py", _minio(server), plain),
        Contender("boto3", _boto3(server), plain),
        Contender(paced, lambda n: _bare_loop(server, n, PAUSE_US), paced),
        Contender("oneshot, driven by a study", lambda n: _driven(server, n), paced),
    ]


def _bare_loop(server: NullServer, count: int, pause_us: int) -> list[int]:
    arguments = [f"/{_BUCKET}/{_KEY}", str(count + _WARMUP), str(pause_us)]
    done = subprocess.run(
        [binary("bare-loop"), server.address, *arguments], check=True, capture_output=True
    )
    durations: list[int] = json.loads(done.stdout)
    return durations[_WARMUP:]


def _requests(count: int) -> list[Request]:
    return [
        Request(seq, "measure", "GetObject", _BUCKET, _KEY, object_bytes=OBJECT_BYTES, body_seed=0)
        for seq in range(count + _WARMUP)
    ]


def _oneshot(server: NullServer, count: int) -> list[int]:
    """Let oneshot alone with its plan, from a file and to a file."""
    plan = server.header.line() + b"".join(request.line() for request in _requests(count))
    with _file(plan) as source, _file(b"") as sink:
        subprocess.run([binary("oneshot"), "s3"], stdin=source.fd, stdout=sink.fd, check=True)
        records = [json.loads(line) for line in sink.content().splitlines()]
    return [_time(record["outcome"], record["total_ns"]) for record in records[_WARMUP:]]


def _driven(server: NullServer, count: int) -> list[int]:
    """Drive oneshot as a study does: the next request when the sample was dealt with."""
    times: list[int] = []
    run_requests(
        spawn_here,
        server.header,
        _requests(count),
        lambda sample: times.append(_time(sample.outcome, sample.total_ns)),
    )
    return times[_WARMUP:]


def _time(outcome: str, total_ns: int | None) -> int:
    if outcome != "ok" or total_ns is None:
        raise RuntimeError(f"a request to the null server ended {outcome}")
    return total_ns


def _boto3(server: NullServer) -> Measure:
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=f"http://{server.address}",
        region_name=server.header.region,
        aws_access_key_id=server.header.access_key,
        aws_secret_access_key=server.header.secret_key,
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )

    def get() -> bytes:
        body: bytes = client.get_object(Bucket=_BUCKET, Key=_KEY)["Body"].read()
        return body

    return _timed(get)


def _minio(server: NullServer) -> Measure:
    from minio import Minio

    header = server.header
    client = Minio(
        server.address,
        access_key=header.access_key,
        secret_key=header.secret_key,
        region=header.region,
        secure=False,
    )

    def get() -> bytes:
        response = client.get_object(bucket_name=_BUCKET, object_name=_KEY)
        try:
            return bytes(response.read())
        finally:
            response.close()
            response.release_conn()

    return _timed(get)


def _timed(get: Callable[[], bytes]) -> Measure:
    def measure(count: int) -> list[int]:
        times = []
        for _ in range(count + _WARMUP):
            started_ns = time.monotonic_ns()
            body = get()
            times.append(time.monotonic_ns() - started_ns)
            if len(body) != OBJECT_BYTES:
                raise RuntimeError(f"the null server sent {len(body)} bytes")
        return times[_WARMUP:]

    return measure


class _file:  # noqa: N801 - used like a function
    """A nameless file in memory, opened at its beginning."""

    def __init__(self, content: bytes) -> None:
        self.fd = os.memfd_create("benchmark")
        os.write(self.fd, content)
        os.lseek(self.fd, 0, os.SEEK_SET)

    def content(self) -> bytes:
        return os.pread(self.fd, os.fstat(self.fd).st_size, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
