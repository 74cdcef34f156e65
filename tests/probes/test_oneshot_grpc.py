"""The driver over gRPC, against the reference store: whole plans, and a server that dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.probes.bob_node import BobNode
from tests.probes.plans import plan_of
from wanlat.probes.header import Window
from wanlat.probes.method_plan import Call, Measured
from wanlat.probes.oneshot import Oneshot, OnSample, prepare, run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import spawn_here
from wanlat.probes.records import Sample

PROTO = Path(__file__).parents[2] / "proto" / "bob.proto"
CLOCK = {"timestamp": "{now}"}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BobNode]:
    with BobNode(tmp_path / "data") as started:
        yield started


def into(samples: list[Sample]) -> OnSample:
    return lambda _, sample: samples.append(sample)


def put(seq: int, key: int, object_bytes: int = 100) -> Request:
    return Request(
        seq, "measure", "Put", key=f"{key:016x}", object_bytes=object_bytes, body_seed=key
    )


def get(seq: int, key: int, object_bytes: int = 100) -> Request:
    return replace(put(seq, key, object_bytes), endpoint="Get")


def test_a_server_that_dies_mid_request_gives_unknown_and_the_run_goes_on(node: BobNode) -> None:
    with Oneshot(spawn_here, node.header) as probe:

        def ask(request: Request) -> Sample:
            probe.send(request)
            return probe.receive()

        assert ask(put(0, 1)).outcome == "ok"
        node.freeze()
        probe.send(put(1, 2))
        assert not probe.is_lost()
        node.wait_for_request()
        node.kill()
        died = probe.receive()
        assert (died.outcome, died.grpc_status) == ("unknown", None)
        assert died.error is not None
        refused = ask(put(2, 3))
        assert (refused.outcome, refused.error) == ("fail", "refused")
        node.start()
        again = ask(get(3, 1))
        assert (again.outcome, again.error, again.new_connection) == ("ok", None, True)
        assert not ask(get(4, 1)).new_connection
        probe.finish()


def test_the_same_api_as_methods_of_a_proto_file(node: BobNode) -> None:
    """What a user's own service is measured by: methods, messages and objects as data."""
    api = "bob_storage.BobApi"
    made = Call(f"{api}/Put", {"key": {"key": "{key}"}, "data": {"data": "{body}", "meta": CLOCK}})
    methods = [
        Measured(f"{api}/Get", {"key": {"key": "{key}"}}, response_object="data", prepare=made),
        Measured(f"{api}/Ping"),
    ]
    plan = plan_of("grpc", methods, samples=5, warmup=1, object_bytes=3000, seed=1)
    header = replace(node.header, protos=[str(PROTO)], includes=[str(PROTO.parent)])
    samples: list[Sample] = []
    prepare(spawn_here, header, plan.prepare, into(samples))
    run_requests(spawn_here, header, (*plan.warmup, *plan.measure), into(samples))
    assert [sample.error for sample in samples if sample.outcome != "ok"] == []
    got = [sample for sample in samples if sample.endpoint == f"{api}/Get"]
    assert len(got) == 6
    assert {sample.object_bytes for sample in got} == {3000}


def test_bob_takes_a_hundred_mebibytes_and_gives_them_through_any_window(node: BobNode) -> None:
    samples: list[Sample] = []
    windows: tuple[Window, ...] = ("large", "tonic", "default")
    large = put(0, 3, 100 << 20)
    run_requests(spawn_here, node.header, [large], into(samples))
    for window in windows:
        header = replace(node.header, window=window)
        run_requests(spawn_here, header, [replace(large, endpoint="Get")], into(samples))
    assert [sample.outcome for sample in samples] == ["ok"] * 4, samples
    assert [sample.object_bytes for sample in samples] == [100 << 20] * 4
