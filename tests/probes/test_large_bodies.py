"""Large objects, from the driver's side: verified, timed, and few in flight while preparing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.probes.bob_node import BobNode
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request, Window
from wanlat.probes.process import spawn_here
from wanlat.probes.records import Sample

MIB = 2**20
KEY = "0011223344556677"


def put(seq: int, object_bytes: int) -> Request:
    return Request(
        seq, "prepare", "PutObject", "b", f"get/{seq}", object_bytes=object_bytes, body_seed=seq
    )


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
