"""The driver over gRPC, against the reference store: whole plans, and a server that dies."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.probes.bob_node import BobNode
from wanlat.probes.bob_plan import bob_plan
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.method_plan import Call, Measured, method_plan
from wanlat.probes.oneshot import Oneshot, OnSample, run_plan, run_requests
from wanlat.probes.plan import GrpcHeader, Request
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


def test_a_whole_plan_succeeds_in_order(node: BobNode) -> None:
    plan = bob_plan(
        ["Put", "Get", "Exist", "Delete", "Ping"],
        samples=10,
        warmup=2,
        object_bytes=3000,
        seed=1,
        target="n1",
        replicas=lambda _: ("n1",),
    )
    taken: list[tuple[Request, Sample]] = []
    run_plan(spawn_here, node.header, plan, lambda *pair: taken.append(pair))
    assert [sample.error for _, sample in taken if sample.outcome != "ok"] == []
    assert {sample.grpc_status for _, sample in taken} == {0}
    assert {sample.status for _, sample in taken} == {200}
    assert [(r.seq, r.endpoint) for r, _ in taken] == [(s.seq, s.endpoint) for _, s in taken]
    later = [request for request, sample in taken if sample.phase != "prepare"]
    assert later == [*plan.warmup, *plan.measure]
    starts = [sample.start_ns for _, sample in taken if sample.phase != "prepare"]
    assert starts == sorted(starts)


def test_one_connection_is_kept_or_each_request_has_its_own(node: BobNode) -> None:
    pings = [Request(seq, "measure", "Ping") for seq in range(4)]
    made: dict[str, list[bool]] = {"keep-alive": [], "new": []}
    run_requests(
        spawn_here, node.header, pings, lambda _, s: made["keep-alive"].append(s.new_connection)
    )
    new = replace(node.header, connection="new")
    run_requests(spawn_here, new, pings, lambda _, s: made["new"].append(s.new_connection))
    assert made == {"keep-alive": [True, False, False, False], "new": [True] * 4}


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


def test_what_is_not_there_is_a_sample_and_not_an_error(node: BobNode) -> None:
    samples: list[Sample] = []
    requests = [get(0, 9), Request(1, "measure", "Exist", key="00" * 8, exists=True)]
    run_requests(spawn_here, node.header, requests, into(samples))
    assert [(sample.outcome, sample.grpc_status) for sample in samples] == [
        ("fail", 5),
        ("fail", 0),
    ]


def test_a_server_that_is_not_there_is_a_sample_too() -> None:
    samples: list[Sample] = []
    requests = [Request(seq, "measure", "Ping") for seq in range(2)]
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        gone = GrpcHeader(*nobody.getsockname(), deadline_ms=1000)
        run_requests(spawn_here, gone, requests, into(samples))
    assert [(sample.outcome, sample.error) for sample in samples] == [("fail", "refused")] * 2


def test_an_object_past_the_limit_is_refused_with_the_sizes(node: BobNode) -> None:
    samples: list[Sample] = []
    small = replace(node.header, max_message_bytes=1000)
    requests = [put(0, 1, 900), put(1, 2, 2000), get(2, 1, 900)]
    run_requests(spawn_here, small, requests, into(samples))
    assert [sample.outcome for sample in samples] == ["ok", "fail", "ok"]
    refusal = samples[1]
    assert "1000" in (refusal.error or ""), refusal.error
    assert refusal.sent_ns is None, "it never left"


def test_fifty_mebibytes_go_both_ways(node: BobNode) -> None:
    samples: list[Sample] = []
    run_requests(spawn_here, node.header, [put(0, 1, 50 << 20), get(1, 1, 50 << 20)], into(samples))
    assert [(sample.outcome, sample.error) for sample in samples] == [("ok", None)] * 2
    assert samples[0].sha256 == samples[1].sha256 is not None


def test_the_same_api_as_methods_of_a_proto_file(node: BobNode) -> None:
    """What a user's own service is measured by: methods, messages and objects as data."""
    api = "bob_storage.BobApi"
    made = Call(f"{api}/Put", {"key": {"key": "{key}"}, "data": {"data": "{body}", "meta": CLOCK}})
    methods = [
        Measured(f"{api}/Get", {"key": {"key": "{key}"}}, response_object="data", prepare=made),
        Measured(f"{api}/Ping"),
    ]
    plan = method_plan(methods, samples=5, warmup=1, object_bytes=3000, seed=1)
    header = replace(node.header, protos=[PROTO], includes=[PROTO.parent])
    samples: list[Sample] = []
    run_plan(spawn_here, header, plan, into(samples))
    assert [sample.error for sample in samples if sample.outcome != "ok"] == []
    got = [sample for sample in samples if sample.endpoint == f"{api}/Get"]
    assert len(got) == 6
    assert {sample.object_bytes for sample in got} == {3000}


def test_what_does_not_fit_the_proto_file_is_said(node: BobNode) -> None:
    header = replace(node.header, protos=[PROTO], includes=[PROTO.parent])
    wrong = Request(0, "measure", "bob_storage.BobApi/Gett", request={})
    with pytest.raises(ProbeFailed, match=r"exit code 2(.|\n)*plan line 2: (.|\n)*Gett"):
        run_requests(spawn_here, header, [wrong], into([]))
