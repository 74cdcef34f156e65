"""Null servers on loopback, which answer at once and keep nothing, and clients of them.

All get the same object over a connection that is kept. What counts is the time from the call until
the last byte of the answer is there, in ns; some requests before do not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from typing import Literal

from wanlat.emulator.binaries import binary
from wanlat.emulator.closing import Closing
from wanlat.probes.header import Header
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import spawn_here
from wanlat.probes.protocols.grpc import GrpcHeader
from wanlat.probes.protocols.s3 import S3Header
from wanlat.probes.records import Sample

BUCKET, KEY = "bucket", "0706050403020100"


class NullServer(Closing):
    """A null server, with one object; gone when the context is left."""

    def __init__(self, api: Literal["s3", "bob"], object_bytes: int = 1024, seed: int = 0) -> None:
        """Start it. ``seed``: of the object's bytes."""
        program = binary("null-server" if api == "s3" else "null-grpc")
        of_object = ["--object-bytes", str(object_bytes), "--object-seed", str(seed)]
        self._process = subprocess.Popen(
            [program, *of_object], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.address = str(json.loads(self._process.stdout.readline())["listening"])
        host, _, port = self.address.partition(":")
        s3 = S3Header(host, int(port), "garage", "ACCESS", "SECRET")
        self.header: Header = s3 if api == "s3" else GrpcHeader(host, int(port))

    def stop(self) -> dict[str, int]:
        """Have it end; return its last words, where it has any: ``requests``, ``cpu_ns``."""
        output, _ = self._process.communicate()
        counted: dict[str, int] = json.loads(output or "{}")
        return counted

    def close(self) -> None:
        """End it, where it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def bare_loop(server: NullServer, count: int, warm_up: int, pause_us: int = 0) -> list[int]:
    """Request it in a program of its own that does nothing else but pause before each request."""
    is_s3 = isinstance(server.header, S3Header)
    program = (
        ["bare-loop", server.address, f"/{BUCKET}/{KEY}"]
        if is_s3
        else ["bare-grpc", server.address]
    )
    command = [binary(program[0]), *program[1:], str(count + warm_up), str(pause_us)]
    times: list[int] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return times[warm_up:]


def oneshot(
    header: Header, count: int, warm_up: int, object_bytes: int, seed: int | None = 0
) -> list[Sample]:
    """Drive oneshot as a study does: the next request when the sample was dealt with.

    ``seed`` None: bodies are kept, and not compared.
    """
    samples: list[Sample] = []
    requests = _requests(header, count + warm_up, object_bytes, seed)
    run_requests(spawn_here, header, requests, lambda _, sample: samples.append(sample))
    for sample in samples:
        _check(sample.outcome)
    return samples[warm_up:]


def oneshot_alone(header: Header, count: int, warm_up: int, object_bytes: int) -> list[int]:
    """Let oneshot alone with its plan, from a file in memory and to one."""
    requests = _requests(header, count + warm_up, object_bytes, 0)
    plan = header.line() + b"".join(request.line() for request in requests)
    with (
        closing(os.fdopen(os.memfd_create("plan"), "w+b", buffering=0)) as source,
        closing(os.fdopen(os.memfd_create("records"), "w+b", buffering=0)) as sink,
    ):
        source.write(plan)
        source.seek(0)
        subprocess.run(
            [binary("oneshot"), header.subcommand], stdin=source, stdout=sink, check=True
        )
        sink.seek(0)
        records = [json.loads(line) for line in sink.read().splitlines()]
    for record in records:
        _check(record["outcome"])
    return [record["total_ns"] for record in records[warm_up:]]


def python_client(get: Callable[[], bytes], count: int, warm_up: int, bytes_: int) -> list[int]:
    """Request it in this process by `get`."""
    times = []
    for _ in range(count + warm_up):
        started_ns = time.monotonic_ns()
        body = get()
        times.append(time.monotonic_ns() - started_ns)
        if len(body) != bytes_:
            raise RuntimeError(f"the null server sent {len(body)} bytes")
    return times[warm_up:]


def _requests(header: Header, count: int, object_bytes: int, seed: int | None) -> list[Request]:
    is_s3 = isinstance(header, S3Header)
    endpoint, bucket = ("GetObject", BUCKET) if is_s3 else ("Get", None)
    more = {"object_bytes": object_bytes, "body_seed": seed}
    return [Request(seq, "measure", endpoint, bucket, KEY, **more) for seq in range(count)]


def _check(outcome: str) -> None:
    if outcome != "ok":
        raise RuntimeError(f"a request to the null server ended {outcome}")
