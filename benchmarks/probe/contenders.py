"""The ways to send requests that are compared. Each returns the time of each request, in ns.

All of them get the same object of 1 KiB from a null server on loopback, over a connection that is
kept. What counts is the time from the call until the last byte of the answer is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wanlat.emulator.binaries import binary
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import spawn_here

OBJECT_BYTES = 1024
PAUSE_US = 200
WARMUP = 20

Measure = Callable[[int], list[int]]
"""Does so many requests, after some that do not count."""


@dataclass(frozen=True)
class Contender:
    """A way to send the requests. ``against`` names the one that it is compared with."""

    name: str
    measure: Measure
    against: str


@dataclass(frozen=True)
class Target:
    """What must hold: ``client`` takes at most ``at_most`` times what ``against`` takes."""

    client: str
    against: str
    at_most: float


def bare_loop(program: str, *arguments: str, pause_us: int) -> Measure:
    """Return a loop in a program of its own, which pauses before each request."""

    def measure(count: int) -> list[int]:
        command = [binary(program), *arguments, str(count + WARMUP), str(pause_us)]
        done = subprocess.run(command, check=True, capture_output=True)
        durations: list[int] = json.loads(done.stdout)
        return durations[WARMUP:]

    return measure


def oneshot_from_file(header: Header, requests: Callable[[int], Sequence[Request]]) -> Measure:
    """Let oneshot alone with its plan, from a file and to a file."""

    def measure(count: int) -> list[int]:
        plan = header.line() + b"".join(each.line() for each in requests(count + WARMUP))
        with _file(plan) as source, _file(b"") as sink:
            command = [binary("oneshot"), header.subcommand]
            subprocess.run(command, stdin=source.fd, stdout=sink.fd, check=True)
            records = [json.loads(line) for line in sink.content().splitlines()]
        return [_time(record["outcome"], record["total_ns"]) for record in records[WARMUP:]]

    return measure


def oneshot_driven(header: Header, requests: Callable[[int], Sequence[Request]]) -> Measure:
    """Drive oneshot as a study does: the next request when the sample was dealt with."""

    def measure(count: int) -> list[int]:
        times: list[int] = []
        run_requests(
            spawn_here,
            header,
            requests(count + WARMUP),
            lambda _, sample: times.append(_time(sample.outcome, sample.total_ns)),
        )
        return times[WARMUP:]

    return measure


def python_client(get: Callable[[], bytes]) -> Measure:
    """Return a client in this process, by what gets the object with it."""

    def measure(count: int) -> list[int]:
        times = []
        for _ in range(count + WARMUP):
            started_ns = time.monotonic_ns()
            body = get()
            times.append(time.monotonic_ns() - started_ns)
            if len(body) != OBJECT_BYTES:
                raise RuntimeError(f"the null server sent {len(body)} bytes")
        return times[WARMUP:]

    return measure


def _time(outcome: str, total_ns: int | None) -> int:
    if outcome != "ok" or total_ns is None:
        raise RuntimeError(f"a request to the null server ended {outcome}")
    return total_ns


class _file:  # noqa: N801 - used like a function
    """A nameless file in memory, opened at its beginning."""

    def __init__(self, content: bytes) -> None:
        self.fd = os.memfd_create("benchmark")
        os.write(self.fd, content)
        os.lseek(self.fd, 0, os.SEEK_SET)

    def content(self) -> bytes:
        return os.pread(self.fd, os.fstat(self.fd).st_size, 0)

    def __enter__(self) -> _file:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
