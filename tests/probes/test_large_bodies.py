"""Large objects, from the driver's side: verified, timed, and few in flight while preparing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.probes.bob_node import BobNode
from wanlat.probes.oneshot import PREPARING_PROCESSES, at_once, prepare, run_requests
from wanlat.probes.plan import Request, Window
from wanlat.probes.process import spawn_here
from wanlat.probes.records import Sample

MIB = 2**20
KEY = "0011223344556677"


def put(seq: int, object_bytes: int) -> Request:
    return Request(
        seq, "prepare", "PutObject", "b", f"get/{seq}", object_bytes=object_bytes, body_seed=seq
    )


@pytest.mark.parametrize(
    ("object_bytes", "expected"),
    [(0, True), (1024, True), (4 * MIB, True), (8 * MIB, True), (50 * MIB, 1), (100 * MIB, 1)],
)
def test_the_larger_the_objects_the_fewer_are_prepared_at_once(
    object_bytes: int, expected: int
) -> None:
    few = at_once([put(0, 1), put(1, object_bytes)])
    assert few >= PREPARING_PROCESSES if expected is True else few == expected


def test_large_objects_are_prepared_one_after_another(
    null_server: Callable[..., Any],
) -> None:
    server = null_server()
    samples: list[Sample] = []
    prepare(
        spawn_here,
        server.header,
        [put(seq, 40 * MIB) for seq in range(3)],
        lambda _, sample: samples.append(sample),
    )
    ends = [sample.start_ns + sample.elapsed_ns for sample in samples]
    starts = [sample.start_ns for sample in samples]
    assert [sample.seq for sample in samples] == [0, 1, 2]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_what_verifying_took_is_in_the_sample_of_every_object_that_was_read(
    null_server: Callable[..., Any],
) -> None:
    for object_bytes in (1024, 8 * MIB, 20 * MIB):
        server = null_server("--object-bytes", str(object_bytes))
        get = Request(0, "measure", "GetObject", "b", "k", object_bytes=object_bytes, body_seed=0)
        head = Request(1, "measure", "HeadObject", "b", "k", object_bytes=object_bytes)
        write = replace(put(2, object_bytes), phase="measure")
        samples: dict[str, Sample] = {}
        run_requests(
            spawn_here,
            server.header,
            [get, head, write],
            lambda request, sample, samples=samples: samples.update({request.endpoint: sample}),
        )
        read, wrote = samples["GetObject"], samples["PutObject"]
        assert {sample.outcome for sample in samples.values()} == {"ok"}
        assert read.verify_ns is not None
        assert (read.verify_ns > 0, read.make_ns) == (True, None)
        assert (wrote.verify_ns, wrote.make_ns == 0) == (None, object_bytes <= 8 * MIB)
        assert (samples["HeadObject"].verify_ns, samples["HeadObject"].make_ns) == (None, None)


def test_an_object_with_one_bit_turned_over_is_never_ok(null_server: Callable[..., Any]) -> None:
    for object_bytes in (1, 1024, 8 * MIB, 8 * MIB + 1):
        server = null_server("--object-bytes", str(object_bytes), "--answer", "wrong-body")
        samples: list[Sample] = []
        run_requests(
            spawn_here,
            server.header,
            [Request(0, "measure", "GetObject", "b", "k", object_bytes=object_bytes, body_seed=0)],
            lambda _, sample, samples=samples: samples.append(sample),
        )
        assert [(one.outcome, one.error) for one in samples] == [("fail", "checksum mismatch")]


def test_bob_takes_a_hundred_mebibytes_and_gives_them_through_any_window(tmp_path: Path) -> None:
    samples: list[Sample] = []
    windows: tuple[Window, ...] = ("large", "tonic", "default")
    put = Request(0, "measure", "Put", key=KEY, object_bytes=100 * MIB, body_seed=3)
    with BobNode(tmp_path) as node:
        run_requests(spawn_here, node.header, [put], lambda _, one: samples.append(one))
        for window in windows:
            get, header = replace(put, endpoint="Get"), replace(node.header, window=window)
            run_requests(spawn_here, header, [get], lambda _, one: samples.append(one))
    assert [sample.outcome for sample in samples] == ["ok"] * 4, samples
    assert [sample.object_bytes for sample in samples] == [100 * MIB] * 4
    assert len({sample.sha256 for sample in samples}) == 1
