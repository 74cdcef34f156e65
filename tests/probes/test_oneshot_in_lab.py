"""On an emulated network, oneshot's times are round trips, and its TCP_INFO tells of losses.

No packet is early, so each request is at least its round trips; a stall spoils the one or the
other, and so the median says that it is no more.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import Lab
from wanlat.experiments.requests import spawn_on
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request
from wanlat.probes.protocols.s3 import S3Header
from wanlat.probes.records import Sample
from wanlat.topologies.resolve import Impairment

RTT_MS = 80.0
EARLY_MS = 0.1
"""By so much the clocks of a client and of the network may differ."""

Ask = Callable[..., list[Sample]]


@contextmanager
def asking(wan: Impairment, *options: str) -> Iterator[Ask]:
    """Ask, from a node of one site, a null server in the other."""
    with Lab(mesh(2, wan=wan)) as lab, ExitStack() as stack:
        lifeline, held = os.pipe()
        output, its_output = os.pipe()
        for fd in (lifeline, held, its_output):
            stack.callback(os.close, fd)
        address = lab.node("n2").address
        argv = [binary("null-server"), "--listen", f"{address}:9000", *options]
        lab.spawn("n2", argv, stdin=lifeline, stdout=its_output)
        lines = stack.enter_context(os.fdopen(output))
        assert json.loads(lines.readline())["listening"] == f"{address}:9000"
        header = S3Header(address, 9000, "garage", "ACCESS", "SECRET")

        def ask(endpoint: str, count: int, **changes: object) -> list[Sample]:
            samples: list[Sample] = []
            requests = [
                Request(seq, "measure", endpoint, "b", "k", object_bytes=1024, body_seed=0)
                for seq in range(count)
            ]
            changed = replace(header, **changes)  # type: ignore[arg-type]
            run_requests(spawn_on(lab, "n1"), changed, requests, lambda _, it: samples.append(it))
            assert {sample.outcome for sample in samples} == {"ok"}
            return samples

        yield ask


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with asking(ms(RTT_MS / 2)) as made:
        yield made


def round_trips(times_ns: Iterable[int | None]) -> int:
    """How many round trips each of these times is at least, and most are."""
    times_ms = [(ns or 0) / 1e6 + EARLY_MS for ns in times_ns]
    least, usual = (math.floor(each / RTT_MS) for each in (min(times_ms), median(times_ms)))
    assert least == usual, times_ms
    return least


@pytest.mark.parametrize("endpoint", ["GetObject", "PutObject"])
def test_a_kept_connection_pays_one_round_trip(ask: Ask, endpoint: str) -> None:
    """An `Expect: 100-continue` would make a put two."""
    first, *kept = ask(endpoint, 10)
    assert first.new_connection
    assert {(sample.new_connection, sample.connect_ns) for sample in kept} == {(False, 0)}
    assert round_trips(sample.total_ns for sample in kept) == 1
    assert round_trips(sample.rtt_us * 1000 for sample in kept) == 1  # as the kernel has it


def test_a_new_connection_pays_one_more_and_says_which(ask: Ask) -> None:
    samples = ask("GetObject", 9, connection="new")
    assert all(sample.new_connection for sample in samples)
    assert round_trips(sample.connect_ns for sample in samples) == 1
    assert round_trips(sample.total_ns for sample in samples) == 2


def test_retransmissions_tell_a_lossy_network_from_a_slow_store() -> None:
    rtt_ns = 20e6
    with asking(ms(10, loss=0.15)) as ask:
        lossy = ask("GetObject", 60)[1:]
    sent_again = [sample for sample in lossy if sample.retransmits]
    assert len(sent_again) >= 2
    # Who sends again has waited for a timer, which is never shorter than another round trip.
    assert min(sample.total_ns or 0 for sample in sent_again) > 1.9 * rtt_ns
    with asking(ms(10), "--answer", "wait:100") as ask:
        slow = ask("GetObject", 9)[1:]
    assert min(sample.total_ns or 0 for sample in slow) > rtt_ns + 99e6
    assert median(sample.retransmits for sample in slow) == 0
