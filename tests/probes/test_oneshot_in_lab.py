"""On an emulated network, oneshot's times are round trips, and its TCP_INFO tells of losses."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import Lab
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import PlanHeader, Request
from wanlat.probes.process import Process, Spawn
from wanlat.probes.records import Sample
from wanlat.topologies.resolve import Impairment

RTT_MS = 100.0
Ask = Callable[..., list[Sample]]


@contextmanager
def asking(wan: Impairment) -> Iterator[Ask]:
    """Ask, from a node of one site, a null server in the other."""
    with Lab(mesh(2, wan=wan)) as lab:
        lifeline, _held = os.pipe()
        output, its_output = os.pipe()
        address = lab.node("n2").address
        listen = ["--listen", f"{address}:9000"]
        lab.spawn("n2", [binary("null-server"), *listen], stdin=lifeline, stdout=its_output)
        with os.fdopen(output) as lines:
            assert json.loads(lines.readline())["listening"] == f"{address}:9000"
        header = PlanHeader(address, 9000, "garage", "ACCESS", "SECRET")

        def ask(requests: list[Request], **changes: object) -> list[Sample]:
            samples: list[Sample] = []
            changed = replace(header, **changes)  # type: ignore[arg-type]
            spawn = in_lab(lab, "n1")
            run_requests(spawn, changed, requests, lambda _, sample: samples.append(sample))
            return samples

        try:
            yield ask
        finally:
            for fd in (lifeline, _held, its_output):
                os.close(fd)


def in_lab(lab: Lab, node: str) -> Spawn:
    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return lab.spawn(node, argv, stdin=stdin, stdout=stdout, stderr=stderr)

    return spawn


def gets(count: int) -> list[Request]:
    return [
        Request(seq, "measure", "GetObject", "b", "k", object_bytes=1024, body_seed=0)
        for seq in range(count)
    ]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with asking(ms(RTT_MS / 2)) as made:
        yield made


def round_trips(times_ns: Iterable[int | None]) -> int:
    """Of the quickest: a busy machine holds up requests, but it cannot spare one a round trip."""
    return math.floor(min(ns or 0 for ns in times_ns) / 1e6 / RTT_MS + 0.001)


def test_a_kept_connection_pays_one_round_trip(ask: Ask) -> None:
    first, *kept = ask(gets(8))
    assert first.new_connection
    assert {sample.outcome for sample in kept} == {"ok"}
    assert {sample.connect_ns for sample in kept} == {0}
    assert round_trips(sample.total_ns for sample in kept) == 1


def test_a_new_connection_pays_one_more_and_says_which(ask: Ask) -> None:
    samples = ask(gets(7), connection="new")
    assert round_trips(sample.connect_ns for sample in samples) == 1
    assert round_trips(sample.total_ns for sample in samples) == 2


def test_retransmissions_tell_a_lossy_network_from_a_slow_store() -> None:
    with asking(ms(10, loss=0.15)) as ask:
        samples = [sample for sample in ask(gets(40)) if not sample.new_connection]
    assert {sample.outcome for sample in samples} == {"ok"}
    # 0.85² = 72 % of requests and answers get through at the first attempt; the others wait for
    # a timer, which is never shorter than another round trip.
    prompt = [sample for sample in samples if (sample.total_ns or 0) < 38e6]
    held_up = [sample for sample in samples if sample.retransmits]
    assert len(prompt) > 8
    assert len(held_up) > 3
    assert {sample.retransmits for sample in prompt} == {0}
